package main

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	uber "go.uber.org/ratelimit"
	"golang.org/x/time/rate"

	"github.com/headway-go/headway/limiter"
)

// clockAndCAS is the floor of every shared decision that depends on time: one monotonic
// clock read and one compare-and-swap.
func clockAndCAS() operation {
	base := time.Now()
	var word atomic.Int64
	return func(n int) {
		for range n {
			now := int64(time.Since(base))
			word.CompareAndSwap(word.Load(), now)
		}
	}
}

var clockFloor = subject{"floor: clock and CAS", floor, ops(clockAndCAS)}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// allow is Headway's subject.
func allow(limit limiter.Limit) func() operation {
	return func() operation {
		l := must(limiter.New(limit))
		return func(n int) {
			for range n {
				l.Allow(1)
			}
		}
	}
}

func allowXRate(limit rate.Limit, burst int) func() operation {
	return func() operation {
		l := rate.NewLimiter(limit, burst)
		return func(n int) {
			for range n {
				l.Allow()
			}
		}
	}
}

func allowFailsafe(build func() ratelimiter.RateLimiter[any]) func() operation {
	return func() operation {
		l := build()
		return func(n int) {
			for range n {
				l.TryAcquirePermit()
			}
		}
	}
}

func allowThrottled(r throttled.Rate) func() operation {
	return func() operation {
		l := must(throttled.NewGCRARateLimiterCtx(must(memstore.NewCtx(0)), throttled.RateQuota{MaxRate: r}))
		ctx := context.Background()
		return func(n int) {
			for range n {
				l.RateLimitCtx(ctx, "key", 1)
			}
		}
	}
}

func allowGoLimiter(tokens uint64, per time.Duration) func() operation {
	return func() operation {
		l := must(memorystore.New(&memorystore.Config{Tokens: tokens, Interval: per}))
		ctx := context.Background()
		return func(n int) {
			for range n {
				l.Take(ctx, "key")
			}
		}
	}
}

func takeUber(perSecond int) func() operation {
	return func() operation {
		l := uber.New(perSecond)
		return func(n int) {
			for range n {
				l.Take()
			}
		}
	}
}

const (
	ample = 1_000_000_000 // per second: more than any subject can take
	odd   = 700_000_000   // the same, but Per/N is 1.43 ns
)

// allowRows take a unit without waiting, in one goroutine.
func allowRows() []row {
	bucket := func(n int64, per time.Duration) limiter.Limit {
		return limiter.Limit{N: n, Per: per, Law: limiter.Bucket}
	}
	smooth := func(n uint, per time.Duration) func() ratelimiter.RateLimiter[any] {
		return func() ratelimiter.RateLimiter[any] { return ratelimiter.NewSmooth[any](n, per) }
	}
	bursty := func(n uint, per time.Duration) func() ratelimiter.RateLimiter[any] {
		return func() ratelimiter.RateLimiter[any] { return ratelimiter.NewBursty[any](n, per) }
	}
	return []row{
		{
			name: "allow/bucket/admitted", procs: 1, rounds: rounds, metrics: perOp,
			about: "Limiter.Allow(1) under one Bucket of 10^9 per s: always admitted.",
			subjects: []subject{
				clockFloor,
				{"Headway Bucket", ours, ops(allow(bucket(ample, time.Second)))},
				{"x/time/rate Allow", peer, ops(allowXRate(ample, ample))},
				{"failsafe-go smooth TryAcquirePermit", peer, ops(allowFailsafe(smooth(ample, time.Second)))},
				{"uber Take (cannot refuse)", extra, ops(takeUber(ample))},
				{"throttled GCRA, one key", peer, ops(allowThrottled(throttled.PerSec(ample)))},
				{"go-limiter, one key", peer, ops(allowGoLimiter(ample, time.Second))},
			},
			goals: []goal{{"Headway Bucket", "ns", clockFloor.name, 1.1}},
		},
		{
			name: "allow/bucket/admitted/odd", procs: 1, rounds: rounds, metrics: perOp,
			about: "The same with 7*10^8 per s, where Per/N is no whole number of nanoseconds.",
			subjects: []subject{
				clockFloor,
				{"Headway Bucket", ours, ops(allow(bucket(odd, time.Second)))},
				{"x/time/rate Allow", peer, ops(allowXRate(odd, odd))},
				{"failsafe-go smooth (interval cut to 1 ns)", extra, ops(allowFailsafe(smooth(odd, time.Second)))},
				{"uber Take (interval cut to 1 ns)", extra, ops(takeUber(odd))},
			},
			goals: []goal{{"Headway Bucket", "ns", clockFloor.name, 1.6}},
		},
		{
			name: "allow/bucket/refused", procs: 1, rounds: rounds, metrics: perOp,
			about: "Limiter.Allow(1) under one Bucket of 1 per hour: always refused, but for the first.",
			subjects: []subject{
				clockFloor,
				{"Headway Bucket", ours, ops(allow(bucket(1, time.Hour)))},
				{"x/time/rate Allow", peer, ops(allowXRate(rate.Every(time.Hour), 1))},
				{"failsafe-go smooth TryAcquirePermit", peer, ops(allowFailsafe(smooth(1, time.Hour)))},
				{"throttled GCRA, one key", peer, ops(allowThrottled(throttled.PerHour(1)))},
				{"go-limiter, one key", peer, ops(allowGoLimiter(1, time.Hour))},
			},
			goals: []goal{{"Headway Bucket", "ns", clockFloor.name, 1.1}},
		},
		{
			name: "allow/bucket/refused/odd", procs: 1, rounds: rounds, metrics: perOp,
			about: "The same with 7 per hour.",
			subjects: []subject{
				clockFloor,
				{"Headway Bucket", ours, ops(allow(bucket(7, time.Hour)))},
				{"x/time/rate Allow", peer, ops(allowXRate(7./3600, 7))},
				{"failsafe-go smooth TryAcquirePermit", peer, ops(allowFailsafe(smooth(7, time.Hour)))},
			},
			goals: []goal{{"Headway Bucket", "ns", clockFloor.name, 1.6}},
		},
		{
			name: "allow/window/admitted", procs: 1, rounds: rounds, metrics: perOp,
			about: "Limiter.Allow(1) under one Window of 10,000 per 100 µs: always admitted, and thousands are remembered. " +
				"No peer has an exact window: failsafe-go's bursty limiter and go-limiter count in fixed periods, which let 2N pass across a border.",
			subjects: []subject{
				clockFloor,
				{"Headway Window", ours, ops(allow(limiter.Limit{N: 10_000, Per: 100 * time.Microsecond}))},
				{"failsafe-go bursty (fixed periods)", extra, ops(allowFailsafe(bursty(10_000, 100*time.Microsecond)))},
				{"go-limiter (fixed periods)", extra, ops(allowGoLimiter(10_000, 100*time.Microsecond))},
			},
			goals: []goal{{"Headway Window", "ns", clockFloor.name, 1.25}},
		},
		{
			name: "allow/window/admitted/slices", procs: 1, rounds: rounds, metrics: perOp,
			about: "The same under 10^9 per s, more than are remembered one by one.",
			subjects: []subject{
				clockFloor,
				{"Headway Window", ours, ops(allow(limiter.PerSecond(ample)))},
				{"failsafe-go bursty (fixed periods)", extra, ops(allowFailsafe(bursty(ample, time.Second)))},
				{"go-limiter (fixed periods)", extra, ops(allowGoLimiter(ample, time.Second))},
			},
			goals: []goal{{"Headway Window", "ns", clockFloor.name, 1.25}},
		},
		{
			name: "allow/window/refused", procs: 1, rounds: rounds, metrics: perOp,
			about: "Limiter.Allow(1) under one Window of 1,000 per hour: always refused, but for the first thousand.",
			subjects: []subject{
				clockFloor,
				{"Headway Window", ours, ops(allow(limiter.PerHour(1000)))},
				{"failsafe-go bursty (fixed periods)", extra, ops(allowFailsafe(bursty(1000, time.Hour)))},
				{"go-limiter (fixed periods)", extra, ops(allowGoLimiter(1000, time.Hour))},
			},
			goals: []goal{{"Headway Window", "ns", clockFloor.name, 1.25}},
		},
	}
}

// farAway is a context that can end and has a deadline, a day after the start.
type farAway struct{ context.Context }

func (farAway) Deadline() (time.Time, bool) { return started.Add(24 * time.Hour), true }
func (farAway) Done() <-chan struct{}       { return never }

var never = make(chan struct{})

// waitRows take a unit that is granted at once, by the call that could wait.
func waitRows() []row {
	wait := func(ctx context.Context, limit limiter.Limit) func() operation {
		return func() operation {
			l := must(limiter.New(limit))
			return func(n int) {
				for range n {
					l.Wait(ctx, 1)
				}
			}
		}
	}
	waitXRate := func(ctx context.Context) func() operation {
		return func() operation {
			l := rate.NewLimiter(ample, ample)
			return func(n int) {
				for range n {
					l.Wait(ctx)
				}
			}
		}
	}
	waitFailsafe := func(ctx context.Context) func() operation {
		return func() operation {
			l := ratelimiter.NewSmooth[any](ample, time.Second)
			return func(n int) {
				for range n {
					l.AcquirePermit(ctx)
				}
			}
		}
	}
	subjects := func(ctx context.Context) []subject {
		return []subject{
			clockFloor,
			{"Headway Bucket", ours, ops(wait(ctx, limiter.Limit{N: ample, Per: time.Second, Law: limiter.Bucket}))},
			{"Headway Window", extra, ops(wait(ctx, limiter.Limit{N: 10_000, Per: 100 * time.Microsecond}))},
			{"uber Take (no context)", peer, ops(takeUber(ample))},
			{"x/time/rate Wait", peer, ops(waitXRate(ctx))},
			{"failsafe-go AcquirePermit", peer, ops(waitFailsafe(ctx))},
		}
	}
	goals := []goal{
		{"Headway Bucket", "ns", clockFloor.name, 1.3},
		{"Headway Bucket", "allocs", "", 0},
	}
	return []row{
		{
			name: "wait/granted", procs: 1, rounds: rounds, metrics: perOp,
			about:    "Limiter.Wait(context.Background(), 1) under one Bucket of 10^9 per s: granted at once.",
			subjects: subjects(context.Background()), goals: goals,
		},
		{
			name: "wait/granted/deadline", procs: 1, rounds: rounds, metrics: perOp,
			about:    "The same with a context that has a deadline, 24 h away. No target.",
			subjects: subjects(farAway{context.Background()}),
		},
	}
}

// parallelRows take units of one limit in two goroutines.
func parallelRows() []row {
	parallelFloor := subject{"floor: clock and CAS, in parallel", floor, parallelOps(clockAndCAS)}
	return []row{{
		name: "parallel/one key", procs: 2, rounds: rounds, metrics: perOp,
		about: "Limiter.Allow(1) by two goroutines at once, always admitted, as in the rows above. The floor runs in parallel too. Time by the clock.",
		subjects: []subject{
			parallelFloor,
			{"Headway Bucket", ours, parallelOps(allow(limiter.Limit{N: ample, Per: time.Second, Law: limiter.Bucket}))},
			{"Headway Window", ours, parallelOps(allow(limiter.Limit{N: 10_000, Per: 100 * time.Microsecond}))},
			{"x/time/rate Allow", peer, parallelOps(allowXRate(ample, ample))},
			{"failsafe-go smooth TryAcquirePermit", peer, parallelOps(allowFailsafe(func() ratelimiter.RateLimiter[any] {
				return ratelimiter.NewSmooth[any](ample, time.Second)
			}))},
			{"uber Take (cannot refuse)", extra, parallelOps(takeUber(ample))},
			{"throttled GCRA, one key", peer, parallelOps(allowThrottled(throttled.PerSec(ample)))},
			{"go-limiter, one key", peer, parallelOps(allowGoLimiter(ample, time.Second))},
		},
		goals: []goal{
			{"Headway Bucket", "ns", parallelFloor.name, 1.1},
			{"Headway Window", "ns", parallelFloor.name, 1.5},
		},
	}}
}
