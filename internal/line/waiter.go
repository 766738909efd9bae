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

// A waiter is a request in line. There may be 100,000 of them, so that what few need is
// in details.
type waiter struct {
	prev, next   *waiter // in the line, or later in the chain
	ahead, after *waiter // in its class
	class        *class
	needs        []Need // shared with others; see fill
	seq          uint64 // its place in the order of arrival
	state        state
	noSlot       bool // it takes no slot
	slot         bool // it holds one
	inFlight     bool // see Ask.InFlight
	armed        bool // one class: it is first, and due at its planned start
	late         bool // it is due, but a slot or its gate delays it past its planned start
	byDeadline   bool // by is the context's deadline
	foresight         // its planned start; at is the end of its wait once that is over
	arrived      law.Time
	by           law.Time    // the last instant at which it may start
	timer        *time.Timer // ends the wait where its end cannot be known beforehand
	refusal      *Refusal
	ready        chan struct{} // receives once: it has started, or is refused
	*details
}

// details are the rest of a waiter's fields, for a request with a gate, an identity, a
// key, a journal or a place in a crowd.
type details struct {
	gate    *Gate
	pass    Pass // of gate, once started
	who     Who
	key     uint64
	journal *Journal
	member  *Member[*waiter] // of the line's crowd
}

// noDetails are those of every other waiter; they are shared and never written, as
// noExtra is.
var noDetails details

// wantDetails gives w details of its own, to write to.
func (w *waiter) wantDetails() *details {
	if w.details == &noDetails {
		w.details = new(details)
	}
	return w.details
}

func (w *waiter) kind() kind { return kind{w.needs, w.noSlot, w.gate} }

// newWaiter allocates a waiter, and does no more, since that takes a good part
// of the stack.
//
//go:noinline
func newWaiter() *waiter { return &waiter{details: &noDetails, ready: make(chan struct{}, 1)} }

func orNew(w *waiter) *waiter {
	if w == nil {
		w = newWaiter()
	}
	return w
}

// fill makes w the waiter for a request with a copy of its needs. Those in line that
// need the same share the copy, so that it is never written to.
func (l *locked) fill(w *waiter, a *Ask, k kind, gate *Gate, now law.Time) {
	w.arrived, w.by, w.noSlot, w.inFlight = now, forever, k.noSlot, a.InFlight
	if gate != nil || a.Who != (Who{}) || a.Key != 0 {
		w.identify(gate, a.Who, a.Key)
	}
	if last := l.tail; last != nil && slices.Equal(last.needs, k.needs) {
		w.needs = last.needs
	} else {
		w.needs = append([]Need(nil), k.needs...) // slices.Clone would bring those of the Ask to the heap
	}
}

//go:noinline
func (w *waiter) identify(gate *Gate, who Who, key uint64) {
	w.details = &details{gate: gate, who: who, key: key}
}

// Await is the rest of Enter, after Join: it waits for the start, the refusal or the
// end of the context. Goroutines that wait are many, and a stack that has grown stays
// large. So the way to here is short, and what Join needed is off the stack by now.
func (line *Line) Await(ctx context.Context, t Turn) (*Refusal, error) {
	w := t.w
	if w == nil {
		return nil, nil
	}
	select {
	case <-w.ready:
	case <-ctx.Done():
		line.leave(w)
		return nil, ctx.Err()
	}
	return w.refusal, nil
}

// leave takes w out of the line, or gives back what it has got.
func (line *Line) leave(w *waiter) {
	l, now := line.lock()
	defer l.unlock()
	switch w.state {
	case inLine:
		w.state = left
		l.remove(w, now, nil)
		w.at = now
	case started:
		l.chain.remove(w)
		if w.inFlight {
			l.addInFlight(w.needs, w.who, -1)
		}
		l.giveBack(w.needs, w.at, w.slot, &w.pass, now)
	}
}

// expire is what w's own timer calls. It refuses w when its wait budget ends, unless it has started by then: all
// that are due have, those whose budget ends now among them.
func (line *Line) expire(w *waiter) {
	l, now := line.lock()
	defer l.unlock()
	l.dispatch(now)
	if w.state != inLine {
		return
	}
	if now < w.by {
		w.timer.Reset(awake.Piece(time.Duration(w.by - now)))
		return
	}
	p := l.real(w.needs, now, now) // if no law delays it, a slot does
	if l.planAll(now, false); w.at > p.at && !w.late {
		p.at, p.bind = w.at, w.bind
	}
	p.atLeast = true
	l.remove(w, now, p.refusal(w.needs, now, w.byDeadline))
}

// limitWait arms the timer that ends w's wait where laws and pauses alone cannot tell
// beforehand that it fits into its budget: a response may announce another reset at
// any time. Deadlines are the context's to end.
func (l *locked) limitWait(w *waiter) {
	if w.timer != nil || w.byDeadline || w.by == forever {
		return
	}
	unknown := l.slots > 0 || l.gated // its own, or of a request that takes what it needs
	for i := range w.needs {
		unknown = unknown || w.needs[i].B.strict || w.needs[i].B.announcedCap() != nil
	}
	if unknown {
		w.timer = time.AfterFunc(awake.Piece(time.Duration(w.by-l.last)), func() { (*Line)(l).expire(w) })
	}
}

// refuse takes w out of the line and wakes it with its refusal.
func (l *locked) refuse(w *waiter, r *Refusal) {
	if l.isPlanned(w) {
		l.unplan(w)
	}
	l.quit(w)
	l.wake(w, r)
}

// wake wakes w, which has left the line, with its refusal.
func (l *locked) wake(w *waiter, r *Refusal) {
	w.refusal, w.state, w.at = r, refused, l.last
	w.ready <- struct{}{}
}
