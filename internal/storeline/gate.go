package storeline

import (
	"math"
	"slices"
	"time"

	"github.com/headway-go/headway/internal/awake"
	"github.com/headway-go/headway/internal/line"
)

// A gate is a breaker of this process that requests in line must pass; see line.Gate. A request
// joins its gate when it arrives, and passes it when the store has granted its units, so that
// a probe's place is taken only when the probe starts. No more requests ask the store than
// their gate has places for: units taken for others would be given back at once.

// gateRefusalLocked completes r, the refusal of a gate, which may be nil. AtLeast means that the
// gate has a free place, which it keeps for the first request in line; RetryAfter is then how
// long that one may take once it has started, and the wait until it starts is added here.
func (l *Line) gateRefusalLocked(r *line.Refusal, g *line.Gate) *line.Refusal {
	if r == nil || !r.AtLeast {
		return r
	}
	r.AtLeast = false
	for w := range l.eachLocked {
		if w.ask.Gate == g && w.inLine() {
			r.RetryAfter += max(0, w.class.due.Sub(awake.Now()))
			break
		}
	}
	return r
}

// isFullLocked reports whether a request that is due would still wait for one in flight: for its
// slot, or for its place behind a gate. How long that takes cannot be foreseen.
func (l *Line) isFullLocked(a *Ask) bool {
	if slots := l.plan().InFlight; slots > 0 && !a.NoSlot && l.slots >= slots {
		return true
	}
	return !a.Gate.Free() && a.Local.GateWait(a.Gate) > 0
}

// admitLocked returns those of due, which is in order of arrival, that ask now: as many as there
// are slots, as there are places behind each gate, and as l.span allows. It refuses those
// whose gate has shut. What is due and does not ask stays due: a slot or place that comes
// free kicks the line. A gate stops waiting for requests in flight by itself, at l.gateFrees.
func (l *Line) admitLocked(due []*waiter, now time.Time) []*waiter {
	l.gateFrees = time.Time{}
	slots := l.plan().InFlight
	free := slots - l.slots
	places := map[*line.Gate]int{nil: math.MaxInt}
	most, n := max(leastSpan, l.span), 0
	return slices.DeleteFunc(due, func(w *waiter) bool {
		g, takesSlot := w.ask.Gate, slots > 0 && !w.ask.NoSlot
		if _, ok := places[g]; !ok {
			var r *line.Refusal
			if places[g], r = w.ask.Local.GatePlaces(g); r != nil {
				delete(places, g) // the next request needs a refusal of its own
				l.refuseLocked(w, l.gateRefusalLocked(r, g))
				return true
			}
		}
		switch {
		case n == most:
			return true
		case takesSlot && free <= 0:
			w.journalLateLocked(now, false)
			return true
		case places[g] == 0:
			w.journalLateLocked(now, true)
			if d := w.ask.Local.GateWait(g); d > 0 && (l.gateFrees.IsZero() || now.Add(d).Before(l.gateFrees)) {
				l.gateFrees = now.Add(d)
			}
			return true
		}
		if n++; takesSlot {
			free--
		}
		places[g]--
		return false
	})
}

// recheck is Client.Recheck for one line. Requests that have no room before g any more are
// refused, the last to come first; those that are asking pass it, or do not, with their result.
func (l *Line) recheck(local *line.Line, g *line.Gate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	room, r := local.GateRoom(g)
	for w := range l.eachLocked {
		if r == nil || w.ask.Gate != g || !w.asking.IsZero() || !w.inLine() {
			continue
		}
		if room--; room < 0 {
			own := *r
			l.refuseLocked(w, l.gateRefusalLocked(&own, g))
		}
	}
	l.kickLocked()
}

// A scope is the requests that a pause concerns: those of an audience or, where only is set,
// those of them that need that budget.
type scope struct{ audience, only string }

func (s *scope) concerns(a *Ask) bool {
	return slices.Contains(a.Audiences, s.audience) &&
		(s.only == "" || slices.ContainsFunc(a.Needs, func(n Need) bool { return n.Budget == s.only }))
}

// Halt keeps the requests of a scope from starting in this process until release is called. It
// holds while the body of a refusal is read, which announces the length of a pause. The store
// and other processes do not know of it. What a take that is out already is granted is given
// back.
func (l *Line) Halt(audience, only string) (release func()) {
	s := &scope{audience, only}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.halted = append(l.halted, s)
	l.recallLocked(s)
	l.flushLocked()
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.halted = slices.DeleteFunc(l.halted, func(o *scope) bool { return o == s })
		l.kickLocked()
	}
}

func (l *Line) isHaltedLocked(a *Ask) bool {
	return slices.ContainsFunc(l.halted, func(s *scope) bool { return s.concerns(a) })
}
