package line

import (
	"context"
	"time"

	"github.com/headway-go/headway/internal/law"
)

// A Turn is a place in line. The zero Turn is that of a start without one.
type Turn struct{ w *waiter }

// Enter waits until the request may start and takes what it needs, refuses it
// at once if it cannot start in time, or returns the plain error of a context
// that is over. Those due at one instant return one after another, each when
// the one before it is Sent. The needs are those asked for and what answers have
// brought; the caller only reads them. gate is that of this line which it must pass; nil
// is none. It is no part of the Ask, for what may be kept would bring the needs to
// the heap with it.
func (l *Line) Enter(ctx context.Context, a *Ask, gate *Gate) (Grant, []Need, *Refusal, error) {
	if err := ctx.Err(); err != nil {
		return Grant{}, nil, nil, err
	}
	now := l.lock()
	if !l.resolve(a) || gate != nil && gate.retired {
		l.unlock()
		return Grant{}, nil, nil, ErrRetired
	}
	if l.audiences != nil {
		return l.enterAnnounced(ctx, *a, gate, now)
	}
	return l.enter(ctx, a, gate, now)
}

// enterAnnounced is enter for who may need more than it asks for.
func (l *Line) enterAnnounced(ctx context.Context, a Ask, gate *Gate, now law.Time) (Grant, []Need, *Refusal, error) {
	a.Needs = l.withAnnounced(a.Needs, a.Identity)
	return l.enter(ctx, &a, gate, now)
}

// enter is Enter under the lock, which it gives back.
func (l *Line) enter(ctx context.Context, a *Ask, gate *Gate, now law.Time) (Grant, []Need, *Refusal, error) {
	g := Grant{InFlight: a.InFlight, identity: a.Identity}
	if l.waiting == 0 && l.chain.first == nil && l.tryStart(a, gate, &g.Pass, now) {
		g.At, g.Slot = time.Duration(now), l.takeSlot(a)
		l.unlock()
		return g, a.Needs, nil, nil
	}
	w, refusal := l.join(ctx, a, gate, now)
	if j := journalFrom(ctx); j != nil && w != nil {
		l.note(w, j)
	}
	l.unlock()
	if refusal != nil {
		return Grant{}, nil, refusal, nil
	}
	g.turn = Turn{w}
	if refusal, err := l.Await(ctx, g.turn); refusal != nil || err != nil {
		return Grant{Waited: time.Duration(w.at - w.arrived)}, nil, refusal, err
	}
	g.At, g.Waited, g.Slot, g.Pass = time.Duration(w.at), time.Duration(w.at-w.arrived), w.slot, w.pass
	return g, w.needs, nil, nil
}

// Join is Enter, as far as it does not wait, for a request that needs one unit of
// the pause and cost of each of list, which SetLimits returned, waits as long as
// it takes, and is concerned by no answer and no gate. Unless it refuses or fails,
// Await must follow with the same context, and then Next.
func (l *Line) Join(ctx context.Context, list *[]*Budget, cost int64) (Turn, *Refusal, error) {
	if err := ctx.Err(); err != nil {
		return Turn{}, nil, err
	}
	a := Ask{List: list, Cost: cost, MaxWait: -1}
	now := l.lock()
	if !l.resolve(&a) {
		l.unlock()
		return Turn{}, nil, ErrRetired
	}
	if l.waiting == 0 && l.chain.first == nil && l.tryStart(&a, nil, nil, now) {
		l.unlock()
		return Turn{}, nil, nil
	}
	w, refusal := l.join(ctx, &a, nil, now)
	l.unlock()
	return Turn{w}, refusal, nil
}

// join puts the request in line, or refuses it.
func (l *Line) join(ctx context.Context, a *Ask, gate *Gate, now law.Time) (*waiter, *Refusal) {
	a.NoSlot = a.NoSlot && l.slots > 0 // without a cap it makes no difference, and one class
	// Unless it is known that nobody is due.
	if w := l.first; w == nil || l.many || !w.armed || w.at <= now {
		l.dispatch(now)
	}
	if gate != nil {
		if r := l.barred(gate, now); r != nil {
			return nil, r
		}
	}
	by, byDeadline := l.lastInstant(ctx, now, a.MaxWait)
	if by < forever || !l.needNotPlan(a, gate) {
		return l.joinPlanned(a, gate, now, by, byDeadline)
	}
	w := newWaiter()
	l.fill(w, a, gate, now)
	l.add(w, nil)
	return w, nil
}

// resolve finds the needs of a, and reports whether they are still in use.
func (l *Line) resolve(a *Ask) bool {
	if a.List != nil {
		if a.List != l.list {
			return false
		}
		a.Needs = l.needsOf(a.Cost)
	}
	return !l.gone(a.Needs)
}

// needsOf returns what a request of that cost needs of the latest of SetLimits.
// It is good until the lock is given up: that nobody has to bring the memory
// keeps the stacks of those who wait small.
func (l *Line) needsOf(cost int64) []Need {
	if cost == 0 {
		return l.listed[:1]
	}
	for i := 1; i < len(l.listed); i++ {
		l.listed[i].Cost = cost
	}
	return l.listed
}

// tryStart takes the needs and the pass if all have room at now, and a slot is
// free.
func (l *Line) tryStart(a *Ask, gate *Gate, pass *Pass, now law.Time) bool {
	if l.full() && !a.NoSlot {
		return false
	}
	for i := range a.Needs {
		if at, _ := a.Needs[i].B.state.Earliest(now, now, a.Needs[i].Cost); at > now {
			return false
		}
	}
	if gate != nil && !l.take(gate, pass, now) {
		return false
	}
	for i := range a.Needs {
		n := &a.Needs[i]
		n.inFlight, n.at = n.B.state.Take(now, n.Cost), now
		n.B.forget()
	}
	if a.InFlight {
		l.addInFlight(a.Needs, a.Identity, 1)
	}
	return true
}

func (l *Line) takeSlot(a *Ask) bool {
	if l.slots == 0 || a.NoSlot {
		return false
	}
	l.slotsTaken++
	return true
}

// Try is Enter for a request that does not wait, takes no slot, and is sent at
// once. It reports whether the needs were taken.
func (l *Line) Try(a *Ask) (took bool, err error) {
	now := l.lock()
	defer l.unlock()
	if !l.resolve(a) {
		return false, ErrRetired
	}
	a.NoSlot = true // and so behind nobody of its kind
	if l.waiting > 0 {
		l.dispatch(now)
	}
	if l.waiting > 0 {
		if p := l.foresee(a.Needs, true, nil, now); !p.now(now) {
			return false, nil
		}
	}
	return l.tryStart(a, nil, nil, now), nil
}

// joinPlanned starts the request together with those who start at this instant
// before it, puts it in line with a planned start, or refuses it. join does
// without where it can, since this takes more of the stack.
//
//go:noinline
func (l *Line) joinPlanned(a *Ask, gate *Gate, now, by law.Time, byDeadline bool) (*waiter, *Refusal) {
	var pass Pass
	if l.waiting == 0 && l.tryStart(a, gate, &pass, now) {
		l.open()
		w := newWaiter()
		l.fill(w, a, gate, now)
		if gate != nil {
			w.pass = pass
		}
		w.slot = l.takeSlot(a)
		w.at, w.state = now, started
		l.chain.push(w)
		l.chain.kick()
		return w, nil
	}
	var p foresight
	for once := false; ; once = true {
		p = l.foresee(a.Needs, a.NoSlot, gate, now)
		if p.at == law.Never || p.at > by || by <= now && !p.now(now) {
			return nil, p.refusal(a.Needs, now, byDeadline)
		}
		if once || l.max == 0 || l.waiting < int(l.max) || p.now(now) {
			break
		}
		w := l.crowdOut(a.Key, now)
		if w == nil {
			r := p.refusal(a.Needs, now, false)
			r.Reason = ByLineFull
			return nil, r
		}
		l.giveWay(w, now)
	}
	l.open()
	w := newWaiter()
	l.fill(w, a, gate, now)
	w.by, w.byDeadline = by, byDeadline
	l.add(w, &p)
	l.dispatch(now)
	return w, nil
}

// needNotPlan reports whether a request that waits as long as it takes can stand
// at the end of a plain line without a planned start, until somebody asks.
func (l *Line) needNotPlan(a *Ask, gate *Gate) bool {
	if l.waiting == 0 || l.many || l.max > 0 && l.waiting >= int(l.max) || !l.single.is(a.Needs, a.NoSlot, gate) {
		return false
	}
	for i := range a.Needs {
		if a.Needs[i].Cost > a.Needs[i].B.state.Max() {
			return false
		}
	}
	return true
}

// forever is the last instant of a wait without bounds.
const forever = law.Never - 1

// lastInstant returns the last instant at which a request that arrives now may
// start, and whether the context's deadline sets it. A wait budget includes its
// last instant, a deadline does not.
func (l *Line) lastInstant(ctx context.Context, now law.Time, maxWait time.Duration) (by law.Time, byDeadline bool) {
	by = forever
	if maxWait >= 0 && int64(maxWait) < by-now {
		by = now + int64(maxWait)
	}
	if d, ok := ctx.Deadline(); ok {
		if d := l.instant(d) - 1; d < by {
			return d, true
		}
	}
	return by, false
}
