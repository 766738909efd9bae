package law

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const (
	ms  = int64(time.Millisecond)
	sec = int64(time.Second)
)

// starts returns when n requests start that come together at t.
func starts(st State, t Time, n int, cost int64) (at []Time) {
	for range n {
		t, _ = st.Earliest(t, t, cost)
		if t == Never {
			return append(at, Never)
		}
		st.Take(t, cost)
		at = append(at, t)
	}
	return at
}

// seconds returns instants of a table.
func seconds(s ...float64) (at []Time) {
	for _, s := range s {
		at = append(at, int64(math.Round(s*1e9)))
	}
	return at
}

// TestStarts is the statements about who starts when, law by law.
func TestStarts(t *testing.T) {
	day := time.Date(2026, 11, 30, 23, 59, 58, 0, time.UTC)
	for _, c := range []struct {
		name string
		spec Spec
		from float64
		n    int
		cost int64
		want []Time
	}{
		{"S1 rolling window", Spec{N: 2, Per: 10 * time.Second}, 0, 5, 1, seconds(0, 0, 10, 10, 20)},
		{"C53 late burst", Spec{N: 5, Per: time.Second}, 0.999, 10, 1, seconds(.999, .999, .999, .999, .999, 1.999, 1.999, 1.999, 1.999, 1.999)},
		{"S23 first burst", Spec{N: 1, Per: time.Second, Kind: Bucket, Burst: 3}, 5, 5, 1, seconds(5, 5, 5, 6, 7)},
		{"S26 spaced", Spec{N: 1, Per: time.Second, Kind: Spaced}, 3, 4, 1, seconds(3, 4, 5, 6)},
		{"spaced cost", Spec{N: 1, Per: time.Second, Kind: Spaced}, 0, 3, 3, seconds(0, 3, 6)},
		{"window cost", Spec{N: 3, Per: time.Second}, 0, 3, 2, seconds(0, 1, 2)},
		{"bucket cost", Spec{N: 2, Per: time.Second, Kind: Bucket}, 0, 3, 2, seconds(0, 1, 2)},
		{"S25 calendar lets 2N through", Spec{N: 2, Kind: Calendar, Unit: Day}, 1, 5, 1, seconds(1, 1, 2, 2, 86402)},
		{"S28 zero", Spec{Per: time.Second}, 0, 1, 1, []Time{Never}},
		{"S28 zero bucket", Spec{Per: time.Second, Kind: Bucket}, 0, 1, 1, []Time{Never}},
		{"S28 zero spaced", Spec{Per: time.Second, Kind: Spaced}, 0, 1, 1, []Time{Never}},
		{"S28 zero sliding", Spec{Per: time.Second, Kind: Sliding}, 0, 1, 1, []Time{Never}},
		{"S28 zero calendar", Spec{Kind: Calendar, Unit: Day}, 0, 1, 1, []Time{Never}},
		{"S28 never fits", Spec{N: 2, Per: time.Second}, 0, 1, 3, []Time{Never}},
		{"S28 never fits bucket", Spec{N: 5, Per: time.Second, Kind: Bucket, Burst: 2}, 0, 1, 3, []Time{Never}},
		{"S28 never fits sliding", Spec{N: 2, Per: time.Second, Kind: Sliding}, 0, 1, 3, []Time{Never}},
		{"S28 never fits calendar", Spec{N: 2, Kind: Calendar, Unit: Day}, 0, 1, 3, []Time{Never}},
		{"burst above N", Spec{N: 1, Per: time.Second, Kind: Bucket, Burst: 5}, 0, 2, 5, seconds(0, 5)},
		{"1 per 10 years", Spec{N: 1, Per: MaxPer}, 0, 3, 1, []Time{0, int64(MaxPer), 2 * int64(MaxPer)}},
		{"1 per 10 years, bucket", Spec{N: 1, Per: MaxPer, Kind: Bucket}, 0, 3, 1, []Time{0, int64(MaxPer), 2 * int64(MaxPer)}},
		{"1 per 10 years, spaced", Spec{N: 1, Per: MaxPer, Kind: Spaced}, 0, 3, 1, []Time{0, int64(MaxPer), 2 * int64(MaxPer)}},
		{"1 per 10 years, sliding", Spec{N: 1, Per: MaxPer, Kind: Sliding}, 0, 3, 1, []Time{0, 2 * int64(MaxPer), 4 * int64(MaxPer)}},
		{"1 per ns", Spec{N: 1, Per: 1}, 0, 3, 1, []Time{0, 1, 2}},
		{"1 per ns, bucket", Spec{N: 1, Per: 1, Kind: Bucket}, 0, 3, 1, []Time{0, 1, 2}},
		{"1 per ns, spaced", Spec{N: 1, Per: 1, Kind: Spaced}, 0, 3, 1, []Time{0, 1, 2}},
		{"10^9 per ns, spaced", Spec{N: MaxN, Per: 1, Kind: Spaced}, 0, 3, MaxN, []Time{0, 1, 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := starts(New(c.spec, day), int64(c.from*1e9), c.n, c.cost)
			if !slices.Equal(got, c.want) {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

// TestRatesAreExact: no interval is cut to whole nanoseconds (C83: 65,535 per s
// is 65,535 per s).
func TestRatesAreExact(t *testing.T) {
	for _, c := range []struct {
		n   int64
		per time.Duration
	}{{1001, time.Millisecond}, {65_535, time.Second}, {3, 10 * time.Nanosecond}, {MaxN, time.Second}, {7, MaxPer}} {
		for _, kind := range []Kind{Window, Bucket, Spaced} {
			t.Run(fmt.Sprintf("%d per %v/%v", c.n, c.per, kind), func(t *testing.T) {
				s := Spec{N: c.n, Per: c.per, Kind: kind}
				st, n := New(s, wall0), min(c.n, 2000)
				if kind == Bucket {
					st.Take(0, c.n) // the burst
				} else if kind == Window && n < c.n {
					st.Take(0, c.n-n)
				}
				at := starts(st, 0, int(n)+1, 1)
				want := int64(c.per) // of the one that follows n units
				switch kind {
				case Bucket:
					want = (n + 1) * int64(c.per) / c.n
				case Spaced:
					want = n * int64(c.per) / c.n
				}
				if got := at[n]; got != want {
					t.Errorf("unit %d started at %d, want %d", n+1, got, want)
				}
			})
		}
	}
}

// TestS20toS22Bucket tells the three statements on the bucket's level.
func TestS20toS22Bucket(t *testing.T) {
	st := New(Spec{N: 10, Per: time.Second, Kind: Bucket, Burst: 100}, wall0)
	take := func(now Time, cost int64) bool {
		if at, _ := st.Earliest(now, now, cost); at > now {
			return false
		}
		st.Take(now, cost)
		return true
	}
	left := func(now Time, want int64) {
		t.Helper()
		if got := st.Remaining(now); got != want {
			t.Errorf("%d left at %v, want %d", got, time.Duration(now), want)
		}
	}
	left(0, 100)
	take(0, 1)
	left(0, 99)
	take(0, 5)
	left(0, 94)
	take(0, 91)
	left(0, 3)
	if take(0, 5) {
		t.Error("5 of 3 were taken")
	}
	left(0, 3)
	take(0, 3)
	left(3*sec, 30) // empty, 3 s
	left(9*sec+sec/2, 95)
	left(10*sec+sec/2, 100) // not 105
	st.Take(20*sec, 99)
	if !take(20*sec, 1) || take(20*sec, 1) {
		t.Error("of two who want one unit not exactly one got it")
	}
	if at, _ := st.Earliest(20*sec, 20*sec, 101); at != Never {
		t.Errorf("a cost of 101 could start at %d, want never", at)
	}
	left(20*sec, 0)
	st.Spend(20*sec, 7)
	left(20*sec, -7) // debt, only by Spend
}

// TestS24Sliding is the example of the statement: 80 x 20/60 + 50 = 76.67.
func TestS24Sliding(t *testing.T) {
	for used, want := range map[int64]bool{50: true, 72: true, 73: false, 74: false} {
		st := New(Spec{N: 100, Per: time.Minute, Kind: Sliding}, wall0)
		st.Take(0, 80)
		st.Take(60*sec, used)
		at, _ := st.Earliest(100*sec, 100*sec, 1)
		if got := at == 100*sec; got != want {
			t.Errorf("with %d in this window: admitted %v, want %v", used, got, want)
		}
	}
}

// TestDebt: S50, under each law that a Spend overdraws, what comes next waits
// until the debt has aged out.
func TestDebt(t *testing.T) {
	for _, c := range []struct {
		spec      Spec
		remaining int64
		at        Time
	}{
		{Spec{N: 10, Per: time.Second}, -5, sec},
		{Spec{N: 10, Per: time.Second, Kind: Bucket}, -5, 600 * ms},
		{Spec{N: 10, Per: time.Second, Kind: Spaced}, -14, 1500 * ms},
		// 15 x (1 - x) <= 9 in the next window.
		{Spec{N: 10, Per: time.Second, Kind: Sliding}, -5, 1400 * ms},
		{Spec{N: 10, Kind: Calendar, Unit: Minute}, -5, 60 * sec},
	} {
		t.Run(c.spec.Kind.String(), func(t *testing.T) {
			st := New(c.spec, wall0)
			st.Spend(0, 15)
			if got := st.Remaining(0); got != c.remaining {
				t.Errorf("%d left, want %d", got, c.remaining)
			}
			if at, _ := st.Earliest(0, 0, 1); at != c.at {
				t.Errorf("the next could start at %v, want %v", time.Duration(at), time.Duration(c.at))
			}
			if st.Recovered(0) {
				t.Error("a budget in debt counts as recovered")
			}
			st.Spend(0, -15)
			if at, _ := st.Earliest(0, 0, 1); at != 0 {
				t.Errorf("after all is given back the next could start at %v, want now", time.Duration(at))
			}
			st.Spend(0, -15) // there is nothing to give back
			if got, want := st.Remaining(0), New(c.spec, wall0).Remaining(0); got != want {
				t.Errorf("%d left after too much was given back, want %d", got, want)
			}
		})
	}
}

// TestSaturation: sums as large as they come saturate and do not wrap: no cost
// fits soon, and nothing panics.
func TestSaturation(t *testing.T) {
	for _, s := range []Spec{
		{N: MaxN, Per: MaxPer}, {N: 1, Per: MaxPer}, {N: 1, Per: 1},
		{N: MaxN, Per: MaxPer, Kind: Bucket}, {N: 1, Per: MaxPer, Kind: Bucket, Burst: 10}, {N: 1, Per: MaxPer, Kind: Bucket},
		{N: 1, Per: MaxPer, Kind: Spaced}, {N: MaxN, Per: MaxPer, Kind: Spaced},
		{N: MaxN, Per: MaxPer, Kind: Sliding}, {N: 1, Per: MaxPer, Kind: Sliding},
		{N: MaxN, Kind: Calendar, Unit: Month},
		{N: MaxN, Per: MaxPer, Strict: true}, {N: 1, Per: MaxPer, Kind: Spaced, Strict: true},
	} {
		t.Run(s.String(), func(t *testing.T) {
			st := New(s, wall0)
			for range 3 {
				st.Spend(5, math.MaxInt64)
				if strict := st.Take(5, MaxN); strict != s.Strict {
					t.Errorf("strict: %v, want %v", strict, s.Strict)
				}
			}
			if got := st.Remaining(5); got >= 0 {
				t.Errorf("%d left, want a debt", got)
			}
			if at, _ := st.Earliest(5, 5, 1); at <= 5 {
				t.Errorf("could start at %d", at)
			}
			st.Spend(5, math.MinInt64)
			st.Earliest(Never-1, Never-1, 1)
			st.Earliest(5, 5, math.MaxInt64)
			st.Recovered(Never - 1)
			var p Plan
			p.Earliest(st, 5, 5, 1, true)
		})
	}
}

// TestClockStandsStillOrRunsBack: C82, an older instant counts as the latest
// seen: no law forgets, and none admits more.
func TestClockStandsStillOrRunsBack(t *testing.T) {
	for _, s := range []Spec{
		{N: 3, Per: time.Second}, {N: 3, Per: time.Second, Kind: Bucket},
		{N: 3, Per: time.Second, Kind: Sliding}, {N: 3, Kind: Calendar, Unit: Minute},
	} {
		t.Run(s.Kind.String(), func(t *testing.T) {
			st := New(s, wall0)
			const now = 100 * int64(time.Minute)
			for i, at := range []Time{now, now, now - 1} {
				if got, _ := st.Earliest(at, at, 1); got > now {
					t.Errorf("start %d could be at %d, want at most %d", i, got, now)
				}
				st.Take(at, 1)
			}
			for _, at := range []Time{now, now - 1, now - 1, now - 300*sec} {
				if got, _ := st.Earliest(at, at, 1); got <= now {
					t.Errorf("seen at %d, the fourth could start at %d", at, got)
				}
				if st.Recovered(at) {
					t.Errorf("recovered at %d", at)
				}
				if got := st.Remaining(at); got > 0 {
					t.Errorf("%d left at %d, want none", got, at)
				}
			}
		})
	}
}

// TestPromiseWithGiveBack: units given back late never let more through than
// the bucket's promise: those of A are worth less once B has found it all but
// full.
func TestPromiseWithGiveBack(t *testing.T) {
	for _, kind := range []Kind{Bucket, Spaced} {
		t.Run(kind.String(), rapid.MakeCheck(func(rt *rapid.T) {
			s := drawSpec(rt, kind)
			st := New(s, wall0)
			var now Time
			var takes ledger
			for range rapid.IntRange(1, 40).Draw(rt, "steps") {
				now += rapid.Int64Range(0, int64(s.Per)).Draw(rt, "by")
				if len(takes) > 0 && rapid.IntRange(0, 2).Draw(rt, "give") == 0 {
					e := &takes[rapid.IntRange(0, len(takes)-1).Draw(rt, "which")]
					st.Give(e.At, e.Cost, false)
					e.Cost = 0
					continue
				}
				cost := rapid.Int64Range(1, s.burst()).Draw(rt, "cost")
				if kind == Spaced {
					cost = 1
				}
				if at, _ := st.Earliest(now, now, cost); at == now {
					st.Take(now, cost)
					takes = append(takes, Entry{now, cost})
				}
			}
			burst := s.burst()
			if kind == Spaced {
				burst = 1
			}
			for i := range takes {
				var sum int64
				for _, e := range takes[i:] {
					// At most burst + rate x time from one start to another.
					// The clock shows whole nanoseconds only.
					if sum += e.Cost; takes[i].Cost > 0 && e.Cost > 0 && (sum-burst)*int64(s.Per) >= s.N*(e.At-takes[i].At+1) {
						rt.Fatalf("%v: %d units from %d to %d: %v", s, sum, takes[i].At, e.At, takes)
					}
				}
			}
		}))
	}
}

// TestGiveBackIsExact: with nothing taken since, a unit given back is as if it
// had never been taken.
func TestGiveBackIsExact(t *testing.T) {
	for _, c := range []struct {
		kind Kind
		want int64
	}{{Window, 80}, {Bucket, 80}, {Sliding, 80}, {Calendar, 80}} {
		t.Run(c.kind.String(), func(t *testing.T) {
			s := Spec{N: 100, Per: time.Minute, Kind: c.kind}
			if c.kind == Calendar {
				s = Spec{N: 100, Kind: Calendar, Unit: Minute}
			}
			st := New(s, wall0)
			st.Take(0, 90)
			st.Take(0, 10)
			st.Give(0, 50, false) // 40 instead of 90
			st.Give(0, 10, false)
			st.Give(0, 20, false)
			if got := st.Remaining(0); got != c.want {
				t.Errorf("%d left, want %d", got, c.want)
			}
		})
	}
}

// TestStrict: a unit comes back one period after its answer; how long the
// answer takes is unknown, and only a lower bound is told.
func TestStrict(t *testing.T) {
	st := New(Spec{N: 2, Per: time.Second, Strict: true}, wall0)
	check := func(now, from, want Time, atLeast bool) {
		t.Helper()
		if at, loose := st.Earliest(now, from, 1); at != want || loose != atLeast {
			t.Errorf("at %v: could start at %v (at least: %v), want %v (%v)", time.Duration(now), time.Duration(at), loose, time.Duration(want), atLeast)
		}
	}
	st.Take(0, 1)
	st.Take(0, 1)
	check(0, 0, sec, true)
	check(300*ms, 300*ms, 1300*ms, true)
	check(300*ms, 5*sec, 5*sec, true) // the answers may come in time for it
	st.Done(400*ms, 1)
	check(400*ms, 400*ms, 1400*ms, false)
	check(1400*ms, 1400*ms, 1400*ms, false)
	if got := st.Remaining(400 * ms); got != 0 {
		t.Errorf("%d left, want 0", got)
	}
	st.Give(0, 1, true) // the other was never sent
	check(400*ms, 400*ms, 400*ms, false)
	if st.Recovered(1399*ms) || !st.Recovered(1400*ms) {
		t.Error("it is not recovered exactly one period after the answer")
	}

	st = New(Spec{N: 2, Per: time.Second, Kind: Spaced, Strict: true}, wall0)
	st.Take(0, 1)
	check(0, 0, 500*ms, true)
	check(200*ms, 5*sec, 5*sec, true)
	st.Done(200*ms, 1)
	check(200*ms, 200*ms, 700*ms, false)
}

// TestStrictSurvivesLoosening: units in flight when Strict is switched off and
// on again are counted until they are answered, once.
func TestStrictSurvivesLoosening(t *testing.T) {
	strict := Spec{N: 1, Per: time.Second, Strict: true}
	loose := Spec{N: 1, Per: time.Second}
	st := New(strict, wall0)
	st.Take(0, 1)
	st = Convert(st, loose, 100*ms, wall0)
	if at, _ := st.Earliest(100*ms, 100*ms, 1); at < 1100*ms {
		t.Errorf("could start at %v while another is in flight", time.Duration(at))
	}
	st.Done(500*ms, 1)
	if at, atLeast := st.Earliest(500*ms, 500*ms, 1); at > 1500*ms || atLeast {
		t.Errorf("could start at %v (at least: %v), want no later than one period after the answer", time.Duration(at), atLeast)
	}
}

// TestConvert: under every other law, what is remembered still counts, and is
// forgotten in the end.
func TestConvert(t *testing.T) {
	kinds := []Spec{
		{N: 10, Per: time.Minute}, {N: 10, Per: time.Minute, Kind: Bucket}, {N: 10, Per: time.Minute, Kind: Spaced},
		{N: 10, Per: time.Minute, Kind: Sliding}, {N: 10, Kind: Calendar, Unit: Minute},
		{N: 10, Per: time.Minute, Strict: true}, {N: 10, Per: time.Minute, Kind: Spaced, Strict: true},
	}
	for _, from := range kinds {
		for _, to := range kinds {
			t.Run(from.String()+" to "+to.String(), func(t *testing.T) {
				st := New(from, wall0)
				for range 10 {
					if st.Take(sec, 1) {
						st.Done(sec, 1)
					}
				}
				st = Convert(st, to, 2*sec, wall0)
				if at, _ := st.Earliest(2*sec, 2*sec, 1); at < 7*sec {
					t.Errorf("after 10 of 10 units the next could start at %v", time.Duration(at))
				}
				if st.Recovered(2 * sec) {
					t.Error("nothing is remembered")
				}
				if !st.Recovered(1000 * sec) {
					t.Error("it remembers for ever")
				}
				if at, _ := st.Earliest(1000*sec, 1000*sec, 1); at != 1000*sec {
					t.Errorf("long after, the next could start at %v", time.Duration(at))
				}
			})
		}
	}
	for _, s := range kinds {
		if st := Convert(Open(), s, sec, wall0); !st.Recovered(sec) {
			t.Errorf("%v: a budget that had no limit remembers", s)
		}
	}
}

// TestConvertKeepsHistory: S10's change, 1 per 10 s to 5 per 10 s at 3 s, and
// back.
func TestConvertKeepsHistory(t *testing.T) {
	one, five := Spec{N: 1, Per: 10 * time.Second}, Spec{N: 5, Per: 10 * time.Second}
	st := New(one, wall0)
	st.Take(0, 1)
	st = Convert(st, five, 3*sec, wall0)
	if got, want := starts(st, 3*sec, 10, 1), seconds(3, 3, 3, 3, 10, 13, 13, 13, 13, 20); !slices.Equal(got, want) {
		t.Errorf("got %d, want %d", got, want)
	}
	st = Convert(st, one, 21*sec, wall0)
	if at, _ := st.Earliest(21*sec, 21*sec, 1); at != 30*sec {
		t.Errorf("could start at %v, want 30s", time.Duration(at))
	}
}

// TestManyStarts: a window remembers 65,536 starts one by one; beyond that a
// unit comes back at most one slice late, and never early.
func TestManyStarts(t *testing.T) {
	const n = 200_000
	s := Spec{N: n, Per: time.Second}
	st, o := New(s, wall0).(*window), make([]Time, 0, n)
	for i := range n {
		at := int64(i) * (sec / n)
		st.Take(at, 1)
		o = append(o, at)
	}
	if st.len > 2*exact {
		t.Errorf("it remembers %d entries", st.len)
	}
	slice := sec/exact + 1
	for _, k := range []int{1, 1000, 65_536, 65_537, 100_000, n} {
		at, _ := st.Earliest(sec-1, sec-1, int64(k))
		if want := o[k-1] + sec; at < want || at > want+slice {
			t.Errorf("%d units could start at %d, want %d to one slice later", k, at, want)
		}
	}
	st.Give(o[n-1], 1, false)
	if at, _ := st.Earliest(sec-1, sec-1, 1); at != sec-1 {
		t.Errorf("after one of the last slice was given back the next could start at %d", at)
	}
	if st.Recovered(2*sec - 2*sec/n - 1) {
		t.Error("it forgets early")
	}
	if !st.Recovered(2*sec + slice) {
		t.Error("it does not forget")
	}
	if st.log != nil {
		t.Error("an idle window keeps its memory")
	}
}

func TestTakeLate(t *testing.T) {
	const slot, now = 100 * ms, 101 * ms
	for _, c := range []struct {
		spec Spec
		next Time // of the next start
	}{
		{Spec{N: 10, Per: time.Second, Kind: Spaced}, slot + 100*ms},
		{Spec{N: 10, Per: time.Second, Kind: Bucket, Burst: 1}, slot + 100*ms},
		{Spec{N: 1, Per: 100 * time.Millisecond}, now + 100*ms},
	} {
		st := New(c.spec, wall0)
		TakeLate(st, slot, now, 1)
		if at, _ := st.Earliest(now, now, 1); at != c.next {
			t.Errorf("%v: the next could start at %v, want %v", c.spec, time.Duration(at), time.Duration(c.next))
		}
	}
}

// TestPace: after a pause, for 10 s, the k-th start comes no earlier than its
// end plus k intervals.
func TestPace(t *testing.T) {
	p := NewPace(Spec{N: 5, Per: time.Second}, Spec{N: 100, Per: time.Minute})
	if at, _ := p.Earliest(0, 0, 1); at != 0 {
		t.Errorf("without a pause: %d", at)
	}
	if !p.Until(0, 5*sec) || p.Until(0, 4*sec) || p.Until(0, 5*sec) {
		t.Error("not the longest pause wins")
	}
	if got, want := starts(p, 0, 5, 1), seconds(5, 5.2, 5.4, 5.6, 5.8); !slices.Equal(got, want) {
		t.Errorf("got %d, want %d", got, want)
	}
	p.Give(5*sec, 1, false)
	if at, _ := p.Earliest(6*sec, 0, 1); at != 5800*ms {
		t.Errorf("after one was given back: %v", time.Duration(at))
	}
	if at, _ := p.Earliest(0, 15*sec, 1); at != 15*sec || p.Recovered(15*sec-1) || !p.Recovered(15*sec) {
		t.Error("the gentle restart is not over after 10 s")
	}
	// More starts than fit into 10 s do not make it longer.
	p = NewPace(Spec{N: 1, Per: time.Second})
	p.Until(-1, 0)
	if got := starts(p, 0, 20, 1); got[9] != 9*sec || got[10] != 10*sec || got[19] != 10*sec {
		t.Errorf("got %d, want one per second until 10 s", got)
	}
	// The interval is at most 1 s.
	p.SetLimits(Spec{N: 1, Per: time.Hour})
	p.Until(0, 100*sec)
	if got, want := starts(p, 0, 3, 1), seconds(100, 101, 102); !slices.Equal(got, want) {
		t.Errorf("got %d, want %d", got, want)
	}
}

// TestPaceFound: without a limit the rate is what succeeded before. It holds for
// 10 s, doubles each second from then on, and lets no two start at once.
func TestPaceFound(t *testing.T) {
	p := NewPace()
	p.Until(-1, 0)
	want := seconds(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10.5, 11, 11.25, 11.5, 11.75, 12, 12.125)
	if got := starts(p, 0, len(want), 1); !slices.Equal(got, want) {
		t.Errorf("got  %d\nwant %d", got, want)
	}
	p.Found(2, 0, NewPace())
	p.Until(0, 20*sec)
	for _, c := range []struct {
		now, started Time
		want         int64
	}{
		{sec, -sec, 2}, {sec, 1, 2}, // too early, too late
		{sec, 0, 3}, {sec, 1 - sec, 4},
		{20 * sec, 0, 4}, // it has begun
	} {
		if p.Served(c.now, c.started); p.n != c.want {
			t.Errorf("a success of one that started at %d makes it %d a second, want %d", c.started, p.n, c.want)
		}
	}
	// What is not used is not saved.
	if got, want := starts(p, 25*sec+1, 3, 1), []Time{25*sec + 1, 25*sec + sec/4, 25*sec + sec/2}; !slices.Equal(got, want) {
		t.Errorf("got %d, want %d", got, want)
	}
	// A million doublings later nobody is held.
	if at, _ := p.Earliest(0, 50*sec, 1); at != 50*sec || p.Recovered(50*sec-1) || !p.Recovered(50*sec) {
		t.Error("the restart is not over after 30 s")
	}
	rapid.Check(t, func(rt *rapid.T) {
		p := NewPace()
		p.Found(rapid.OneOf(rapid.Int64Range(0, 2000), rapid.SampledFrom([]int64{MaxN, Never})).Draw(rt, "n"), 0, NewPace())
		p.Until(-1, rapid.Int64Range(0, 100).Draw(rt, "end"))
		for range 200 {
			from := p.end + rapid.Int64Range(0, 31*sec).Draw(rt, "from")
			at, _ := p.Earliest(from, from, 1)
			before := p.starts
			p.Take(at, 1)
			if at < p.free() && (p.starts <= before || p.slot(p.starts-1) > at || p.slot(p.starts) <= at && p.n < MaxN>>growth) {
				rt.Fatalf("a start at %d is number %d, due at %d; the next at %d", at, p.starts-1, p.slot(p.starts-1), p.slot(p.starts))
			}
		}
	})
}

// TestRecent: the successes of one second are counted one by one where they are few.
func TestRecent(t *testing.T) {
	var r Recent
	for i := range int64(100) {
		r.Add(i * sec / 10)
		r.Add(i * sec / 10)
	}
	for _, c := range []struct{ at, want int64 }{{0, 2}, {sec - 1, 20}, {sec, 20}, {5 * sec, 20}, {10 * sec, 18}, {20 * sec, 0}, {-1, 0}} {
		if got := r.Before(c.at); got != c.want {
			t.Errorf("%d in the second before %v, want %d", got, time.Duration(c.at), c.want)
		}
	}
	// What happened long ago takes no more room.
	for i := range int64(1000) {
		r.Add(100*sec + i*10*sec)
	}
	if len(r.ring) > 107 {
		t.Errorf("%d are remembered of what is rare", len(r.ring))
	}
	// Of many only the latest are known, in slices.
	for i := range int64(1_000_000) {
		r.Add(100_000*sec + i*sec/100_000)
	}
	for _, c := range []struct{ at, least, most int64 }{{100_010*sec - 1, 99_000, 100_000}, {100_009*sec + sec/2, 99_000, 101_000}, {100_001 * sec, 90_000, 101_000}} {
		if got := r.Before(c.at); got < c.least || got > c.most || len(r.ring) > recentSlices {
			t.Errorf("%d in the second before %v, want %d to %d", got, time.Duration(c.at), c.least, c.most)
		}
	}
}

// Responses come in any order: however many there are, each counts when it started.
func TestRecentInAnyOrder(t *testing.T) {
	for _, rate := range []int64{100, 1000, 5000, 20_000} {
		var r Recent
		for s := range int64(4) {
			for i := range rate {
				r.Add((s*rate + i*7919%rate) * sec / rate) // 7919 is a prime
			}
		}
		for _, at := range []int64{3 * sec, 4*sec - 1} {
			if got := r.Before(at); got < rate-rate/500 || got > rate+rate/500 {
				t.Errorf("%d in the second before %v, want %d", got, time.Duration(at), rate)
			}
		}
	}
}

func TestSpec(t *testing.T) {
	for _, c := range []struct {
		spec Spec
		text string
		max  int64
	}{
		{Spec{N: 50, Per: time.Second}, "50/1s", 50},
		{Spec{N: 50, Per: time.Second, Strict: true}, "strict 50/1s", 50},
		{Spec{N: 100, Per: time.Minute, Kind: Bucket, Burst: 10}, "bucket 100/1m burst 10", 10},
		{Spec{N: 100, Per: time.Minute, Kind: Bucket, Burst: 100}, "bucket 100/1m", 100},
		{Spec{N: 3, Per: 10, Kind: Spaced}, "spaced 3/10ns", MaxN},
		{Spec{N: 1, Per: time.Hour, Kind: Sliding}, "sliding 1/1h", 1},
		{Spec{N: 9, Per: 90 * time.Minute}, "9/1h30m", 9},
		{Spec{N: 24, Kind: Calendar, Unit: Day}, "24/day", 24},
		{Spec{N: 0, Per: time.Second, Kind: Bucket, Burst: 4}, "bucket 0/1s burst 4", 0},
	} {
		if got := c.spec.Validate(); len(got) > 0 {
			t.Errorf("%v: %v", c.spec, got)
		}
		if got := c.spec.String(); got != c.text {
			t.Errorf("text %q, want %q", got, c.text)
		}
		if got := New(c.spec, time.Time{}).Max(); got != c.max {
			t.Errorf("%v: at most %d, want %d", c.spec, got, c.max)
		}
	}
}

// TestS28Mistakes: every mistake is named: field, value, what would be right.
func TestS28Mistakes(t *testing.T) {
	for _, c := range []struct {
		spec Spec
		want int // mistakes
	}{
		{Spec{N: -1, Per: time.Second}, 1},
		{Spec{N: 1}, 1},
		{Spec{N: 1, Per: -1}, 1},
		{Spec{N: MaxN + 1, Per: time.Second}, 1},
		{Spec{N: math.MaxInt64, Per: math.MaxInt64}, 2},
		{Spec{N: 1, Per: MaxPer + 1}, 1},
		{Spec{N: 1, Kind: Calendar}, 1},
		{Spec{N: 1, Kind: Calendar, Unit: Day, Per: time.Second}, 1},
		{Spec{N: 1, Kind: Calendar, Unit: Month + 1}, 1},
		{Spec{N: 1, Per: time.Second, Unit: Day}, 1},
		{Spec{N: 1, Per: time.Second, Location: time.UTC}, 1},
		{Spec{N: 1, Per: time.Second, Burst: 3}, 1},
		{Spec{N: 1, Per: time.Second, Kind: Bucket, Burst: -1}, 1},
		{Spec{N: 1, Per: time.Second, Kind: Bucket, Burst: MaxN + 1}, 1},
		{Spec{N: 1, Per: time.Second, Kind: Bucket, Strict: true}, 1},
		{Spec{N: 1, Per: MaxPer, Kind: Bucket, Burst: 11}, 1},
		{Spec{N: 1, Per: time.Second, Kind: Sliding, Strict: true}, 1},
		{Spec{N: 1, Kind: Calendar, Unit: Day, Strict: true}, 1},
		{Spec{N: 1, Per: time.Second, Kind: Calendar + 1}, 1},
		{Spec{N: -1, Per: -1, Kind: Sliding, Strict: true, Burst: -1, Unit: Day, Location: time.UTC}, 6},
		{Spec{N: MaxN, Per: 1}, 0},
		{Spec{N: 1, Per: MaxPer, Strict: true}, 0},
	} {
		if got := c.spec.Validate(); len(got) != c.want {
			t.Errorf("%+v: %d mistakes, want %d: %q", c.spec, len(got), c.want, got)
		}
	}
}
