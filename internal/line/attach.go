package line

import (
	"slices"
)

// holdWaiting makes those in line whom s concerns need b besides: one unit of it, or as
// much as of s.Rule.
func (l *Line) holdWaiting(b *Budget, s Scope, one bool) {
	l.attach(b, func(w *waiter) int64 {
		if s.Identity != 0 && w.identity != s.Identity {
			return 0
		}
		if s.Rule == nil {
			return 1
		}
		for i := range w.needs {
			if w.needs[i].B == s.Rule && one {
				return 1
			} else if w.needs[i].B == s.Rule {
				return w.needs[i].Cost
			}
		}
		return 0
	})
}

// attach makes those in line need as much of b besides as cost says.
func (l *Line) attach(b *Budget, cost func(*waiter) int64) {
	some, all := false, true
	for w := l.first; w != nil; w = w.next {
		if cost(w) > 0 {
			some = true
		} else {
			all = false
		}
	}
	if !some {
		return
	}
	if l.many || !all {
		l.regroup(b, cost)
		return
	}
	l.dropPlan()
	for w := l.first; w != nil; w = w.next {
		l.need(w, b, cost(w))
	}
	l.single.needs = l.first.needs
}

// need makes w need cost units of b besides.
func (l *Line) need(w *waiter, b *Budget, cost int64) {
	w.needs = append(slices.Clip(w.needs), Need{B: b, Cost: cost})
	b.wanted().users++
	l.limitWait(w)
}

// regroup is attach where afterwards needs differ. Planned starts stay: the
// caller looks whether they are still possible.
func (l *Line) regroup(b *Budget, cost func(*waiter) int64) {
	if !l.many {
		l.split()
	}
	for w := l.first; w != nil; w = w.next {
		l.unplan(w)
		if w.class.first == w {
			l.drop(w.class)
		}
	}
	for w := l.first; w != nil; w = w.next {
		w.ahead, w.after, w.class = nil, nil, nil
	}
	for w := l.first; w != nil; w = w.next {
		if n := cost(w); n > 0 {
			l.need(w, b, n)
		}
		c := l.classOf(w.needs, w.noSlot, w.gate)
		if c == nil {
			c = &class{needs: w.needs, noSlot: w.noSlot, gate: w.gate}
			l.file(c)
		}
		c.push(w)
		l.plan(w)
		if c.first == w {
			w.journal.leads()
			l.due.push(c)
		}
	}
}
