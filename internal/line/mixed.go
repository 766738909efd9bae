package line

import (
	"container/heap"
	"slices"

	"github.com/headway-go/headway/internal/law"
)

// atOnce is how many of those whom a change may help are looked at when it
// happens. The others keep their planned starts, which are no later than what
// they were told, until a change finds them among the first.
const atOnce = 256

// mix turns a plain line into a mixed one.
func (l *Line) mix() {
	l.planAll(l.last, false)
	l.mixed = true
	c := new(class)
	*c = l.plain
	for w := c.first; w != nil; w = w.after {
		w.class = c
	}
	l.plain = class{}
	l.file(c)
	l.due.push(c)
}

// file lists c under the first budget that it needs.
func (l *Line) file(c *class) {
	if len(c.needs) == 0 {
		l.loose = append(l.loose, c)
	} else {
		d := c.needs[0].B.wanted()
		d.classes = append(d.classes, c)
	}
}

// drop takes a class without waiters off all lists.
func (l *Line) drop(c *class) {
	l.pull(c)
	list := &l.loose
	if len(c.needs) > 0 {
		list = &c.needs[0].B.classes
	}
	*list = slices.DeleteFunc(*list, func(o *class) bool { return o == c })
}

// pull takes c from where it stands: a heap, or those parked.
func (l *Line) pull(c *class) {
	if c.heap != nil {
		heap.Remove(c.heap, c.index)
		return
	}
	l.parked = slices.DeleteFunc(l.parked, func(o *class) bool { return o == c })
}

// dispatchMixed is dispatch where needs differ.
func (l *Line) dispatchMixed(now law.Time) {
	for {
		for c := l.due.min(); c != nil && c.first.at <= now; c = l.due.min() {
			l.pull(c)
			c.since = now
			l.ready.push(c)
		}
		c := l.next()
		if c == nil {
			break
		}
		l.pull(c)
		w := c.first
		w.late = w.late || c.since < now
		t := w.at
		if w.late {
			t = now
		}
		p := l.real(w.needs, t, now)
		switch {
		case p.at == law.Never:
			l.unplan(w)
			l.quit(w)
			l.refuse(w, p, now)
			continue
		case p.at > now && p.atLeast:
			w.atLeast, w.bind = true, p.bind
			c.heap = nil
			l.parked = append(l.parked, c)
			continue
		case p.at > now, p.at > w.at && !w.late:
			l.reseat(w, now)
			continue
		case w.late:
			// Its start is not the planned one: it still delays nobody older.
			if p := l.searchOlder(w, now); p.at > now {
				l.reseat(w, now)
				continue
			}
			p.at = now
		}
		late := w.late
		l.start(w, max(p.at, now-catchUp), now)
		if c.first == nil {
			l.drop(c)
			continue
		}
		c.first.late = late && c.first.at <= now
		l.due.push(c)
	}
	l.stalled = l.ready.Len() > 0
	at := law.Never
	if c := l.due.min(); c != nil {
		at = c.first.at
	}
	l.arm(at, now)
}

// next returns the class whose first came the earliest among those that are due
// and may have what slot they need.
func (l *Line) next() *class {
	if !l.full() || l.ready.Len() == 0 {
		return l.ready.min()
	}
	if l.slotless == 0 {
		return nil
	}
	var best *class
	for _, c := range l.ready.items {
		if c.noSlot && (best == nil || byArrival(c, best)) {
			best = c
		}
	}
	return best
}

// searchAmong returns the earliest start of w that delays nobody of those in
// line who count.
func (l *Line) searchAmong(w *waiter, now law.Time, counts func(seq uint64) bool) foresight {
	return earliest(w.needs, now, func(b *Budget, cost int64, t law.Time) (law.Time, bool) {
		return b.planned().EarliestAmong(b.state, now, t, cost, counts)
	})
}

// searchOlder returns the earliest start of w that delays nobody older.
func (l *Line) searchOlder(w *waiter, now law.Time) foresight {
	return l.searchAmong(w, now, func(seq uint64) bool { return seq < w.seq })
}

// reseat gives w, the first of its class, another planned start after what
// nobody could foretell has made its own impossible. It delays nobody but those
// behind it in its class, who cannot start before it anyway: when their turn
// comes they are given another in the same way.
func (l *Line) reseat(w *waiter, now law.Time) {
	l.unplan(w)
	behind := make(map[uint64]bool)
	for o := w.after; o != nil; o = o.after {
		behind[o.seq] = true
	}
	p := l.searchAmong(w, now, func(seq uint64) bool { return !behind[seq] })
	w.at, w.bind, w.late = p.at, p.bind, false
	w.atLeast = p.atLeast || l.unknown(p.at, w.needs, w.noSlot, now)
	l.plan(w)
	l.due.push(w.class)
}

// quit takes w out of the line and its class.
func (l *Line) quit(w *waiter) {
	c := w.class
	first := c.first == w
	l.unlink(w)
	c.remove(w)
	switch {
	case c.first == nil:
		l.drop(c)
	case first:
		l.pull(c)
		l.due.push(c)
	}
}

// removeMixed is remove where needs differ.
func (l *Line) removeMixed(w *waiter, now law.Time) {
	l.unplan(w)
	l.quit(w)
	l.improve(now, w.needs)
	l.dispatch(now)
}

// replanMixed is replan where needs differ.
func (l *Line) replanMixed(now law.Time, needs []Need, worse bool) {
	for _, n := range needs {
		if worse && !n.B.planned().Feasible(n.B.state, now) {
			l.more().stamp++
			l.touch(needs)
			l.replace(now, l.waiting, true)
			return
		}
	}
	l.improve(now, needs)
}

// touch marks the budgets of needs, and touched tells whether one is marked.
func (l *Line) touch(needs []Need) {
	for _, n := range needs {
		n.B.wanted().stamp = l.stamp
	}
}

func (l *Line) touched(w *waiter) bool {
	for i := range w.needs {
		if w.needs[i].B.stamp == l.stamp {
			return true
		}
	}
	return false
}

// improve moves those up whom more room in the budgets of needs helps: in order
// of arrival, each to the earliest start that delays nobody.
func (l *Line) improve(now law.Time, needs []Need) {
	l.more().stamp++
	l.touch(needs)
	left := atOnce
	for w := l.first; w != nil && left > 0; w = w.next {
		if w.at <= now || !l.touched(w) {
			continue
		}
		left--
		l.unplan(w)
		p := l.searchAfter(w.ahead, w.needs, w.noSlot, now)
		if p.at >= w.at {
			l.plan(w)
			continue
		}
		w.at, w.atLeast, w.bind = p.at, p.atLeast, p.bind
		l.plan(w)
		l.touch(w.needs)
		if c := w.class; c.first == w && c.heap != nil {
			heap.Fix(c.heap, c.index)
		}
	}
}

// replace plans those anew who need one of the budgets that are marked, the
// first most of them, after what they were planned by has proved wrong. Nobody else moves.
// With refuse, those who can no longer start in time are refused.
func (l *Line) replace(now law.Time, most int, refuse bool) {
	var moved []*waiter
	for w := l.first; w != nil && len(moved) < most; w = w.next {
		if l.touched(w) {
			l.unplan(w)
			moved = append(moved, w)
		}
	}
	for _, w := range moved {
		p := l.searchAfter(w.ahead, w.needs, w.noSlot, now)
		if refuse && p.at > w.by || p.at == law.Never {
			l.quit(w)
			l.refuse(w, p, now)
			continue
		}
		w.at, w.atLeast, w.bind = p.at, p.atLeast, p.bind
		l.plan(w)
		if c := w.class; c.first == w {
			l.pull(c)
			l.due.push(c)
		}
	}
}

// unpark looks again at those who wait for an answer.
func (l *Line) unpark(now law.Time) {
	parked := l.parked
	l.parked = nil
	for _, c := range parked {
		w := c.first
		if p := l.real(w.needs, now, now); p.at > now && p.atLeast {
			l.parked = append(l.parked, c)
			continue
		}
		l.reseat(w, now)
	}
}

// classHeap is a heap of classes; each stands in one at most.
type classHeap struct {
	items []*class
	less  func(a, b *class) bool
}

func byStart(a, b *class) bool {
	return a.first.at < b.first.at || a.first.at == b.first.at && a.first.seq < b.first.seq
}

func byArrival(a, b *class) bool { return a.first.seq < b.first.seq }

func (h *classHeap) Len() int           { return len(h.items) }
func (h *classHeap) Less(i, j int) bool { return h.less(h.items[i], h.items[j]) }

func (h *classHeap) Swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	h.items[i].index, h.items[j].index = i, j
}

func (h *classHeap) Push(x any) {
	c := x.(*class)
	c.heap, c.index = h, len(h.items)
	h.items = append(h.items, c)
}

func (h *classHeap) Pop() any {
	c := h.items[len(h.items)-1]
	h.items[len(h.items)-1] = nil
	h.items = h.items[:len(h.items)-1]
	c.heap = nil
	return c
}

func (h *classHeap) push(c *class) { heap.Push(h, c) }

func (h *classHeap) min() *class {
	if len(h.items) == 0 {
		return nil
	}
	return h.items[0]
}
