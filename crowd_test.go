package headway_test

import (
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
)

// perTenant is one start a second for each tenant, and so many may wait.
func perTenant(waiting int) []headway.Policy {
	p := rules(keyed(limiter.Every(time.Second)))
	p[0].MaxWaiting = waiting
	return p
}

// wantGone checks that a request that waited was refused at this moment, since the
// line is full, with the true time.
func (s *scene) wantGone(p *trip, name string, after time.Duration) {
	s.Helper()
	synctest.Wait()
	if !p.done.Load() {
		s.Errorf("%s waits, want it refused", name)
		return
	}
	e, ok := p.err.(*headway.ThrottledError)
	if !ok || e.Reason != limiter.ReasonLineFull || e.RetryAfter != after || e.AtLeast || e.Timeout() {
		s.Errorf("%s: got %#v, want a refusal: the line is full, %v", name, p.err, after)
	}
}

// In a full line the newest request of the tenant with the most waiting makes way for
// those of others, until a tenant would have the most itself.
// (wavelens/gradient 111: a thousand requests of one tenant left no place for another's.)
func TestFullLineMakesWay(t *testing.T) {
	play(t, perTenant(10), func(s *scene) {
		busy := s.sendAll(key("a"), "a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8", "a9", "a10")
		s.wantGone(s.send("a11", key("a")), "a11", 11*time.Second)
		s.send("b0", key("b")) // it need not wait
		for i := 1; i <= 5; i++ {
			s.send("b"+strconv.Itoa(i), key("b"))
			s.wantGone(busy[11-i], "a"+strconv.Itoa(11-i), time.Duration(11-i)*time.Second)
		}
		s.wantGone(s.send("b6", key("b")), "b6", 6*time.Second) // a and b have five each
		s.wantGone(s.send("a11", key("a")), "a11", 6*time.Second)
		s.send("c0", key("c"))
		s.send("c1", key("c")) // for b5, the newest of those with the most
		s.wantGone(s.send("b5", key("b")), "b5", 5*time.Second)
		s.until(1500 * time.Millisecond) // three have started
		s.send("d0", key("d"))
		s.sendAll(key("d"), "d1", "d2", "d3")
		s.wantStarts("a0@0s b0@0s c0@0s a1@1s b1@1s c1@1s d0@1.5s a2@2s b2@2s d1@2.5s a3@3s b3@3s d2@3.5s a4@4s b4@4s d3@4.5s a5@5s")
	})
}

// What is due within a millisecond stays, whoever has the most.
func TestFullLineKeepsWhatIsDue(t *testing.T) {
	p := rules(keyed(limiter.Every(time.Millisecond)))
	p[0].MaxWaiting = 4
	play(t, p, func(s *scene) {
		s.send("b0", key("b"))
		s.until(500 * time.Microsecond)
		s.send("a0", key("a"))
		due := s.send("a1", key("a"))      // at 1.5 ms
		s.send("b1", key("b"))             // at 1 ms
		late := s.send("a2", key("a"))     // at 2.5 ms
		lasts := s.send("a3", key("a"))    // at 3.5 ms
		newcomer := s.send("b2", key("b")) // at 2 ms: 3 of a, 1 of b
		s.wantGone(lasts, "a3", 3*time.Millisecond)
		s.send("c0", key("c"))
		s.send("c1", key("c")) // of a and b with two each, b's newest came last
		s.wantGone(newcomer, "b2", 1500*time.Microsecond)
		if due.done.Load() || late.done.Load() {
			s.Error("a request of another tenant was refused")
		}
		s.wantStarts("b0@0s a0@500µs c0@500µs b1@1ms a1@1.5ms c1@1.5ms a2@2.5ms")
	})
	p = rules(keyed(limiter.Every(500 * time.Microsecond)))
	p[0].MaxWaiting = 2
	play(t, p, func(s *scene) {
		s.sendAll(key("a"), "a0", "a1", "a2") // a2 at 1 ms
		s.send("b0", key("b"))
		s.wantGone(s.send("b1", key("b")), "b1", 500*time.Microsecond)
		s.wantStarts("a0@0s b0@0s a1@500µs a2@1ms")
	})
}

// A tenant whose requests fill the line by their shared limit, by slots, or by a
// Quota's waits makes way too; requests without a key count as one tenant's.
func TestFullLineOfOtherKinds(t *testing.T) {
	t.Run("shared limit", func(t *testing.T) {
		p := perTenant(10)
		p[0].Limits = []limiter.Limit{limiter.Every(100 * time.Millisecond)}
		play(t, p, func(s *scene) {
			busy := s.sendAll(key("a"), "a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8", "a9", "a10")
			s.send("b0", key("b")) // at 100 ms
			s.wantGone(busy[10], "a10", 10*time.Second)
			for _, a := range busy[5:] {
				if a.cancel != nil {
					a.cancel()
				}
			}
			s.wantStarts("a0@0s b0@100ms a1@1s a2@2s a3@3s a4@4s")
		})
	})
	t.Run("slots", func(t *testing.T) {
		p := rules(keyed(limiter.PerSecond(1000)))
		p[0].MaxWaiting, p[0].MaxInFlight = 4, 1
		play(t, p, func(s *scene) {
			s.base.latency = time.Second
			busy := s.sendAll(key("a"), "a0", "a1", "a2", "a3", "a4")
			s.send("b0", key("b"))
			synctest.Wait()
			if e, ok := busy[4].err.(*headway.ThrottledError); !ok || e.Reason != limiter.ReasonLineFull || !e.AtLeast {
				s.Errorf("a4: got %v, want it refused: the line is full, at least", busy[4].err)
			}
			s.wantStarts("a0@0s a1@1s a2@2s a3@3s b0@4s")
		})
	})
	t.Run("quota", func(t *testing.T) {
		play(t, perTenant(3), func(s *scene) {
			s.sendAll(key("a"), "a0", "a1", "a2", "a3")
			q := s.quota("api.test", "key", "b")
			spend(s, q, 1)
			done := make(chan error, 1)
			s.all.Go(func() { done <- q.Wait(s.Context(), 1) })
			synctest.Wait()
			s.until(time.Second)
			select {
			case err := <-done:
				if err != nil {
					s.Error(err)
				}
			default:
				s.Error("the quota waits still")
			}
			s.wantStarts("a0@0s a1@1s a2@2s")
		})
		play(t, perTenant(3), func(s *scene) { // and makes way
			q := s.quota("api.test", "key", "a")
			spend(s, q, 1)
			errs := make(chan error, 3)
			for range 3 {
				s.all.Go(func() { errs <- q.Wait(s.Context(), 1) })
				synctest.Wait()
			}
			s.sendAll(key("b"), "b0", "b1")
			if e, ok := (<-errs).(*headway.ThrottledError); !ok || e.Reason != limiter.ReasonLineFull || e.RetryAfter != 3*time.Second {
				s.Errorf("got %v, want the third refused: the line is full, 3s", e)
			}
			s.wantStarts("b0@0s b1@1s")
		})
	})
	t.Run("no key", func(t *testing.T) {
		r := keyed(limiter.Every(time.Second))
		r.Path = "/keys"
		p := rules(r)
		p[0].Limits, p[0].MaxWaiting = []limiter.Limit{limiter.Every(time.Second)}, 3
		play(t, p, func(s *scene) {
			plain := s.sendAll(ask{}, "x0", "x1", "x2", "x3")
			s.wantGone(s.send("x4", ask{}), "x4", 4*time.Second)
			a := key("a")
			a.url = "https://api.test/keys"
			s.send("a0", a)
			s.wantGone(plain[3], "x3", 3*time.Second)
			s.wantStarts("x0@0s x1@1s x2@2s a0@3s")
		})
	})
}

// 10,000 of one tenant wait; none of another's that would wait 17 ms is refused.
func TestABusyTenantTakesNoPlace(t *testing.T) {
	p := rules(keyed(limiter.Limit{N: 1, Per: 17 * time.Millisecond}))
	playConfig(t, headway.Config{Policies: p}, func(s *scene) {
		s.base.quiet = true
		ctx := s.Context()
		errs := make(chan error, 20_000)
		send := func(k string, n int) {
			for range n {
				a := key(k)
				a.ctx = nil
				req := a.request("x")
				s.all.Go(func() {
					_, err := s.RoundTrip(req.WithContext(headway.WithCall(ctx, headway.Call{Key: k})))
					if k != "busy" {
						errs <- err
					}
				})
			}
			synctest.Wait()
		}
		send("busy", 10_001)
		for i := range 1000 {
			send(fmt.Sprint("other", i), 2)
		}
		time.Sleep(17 * time.Millisecond)
		synctest.Wait()
		if len(errs) != 2000 {
			s.Errorf("%d are back after 17 ms, want all 2000", len(errs))
		}
		for range len(errs) {
			if err := <-errs; err != nil {
				s.Fatal(err)
			}
		}
	})
}
