package line

import (
	"container/heap"
	"slices"

	"github.com/headway-go/headway/internal/law"
)

// When needs differ, a later request may start before an earlier one. Every request then
// has a planned start, which all its budgets know: a budget's law.Plan is the list of the
// starts that are planned to take from it, by time. A search for a start (Plan.Earliest)
// asks each budget for an instant at which the law has room for this one and still has
// room for every start planned later. The budgets are asked in turn until they agree.
//
// That every planned start stays possible is exact for each budget, and costs as much as
// the starts planned within one period. Two short cuts keep it affordable:
//
//   - Classes. Requests of one class start in order, so that only the first of each is
//     looked at for what is due. The class waits in due, ordered by its first's planned
//     start; from then on in ready, ordered by arrival, while it wants a slot or its gate;
//     or in parked, while a strict unit may come back with any response.
//   - Moving up. When a request leaves, those that it delayed may start earlier. Looking
//     at all of them would make a cancel cost as much as the line is long. So of a long
//     line some are looked at now and the rest as others start.
//
//	arrival ──▶ due ──▶ ready ──▶ start ──▶ chain ──▶ sent
//	             │ ▲
//	             ▼ │ a response
//	            parked
//
// Moving up is in order of arrival, and each takes the earliest start that delays no
// other. Planning all anew in order of arrival would be simpler and is wrong: in one of 75
// random lines a cancel then moved some request back.

// Of the requests that a change may help, atOnce are looked at when it happens, and
// then lookOn at each start until all have been: they move up faster than those
// before them go. Until their turn comes they keep their planned starts, which
// are no later than what was reported for them.
const (
	atOnce = 256
	lookOn = 8
)

// split goes from one class to many: from here on every request has a planned start.
func (l *locked) split() {
	l.planAll(l.last, false)
	l.many = true
	c := new(class)
	*c = l.single
	l.single = class{}
	l.bySeq = make(map[uint64]*waiter)
	for w := c.first; w != nil; w = w.after {
		w.class = c
		l.bySeq[w.seq] = w
	}
	l.file(c)
	l.enqueue(c)
}

// file lists c under the first budget that it needs.
func (l *locked) file(c *class) {
	if len(c.needs) > 0 {
		c.needs[0].B.wanted()
	}
	list := l.classes(c.kind)
	*list = append(*list, c)
}

// drop takes a class without waiters off all lists.
func (l *locked) drop(c *class) {
	l.pull(c)
	list := l.classes(c.kind)
	*list = slices.DeleteFunc(*list, func(o *class) bool { return o == c })
}

// pull takes c from where it stands: a heap, the parked ones, or nowhere.
func (l *locked) pull(c *class) {
	if c.heap != nil {
		heap.Remove(c.heap, c.index)
		c.heap = nil
		return
	}
	l.parked = slices.DeleteFunc(l.parked, func(o *class) bool { return o == c })
}

// enqueue puts c among those that are due, or will be, by the planned start of its first.
func (l *locked) enqueue(c *class) {
	l.pull(c)
	push(&l.due, c)
}

func push(h *heapOf[*class], c *class) {
	c.heap = h
	heap.Push(h, c)
}

func byStart(a, b *class) bool {
	return a.first.at < b.first.at || a.first.at == b.first.at && a.first.seq < b.first.seq
}

func byArrival(a, b *class) bool { return a.first.seq < b.first.seq }

// dispatchMany is dispatch where needs differ. Each turn moves the classes that have become
// due to ready, and takes the one of them whose first arrived the earliest:
//
//   - It can never start: it is refused.
//   - It waits for a response: the class is parked.
//   - It cannot start as planned, since something has come otherwise: reseat.
//   - It is late: a start at another time than the planned one must not delay any older
//     request. Younger ones make way.
//   - Its gate does not let it pass: it is refused, or goes back to ready.
//
// Otherwise it starts. When something has started and nothing more is due, those that
// earlier changes may help are looked at, once; that may make more of them due.
func (l *locked) dispatchMany(now law.Time) {
	waiting, all, turns := l.waiting, l.waiting, 0
	for {
		turns++
		l.watchSteps(turns, all)
		for c := l.due.min(); c != nil && c.first.at <= now; c = l.due.min() {
			l.pull(c)
			c.since = now
			push(&l.ready, c)
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
			l.refuse(w, p.refusal(w.needs, now, w.byDeadline))
			continue
		case p.at > now && p.atLeast:
			w.atLeast, w.bind = true, p.bind
			l.parked = append(l.parked, c)
			continue
		case p.at > now, p.at > w.at && !w.late:
			l.reseat(w, now)
			continue
		case w.late:
			// Its start is not the planned one: it must still delay none that is older.
			if p := l.searchOlder(w, now); p.at > now {
				l.reseat(w, now)
				continue
			}
			p.at = now
		}
		if w.gate != nil && !l.pass(w.gate, &w.pass, now) {
			if r := l.shut(w.gate, now); r != nil {
				l.refuse(w, r)
				l.improve(now, w.at, w.needs)
				continue
			}
			push(&l.ready, c) // its gate has begun to delay it
			continue
		}
		late := w.late
		l.start(w, max(p.at, now-catchUp), now)
		if c.first == nil {
			l.drop(c)
			continue
		}
		c.first.late = late && c.first.at <= now
		push(&l.due, c)
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
// may have the slot that they need, and are not delayed by their gate.
func (l *locked) next(now law.Time) *class {
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

// searchAmong returns the earliest start of w that delays none of those in
// line that count.
func (l *locked) searchAmong(w *waiter, now law.Time, counts func(seq uint64) bool) foresight {
	return l.earliest(w.needs, now, func(b *Budget, cost int64, t law.Time) (law.Time, bool) {
		return l.watched(b).EarliestAmong(b.state, now, t, cost, counts)
	})
}

// searchOlder returns the earliest start of w that delays none that is older.
func (l *locked) searchOlder(w *waiter, now law.Time) foresight {
	return l.searchAmong(w, now, func(seq uint64) bool { return seq < w.seq })
}

// reseat gives w, the first of its class, another planned start after something
// that could not be foreseen has made its own impossible. It delays none but those
// behind it in its class, which cannot start before it anyway: when their turn
// comes they are given another in the same way.
func (l *locked) reseat(w *waiter, now law.Time) {
	l.unplan(w)
	behind := make(map[uint64]bool)
	for o := w.after; o != nil; o = o.after {
		behind[o.seq] = true
	}
	p := l.searchAmong(w, now, func(seq uint64) bool { return !behind[seq] })
	p.atLeast = p.atLeast || l.unknown(p.at, w.kind(), now)
	w.late = false
	l.seat(w, p)
}

// replanMany is replan where needs differ. If something has been taken so that a planned
// start of one of the budgets is impossible, every request that needs one of them is
// planned anew. Otherwise all planned starts hold, and some may move up. They also may where
// an announcement delays others, by an hour perhaps, which had planned to take what they need.
func (l *locked) replanMany(now law.Time, needs []Need, worse bool) {
	for _, n := range needs {
		if worse && !n.B.planned().Feasible(n.B.state, now) {
			l.wantExtra().stamp++
			l.touch(needs)
			moved := l.replace(now, l.waiting, true)
			if n.B.origin == nil {
				return
			}
			needs = l.besides(moved)
			break
		}
	}
	l.improve(now, now, needs)
}

// besides returns what requests need besides the budgets that are marked, and marks that
// too.
func (l *locked) besides(moved []*waiter) (needs []Need) {
	for _, w := range moved {
		for _, n := range w.needs {
			if n.B.stamp != l.stamp {
				n.B.wanted().stamp = l.stamp
				needs = append(needs, n)
			}
		}
	}
	return needs
}

// touch marks the budgets of needs, and touched reports whether one is marked. A mark is the
// line's current stamp, so that raising the stamp unmarks all budgets at once.
func (l *locked) touch(needs []Need) {
	for _, n := range needs {
		n.B.wanted().stamp = l.stamp
	}
}

func (l *locked) touched(w *waiter) bool {
	for i := range w.needs {
		if w.needs[i].B.stamp == l.stamp {
			return true
		}
	}
	return false
}

// improve moves those up that more room in the budgets of needs, from the
// instant from on, helps: in order of arrival, each to the earliest start that
// delays no other.
func (l *locked) improve(now, from law.Time, needs []Need) {
	l.wantExtra().stamp++
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
// budget. They look for a start from one period before that on, since a unit that comes
// free at from makes no earlier start possible. Mark has each plan remember what it has
// summed up to there, so that 256 searches do not begin at now each.
func (l *locked) improveSome(now, from law.Time, needs []Need) {
	t := from
	for _, n := range needs {
		t = min(t, n.B.planned().Reach(n.B.state, from))
	}
	next := newHeads(max(t, now))
	for _, n := range needs {
		n.B.planned().Mark(n.B.state, now, next.t)
		next.add(l, n.B, from+1, 0)
	}
	l.look(&next, atOnce, now)
	l.later.merge(next)
}

// look looks at the next n. A request that moves frees its old start, so that the other
// budgets which it needs join the heads from there on.
func (l *locked) look(next *heads, n int, now law.Time) {
	for left := n; left > 0 && next.Len() > 0; left-- {
		w := l.bySeq[next.items[0].seq]
		for next.Len() > 0 && next.items[0].seq == w.seq {
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

// lookFurther looks at some of those that earlier changes may help.
func (l *locked) lookFurther(now law.Time) {
	if l.later.Len() == 0 {
		return
	}
	next := newHeads(max(l.later.t, now))
	l.wantExtra().stamp++
	for _, h := range l.later.items {
		next.add(l, h.b, h.at, h.seq)
	}
	l.look(&next, lookOn, now)
	l.later = next
}

// sooner moves w to the earliest start from t on that delays no other, if that is
// before its own.
func (l *locked) sooner(w *waiter, t, now law.Time) bool {
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
	l.seat(w, l.behind(w.ahead, p, w.kind(), now))
	return true
}

// heads are the requests to be looked at next: of each budget one, and with it those
// that are planned after it. They look for a start from t on. The heap is by order of
// arrival.
type heads struct {
	heapOf[head]
	t law.Time
}

type head struct {
	b   *Budget
	at  law.Time // the planned start
	seq uint64
}

func newHeads(t law.Time) heads {
	return heads{heapOf[head]{less: func(a, b head) bool { return a.seq < b.seq }}, t}
}

// add adds b, and marks it, with the request that is planned for the start given or
// comes next.
func (h *heads) add(l *locked, b *Budget, at law.Time, seq uint64) {
	b.wanted().stamp = l.stamp
	if at, seq, ok := b.planned().Next(at, seq); ok {
		heap.Push(h, head{b, at, seq})
	}
}

// move moves the first on to the next of its budget.
func (h *heads) move() {
	f := &h.items[0]
	var ok bool
	if f.at, f.seq, ok = f.b.planned().Next(f.at, f.seq+1); ok {
		heap.Fix(h, 0)
	} else {
		heap.Pop(h)
	}
}

// merge adds what o has. Of each budget the earlier stays.
func (h *heads) merge(o heads) {
	if h.Len() == 0 {
		*h = o
		return
	}
	if o.Len() == 0 {
		return
	}
	h.t = min(h.t, o.t)
	of := make(map[*Budget]int, h.Len())
	for i, e := range h.items {
		of[e.b] = i
	}
	for _, e := range o.items {
		i, ok := of[e.b]
		switch {
		case !ok:
			h.items = append(h.items, e)
		case e.at < h.items[i].at:
			h.items[i] = e
		}
	}
}

// replace plans those anew that need one of the budgets that are marked, the
// first most of them, after what they were planned by has proved wrong. No other moves.
// With refuse, those that can no longer start in time are refused. It returns those that
// have been looked at.
func (l *locked) replace(now law.Time, most int, refuse bool) (moved []*waiter) {
	for w := l.first; w != nil && len(moved) < most; w = w.next {
		if l.touched(w) {
			l.unplan(w)
			moved = append(moved, w)
		}
	}
	for _, w := range moved {
		p := l.search(w.ahead, w.kind(), now)
		if refuse && p.at > w.by || p.at == law.Never {
			l.quit(w)
			l.wake(w, p.refusal(w.needs, now, w.byDeadline))
			continue
		}
		l.seat(w, p)
	}
	return moved
}

// unpark looks again at those that wait for a response.
func (l *locked) unpark(now law.Time) {
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
