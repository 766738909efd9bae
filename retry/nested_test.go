package retry_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/retry"
)

// sdk is a client that retries by itself: it makes three attempts over any transport.
func sdk(ctx context.Context, rt http.RoundTripper, mark func(*http.Request, int)) (sent int, status int) {
	for n := range 3 {
		req := request(ctx, "GET", "")
		mark(req, n)
		resp, err := rt.RoundTrip(req)
		if err != nil {
			panic(err)
		}
		resp.Body.Close()
		if status = resp.StatusCode; status < 500 {
			return n + 1, status
		}
	}
	return 3, status
}

// The retries of two layers do not multiply if the outer one marks its attempts, or if
// its calls share an allowance: their attempts add up to 5 + 2, not to 5 x 3.
func TestNestedRetriesAddUp(t *testing.T) {
	header := func(name string, values ...string) func(*http.Request, int) {
		return func(req *http.Request, n int) { req.Header.Set(name, values[n]) }
	}
	for name, tt := range map[string]struct {
		ctx  func(context.Context) context.Context
		mark func(*http.Request, int)
		want int
	}{
		"WithAttempt": {mark: func(req *http.Request, n int) {
			*req = *req.WithContext(headway.WithAttempt(req.Context(), n))
		}, want: 7},
		"Stainless":  {mark: header("X-Stainless-Retry-Count", "0", "1", "2"), want: 7},
		"AWS":        {mark: header("Amz-Sdk-Request", "attempt=1; max=3", "ttl=1; attempt=2; max=3", "attempt=3; max=3"), want: 7},
		"AWS, later": {mark: header("Amz-Sdk-Request", "attempt=10", "attempt=11", "attempt=12"), want: 3},
		"Shared":     {ctx: retry.Shared, mark: func(*http.Request, int) {}, want: 7},
		"unknown":    {mark: func(*http.Request, int) {}, want: 15},
		"no attempt": {mark: header("Amz-Sdk-Request", "ttl=1", "", "attempt=1"), want: 15},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, headway.Policy{}, retry.Config{Budget: retry.Budget{Start: 30}}, func(s *scene) {
				s.script = responses(503)
				ctx := s.Context()
				if tt.ctx != nil {
					ctx = tt.ctx(ctx)
				}
				if _, status := sdk(ctx, s.Transport, tt.mark); status != 503 {
					s.Errorf("got status %d, want 503", status)
				}
				if got := s.sends(); got != tt.want {
					s.Errorf("got %d sends, want %d", got, tt.want)
				}
			})
		})
	}
}

// One retry.Transport over another.
func TestNestedOurs(t *testing.T) {
	play(t, headway.Policy{}, retry.Config{}, func(s *scene) {
		s.script = responses(503)
		outer, err := retry.New(newTransport(t, s.Transport, headway.Policy{}), retry.Config{})
		if err != nil {
			s.Fatal(err)
		}
		outer.SetJitter(0)
		resp, err := outer.RoundTrip(request(s.Context(), "GET", ""))
		if err != nil || resp.StatusCode != 503 {
			s.Errorf("got %v, %v", resp, err)
		}
		s.wantSends("0@0s 1@500ms 2@1.5s 3@3.5s 4@7.5s 1@7.5s 2@7.5s 3@7.5s 4@7.5s")
	})
}

// The MaxElapsed of a shared allowance begins at the call of Shared.
func TestSharedElapsed(t *testing.T) {
	play(t, headway.Policy{}, retry.Config{MaxElapsed: 10 * time.Second}, func(s *scene) {
		s.script = responses(503)
		ctx := retry.Shared(s.Context())
		time.Sleep(9 * time.Second)
		s.wantStatus(request(ctx, "GET", ""), 503)
		s.wantSends("0@9s 1@9.5s") // the second would come at 10.5 s
	})
}

// A retry of an outer layer adds nothing to the budget: it is not a first attempt.
func TestNestedEarnsNothing(t *testing.T) {
	play(t, headway.Policy{}, retry.Config{Budget: retry.Budget{PerSecond: retry.None}}, func(s *scene) {
		s.wantStatus(request(s.Context(), "GET", ""), 200)
		s.wantLeft(10_200)
		s.wantStatus(request(headway.WithAttempt(s.Context(), 1), "GET", ""), 200)
		s.script = responses(404)
		s.wantStatus(request(headway.WithAttempt(s.Context(), 1), "GET", ""), 404)
		s.wantLeft(10_200)
	})
}
