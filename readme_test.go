package headway_test

import (
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
)

// readmeStarts sends n equal requests at once to a base that answers after
// latency, and returns when they started and why others did not. It runs in a
// bubble.
func readmeStarts(t *testing.T, p headway.Policy, n int, latency time.Duration) (starts []time.Duration, refusals []error) {
	t.Helper()
	begin := time.Now()
	var mu sync.Mutex // guards the results
	tr, err := headway.NewTransport(readmeBase(func(req *http.Request) (*http.Response, error) {
		mu.Lock()
		starts = append(starts, time.Since(begin))
		mu.Unlock()
		time.Sleep(latency)
		return &http.Response{StatusCode: http.StatusOK, Header: make(http.Header), Body: http.NoBody, Request: req}, nil
	}), headway.Config{Policies: []headway.Policy{p}})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			req, err := http.NewRequest("GET", "https://api.example.com/v1/search?q=go", nil)
			if err != nil {
				t.Error(err)
				return
			}
			req.Header.Set("X-Tenant", "7")
			resp, err := tr.RoundTrip(req)
			if err != nil {
				mu.Lock()
				refusals = append(refusals, err)
				mu.Unlock()
				return
			}
			resp.Body.Close()
		})
	}
	all.Wait()
	return starts, refusals
}

type readmeBase func(*http.Request) (*http.Response, error)

func (f readmeBase) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// TestReadmeStarts checks the table of starts in README.md.
func TestReadmeStarts(t *testing.T) {
	for name, tt := range map[string]struct {
		limit limiter.Limit
		want  []time.Duration // in ms
	}{
		"Window": {limiter.PerSecond(4), []time.Duration{0, 0, 0, 0, 1000, 1000, 1000, 1000, 2000, 2000}},
		"Strict": {
			limiter.Limit{N: 4, Per: time.Second, Strict: true},
			[]time.Duration{0, 0, 0, 0, 1100, 1100, 1100, 1100, 2200, 2200},
		},
		"Bucket": {
			limiter.Limit{N: 4, Per: time.Second, Law: limiter.Bucket},
			[]time.Duration{0, 0, 0, 0, 250, 500, 750, 1000, 1250, 1500},
		},
		"Spaced": {
			limiter.Limit{N: 4, Per: time.Second, Law: limiter.Spaced},
			[]time.Duration{0, 250, 500, 750, 1000, 1250, 1500, 1750, 2000, 2250},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := headway.Policy{Hosts: []string{"*"}, Limits: []limiter.Limit{tt.limit}}
				got, refusals := readmeStarts(t, p, len(tt.want), 100*time.Millisecond)
				for i := range tt.want {
					tt.want[i] *= time.Millisecond
				}
				if !slices.Equal(got, tt.want) || refusals != nil {
					t.Errorf("got starts at %v, want %v; refusals %v, want none", got, tt.want, refusals)
				}
			})
		})
	}
}

// TestReadmePolicy checks what README.md foretells of its policy: the tenth
// search starts at 4.5 s, the eleventh at 5 s, the twelfth is refused with 5.5 s.
func TestReadmePolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := headway.Policy{
			Hosts:       []string{"api.example.com"},
			MaxInFlight: 8,
			MaxWait:     5 * time.Second,
			Rules: []headway.Rule{
				{Name: "tenant", Limit: limiter.PerMinute(100), Key: headway.ByHeader("X-Tenant")},
				{Name: "search", Methods: []string{"GET"}, Path: "/v1/search", Limit: limiter.Every(500 * time.Millisecond)},
			},
		}
		starts, refusals := readmeStarts(t, p, 12, 3900*time.Millisecond)
		if len(starts) != 11 || starts[9] != 4500*time.Millisecond || starts[10] != 5*time.Second {
			t.Errorf("got starts at %v, want eleven, the tenth at 4.5 s and the eleventh at 5 s", starts)
		}
		var refused *headway.ThrottledError
		if len(refusals) != 1 || !errors.As(refusals[0], &refused) {
			t.Fatalf("got refusals %v, want one *ThrottledError", refusals)
		}
		if refused.Rule != "search" || refused.RetryAfter != 5500*time.Millisecond {
			t.Errorf("refused by %q with %v, want \"search\" with 5.5s", refused.Rule, refused.RetryAfter)
		}
	})
}
