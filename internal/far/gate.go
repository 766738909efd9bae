package far

import (
	"slices"
	"time"

	"github.com/headway-go/headway/internal/line"
)

// A gate is a breaker of this process before those in line; see line.Gate. Who is
// due takes its pass before the store is asked, and gives it back where the store
// refuses: so no more are asked for than may start.

// gated returns the refusal of a gate.
func gated(r *line.Refusal) *Refusal {
	if r == nil {
		return nil
	}
	return &Refusal{Gate: r}
}

// blocked reports whether somebody who is due would still wait for one in flight.
func (l *Line) blocked(a *Ask, s *Setting) bool {
	if l.slots(s) && !a.NoSlot && l.inFlight >= s.InFlight {
		return true
	}
	return !a.Gate.Free() && a.Gate.Closed() && a.Near.Held(a.Gate) > 0
}

// admit returns those of due, who are in order of arrival, who may ask: as many as
// there are slots, those whose gate lets them pass, and of these a bounded number.
// It refuses those whose gate says so.
func (l *Line) admit(due []*waiter, s *Setting) []*waiter {
	now := time.Now()
	l.relents = time.Time{}
	free := s.InFlight - l.inFlight
	held := map[*line.Gate]bool{}
	most, n := max(leastSpan, l.span), 0
	return slices.DeleteFunc(due, func(w *waiter) bool {
		slot, g := l.slots(s) && !w.ask.NoSlot, w.ask.Gate
		switch {
		case n == most, held[g]:
			return true
		case slot && free == 0:
			w.dueSince(now, false)
			return true
		case g != nil:
			ok, r := w.ask.Near.Pass(g, &w.pass)
			switch {
			case r != nil:
				l.refuse(w, gated(r))
				return true
			case !ok:
				held[g] = true
				w.dueSince(now, true)
				if d := w.ask.Near.Held(g); d > 0 {
					if at := now.Add(d); l.relents.IsZero() || at.Before(l.relents) {
						l.relents = at
					}
				}
				return true
			}
			w.passed = true
		}
		if n++; slot {
			free--
		}
		return false
	})
}

// stepBack has w, who has asked in vain, stand before its gate again.
func (l *Line) stepBack(w *waiter) {
	if w.passed && w.inLine() {
		w.passed = false
		w.ask.Near.Back(&w.pass)
	}
}

// leaveGate takes w, who leaves the line, away from its gate.
func (l *Line) leaveGate(w *waiter) {
	switch {
	case w.passed:
		w.passed = false
		w.ask.Near.GiveBack(&w.pass)
	case w.ask.Gate != nil:
		w.ask.Near.Leave(w.ask.Gate)
	}
}

// Recheck looks again at those who stand before g, a gate of near, after its breaker
// has changed or one who has passed it has landed. Those who have no room there any
// more are told, the last to come first.
func (l *Line) Recheck(near *line.Line, g *line.Gate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	room, r := near.Surplus(g)
	for e := l.order.Front(); e != nil && r != nil; {
		w := e.Value.(*waiter)
		e = e.Next()
		if w.ask.Gate != g || w.asking || !w.inLine() {
			continue
		}
		if room--; room < 0 {
			l.refuse(w, gated(r))
		}
	}
	l.kick()
}
