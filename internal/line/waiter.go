package line

import (
	"context"
	"slices"
	"time"

	"github.com/headway-go/headway/internal/awake"
	"github.com/headway-go/headway/internal/law"
)

type state uint8

const (
	inLine  state = iota
	started       // it has its units; in the chain until it is sent
	refused
	left // its context ended; its timer may be about to run all the same
)

// waiter is a request in line.
type waiter struct {
	prev, next   *waiter // in the line, or later in the chain
	ahead, after *waiter // in its class
	class        *class
	needs        []Need // shared with others; see fill
	seq          uint64
	state        state
	noSlot       bool // it takes no slot
	slot         bool // it has one
	inFlight     bool // see Ask.Count
	armed        bool // plain line: it was first, and is due at its planned start
	late         bool // due, but held up by a slot or its gate: it starts later than planned
	byDeadline   bool
	atLeast      bool
	bind         int
	arrived      law.Time
	at           law.Time    // the planned start; once its wait is over, when that was
	by           law.Time    // the last instant at which it may start
	timer        *time.Timer // ends the wait where its end cannot be known beforehand
	refusal      *Refusal
	ready        chan struct{}
	*details
}

// details are the rest of a waiter's fields, for who comes to a gate, with a key or
// with a journal, or stands in a crowd.
type details struct {
	gate     *Gate
	pass     Pass // it has one of gate
	identity uint64
	key      uint64
	journal  *Journal
	member   *Member[*waiter] // of the line's crowd, if that has one
}

// noDetails are those of every other waiter. Nobody writes to them.
var noDetails details

// newWaiter allocates a waiter, and does no more, since that takes a good part
// of the stack.
//
//go:noinline
func newWaiter() *waiter { return &waiter{details: &noDetails, ready: make(chan struct{}, 1)} }

// fill makes w the waiter for a, with a copy of its needs. Those in line who need
// the same share it, so nobody writes to it.
func (l *Line) fill(w *waiter, a *Ask, gate *Gate, now law.Time) {
	w.arrived, w.by, w.noSlot, w.inFlight = now, forever, a.NoSlot, a.InFlight
	if gate != nil || a.Identity != 0 || a.Key != 0 {
		w.identify(gate, a.Identity, a.Key)
	}
	if last := l.tail; last != nil && slices.Equal(last.needs, a.Needs) {
		w.needs = last.needs
	} else {
		w.needs = append([]Need(nil), a.Needs...) // slices.Clone would bring a's to the heap
	}
}

//go:noinline
func (w *waiter) identify(gate *Gate, identity, key uint64) {
	w.details = &details{gate: gate, identity: identity, key: key}
}

// Await is the rest of Enter, after Join: it waits for the start, the refusal,
// or the end of the context. Goroutines that wait are many, and a stack that
// has grown stays large. So this is a short way down, and what Join needs is
// off the stack by now.
func (l *Line) Await(ctx context.Context, t Turn) (*Refusal, error) {
	w := t.w
	if w == nil {
		return nil, nil
	}
	select {
	case <-w.ready:
	case <-ctx.Done():
		l.leave(w)
		return nil, ctx.Err()
	}
	return w.refusal, nil
}

// leave takes w out of the line, or gives back what it has got.
func (l *Line) leave(w *waiter) {
	now := l.lock()
	defer l.unlock()
	switch w.state {
	case inLine:
		w.state = left
		l.remove(w, now)
		w.at = now
	case started:
		l.chain.remove(w)
		if w.inFlight {
			l.addInFlight(w.needs, w.identity, -1)
		}
		l.giveBack(w.needs, w.at, w.slot, &w.pass, now)
	}
}

// expire refuses w when its wait budget ends, if by then it has not started: all
// who are due have, those whose budget ends now among them.
func (l *Line) expire(w *waiter) {
	now := l.lock()
	defer l.unlock()
	l.dispatch(now)
	if w.state != inLine {
		return
	}
	if now < w.by {
		w.timer.Reset(awake.Piece(time.Duration(w.by - now)))
		return
	}
	p := l.real(w.needs, now, now) // no law: then it is a slot
	if l.planAll(now, false); w.at > p.at && !w.late {
		p.at, p.bind = w.at, w.bind
	}
	p.atLeast = true
	l.remove(w, now)
	l.refuse(w, p, now)
}

// refuse tells w that it can no longer start in time.
func (l *Line) refuse(w *waiter, p foresight, now law.Time) {
	l.refuseWith(w, p.refusal(w.needs, now, w.byDeadline))
}

func (l *Line) refuseWith(w *waiter, r *Refusal) {
	w.refusal, w.state, w.at = r, refused, l.last
	w.ready <- struct{}{}
}

// chain is those who have started and are not sent yet, in order. The first
// has been woken; each wakes the next as its last step before sending, so that
// the base sees them in order.
type chain struct {
	first, last *waiter
	woken       bool
}

func (c *chain) push(w *waiter) {
	w.prev, w.next = c.last, nil
	if c.last == nil {
		c.first = w
	} else {
		c.last.next = w
	}
	c.last = w
}

func (c *chain) remove(w *waiter) {
	if w.prev == nil {
		c.first, c.woken = w.next, false
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		c.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next = nil, nil
	c.kick()
}

// kick wakes the first, if it sleeps.
func (c *chain) kick() {
	if c.first != nil && !c.woken {
		c.woken = true
		c.first.ready <- struct{}{}
	}
}
