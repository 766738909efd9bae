package main

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"runtime"
	"strconv"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
)

// A waiter waits until it starts or is cancelled.
type waiter struct {
	cancel context.CancelFunc
	done   chan struct{}
	start  time.Time // zero if it was cancelled
}

// enqueue has n waiters enter the line one after another, in this order if GOMAXPROCS is
// 1.
func enqueue(n int, wait func(ctx context.Context, i int) error) []*waiter {
	line := make([]*waiter, n)
	for i := range line {
		ctx, cancel := context.WithCancel(context.Background())
		p := &waiter{cancel: cancel, done: make(chan struct{})}
		line[i] = p
		go func() {
			defer close(p.done)
			if wait(ctx, i) == nil {
				p.start = time.Now()
			}
		}()
		runtime.Gosched() // it runs until it is in line
	}
	return line
}

// halfLeaves measures when the last of 1,000 starts after the first half was cancelled,
// and when a newcomer starts. A debt of 1 s delays the first slot until all are in line
// and half of them have left again. Without it, on a busy machine, the first slots would
// go to waiters that are to be cancelled.
func halfLeaves(build newQueue) func(*options) func() []float64 {
	return func(o *options) func() []float64 {
		return func() []float64 {
			n, perSecond := 1000, 100
			if o.quick {
				n = 100
			}
			q := build(perSecond)
			begin := time.Now().Add(time.Second)
			q.owe(1 + perSecond)
			wait := func(ctx context.Context, _ int) error { return q.wait(ctx) }
			line := enqueue(n, wait)
			for _, p := range line[:n/2] {
				p.cancel()
				<-p.done
			}
			if !time.Now().Before(begin) {
				return []float64{math.NaN(), math.NaN()} // waiters that were to be cancelled have started
			}
			newcomer := enqueue(1, wait)[0]
			last := line[n-1]
			<-last.done
			<-newcomer.done
			return []float64{last.start.Sub(begin).Seconds(), newcomer.start.Sub(begin).Seconds()}
		}
	}
}

// leave measures the cost of a cancel, until the cancelled call has returned, for 500 of
// the waiters in line, spread evenly, or as many as 2 s allow.
func leave(n int, build func() func(ctx context.Context, i int) error) func(*options) func() []float64 {
	return func(o *options) func() []float64 {
		return func() []float64 {
			n := n
			if n > 1000 {
				n = max(1000, o.scale(n))
			}
			line := enqueue(n, build())
			const most, long = 500, 2 * time.Second
			runtime.GC()
			left, start := 0, cpuTime()
			for ; left < most && cpuTime()-start < long; left++ {
				p := line[left*n/most]
				p.cancel()
				<-p.done
			}
			return []float64{float64(cpuTime()-start) / float64(left) / 1000}
		}
	}
}

// oneClass is a line whose waiters all need the same limit.
func oneClass(build newQueue) func() func(context.Context, int) error {
	return func() func(context.Context, int) error {
		q := build(1)
		q.owe(10)
		return func(ctx context.Context, _ int) error { return q.wait(ctx) }
	}
}

// manyTenants is a line of 100 tenants that share a limit, and have one each.
func manyTenants() func(context.Context, int) error {
	rt := must(headway.NewTransport(newStub(), headway.Config{Policies: []headway.Policy{{
		Hosts:      []string{"*"},
		MaxWaiting: 1_000_000,
		Limits:     []limiter.Limit{limiter.PerMinute(1)},
		Rules:      []headway.Rule{{Name: "tenant", Limit: limiter.PerHour(10), Key: headway.FromCallKey}},
	}}}))
	return func(ctx context.Context, i int) error {
		call := headway.Call{Key: strconv.Itoa(i % 100)}
		req := must(http.NewRequestWithContext(headway.WithCall(ctx, call), http.MethodGet, "https://api.example.com/", nil))
		_, err := rt.RoundTrip(req)
		return err
	}
}

func cancelRows() []row {
	half := row{
		name: "cancel/half of 1,000", procs: 1, most: 3, alone: true,
		about: "1,000 requests are in line at 100 per s; the first 500 are cancelled; then one more comes. Seconds until the last of the other 500 has started, and the newcomer. The ideal is 5.00 and 5.01. " +
			"A request that wakes more than 10 ms late starts late by the excess, and so do all behind it: this bounds bursts, and shows on a machine with other work.",
		metrics: []metric{
			{name: "last s", digits: 2}, {name: "newcomer s", digits: 2},
		},
		subjects: []subject{
			{"Headway Wait", ours, halfLeaves(headwayQueue)},
			{"x/time/rate Wait", peer, halfLeaves(xRateQueue)},
			{"failsafe-go AcquirePermit", peer, halfLeaves(failsafeQueue)},
		},
		goals: []goal{{"Headway Wait", "last s", "", 5}, {"Headway Wait", "newcomer s", "", 5.01}},
	}
	cost := row{
		name: "cancel/cost", procs: 1, most: 5, alone: true,
		about: "Processor time of one cancel, until the cancelled call has returned, in a short and in a long line. The ratio is to Headway in the short line. " +
			"A goroutine that wakes among 100,000 is no longer in any cache, as the peers show too, where a cancel affects no other request: growth of up to 3 counts as none.",
		metrics: []metric{{name: "µs", digits: 2, ratio: true}},
	}
	for _, s := range []struct {
		name string
		kind kind
		line func() func(context.Context, int) error
	}{
		{"Headway Wait", ours, oneClass(headwayQueue)},
		{"Headway RoundTrip, 100 tenants and a shared limit", ours, manyTenants},
		{"x/time/rate Wait", extra, oneClass(xRateQueue)},
		{"failsafe-go AcquirePermit", extra, oneClass(failsafeQueue)},
	} {
		in := func(n int) string { return fmt.Sprintf("%s, %s in line", s.name, number(float64(n), 0)) }
		short, long := 1000, 100_000
		kind := s.kind
		if len(cost.subjects) == 0 {
			kind = floor
		}
		cost.subjects = append(cost.subjects,
			subject{in(short), kind, leave(short, s.line)},
			subject{in(long), s.kind, leave(long, s.line)})
		if s.kind == ours {
			cost.goals = append(cost.goals, goal{in(long), "µs", in(short), 3})
		}
	}
	return []row{half, cost}
}
