package storeline

import (
	"slices"
	"time"

	"github.com/headway-go/headway/internal/line"
	"github.com/headway-go/headway/store"
)

// applyLocked carries out the results of b, which arrived now. Each take has one of these:
//
//   - It was granted: the request starts, if its gate still lets it pass. If it is held up by
//     now, what it was granted is given back, and it asks again.
//   - A row that it needs cannot be read: the store does not decide, and the request returns
//     the error.
//   - It was skipped, since one before it in its class was refused. It waits on.
//   - It can never be granted: the request is refused.
//   - It cannot be granted before an instant: then the class is due, and does not ask before.
//     The instant is the time of arrival here plus the wait that the store reports. The
//     store counted the wait from an earlier moment, so that the class never asks too early.
//
// A request whose caller left while it was asking is still in line, marked as left, since its
// result was on its way. It is removed now, and what it was granted is given back.
//
// Reserved starts are kept before the request that brought them starts, so that what
// starting it changes applies to them too.
func (l *Line) applyLocked(b *batch, results []store.Result, now time.Time) {
	for i := range results {
		l.noteResultLocked(&b.ops[i], &results[i], now)
	}
	l.applyUnsentLocked(b.unsent.list, results, now)
	ops, results := b.ops[len(b.unsent.ops):], results[len(b.unsent.ops):]
	for i, o := range b.queued {
		l.changedLocked(o.sooner, o.later)
		l.finish(o, results[i], results[i].Err)
	}
	ops, results = ops[len(b.queued):], results[len(b.queued):]
	if b.forecast != nil {
		l.settleLocked()
		l.decideLocked(b.forecast, ops[0].Asks, results[0].Waits, now)
		return
	}
	refused := map[*class]bool{}
	blocked := map[string]block{}
	for i, w := range b.takes {
		op, res := &ops[i], &results[i]
		w.asking = time.Time{}
		w.journalResultLocked(res, now)
		switch {
		case res.OK && b.recalls(w):
			l.keepReservedLocked(w.class.key, op, res, b.sent)
			l.returnAllLocked()
			l.giveBackLocked(&Grant{At: res.At, take: *op})
		case res.OK:
			l.keepReservedLocked(w.class.key, op, res, b.sent)
			l.grantLocked(w, op, res, now)
		case w.left:
			l.removeLocked(w)
		case res.Err != nil:
			l.dismissLocked(w, res.Err)
		case res.Skipped:
			refused[w.class] = true
		case res.For == store.Never:
			l.refuseLocked(w, refusalOf(w.ask, op, &res.Wait))
		default:
			refused[w.class] = true
			l.delayLocked(w, op, res, now, blocked)
		}
	}
	l.spareLocked(blocked)
	switch {
	case len(blocked) > 0:
		l.span = leastSpan
	case len(b.takes) > 0:
		l.span = min(most, 4*max(leastSpan, l.span))
	}
	for _, w := range b.takes {
		switch c := w.class; {
		case refused[c]:
			c.width, c.refused = leastWidth, true
		case c.refused:
			c.width = min(most, c.width+1)
		default:
			c.width = min(most, 4*c.width)
		}
	}
	l.settleLocked()
}

// recalls reports whether w must not start with what b was granted.
func (b *batch) recalls(w *waiter) bool {
	return !w.left && slices.ContainsFunc(b.recalled, func(s *scope) bool { return s.concerns(w.ask) })
}

// A block is what a refusal implies for a budget: cost units, or more, have no room in it
// before an instant, whichever request needs them.
// Of several refusals for one budget the cheapest counts, since it spares the most.
type block struct {
	cost  int64
	until time.Time
	at    store.Instant // the same by the store's clock
}

// delayLocked has the class of w ask again at the instant that the store reports, and notes
// which budget is blocked until then; a pause or an announced limit holds for one audience
// and blocks no budget. What is reserved must not be used in a pause, and is given back. A
// request that was to wait, and would now wait too long, makes a forecast due, which decides.
func (l *Line) delayLocked(w *waiter, op *store.Op, res *store.Result, now time.Time, blocked map[string]block) {
	if res.Pause {
		l.returnAllLocked()
	}
	until := now.Add(res.For)
	if w.class.learned = res.Learned; res.Learned {
		until = now.Add(askAgain(res.For))
	}
	w.class.due, w.due, w.bind = until, res.Wait.At, *refusalOf(w.ask, op, &res.Wait)
	if j := w.journalLocked(); j != nil {
		j.Bind = w.bind
	}
	if res.Bind >= 0 && !res.Pause && !res.Learned {
		n := op.Needs[res.Bind]
		if o, ok := blocked[n.Budget]; !ok || n.Cost < o.cost {
			blocked[n.Budget] = block{n.Cost, until, res.Wait.At}
		}
	}
	if w.counted && !w.by.IsZero() && until.After(w.by) {
		l.check = true
	}
}

// askAgain returns when a request that an announced limit holds up asks again: at a quarter of
// the wait that was reported, since the server may announce more to another process by then.
func askAgain(wait time.Duration) time.Duration {
	return min(wait, max(time.Second, wait/4))
}

// learnedLocked has the requests that an announced limit holds up ask again: a response has
// announced more.
func (l *Line) learnedLocked() {
	for _, c := range l.classes {
		if c.learned {
			c.due, c.learned = time.Time{}, false
		}
	}
}

// spareLocked spares other classes the takes that would be refused like one just was: those
// whose first request needs as much of a blocked budget are due when it is free. Without it,
// ten thousand keys that share one exhausted budget would each ask for themselves.
func (l *Line) spareLocked(blocked map[string]block) {
	if len(blocked) == 0 {
		return
	}
	for _, c := range l.classes {
		w := c.first()
		for i, n := range w.ask.Needs {
			if b, ok := blocked[n.Budget]; ok && n.Cost >= b.cost && c.due.Before(b.until) {
				c.due = b.until
				w.due, w.bind = b.at, line.Refusal{Reason: line.ByLimit, Need: i}
			}
		}
	}
}
