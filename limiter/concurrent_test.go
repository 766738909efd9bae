package limiter_test

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headway-go/headway/limiter"
)

// idle waits in real time until no caller waits, and fails if one waits for ever.
func idle(t *testing.T, l *limiter.Limiter) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); l.Waiting() > 0; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%d still wait", l.Waiting())
		}
	}
}

// TestS38_ExactlyN: of 500 or 10,000 callers that do not wait, exactly 50 are admitted
// (C56).
func TestS38_ExactlyN(t *testing.T) {
	for _, n := range []int{500, 10_000} {
		for _, law := range []limiter.Law{limiter.Window, limiter.Bucket, limiter.Sliding} {
			l := mustNew(t, limiter.Limit{N: 50, Per: time.Hour, Law: law})
			var got atomic.Int64
			var wg sync.WaitGroup
			for range n {
				wg.Go(func() {
					if l.Allow(1) {
						got.Add(1)
					}
				})
			}
			wg.Wait()
			if got.Load() != 50 {
				t.Errorf("%v: %d of %d admitted, want 50", law, got.Load(), n)
			}
		}
	}
}

// TestC54_RandomOperations: after 10^6 operations no caller waits, no unit is lost, and
// (TestMain) no goroutine is left.
func TestC54_RandomOperations(t *testing.T) {
	total := 1_000_000
	if raceEnabled || testing.Short() {
		total /= 5
	}
	const workers = 64
	limits := func(r *rand.Rand) []limiter.Limit {
		return []limiter.Limit{
			{N: 1 + r.Int64N(1000), Per: time.Millisecond, Law: limiter.Law(r.IntN(4))},
			{N: 1 + r.Int64N(1000), Per: time.Millisecond, Law: limiter.Law(r.IntN(4))},
		}[:1+r.IntN(2)]
	}
	l := mustNew(t, limiter.Limit{N: 500, Per: time.Millisecond})
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 1))
			for range total / workers {
				switch op := r.IntN(1000); {
				case op < 500:
					l.Allow(r.Int64N(3))
				case op < 700:
					ctx, cancel := context.WithTimeout(context.Background(), time.Duration(r.Int64N(int64(2*time.Millisecond))))
					err := l.Wait(ctx, r.Int64N(3))
					var refused *limiter.Refusal
					if err != nil && !errors.As(err, &refused) && err != context.DeadlineExceeded {
						t.Errorf("Wait: %v", err)
					}
					cancel()
				case op < 850:
					ctx, cancel := context.WithCancel(context.Background())
					time.AfterFunc(time.Duration(r.Int64N(int64(time.Millisecond))), cancel)
					_ = l.Wait(ctx, r.Int64N(3))
					cancel()
				case op < 900:
					l.Delay(r.Int64N(3))
				case op < 990:
					l.Remaining()
				case op < 997:
					l.Spend(r.Int64N(7) - 3)
				case op < 999:
					if err := l.SetLimits(limits(r)...); err != nil {
						t.Error(err)
					}
				default:
					l.PauseUntil(time.Now().Add(100 * time.Microsecond))
				}
			}
		})
	}
	wg.Wait()
	idle(t, l)
	if err := l.SetLimits(limiter.PerSecond(1000)); err != nil {
		t.Fatal(err)
	}
	<-time.After(1100 * time.Millisecond) // in real time, as all of this file is
	if got := l.Remaining(); got != 1000 {
		t.Errorf("%d left in the end, want 1000", got)
	}
}

// TestC55_CancelRacesRelease: 10^5 rounds; a unit is either got or still there.
func TestC55_CancelRacesRelease(t *testing.T) {
	rounds := 100_000
	if raceEnabled || testing.Short() {
		rounds /= 5
	}
	l := mustNew(t, limiter.Limit{N: 1, Per: 1000 * time.Hour})
	l.Spend(1)
	got, cancelled := 0, 0
	errs := make(chan error)
	for i := range rounds {
		ctx, cancel := context.WithCancel(context.Background())
		go func() { errs <- l.Wait(ctx, 1) }()
		for l.Waiting() == 0 {
			runtime.Gosched()
		}
		go cancel()
		for range i % 3 {
			runtime.Gosched()
		}
		l.Spend(-1) // frees the unit
		err := <-errs
		switch left := l.Remaining(); {
		case err == nil && left == 0:
			got++
		case err == context.Canceled && left == 1:
			cancelled++
			l.Spend(1)
		default:
			t.Fatalf("Wait: %v, and %d left", err, left)
		}
		cancel()
	}
	if n := l.Waiting(); n != 0 {
		t.Errorf("%d wait", n)
	}
	t.Logf("%d got it, %d were cancelled", got, cancelled)
}

// TestS43_FastDrain, in real time: late timers do not add up. 100,000 at 50,000
// per s drain within 2.2 s: what remains of the line when all are there takes a
// tenth more than its slots at most.
//
// Where the machine is busy with something else no line drains in time. So the least
// that lets goroutines wait in line is measured beside it, and Limiter may be late by
// four times as much more; if late timers added up, it would be late by seconds on a
// quiet machine too.
func TestS43_FastDrain(t *testing.T) {
	n, rate := int64(100_000), int64(50_000)
	most := 50 * time.Millisecond // late, and a tenth of the slots
	if raceEnabled {              // as long, with fewer; and it is the detector that is slow
		n, rate = n/5, rate/5
		most = 10 * time.Second
	}
	var late, bare time.Duration
	for range 5 {
		var slots time.Duration
		if late, slots = fastDrain(t, n, rate); late <= most+slots/10 {
			return
		}
		if bare = bareDrain(n, slots); late <= most+slots/10+4*bare {
			t.Logf("the machine is busy: late by %v, and the bare line by %v", late, bare)
			return
		}
	}
	t.Errorf("the last was late by %v each time, in a bare line by %v", late, bare)
}

// fastDrain returns by how much the last of a line is late, and how long its slots
// take.
func fastDrain(t *testing.T, n, rate int64) (late, slots time.Duration) {
	l := mustNew(t, limiter.Limit{N: rate, Per: time.Second, Law: limiter.Spaced})
	l.Spend(3 * rate) // while the line forms
	var wg sync.WaitGroup
	var done, failed atomic.Int64
	for range n {
		wg.Go(func() {
			if l.Wait(context.Background(), 1) != nil {
				failed.Add(1)
			}
			done.Add(1)
		})
	}
	for int64(l.Waiting())+done.Load() < n {
		runtime.Gosched()
	}
	t0, slots := time.Now(), l.Delay(1)
	wg.Wait()
	if failed.Load() > 0 {
		t.Errorf("%d failed", failed.Load())
	}
	return time.Since(t0) - slots, slots
}

// bareDrain returns how late the last of n goroutines wakes if one timer wakes all of
// them, one after another, and those that are due together.
func bareDrain(n int64, slots time.Duration) (late time.Duration) {
	turns := make([]chan struct{}, n)
	var wg sync.WaitGroup
	for i := range turns {
		turns[i] = make(chan struct{})
		wg.Go(func() { <-turns[i] })
	}
	t0 := time.Now()
	for woken := int64(0); woken < n; {
		due := min(n, int64(float64(n)*float64(time.Since(t0))/float64(slots)))
		for ; woken < due; woken++ {
			close(turns[woken])
		}
		<-time.After(slots / time.Duration(n))
	}
	wg.Wait()
	return time.Since(t0) - slots
}

// TestS44_Herd, in real time: 30,000 callers at one instant on 8 threads, and a
// drained limit of 10,000 per s admits at most 10,100 in the first second.
func TestS44_Herd(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	n := int64(10_000)
	if raceEnabled {
		n /= 4 // the detector is slow; the herd is as large against the limit
	}
	for _, limit := range []limiter.Limit{
		limiter.PerSecond(n), {N: n, Per: time.Second, Law: limiter.Bucket}, {N: n, Per: time.Second, Law: limiter.Spaced},
		{N: n, Per: time.Second, Law: limiter.Sliding}, {N: n, Law: limiter.Calendar, Unit: limiter.Minute},
	} {
		t.Run(limit.Law.String(), func(t *testing.T) {
			l := mustNew(t, limit)
			ctx, cancel := context.WithCancel(context.Background())
			var got atomic.Int64
			var ready, done sync.WaitGroup
			gate := make(chan struct{})
			for range 3 * n {
				ready.Add(1)
				done.Go(func() {
					ready.Done()
					<-gate
					if l.Wait(ctx, 1) == nil {
						got.Add(1)
					}
				})
			}
			ready.Wait()
			t0 := time.Now()
			l.Spend(n)
			close(gate)
			<-time.After(900 * time.Millisecond) // S44 is about real time
			admitted := got.Load()
			// What the law allows in as long as it really took, and 1 % more.
			if most := int64(float64(n)*time.Since(t0).Seconds()) + 100; admitted > most {
				t.Errorf("%d admitted in %v, want %d at most", admitted, time.Since(t0), most)
			}
			cancel()
			done.Wait()
			idle(t, l)
		})
	}
}

// TestS4_AllowInParallel, in real time: callers that do not wait, for one unit and for
// more, while other goroutines read the budget, never start more than N in any
// period. A start was at an instant between a reading of the clock before and one
// after it.
func TestS4_AllowInParallel(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	const n, per, callers = 50, 200 * time.Microsecond, 4
	type start struct{ from, to time.Duration }
	l := mustNew(t, limiter.Limit{N: n, Per: per})
	begin := time.Now()
	var all [callers][]start
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for i := 0; ; i++ {
				from := time.Since(begin)
				if from > 200*time.Millisecond {
					return
				}
				cost := int64(1)
				if i%1000 == 0 {
					cost = 2
				}
				if l.Allow(cost) {
					s := start{from, time.Since(begin)}
					for range cost {
						all[c] = append(all[c], s)
					}
				}
				if i%300 == 0 {
					l.Remaining()
				}
			}
		})
	}
	wg.Wait()
	list := slices.Concat(all[:]...)
	slices.SortFunc(list, func(a, b start) int { return cmp.Compare(a.from, b.from) })
	for i, first := range list {
		in := 0
		for _, s := range list[i:] {
			if s.from >= first.from+per {
				break
			}
			if s.to < first.from+per {
				in++
			}
		}
		if in > n {
			t.Fatalf("%d started within %v after %v, want %d at most", in, per, first.from, n)
		}
	}
	if len(list) < n {
		t.Errorf("%d started in all", len(list))
	}
}
