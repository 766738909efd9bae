package breaker_test

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headway-go/headway/breaker"
)

// TestRounds runs 10^5 rounds of open, half-open, close against calls that are
// dropped, cancelled, panic or end their goroutine, each in a goroutine of its
// own, and against hands. After each, nothing may be wedged and no place lost.
func TestRounds(t *testing.T) {
	const rounds, callers, probes = 100_000, 4, 2
	const openFor, probeTimeout = time.Second, 3 * time.Second

	var reported, badOrder, tooMany atomic.Int64
	state := breaker.Closed // as the callback knows it; one goroutine at a time calls back
	b := newBreaker(t, breaker.Config{Failures: 2, OpenFor: openFor, MaxOpenFor: openFor, Probes: probes, ProbeTimeout: probeTimeout},
		func(c breaker.Change) {
			if c.From != state {
				badOrder.Add(1)
			}
			state = c.To
			if reported.Add(1)%1000 == 0 {
				panic("callback")
			}
		})
	// guarded swallows the panics that are meant.
	guarded := func(f func()) {
		defer func() { recover() }()
		f()
	}

	now := t0 // moves between rounds only
	ends := []func(breaker.Ticket){
		func(breaker.Ticket) {}, // never ended
		func(k breaker.Ticket) { b.Record(k, success, now) },
		func(k breaker.Ticket) { b.Record(k, failure, now) },
		func(k breaker.Ticket) { b.Record(k, ignored, now) },
		func(k breaker.Ticket) { b.Return(k) },
		func(k breaker.Ticket) { defer b.Record(k, ignored, now); panic("call") },
		func(k breaker.Ticket) { defer b.Record(k, ignored, now); runtime.Goexit() },
		func(k breaker.Ticket) { b.Record(k, failure, now); b.Trip(errDown, 0, now) },
		func(k breaker.Ticket) { b.Record(k, failure, now); b.Reset(now) },
		func(k breaker.Ticket) { b.Fail(errDown, 0, now); b.Record(k, success, now) },
	}
	random := rand.New(rand.NewPCG(1, 2))
	var seen [3]int // rounds begun in each state
	for round := range rounds {
		// Closed, time to probe, or half-open with one place taken for good.
		switch begin := random.IntN(3); {
		case begin == 0 && !b.Closed():
			guarded(func() { b.Reset(now) })
		case begin > 0:
			guarded(func() { b.Trip(errDown, 0, now) })
			now = now.Add(openFor)
			if begin == 2 {
				take(t, b, now)
			}
		}
		seen[b.State()]++

		// Within a round time stands still, so that it has at most one half-open
		// state, and in that at most so many probes at once.
		var held atomic.Int64
		var group sync.WaitGroup
		for range callers {
			end := random.IntN(len(ends))
			group.Go(func() {
				guarded(func() {
					ticket, ok := b.Take(now)
					if !ok {
						b.Delay(now)
						b.Cause()
						return
					}
					if ticket.Probe() && held.Add(1) > probes {
						tooMany.Add(1)
					}
					if end != 0 {
						held.Add(-1)
					}
					ends[end](ticket)
				})
			})
		}
		group.Wait()

		// However it was left: once probes and opening have timed out, as many pass as
		// successes are missing, and these close it.
		now = now.Add(probeTimeout)
		var last []breaker.Ticket
		for !b.Closed() {
			ticket, ok := b.Take(now)
			if !ok {
				break
			}
			last = append(last, ticket)
		}
		if len(last) > probes {
			t.Fatalf("round %d: %d probes in flight", round, len(last))
		}
		for i, ticket := range last {
			if b.Closed() {
				t.Fatalf("round %d: closed by %d of %d probes", round, i, len(last))
			}
			guarded(func() { b.Record(ticket, success, now) })
		}
		if !b.Closed() {
			t.Fatalf("round %d: %v after %d successes, next in %v", round, b.State(), len(last), b.Delay(now))
		}
	}
	guarded(b.Report)
	if state != breaker.Closed {
		t.Errorf("the last change reported was to %v", state)
	}
	if n := badOrder.Load(); n > 0 {
		t.Errorf("%d changes reported out of order", n)
	}
	if n := tooMany.Load(); n > 0 {
		t.Errorf("%d probes too many in flight", n)
	}
	for state, n := range seen {
		if n < rounds/10 {
			t.Errorf("only %d rounds began %v", n, breaker.State(state))
		}
	}
}
