package storeline

import (
	"math"
	"slices"
	"time"

	"github.com/headway-go/headway/internal/awake"
	"github.com/headway-go/headway/internal/line"
)

// A gate is a breaker of this process before those in line; see line.Gate. No more
// ask the store than it has places for, and who is granted passes then: a probe is
// let through only when it starts.

// gated returns the refusal of a gate.
func (l *Line) gated(r *line.Refusal, g *line.Gate) *line.Refusal {
	if r == nil {
		return nil
	}
	if r.AtLeast { // the place is kept for one in line
		r.AtLeast = false
		for e := l.order.Front(); e != nil; e = e.Next() {
			if w := e.Value.(*waiter); w.ask.Gate == g && w.inLine() {
				r.RetryAfter += max(0, w.class.due.Sub(awake.Now()))
				break
			}
		}
	}
	return r
}

// blocked reports whether somebody who is due would still wait for one in flight.
func (l *Line) blocked(a *Ask, s *Setting) bool {
	if l.slots(s) && !a.NoSlot && l.inFlight >= s.InFlight {
		return true
	}
	return !a.Gate.Free() && a.Local.GateWait(a.Gate) > 0
}

// admit returns those of due, who are in order of arrival, who may ask: as many as
// there are slots, and places behind their gates, and of these a bounded number. It
// refuses those whose gate says so.
func (l *Line) admit(due []*waiter, s *Setting) []*waiter {
	now := awake.Now()
	l.relents = time.Time{}
	free := math.MaxInt
	if s.InFlight > 0 {
		free = s.InFlight - l.inFlight
	}
	places := map[*line.Gate]int{nil: math.MaxInt}
	most, n := max(leastSpan, l.span), 0
	return slices.DeleteFunc(due, func(w *waiter) bool {
		g := w.ask.Gate
		if _, ok := places[g]; !ok {
			var r *line.Refusal
			places[g], r = w.ask.Local.GatePlaces(g)
			if r != nil {
				delete(places, g) // the next one is told anew
				l.refuse(w, l.gated(r, g))
				return true
			}
		}
		switch {
		case n == most:
			return true
		case !w.ask.NoSlot && free <= 0:
			w.dueSince(now, false)
			return true
		case places[g] == 0:
			w.dueSince(now, true)
			if d := w.ask.Local.GateWait(g); d > 0 {
				if at := now.Add(d); l.relents.IsZero() || at.Before(l.relents) {
					l.relents = at
				}
			}
			return true
		}
		if places[g]--; !w.ask.NoSlot && s.InFlight > 0 {
			free--
		}
		n++
		return false
	})
}

// Recheck looks again at those who stand before g, a gate of local, after its breaker
// has changed or one who has passed it has landed. Those who have no room there any
// more are told, the last to come first.
func (l *Line) Recheck(local *line.Line, g *line.Gate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	room, r := local.GateRoom(g)
	for e := l.order.Front(); e != nil && r != nil; {
		w := e.Value.(*waiter)
		e = e.Next()
		if w.ask.Gate != g || w.asking || !w.inLine() {
			continue
		}
		if room--; room < 0 {
			own := *r
			l.refuse(w, l.gated(&own, g))
		}
	}
	l.kick()
}
