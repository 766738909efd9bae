package retry_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/retry"
)

// once is a script of one answer, and 200 afterwards.
func once(status int, header ...string) func(int, *http.Request) (*http.Response, error) {
	return func(n int, _ *http.Request) (*http.Response, error) {
		if n == 0 {
			return answer(status, nil, header...), nil
		}
		return answer(200, nil), nil
	}
}

// Over a Transport that pauses, a throttled attempt waits in line alone, until the
// pause is over, and not for its backoff on top.
func TestPausedInLineOnly(t *testing.T) {
	for name, tt := range map[string]struct {
		script func(int, *http.Request) (*http.Response, error)
		sends  string
	}{
		"a time":    {once(429, "Retry-After", "7"), "0@0s 1@7s"},
		"no time":   {once(429), "0@0s 1@1s"},
		"growing":   {answers(429, 429, 200), "0@0s 1@1s 2@3s"},
		"503":       {once(503, "Retry-After", "7"), "0@0s 1@7s"},
		"its own":   {once(503), "0@0s 1@500ms"},
		"now":       {once(429, "Retry-After", "0"), "0@0s 1@500ms"},
		"remaining": {once(429, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "20"), "0@0s 1@20s"},
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

// A pause that does not fit ends the retrying at once, with the response.
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
		s.script = answers(429, 429, 429, 200)
		s.wantStatus(request(s.Context(), "GET", ""), 200)
		s.wantSends("0@0s 1@1s 2@3s 3@7s")
	})
}
