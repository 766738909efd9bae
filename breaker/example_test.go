package breaker_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/headway-go/headway/breaker"
)

// A service fails, is left alone, is probed, and is well again.
func Example() {
	b, err := breaker.New(breaker.Config{Failures: 3}, func(c breaker.Change) {
		fmt.Printf("%s: %v to %v\n", c.At.Format(time.TimeOnly), c.From, c.To)
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

	for range 4 {
		ticket, ok := b.Take(now)
		if !ok {
			fmt.Printf("refused, probe possible in %v: %v\n", b.Delay(now), b.Cause())
			break
		}
		b.Record(ticket, breaker.Result{Outcome: breaker.Failure, Err: errors.New("connection refused")}, now)
		now = now.Add(time.Second)
	}

	now = now.Add(b.Delay(now))
	ticket, ok := b.Take(now)
	fmt.Println("probing:", ok && ticket.Probe())
	_, ok = b.Take(now)
	fmt.Println("a second probe:", ok)
	b.Record(ticket, breaker.Result{Outcome: breaker.Success}, now.Add(200*time.Millisecond))
	// Output:
	// 12:00:02: closed to open
	// refused, probe possible in 4s: connection refused
	// probing: true
	// a second probe: false
	// 12:00:07: open to half-open
	// 12:00:07: half-open to closed
}

func ExampleNew() {
	_, err := breaker.New(breaker.Config{Failures: 5, Of: 3, Probes: -1}, nil)
	fmt.Println(err)
	// Output:
	// breaker: Failures is 5 of 3: use an Of of at least 5
	// breaker: Probes is -1: use 1 to 1000, or 0 for 1
}

// Half of all calls within 30 s, but not before there were 20.
func ExampleConfig() {
	b, err := breaker.New(breaker.Config{Rate: 0.5, Within: 30 * time.Second, MinCalls: 20}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Now()
	for n := range 20 {
		ticket, _ := b.Take(now)
		if n%2 == 0 {
			b.Record(ticket, breaker.Result{Outcome: breaker.Success}, now)
		} else {
			b.Record(ticket, breaker.Result{Outcome: breaker.Failure}, now)
		}
		if n >= 18 {
			fmt.Println(n+1, "calls:", b.State())
		}
	}
	// Output:
	// 19 calls: closed
	// 20 calls: open
}

// Throttling says nothing about the health of a service.
func ExampleOutcome() {
	b, _ := breaker.New(breaker.Config{}, nil)
	now := time.Now()
	for range 100 {
		ticket, _ := b.Take(now)
		b.Record(ticket, breaker.Result{Outcome: breaker.Ignored}, now)
	}
	fmt.Println(b.State())
	// Output: closed
}

// A probe that could not be sent makes room for the next one.
func ExampleBreaker_Return() {
	b, _ := breaker.New(breaker.Config{}, nil)
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	b.Trip(nil, 0, now)
	now = now.Add(5 * time.Second)

	ticket, _ := b.Take(now)
	fmt.Println(b.Delay(now))
	b.Return(ticket)
	fmt.Println(b.Delay(now))
	// Output:
	// 30s
	// 0s
}

// An operator takes a service out, as its maintenance page asks.
func ExampleBreaker_Trip() {
	b, _ := breaker.New(breaker.Config{}, nil)
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	b.Trip(errors.New("maintenance"), 2*time.Hour, now)
	fmt.Println(b.State(), b.Delay(now), b.Cause())
	b.Reset(now)
	fmt.Println(b.State())
	// Output:
	// open 2h0m0s maintenance
	// closed
}
