package line

import (
	"slices"
	"time"

	"github.com/headway-go/headway/internal/awake"
	"github.com/headway-go/headway/internal/law"
)

// class is those in line that need the same budgets (and a slot, or none) and
// stand before the same gate, in order of arrival. They start in that order.
type class struct {
	needs       []Need // for the budgets; costs differ
	noSlot      bool
	gate        *Gate
	first, last *waiter
	heap        *classHeap // mixed: where it stands; nil if parked
	index       int        // in heap
	since       law.Time   // mixed: since when it is due
}

func (c *class) is(needs []Need, noSlot bool, g *Gate) bool {
	if c.noSlot != noSlot || c.gate != g || len(c.needs) != len(needs) {
		return false
	}
	for i := range needs {
		if c.needs[i].B != needs[i].B {
			return false
		}
	}
	return true
}

func (c *class) push(w *waiter) {
	w.class, w.ahead = c, c.last
	if c.last == nil {
		c.first = w
	} else {
		c.last.after = w
	}
	c.last = w
}

func (c *class) remove(w *waiter) {
	if w.ahead == nil {
		if c.first = w.after; c.first != nil {
			c.first.journal.leads()
		}
	} else {
		w.ahead.after = w.after
	}
	if w.after == nil {
		c.last = w.ahead
	} else {
		w.after.ahead = w.ahead
	}
	w.ahead, w.after = nil, nil
}

// earliest returns the first instant at or after t at which every need has
// room, as find tells it for one need. Each turn but the last finds a later instant:
// one at which a law has room again, or that after a planned start.
func (l *Line) earliest(needs []Need, t law.Time, find func(b *Budget, cost int64, t law.Time) (law.Time, bool)) foresight {
	p, turns := foresight{at: t, bind: -1}, 0
	for again := true; again; {
		again = false
		turns++
		l.watchSteps(turns, l.waiting)
		for i := range needs {
			at, atLeast := find(needs[i].B, needs[i].Cost, p.at)
			if at > p.at {
				p.at, p.bind, p.atLeast, again = at, i, false, i > 0 || len(needs) > 1
			}
			p.atLeast = p.atLeast || atLeast
			if p.at == law.Never {
				return p
			}
		}
	}
	return p
}

// real is earliest by what has started, whatever is planned.
func (l *Line) real(needs []Need, t, now law.Time) foresight {
	return l.earliest(needs, t, func(b *Budget, cost int64, t law.Time) (law.Time, bool) {
		return b.state.Earliest(now, t, cost)
	})
}

// search is earliest by what has started and what is planned. Nothing planned
// becomes impossible by a start then.
func (l *Line) search(needs []Need, t, now law.Time) foresight {
	return l.earliest(needs, t, func(b *Budget, cost int64, t law.Time) (law.Time, bool) {
		return l.watched(b).Earliest(b.state, now, t, cost, !l.many)
	})
}

// watched is b's plan, whose searches a test sees.
func (l *Line) watched(b *Budget) *law.Plan {
	p := b.planned()
	if watchSteps != nil {
		l.watchSteps(p.Turns(), p.Len()) // of the last search
	}
	return p
}

// searchAfter is search for a request whose turn comes after ahead's, if that
// is not nil.
func (l *Line) searchAfter(ahead *waiter, needs []Need, noSlot bool, g *Gate, now law.Time) foresight {
	t := now
	if ahead != nil {
		t = max(now, ahead.at)
	}
	return l.behind(ahead, l.search(needs, t, now), needs, noSlot, g, now)
}

// behind adds to p what is known of ahead, if that is not nil.
func (l *Line) behind(ahead *waiter, p foresight, needs []Need, noSlot bool, g *Gate, now law.Time) foresight {
	if ahead != nil {
		if p.bind < 0 {
			p.bind = ahead.bind
		}
		// Who is still here when due waits for what nobody can foretell.
		p.atLeast = p.atLeast || ahead.atLeast || ahead.at <= now
	}
	p.atLeast = p.atLeast || l.unknown(p.at, needs, noSlot, g, now)
	return p
}

// foresee returns when a request that arrives now could start.
func (l *Line) foresee(needs []Need, noSlot bool, g *Gate, now law.Time) foresight {
	if l.waiting == 0 {
		p := l.real(needs, now, now)
		p.atLeast = p.atLeast || l.unknown(p.at, needs, noSlot, g, now)
		return p
	}
	l.planAll(now, false)
	var ahead *waiter
	if c := l.classOf(needs, noSlot, g); c != nil {
		ahead = c.last
	}
	return l.searchAfter(ahead, needs, noSlot, g, now)
}

// unknown reports whether a start planned for at may become later by what
// nobody can foretell: when a slot comes free or a gate lets somebody through,
// for it or for somebody older who then takes what it needs, when those have
// their answers who take strict units before it, or what a server announces by
// then, where it is planned for a time that nothing has been announced for.
func (l *Line) unknown(at law.Time, needs []Need, noSlot bool, g *Gate, now law.Time) bool {
	if at <= now {
		return g.holds(now) || l.slots > 0 && !noSlot && (l.full() || l.stalled)
	}
	if l.gated || !g.Free() || l.slots > 0 && (!noSlot || l.slotless < l.waiting) {
		return true
	}
	for i := range needs {
		if needs[i].B.strict {
			return true
		}
		if c := needs[i].B.announcedCap(); c != nil && c.Over(at) && !c.Over(now) {
			return true
		}
	}
	return false
}

// learned returns the limit that b is, if a response has announced it.
func (b *Budget) announcedCap() *law.Cap {
	c, _ := b.state.(*law.Cap)
	return c
}

// classOf returns the class in line with just these needs, or nil.
func (l *Line) classOf(needs []Need, noSlot bool, g *Gate) *class {
	if !l.many {
		if l.waiting > 0 && l.single.is(needs, noSlot, g) {
			return &l.single
		}
		return nil
	}
	list := l.loose
	if len(needs) > 0 {
		list = needs[0].B.classes
	}
	for _, c := range list {
		if c.is(needs, noSlot, g) {
			return c
		}
	}
	return nil
}

// add puts w at the end of the line, with the start that foresee gave, or
// without one.
func (l *Line) add(w *waiter, p *foresight) {
	l.seq++
	w.seq = l.seq
	c := l.classOf(w.needs, w.noSlot, w.gate)
	if c == nil {
		c = l.newClass(w)
	}
	if w.prev = l.tail; w.prev == nil {
		l.first = w
	} else {
		w.prev.next = w
	}
	l.tail = w
	l.gated = l.gated || !w.gate.Free()
	l.count(w, 1)
	if l.crowd != nil {
		l.joinCrowd(w)
	}
	c.push(w)
	if p != nil {
		w.at, w.atLeast, w.bind = p.at, p.atLeast, p.bind
		l.plan(w)
	} else if l.unplanned == nil {
		l.unplanned = w
	}
	if l.many {
		l.bySeq[w.seq] = w
		if c.first == w {
			l.due.push(c)
		}
	}
	l.limitWait(w)
}

// count keeps the numbers of those waiting.
func (l *Line) count(w *waiter, n int) {
	l.waiting += n
	if w.key != 0 {
		l.keyed += n
	}
	if w.by < forever {
		l.bounded += n
	}
	if w.noSlot {
		l.slotless += n
	}
	if w.gate != nil {
		w.gate.waiting += n
	}
	for i := range w.needs {
		w.needs[i].B.wanted().users += n
	}
}

// limitWait arms the timer that ends w's wait where laws and pauses alone cannot
// foretell that it fits into its budget: a response may announce another reset at
// any time. Deadlines are the context's to end.
func (l *Line) limitWait(w *waiter) {
	if w.timer != nil || w.byDeadline || w.by == forever {
		return
	}
	unknown := l.slots > 0 || l.gated // its own, or that of one who takes what it needs
	for i := range w.needs {
		unknown = unknown || w.needs[i].B.strict || w.needs[i].B.announcedCap() != nil
	}
	if unknown {
		w.timer = time.AfterFunc(awake.Piece(time.Duration(w.by-l.last)), func() { l.expire(w) })
	}
}

// newClass makes the class of the first of its kind.
func (l *Line) newClass(w *waiter) *class {
	if l.waiting == 0 {
		l.single = class{needs: w.needs, noSlot: w.noSlot, gate: w.gate}
		l.unplanned = nil
		return &l.single
	}
	if !l.many {
		l.split()
	}
	c := &class{needs: w.needs, noSlot: w.noSlot, gate: w.gate}
	l.file(c)
	return c
}

// plan notes w's planned start in its budgets.
func (l *Line) plan(w *waiter) {
	for i := range w.needs {
		w.needs[i].B.planned().Insert(w.at, w.seq, w.needs[i].Cost)
	}
}

func (l *Line) unplan(w *waiter) {
	for i := range w.needs {
		w.needs[i].B.planned().Remove(w.at, w.seq)
	}
}

// planAll gives everybody in a plain line a planned start who has none. With
// strict it refuses those who can no longer start in time.
func (l *Line) planAll(now law.Time, strict bool) {
	for l.unplanned != nil {
		w := l.unplanned
		p := l.searchAfter(w.prev, w.needs, w.noSlot, w.gate, now)
		if strict && (p.at > w.by || p.at == law.Never) {
			l.unlink(w)
			l.single.remove(w)
			l.refuse(w, p, now)
			continue
		}
		l.unplanned = w.next
		w.at, w.atLeast, w.bind = p.at, p.atLeast, p.bind
		l.plan(w)
	}
}

// dropPlan forgets all planned starts of a plain line; the first is looked at
// anew, the others when somebody asks. The queue may be idle: a gate changes also
// while those before it stand in a line of package storeline.
func (l *Line) dropPlan() {
	if l.queue == &idleQueue {
		return
	}
	for i := range l.single.needs {
		l.single.needs[i].B.planned().Clear()
	}
	l.unplanned = l.first
}

// unlink takes w out of the line.
func (l *Line) unlink(w *waiter) {
	l.count(w, -1)
	if l.crowd != nil {
		if l.crowd.Remove(w.member); l.waiting == 0 {
			l.crowd = nil
		}
	}
	delete(l.bySeq, w.seq)
	if w.timer != nil {
		w.timer.Stop()
	}
	if w.prev == nil {
		l.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		l.tail = w.prev
	} else {
		w.next.prev = w.prev
	}
	if l.unplanned == w {
		l.unplanned = w.next
	}
	w.prev, w.next = nil, nil
}

// remove takes w out of the line unserved, and those behind move up.
func (l *Line) remove(w *waiter, now law.Time) {
	if l.many {
		l.removeMany(w, now)
		return
	}
	first, planned := l.first == w, l.isPlanned(w)
	l.unlink(w)
	l.single.remove(w)
	if planned {
		l.dropPlan()
	}
	if first {
		l.dispatch(now)
	}
}

// isPlanned reports whether w, in a plain line, has a planned start.
func (l *Line) isPlanned(w *waiter) bool {
	return l.unplanned == nil || w.seq < l.unplanned.seq
}

// dispatch starts everybody who is due at now, and arms the timer for the next.
func (l *Line) dispatch(now law.Time) {
	switch {
	case l.queue == &idleQueue:
		return
	case l.many:
		l.dispatchMany(now)
	case l.first != nil:
		l.dispatchOne(now)
	}
	if l.first == nil {
		l.settle()
	}
	l.chain.kick()
}

// settle returns an empty line to its plain state.
func (l *Line) settle() {
	l.bySeq, l.later = nil, heads{}
	l.many, l.stalled, l.gated, l.unplanned = false, false, false, nil
	l.arm(law.Never, 0)
}

// dispatchOne is dispatch while all in line need the same.
func (l *Line) dispatchOne(now law.Time) {
	// Whoever was due while the timer slept starts as of its slot.
	t := now
	if w := l.first; w.armed && !w.late {
		t = min(now, w.at)
	}
	waiting, turns := l.waiting, 0
	for w := l.first; w != nil; w = l.first {
		turns++
		l.watchSteps(turns, waiting)
		p := l.real(w.needs, t, now)
		if l.isPlanned(w) && p.at != w.at && (!w.late || p.at > now) {
			l.dropPlan() // something came otherwise than planned
		}
		switch {
		case p.at == law.Never:
			l.unlink(w)
			l.single.remove(w)
			l.refuse(w, p, now)
			t = now
			continue
		case p.at > now:
			w.at, w.bind, w.armed = p.at, p.bind, true
			w.journal.bound(w)
			w.atLeast = p.atLeast || l.unknown(p.at, w.needs, w.noSlot, w.gate, now)
			if l.unplanned == w {
				l.plan(w)
				l.unplanned = w.next
			}
			if p.atLeast {
				p.at = law.Never // the answer will come here
			}
			l.stalled = false
			l.arm(p.at, now)
			return
		case l.full() && !w.noSlot:
			w.late, w.atLeast, w.bind = true, true, -1
			w.journal.dueSince(p.at, false)
			l.stalled = true
			l.arm(law.Never, now)
			return
		}
		if w.gate != nil && !l.take(w.gate, &w.pass, now) {
			if r := l.shut(w.gate, now); r != nil {
				l.turnAway(w, r)
				t = now
				continue
			}
			w.late, w.atLeast, w.bind = true, true, -1
			w.journal.dueSince(p.at, true)
			l.stalled = false
			l.arm(w.gate.waitsUntil(), now)
			return
		}
		slot := max(p.at, now-catchUp)
		if w.late {
			slot = now // it could not have started then
		}
		l.start(w, slot, now)
		if l.first != nil {
			t = min(now, max(slot, l.first.arrived))
		}
	}
}

// start takes all that w needs beside its pass, and puts it into the chain.
func (l *Line) start(w *waiter, slot, now law.Time) {
	planned := l.many || l.isPlanned(w)
	if l.strict {
		w.needs = slices.Clone(w.needs) // from here on they are its own
	}
	for i := range w.needs {
		n := &w.needs[i]
		var strict bool
		if planned {
			strict = n.B.planned().Start(n.B.state, w.at, w.seq, n.Cost, slot, now)
		} else {
			strict = law.TakeLate(n.B.state, slot, now, n.Cost)
			n.B.forget()
		}
		if strict {
			n.inFlight, n.at = true, now
		}
	}
	if w.inFlight {
		l.addInFlight(w.needs, w.identity, 1)
	}
	w.journal.bound(w)
	l.unlink(w)
	w.class.remove(w)
	if l.slots > 0 && !w.noSlot {
		l.slotsTaken++
		w.slot = true
	}
	w.at, w.state = now, started
	l.chain.push(w)
}

// arm sets the timer to at, or a piece of the way there; law.Never stops it.
func (l *Line) arm(at, now law.Time) {
	switch {
	case at == l.timerAt:
		return
	case at == law.Never:
		l.timer.Stop()
	case l.timer == nil:
		l.timer = time.AfterFunc(awake.Piece(time.Duration(at-now)), l.wake)
	default:
		l.timer.Reset(awake.Piece(time.Duration(at - now)))
	}
	l.timerAt = at
}

func (l *Line) wake() {
	now := l.lock()
	defer l.unlock()
	if l.timerAt != law.Never { // it has run: a piece of the way, or all
		if now >= l.timerAt {
			l.fired++
		}
		l.timerAt = law.Never
	}
	l.dispatch(now)
}

// replan looks at the line anew after something has changed that is not a
// planned start: worse says that it may have become later for somebody. Then
// those who can no longer start in time are refused now.
func (l *Line) replan(now law.Time, needs []Need, worse bool) {
	switch {
	case l.first == nil:
	case l.many:
		l.replanMany(now, needs, worse)
	default:
		l.dropPlan()
		if worse && (l.bounded > 0 || l.lowered) {
			l.planAll(now, true)
		}
	}
	if l.lowered {
		l.lowered = false
	}
	l.dispatch(now)
}

// answered looks at those who wait for an answer, now that the budgets that are
// marked have one.
func (l *Line) responded(now law.Time) {
	switch {
	case l.first == nil:
	case l.many:
		l.unpark(now)
		// Starts were planned as if this answer came at once.
		l.replace(now, atOnce, false)
	default:
		l.dropPlan()
	}
	l.dispatch(now)
}
