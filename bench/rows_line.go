package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"golang.org/x/time/rate"

	"github.com/headway-go/headway/limiter"
)

// A queue has goroutines wait in line.
type queue struct {
	wait func(ctx context.Context) error
	owe  func(n int) // takes n units in advance, into debt
}

// A newQueue makes a queue with one start per interval from now on, without a burst.
type newQueue func(perSecond int) queue

func headwayQueue(perSecond int) queue {
	l := must(limiter.New(limiter.Limit{N: int64(perSecond), Per: time.Second, Law: limiter.Bucket, Burst: 1}))
	return queue{
		wait: func(ctx context.Context) error { return l.Wait(ctx, 1) },
		owe:  func(n int) { l.Spend(int64(n)) },
	}
}

func xRateQueue(perSecond int) queue {
	l := rate.NewLimiter(rate.Limit(perSecond), 1)
	return queue{
		wait: l.Wait,
		owe: func(n int) {
			for range n { // a reservation of more than the burst is refused
				l.Reserve()
			}
		},
	}
}

func failsafeQueue(perSecond int) queue {
	l := ratelimiter.NewSmooth[any](uint(perSecond), time.Second)
	return queue{
		wait: l.AcquirePermit,
		owe:  func(n int) { l.ReservePermits(uint(n)) },
	}
}

// A fifo is the least work of a queue: a channel for each goroutine, and one timer for
// all. A goroutine cannot leave it.
type fifo struct {
	interval time.Duration

	mu    sync.Mutex // guards following fields
	next  time.Time  // the slot of the first
	line  []chan struct{}
	timer *time.Timer
}

func fifoQueue(perSecond int) queue {
	f := &fifo{interval: time.Second / time.Duration(perSecond), next: time.Now()}
	return queue{
		wait: func(context.Context) error { f.wait(); return nil },
		owe:  func(n int) { f.next = f.next.Add(time.Duration(n) * f.interval) },
	}
}

func (f *fifo) wait() {
	turn := make(chan struct{})
	f.mu.Lock()
	if f.line = append(f.line, turn); len(f.line) == 1 {
		f.timer = time.AfterFunc(time.Until(f.next), f.fire)
	}
	f.mu.Unlock()
	<-turn
}

// fire starts all goroutines that are due: the first, and perhaps others.
func (f *fifo) fire() {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	for len(f.line) > 0 && !f.next.After(now) {
		close(f.line[0])
		f.line, f.next = f.line[1:], f.next.Add(f.interval)
	}
	if len(f.line) > 0 {
		f.timer.Reset(f.next.Sub(now))
	}
}

// inLine measures one long line: it builds up while the queue is in debt, and
// then starts one after another.
func inLine(build newQueue) func(*options) func() []float64 {
	return func(o *options) func() []float64 {
		return func() []float64 {
			waiters, perSecond, debt := o.scale(100_000), 50_000, 300_000 // 6 s: time enough to enter the line
			n := float64(waiters)
			starts := make([]time.Duration, waiters)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)

			var (
				q     queue
				begin time.Time
				wg    sync.WaitGroup
				asked atomic.Int64
				gate  = make(chan struct{})
			)
			for i := range waiters {
				wg.Go(func() {
					<-gate
					asked.Add(1)
					must(0, q.wait(ctx))
					starts[i] = time.Since(begin)
				})
			}
			begin = time.Now()
			q = build(perSecond)
			q.owe(debt)
			first := time.Duration(debt) * time.Second / time.Duration(perSecond)
			cpu := cpuTime()
			close(gate) // all come at once
			for asked.Load() < int64(waiters) {
				time.Sleep(time.Millisecond)
			}
			settle() // by now all are in line
			joined := cpuTime() - cpu
			runtime.GC()
			runtime.ReadMemStats(&after)
			bytes := float64(after.HeapAlloc+after.StackInuse-before.HeapAlloc-before.StackInuse) / n
			if late := time.Since(begin); late > first {
				fmt.Fprintf(os.Stderr, "the line took %v to build up, and some have left it already: no bytes\n", late)
				bytes = math.NaN()
			}

			cpu = cpuTime()
			wg.Wait()
			granted := cpuTime() - cpu

			slices.Sort(starts)
			late := make([]float64, waiters)
			for i := range starts {
				slot := first + time.Duration(i)*time.Second/time.Duration(perSecond)
				late[i] = float64(starts[i]-slot) / float64(time.Millisecond)
			}
			slices.Sort(late)
			return []float64{bytes, float64(joined) / n / 1000, float64(granted) / n / 1000,
				quantile(late, 0.5), quantile(late, 0.99), math.Max(0, -late[0])}
		}
	}
}

// settle returns when this process is idle.
func settle() {
	const look = 10 * time.Millisecond
	for used := cpuTime(); ; {
		time.Sleep(look)
		before := used
		if used = cpuTime(); used-before < look/20 {
			return
		}
	}
}

func lineRows() []row {
	const bare = "floor: bare FIFO of channels, one timer"
	const us = "Headway Wait"
	return []row{{
		name: "line/100,000", procs: 2, most: 5, alone: true,
		about: "100,000 goroutines wait in one line and start at 50,000 per s. Bytes of heap and stacks for each, after a garbage collection while all wait. " +
			"They all come at once. Processor time to join and to start. How late the k-th start came after the k-th slot, and how early the earliest.",
		metrics: []metric{
			{name: "bytes", ratio: true}, {name: "join µs", digits: 2}, {name: "start µs", digits: 2, ratio: true},
			{name: "late p50 ms", digits: 3, neutral: true}, {name: "late p99 ms", digits: 3, ratio: true}, {name: "early ms", digits: 3},
		},
		subjects: []subject{
			{bare, floor, inLine(fifoQueue)},
			{us, ours, inLine(headwayQueue)},
			{"x/time/rate Wait (starts early: see there)", extra, inLine(xRateQueue)},
			{"failsafe-go AcquirePermit", peer, inLine(failsafeQueue)},
		},
		goals: []goal{
			{us, "bytes", bare, 1.1}, {us, "start µs", bare, 1.1}, {us, "late p99 ms", bare, 1.1}, {us, "early ms", "", 0},
		},
	}}
}
