package line

import (
	"context"
	"time"

	"github.com/headway-go/headway/internal/law"
)

// A Journal is what held a request up in line, for those who ask. The line writes
// it under its lock; the request's goroutine reads it once it has started, or been
// refused. Times are since the line's epoch.
type Journal struct {
	Arrived       time.Duration
	FirstResponse time.Duration // until when it waited for the first word of a store; zero without one
	Ahead         int           // how many with the same needs stood before it on arrival
	Place         int           // how many at all
	Head          time.Duration // since when none of them stands before it; Never: some do
	Late          time.Duration // since when it only waits for a slot or its gate; Never: it does not
	Gate          bool          // it is the gate
	Pauses        []Span        // while those that concern it held

	// Bind is what it waited for at the head, as a Refusal would say; its Reason is zero
	// where that is not known.
	Bind Refusal

	line *Line
}

type journalKey struct{}

// WithJournal returns a context for Enter, whose wait is noted in j. (A field of
// the Ask would bring its needs to the heap.)
func WithJournal(ctx context.Context, j *Journal) context.Context {
	return context.WithValue(ctx, journalKey{}, j)
}

func journalFrom(ctx context.Context) *Journal {
	j, _ := ctx.Value(journalKey{}).(*Journal)
	return j
}

// A Span is a pause, from when it held the request until its end.
type Span struct {
	From, To time.Duration
	Source   string // the dialect that asked for it
	Status   int    // of the answer that did
}

// note has j tell of w, who has just joined.
func (l *Line) note(w *waiter, j *Journal) {
	*j = Journal{Arrived: time.Duration(w.arrived), Head: Never, Late: Never, line: l}
	if w.state != inLine {
		return // it did not have to wait
	}
	if w.details == &noDetails {
		w.details = new(details)
	}
	w.journal = j
	j.Place = l.waiting - 1
	for a := w.ahead; a != nil; a = a.ahead {
		j.Ahead++
	}
	if j.Ahead == 0 {
		j.leads()
	}
	for i := range w.needs {
		l.journalPause(w, w.needs[i].B)
	}
	j.bound(w)
	if w.late || w.class.heap == &l.ready {
		j.dueSince(l.last, !l.full() || w.noSlot)
	}
}

// journalPause notes the pause that b is, if it is one that holds.
func (l *Line) journalPause(w *waiter, b *Budget) {
	p, ok := b.state.(*law.Pace)
	if !ok {
		return
	}
	if end, paused := p.End(l.last); paused {
		s := Span{From: time.Duration(l.last), To: time.Duration(end)}
		s.Source, s.Status = l.causeOf(b)
		w.journal.Pauses = append(w.journal.Pauses, s)
	}
}

// causeOf returns which dialect and status have raised the pause b.
func (l *Line) causeOf(b *Budget) (source string, status int) {
	find := func(e *audience) bool {
		h := e.find(func(h *announcement) bool { return h.b == b })
		if h != nil {
			source, status = h.source, h.status
		}
		return h != nil
	}
	if h := l.audiences; h != nil && !find(&h.all) {
		for _, e := range h.ids {
			if find(e) {
				break
			}
		}
	}
	return source, status
}

// paused notes in the journals of those who need b that it is a pause now.
func (l *Line) paused(b *Budget) {
	for w := l.first; w != nil; w = w.next {
		if w.journal != nil && needs(w.needs, b) {
			l.journalPause(w, b)
		}
	}
}

// leads notes that nobody with the same needs stands before w any more.
func (j *Journal) leads() {
	if j != nil && j.Head == Never {
		j.Head = time.Duration(j.line.last)
	}
}

// dueSince notes from when on only a slot, or the gate, holds w up.
func (j *Journal) dueSince(at law.Time, gate bool) {
	if j != nil && j.Late == Never {
		j.Late, j.Gate = time.Duration(at), gate
	}
}

// bound notes which need binds w, if one does.
func (j *Journal) bound(w *waiter) {
	if j == nil || w.bind < 0 || w.bind >= len(w.needs) {
		return
	}
	j.Bind = Refusal{Need: -1}
	j.Bind.explain(w.needs, w.bind)
}
