package headway_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/breaker"
	"github.com/headway-go/headway/limiter"
)

// closed makes the breaker close by its probes, the last of which ends now.
func (s *scene) closeByProbes(probes int) {
	s.Helper()
	s.breaker().Trip(errReset, 0)
	s.until(5 * time.Second)
	for i := range probes {
		s.wantOK(s.send(fmt.Sprintf("probe%d", i), ask{}))
	}
	s.wantState(breaker.Closed)
}

// After closing as many are in flight as Probes, and twice as many with each
// success; the others wait in line, in order.
func TestSlowStartDoubles(t *testing.T) {
	play(t, broken(breaker.Config{}), func(s *scene) {
		s.base.answer = script
		s.closeByProbes(1)
		for i := range 12 {
			s.send(fmt.Sprintf("%c/1s", 'A'+i), ask{})
		}
		if d, err := s.Delay(ask{}.request("x")); d != 0 || err != nil {
			t.Errorf("Delay is %v, %v; want 0, for nobody knows more", d, err)
		}
		h := s.Snapshot()[0]
		if h.Waiting != 11 {
			t.Errorf("%d wait, want 11", h.Waiting)
		}
		// Five successes allow 32, with which it no longer holds anybody.
		s.wantStarts("probe0@5s A/1s@5s B/1s@6s C/1s@6s" +
			" D/1s@7s E/1s@7s F/1s@7s G/1s@7s H/1s@7s I/1s@7s J/1s@7s K/1s@7s" +
			" L/1s@8s")
	})
}

func TestSlowStartBeginsWithProbes(t *testing.T) {
	play(t, broken(breaker.Config{Probes: 3}), func(s *scene) {
		s.base.answer = script
		s.closeByProbes(3)
		s.sendAll(ask{}, "A/1s", "429/1s", "C/1s", "D/1s", "E/1s", "F/1s", "G/1s")
		s.until(5 * time.Second)
		s.wantStartsSoFar("probe0@5s probe1@5s probe2@5s A/1s@5s 429/1s@5s C/1s@5s")
		s.wantStarts("probe0@5s probe1@5s probe2@5s A/1s@5s 429/1s@5s C/1s@5s D/1s@6s E/1s@6s F/1s@6s G/1s@6s")
	})
}

// What ends ignored makes room, but no more than it had.
func TestSlowStartIgnoredMakesRoomForOne(t *testing.T) {
	play(t, broken(breaker.Config{}), func(s *scene) {
		s.base.answer = script
		s.closeByProbes(1)
		a := s.send("hang", ask{})
		s.sendAll(ask{}, "429/1s", "429/1s", "429/1s")
		s.until(6 * time.Second)
		a.cancel()
		s.wantStarts("probe0@5s hang@5s 429/1s@6s 429/1s@7s 429/1s@8s")
	})
}

// A failure in a slow start counts as any other: those in line are refused.
func TestSlowStartOpensAgain(t *testing.T) {
	play(t, broken(breaker.Config{Failures: 1}), func(s *scene) {
		s.base.answer = script
		s.closeByProbes(1)
		s.send("fail/1s", ask{})
		b := s.send("B", ask{})
		s.until(6 * time.Second)
		s.wantOpen(b, time.Second, 10*time.Second, errReset)
		s.wantStarts("probe0@5s fail/1s@5s")
	})
}

// One that is never reported holds no request up for longer than ProbeTimeout.
func TestSlowStartDoesNotWedge(t *testing.T) {
	play(t, broken(breaker.Config{ProbeTimeout: 10 * time.Second}), func(s *scene) {
		s.base.answer = script
		s.closeByProbes(1)
		hung := s.sendAll(ask{}, "hang", "hang", "hang", "D", "E")
		late := s.send("F", ask{call: headway.Call{MaxWait: 15 * time.Second}})
		gone := s.send("G", ask{})
		gone.cancel()
		s.until(20 * time.Second)
		s.wantThrottledAfter(late, limiter.ReasonInFlight, 15*time.Second)
		s.until(35 * time.Second)
		s.wantStartsSoFar("probe0@5s hang@5s hang@15s hang@25s D@35s E@35s")
		for _, p := range hung {
			p.cancel()
		}
	})
}

// wantThrottledAfter checks that a request was refused at the end of its wait.
func (s *scene) wantThrottledAfter(p *trip, reason limiter.Reason, after time.Duration) {
	s.Helper()
	e, isThrottled := p.err.(*headway.ThrottledError)
	if !p.done.Load() || !isThrottled || e.Reason != reason || !e.AtLeast || p.after != after {
		s.Errorf("got %#v after %v, want it refused after %v", p.err, p.after, after)
	}
}

// Limits and slots hold in a slow start as ever, and Close ends it.
func TestSlowStartWithLimitAndSlots(t *testing.T) {
	policies := broken(breaker.Config{}, limiter.Limit{N: 4, Per: 10 * time.Second})
	policies[0].MaxInFlight = 2
	play(t, policies, func(s *scene) {
		s.base.answer = script
		s.closeByProbes(1)
		s.sendAll(ask{}, "A/1s", "B/1s", "C/1s", "D/1s")
		s.wantStarts("probe0@5s A/1s@5s B/1s@6s C/1s@6s D/1s@15s")
	})
	play(t, broken(breaker.Config{}), func(s *scene) {
		s.base.answer = script
		s.closeByProbes(1)
		trips := s.sendAll(ask{}, "hang", "hang", "hang")
		s.until(6 * time.Second)
		s.breaker().Reset()
		synctest.Wait()
		s.wantStartsSoFar("probe0@5s hang@5s hang@6s hang@6s")
		for _, p := range trips {
			p.cancel()
		}
	})
}

// In a Shared policy one host's slow start holds no request up that goes to another.
func TestSlowStartOfOneHostAlone(t *testing.T) {
	policies := broken(breaker.Config{}, limiter.Limit{N: 10, Per: time.Second})
	policies[0].Shared = true
	policies[0].MaxInFlight = 8
	play(t, policies, func(s *scene) {
		s.base.answer = script
		s.closeByProbes(1)
		s.sendAll(ask{}, "A/1s", "B/1s", "C/1s")
		other := ask{url: "https://other.test/", call: headway.Call{MaxWait: headway.NoWait}}
		s.wantOK(s.send("X", other), s.send("Y", other))
		s.wantStarts("probe0@5s A/1s@5s X@5s Y@5s B/1s@6s C/1s@6s")
	})
}
