package retry_test

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/retry"
)

// to returns a GET to a host.
func to(ctx context.Context, host string) *http.Request {
	req, err := http.NewRequestWithContext(ctx, "GET", "https://"+host+"/", nil)
	if err != nil {
		panic(err)
	}
	return req
}

// wantLeft compares the room for retries, in thousandths.
func (s *scene) wantLeft(want int64) {
	s.Helper()
	if got := s.Left(request(context.Background(), "GET", "")) / 1_000_000; got != want {
		s.Errorf("at %v: got room for %d thousandths of a retry, want %d", time.Since(s.begin), got, want)
	}
}

// Each event changes the budget by its number, and each number is configurable.
func TestBudget(t *testing.T) {
	for name, tt := range map[string]struct {
		budget retry.Budget
		// left at the start, after a first attempt, after one that was retried in
		// vain, after one that was retried with success, a second later, and after
		// an hour
		want [6]int64
	}{
		"default":    {retry.Budget{}, [6]int64{10_000, 10_200, 9_400, 9_600, 12_600, 30_000}},
		"Start":      {retry.Budget{Start: 20}, [6]int64{20_000, 20_200, 19_400, 19_600, 22_600, 30_000}},
		"PerRequest": {retry.Budget{PerRequest: 0.5}, [6]int64{10_000, 10_500, 10_000, 10_500, 13_500, 30_000}},
		"PerSecond":  {retry.Budget{PerSecond: 0.25}, [6]int64{10_000, 10_200, 9_400, 9_600, 9_850, 30_000}},
		"PerSuccess": {retry.Budget{PerSuccess: 0.7}, [6]int64{10_000, 10_200, 9_400, 9_300, 12_300, 30_000}},
		"Max":        {retry.Budget{Max: 10}, [6]int64{10_000, 10_000, 9_000, 9_200, 10_000, 10_000}},
		"none":       {retry.Budget{PerRequest: retry.None, PerSecond: retry.None, PerSuccess: retry.None}, [6]int64{10_000, 10_000, 9_000, 8_000, 8_000, 8_000}},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, headway.Policy{}, retry.Config{MaxRetries: 1, Budget: tt.budget}, func(s *scene) {
				s.SetJitter(0)
				s.wantLeft(tt.want[0])
				s.wantStatus(request(s.Context(), "GET", ""), 200)
				s.wantLeft(tt.want[1])
				s.script = responses(503)
				s.wantStatus(request(s.Context(), "GET", ""), 503)
				s.wantLeft(tt.want[2])
				s.script = func(_ int, req *http.Request) (*http.Response, error) {
					return response(503-303*headway.AttemptFrom(req.Context()), nil), nil
				}
				s.wantStatus(request(s.Context(), "GET", ""), 200)
				s.wantLeft(tt.want[3])
				time.Sleep(time.Second)
				s.wantLeft(tt.want[4])
				time.Sleep(time.Hour)
				s.wantLeft(tt.want[5])
			})
		})
	}
}

// A retry is charged when it is scheduled, even if it is never sent.
func TestBudgetCostsWhenScheduled(t *testing.T) {
	play(t, headway.Policy{}, retry.Config{Budget: retry.Budget{PerSecond: retry.None}}, func(s *scene) {
		ctx, cancel := context.WithTimeout(s.Context(), time.Second)
		defer cancel()
		time.AfterFunc(time.Millisecond, cancel)
		s.script = responses(503)
		if _, err := s.get(ctx); err == nil {
			s.Error("got no error")
		}
		s.wantSends("0@0s")
		s.wantLeft(9_200)
	})
	// A retry that cannot start in time is not scheduled, and costs nothing.
	play(t, headway.Policy{}, retry.Config{MaxElapsed: time.Second, Budget: retry.Budget{PerSecond: retry.None}}, func(s *scene) {
		s.script = func(int, *http.Request) (*http.Response, error) { return response(503, nil, "Retry-After", "2"), nil }
		s.wantStatus(request(s.Context(), "GET", ""), 503)
		s.wantLeft(10_200)
	})
}

// C86: a drained budget recovers through successes. Each host has its own budget.
func TestC86_Budgets(t *testing.T) {
	play(t, headway.Policy{}, retry.Config{MaxRetries: 3, Budget: retry.Budget{PerSecond: retry.None}}, func(s *scene) {
		s.SetJitter(0)
		down := true
		s.script = func(n int, req *http.Request) (*http.Response, error) {
			if down {
				return response(503, nil), nil
			}
			return response(200, nil), nil
		}
		for range 50 {
			s.wantStatus(request(s.Context(), "GET", ""), 503)
		}
		// 50 first attempts, the 10 that the budget begins with, and 0.2 for each.
		if got := s.sends(); got != 70 {
			s.Errorf("a storm of 50 made %d sends, want 70", got)
		}
		s.wantLeft(0)
		other := to(s.Context(), "other.test")
		if got := s.Left(other); got != 10_000_000_000 {
			s.Errorf("another host has %d left, want 10", got)
		}
		down = false
		for range 100 {
			s.wantStatus(request(s.Context(), "GET", ""), 200)
		}
		s.wantLeft(20_000)
		down = true
		before := s.sends()
		s.wantStatus(request(s.Context(), "GET", ""), 503)
		if got := s.sends() - before; got != 4 {
			s.Errorf("sent %d times, want 4: retries work again", got)
		}
	})
}

// Without budget for a retry, the original response is returned.
func TestBudgetRefuses(t *testing.T) {
	play(t, headway.Policy{}, retry.Config{Budget: retry.Budget{Start: retry.None, PerSecond: retry.None}}, func(s *scene) {
		b := newBody("down")
		s.script = func(n int, req *http.Request) (*http.Response, error) {
			if n > 0 {
				return nil, errBroken
			}
			return response(503, b), nil
		}
		resp, err := s.RoundTrip(request(s.Context(), "GET", ""))
		if err != nil || resp.StatusCode != 503 || resp.Body != b || b.closed.Load() != 0 {
			s.Errorf("got %v, %v, want the response as it came", resp, err)
		}
		if _, err := s.get(s.Context()); err != errBroken {
			s.Errorf("got %v, want the error as it came", err)
		}
	})
}

// Many goroutines at once never get more retries than the budget has.
func TestBudgetInParallel(t *testing.T) {
	play(t, headway.Policy{}, retry.Config{Budget: retry.Budget{PerSecond: retry.None, PerRequest: retry.None}}, func(s *scene) {
		s.SetJitter(0)
		s.script = responses(503)
		var all sync.WaitGroup
		for range 1000 {
			all.Go(func() { s.wantStatus(request(s.Context(), "GET", ""), 503) })
		}
		all.Wait()
		if got := s.sends(); got != 1010 {
			s.Errorf("got %d sends, want 1000 and the 10 of the budget", got)
		}
	})
}

// math.Inf(1) means no bound.
func TestBudgetInfinite(t *testing.T) {
	play(t, headway.Policy{}, retry.Config{MaxRetries: 100, Budget: retry.Budget{Start: math.Inf(1), Max: math.Inf(1), PerSuccess: math.Inf(1), PerSecond: math.Inf(1)}}, func(s *scene) {
		s.script = responses(503)
		s.wantStatus(request(s.Context(), "GET", ""), 503)
		if got := s.sends(); got != 101 {
			s.Errorf("got %d sends, want 101", got)
		}
	})
}

// Hosts that differ only in spelling share a budget.
func TestBudgetOfOneHost(t *testing.T) {
	play(t, headway.Policy{}, retry.Config{}, func(s *scene) {
		for _, tt := range []struct{ url, same string }{
			{"https://Example.COM:443", "https://example.com"},
			{"https://example.com.", "https://example.com"},
			{"https://EXAMPLE.com.:443/x", "https://example.com"},
			{"https://bücher.example", "https://ｘn--bcher-kva。example:443"},
			{"https://example.com:", "https://example.com"},
			{"http://example.com:80", "https://example.com"},
			{"http://[::1]:80", "http://[::1]"},
			{"http://example.com.:8080", "http://EXAMPLE.com:8080"},
		} {
			before := s.Hosts()
			for range 2 {
				for _, u := range []string{tt.same, tt.url} {
					req, err := http.NewRequestWithContext(s.Context(), "GET", u, nil)
					if err != nil {
						s.Fatal(err)
					}
					s.wantStatus(req, 200)
				}
			}
			if got := s.Hosts() - before; got > 1 {
				s.Errorf("%s and %s are %d hosts, want one", tt.url, tt.same, got)
			}
		}
		if got := s.Hosts(); got != 4 {
			s.Errorf("got %d hosts, want 4", got)
		}
	})
}

// Memory is bounded, and a host whose budget has less than a new one is not forgotten.
func TestBudgetsAreBounded(t *testing.T) {
	cfg := retry.Config{MaxHosts: 100, Budget: retry.Budget{PerSecond: 0.001}}
	play(t, headway.Policy{}, cfg, func(s *scene) {
		s.SetJitter(0)
		s.script = func(n int, req *http.Request) (*http.Response, error) {
			if req.URL.Host == "down.test" {
				return response(503, nil), nil
			}
			return response(200, nil), nil
		}
		for range 10 {
			s.wantStatus(to(s.Context(), "down.test"), 503)
		}
		drained := s.Left(to(s.Context(), "down.test"))
		if drained >= 1_000_000_000 {
			s.Fatalf("it has %d left, want it drained", drained)
		}
		for i := range 10_000 {
			s.wantStatus(to(s.Context(), fmt.Sprintf("h%d.test", i)), 200)
			if got := s.Hosts(); got > 100 {
				s.Fatalf("%d hosts are remembered, want 100", got)
			}
		}
		if got := s.Left(to(s.Context(), "down.test")); got != drained {
			s.Errorf("the drained host has %d, had %d", got, drained)
		}
	})
	// While no host can be forgotten, new hosts share one budget.
	play(t, headway.Policy{}, cfg, func(s *scene) {
		s.SetJitter(0)
		s.script = responses(503)
		sends := 0
		send := func(host string) int {
			s.wantStatus(to(s.Context(), host), 503)
			sent := s.sends() - sends
			sends = s.sends()
			return sent
		}
		for i := range 100 {
			if got := send(fmt.Sprintf("h%d.test", i)); got != 5 {
				s.Fatalf("host %d: got %d sends, want 5", i, got)
			}
		}
		var got []int
		for i := range 5 {
			got = append(got, send(fmt.Sprintf("new%d.test", i)))
		}
		if want := "[5 5 3 1 2]"; fmt.Sprint(got) != want { // 10, and 0.2 for each
			s.Errorf("those that share one budget were sent %v times, want %s", got, want)
		}
		time.Sleep(10 * time.Hour) // 36 more for each
		if got := send("late.test"); got != 5 || s.Hosts() != 1 {
			s.Errorf("got %d sends and %d hosts, want 5, and the others forgotten", got, s.Hosts())
		}
	})
}
