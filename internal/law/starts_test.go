package law

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Starts admits just what its window would, and hands over to it and back
// without forgetting a start. A reading older than the latest start, or the
// latest one under the lock, counts as that. Callers who have looked at next
// long ago decide the same, or nothing.
func TestStartsCountAsTheWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := Spec{
			N:   rapid.SampledFrom([]int64{1, 2, 3, 7, 8, 9, 30}).Draw(t, "n"),
			Per: rapid.SampledFrom([]time.Duration{1, 10, 999, time.Millisecond, 100 * 24 * time.Hour}).Draw(t, "per"),
		}
		plain, quick := New(spec, time.Time{}), New(spec, time.Time{})
		now := rapid.Int64Range(0, 1_000_000).Draw(t, "start")
		q, last := NewQuick(quick, now), now
		s := q.Starts
		s.letIn(quick, now)
		seen := []int64{s.next.Load()} // since it was held last
		step := rapid.SampledFrom([]int64{0, 0, 1, 3, int64(spec.Per) / 4, int64(spec.Per), -2, -int64(spec.Per)})
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			reading := max(0, now+step.Draw(t, "later"))
			now = max(now, reading)
			if now > s.until {
				if _, ok := s.Try(now, 1); ok || q.Release(quick, now) {
					t.Fatal("it decided beyond what fits into its slots")
				}
				return
			}
			seen = append(seen, s.next.Load())
			i := len(seen) - 1 - rapid.SampledFrom([]int{0, 0, 0, 1, 10, 99}).Draw(t, "slow")
			took, ok := s.try(seen[max(0, i)], reading, 1)
			late := max(reading, last)
			if at, _ := plain.Earliest(late, late, 1); ok && took != (at <= late) {
				t.Fatalf("at %d, after %d: got %v, the window says %d", reading, last, took, at)
			}
			if took {
				last = late
				plain.Take(last, 1)
			}
			if ok && rapid.IntRange(0, 3).Draw(t, "hold") > 0 {
				continue
			}
			if got := q.Hold(quick, now); got != now {
				t.Fatalf("held at %d, got %d", now, got)
			}
			slow := rapid.SampledFrom(seen).Draw(t, "too slow")
			if _, ok := s.try(slow, now, 1); ok {
				t.Fatal("it decided though held")
			}
			switch n := rapid.Int64Range(-2, 2).Draw(t, "spend"); {
			case n == 2:
				plain.Give(last, 1, false)
				quick.Give(last, 1, false)
			default:
				plain.Spend(now, n)
				quick.Spend(now, n)
			}
			if got, want := quick.Remaining(now), plain.Remaining(now); got != want {
				t.Fatalf("at %d: %d left, want %d", now, got, want)
			} else if got < 0 {
				return // in debt: it stays held
			}
			s.letIn(quick, now)
			if _, ok := s.try(slow, now, 1); ok {
				t.Fatal("somebody from before the hold decided")
			}
			last, seen = now, nil
		}
	})
}

// Nobody is refused for having been slow, be it by so many laps that a slot looks
// as it did.
func TestStartsManyLapsBehind(t *testing.T) {
	st := New(Spec{N: 1, Per: 1}, time.Time{})
	s := NewQuick(st, 0).Starts
	s.letIn(st, 0)
	next := s.next.Load()
	for now := range Time(1000) {
		if took, ok := s.try(next, 0, 1); now > 0 && (took || ok) {
			t.Fatalf("%d laps behind: got %v, %v", now, took, ok)
		} else if took {
			continue
		}
		if took, ok := s.Try(now, 1); !took || !ok {
			t.Fatalf("at %d: got %v, %v", now, took, ok)
		}
	}
}

// letIn releases s for good.
func (s *Starts) letIn(st State, now Time) {
	for s.next.Load() == held {
		s.release(st.(*window), now)
	}
}

// S4: callers on several threads, each with its own reading of the clock, start
// no more than n in any period, while others hold the window in the middle of it.
func TestS4_StartsAreExactInParallel(t *testing.T) {
	const n, per, callers, calls = 5, 40, 4, 40_000
	var clock, quick atomic.Int64
	l := &lockedWindow{st: New(Spec{N: n, Per: per}, time.Time{})}
	l.q = NewQuick(l.st, 0)
	// A start was at an instant from the reading that its caller has made until
	// the one after it.
	type start struct{ from, to Time }
	var all [callers][]start
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for i := range calls {
				from := clock.Add(1)
				took, ok := l.q.Starts.Try(from, 1)
				if ok {
					quick.Add(1)
				} else {
					took, _ = l.admit(&clock)
				}
				if took {
					all[c] = append(all[c], start{from, clock.Load()})
				}
				if i%50 == 0 {
					l.hold(&clock)
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
			t.Fatalf("%d started in the period from %d on, want %d at most", in, first.from, n)
		}
	}
	if quick.Load() < callers*calls/2 {
		t.Errorf("%d of %d calls were decided without the lock", quick.Load(), callers*calls)
	}
}

// Callers on several threads start as many as there are, no more and no fewer,
// while others hold the window in the middle of it. The clock moves on when
// somebody is refused, so that no unit is left.
func TestStartsLoseNothing(t *testing.T) {
	for _, n := range []int64{1, 3, 20, 64} {
		const instants, callers = 3000, 4
		l := &lockedWindow{st: New(Spec{N: n, Per: 1}, time.Time{})}
		l.q = NewQuick(l.st, 0)
		var clock, took atomic.Int64
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				for now := clock.Load(); now < instants; now = clock.Load() {
					admitted, ok := l.q.Starts.Try(now, 1)
					if !ok {
						admitted, now = l.admit(&clock)
					}
					if admitted {
						took.Add(1)
					} else {
						clock.CompareAndSwap(now, now+1)
					}
				}
			})
		}
		all.Go(func() {
			for clock.Load() < instants {
				l.hold(&clock)
			}
		})
		all.Wait()
		end := clock.Load()
		got := took.Load() + l.left(end)
		if want := n * (end + 1); got != want {
			t.Errorf("%d per instant: %d started or left, want %d", n, got, want)
		}
	}
}

// A lockedWindow is a window with its Quick and its lock, as in a line.
type lockedWindow struct {
	mu   sync.Mutex
	st   State
	q    *Quick
	last Time
}

func (l *lockedWindow) admit(clock *atomic.Int64) (took bool, now Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = l.q.Hold(l.st, max(l.last, clock.Load()))
	took = Admit(l.st, l.last, 1)
	l.q.Release(l.st, l.last)
	return took, l.last
}

// hold lets nobody in for a moment, and then everybody.
func (l *lockedWindow) hold(clock *atomic.Int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = l.q.Hold(l.st, max(l.last, clock.Load()))
	l.q.Starts.letIn(l.st, l.last)
}

func (l *lockedWindow) left(now Time) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = l.q.Hold(l.st, max(l.last, now))
	return l.st.Remaining(l.last)
}
