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

// A patient waits until it has its turn or is cancelled.
type patient struct {
	cancel context.CancelFunc
	done   chan struct{}
	start  time.Time // zero if it was cancelled
}

// enqueue lets n patients stand in line one after another, in this order when
// GOMAXPROCS is 1.
func enqueue(n int, wait func(ctx context.Context, i int) error) []*patient {
	line := make([]*patient, n)
	for i := range line {
		ctx, cancel := context.WithCancel(context.Background())
		p := &patient{cancel: cancel, done: make(chan struct{})}
		line[i] = p
		go func() {
			defer close(p.done)
			if wait(ctx, i) == nil {
				p.start = time.Now()
			}
		}()
		runtime.Gosched() // runs until it stands in line
	}
	return line
}

// halfLeaves measures when the last of 1,000 starts after the first half has
// been cancelled, and when one starts who comes then. The first slot comes one
// interval after a debt of 1 s, by when all stand in line and half of them have
// left again: on a busy machine that takes longer than the first slots, which
// would go to some who are to leave.
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
				return []float64{math.NaN(), math.NaN()} // some have started that were to leave
			}
			newcomer := enqueue(1, wait)[0]
			last := line[n-1]
			<-last.done
			<-newcomer.done
			return []float64{last.start.Sub(begin).Seconds(), newcomer.start.Sub(begin).Seconds()}
		}
	}
}

// leave measures what a cancel costs, from the cancel until who waited has
// returned: 500 of those in line, spread evenly, or as many as 2 s allow.
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

// oneKind is a line of equals.
func oneKind(build newQueue) func() func(context.Context, int) error {
	return func() func(context.Context, int) error {
		q := build(1)
		q.owe(10)
		return func(ctx context.Context, _ int) error { return q.wait(ctx) }
	}
}

// mixed is a line of 100 tenants who share a limit and have one each.
func mixed() func(context.Context, int) error {
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
		about: "1,000 in line at 100 per s; the first 500 are cancelled; then one more comes. Seconds until the last of the 500 has started, and the newcomer. The ideal is 5.00 and 5.01. " +
			"Whoever is woken more than 10 ms late starts late by the rest, and so do all behind: a bound on bursts. A machine with other work to do shows this.",
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
		about: "Processor time of one cancel, until who waited has returned, in a short and in a long line. The ratio is to ours in the short one. " +
			"Who wakes among 100,000 is in no cache any more, which the peers, where a cancel touches nobody else, show too: growth of up to 3 counts as none.",
		metrics: []metric{{name: "µs", digits: 2, ratio: true}},
	}
	for _, s := range []struct {
		name string
		kind kind
		line func() func(context.Context, int) error
	}{
		{"Headway Wait", ours, oneKind(headwayQueue)},
		{"Headway RoundTrip, 100 tenants and a shared limit", ours, mixed},
		{"x/time/rate Wait", aside, oneKind(xRateQueue)},
		{"failsafe-go AcquirePermit", aside, oneKind(failsafeQueue)},
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
