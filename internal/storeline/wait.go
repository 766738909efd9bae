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
//  1. A request arrives undecided. While its class is due, its take decides first: it starts,
//     or the store reports when the class is due next.
//  2. Then settleLocked lets it wait and counts it. Where the line is full already, it marks
//     the request as full. Where the wait has an end, or the line is full, a forecast is due.
//  3. The forecast reports when each request in line would start. decideLocked refuses those
//     that would be late, and finds out whether one makes way in a full line.
//
// A forecast is repeated after each change that may make waits longer: see Line.check. Some
// waits cannot be foreseen, such as one for a slot. They end when the wait budget does, in
// expire, and the refusal then reports a lower bound: AtLeast.

// In a line with Waiting 2, in which k1 and k2 are identities:
//
//	k1 arrives           it waits: 1 of 2
//	k1 arrives           it waits: 2 of 2
//	k2 arrives           it is full; a forecast is due
//	   the forecast      the second of k1 is not due within 1 ms: it makes way for k2
//	k1 arrives           it is full; a forecast is due
//	   the forecast      k1 would have the most: it is refused, as the line is full

// settleLocked decides which of the undecided wait. One whose class is due and that finds a
// slot stays undecided, since its take decides first: a burst of requests that all start at
// once does not fill the line.
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

// countLocked counts w as waiting, and arms the timer that ends its wait budget. The context
// itself ends a wait at its deadline. A budget that is over already, such as NoWait, needs no
// timer: the forecast refuses the request, and reports how long it would have waited.
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

// decideLocked acts on a forecast for all that were in line when it was sent. For each
// request that is still there, and whose wait has an end or that has no place:
//
//   - It can never start: it is refused.
//   - It could start now, as far as the store knows: its class is due, and its take decides.
//   - It would start after its wait ends: it is refused, with the time that it would need.
//   - It has no place, but one has become free: it waits.
//   - It has no place, and the line is full. A request of the identity that has the most in
//     line makes way for it, the newest that may; else it is refused itself.
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

// expire runs when the wait budget of w ends. The budget includes its last instant:
//
//   - If the request has been asking since before, the caller does not wait for the store.
//     It is refused, and what the round trip brings is given back.
//   - If it is not asking, and is not due or the instant has passed, it is refused.
//   - If it is due at this very instant, it may still start: it is overdue, and the next
//     round trip decides. Should that take time, expire runs once more and finds it asking.
func (l *Line) expire(w *waiter) {
	now := awake.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	left, asking := w.by.Sub(now), !w.asking.IsZero()
	switch {
	case !w.inLine():
	case left > 0: // a long timer runs in pieces, see awake.Piece
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

// refuseLocked ends the wait of w: it cannot start in time. It does not join the chain, since
// its caller sends nothing whose order would matter.
func (l *Line) refuseLocked(w *waiter, r *line.Refusal) {
	l.removeLocked(w)
	w.refusal = r
	w.ready <- struct{}{}
}

// refusalOf returns the refusal of a that follows from the wait of its take op. Its Need is an
// index of a's needs, of which op leaves out those without a limit.
func refusalOf(a *Ask, op *store.Op, wait *store.Wait) *line.Refusal {
	r := &line.Refusal{Reason: line.ByLimit, RetryAfter: wait.For, AtLeast: wait.AtLeast, Need: -1}
	r.AtLeast = r.AtLeast || wait.Learned // the server may announce otherwise by then
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

// refusalLocked is refusalOf with what else holds the request up in this process.
func (l *Line) refusalLocked(a *Ask, op *store.Op, wait *store.Wait) *line.Refusal {
	r := refusalOf(a, op, wait)
	l.boundLocked(r, a)
	return r
}

// atLeastLocked returns the refusal of w, whose wait has ended before its length was known. It
// has the reason that the store reported last for the first of its class.
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
