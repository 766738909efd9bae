package line

import (
	"time"

	"github.com/headway-go/headway/internal/law"
)

// A Journal is what delayed a request in line, for traces. The line writes it under its
// lock; the request's goroutine reads it once the request has started or is refused.
// Times are since the line's epoch.
type Journal struct {
	Arrived       time.Duration
	FirstResponse time.Duration // until when it waited for the first response of a store; zero without one
	Ahead         int           // how many with the same needs were before it on arrival
	Place         int           // how many at all
	Head          time.Duration // since when none of them is before it; Never: some are
	Late          time.Duration // since when it only waits for a slot or its gate; Never: it does not
	Gate          bool          // it is the gate
	Pauses        []Span        // while those that concern it lasted

	// Bind is what it waited for at the head, as a Refusal would say; its Reason is zero
	// where that is not known.
	Bind Refusal

	line *locked
}

// A Span is a pause, from when it delayed the request until its end.
type Span struct {
	From, To time.Duration
	Source   string // the dialect that asked for it
	Status   int    // of the response that did
}

// note begins the journal of w, which has just joined.
func (l *locked) note(w *waiter, j *Journal) {
	*j = Journal{Arrived: time.Duration(w.arrived), Head: Never, Late: Never, line: l}
	if w.state != inLine {
		return // it did not have to wait
	}
	w.wantDetails().journal = j
	j.Place = l.waiting - 1
	for a := w.ahead; a != nil; a = a.ahead {
		j.Ahead++
	}
	if j.Ahead == 0 {
		j.leads()
	}
	for i := range w.needs {
		j.pausedBy(w.needs[i].B)
	}
	j.bound(w)
	if w.late || w.class.heap == &l.ready {
		j.dueSince(l.last, !l.full() || w.noSlot)
	}
}

// paused notes in the journals of requests that need b that it is a pause now.
func (l *locked) paused(b *Budget) {
	for w := l.first; w != nil; w = w.next {
		if w.journal != nil && costOf(w.needs, b) > 0 {
			w.journal.pausedBy(b)
		}
	}
}

// pausedBy notes the pause that b is, if it is one that lasts.
func (j *Journal) pausedBy(b *Budget) {
	p, ok := b.state.(*law.Pace)
	if !ok {
		return
	}
	if end, paused := p.End(j.line.last); paused {
		s := Span{From: time.Duration(j.line.last), To: time.Duration(end)}
		if b.origin != nil {
			s.Source, s.Status = b.origin.source, b.origin.status
		}
		j.Pauses = append(j.Pauses, s)
	}
}

// leads notes that none with the same needs is before the request any more.
func (j *Journal) leads() {
	if j != nil && j.Head == Never {
		j.Head = time.Duration(j.line.last)
	}
}

// dueSince notes from when on only a slot, or the gate, delays the request.
func (j *Journal) dueSince(at law.Time, gate bool) {
	if j != nil && j.Late == Never {
		j.Late, j.Gate = time.Duration(at), gate
	}
}

// bound notes which need binds w, if one does.
func (j *Journal) bound(w *waiter) {
	if j == nil || w.bind < 0 || int(w.bind) >= len(w.needs) {
		return
	}
	j.Bind = Refusal{Need: -1}
	j.Bind.explain(w.needs, int(w.bind))
}
