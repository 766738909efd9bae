package retry_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/breaker"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/retry"
)

// once is a script of one response, and 200 afterwards.
func once(status int, header ...string) func(int, *http.Request) (*http.Response, error) {
	return func(n int, _ *http.Request) (*http.Response, error) {
		if n == 0 {
			return response(status, nil, header...), nil
		}
		return response(200, nil), nil
	}
}

// Over a Transport that pauses, a throttled attempt waits only in line, until the pause
// ends, without a backoff in addition.
func TestPausedInLineOnly(t *testing.T) {
	for name, tt := range map[string]struct {
		script func(int, *http.Request) (*http.Response, error)
		sends  string
	}{
		"a time":    {once(429, "Retry-After", "7"), "0@0s 1@7s"},
		"no time":   {once(429), "0@0s 1@1s"},
		"growing":   {responses(429, 429, 200), "0@0s 1@1s 2@3s"},
		"503":       {once(503, "Retry-After", "7"), "0@0s 1@7s"},
		"its own":   {once(503), "0@0s 1@500ms"},
		"now":       {once(429, "Retry-After", "0"), "0@0s 1@500ms"},
		"remaining": {once(429, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "20"), "0@0s 1@21s"},
	} {
		t.Run(name, func(t *testing.T) {
			playListening(t, headway.Policy{Limits: []limiter.Limit{limiter.PerSecond(100)}}, retry.Config{}, func(s *scene) {
				s.script = tt.script
				s.wantStatus(request(s.Context(), "GET", ""), 200)
				s.wantSends(tt.sends)
			})
		})
	}
}

// A pause that is too long ends the retrying immediately, with the response.
func TestC41_C6_APauseThatDoesNotFit(t *testing.T) {
	for name, tt := range map[string]struct {
		policy headway.Policy
		cfg    retry.Config
		after  time.Duration // of the context; zero: none
	}{
		"the deadline":    {after: 30 * time.Second},
		"the wait budget": {policy: headway.Policy{MaxWait: 30 * time.Second}},
		"the elapsed":     {cfg: retry.Config{MaxElapsed: 30 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			playListening(t, tt.policy, tt.cfg, func(s *scene) {
				ctx := s.Context()
				if tt.after > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tt.after)
					defer cancel()
				}
				s.script = once(429, "Retry-After", "100")
				begin := time.Now()
				s.wantStatus(request(ctx, "GET", ""), 429)
				if took := time.Since(begin); took != 0 {
					s.Errorf("it took %v", took)
				}
				s.wantSends("0@0s")
			})
		})
	}
}

// Ten requests with two retries each, at 5 per s, with pauses between.
func TestC23_RetriesObeyThePause(t *testing.T) {
	playListening(t, headway.Policy{Limits: []limiter.Limit{limiter.PerSecond(5)}}, retry.Config{}, func(s *scene) {
		s.script = responses(429, 429, 429, 200)
		s.wantStatus(request(s.Context(), "GET", ""), 200)
		s.wantSends("0@0s 1@1s 2@3s 3@7s")
	})
}

// C11: if the body alone says that a quota must be paid for, the request is not
// retried, and the caller reads the whole body.
func TestC11_AnUnpaidQuotaIsFinal(t *testing.T) {
	const text = `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`
	for name, play := range map[string]func(*testing.T, headway.Policy, retry.Config, func(*scene)){"listening": playListening, "not": play} {
		t.Run(name, func(t *testing.T) {
			play(t, headway.Policy{}, retry.Config{}, func(s *scene) {
				s.script = func(int, *http.Request) (*http.Response, error) {
					return response(429, newBody(text), "Content-Type", "application/json"), nil
				}
				resp, err := s.RoundTrip(request(s.Context(), "GET", ""))
				if err != nil {
					s.Fatal(err)
				}
				if got, err := io.ReadAll(resp.Body); string(got) != text || err != nil {
					s.Errorf("the caller reads %q, %v", got, err)
				}
				resp.Body.Close()
				s.wantSends("0@0s")
			})
		})
	}
}

// C70, S78: an open breaker ends the retrying, with the failure before that.
func TestS78_AnOpenBreakerEndsIt(t *testing.T) {
	policy := headway.Policy{Breaker: &breaker.Config{Failures: 1}}
	playListening(t, policy, retry.Config{}, func(s *scene) {
		s.script = responses(503)
		resp, err := s.get(s.Context())
		if err != nil || resp.StatusCode != 503 {
			s.Errorf("got %v, %v, want the response of 503", resp, err)
		}
		if _, err := s.get(s.Context()); !errors.Is(err, headway.ErrOpen) {
			s.Errorf("got %v, want the open breaker", err)
		}
		s.wantSends("0@0s")
	})
}
