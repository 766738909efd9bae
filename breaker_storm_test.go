package headway_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/breaker"
	"github.com/headway-go/headway/limiter"
	"pgregory.net/rapid"
)

// A dossier is what a service saw between an opening and the closing after it.
type dossier struct {
	mu     sync.Mutex // guards following fields
	state  breaker.State
	opened time.Time
	until  time.Time // open: nothing before
	begun  time.Time // half-open since
	sent   int       // since then
	freed  int       // probes that ended ignored
	errors []string
}

func (d *dossier) Observe(_ context.Context, e headway.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch now := time.Now(); e.Kind {
	case headway.EventOpen:
		d.state, d.opened, d.until = breaker.Open, now, now.Add(e.RetryAfter)
	case headway.EventHalfOpen:
		if now.Before(d.until) {
			d.errors = append(d.errors, fmt.Sprintf("half-open %v too early", d.until.Sub(now)))
		}
		d.state, d.begun, d.sent, d.freed = breaker.HalfOpen, now, 0, 0
	case headway.EventClosed:
		d.state = breaker.Closed
	}
}

// S70 and S74 over any history: what is sent between an opening and a closing is
// at most what OpenFor, Probes and ProbeTimeout allow, with limits, slots, cancels and
// deadlines in between; and whatever happened, a service that is well is found
// well afterwards.
func TestS74_NoHistorySendsMoreThanProbes(t *testing.T) {
	outer := t
	rapid.Check(t, func(t *rapid.T) {
		c := breaker.Config{
			Failures:     rapid.IntRange(1, 3).Draw(t, "failures"),
			OpenFor:      time.Duration(rapid.IntRange(1, 8).Draw(t, "open for")) * time.Second,
			Probes:       rapid.IntRange(1, 3).Draw(t, "probes"),
			ProbeTimeout: time.Duration(rapid.IntRange(1, 8).Draw(t, "probe timeout")) * time.Second,
		}
		policies := broken(c, limiter.Limit{N: int64(rapid.IntRange(1, 4).Draw(t, "n")), Per: 3 * time.Second})
		policies[0].MaxInFlight = rapid.IntRange(0, 3).Draw(t, "in flight")
		policies[0].AttemptTimeout = time.Duration(rapid.IntRange(0, 6).Draw(t, "timeout")) * time.Second
		if rapid.Bool().Draw(t, "mixed") {
			policies[0].Rules = []headway.Rule{{Name: "some", Methods: []string{"POST"}, Limit: limiter.Limit{N: 1, Per: 2 * time.Second}}}
		}
		policies[0].Shared = rapid.Bool().Draw(t, "shared")
		steps := rapid.IntRange(1, 60).Draw(t, "steps")
		seed := rapid.Uint64().Draw(t, "seed")
		bubble(outer, func() {
			r := rand.New(rand.NewPCG(seed, 1))
			d := new(dossier)
			tr, err := headway.NewTransport(roundTripper(func(req *http.Request) (*http.Response, error) {
				if req.URL.Host != "api.test" {
					return ok(req), nil
				}
				d.mu.Lock()
				if now := time.Now(); d.state == breaker.HalfOpen {
					d.sent++
					if most := c.Probes*(1+int(now.Sub(d.begun)/c.ProbeTimeout)) + d.freed; d.sent > most {
						d.errors = append(d.errors, fmt.Sprintf("%d sent within %v, want at most %d", d.sent, now.Sub(d.begun), most))
					}
				} else if d.state == breaker.Open && now.After(d.opened) { // one that has started at that instant is on its way
					d.errors = append(d.errors, fmt.Sprintf("sent %v before its time", d.until.Sub(now)))
				}
				d.mu.Unlock()
				resp, err := script(req)
				if err != nil || resp.StatusCode == 429 {
					d.mu.Lock()
					d.freed++ // maybe: an older one, or a failure that ends it
					d.mu.Unlock()
				}
				return resp, err
			}), headway.Config{Policies: policies, Observer: d})
			if err != nil {
				t.Fatal(err)
			}
			var all sync.WaitGroup
			for range steps {
				name := []string{"200", "fail", "429", "hang", "fail", "200", "paused"}[r.IntN(7)]
				if name != "hang" {
					name += fmt.Sprintf("/%dms", r.IntN(4000))
				}
				a := ask{method: []string{"GET", "POST"}[r.IntN(2)], call: headway.Call{MaxWait: time.Duration(1+r.IntN(5000)) * time.Millisecond}}
				if r.IntN(4) == 0 {
					a.url = "https://other.test/"
				}
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+r.IntN(20_000))*time.Millisecond)
				a.ctx = ctx
				all.Go(func() {
					defer cancel()
					resp, err := tr.RoundTrip(a.request(name))
					if err == nil {
						resp.Body.Close()
					}
				})
				synctest.Wait()
				time.Sleep(time.Duration(r.IntN(1500)) * time.Millisecond)
			}
			all.Wait()
			for _, e := range d.errors {
				t.Error(e)
			}
			recovers(t, tr, c)
		})
	})
}

// recovers checks that nothing is wedged and no place or slot is lost: after the
// longest opening and a probe timeout, Probes successes close the breaker, and then
// no request waits.
func recovers(t interface{ Errorf(string, ...any) }, tr *headway.Transport, c breaker.Config) {
	time.Sleep(2 * time.Minute) // MaxOpenFor, ProbeTimeout and every limit
	for _, h := range tr.Snapshot() {
		if h.Waiting > 0 || h.InFlight > 0 {
			t.Errorf("%d in line, %d in flight; want nobody", h.Waiting, h.InFlight)
		}
	}
	for range max(1, c.Probes) {
		if _, err := tr.RoundTrip(ask{}.request("200")); err != nil {
			t.Errorf("a place is lost: %v", err)
		}
	}
	b, err := tr.Breaker("api.test")
	if err != nil || b.State() != breaker.Closed {
		t.Errorf("the breaker is %v (%v), want closed", b.State(), err)
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if _, err := tr.RoundTrip(ask{}.request("200")); err != nil {
				t.Errorf("after closing: %v", err)
			}
		})
	}
	all.Wait()
}

// S73 and S77 a hundred thousand times, under -race: open, half-open and closed
// against cancels, panics and runtime.Goexit. Nothing wedges, no slot is lost.
func TestS73_AHundredThousandRounds(t *testing.T) {
	workers, rounds := 8, fewer(100_000)/8
	for _, shared := range []bool{false, true} {
		t.Run(fmt.Sprintf("shared=%t", shared), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := breaker.Config{Failures: 2, OpenFor: time.Microsecond, MaxOpenFor: 10 * time.Microsecond, Probes: 2, ProbeTimeout: 50 * time.Microsecond}
				policies := broken(c, limiter.Limit{N: 100, Per: 100 * time.Microsecond})
				policies[0].Shared = shared
				policies[0].MaxInFlight = 5
				changed := broken(breaker.Config{Failures: 3, OpenFor: 2 * time.Microsecond, MaxOpenFor: 10 * time.Microsecond, ProbeTimeout: 50 * time.Microsecond}, policies[0].Limits...)
				changed[0].Shared = shared
				tr := newTransport(t, roundTripper(func(req *http.Request) (*http.Response, error) {
					return script(req)
				}), headway.Config{Policies: policies})
				handle, err := tr.Breaker("api.test")
				if err != nil {
					t.Fatal(err)
				}
				names := []string{"200", "200/1us", "fail", "fail/2us", "429/1us", "500", "panic", "exit", "hang", "200/3us"}
				var sent, refused atomic.Int64
				step := func(r *rand.Rand) {
					a := ask{call: headway.Call{MaxWait: time.Duration(1 + r.IntN(200_000))}}
					ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+r.IntN(100_000)))
					a.ctx = ctx
					defer cancel()
					switch r.IntN(400) {
					case 0:
						handle.Trip(errReset, 0)
					case 1:
						handle.Reset()
					case 2:
						tr.Snapshot()
					case 3:
						if err := tr.SetPolicies([][]headway.Policy{policies, changed}[r.IntN(2)]); err != nil {
							t.Error(err)
						}
					case 4, 5, 6, 7:
						handle.Fail(errReset, 0)
					case 8:
						tr.Delay(a.request("x"))
					}
					if r.IntN(8) == 0 {
						go cancel()
					}
					if r.IntN(4) == 0 {
						a.url = "https://other.test/"
					}
					var open *headway.OpenError
					var throttled *headway.ThrottledError
					name := names[r.IntN(len(names))]
					if r.IntN(100) == 0 {
						name = "paused/1us"
					}
					resp, err := tr.RoundTrip(a.request(name))
					if (resp == nil) == (err == nil) {
						t.Errorf("got %v and %v", resp, err)
					}
					switch {
					case err == nil:
						resp.Body.Close()
						sent.Add(1)
					case errors.As(err, &open):
						refused.Add(1)
						time.Sleep(open.RetryAfter)
					case errors.As(err, &throttled) && throttled.Reason == limiter.ReasonPause:
						time.Sleep(throttled.RetryAfter)
					}
				}
				var all sync.WaitGroup
				for i := range workers {
					all.Add(1)
					r := rand.New(rand.NewPCG(uint64(i), 2))
					done := 0
					var again func()
					again = func() { // a goroutine that ends is followed by another
						defer func() {
							recover()
							if done++; done < rounds {
								go again()
							} else {
								all.Done()
							}
						}()
						for ; done < rounds; done++ {
							step(r)
						}
					}
					go again()
				}
				all.Wait()
				if err := tr.SetPolicies(policies); err != nil {
					t.Error(err)
				}
				recovers(t, tr, c)
				if s, r := sent.Load(), refused.Load(); s < 2*int64(rounds) || r < 2*int64(rounds) {
					t.Errorf("%d answered, %d refused by the breaker: the rounds were not what they should be", s, r)
				}
			})
		})
	}
}
