package line

import (
	"math"
	"time"

	"github.com/headway-go/headway/internal/awake"
	"github.com/headway-go/headway/internal/law"
)

// A Breaker is a circuit breaker as a line sees it. A line calls it with its
// lock held, so that it must not call back.
type Breaker interface {
	// Closed reports whether it lets every request pass. Allowance is how many
	// requests should be in flight: less than math.MaxInt unless it is closed, and
	// math.MaxInt is no bound.
	Closed() bool
	Allowance() int
	// Room returns how many may pass now, Delay how long it is until the next
	// may, should nothing happen before.
	Room(now time.Time) int
	Delay(now time.Time) time.Duration
	// ProbeTimeout is for how long somebody who has passed is waited for.
	ProbeTimeout() time.Duration
	// Take lets one pass, maybe as a probe. Return takes the ticket of one back
	// who was not sent.
	Take(now time.Time) (ticket any, probe, ok bool)
	Return(ticket any)
	// Cause is what opened it.
	Cause() error
	// Clean reports whether it is as good as new.
	Clean(now time.Time) bool
}

// A Gate is a circuit breaker before those in line who go to one host. It
// belongs to one line, whose lock guards it.
//
// While the breaker is open, nobody stands in line before it. While it is
// half-open, no more do than it has room for: the others are told at once.
// While it is closed but bounds what is in flight, those who are due wait as for
// a slot. A lease after the last start, those in flight are waited for no more:
// one that is never heard of holds nobody up for good.
type Gate struct {
	Breaker // assigned once

	waiting    int      // how many stand in line before it
	inFlight   int      // in flight: started while it bounded that, and not landed
	generation uint32   // which of those that were counted; the ones before are waited for no more
	last       law.Time // when the last of them started
	retired    bool     // forgotten; see Budget
}

// A Pass is what a Gate has let one request through with. The zero Pass is that
// of no gate.
type Pass struct {
	gate       *Gate
	Ticket     any    // of the Breaker
	probe      bool   // it has a probe's place
	generation uint32 // it counts among those in flight; 0: it does not
}

// HoldsPlace reports whether the end of the request may let others start, so that
// EndPass must be called.
func (p *Pass) HoldsPlace() bool { return p.probe || p.generation != 0 }

// Free reports whether g holds no request: one atomic read.
func (g *Gate) Free() bool { return g == nil || g.Allowance() == math.MaxInt }

// holds reports whether who is due must wait for one in flight to land.
func (g *Gate) holds(now law.Time) bool {
	return !g.Free() && g.Closed() && g.inFlight >= g.Allowance() && now < g.waitsUntil()
}

// waitsUntil returns when g no longer waits for those in flight.
func (g *Gate) waitsUntil() law.Time { return sum(g.last, int64(g.ProbeTimeout())) }

func sum(a, b law.Time) law.Time {
	if a > law.Never-b {
		return law.Never
	}
	return a + b
}

// take lets one pass at now with p, or not.
func (l *Line) take(g *Gate, p *Pass, now law.Time) bool {
	if g.holds(now) {
		return false
	}
	ticket, probe, ok := g.Take(l.time(now))
	if !ok {
		return false
	}
	*p = Pass{gate: g, Ticket: ticket, probe: probe}
	if !probe && !g.Free() {
		if g.inFlight == 0 || now >= g.waitsUntil() {
			g.generation++
			g.inFlight = 0
		}
		p.generation = g.generation
		g.inFlight++
		g.last = now
	}
	return true
}

// pass is take where g holds nobody up: it needs no time, and gives no probe.
func (l *Line) pass(g *Gate) (Pass, bool) {
	if !g.Free() || g.retired {
		return Pass{}, false
	}
	ticket, probe, ok := g.Take(time.Time{})
	if probe { // it has opened meanwhile
		g.Return(ticket)
		ok = false
	}
	return Pass{gate: g, Ticket: ticket}, ok
}

func (l *Line) time(now law.Time) time.Time { return awake.At(l.epoch + time.Duration(now)) }

// land ends p's part of what is in flight.
func (p *Pass) done() {
	if p.generation != 0 && p.generation == p.gate.generation {
		p.gate.inFlight--
	}
	p.generation = 0
}

// giveBack undoes take for a request that was not sent.
func (p *Pass) giveBack() {
	if p.gate == nil {
		return // what noDetails have is not written to
	}
	if p.Ticket != nil {
		p.gate.Return(p.Ticket)
	}
	p.done()
	*p = Pass{}
}

// EndPass tells the line that the breaker knows how the request with p has ended.
// It reports whether the gate is still in use: if it is not, the breaker has been
// forgotten meanwhile. The second time it changes nothing.
func (l *Line) EndPass(p *Pass) bool {
	if p.gate == nil {
		return true
	}
	l.mu.Lock()
	p.done()
	l.mu.Unlock()
	return l.RecheckGate(p.gate)
}

// RecheckGate looks again at those before g, after its breaker has changed. It
// reports whether the gate is still in use, as EndPass does.
func (l *Line) RecheckGate(g *Gate) bool {
	now := l.lock()
	defer l.unlock()
	l.thinGate(g, now)
	l.dispatch(now)
	return !g.retired
}

// RetireGate forgets g if nobody could tell its breaker from a new one.
func (l *Line) RetireGate(g *Gate) bool {
	now := l.lock()
	defer l.unlock()
	return l.retireGate(g, now)
}

func (l *Line) retireGate(g *Gate, now law.Time) bool {
	g.retired = g.waiting == 0 && g.inFlight == 0 && g.Clean(l.time(now))
	return g.retired
}

// CheckGate returns the refusal of a request that would arrive before g now, or nil
// where it may enter.
func (l *Line) CheckGate(g *Gate) (*Refusal, error) {
	now := l.lock()
	defer l.unlock()
	if l.retired || g.retired {
		return nil, ErrRetired
	}
	return l.barred(g, now), nil
}

// barred returns the refusal of a request that arrives before g now, or nil
// where it may start or stand in line.
func (l *Line) barred(g *Gate, now law.Time) *Refusal {
	if g == nil || g.Closed() || g.waiting < g.Room(l.time(now)) {
		return nil
	}
	return l.refusalOf(g, now)
}

// shut returns the refusal of a request in line before g whose turn has come,
// or nil where it may start or must wait.
func (l *Line) shut(g *Gate, now law.Time) *Refusal {
	if g == nil || g.Closed() || g.Room(l.time(now)) > 0 {
		return nil
	}
	return l.refusalOf(g, now)
}

// refusalOf returns the refusal of one whom g does not let through. When there is
// room, it is kept for those in line, the first of whom has not started yet: the
// time is that until the end of its lease, as if it had.
func (l *Line) refusalOf(g *Gate, now law.Time) *Refusal {
	r := &Refusal{Reason: ByBreaker, Cause: g.Cause(), RetryAfter: g.Delay(l.time(now)), Need: -1}
	if r.RetryAfter > 0 || g.waiting == 0 {
		return r
	}
	w := l.first
	for w != nil && w.gate != g {
		w = w.next
	}
	at := now
	switch {
	case w == nil: // they stand in another line, which knows
		r.AtLeast = true
	case l.many:
		at = w.at
	default: // it is the first, and maybe not planned
		at = l.real(w.needs, now, now).at
	}
	r.RetryAfter = time.Duration(sum(max(now, at)-now, int64(g.ProbeTimeout())))
	return r
}

// turnAway refuses w. In a mixed line those behind do not move up by it yet.
func (l *Line) turnAway(w *waiter, r *Refusal) {
	if l.many {
		l.unplan(w)
		l.quit(w)
	} else {
		l.unlink(w)
		l.single.remove(w)
	}
	l.refuseWith(w, r)
}

// thinGate tells those before g who have no room there, the last to come first.
func (l *Line) thinGate(g *Gate, now law.Time) {
	if g.waiting == 0 || g.Closed() {
		return
	}
	room := g.Room(l.time(now))
	if g.waiting <= room {
		return
	}
	var freed []Need
	from := law.Never // the first start that is free again
	for w, next := l.first, (*waiter)(nil); w != nil; w = next {
		next = w.next
		switch {
		case w.gate != g:
			continue
		case room > 0: // it is a probe to be
			room--
			l.gated = true
			l.limitWait(w)
			continue
		}
		freed = append(freed, w.needs...)
		from = min(from, w.at)
		l.turnAway(w, l.refusalOf(g, now))
	}
	if l.many {
		l.improve(now, from, freed)
	} else {
		l.dropPlan()
	}
}
