package line

import (
	"container/heap"
	"slices"

	"github.com/headway-go/headway/internal/law"
)

// Of those whom a change may help, atOnce are looked at when it happens, and
// then lookOn at each start until all have been: they move up faster than those
// before them go. Until their turn comes they keep their planned starts, which
// are no later than what they were told.
const (
	atOnce = 256
	lookOn = 8
)

// split turns a plain line into a mixed one.
func (l *Line) split() {
	l.planAll(l.last, false)
	l.many = true
	c := new(class)
	*c = l.single
	l.bySeq = make(map[uint64]*waiter)
	for w := c.first; w != nil; w = w.after {
		w.class = c
		l.bySeq[w.seq] = w
	}
	l.single = class{}
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

// dispatchMany is dispatch where needs differ.
func (l *Line) dispatchMany(now law.Time) {
	waiting, all, turns := l.waiting, l.waiting, 0
	for {
		turns++
		l.watchSteps(turns, all)
		for c := l.due.min(); c != nil && c.first.at <= now; c = l.due.min() {
			l.pull(c)
			c.since = now
			l.ready.push(c)
		}
		c := l.next(now)
		if c == nil && l.waiting < waiting {
			waiting = 0 // once
			l.lookFurther(now)
			continue
		}
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
		if w.gate != nil && !l.take(w.gate, &w.pass, now) {
			if r := l.shut(w.gate, now); r != nil {
				l.turnAway(w, r)
				l.improve(now, w.at, w.needs)
				continue
			}
			l.ready.push(c) // its gate has begun to hold it up
			continue
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
	l.stalled = l.ready.Len() > 0 && l.full()
	at := law.Never
	if c := l.due.min(); c != nil {
		at = c.first.at
	}
	for _, c := range l.ready.items {
		c.first.journal.dueSince(c.first.at, c.gate.holds(now))
		if c.gate.holds(now) {
			at = min(at, c.gate.waitsUntil())
		}
	}
	l.arm(at, now)
}

// next returns the class whose first came the earliest among those that are due,
// may have what slot they need, and are not held up by their gate.
func (l *Line) next(now law.Time) *class {
	full, best := l.full(), l.ready.min()
	if best == nil || !full && !best.gate.holds(now) {
		return best
	}
	if full && l.slotless == 0 {
		return nil
	}
	best = nil
	for _, c := range l.ready.items {
		if (!full || c.noSlot) && !c.gate.holds(now) && (best == nil || byArrival(c, best)) {
			best = c
		}
	}
	return best
}

// searchAmong returns the earliest start of w that delays nobody of those in
// line who count.
func (l *Line) searchAmong(w *waiter, now law.Time, counts func(seq uint64) bool) foresight {
	return l.earliest(w.needs, now, func(b *Budget, cost int64, t law.Time) (law.Time, bool) {
		return l.watched(b).EarliestAmong(b.state, now, t, cost, counts)
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
	w.atLeast = p.atLeast || l.unknown(p.at, w.needs, w.noSlot, w.gate, now)
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

// removeMany is remove where needs differ.
func (l *Line) removeMany(w *waiter, now law.Time) {
	l.unplan(w)
	l.quit(w)
	l.improve(now, w.at, w.needs)
	l.dispatch(now)
}

// replanMany is replan where needs differ.
func (l *Line) replanMany(now law.Time, needs []Need, worse bool) {
	for _, n := range needs {
		if worse && !n.B.planned().Feasible(n.B.state, now) {
			l.more().stamp++
			l.touch(needs)
			l.replace(now, l.waiting, true)
			return
		}
	}
	l.improve(now, now, needs)
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

// improve moves those up whom more room in the budgets of needs, from the
// instant from on, helps: in order of arrival, each to the earliest start that
// delays nobody.
func (l *Line) improve(now, from law.Time, needs []Need) {
	l.more().stamp++
	if l.waiting > atOnce {
		l.improveSome(now, max(now, from), needs)
		return
	}
	l.touch(needs)
	for w := l.first; w != nil; w = w.next {
		if l.touched(w) && l.sooner(w, now, now) {
			l.touch(w.needs)
		}
	}
}

// improveSome is improve where not all can be looked at: of those planned to
// start after from, the first in order of arrival among the next of each
// budget. They look for a start from one period before that on.
func (l *Line) improveSome(now, from law.Time, needs []Need) {
	t := from
	for _, n := range needs {
		t = min(t, n.B.planned().Reach(n.B.state, from))
	}
	next := heads{t: max(t, now)}
	for _, n := range needs {
		n.B.planned().Mark(n.B.state, now, next.t)
		next.add(l, n.B, from+1, 0)
	}
	l.look(&next, atOnce, now)
	l.later.merge(next)
}

// look looks at the next n.
func (l *Line) look(next *heads, n int, now law.Time) {
	for left := n; left > 0 && len(next.list) > 0; left-- {
		w := l.bySeq[next.list[0].seq]
		for len(next.list) > 0 && next.list[0].seq == w.seq {
			next.move()
		}
		if at := w.at; l.sooner(w, next.t, now) {
			for _, n := range w.needs {
				if n.B.stamp != l.stamp {
					next.add(l, n.B, at, w.seq+1)
				}
			}
		}
	}
}

// lookFurther looks at some of those whom earlier changes may help.
func (l *Line) lookFurther(now law.Time) {
	if len(l.later.list) == 0 {
		return
	}
	next := heads{t: max(l.later.t, now)}
	l.more().stamp++
	for _, h := range l.later.list {
		next.add(l, h.b, h.at, h.seq)
	}
	l.look(&next, lookOn, now)
	l.later = next
}

// sooner moves w to the earliest start from t on that delays nobody, if that is
// before its own.
func (l *Line) sooner(w *waiter, t, now law.Time) bool {
	if w.ahead != nil {
		t = max(t, w.ahead.at)
	}
	if w.at <= t {
		return false
	}
	l.looks++
	l.unplan(w)
	p := l.earliest(w.needs, t, func(b *Budget, cost int64, t law.Time) (law.Time, bool) {
		return l.watched(b).Sooner(b.state, now, t, w.at, cost)
	})
	if p.at >= w.at {
		l.plan(w)
		return false
	}
	p = l.behind(w.ahead, p, w.needs, w.noSlot, w.gate, now)
	w.at, w.atLeast, w.bind = p.at, p.atLeast, p.bind
	l.plan(w)
	if c := w.class; c.first == w && c.heap != nil {
		heap.Fix(c.heap, c.index)
	}
	return true
}

// heads is who is to be looked at next: of each budget one, and with them those
// who are planned after them. They look for a start from t on.
type heads struct {
	t    law.Time
	list []head // a heap by order of arrival
}

type head struct {
	b   *Budget
	at  law.Time // the planned start
	seq uint64
}

func (h *heads) Len() int           { return len(h.list) }
func (h *heads) Less(i, j int) bool { return h.list[i].seq < h.list[j].seq }
func (h *heads) Swap(i, j int)      { h.list[i], h.list[j] = h.list[j], h.list[i] }
func (h *heads) Push(x any)         { h.list = append(h.list, x.(head)) }

func (h *heads) Pop() any {
	last := len(h.list) - 1
	x := h.list[last]
	h.list = h.list[:last]
	return x
}

// add adds b, and marks it, with whoever is planned for the start given or
// comes next.
func (h *heads) add(l *Line, b *Budget, at law.Time, seq uint64) {
	b.wanted().stamp = l.stamp
	if at, seq, ok := b.planned().Next(at, seq); ok {
		heap.Push(h, head{b, at, seq})
	}
}

// move moves the first on to the next of its budget.
func (h *heads) move() {
	f := &h.list[0]
	var ok bool
	if f.at, f.seq, ok = f.b.planned().Next(f.at, f.seq+1); ok {
		heap.Fix(h, 0)
	} else {
		heap.Pop(h)
	}
}

// merge adds what o has. Of each budget the earlier stays.
func (h *heads) merge(o heads) {
	if len(h.list) == 0 {
		*h = o
		return
	}
	if len(o.list) == 0 {
		return
	}
	h.t = min(h.t, o.t)
	of := make(map[*Budget]int, len(h.list))
	for i, e := range h.list {
		of[e.b] = i
	}
	for _, e := range o.list {
		i, ok := of[e.b]
		switch {
		case !ok:
			h.list = append(h.list, e)
		case e.at < h.list[i].at:
			h.list[i] = e
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
		p := l.searchAfter(w.ahead, w.needs, w.noSlot, w.gate, now)
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
