package storeline

import (
	"slices"
	"time"

	"github.com/headway-go/headway/internal/awake"
	"github.com/headway-go/headway/internal/line"
	"github.com/headway-go/headway/store"
)

// Whether a request can start in time is decided in three steps.
//
// A request arrives undecided. While its class is due, the store decides: a take starts it,
// or says when its class is due next. Then settleLocked lets it wait, or, where the line is
// full, marks it so. Where its wait has an end, or the line is full, a forecast for the
// whole line says when each would start, and decideLocked refuses those that would be late,
// and those that make way in a full line.
//
// A forecast holds as long as nothing changes. It is repeated after each change that may
// make waits longer: see Line.check. What it cannot foresee, such as a slot that does not
// come free, ends with the wait: see expire.

// settleLocked settles which of the undecided wait. Where the class is due and no slot is
// missing, the store decides first.
func (l *Line) settleLocked() {
	now, most := awake.Now(), l.plan().Waiting
	l.undecided = slices.DeleteFunc(l.undecided, func(w *waiter) bool {
		switch {
		case !w.inLine():
			return true
		case l.isDueLocked(w.class, now) && !l.isFullLocked(w.ask):
			return false
		}
		if w.full = most > 0 && l.waiting >= most; !w.full {
			l.countLocked(w)
		}
		l.check = l.check || w.full || !w.by.IsZero()
		return true
	})
}

// countLocked notes that w waits. A timer ends the wait when its budget does. A deadline is
// the context's to end, and a wait that is over already the forecast's, which knows how
// long it would have been.
func (l *Line) countLocked(w *waiter) {
	w.full, w.counted = false, true
	l.waiting++
	if w.timer != nil || w.by.IsZero() || w.byDeadline {
		return
	}
	if left := w.by.Sub(awake.Now()); left > 0 {
		w.timer = time.AfterFunc(awake.Piece(left), func() { l.expire(w) })
	}
}

// decideLocked refuses those of a forecast that cannot start in time, and finds out who
// waits in a full line.
func (l *Line) decideLocked(all []*waiter, asks []store.Op, waits []store.Wait, now time.Time) {
	var crowd *line.Crowd[int] // of those that wait, by their indices; nil until it is needed
	var members []*line.Member[int]
	most := l.plan().Waiting
	for i, w := range all {
		if !w.inLine() || !w.full && w.by.IsZero() && waits[i].For != store.Never {
			continue
		}
		if waits[i].Err != nil {
			l.dismissLocked(w, waits[i].Err)
			continue
		}
		r := l.refusalLocked(w.ask, &asks[i], &waits[i])
		at := now.Add(r.RetryAfter)
		switch {
		case r.RetryAfter == line.Never:
			l.refuseLocked(w, r)
		case r.RetryAfter == 0 && r.Reason != line.ByInFlight && !l.isHaltedLocked(w.ask):
			// It starts with the next takes, or the store says something new.
			if w.class.due = (time.Time{}); w.full {
				w.full = false
				l.undecided = append(l.undecided, w)
			}
		case !w.by.IsZero() && (at.After(w.by) || !w.by.After(now)):
			r.Deadline = w.byDeadline
			l.refuseLocked(w, r)
		case !w.full: // it waits on
		case most == 0 || l.waiting < most:
			l.countLocked(w)
		default:
			if crowd == nil {
				crowd, members = line.NewCrowd[int](), make([]*line.Member[int], len(all))
				for j, o := range all {
					if o.counted && o.inLine() {
						members[j] = crowd.Add(o.ask.Identity, j)
					}
				}
			}
			out, ok := crowd.Out(w.ask.Identity, func(j int) bool { // what is due within 1 ms stays
				return all[j].inLine() && (waits[j].For > time.Millisecond || waits[j].AtLeast || l.isFullLocked(all[j].ask))
			})
			if ok { // another makes way for w
				crowd.Remove(members[out])
				members[i] = crowd.Add(w.ask.Identity, i)
				r = l.refusalLocked(all[out].ask, &asks[out], &waits[out])
			} else {
				out = i
			}
			r.Reason = line.ByLineFull
			l.refuseLocked(all[out], r)
			if ok {
				l.countLocked(w)
			}
		}
	}
}

// expire refuses w when its wait budget ends, if by then it has not started. A budget
// includes its last instant: what is due then may still start. But a round trip that was out
// before is not waited for; what it brings goes back.
func (l *Line) expire(w *waiter) {
	now := awake.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	left, asking := w.by.Sub(now), !w.asking.IsZero()
	switch {
	case !w.inLine():
	case left > 0: // the timer runs in pieces
		w.timer.Reset(awake.Piece(left))
	case asking && w.asking.Before(now):
		w.refusal, w.left = l.atLeastLocked(w, now), true
		w.ready <- struct{}{}
	case !asking && (left < 0 || !l.isDueLocked(w.class, now)):
		l.refuseLocked(w, l.atLeastLocked(w, now))
		l.kickLocked()
	default:
		l.overdue = append(l.overdue, w)
		l.kickLocked()
		w.timer.Reset(1) // after all that happens at this instant
	}
}

// refuseLocked ends the wait of w: it cannot start in time.
func (l *Line) refuseLocked(w *waiter, r *line.Refusal) {
	l.removeLocked(w)
	w.refusal = r
	w.ready <- struct{}{}
}

// refusalOf returns what the store says of the wait of op, as a refusal of a, whose take op
// is. Its Need is an index of a's needs, of which op leaves out those without a limit.
func refusalOf(a *Ask, op *store.Op, wait *store.Wait) *line.Refusal {
	r := &line.Refusal{Reason: line.ByLimit, RetryAfter: wait.For, AtLeast: wait.AtLeast, Need: -1}
	if wait.Bind >= 0 {
		n := op.Needs[wait.Bind]
		r.Need = slices.IndexFunc(a.Needs, func(m Need) bool { return m.Budget == n.Budget })
		if wait.For == store.Never {
			r.Reason = neverBy(n.Limit)
			return r
		}
	} else if wait.Learned {
		r.Announced, r.Name = true, wait.Name
	}
	if wait.Pause {
		r.Reason = line.ByPause
	}
	return r
}

// refusalLocked is refusalOf with what holds the request up in this process besides.
func (l *Line) refusalLocked(a *Ask, op *store.Op, wait *store.Wait) *line.Refusal {
	r := refusalOf(a, op, wait)
	l.boundLocked(r, a)
	return r
}

// atLeastLocked returns the refusal of w, whose wait has ended before its length was known:
// what the store said of its class last.
func (l *Line) atLeastLocked(w *waiter, now time.Time) *line.Refusal {
	r := &line.Refusal{Reason: line.ByLimit, Need: -1}
	if first := w.class.first(); first.due != 0 {
		*r = first.bind
	}
	r.AtLeast, r.Deadline = true, w.byDeadline
	if r.RetryAfter = 0; !w.class.due.IsZero() {
		r.RetryAfter = max(0, w.class.due.Sub(now))
	}
	l.boundLocked(r, w.ask)
	return r
}

// boundLocked adds to a refusal what this process waits for without knowing until when: a
// slot, a place behind the gate, or the end of a Halt. The time is a lower bound then.
func (l *Line) boundLocked(r *line.Refusal, a *Ask) {
	if l.isHaltedLocked(a) {
		r.AtLeast = true
		if r.RetryAfter == 0 {
			r.Reason = line.ByPause
		}
	}
	if r.RetryAfter == line.Never || a.Gate.Free() && (l.plan().InFlight == 0 || a.NoSlot) {
		return
	}
	full := l.isFullLocked(a)
	if full && r.RetryAfter == 0 && r.Reason == line.ByLimit {
		r.Reason = line.ByInFlight
	}
	r.AtLeast = r.AtLeast || full || r.RetryAfter > 0
}
