package headway_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/breaker"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/retryafter"
)

// A breaker is the policy's and the host's, whatever the key and the spelling.
func TestBreakerIsOfPolicyAndHost(t *testing.T) {
	policies := broken(breaker.Config{Failures: 2})
	policies[0].Rules = []headway.Rule{{Name: "r", Limit: limiter.PerSecond(9), Key: headway.FromCallKey}}
	play(t, policies, func(s *scene) {
		s.base.answer = script
		other := key("a")
		other.url = "https://other.test/"
		s.send("fail", key("a"))
		s.send("fail", other)
		b := key("b")
		b.url = "https://API.test.:443/"
		s.send("fail", b)
		s.wantOpen(s.send("x", key("c")), 0, 5*time.Second, errReset)
		s.wantOK(s.send("y", other))
	})
}

// SetPolicies keeps breakers by the policy's name. Under another Config a breaker
// begins anew, but open if it was not closed.
func TestBreakerFollowsSetPolicies(t *testing.T) {
	var opened []headway.EventKind
	cfg := headway.Config{Policies: broken(breaker.Config{Failures: 2}), Observer: headway.ObserverFunc(func(_ context.Context, e headway.Event) {
		if e.Kind >= headway.EventOpen {
			opened = append(opened, e.Kind)
		}
	})}
	playConfig(t, cfg, func(s *scene) {
		s.base.answer = script
		s.send("fail", ask{})
		s.set(broken(breaker.Config{Failures: 2}, limiter.PerSecond(100)))
		s.send("fail", ask{}) // the first still counts
		s.wantOpen(s.send("A", ask{}), 0, 5*time.Second, errReset)
		s.until(2 * time.Second)
		s.set(broken(breaker.Config{Failures: 2}))
		s.wantOpen(s.send("B", ask{}), 0, 3*time.Second, errReset)

		s.set(broken(breaker.Config{Failures: 1, OpenFor: time.Second}))
		s.wantOpen(s.send("C", ask{}), 0, 3*time.Second, errReset)
		s.until(5 * time.Second)
		s.wantOK(s.send("D", ask{}))
		s.send("fail", ask{}) // under the new Config one is enough, for twice a second
		s.wantOpen(s.send("E", ask{}), 0, 2*time.Second, errReset)
		if got, want := fmt.Sprint(opened), "[open half_open closed open]"; got != want {
			t.Errorf("told %s, want %s", got, want)
		}

		// A late result of the old breaker's: it is no longer asked.
		s.breaker().Reset()
		old := s.send("fail/1s", ask{})
		s.set(broken(breaker.Config{Failures: 1, OpenFor: 2 * time.Second}))
		s.until(6 * time.Second)
		if old.err != errReset {
			t.Errorf("got %v", old.err)
		}
		s.wantState(breaker.Closed)
	})
}

// When the policy has no breaker any more no request is held up by one, and those that
// were in line start.
func TestBreakerTakenAway(t *testing.T) {
	play(t, broken(breaker.Config{}), func(s *scene) {
		s.base.answer = script
		handle := s.breaker()
		s.closeByProbes(1)
		a := s.send("hang", ask{})
		b, c := s.send("B", ask{}), s.send("C", ask{})
		s.until(6 * time.Second)
		plain := []headway.Policy{{Name: "p", Hosts: []string{"*"}}}
		s.set(plain)
		s.wantOK(b, c)
		if _, err := s.Breaker("api.test"); err == nil {
			t.Error("a breaker of a policy without")
		}
		handle.Trip(errReset, 0)
		if got := handle.State(); got != breaker.Closed {
			t.Errorf("the handle says %v, want closed", got)
		}
		a.cancel()
		s.set(broken(breaker.Config{}))
		handle.Trip(errReset, 0)
		s.wantOpen(s.send("D", ask{}), 0, 5*time.Second, errReset)
		s.set(plain)
		s.wantOK(s.send("E", ask{}))
		s.wantStarts("probe0@5s hang@5s B@6s C@6s E@6s")
	})
}

// A request in line to be a probe is refused when a new Config opens anew.
func TestBreakerChangedUnderAProbeToBe(t *testing.T) {
	limit := limiter.Limit{N: 1, Per: time.Minute}
	play(t, broken(breaker.Config{}, limit), func(s *scene) {
		s.base.answer = script
		s.send("A", ask{})
		s.breaker().Trip(errReset, 0)
		s.until(5 * time.Second)
		b := s.send("B", ask{})
		s.until(6 * time.Second)
		s.set(broken(breaker.Config{OpenFor: 7 * time.Second}, limit))
		s.wantOpen(b, time.Second, 7*time.Second, errReset)
	})
}

func TestBreakerHandleNamesWhatDoesNotExist(t *testing.T) {
	tr := newTransport(t, nil, headway.Config{Policies: []headway.Policy{
		{Hosts: []string{"none.test"}}, {Hosts: []string{"has.test"}, Breaker: &breaker.Config{}},
	}})
	for host, want := range map[string]string{
		"has.test": "", "has.test:80": "", "has.test:443": "",
		"other.test": "no policy has the host", "none.test": "set its Breaker",
	} {
		if _, err := tr.Breaker(host); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", host, err, want)
		}
	}
}

// A host is remembered while its breaker is not closed and clean, and forgotten
// afterwards.
func TestBreakerOfAForgottenHostIsClean(t *testing.T) {
	for _, shared := range []bool{false, true} {
		t.Run(fmt.Sprintf("shared=%t", shared), func(t *testing.T) {
			var overflows int
			policies := broken(breaker.Config{Failures: 2})
			policies[0].Shared = shared
			maxHosts := 2
			if shared {
				maxHosts++ // the policy's own entry
			}
			cfg := headway.Config{MaxHosts: maxHosts, Policies: policies, Observer: headway.ObserverFunc(func(_ context.Context, e headway.Event) {
				if e.Kind == headway.EventOverflow {
					overflows++
				}
			})}
			playConfig(t, cfg, func(s *scene) {
				s.base.answer = script
				visit := func(n int) {
					for i := range n {
						s.wantOK(s.send("x", ask{url: fmt.Sprintf("https://h%d.test/", i)}))
					}
				}
				s.send("fail", ask{}) // one failure, that counts for good
				visit(50)
				s.send("fail", ask{})
				s.wantState(breaker.Open)
				visit(50)
				s.wantOpen(s.send("x", ask{}), 0, 5*time.Second, errReset)
				if overflows != 0 {
					t.Errorf("%d overflows, though every other host can be forgotten", overflows)
				}

				// Both places are held by what must be remembered: the rest share one.
				s.send("fail", ask{url: "https://h1.test/"})
				s.send("fail", ask{url: "https://h2.test/"})
				s.send("fail", ask{url: "https://h3.test/"})
				if e, isOpen := s.send("x", ask{url: "https://h4.test/"}).err.(*headway.OpenError); !isOpen || e.Host != "h4.test" || overflows != 1 {
					t.Errorf("got %v, %d overflows; want the breaker that new hosts share open", e, overflows)
				}
				s.until(5 * time.Second)
				for _, b := range []string{"api", "h1", "h4"} {
					s.wantOK(s.send("x", ask{url: "https://" + b + ".test/"}))
				}
				// Closed and with nothing to grow from: as new.
				s.until(10 * time.Minute)
				visit(50)
				var hosts []string
				for _, h := range s.Snapshot() {
					for _, b := range h.Breakers {
						hosts = append(hosts, b.Host)
					}
				}
				if len(hosts) > 2 || overflows != 1 {
					t.Errorf("breakers of %q are remembered, %d overflows; want 2 at most, and no more overflows", hosts, overflows)
				}
			})
		})
	}
}

// A failure of a request whose host was forgotten meanwhile is not lost. (Who
// listens forgets no host with requests in flight, but maybe its gate.)
func TestBreakerReceivesALateFailure(t *testing.T) {
	for _, shared := range []bool{false, true} {
		policies := broken(breaker.Config{Failures: 1})
		policies[0].Shared = shared
		maxHosts := 1
		if !shared {
			policies[0].Server.Dialects = []retryafter.Dialect{retryafter.None}
		} else {
			maxHosts++
		}
		playConfig(t, headway.Config{MaxHosts: maxHosts, Policies: policies}, func(s *scene) {
			s.base.answer = script
			late := s.send("fail/2s", ask{})
			s.until(time.Second)
			for i := range 9 {
				s.wantOK(s.send("x", ask{url: fmt.Sprintf("https://h%d.test/", i)}))
			}
			if h := s.Snapshot(); h[len(h)-1].Breakers[0].Host == "api.test" {
				t.Fatalf("shared=%t: the host is remembered: %+v", shared, h)
			}
			s.until(2 * time.Second)
			if late.err != errReset {
				t.Errorf("got %v", late.err)
			}
			s.wantOpen(s.send("y", ask{}), 0, 5*time.Second, errReset)
		})
	}
}

// An observer that panics at a late failure costs no body: the caller cannot close it.
// The breaker that is forgotten opens first, and then the one that follows it.
func TestObserverPanicsAtALateFailure(t *testing.T) {
	policies := broken(breaker.Config{Failures: 1})
	policies[0].Server.Dialects = []retryafter.Dialect{retryafter.None}
	opened := 0
	observer := headway.ObserverFunc(func(_ context.Context, e headway.Event) {
		if e.Kind == headway.EventOpen {
			if opened++; opened == 2 {
				panic("observer")
			}
		}
	})
	playConfig(t, headway.Config{MaxHosts: 1, Policies: policies, Observer: observer}, func(s *scene) {
		body := newBody("x")
		s.base.answer = func(req *http.Request) (*http.Response, error) {
			resp := ok(req)
			if req.Header.Get("Name") == "late" {
				time.Sleep(2 * time.Second)
				resp.StatusCode, resp.Body = 500, body
			}
			return resp, nil
		}
		var panicked any
		s.all.Go(func() {
			defer func() { panicked = recover() }()
			s.RoundTrip(ask{}.request("late"))
		})
		s.until(time.Second)
		for i := range 9 {
			s.wantOK(s.send("x", ask{url: fmt.Sprintf("https://h%d.test/", i)}))
		}
		s.all.Wait()
		if panicked == nil || body.closed.Load() != 1 {
			t.Errorf("panicked with %v, and the body was closed %d times, want once", panicked, body.closed.Load())
		}
	})
}

// Many keys and few places: a request finds its gate and budgets all the same.
func TestBreakerInATableOfOne(t *testing.T) {
	policies := broken(breaker.Config{})
	policies[0].Shared = true
	for i := range 3 {
		policies[0].Rules = append(policies[0].Rules, headway.Rule{Name: fmt.Sprint(i), Limit: limiter.PerSecond(1e6), Key: headway.FromCallKey})
	}
	for max := 1; max < 6; max++ {
		playConfig(t, headway.Config{MaxHosts: max, Policies: policies}, func(s *scene) {
			for i := range 20 {
				a := key(fmt.Sprint(i))
				a.url = fmt.Sprintf("https://h%d.test/", i)
				s.wantOK(s.send("x", a))
				s.until(time.Duration(i) * time.Second)
			}
		})
	}
}

// RefuseWithResponse makes a 503 of an open breaker, in the form of its 429.
func TestRefusalResponseOfAnOpenBreaker(t *testing.T) {
	policies := broken(breaker.Config{OpenFor: 1500 * time.Millisecond})
	policies[0].Refusal = headway.RefuseWithResponse
	play(t, policies, func(s *scene) {
		s.breaker().Trip(errReset, 0)
		p := s.send("A", ask{body: newBody("x")})
		if p.err != nil {
			t.Fatal(p.err)
		}
		text, err := io.ReadAll(p.resp.Body)
		want := `{"error":{"type":"unavailable_error","code":"unavailable","message":"headway: policy \"p\" refused a request to api.test: its breaker is open, retry in 1.5s: connection reset"},"retry_after":2}`
		if string(text) != want || err != nil {
			t.Errorf("got %s, %v\nwant %s", text, err, want)
		}
		if p.resp.Status != "503 Service Unavailable" || p.resp.StatusCode != 503 || p.resp.Header.Get("Retry-After") != "2" || p.resp.Header.Get("Headway-Refused") != "open" {
			t.Errorf("got %s with %v", p.resp.Status, p.resp.Header)
		}
	})
}

func TestValidateBreaker(t *testing.T) {
	_, err := headway.NewTransport(nil, headway.Config{Policies: []headway.Policy{{
		Hosts: []string{"a.test"}, AttemptTimeout: -1, Breaker: &breaker.Config{Failures: -1, Probes: 2000},
	}}})
	want := `headway: Policies[0] "a.test": AttemptTimeout = -1ns: want a positive duration, or zero for none
headway: Policies[0] "a.test": Breaker: breaker: Failures is -1: use 1 to 65536, or 0 for 5 in a row
headway: Policies[0] "a.test": Breaker: breaker: Probes is 2000: use 1 to 1000, or 0 for 1`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

// A refusal by a breaker keeps RoundTripper's contract, and matches nothing else.
func TestOpenErrorIsBare(t *testing.T) {
	play(t, broken(breaker.Config{}), func(s *scene) {
		s.breaker().Trip(nil, 0)
		b := newBody("x")
		p := s.send("A", ask{method: http.MethodPost, body: b})
		s.wantOpen(p, 0, 5*time.Second, nil)
		if b.closed.Load() == 0 {
			t.Error("the body was not closed")
		}
		if errors.Is(p.err, headway.ErrThrottled) || errors.Unwrap(p.err) != nil {
			t.Errorf("%v is throttled, or has a cause", p.err)
		}
	})
}
