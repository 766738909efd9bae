package storeline

import (
	"time"

	"github.com/headway-go/headway/internal/awake"
	"github.com/headway-go/headway/internal/line"
	"github.com/headway-go/headway/store"
)

// The times in a line.Journal of a request in line here are since its arrival. Only results of
// the store reveal a pause that another process has announced, so that it is noted from then
// on. One that this process has raised is noted when the response brings it; see pausedLocked.

// journalLocked returns the journal of w while the line may write to it, else nil. When w is
// decided or has given up, the journal is its request's alone.
func (w *waiter) journalLocked() *line.Journal {
	if !w.inLine() {
		return nil
	}
	return w.ask.Journal
}

// journalLocked begins the journal of w, which has just joined. What may still come is Never. The
// first of a class waits for the store from now on. Another one waits for those before it
// first, and never for a first response of its own: what the store reported to them holds.
func (l *Line) journalLocked(w *waiter) {
	if j := w.journalLocked(); j != nil {
		*j = line.Journal{FirstResponse: line.Never, Head: line.Never, Late: line.Never, Ahead: w.class.queue.Len() - 1, Place: l.order.Len() - 1}
		if j.Ahead > 0 {
			j.FirstResponse = 0
		} else {
			j.Head = 0
		}
	}
}

// journalHeadLocked notes that w is the first of its class.
func (w *waiter) journalHeadLocked() {
	if j := w.journalLocked(); j != nil && j.Head == line.Never {
		j.Head = awake.Now().Sub(w.arrived)
	}
}

// journalResultLocked notes the result of a take of w, before it ends the wait. A refusal means
// that the store holds w up again, and no longer a slot or the gate alone.
func (w *waiter) journalResultLocked(res *store.Result, now time.Time) {
	j := w.journalLocked()
	if j == nil {
		return
	}
	at := now.Sub(w.arrived)
	if j.FirstResponse == line.Never {
		j.FirstResponse = at
	}
	if !res.OK && !res.Skipped {
		j.Late = line.Never
		if res.Pause && res.For != store.Never {
			j.Pauses = append(j.Pauses, line.Span{From: at, To: at + res.For})
		}
	}
}

// journalLateLocked notes that from now on only a slot, or the gate, holds w up: it is due, and
// would ask if it had one. So it does not wait for a first response of the store either.
func (w *waiter) journalLateLocked(now time.Time, gate bool) {
	if j := w.journalLocked(); j != nil && j.Late == line.Never {
		at := now.Sub(w.arrived)
		j.Late, j.Gate, j.FirstResponse = at, gate, min(at, j.FirstResponse)
	}
}
