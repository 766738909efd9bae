package line

import (
	"slices"
	"time"

	"github.com/headway-go/headway/internal/awake"
	"github.com/headway-go/headway/internal/law"
)

// While all requests in line need the same, they are one class, and start in order of
// arrival. Nothing can be backfilled, so that a planned start matters only to those that
// ask for it: the first, whose start sets the timer; a request that arrives with a wait
// budget or a deadline, which may have to be refused; and whatever asks how long a request
// would wait. Of the line
//
//	first ── ... ── planned ── unplanned ── ... ── last
//
// a prefix has planned starts, and planAll extends it to the end when that is needed. A
// request without a bound joins at the end without any, in constant time. When
// something changes, dropPlan forgets the prefix as a whole instead of repairing it.
//
// A plan is kept with each budget, see law.Plan, and so costs memory only where requests
// wait.

// A class is the requests in line of one kind, in order of arrival. They start in
// that order.
type class struct {
	kind
	first, last *waiter
	heap        *heapOf[*class] // many classes: where it stands; nil if parked
	index       int             // in heap
	since       law.Time        // many classes: since when it is due
}

func (c *class) push(w *waiter) {
	w.class, w.ahead, w.after = c, c.last, nil
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
// room, where find says so for one need. Each turn but the last finds a later instant:
// one at which a law has room again, or the one after a planned start. So the instants
// only grow, and the turns are bounded by the planned starts and the needs.
//
// The need that moves the instant last is the one that binds: what a refusal names.
func (l *locked) earliest(needs []Need, t law.Time, find func(b *Budget, cost int64, t law.Time) (law.Time, bool)) foresight {
	p, turns := foresight{at: t, bind: -1}, 0
	for again := true; again; {
		again = false
		turns++
		l.watchSteps(turns, l.waiting)
		for i := range needs {
			at, atLeast := find(needs[i].B, needs[i].Cost, p.at)
			if at > p.at {
				p.at, p.bind, p.atLeast, again = at, int32(i), false, i > 0 || len(needs) > 1
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
func (l *locked) real(needs []Need, t, now law.Time) foresight {
	return l.earliest(needs, t, func(b *Budget, cost int64, t law.Time) (law.Time, bool) {
		return b.state.Earliest(now, t, cost)
	})
}

// watched is b's plan, whose searches a test sees.
func (l *locked) watched(b *Budget) *law.Plan {
	p := b.planned()
	if watchSteps != nil {
		l.watchSteps(p.Turns(), p.Len()) // of the last search
	}
	return p
}

// search is earliest by what has started and what is planned, for a request whose turn
// comes after ahead's, unless that is nil. A start then makes no planned one impossible.
func (l *locked) search(ahead *waiter, k kind, now law.Time) foresight {
	t := now
	if ahead != nil {
		t = max(now, ahead.at)
	}
	p := l.earliest(k.needs, t, func(b *Budget, cost int64, t law.Time) (law.Time, bool) {
		return l.watched(b).Earliest(b.state, now, t, cost, !l.many)
	})
	return l.behind(ahead, p, k, now)
}

// behind adds to p what is known of ahead, unless that is nil.
func (l *locked) behind(ahead *waiter, p foresight, k kind, now law.Time) foresight {
	if ahead != nil {
		if p.bind < 0 {
			p.bind = ahead.bind
		}
		// A request that is still in line when it is due waits for what cannot be foreseen.
		p.atLeast = p.atLeast || ahead.atLeast || ahead.at <= now
	}
	p.atLeast = p.atLeast || l.unknown(p.at, k, now)
	return p
}

// foresee returns when a request that arrives now could start.
func (l *locked) foresee(k kind, now law.Time) foresight {
	if l.waiting == 0 {
		return l.behind(nil, l.real(k.needs, now, now), k, now)
	}
	l.planAll(now, false)
	var ahead *waiter
	if c := l.classOf(k); c != nil {
		ahead = c.last
	}
	return l.search(ahead, k, now)
}

// unknown reports whether a start planned for at may become later by something that
// cannot be foreseen:
//   - a slot that comes free, or a gate that lets a request pass, for this request or for
//     an older one, which then takes what this one needs;
//   - a response that gives strict units back, which others take first;
//   - what the server announces before then of a limit that it has announced.
func (l *locked) unknown(at law.Time, k kind, now law.Time) bool {
	if at <= now {
		return k.gate.holds(now) || l.slots > 0 && !k.noSlot && (l.full() || l.stalled)
	}
	if l.gated || !k.gate.Free() || l.slots > 0 && (!k.noSlot || l.slotless < l.waiting) {
		return true
	}
	for i := range k.needs {
		if k.needs[i].B.strict {
			return true
		}
		if c := k.needs[i].B.announcedCap(); c != nil && !c.Over(now) {
			return true
		}
	}
	return false
}

// classes returns where the classes of a kind are listed while there are many: at the
// first budget that they need.
func (l *locked) classes(k kind) *[]*class {
	if len(k.needs) == 0 {
		return &l.loose
	}
	return &k.needs[0].B.demand.classes
}

// classOf returns the class in line of a kind, or nil.
func (l *locked) classOf(k kind) *class {
	if !l.many {
		if l.waiting > 0 && l.single.is(k) {
			return &l.single
		}
		return nil
	}
	for _, c := range *l.classes(k) {
		if c.is(k) {
			return c
		}
	}
	return nil
}

// classFor returns the class that w joins, which it makes for the first of its kind.
func (l *locked) classFor(w *waiter) *class {
	k := w.kind()
	if c := l.classOf(k); c != nil {
		return c
	}
	if l.waiting == 0 {
		l.single, l.unplanned = class{kind: k}, nil
		return &l.single
	}
	return l.newClass(k)
}

// newClass is apart, as classFor is on the way of every request that waits and this takes
// much of the stack.
//
//go:noinline
func (l *locked) newClass(k kind) *class {
	if !l.many {
		l.split()
	}
	c := &class{kind: k}
	l.file(c)
	return c
}

// add puts w at the end of the line, with the start that foresee gave, or
// without one.
func (l *locked) add(w *waiter, p *foresight) {
	l.seq++
	w.seq = l.seq
	c := l.classFor(w)
	l.waiters.push(w)
	l.gated = l.gated || !w.gate.Free()
	l.count(w, 1)
	if l.crowd != nil {
		l.joinCrowd(w)
	}
	c.push(w)
	if l.many {
		l.bySeq[w.seq] = w
	}
	if p != nil {
		l.seat(w, *p)
	} else if l.unplanned == nil {
		l.unplanned = w
	}
	l.limitWait(w)
}

// count keeps the numbers of the waiting requests.
func (l *locked) count(w *waiter, n int) {
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

// seat gives w the planned start p: in its budgets, and for its class if it is the
// first there.
func (l *locked) seat(w *waiter, p foresight) {
	w.foresight = p
	l.plan(w)
	if l.many && w.class.first == w {
		l.enqueue(w.class)
	}
}

// plan notes w's planned start in its budgets, and unplan takes it out.
func (l *locked) plan(w *waiter) {
	for i := range w.needs {
		w.needs[i].B.planned().Insert(w.at, w.seq, w.needs[i].Cost)
	}
}

func (l *locked) unplan(w *waiter) {
	for i := range w.needs {
		w.needs[i].B.planned().Remove(w.at, w.seq)
	}
}

// planAll gives all requests in a line of one class a planned start that have none.
// With strict it refuses those that can no longer start in time.
func (l *locked) planAll(now law.Time, strict bool) {
	for l.unplanned != nil {
		w := l.unplanned
		p := l.search(w.prev, w.kind(), now)
		if strict && (p.at > w.by || p.at == law.Never) {
			l.refuse(w, p.refusal(w.needs, now, w.byDeadline))
			continue
		}
		l.unplanned = w.next
		l.seat(w, p)
	}
}

// dropPlan forgets all planned starts of a line of one class. The first request is
// planned anew by dispatch, the others when their starts are asked for. The queue may
// be idle: a gate changes also while those before it stand in a store's line.
func (l *locked) dropPlan() {
	if l.queue == &idleQueue {
		return
	}
	for i := range l.single.needs {
		l.single.needs[i].B.planned().Clear()
	}
	l.unplanned = l.first
}

// isPlanned reports whether w has a planned start, which in a line of one class the
// last may not have.
func (l *locked) isPlanned(w *waiter) bool {
	return l.many || l.unplanned == nil || w.seq < l.unplanned.seq
}

// unlink takes w out of the line and its class. Where the class stands among others is
// the caller's to mend; that and the planned start are all that quit and remove add.
func (l *locked) unlink(w *waiter) {
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
	if l.unplanned == w {
		l.unplanned = w.next
	}
	l.waiters.remove(w)
	w.class.remove(w)
}

// quit takes w, which has neither started nor a planned start any more, out of the line
// and its class.
func (l *locked) quit(w *waiter) {
	c := w.class
	first := c.first == w
	l.unlink(w)
	switch {
	case !l.many:
	case c.first == nil:
		l.drop(c)
	case first:
		l.enqueue(c)
	}
}

// remove takes w out of the line unserved, with r, or, if that is nil, since its context
// has ended. Those behind it move up.
func (l *locked) remove(w *waiter, now law.Time, r *Refusal) {
	first, planned, at := l.first == w, l.isPlanned(w), w.at
	if planned {
		l.unplan(w)
	}
	if l.quit(w); r != nil {
		l.wake(w, r)
	}
	switch {
	case l.many:
		l.improve(now, at, w.needs)
	case planned:
		l.dropPlan()
	}
	if first || l.many {
		l.dispatch(now)
	}
}

// dispatch starts all requests that are due at now, and arms the timer for the next.
func (l *locked) dispatch(now law.Time) {
	switch {
	case l.queue == &idleQueue:
		return
	case l.many:
		l.dispatchMany(now)
	case l.first != nil:
		l.dispatchOne(now)
	}
	if l.first == nil { // the next to arrive begins with one class again
		l.bySeq, l.later = nil, heads{}
		l.many, l.stalled, l.gated, l.unplanned = false, false, false, nil
		l.arm(law.Never, 0)
	}
	l.chain.kick()
}

// dispatchOne is dispatch while there is one class: one request after another, until
// one is not due, or waits for what cannot be foreseen.
//
// Each starts as of t. That is now, but for a request that was due while the timer slept:
// an idle Go process wakes up to a millisecond late, and 50,000 requests a second would
// add the delays up. Such a request takes its unit as of its slot, catchUp before now at
// most, and the next one as of no earlier than that or its own arrival.
//
// A request that is late, since a slot or a gate has delayed it, starts as of now: its
// slot has passed unused, and what others have been granted since may depend on that.
func (l *locked) dispatchOne(now law.Time) {
	// A request that was due while the timer slept starts as of its slot.
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
			l.refuse(w, p.refusal(w.needs, now, w.byDeadline))
			t = now
			continue
		case p.at > now:
			w.at, w.bind, w.armed = p.at, p.bind, true
			w.journal.bound(w)
			w.atLeast = p.atLeast || l.unknown(p.at, w.kind(), now)
			if l.unplanned == w {
				l.unplanned = w.next
				l.plan(w)
			}
			if p.atLeast {
				p.at = law.Never // the response will come here
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
		if w.gate != nil && !l.pass(w.gate, &w.pass, now) {
			if r := l.shut(w.gate, now); r != nil {
				l.refuse(w, r)
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

// start takes all that w needs beside its pass, as of slot, and puts it into the chain. A
// planned start is replaced by the real one in its budgets' plans, which stay good.
// Otherwise the plans are forgotten.
func (l *locked) start(w *waiter, slot, now law.Time) {
	planned := l.isPlanned(w)
	if l.strict || l.audiences != nil {
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
		n.note(now)
	}
	if w.inFlight {
		l.addInFlight(w.needs, w.who, 1)
	}
	w.journal.bound(w)
	l.unlink(w)
	if l.slots > 0 && !w.noSlot {
		l.slotsTaken++
		w.slot = true
	}
	w.at, w.state = now, started
	l.chain.push(w)
}

// arm sets the timer to at, or a piece of the way there; law.Never stops it. There is one
// timer for the whole line. A timer stands still while the machine sleeps, so that a long
// way is gone in pieces; see awake.Piece.
func (l *locked) arm(at, now law.Time) {
	switch {
	case at == l.timerAt:
		return
	case at == law.Never:
		l.timer.Stop()
	case l.timer == nil:
		l.timer = time.AfterFunc(awake.Piece(time.Duration(at-now)), (*Line)(l).fire)
	default:
		l.timer.Reset(awake.Piece(time.Duration(at - now)))
	}
	l.timerAt = at
}

// fire is what the timer calls. A call that was under way when arm stopped the timer finds
// timerAt at law.Never or at a later time. It dispatches all the same, which then starts
// nothing too early.
func (line *Line) fire() {
	l, now := line.lock()
	defer l.unlock()
	if l.timerAt != law.Never { // it has run: a piece of the way, or all
		if now >= l.timerAt {
			l.fired++
		}
		l.timerAt = law.Never
	}
	l.dispatch(now)
}

// replan looks at the line anew after something other than a planned start has changed
// the budgets of needs. worse says that some start may have become later: then those
// that can no longer start in time are refused now.
func (l *locked) replan(now law.Time, needs []Need, worse bool) {
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
