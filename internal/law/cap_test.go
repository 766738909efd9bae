package law

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// announcedCap returns a Cap that a response at 0 has announced.
func announcedCap(inFlight *int64, s LimitSignal) *Cap {
	c := NewCap("", inFlight)
	c.Update(0, s)
	return c
}

// TestCap: after one announcement, when starts of one unit are possible, each as early as it
// can be.
func TestCap(t *testing.T) {
	for _, c := range []struct {
		name string
		said LimitSignal
		want []Time
	}{
		{"a window ends", LimitSignal{Left: 2, Limit: 3, Reset: 10 * sec, Resets: ResetsWindow}, []Time{0, 0, 10 * sec, 10*sec + ms, 10*sec + ms, 10*sec + ms, 10*sec + ms}},
		{"windows of a known length follow", LimitSignal{Left: 1, Limit: 2, Reset: 10 * sec, Window: 60 * sec, Resets: ResetsWindow}, seconds(0, 10, 10, 70, 70, 70)},
		{"a whole second is believed late", LimitSignal{Left: 1, Limit: 1, Reset: 10 * sec, Whole: true, Resets: ResetsWindow}, []Time{0, 11 * sec, 11*sec + ms}},
		{"no limit: it ends at the reset", LimitSignal{Left: 1, Limit: -1, Reset: 10 * sec, Resets: ResetsWindow}, []Time{0, 10 * sec, 10*sec + ms, 10*sec + ms}},
		{"no reset: a minute", LimitSignal{Left: 1, Limit: 9, Reset: -1}, seconds(0, 60)},
		{"nothing left", LimitSignal{Left: 0, Limit: 2, Reset: 7 * sec, Window: 60 * sec, Resets: ResetsWindow}, seconds(7, 7, 67)},
		{"overdrawn", LimitSignal{Left: -3, Limit: 2, Reset: 7 * sec, Window: 60 * sec, Resets: ResetsWindow}, seconds(7, 7, 67)},
		{"none of none", LimitSignal{Left: 0, Limit: 0, Reset: 0}, seconds(0, 0, 0)},
		{"less than none of none", LimitSignal{Left: -1, Limit: 0, Reset: 60 * sec}, seconds(0, 0, 0)},
		{"a bucket of 4, one in 5 s", LimitSignal{Left: 2, Limit: 4, Reset: 10 * sec, Resets: ResetsFull}, seconds(0, 0, 5, 10, 15)},
		{"a bucket of a known period", LimitSignal{Left: 1, Limit: 4, Reset: -1, Window: 8 * sec, Resets: ResetsFull}, seconds(0, 2, 4, 6)},
		{"the next unit in 3 s", LimitSignal{Left: 0, Limit: 5, Reset: 3 * sec, Resets: ResetsUnit}, seconds(3, 6, 9)},
		{"a rolling window", LimitSignal{Left: 3, Limit: 3, Reset: -1, Window: 10 * sec, Resets: ResetsRolling}, seconds(0, 0, 0, 10, 10, 10, 20)},
		{"a rolling window of which two are used", LimitSignal{Left: 1, Limit: 3, Reset: -1, Window: 10 * sec, Resets: ResetsRolling}, []Time{0, 10 * sec, 10*sec + ms, 10*sec + ms, 20 * sec}},
		{"spread over a window", LimitSignal{Left: 4, Limit: 5, Reset: 60 * sec, Window: 60 * sec, Resets: ResetsWindow, Pace: true}, seconds(0, 15, 30, 45, 60, 60, 60, 60, 60, 120)},
		{"spread over a bucket", LimitSignal{Left: 4, Limit: 4, Reset: 0, Window: 8 * sec, Resets: ResetsFull, Pace: true}, seconds(0, 2, 4, 6)},
	} {
		if got := starts(announcedCap(new(int64), c.said), 0, len(c.want), 1); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
	}
}

// TestCapAsks: where it is not known that all units return at the reset, one request goes
// alone then, and the others follow what its response announces, or 4 mean responses later.
func TestCapAsks(t *testing.T) {
	var inFlight int64
	c := NewCap("", &inFlight)
	c.Take(0, 1)
	c.Update(sec, LimitSignal{Left: 0, Limit: 10, Reset: 9 * sec, Own: 1}) // a response after 1 s
	if got, want := starts(c, sec, 3, 1), seconds(10, 14, 14); !slices.Equal(got, want) {
		t.Errorf("without a response: starts at %d, want %d", got, want)
	}
	for _, left := range []int64{0, 9} {
		c := NewCap("", &inFlight)
		c.Update(sec, LimitSignal{Left: 0, Limit: 10, Reset: 9 * sec, Own: 1})
		c.Take(10*sec, 1)
		mark := c.Mark(10 * sec)
		if at, _ := c.Earliest(11*sec, 11*sec, 1); at != 14*sec {
			t.Errorf("a second one goes at %d, want 14 s", at)
		}
		c.Update(11*sec, LimitSignal{Left: left, Limit: 10, Reset: 2 * sec, Own: 1, Started: 10 * sec, Mark: mark})
		switch got := starts(c, 11*sec, 2, 1); {
		case left == 9 && !slices.Equal(got, seconds(11, 11)):
			t.Errorf("all have returned: starts at %d", got)
		case left == 0 && !slices.Equal(got, seconds(13, 22)): // the next one in 2 s, and a unit takes as long as the longest reset
			t.Errorf("one has returned: starts at %d", got)
		}
	}
}

// played is a request for which a Cap has taken units.
type played struct {
	at   Time
	mark Mark
}

// take starts a request of n units.
func take(c *Cap, inFlight *int64, at Time, n int64) played {
	c.Take(at, n)
	p := played{at, c.Mark(at)}
	*inFlight += n
	return p
}

// TestCapCorrects: a number corrects the count by what started since its request, for
// each way to count.
func TestCapCorrects(t *testing.T) {
	for _, kind := range []struct {
		name string
		said LimitSignal
	}{
		{"counter", LimitSignal{Limit: 100, Reset: 3600 * sec, Resets: ResetsWindow}},
		{"rolling", LimitSignal{Limit: 100, Reset: -1, Window: 3600 * sec, Resets: ResetsRolling}},
		{"filling", LimitSignal{Limit: 100, Reset: -1, Window: 360000 * sec, Resets: ResetsFull}},
	} {
		t.Run(kind.name, func(t *testing.T) {
			var inFlight int64
			c := NewCap("", &inFlight)
			now := Time(0)
			number := func(what string, p played, left, own, want int64) {
				t.Helper()
				now += sec
				s := kind.said
				s.Left, s.Started, s.Mark, s.Own = left, p.at, p.mark, own
				if s.Reset >= 0 {
					s.Reset -= now
				}
				c.Update(now, s)
				inFlight -= own
				if got := c.Remaining(now); got != want {
					t.Errorf("%s: %d left, want %d", what, got, want)
				}
			}
			first := take(c, &inFlight, 0, 1)
			older := take(c, &inFlight, 0, 1)
			number("the first of two: the other may not be counted", first, 60, 1, 59)
			number("the other is counted", older, 59, 1, 59)
			a := take(c, &inFlight, now, 1)
			b := take(c, &inFlight, now+1, 1)
			d := take(c, &inFlight, now+2, 1)
			number("b and d have started since", a, 58, 1, 56)
			number("others have used 10", b, 47, 1, 46)
			number("d had been started before b's response", d, 46, 1, 46)
			number("an older one raises nothing", a, 90, 0, 46)
			number("an older one lowers nothing", a, 9, 0, 46)
			e := take(c, &inFlight, now, 5)
			f := take(c, &inFlight, now+1, 5)
			c.Give(f.at, 3, false) // it did cost 2
			number("settled before the response of one that started before it: not all is known", e, 41, 5, 36)
			number("its own number knows what it did cost", f, 39, 5, 39)
			g := take(c, &inFlight, now, 10)
			h := take(c, &inFlight, now+1, 1)
			number("g costs 4, and h knows that", h, 34, 1, 34)
			c.Give(g.at, 6, false)
			if got := c.Remaining(now); got != 34 {
				t.Errorf("the units of g return twice: %d left", got)
			}
			number("g's own number is older", g, 35, 10, 34)
			k := take(c, &inFlight, now, 1)
			number("others have returned 20", k, 53, 1, 53)
		})
	}
}

// TestCapBelow: where the server counts less than this client, that holds but for what may
// have been on its way. Under a rule of this client's it never does.
func TestCapBelow(t *testing.T) {
	for _, rule := range []int64{0, 10} {
		var inFlight int64
		c := NewCap("", &inFlight)
		said := LimitSignal{Left: 10, Limit: 10, Reset: -1, Window: 60 * sec, Resets: ResetsRolling, RuleLimit: rule, RulePeriod: 60 * sec}
		c.Update(0, said)
		for range 3 {
			take(c, &inFlight, 0, 1)
		}
		p := take(c, &inFlight, 1, 1)
		said.Left, said.Started, said.Mark, said.Own = 9, 1, p.mark, 1
		c.Update(sec, said)
		want := int64(6) // the other three may not have arrived
		if got := c.Remaining(sec); got != want {
			t.Errorf("three are on their way: %d left, want %d", got, want)
		}
		inFlight = 0
		p = take(c, &inFlight, 2*sec, 1)
		said.Left, said.Started, said.Mark = 8, 2*sec, p.mark
		c.Update(3*sec, said)
		if want = 8; rule > 0 {
			want = 5
		}
		if got := c.Remaining(3 * sec); got != want {
			t.Errorf("a rule of %d: %d left, want %d", rule, got, want)
		}
	}
}

// TestCapLimitChanges: what was counted stays under another limit.
func TestCapLimitChanges(t *testing.T) {
	for _, said := range []LimitSignal{
		{Limit: 10, Reset: 60 * sec, Resets: ResetsWindow},
		{Limit: 10, Reset: -1, Window: 60 * sec},
	} {
		var inFlight int64
		c := NewCap("", &inFlight)
		said.Left = 8
		c.Update(0, said)
		p := take(c, &inFlight, sec, 1)
		said.Limit, said.Left, said.Started, said.Mark, said.Own = 20, 17, sec, p.mark, 1
		c.Update(sec, said)
		if got := c.Remaining(sec); got != 17 {
			t.Errorf("%+v: %d left, want 17", said, got)
		}
	}
}

// TestCapCare: after a refusal of what the number allowed, room is left for what others may
// have used since the number; after a period without one, half of it.
func TestCapCare(t *testing.T) {
	var inFlight int64
	c := NewCap("", &inFlight)
	said := LimitSignal{Left: 100, Limit: 100, Reset: -1, Window: 60 * sec, Resets: ResetsRolling}
	c.Update(0, said)
	now := Time(0)
	number := func(left int64, refused bool) {
		p := take(c, &inFlight, now, 1)
		now += sec
		said.Left, said.Started, said.Mark, said.Own, said.Refused = left, p.at, p.mark, 1, refused
		c.Update(now, said)
		inFlight--
	}
	number(97, false)
	number(92, false)
	if got := c.Remaining(now); got != 92 {
		t.Errorf("others use 3 a second, and no request was refused: %d left, want 92", got)
	}
	number(89, true)
	careful := c.Remaining(now)
	if careful >= 89 || careful < 80 {
		t.Errorf("after a refusal: %d left, want a few less than 89", careful)
	}
	later := c.Remaining(now + sec)
	if later >= careful {
		t.Errorf("a second after the number: %d left, no less than %d", later, careful)
	}
	if c.current(now+60*sec, c.per) != fullCare/2 {
		t.Errorf("after a period the care is %d of 256", c.current(now+60*sec, c.per))
	}
}

// TestCapMeanings: what resets mean shows in two or three responses.
func TestCapMeanings(t *testing.T) {
	for _, tc := range []struct {
		name  string
		reset func(now Time, left int64) Time
		left  func(now Time, taken int64) int64
		want  Resets
	}{
		{"until full: a bucket of 40, two a second",
			func(_ Time, left int64) Time { return (40 - left) * sec / 2 },
			func(now Time, taken int64) int64 { return min(40, 40-taken+2*now/sec) }, ResetsFull},
		{"the window's end: 40 a minute",
			func(now Time, _ int64) Time { return 60*sec - now%(60*sec) },
			func(now Time, taken int64) int64 { return 40 - taken }, ResetsUnknown},
	} {
		var inFlight int64
		c := NewCap("", &inFlight)
		taken, now := int64(0), Time(0)
		for range 5 {
			for range 5 {
				take(c, &inFlight, now, 1)
				taken++
			}
			p := take(c, &inFlight, now, 1)
			taken++
			left := tc.left(now, taken)
			c.Update(now+10*ms, LimitSignal{Left: left, Limit: 40, Reset: tc.reset(now, left), Started: now, Mark: p.mark, Own: 1})
			inFlight = 0
			now += sec
		}
		if c.resets != tc.want {
			t.Errorf("%s: taken to be %d, want %d", tc.name, c.resets, tc.want)
		}
	}
}

// TestCapEnds: it holds nothing up, and is forgotten, once no number has renewed it.
func TestCapEnds(t *testing.T) {
	for _, tc := range []struct {
		said LimitSignal
		want Time
	}{
		{LimitSignal{Limit: 1, Reset: 60 * sec, Resets: ResetsWindow}, 120 * sec},
		{LimitSignal{Limit: 1, Reset: 60 * sec, Window: 3600 * sec, Resets: ResetsWindow}, 3660 * sec},
		{LimitSignal{Limit: 1, Reset: -1, Window: sec}, 62 * sec},
		{LimitSignal{Limit: 1, Reset: -1, Window: 3600 * sec}, 3 * 3600 * sec},
	} {
		inFlight := int64(1)
		c := announcedCap(&inFlight, tc.said)
		if c.Over(tc.want-1) || !c.Over(tc.want) || c.Expires(0) != tc.want {
			t.Errorf("%+v: it ends at %d, want %d", tc.said, c.Expires(0), tc.want)
		}
		if c.Recovered(tc.want) {
			t.Errorf("%+v: it is forgotten with a request in flight", tc.said)
		}
		if inFlight = 0; !c.Recovered(tc.want) {
			t.Errorf("%+v: it is not forgotten", tc.said)
		}
		if at, _ := c.Earliest(tc.want, tc.want, 5); at != tc.want {
			t.Errorf("%+v: after its end it has room at %d", tc.said, at)
		}
	}
}

// TestCapStaleWindow: a response about the window before this one changes nothing.
func TestCapStaleWindow(t *testing.T) {
	var inFlight int64
	c := NewCap("", &inFlight)
	said := LimitSignal{Left: 5, Limit: 40, Reset: 10 * sec, Window: 60 * sec, Resets: ResetsWindow}
	c.Update(0, said)
	p := take(c, &inFlight, 9*sec, 1)
	said.Left, said.Reset, said.Started, said.Mark, said.Own = 0, sec/2, p.at, p.mark, 1
	c.Update(10*sec+sec/5, said)
	if got := c.Remaining(10*sec + sec/5); got != 40 {
		t.Errorf("%d left in the new window, want 40", got)
	}
	// One about the new window, of a request that started before it, can only lower.
	said.Left, said.Reset = 30, 9*sec
	if c.Update(11*sec, said); c.Remaining(11*sec) != 30 {
		t.Errorf("%d left, want 30", c.Remaining(11*sec))
	}
	said.Left = 35
	if c.Update(11*sec, said); c.Remaining(11*sec) != 30 {
		t.Errorf("%d left, want 30 still", c.Remaining(11*sec))
	}
}

// TestCapResetRepeats: the end of a window is an instant, however it was rounded, and a
// response that does not repeat it does not move it.
func TestCapResetRepeats(t *testing.T) {
	c := announcedCap(new(int64), LimitSignal{Left: 0, Limit: 1, Reset: 10 * sec, Resets: ResetsWindow})
	c.Update(3*sec, LimitSignal{Left: 0, Limit: 1, Reset: 6*sec + 1, Started: 1, Resets: ResetsWindow})
	if at, _ := c.Earliest(3*sec, 3*sec, 1); at != 10*sec {
		t.Errorf("the reset moved to %d by rounding", at)
	}
	c.Update(4*sec, LimitSignal{Left: 0, Limit: 1, Reset: -1, Started: 2, Resets: ResetsWindow})
	if at, _ := c.Earliest(4*sec, 4*sec, 1); at != 10*sec {
		t.Errorf("the reset moved to %d by a response without one", at)
	}
}

// drawSignal draws an announcement that is not out of the ordinary.
func drawSignal(rt *rapid.T) LimitSignal {
	return LimitSignal{
		Left:   rapid.Int64Range(-1, 6).Draw(rt, "left"),
		Limit:  rapid.Int64Range(1, 4).Draw(rt, "limit"),
		Reset:  rapid.Int64Range(-1, 20).Draw(rt, "reset") * ms,
		Window: rapid.Int64Range(0, 10).Draw(rt, "window") * ms,
		Resets: Resets(rapid.IntRange(0, 4).Draw(rt, "resets")),
		Pace:   rapid.Bool().Draw(rt, "pace"),
	}
}

// TestPlanUnderACap: what a Plan finds is the first instant, and makes no planned start
// impossible.
func TestPlanUnderACap(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		said := drawSignal(rt)
		said.Pace = false // it makes later starts possible earlier
		var p Plan
		c := announcedCap(new(int64), said)
		c.alone = Never // so does a request that goes alone
		possible := func(list []planned) bool {
			s := c.simulate(0)
			place := place{}
			var todo schedule
			for _, e := range list {
				todo.insert(e)
			}
			for e := todo.get(place); e != nil; e = todo.get(place) {
				if at, _ := s.earliest(e.at, e.cost, &todo); at > e.at {
					return false
				}
				s.take(e.at, e.cost, &todo)
				place = todo.next(place)
			}
			return true
		}
		for seq := range uint64(rapid.IntRange(1, 12).Draw(rt, "n")) {
			cost := rapid.Int64Range(1, 3).Draw(rt, "cost")
			from := rapid.Int64Range(0, 30).Draw(rt, "from") * ms
			got, _ := p.Earliest(c, 0, from, cost, false)
			with := func(at Time) []planned {
				list := append(p.todo.all(), planned{at, seq, cost})
				slices.SortStableFunc(list, func(a, b planned) int { return int(a.at - b.at) })
				return list
			}
			if !possible(with(got)) {
				rt.Fatalf("%+v: a cost of %d from %d cannot start at %d\n%v", said, cost, from, got, p.todo.all())
			}
			for at := from; at < got && at < from+20*ms; at += ms / 2 {
				if possible(with(at)) {
					rt.Fatalf("%+v: a cost of %d from %d could start at %d, not only at %d\n%v", said, cost, from, at, got, p.todo.all())
				}
			}
			p.Insert(got, seq, cost)
		}
	})
}

// TestCapOfHostileNumbers: whatever a server says, a Cap finds an instant at which there is
// room, no later than the longest time announced, and a Plan passes no more than the starts
// that are planned.
func TestCapOfHostileNumbers(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		number := rapid.OneOf(
			rapid.SampledFrom([]int64{math.MinInt64, math.MinInt64 + 1, -1, 0, 1, 2, sec, 86400 * sec, Never - 1, Never}),
			rapid.Int64Range(-5, 3*sec),
			rapid.Int64(),
		)
		var inFlight int64
		var p Plan
		var marks []played
		c, now := NewCap("", &inFlight), Time(0)
		for seq := range uint64(rapid.IntRange(1, 20).Draw(rt, "n")) {
			now += rapid.Int64Range(0, 2*sec).Draw(rt, "pass")
			if rapid.Bool().Draw(rt, "it says more") {
				s := LimitSignal{
					Left: number.Draw(rt, "left"), Limit: number.Draw(rt, "limit"), Reset: number.Draw(rt, "reset"), Window: number.Draw(rt, "window"),
					Resets: Resets(rapid.IntRange(0, 4).Draw(rt, "resets")), Whole: rapid.Bool().Draw(rt, "whole"), Early: rapid.Bool().Draw(rt, "early"),
					Refused: rapid.Bool().Draw(rt, "refused"), Started: now - rapid.Int64Range(0, sec).Draw(rt, "latency"), Pace: rapid.Bool().Draw(rt, "pace"),
				}
				if len(marks) > 0 && rapid.Bool().Draw(rt, "with a mark") {
					m := rapid.SampledFrom(marks).Draw(rt, "mark")
					s.Started, s.Mark, s.Own = m.at, m.mark, 1
				}
				c.Update(now, s)
				p.Forget()
			}
			cost := rapid.Int64Range(1, 3).Draw(rt, "cost")
			at, _ := c.Earliest(now, now, cost)
			if at < now || at == Never {
				rt.Fatalf("at %d it has room at %d", now, at)
			}
			if at > addSat(now, 3*longest+lasting) {
				rt.Fatalf("at %d it has room only at %d", now, at)
			}
			s := c.simulate(now)
			if then, _ := s.earliest(at, cost, &schedule{}); then != at {
				rt.Fatalf("there is no room at %d, but at %d: %+v", at, then, c)
			}
			planned, _ := p.Earliest(c, now, now, cost, false)
			if turns := p.Turns(); turns > p.Len() {
				rt.Fatalf("%d turns with %d planned", turns, p.Len())
			}
			if planned != Never {
				p.Insert(planned, seq, cost)
			}
			marks = append(marks, take(c, &inFlight, now, cost))
			if rapid.Bool().Draw(rt, "give back") {
				c.Give(now, 1, false)
			}
			if _, err := decodeCap(encodeCap(c), nil); err != nil {
				rt.Fatalf("it cannot be read back: %v: %+v", err, c)
			}
			if now >= c.keep && c.gen != 0 {
				rt.Fatalf("at %d it holds, after its end at %d", now, c.keep)
			}
		}
	})
}

// TestCapGuard: a unit of a rolling limit returns as much later as the shortest response of
// late took, no more than 1/64 of the period.
func TestCapGuard(t *testing.T) {
	for _, tc := range []struct{ response, want Time }{{500 * ms, 64500 * ms}, {3 * sec, 65 * sec}} {
		c := NewCap("", nil)
		c.Update(tc.response, LimitSignal{Left: 1, Limit: 1, Reset: -1, Window: 64 * sec, Resets: ResetsRolling})
		c.Take(10*sec, 1)
		if at, _ := c.Earliest(10*sec, 10*sec, 1); at != 10*sec+tc.want {
			t.Errorf("responses take %d: the unit returns at %d, want %d later", tc.response, at, tc.want)
		}
	}
}

// TestCapWithoutALimit: after the reset of what has no limit nothing is counted, until another
// number comes.
func TestCapWithoutALimit(t *testing.T) {
	var inFlight int64
	c := announcedCap(&inFlight, LimitSignal{Left: 5, Limit: -1, Reset: 10 * sec})
	p := take(c, &inFlight, 11*sec, 1)
	spent := c.Update(11*sec+ms, LimitSignal{Left: 7, Limit: -1, Reset: 10 * sec, Started: p.at, Mark: p.mark, Own: 1})
	if spent != 0 || c.drift != 0 || c.Remaining(12*sec) != 7 {
		t.Errorf("others have spent %d, and %d are left; want none, and 7", spent, c.Remaining(12*sec))
	}
}

// TestCapOfOneInstant: the server may have received requests of one instant in any order, so
// that of their numbers the one that knows of the most counts.
func TestCapOfOneInstant(t *testing.T) {
	var inFlight int64
	c := announcedCap(&inFlight, LimitSignal{Left: 8, Limit: 400, Reset: -1, Window: 20 * sec, Resets: ResetsFull})
	a, b := take(c, &inFlight, sec, 1), take(c, &inFlight, sec, 1)
	for _, p := range []struct {
		played
		left int64
	}{{a, 6}, {b, 7}} { // b arrived first
		c.Update(sec+ms, LimitSignal{Left: p.left, Limit: 400, Reset: -1, Window: 20 * sec, Resets: ResetsFull, Started: sec, Mark: p.mark, Own: 1})
	}
	if got := c.Remaining(sec + ms); got != 5 {
		t.Errorf("%d left, want 5: of two, one may not have arrived when 6 were left", got)
	}
}

// TestCapBeginsInANewWindow: of two requests around a reset, the response to the one before it
// comes last.
func TestCapBeginsInANewWindow(t *testing.T) {
	inFlight := int64(2)
	c := NewCap("", &inFlight)
	c.Update(200*ms, LimitSignal{Left: 599, Limit: 600, Reset: 600 * sec, Started: 100 * ms, Own: 1, Resets: ResetsWindow})
	inFlight--
	c.Update(300*ms, LimitSignal{Left: 0, Limit: 600, Reset: sec, Started: 0, Own: 1, Resets: ResetsWindow})
	if got := c.Remaining(300 * ms); got < 598 {
		t.Errorf("%d left, want 598", got)
	}
}

// TestCapCareOfABucket: the room that care leaves in a bucket holds nothing up for longer than
// the longest reset that was announced, however long its inferred period is.
func TestCapCareOfABucket(t *testing.T) {
	var inFlight int64
	c := NewCap("", &inFlight)
	now := Time(0)
	said := LimitSignal{Left: 60, Limit: 3600, Reset: 10 * sec, Resets: ResetsUnit}
	c.Update(now, said)
	for i := range 4 {
		p := take(c, &inFlight, now, 1)
		said.Left, said.Started, said.Mark, said.Own, said.Refused = int64(60-15*i), now, p.mark, 1, true
		now += sec
		c.Update(now, said)
		inFlight = 0
	}
	if c.margin(now) <= c.Remaining(now) {
		t.Fatalf("care leaves %d of %d: this tests nothing", c.margin(now), c.bucket.Remaining(now))
	}
	if at, _ := c.Earliest(now, now, 1); at > now+10*sec {
		t.Errorf("a start after %v, want 10 s at most", at-now)
	}
}

// TestCapOfCostlyRequests: a request that costs more than the limit holds the next one up for one
// period, as the server decides about it.
func TestCapOfCostlyRequests(t *testing.T) {
	for _, resets := range []Resets{ResetsFull, ResetsRolling} {
		c := announcedCap(new(int64), LimitSignal{Left: 1, Limit: 1, Reset: -1, Window: 60 * sec, Resets: resets})
		c.Take(sec, 5)
		if at, _ := c.Earliest(sec, sec, 1); at != 61*sec {
			t.Errorf("resets %d: the next one starts at %d, want 61 s", resets, at)
		}
	}
}
