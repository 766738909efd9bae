package law

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// all returns the starts in order.
func (s *schedule) all() (list []planned) {
	for _, c := range s.chunks {
		list = append(list, c.list...)
	}
	return list
}

// planOf returns a plan of these starts without a checkpoint.
func planOf(todo []planned) (p Plan) {
	for _, e := range todo {
		p.Insert(e.at, e.seq, e.cost)
	}
	return p
}

// possible reports whether every start of todo is possible: each is taken in
// order, and must fit.
func possible(o oracle, now Time, todo []planned) bool {
	o = o.clone()
	for _, e := range todo {
		at := max(now, e.at)
		if !o.fits(at, e.cost) {
			return false
		}
		o.take(at, e.cost)
	}
	return true
}

// with returns todo with one start more, after those of its instant.
func with(todo []planned, e planned) []planned {
	i, _ := slices.BinarySearchFunc(todo, e.at, func(p planned, at Time) int {
		if p.at <= at {
			return -1
		}
		return 1
	})
	return slices.Insert(slices.Clone(todo), i, e)
}

// firstInPlan scans for the first instant at which a start spoils no other.
func firstInPlan(o oracle, s Spec, now, t Time, cost int64, todo []planned) Time {
	if cost > New(s, time.Time{}).Max() {
		return Never
	}
	for t := max(now, t); t < 1_000_000; t++ {
		if possible(o, now, with(todo, planned{at: t, cost: cost})) {
			return t
		}
	}
	panic("no fit in sight")
}

// TestPlanFindsTheFirstInstant compares Plan with trying every instant, and a
// plan that has a checkpoint with one that has none.
func TestPlanFindsTheFirstInstant(t *testing.T) {
	for _, kind := range []Kind{Window, Bucket, Spaced, Sliding} {
		for _, fifo := range []bool{true, false} {
			t.Run(fmt.Sprintf("%v/fifo=%v", kind, fifo), rapid.MakeCheck(func(rt *rapid.T) {
				testPlan(rt, drawSpec(rt, kind), fifo)
			}))
		}
	}
}

func testPlan(rt *rapid.T, s Spec, fifo bool) {
	var (
		now  Time
		st   = New(s, wall0)
		o    = newOracle(s)
		p    Plan
		seq  uint64
		last Time // the latest start that was planned
	)
	if o, ok := o.(*slidingOracle); ok {
		o.opened = true // a plan is a use
	}
	search := func(from Time, cost int64) Time {
		todo := p.todo.all()
		fresh := planOf(todo)
		got, _ := p.Earliest(st, now, from, cost, fifo)
		if want, _ := fresh.Earliest(st, now, from, cost, fifo); got != want {
			rt.Fatalf("%v at %d: a cost of %d from %d could start at %d, and without a checkpoint at %d\n%v", s, now, cost, from, got, want, todo)
		}
		want := firstInPlan(o, s, now, from, cost, todo)
		if got != want {
			rt.Fatalf("%v at %d: a cost of %d from %d could start at %d, want %d\n%v after %+v", s, now, cost, from, got, want, todo, o)
		}
		return got
	}
	rt.Repeat(map[string]func(*rapid.T){
		"": func(rt *rapid.T) {
			if !p.Feasible(st, now) {
				rt.Fatalf("%v at %d: what was planned is no longer possible: %v", s, now, p.todo.all())
			}
		},
		"insert": func(rt *rapid.T) {
			cost := rapid.Int64Range(1, s.N).Draw(rt, "cost")
			from := now + rapid.Int64Range(0, 3*int64(s.Per)).Draw(rt, "from")
			if rapid.Bool().Draw(rt, "from now") {
				from = now
			}
			if fifo {
				from = max(now, last)
			}
			if at := search(from, cost); at < Never {
				seq++
				p.Insert(at, seq, cost)
				last = max(last, at)
			}
		},
		"look": func(rt *rapid.T) {
			from := now
			if fifo {
				from = max(now, last)
			}
			search(from, rapid.Int64Range(1, s.N+1).Draw(rt, "cost"))
		},
		"remove": func(rt *rapid.T) {
			if p.Len() == 0 {
				rt.Skip("nobody waits")
			}
			e := p.todo.all()[rapid.IntRange(0, p.Len()-1).Draw(rt, "which")]
			p.Remove(e.at, e.seq)
		},
		"start": func(rt *rapid.T) {
			if p.Len() == 0 {
				rt.Skip("nobody waits")
			}
			e := p.todo.all()[0]
			now = max(now, e.at)
			p.Start(st, e.at, e.seq, e.cost, e.at, now)
			o.take(now, e.cost)
		},
		"spend back": func(rt *rapid.T) {
			n := -rapid.Int64Range(1, 4).Draw(rt, "n")
			st.Spend(now, n)
			o.spend(now, n)
			p.Forget()
		},
		"spend": func(rt *rapid.T) {
			n := rapid.Int64Range(1, 4).Draw(rt, "n")
			st.Spend(now, n)
			o.spend(now, n)
			p.Forget()
			if got, want := p.Feasible(st, now), possible(o, now, p.todo.all()); got != want {
				rt.Fatalf("%v at %d: feasible: %v, want %v", s, now, got, want)
			}
			if !p.Feasible(st, now) {
				p.Clear()
				last = 0
			}
		},
	})
}
