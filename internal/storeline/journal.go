package storeline

import (
	"maps"
	"slices"
	"time"

	"github.com/headway-go/headway/internal/awake"
	"github.com/headway-go/headway/internal/line"
	"github.com/headway-go/headway/store"
)

// A line.Journal of those in line here has times since they arrived. The store says
// what holds up who asks it, so that a pause is known from then on only.

// journal returns the journal of w while this line may write to it: until its
// request has been answered or has given up. From then on it is the request's alone.
// l.mu is held.
func (w *waiter) journal() *line.Journal {
	if !w.inLine() {
		return nil
	}
	return w.ask.Journal
}

// note has the journal of w, if there is one, tell of it. w has just joined.
func (l *Line) note(w *waiter) {
	if j := w.journal(); j != nil {
		*j = line.Journal{FirstResponse: line.Never, Head: line.Never, Late: line.Never, Ahead: w.class.queue.Len() - 1, Place: l.order.Len() - 1}
		if j.Ahead > 0 {
			j.FirstResponse = 0
		} else {
			j.Head = 0
		}
	}
}

// leads notes that nobody of c stands before its first any more.
func (l *Line) leads(c *class) {
	if e := c.queue.Front(); e != nil {
		w := e.Value.(*waiter)
		if j := w.journal(); j != nil && j.Head == line.Never {
			j.Head = awake.Now().Sub(w.arrived)
		}
	}
}

// told notes what the store has said to w, before that ends its wait.
func (l *Line) told(w *waiter, res *store.Result, now time.Time) {
	j := w.journal()
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

// dueSince notes from when on only a slot, or the gate, holds w up.
func (w *waiter) dueSince(now time.Time, gate bool) {
	if j := w.journal(); j != nil && j.Late == line.Never {
		at := now.Sub(w.arrived)
		j.Late, j.Gate, j.FirstResponse = at, gate, min(at, j.FirstResponse)
	}
}

// Paused notes in the journals of those who hear ear, and need the budget only if
// there is one, that they are paused from now on. What is set aside goes back.
func (l *Line) Paused(ear, only string, p line.Span) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.returnAllReserved()
	for e := l.order.Front(); e != nil; e = e.Next() {
		w := e.Value.(*waiter)
		j := w.journal()
		if j == nil || !slices.Contains(w.ask.Audiences, ear) ||
			only != "" && !slices.ContainsFunc(w.ask.Needs, func(n Need) bool { return n.Budget == only }) {
			continue
		}
		at := awake.Now().Sub(w.arrived)
		j.Pauses = append(j.Pauses, line.Span{From: at, To: at + p.To, Source: p.Source, Status: p.Status})
	}
}

// mostPauses bounds how many pauses are remembered for IsNews.
const mostPauses = 1024

// IsNews reports whether it is line.News that a pause lasts so long from now. Then it
// counts as reported. The key is whose pause it is.
func (l *Line) IsNews(key string, length time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := awake.Now()
	told := l.pauses[key]
	if !line.IsNews(told.Sub(now), 0, length) {
		return false
	}
	if len(l.pauses) >= mostPauses {
		maps.DeleteFunc(l.pauses, func(_ string, end time.Time) bool { return !end.After(now) })
		if len(l.pauses) >= mostPauses {
			clear(l.pauses) // one that is reported once more does no harm
		}
	}
	if l.pauses == nil {
		l.pauses = map[string]time.Time{}
	}
	l.pauses[key] = now.Add(length)
	return true
}
