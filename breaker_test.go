package headway_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/breaker"
	"github.com/headway-go/headway/limiter"
)

var errReset = errors.New("connection reset")

// broken is one policy for all hosts with a breaker, under limits.
func broken(c breaker.Config, list ...limiter.Limit) []headway.Policy {
	return []headway.Policy{{Name: "p", Hosts: []string{"*"}, Limits: list, Breaker: &c}}
}

// script makes the base answer by the request's name: "fail" resets, "429" and
// other numbers are a status, "hang" waits for the context's end, "panic" and
// "exit" do so, "cut" has a body that fails. Any other is 200. "NAME/2s" takes 2 s.
// A 429 asks for no pause; "paused" is one that asks for 1 ms.
func script(req *http.Request) (*http.Response, error) {
	name, after, _ := strings.Cut(req.Header.Get("Name"), "/")
	if after != "" {
		d, err := time.ParseDuration(after)
		if err != nil {
			panic(err)
		}
		time.Sleep(d)
	}
	resp := ok(req)
	switch name {
	case "fail":
		return nil, errReset
	case "hang":
		<-req.Context().Done()
		return nil, req.Context().Err()
	case "panic":
		panic("panic in the base")
	case "exit":
		runtime.Goexit()
	case "cut":
		resp.Body = io.NopCloser(io.MultiReader(strings.NewReader("x"), failing{}))
	case "paused":
		resp.StatusCode = 429
		resp.Header.Set("Retry-After-Ms", "1")
	default:
		fmt.Sscanf(name, "%3d", &resp.StatusCode)
		if resp.StatusCode == 429 {
			resp.Header.Set("Retry-After", "0")
		}
	}
	return resp, nil
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errReset }

// breaker returns the handle of api.test.
func (s *scene) breaker() *headway.HostBreaker {
	s.Helper()
	b, err := s.Breaker("api.test")
	if err != nil {
		s.Fatal(err)
	}
	return b
}

func (s *scene) wantState(want breaker.State) {
	s.Helper()
	if got := s.breaker().State(); got != want {
		s.Errorf("at %v: %v, want %v", time.Since(s.base.epoch), got, want)
	}
}

// wantOpen checks that a request was refused by an open breaker, so long after
// it was asked.
func (s *scene) wantOpen(p *trip, after, retryAfter time.Duration, cause error) {
	s.Helper()
	if !p.done.Load() {
		s.Errorf("it waits, want it refused")
		return
	}
	e, isOpen := p.err.(*headway.OpenError)
	if !isOpen || e.RetryAfter != retryAfter || p.after != after {
		s.Errorf("got %#v after %v, want an OpenError after %v: in %v", p.err, p.after, after, retryAfter)
		return
	}
	if !errors.Is(p.err, headway.ErrOpen) || cause != nil && !errors.Is(p.err, cause) || e.StatusCode() != 503 || e.Policy != "p" || e.Host != "api.test" {
		s.Errorf("got %#v, want it ErrOpen, by %v", p.err, cause)
	}
}

// wantOK checks that a request has ended well.
func (s *scene) wantOK(trips ...*trip) {
	s.Helper()
	for _, p := range trips {
		if !p.done.Load() || p.err != nil {
			s.Errorf("done %t, error %v; want it answered", p.done.Load(), p.err)
		}
	}
}

func TestS70_TheLineIsEmptyTheMomentItOpens(t *testing.T) {
	const limit = 10 * time.Second
	play(t, broken(breaker.Config{Failures: 1}, limiter.Limit{N: 1, Per: limit}), func(s *scene) {
		s.base.answer = script
		s.send("fail/1s", ask{})
		b, c := s.send("B", ask{}), s.send("C", ask{call: headway.Call{MaxWait: time.Minute}})
		s.until(time.Second)
		s.wantOpen(b, time.Second, 5*time.Second, errReset)
		s.wantOpen(c, time.Second, 5*time.Second, errReset)
		if h := s.Snapshot()[0]; h.Waiting != 0 || len(h.Breakers) != 1 ||
			h.Breakers[0] != (headway.BreakerStatus{Host: "api.test", State: breaker.Open, RetryAfter: 5 * time.Second, Err: errReset}) {
			t.Errorf("got %+v, want an open breaker and nobody in line", h)
		}

		s.until(2 * time.Second)
		s.wantOpen(s.send("D", ask{}), 0, 4*time.Second, errReset)
		if d, err := s.Delay(ask{}.request("x")); d != 8*time.Second || err != nil {
			t.Errorf("Delay is %v, %v; want 8s: the limit's, which is longer", d, err)
		}

		// Nobody took a unit: the next start is that of the first plus a period.
		s.until(6 * time.Second)
		e := s.send("E", ask{})
		s.wantOpen(s.send("F", ask{}), 0, 4*time.Second+30*time.Second, errReset)
		s.wantStarts("fail/1s@0s E@10s")
		s.wantOK(e)
		s.wantState(breaker.Closed)
	})
}

func TestS70_TrippedByHand(t *testing.T) {
	play(t, broken(breaker.Config{OpenFor: 2 * time.Second}, limiter.PerSecond(1)), func(s *scene) {
		s.base.answer = script
		s.sendAll(ask{}, "A")
		b := s.send("B", ask{})
		s.breaker().Trip(errReset, 0)
		synctest.Wait()
		s.wantOpen(b, 0, 2*time.Second, errReset)
		s.until(time.Second)
		s.breaker().Trip(nil, 5*time.Second)
		s.wantOpen(s.send("C", ask{}), 0, 5*time.Second, nil)
		s.breaker().Reset()
		s.wantState(breaker.Closed)
		d := s.send("D", ask{})
		s.breaker().Fail(errReset, 0)
		for range 3 {
			s.breaker().Fail(errReset, 0)
		}
		s.wantState(breaker.Closed)
		s.breaker().Fail(errReset, time.Minute)
		s.wantState(breaker.Open)
		s.wantOpen(s.send("E", ask{}), 0, time.Minute, errReset)
		s.wantStarts("A@0s D@1s")
		s.wantOK(d)
	})
}

// The line of a Shared policy is one, its breakers are not.
func TestS70_SharedPolicy(t *testing.T) {
	policies := broken(breaker.Config{Failures: 1}, limiter.Limit{N: 1, Per: 10 * time.Second})
	policies[0].Shared = true
	play(t, policies, func(s *scene) {
		s.base.answer = script
		other := ask{url: "https://other.test/"}
		s.send("fail/1s", ask{})
		b, c, d := s.send("B", ask{}), s.send("C", other), s.send("D", ask{})
		e := s.send("E", other)
		s.until(time.Second)
		s.wantOpen(b, time.Second, 5*time.Second, errReset)
		s.wantOpen(d, time.Second, 5*time.Second, errReset)
		s.wantStarts("fail/1s@0s C@10s E@20s")
		s.wantOK(c, e)
		var states []string
		for _, b := range s.Snapshot()[0].Breakers {
			states = append(states, b.Host+" "+b.State.String())
		}
		if got := fmt.Sprint(states); got != "[api.test open other.test closed]" {
			t.Errorf("got %s, want one breaker for each host", got)
		}
	})
}

func TestS71_ThrottlingCountsForNothing(t *testing.T) {
	play(t, broken(breaker.Config{Failures: 5, Of: 10}), func(s *scene) {
		s.base.answer = script
		for range 100 {
			s.send("429", ask{})
		}
		s.wantState(breaker.Closed)
		for range 5 {
			s.send("200", ask{})
		}
		for i := range 5 {
			for range 10 {
				s.send("429", ask{})
			}
			s.wantState(breaker.Closed)
			s.send(fmt.Sprint(500+i*2), ask{}) // 500, 502, 504, 506, 508
		}
		s.wantState(breaker.Open)
	})
}

func TestS72_WhatTheServiceDidNotDo(t *testing.T) {
	policies := broken(breaker.Config{Failures: 1}, limiter.Limit{N: 3, Per: time.Minute})
	policies[0].MaxWait = headway.NoWait
	play(t, policies, func(s *scene) {
		s.base.answer = script
		canceled := s.send("hang", ask{})
		canceled.cancel()
		deadline, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		s.send("hang", ask{ctx: deadline})
		s.until(time.Second)
		s.wantState(breaker.Closed)

		s.base.answer = func(*http.Request) (*http.Response, error) {
			return nil, context.DeadlineExceeded // the base's own timeout: nobody else's is over
		}
		s.send("A", ask{})
		s.wantState(breaker.Open)
		s.breaker().Reset()
		s.wantRefused(s.send("B", ask{}), limiter.ReasonLimit, time.Minute-time.Second)
		s.wantState(breaker.Closed)
	})
}

// TestS73: whatever way a probe ends, the next call may probe, or the breaker has
// closed or opened as it should.
func TestS73_AProbeGivesItsPlaceBackHoweverItEnds(t *testing.T) {
	for _, end := range []struct {
		name string
		want breaker.State
	}{
		{"404", breaker.Closed},
		{"cut", breaker.Closed}, // C72
		{"429", breaker.HalfOpen},
		{"fail", breaker.Open},
		{"500", breaker.Open},
		{"panic", breaker.HalfOpen},
		{"exit", breaker.HalfOpen},
		{"cancel", breaker.HalfOpen},
		{"never", breaker.HalfOpen},
		{"classify", breaker.HalfOpen},
		{"settle", breaker.Closed},
	} {
		for _, inFlight := range []int{0, 1} {
			t.Run(fmt.Sprintf("%s/in flight=%d", end.name, inFlight), func(t *testing.T) {
				policies := broken(breaker.Config{})
				p := &policies[0]
				p.MaxInFlight = inFlight
				if end.name == "classify" {
					p.Classify = func(req *http.Request, _ *http.Response, _ error) breaker.Outcome {
						if req.Header.Get("Name") == "classify" {
							panic("panic in Classify")
						}
						return breaker.Success
					}
				}
				if end.name == "settle" {
					p.Rules = []headway.Rule{{Name: "r", Limit: limiter.PerSecond(5), Settle: func(resp *http.Response) (int64, bool) {
						if resp.Request.Header.Get("Name") == "settle" {
							panic("panic in Settle")
						}
						return 0, false
					}}}
				}
				play(t, policies, func(s *scene) {
					s.base.answer = script
					s.breaker().Trip(errReset, 0)
					s.until(5 * time.Second)
					probe := ask{body: newBody("x")}
					switch end.name {
					case "panic", "exit", "classify", "settle":
						s.all.Go(func() {
							defer func() { recover() }()
							s.RoundTrip(probe.request(end.name))
						})
						synctest.Wait()
					case "cancel":
						p := s.send("hang", probe)
						s.wantOpen(s.send("B", ask{}), 0, 30*time.Second, errReset)
						p.cancel()
						synctest.Wait()
					case "never":
						p := s.send("hang", probe)
						defer p.cancel()
						s.until(35*time.Second - 1)
						s.wantOpen(s.send("B", ask{}), 0, 1, errReset)
						if inFlight > 0 { // the slot is no probe's place
							p.cancel()
						}
						s.until(35 * time.Second)
					default:
						p := s.send(end.name, probe)
						if p.resp != nil {
							io.Copy(io.Discard, p.resp.Body)
							p.resp.Body.Close()
						}
					}
					s.wantState(end.want)
					if end.want == breaker.Open {
						s.wantOpen(s.send("B", ask{}), 0, 10*time.Second, nil)
						s.until(15 * time.Second)
					}
					s.wantOK(s.send("next", ask{}))
					s.wantState(breaker.Closed)
				})
			})
		}
	}
}

func TestS74_AHangingServerGetsProbesPerProbeTimeout(t *testing.T) {
	play(t, broken(breaker.Config{Probes: 3}), func(s *scene) {
		s.base.answer = script
		s.breaker().Trip(errReset, 0)
		s.until(5 * time.Second)
		var trips []*trip
		for range 3 {
			for range 1000 {
				trips = append(trips, s.send("hang", ask{}))
			}
			s.until(time.Since(s.base.epoch) + 30*time.Second)
		}
		s.wantStartsSoFar("hang@5s hang@5s hang@5s hang@35s hang@35s hang@35s hang@1m5s hang@1m5s hang@1m5s")
		refused := 0
		for _, p := range trips {
			if p.done.Load() {
				refused++
				s.wantOpen(p, 0, 30*time.Second, errReset)
			} else {
				p.cancel()
			}
		}
		if refused != 3000-9 {
			t.Errorf("%d refused, want %d", refused, 3000-9)
		}
	})
}

func TestS75_ResultsOfAnOlderStateCountForNothing(t *testing.T) {
	play(t, broken(breaker.Config{Failures: 2}), func(s *scene) {
		s.base.answer = script
		for i := range 10 {
			s.send([]string{"old/7s", "fail/7s"}[i%2], ask{})
		}
		s.breaker().Trip(errReset, 0)
		s.until(6 * time.Second)
		probe := s.send("probe/2s", ask{})
		s.until(7 * time.Second) // ten results come
		s.wantState(breaker.HalfOpen)
		s.until(8 * time.Second)
		s.wantOK(probe)
		s.wantState(breaker.Closed)
	})
}

func TestS76_FiveInARowHoweverSlow(t *testing.T) {
	play(t, broken(breaker.Config{}), func(s *scene) {
		s.base.answer = script
		for i := range 5 {
			s.wantState(breaker.Closed)
			s.send("fail/19s", ask{})
			s.until(time.Duration(i+1) * 19 * time.Second)
		}
		s.wantState(breaker.Open)
	})
}

// S77: an Observer that reads the state receives every change in order, with
// the line empty already; one that panics wedges nothing.
func TestS77_StatesAreReportedInOrder(t *testing.T) {
	var tr *headway.Transport
	var log []string
	cfg := headway.Config{
		Policies: broken(breaker.Config{Failures: 1}, limiter.PerSecond(1)),
		Observer: headway.ObserverFunc(func(_ context.Context, e headway.Event) {
			switch e.Kind {
			case headway.EventOpen, headway.EventHalfOpen, headway.EventClosed, headway.EventOpenRefused:
				h := tr.Snapshot()[0]
				log = append(log, fmt.Sprintf("%v of %s/%s, %v, %v: %v, %d in line", e.Kind, e.Policy, e.Host, e.RetryAfter, e.Err, h.Breakers[0].State, h.Waiting))
			}
			if e.Kind == headway.EventOpen {
				panic("panic in the observer")
			}
		}),
	}
	playConfig(t, cfg, func(s *scene) {
		tr = s.Transport
		s.base.answer = script
		s.all.Go(func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic did not come back")
				}
			}()
			s.RoundTrip(ask{}.request("fail/500ms"))
		})
		synctest.Wait()
		b := s.send("B", ask{})
		s.until(500 * time.Millisecond)
		s.wantOpen(b, 500*time.Millisecond, 5*time.Second, errReset)
		s.until(5500 * time.Millisecond)
		s.wantOK(s.send("C", ask{}))
		s.wantState(breaker.Closed)
		want := []string{
			"open of p/api.test, 5s, connection reset: open, 0 in line",
			"open_refused of p/api.test, 5s, connection reset: open, 0 in line",
			"half_open of p/api.test, 0s, <nil>: half-open, 0 in line",
			"closed of p/api.test, 0s, <nil>: closed, 0 in line",
		}
		if fmt.Sprint(log) != fmt.Sprint(want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(log, "\n"), strings.Join(want, "\n"))
		}
	})
}

// S78: a caller that retries gets at both: the failure, which has counted, and
// the refusal of its retry.
func TestS78_TheFailureBehindTheRefusal(t *testing.T) {
	play(t, broken(breaker.Config{Failures: 1}), func(s *scene) {
		s.base.answer = script
		first := s.send("fail", ask{})
		second := s.send("fail", ask{})
		s.wantOpen(second, 0, 5*time.Second, errReset)
		both := fmt.Errorf("%w, after %w", second.err, first.err)
		if !errors.Is(both, headway.ErrOpen) || !errors.Is(both, errReset) {
			t.Errorf("%v hides one of its two errors", both)
		}
		s.breaker().Reset()
		s.send("503", ask{})
		var status interface{ StatusCode() int }
		third := s.send("x", ask{})
		if e := third.err.(*headway.OpenError); !errors.As(e.Err, &status) || status.StatusCode() != 503 {
			t.Errorf("got %v, want the status behind it", e.Err)
		}
		s.wantStarts("fail@0s 503@0s")
	})
}

// S15: a probe takes its place, its units and its slot together or none of them.
func TestS15_HalfOpenNeedsAllAtOnce(t *testing.T) {
	policies := broken(breaker.Config{}, limiter.Limit{N: 2, Per: 20 * time.Second})
	policies[0].MaxInFlight = 1
	play(t, policies, func(s *scene) {
		s.base.answer = script
		old := s.send("hang", ask{}) // holds the only slot
		s.breaker().Trip(errReset, 0)
		s.until(5 * time.Second)

		// Room in the law and the breaker, but no slot.
		b := s.send("B", ask{})
		s.wantState(breaker.Open) // no place is taken
		s.wantOpen(s.send("C", ask{}), 0, 30*time.Second, errReset)
		old.cancel()
		synctest.Wait()
		s.wantOK(b)
		s.wantState(breaker.Closed)

		// A place and a slot, but no units before 20 s.
		s.breaker().Reset()
		s.breaker().Trip(errReset, 0)
		s.until(10 * time.Second)
		d := s.send("D/1s", ask{})
		s.until(20*time.Second - 1)
		s.wantState(breaker.Open)
		if h := s.Snapshot()[0]; h.Waiting != 1 || h.InFlight != 0 {
			t.Errorf("%d in line, %d slots taken; want D in line, without a slot", h.Waiting, h.InFlight)
		}
		s.until(20 * time.Second)
		s.wantState(breaker.HalfOpen)
		s.wantOpen(s.send("E", ask{}), 0, 30*time.Second, errReset)
		s.wantStarts("hang@0s B@5s D/1s@20s")
		s.wantOK(d)
		s.wantState(breaker.Closed)
	})
}

// A candidate for a probe stands in line for its units without the place; when it
// leaves, the next to come is one.
func TestS15_AProbeToBeHoldsNoPlace(t *testing.T) {
	play(t, broken(breaker.Config{OpenFor: time.Second}, limiter.Limit{N: 1, Per: 10 * time.Second}), func(s *scene) {
		s.base.answer = script
		s.send("A", ask{})
		s.breaker().Trip(errReset, 0)
		s.until(2 * time.Second)
		b := s.send("B", ask{})
		s.wantState(breaker.Open)
		s.wantOpen(s.send("C", ask{}), 0, 38*time.Second, errReset)
		b.cancel()
		synctest.Wait()
		d := s.send("D", ask{call: headway.Call{MaxWait: 8 * time.Second}})
		s.until(9 * time.Second)
		s.wantOpen(s.send("F", ask{}), 0, 31*time.Second, errReset)
		s.wantStarts("A@0s D@10s")
		s.wantOK(d)
		s.wantState(breaker.Closed)
	})
}
