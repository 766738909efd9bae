package main

import (
	"time"

	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/sony/gobreaker/v2"

	"github.com/headway-go/headway/breaker"
)

// oursClosed checks the breaker, takes a ticket and records a result, like the Transport.
func oursClosed(c breaker.Config) func() operation {
	return func() operation {
		b, now := must(breaker.New(c, nil)), time.Now()
		return func(n int) {
			for range n {
				if !b.Closed() {
					panic("open")
				}
				ticket, ok := b.Take(now)
				if !ok {
					panic("refused")
				}
				must(one())
				b.Record(ticket, breaker.Result{Outcome: breaker.Success}, now)
			}
		}
	}
}

// one is the call that is guarded.
var one = func() (int, error) { return 1, nil }

func unguarded() operation {
	return func(n int) {
		for range n {
			must(one())
		}
	}
}

func gobreakerClosed() operation {
	b := gobreaker.NewCircuitBreaker[int](gobreaker.Settings{})
	return func(n int) {
		for range n {
			must(b.Execute(one))
		}
	}
}

func failsafeClosed() operation {
	b := circuitbreaker.NewBuilder[any]().WithFailureThreshold(5).Build()
	return func(n int) {
		for range n {
			if !b.TryAcquirePermit() {
				panic("refused")
			}
			must(one())
			b.RecordSuccess()
		}
	}
}

func breakerRows() []row {
	const five, execute = "Headway, 5 in a row", "gobreaker Execute"
	return []row{{
		name: "breaker/closed", procs: 1, rounds: rounds, metrics: perOp,
		about: "A closed breaker and calls that succeed: the check, the call, and the record.",
		subjects: []subject{
			{"floor: the call alone", floor, ops(unguarded)},
			{five, ours, ops(oursClosed(breaker.Config{}))},
			{"Headway, a rate within 10 s", extra, ops(oursClosed(breaker.Config{Rate: 0.5, Within: 10 * time.Second}))},
			{execute, peer, ops(gobreakerClosed)},
			{"failsafe-go, 5 in a row", peer, ops(failsafeClosed)},
		},
		goals: []goal{{five, "ns", execute, 0.25}, {five, "allocs", "", 0}},
	}}
}
