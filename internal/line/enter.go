package line

import (
	"context"
	"time"

	"github.com/headway-go/headway/internal/law"
)

// Enter waits until the request may start and takes what it needs. It refuses the
// request at once if it cannot start in time, and returns the plain error of a context
// that is over. Requests that are due at one instant return one after another, each when
// the one before it is Sent. The needs are those of the Ask and what responses have
// announced; the caller only reads them. gate is the one of this line that the request
// must pass, and j notes its wait; nil is none. Both are no part of the Ask, since what
// may be kept would bring the needs to the heap with it.
func (line *Line) Enter(ctx context.Context, a *Ask, gate *Gate, j *Journal) (Grant, []Need, *Refusal, error) {
	var g Grant
	needs, refusal, err := line.enter(ctx, a, gate, j, &g)
	if w := g.turn.w; w != nil {
		refusal, err = line.Await(ctx, g.turn)
		if refusal != nil || err != nil {
			return Grant{Waited: time.Duration(w.at - w.arrived)}, nil, refusal, err
		}
		g.At, g.Waited, g.Slot, g.Pass, g.who = time.Duration(w.at), time.Duration(w.at-w.arrived), w.slot, w.pass, w.who
		needs = w.needs
	}
	return g, needs, refusal, err
}

// Join is Enter, as far as it does not wait, for a request that needs one unit of the
// pause and cost of each of list, which SetLimits returned, waits as long as it takes, and
// has no gate. Unless it refuses or fails, Await must follow with the same context, and
// then Next. It is a function of its own since it takes half of the stack.
func (line *Line) Join(ctx context.Context, list *[]*Budget, cost int64) (Turn, *Refusal, error) {
	if err := ctx.Err(); err != nil {
		return Turn{}, nil, err
	}
	l, now := line.lock()
	if took, err := l.tryList(list, cost, now); took || err != nil {
		l.unlock()
		return Turn{}, nil, err
	}
	w := newWaiter() // here, where the stack is short: an allocation may need a kilobyte of it
	_, refusal := l.joinList(ctx, list, cost, w, now)
	l.unlock()
	if refusal != nil {
		return Turn{}, refusal, nil
	}
	return Turn{w}, nil, nil
}

// tryList is Join for a request that can start at once.
//
//go:noinline
func (l *locked) tryList(list *[]*Budget, cost int64, now law.Time) (took bool, err error) {
	a := Ask{List: list, Cost: cost}
	k, ok := l.resolve(&a, nil)
	if !ok {
		return false, ErrRetired
	}
	return l.waiting == 0 && l.chain.first == nil && l.tryStart(&a, k, nil, nil, now), nil
}

// joinList is Join for a request that has to wait, as w.
//
//go:noinline
func (l *locked) joinList(ctx context.Context, list *[]*Budget, cost int64, w *waiter, now law.Time) (*waiter, *Refusal) {
	a := Ask{List: list, Cost: cost, MaxWait: -1}
	k, _ := l.resolve(&a, nil)
	return l.join(ctx, &a, k, nil, w, now)
}

// A Turn is a place in line. The zero Turn is that of a start without one.
type Turn struct{ w *waiter }

// enter is Enter as far as it does not wait.
func (line *Line) enter(ctx context.Context, a *Ask, gate *Gate, j *Journal, g *Grant) ([]Need, *Refusal, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	l, now := line.lock()
	k, ok := l.resolve(a, gate)
	if !ok {
		l.unlock()
		return nil, nil, ErrRetired
	}
	if l.waiting == 0 && l.chain.first == nil && l.tryStart(a, k, gate, &g.Pass, now) {
		g.At, g.Slot, g.InFlight, g.who = time.Duration(now), l.takeSlot(k), a.InFlight, a.Who
		l.unlock()
		return k.needs, nil, nil
	}
	w, refusal := l.join(ctx, a, k, gate, nil, now)
	if w != nil {
		g.turn, g.InFlight, g.who = Turn{w}, a.InFlight, a.Who
		if j != nil {
			l.note(w, j)
		}
	}
	l.unlock()
	return nil, refusal, nil
}

// Try is Enter for a request that does not wait, takes no slot, and is sent at once. It
// reports whether the needs were taken.
func (line *Line) Try(a *Ask) (took bool, err error) {
	l, now := line.lock()
	defer l.unlock()
	k, ok := l.resolve(a, nil)
	if !ok {
		return false, ErrRetired
	}
	k.noSlot = true // and so no request of its kind is before it
	if l.waiting > 0 {
		l.dispatch(now)
	}
	if l.waiting > 0 {
		if p := l.foresee(k, now); !p.now(now) {
			return false, nil
		}
	}
	return l.tryStart(a, k, nil, nil, now), nil
}

// A kind is what makes requests wait in one class: their budgets, whether they need a
// slot, and their gate. Costs may differ. Functions that keep the gate of a request that
// arrives take it beside the kind: what is kept goes to the heap, and with it the needs.
type kind struct {
	needs  []Need
	noSlot bool
	gate   *Gate // nil: none
}

func (k kind) is(o kind) bool {
	if k.noSlot != o.noSlot || k.gate != o.gate || len(k.needs) != len(o.needs) {
		return false
	}
	for i := range k.needs {
		if k.needs[i].B != o.needs[i].B {
			return false
		}
	}
	return true
}

// resolve returns what a request needs, with what responses have announced for it, and
// whether all of it is still in use.
func (l *locked) resolve(a *Ask, gate *Gate) (k kind, ok bool) {
	k, ok = kind{a.Needs, a.NoSlot && l.slots > 0, gate}, !l.retired && (gate == nil || !gate.retired)
	if a.List != nil {
		k.needs, ok = l.needsOf(a.Cost), ok && a.List == l.list
	}
	for i := range k.needs {
		ok = ok && !k.needs[i].B.retired
	}
	k.needs = l.withAnnounced(k.needs, a.Who)
	return k, ok
}

// needsOf returns what a request of that cost needs of the latest of SetLimits. The
// result is good until the lock is given up: since callers bring no memory for it, the
// stacks of those that wait stay small.
func (l *locked) needsOf(cost int64) []Need {
	if cost == 0 {
		return l.listed[:1]
	}
	for i := 1; i < len(l.listed); i++ {
		l.listed[i].Cost = cost
	}
	return l.listed
}

// tryStart is the common way, and the only one that most requests go: nothing waits, and
// all has room. It starts the request if all its needs have room at now, a slot is free and its
// gate lets it pass: it takes all of them, or nothing.
func (l *locked) tryStart(a *Ask, k kind, gate *Gate, pass *Pass, now law.Time) bool {
	if l.full() && !k.noSlot || !haveRoom(k.needs, now) || gate != nil && !l.pass(gate, pass, now) {
		return false
	}
	takeAll(k.needs, now)
	if a.InFlight {
		l.addInFlight(k.needs, a.Who, 1)
	}
	return true
}

// takeSlot takes the slot that a request which has started needs, and reports whether it
// needs one.
func (l *locked) takeSlot(k kind) bool {
	if l.slots == 0 || k.noSlot {
		return false
	}
	l.slotsTaken++
	return true
}

// join puts the request in line, as w unless that is nil, or refuses it. It runs after tryStart has failed, or
// with others in line, which are served first: a request that is due now must not be
// overtaken by one that has just arrived.
func (l *locked) join(ctx context.Context, a *Ask, k kind, gate *Gate, w *waiter, now law.Time) (*waiter, *Refusal) {
	// Unless it is known that none is due.
	if first := l.first; first == nil || l.many || !first.armed || first.at <= now {
		l.dispatch(now)
	}
	if r := l.barred(gate, now); r != nil {
		return nil, r
	}
	by, byDeadline := l.lastInstant(ctx, now, a.MaxWait)
	if by < forever || !l.needNotPlan(k) {
		return l.joinPlanned(a, k, gate, w, now, by, byDeadline)
	}
	w = orNew(w)
	l.fill(w, a, k, gate, now)
	l.add(w, nil)
	return w, nil
}

// needNotPlan reports whether a request that waits as long as it takes can join a
// line of one class without a planned start. It gets one when it is first, when a
// request with other needs joins, or when a planned start is asked for.
func (l *locked) needNotPlan(k kind) bool {
	if l.waiting == 0 || l.many || l.max > 0 && l.waiting >= int(l.max) || !l.single.is(k) {
		return false
	}
	for i := range k.needs {
		if k.needs[i].Cost > k.needs[i].B.state.Max() {
			return false
		}
	}
	return true
}

// joinPlanned starts the request after those that start before it at this instant,
// puts it in line with a planned start, or refuses it. join avoids it where it can,
// since it takes more of the stack.
//
//go:noinline
func (l *locked) joinPlanned(a *Ask, k kind, gate *Gate, w *waiter, now, by law.Time, byDeadline bool) (*waiter, *Refusal) {
	var pass Pass
	if l.waiting == 0 && l.tryStart(a, k, gate, &pass, now) {
		l.open()
		w = orNew(w)
		l.fill(w, a, k, gate, now)
		if gate != nil {
			w.pass = pass
		}
		w.at, w.slot, w.state = now, l.takeSlot(k), started
		l.chain.push(w)
		l.chain.kick()
		return w, nil
	}
	// A full line is looked at twice: another request may make way for this one, which then
	// may start earlier. Never a third time, as each could make another one leave.
	var p foresight
	for once := false; ; once = true {
		p = l.foresee(k, now)
		if p.at == law.Never || p.at > by || by <= now && !p.now(now) {
			return nil, p.refusal(k.needs, now, byDeadline)
		}
		if once || l.max == 0 || l.waiting < int(l.max) || p.now(now) {
			break
		}
		out := l.crowdOut(a.Key, now)
		if out == nil {
			r := p.refusal(k.needs, now, false)
			r.Reason = ByLineFull
			return nil, r
		}
		l.giveWay(out, now)
	}
	l.open()
	w = orNew(w)
	l.fill(w, a, k, gate, now)
	w.by, w.byDeadline = by, byDeadline
	l.add(w, &p)
	l.dispatch(now)
	return w, nil
}

// lastInstant returns the last instant at which a request that arrives now may start,
// and whether the context's deadline sets it. A wait budget includes its last instant, a
// deadline does not.
func (l *locked) lastInstant(ctx context.Context, now law.Time, maxWait time.Duration) (by law.Time, byDeadline bool) {
	by = forever
	if maxWait >= 0 && int64(maxWait) < by-now {
		by = now + int64(maxWait)
	}
	if d, ok := ctx.Deadline(); ok {
		if d := l.epoch.instant(d) - 1; d < by {
			return d, true
		}
	}
	return by, false
}
