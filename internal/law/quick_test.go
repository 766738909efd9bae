package law

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A Quick admits just what its bucket would, and hands over to it and back
// without losing a fraction.
func TestQuickCountsAsTheBucket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := Spec{
			Kind:  Bucket,
			N:     rapid.SampledFrom([]int64{1, 3, 7, 1000, 1001, 700_000_000, MaxN}).Draw(t, "n"),
			Per:   rapid.SampledFrom([]time.Duration{1, 10, 999, time.Millisecond, time.Second, time.Hour}).Draw(t, "per"),
			Burst: rapid.SampledFrom([]int64{0, 1, 2, 50}).Draw(t, "burst"),
		}
		plain, quick := New(spec, time.Time{}), New(spec, time.Time{})
		now := rapid.Int64Range(0, 1_000_000).Draw(t, "start")
		q := NewQuick(quick, now)
		if q == nil {
			return // too large for a word
		}
		if !q.Release(quick, now) {
			t.Fatal("a full bucket does not fit")
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now += rapid.SampledFrom([]int64{0, 0, 1, 2, 333, 1_000_000, 1_000_000_000}).Draw(t, "later")
			cost := rapid.Int64Range(1, 5).Draw(t, "cost")
			took, ok := q.Try(now, cost)
			if now > q.until {
				if ok {
					t.Fatal("it decided beyond its ticks")
				}
				return
			}
			at, _ := plain.Earliest(now, now, cost)
			if !ok || took != (at <= now) {
				t.Fatalf("at %d, a cost of %d: got %v, %v, the bucket says %d", now, cost, took, ok, at)
			}
			if took {
				plain.Take(now, cost)
			}
			if !rapid.Bool().Draw(t, "hold") {
				continue
			}
			q.Hold(quick, now)
			if _, ok := q.Try(now, 1); ok {
				t.Fatal("it decided though held")
			}
			n := rapid.Int64Range(-3, 3).Draw(t, "spend")
			plain.Spend(now, n)
			quick.Spend(now, n)
			if got, want := quick.Remaining(now), plain.Remaining(now); got != want {
				t.Fatalf("at %d: %d left, want %d", now, got, want)
			}
			if !q.Release(quick, now) {
				return
			}
		}
	})
}

// Callers on several threads with stale readings of the clock take no more than
// there is, and Hold, in the middle of it, loses nothing.
func TestQuickIsExactInParallel(t *testing.T) {
	st := New(Spec{Kind: Bucket, N: 1, Per: time.Hour, Burst: 1000}, time.Time{})
	q := NewQuick(st, 0)
	q.Release(st, 0)
	var took atomic.Int64
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for j := range 10_000 {
				if ok, decided := q.Try(int64(j%7*i), 1); ok && decided {
					took.Add(1)
				}
			}
		})
	}
	for range 100 {
		q.Hold(st, 30)
		q.Release(st, 30)
	}
	all.Wait()
	q.Hold(st, 30)
	if got := took.Load() + st.Remaining(30); got != 1000 {
		t.Errorf("%d taken and left, want 1000", got)
	}
}
