package law

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawSchedule draws many starts, and what is left of them when some have gone.
func drawSchedule(rt *rapid.T, longest Time) (s schedule, list []planned) {
	byKey := func(a, b planned) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.seq, b.seq)) }
	at := Time(0)
	inOrder := rapid.Bool().Draw(rt, "in order")
	for seq := range uint64(rapid.IntRange(1, 1000).Draw(rt, "starts")) {
		if at += rapid.Int64Range(0, longest).Draw(rt, "gap"); !inOrder {
			at = rapid.Int64Range(0, 500*longest).Draw(rt, "at")
		}
		e := planned{at, seq, rapid.Int64Range(1, 3).Draw(rt, "cost")}
		s.insert(e)
		i, _ := slices.BinarySearchFunc(list, e, byKey)
		list = slices.Insert(list, i, e)
		if rapid.IntRange(0, 2).Draw(rt, "goes") == 0 {
			i := rapid.IntRange(0, len(list)-1).Draw(rt, "which")
			s.remove(s.find(list[i].key()))
			list = slices.Delete(list, i, i+1)
		}
	}
	return s, list
}

// TestSchedule compares a schedule with a sorted slice.
func TestSchedule(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s, list := drawSchedule(rt, 5)
		if got := s.all(); !slices.Equal(got, list) || s.len() != len(list) {
			rt.Fatalf("got %d: %v\nwant %d: %v", s.len(), got, len(list), list)
		}
		for i, c := range s.chunks {
			var cost int64
			for _, e := range c.list {
				cost += e.cost
			}
			if len(c.list) == 0 || len(c.list) > chunkLen || c.cost != cost {
				rt.Fatalf("chunk %d has %d starts that cost %d, and says %d", i, len(c.list), cost, c.cost)
			}
		}
		at := func(p place) int {
			n := p.i
			for _, c := range s.chunks[:p.chunk] {
				n += len(c.list)
			}
			return n
		}
		from := key{rapid.Int64Range(0, 2600).Draw(rt, "from"), uint64(rapid.IntRange(0, 1000).Draw(rt, "seq"))}
		to := after(from.at + rapid.Int64Range(0, 500).Draw(rt, "to"))
		var n, cost int64
		first := -1
		for i, e := range list {
			if first < 0 && !e.key().before(from) {
				first = i
			}
			if first >= 0 && e.key().before(to) {
				n, cost = n+1, cost+e.cost
			}
		}
		if first < 0 {
			first = len(list)
		}
		p := s.find(from)
		if at(p) != first {
			rt.Fatalf("%v is found at %d, want %d", from, at(p), first)
		}
		if last := s.prev(p); last == nil && first > 0 || last != nil && *last != list[first-1] {
			rt.Fatalf("before %d comes %v", first, last)
		}
		if gotN, gotCost := s.between(p, s.find(to)); gotN != n || gotCost != cost {
			rt.Fatalf("between %v and %v: %d that cost %d, want %d and %d", from, to, gotN, gotCost, n, cost)
		}
	})
}

// TestALongPlanIsPassedQuickly: what is known of a budget at an instant to come
// is the same whether the starts planned until then are taken one by one, chunk
// by chunk, or looked at from behind.
func TestALongPlanIsPassedQuickly(t *testing.T) {
	for _, kind := range []Kind{Window, Bucket, Spaced} {
		t.Run(fmt.Sprint(kind), rapid.MakeCheck(func(rt *rapid.T) {
			s := drawSpec(rt, kind)
			todo, list := drawSchedule(rt, int64(s.Per))
			st := New(s, wall0)
			now := Time(0)
			for range rapid.IntRange(0, 5).Draw(rt, "starts before") {
				now += rapid.Int64Range(0, int64(s.Per)).Draw(rt, "pause")
				st.Take(now, 1)
			}
			for at := now; at < now+2*int64(s.Per); at++ {
				pass(rt, st, now, at, todo, list)
			}
			pass(rt, st, now, now+rapid.Int64Range(0, 300*int64(s.Per)).Draw(rt, "later"), todo, list)
		}))
	}
	t.Run("pace", rapid.MakeCheck(func(rt *rapid.T) {
		todo, list := drawSchedule(rt, gentle/100)
		p := NewPace(Spec{N: 1, Per: 1e9})
		p.Until(-1, rapid.Int64Range(0, 2*gentle).Draw(rt, "until"))
		now := rapid.Int64Range(0, 3*gentle).Draw(rt, "now")
		at := now + rapid.Int64Range(0, 2*gentle).Draw(rt, "later")
		slow := p.simulate(now)
		for _, e := range list {
			if e.at <= at {
				slow.take(max(now, e.at), e.cost, &todo)
			}
		}
		if quick, i := p.simulateAt(now, at, &todo); now < p.end+gentle && quick.pace != slow.pace || i != todo.find(after(at)) {
			rt.Fatalf("at %d, seen from %d: %+v, want %+v", at, now, quick.pace, slow.pace)
		}
	}))
}

func pass(rt *rapid.T, st State, now, at Time, todo schedule, list []planned) {
	slow, quick, i := st.simulate(now), st.simulate(now), place{}
	for _, e := range list {
		if e.at <= at {
			slow.take(max(now, e.at), e.cost, &todo)
		}
	}
	if st.jumps() {
		quick, i = st.simulateAt(now, at, &todo)
	} else {
		i = quick.pass(now, at, &todo, i)
	}
	if want := todo.find(after(at)); i != want {
		rt.Fatalf("%v is not the place after %d", i, at)
	}
	for t := at; t < at+10; t++ {
		s, q := slow, quick // as they were
		if s.kind == simBucket && s.bucket.full != q.bucket.full && !q.bucket.Recovered(t) {
			rt.Fatalf("at %d, seen from %d: %+v, want %+v", at, now, q.bucket, s.bucket)
		}
		want, _ := s.earliest(t, 1, &todo)
		if got, _ := q.earliest(t, 1, &todo); got != want {
			rt.Fatalf("at %d, seen from %d: one unit fits at %d, want %d", at, now, got, want)
		}
	}
}
