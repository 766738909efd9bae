package law

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// heardCap returns a Cap that was told at 0 how much is left.
func heardCap(flying *int64, s LimitSignal) *Cap {
	c := NewCap("", flying)
	c.Update(0, s)
	return c
}

// TestCap: what is left holds until the reset, and then the announced limit, one
// window after another.
func TestCap(t *testing.T) {
	for _, c := range []struct {
		name string
		said LimitSignal
		want []Time // the starts of costs of 1
	}{
		{"a limit", LimitSignal{Left: 2, Limit: 3, Reset: 10 * sec}, seconds(0, 0, 10, 10, 10, 20, 20, 20, 30)},
		{"a limit of another window", LimitSignal{Left: 1, Limit: 1, Reset: 10 * sec, Window: 60 * sec}, seconds(0, 10, 70, 70)},
		{"a minute after the reset it ends", LimitSignal{Left: 0, Limit: 1, Reset: 20 * sec}, seconds(20, 40, 60, 80, 80, 80)},
		{"its last window is whole", LimitSignal{Left: 0, Limit: 1, Reset: 25 * sec}, seconds(25, 50, 75, 100, 100)},
		{"a day", LimitSignal{Left: 0, Limit: 1, Reset: 86400 * sec}, seconds(86400, 2*86400, 2*86400)},
		{"none of none", LimitSignal{Left: 0, Limit: 0, Reset: 0}, seconds(0, 0, 0)},
		{"less than none of none", LimitSignal{Left: -1, Limit: 0, Reset: 60 * sec}, seconds(0, 0, 0)},
		{"some of none", LimitSignal{Left: 2, Limit: 0, Reset: 10 * sec}, seconds(0, 0, 10, 10, 10)},
		{"no limit", LimitSignal{Left: 2, Limit: -1, Reset: 10 * sec}, seconds(0, 0, 10, 10, 10, 10, 10)},
		{"no reset", LimitSignal{Left: 2, Limit: 40, Reset: -1}, seconds(0, 0, 1, 2, 3)},
		{"nothing left", LimitSignal{Left: 0, Limit: 2, Reset: 7 * sec}, seconds(7, 7, 14)},
		{"overdrawn", LimitSignal{Left: -3, Limit: 2, Reset: 7 * sec}, seconds(7, 7, 14)},
		{"spread", LimitSignal{Left: 4, Limit: 5, Reset: 60 * sec, Pace: true}, seconds(0, 15, 30, 45, 60, 72, 84)},
		{"a reset at once", LimitSignal{Left: 0, Limit: 2, Reset: 0, Window: sec}, seconds(0, 0, 1)},
	} {
		if got := starts(heardCap(new(int64), c.said), 0, len(c.want), 1); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
	}
}

// TestCapHears: an answer lowers at once, and raises only with nothing else in
// flight; one that was started before the last heard raises nothing.
func TestCapHears(t *testing.T) {
	var flying int64
	c := heardCap(&flying, LimitSignal{Left: 10, Limit: 40, Reset: 60 * sec, Started: 5})
	step := func(what string, at Time, s LimitSignal, want int64) {
		t.Helper()
		if c.Update(at, s); c.Remaining(at) != want {
			t.Errorf("%s: %d are left, want %d", what, c.Remaining(at), want)
		}
	}
	flying = 3
	step("3 in flight may not have been counted", sec, LimitSignal{Left: 9, Limit: 40, Reset: 59 * sec, Started: 6}, 6)
	step("it does not rise meanwhile", sec, LimitSignal{Left: 30, Limit: 40, Reset: 59 * sec, Started: 7}, 6)
	flying = 0
	step("an older one does not raise it", sec, LimitSignal{Left: 30, Limit: 40, Reset: 59 * sec, Started: 6}, 6)
	step("an older one lowers it", sec, LimitSignal{Left: 5, Limit: 40, Reset: 59 * sec, Started: 6}, 5)
	step("one of a window that is over says nothing", sec, LimitSignal{Left: 0, Limit: 40, Reset: 50 * sec, Started: 6}, 5)
	step("a newer one does no better, if they were in flight together", sec, LimitSignal{Left: 30, Limit: 40, Reset: 59 * sec, Started: 8}, 5)
	step("one that had nothing beside it raises it", sec, LimitSignal{Left: 30, Limit: 40, Reset: 59 * sec, Started: 9}, 30)
	c.Take(2*sec, 4)
	flying = 4
	c.Give(2*sec, 1, false)
	if got := c.Remaining(2 * sec); got != 27 {
		t.Errorf("after 4 and 1 back: %d", got)
	}
	// Those in flight at the reset may count in the next window.
	if got := c.Remaining(60 * sec); got != 36 {
		t.Errorf("after the reset: %d, want 40 less 4", got)
	}
	c.Give(2*sec, 1, false)
	if got := c.Remaining(60 * sec); got != 36 {
		t.Errorf("a unit of the old window came back: %d", got)
	}
	// It is remembered for a window after the reset that nobody has used.
	if flying = 0; c.Recovered(120*sec-1) || !c.Recovered(120*sec) {
		t.Error("it is not remembered for a minute after the reset")
	}
	// What was told long ago does not count: units may have come back since.
	c = heardCap(&flying, LimitSignal{Left: 9, Limit: 40, Reset: 3600 * sec})
	flying = 1 // always
	for i, left := range []int64{0, 20, 30, 31} {
		at := Time(i+1) * sec
		c.Update(at, LimitSignal{Left: left, Limit: 40, Reset: 3600*sec - at, Started: at - sec/2})
	}
	flying = 0
	c.Update(5*sec, LimitSignal{Left: 32, Limit: 40, Reset: 3595 * sec, Started: 4*sec + sec/2})
	if got := c.Remaining(5 * sec); got != 31 {
		t.Errorf("a server that gave units back is thought to have %d left, want 31", got)
	}
	// The reset is an instant, however it was rounded.
	c = heardCap(&flying, LimitSignal{Left: 0, Limit: 1, Reset: 10 * sec})
	c.Update(3*sec, LimitSignal{Left: 0, Limit: 1, Reset: 6*sec + 1, Started: 1})
	if at, _ := c.Earliest(3*sec, 3*sec, 1); at != 10*sec {
		t.Errorf("the reset moved to %d by rounding", at)
	}
}

// TestPlanUnderACap: what a Plan finds is the first instant, and delays nobody.
func TestPlanUnderACap(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		said := LimitSignal{
			Left:  rapid.Int64Range(-1, 6).Draw(rt, "left"),
			Limit: rapid.Int64Range(-1, 4).Draw(rt, "limit"),
			Reset: rapid.Int64Range(-1, 20).Draw(rt, "reset"),
		}
		if said.Limit == 0 {
			said.Limit = 1
		}
		var p Plan
		c := heardCap(new(int64), said)
		c.window = max(1, said.Reset)
		if said.Reset < 0 {
			c.end, c.window = 10, 10 // a second is a long time here
		}
		possible := func(list []planned) bool {
			s := c.simulate(0)
			for _, e := range list {
				if at, _ := s.earliest(e.at, e.cost, nil); at > e.at {
					return false
				}
				s.take(e.at, e.cost, nil)
			}
			return true
		}
		for seq := range uint64(rapid.IntRange(1, 12).Draw(rt, "n")) {
			cost := rapid.Int64Range(1, 3).Draw(rt, "cost")
			from := rapid.Int64Range(0, 30).Draw(rt, "from")
			got, _ := p.Earliest(c, 0, from, cost, false)
			with := func(at Time) []planned {
				list := append(p.todo.all(), planned{at, seq, cost})
				slices.SortStableFunc(list, func(a, b planned) int { return int(a.at - b.at) })
				return list
			}
			want := from
			for !possible(with(want)) {
				want++
			}
			if got != want {
				rt.Fatalf("%+v: a cost of %d from %d could start at %d, want %d\n%v", said, cost, from, got, want, p.todo.all())
			}
			p.Insert(got, seq, cost)
		}
	})
}

// Whatever a server says, a Cap finds an instant at which there is room, and a Plan
// passes no more than the starts that are planned.
func TestCapOfHostileNumbers(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		number := rapid.OneOf(
			rapid.SampledFrom([]int64{math.MinInt64, math.MinInt64 + 1, -1, 0, 1, 2, sec, 86400 * sec, Never - 1, Never}),
			rapid.Int64Range(-5, 3*sec),
			rapid.Int64(),
		)
		var flying int64
		var p Plan
		c, now := NewCap("", &flying), Time(0)
		for seq := range uint64(rapid.IntRange(1, 20).Draw(rt, "n")) {
			now += rapid.Int64Range(0, 2*sec).Draw(rt, "pass")
			if rapid.Bool().Draw(rt, "it says more") {
				c.Update(now, LimitSignal{
					Left: number.Draw(rt, "left"), Limit: number.Draw(rt, "limit"), Reset: number.Draw(rt, "reset"), Window: number.Draw(rt, "window"),
					Started: now - rapid.Int64Range(0, sec).Draw(rt, "latency"), Pace: rapid.Bool().Draw(rt, "pace"),
				})
				p.Forget()
			}
			cost := rapid.Int64Range(1, 3).Draw(rt, "cost")
			at, _ := c.Earliest(now, now, cost)
			if at < now {
				rt.Fatalf("at %d it has room at %d", now, at)
			}
			s := c.simulate(now)
			if then, _ := s.earliest(at, cost, nil); then != at && at != Never {
				rt.Fatalf("there is no room at %d, but at %d: %+v", at, then, c)
			}
			planned, _ := p.Earliest(c, now, now, cost, false)
			if turns := p.Turns(); turns > p.Len() {
				rt.Fatalf("%d turns with %d planned", turns, p.Len())
			}
			if planned != Never {
				p.Insert(planned, seq, cost)
			}
			c.Take(now, cost)
			if now >= c.keep && c.left != Unlimited {
				rt.Fatalf("at %d it holds, after its end at %d", now, c.keep)
			}
		}
	})
}
