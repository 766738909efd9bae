package line

import (
	"math"
	"time"

	"github.com/headway-go/headway/internal/law"
)

// A Breaker is a circuit breaker as a line sees it. A line calls it with its lock held,
// so that it must not call back.
type Breaker interface {
	// Closed reports whether it lets every request pass. Allowance is how many
	// requests should be in flight: less than math.MaxInt unless it is closed, and
	// math.MaxInt is no bound.
	Closed() bool
	Allowance() int
	// Room returns how many may pass now, Delay how long it is until the next
	// may, if nothing happens before.
	Room(now time.Time) int
	Delay(now time.Time) time.Duration
	// ProbeTimeout is for how long the end of a request that has passed is waited for.
	ProbeTimeout() time.Duration
	// Take lets one request pass, perhaps as a probe. Return takes back the ticket of
	// one that was not sent.
	Take(now time.Time) (ticket any, probe, ok bool)
	Return(ticket any)
	// Cause is what opened it.
	Cause() error
	// Clean reports whether it is no different from a new one.
	Clean(now time.Time) bool
}

// A Gate is a circuit breaker in front of those requests in line that go to one host.
// It belongs to one line, whose lock guards it.
//
//   - While the breaker is open, no request waits in front of it.
//   - While it is half-open, no more wait than it has room for; the others are refused
//     at once.
//   - While it is closed but bounds what is in flight, requests that are due wait as for
//     a slot. A probe timeout after the last start, the gate stops waiting for those in
//     flight: one whose end is never reported delays no other for good.
type Gate struct {
	Breaker // assigned once

	waiting    int      // requests in line in front of it
	inFlight   int      // started while it bounded that, and not done
	generation uint32   // of those counted in flight; the gate waits for no earlier one
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

// Free reports whether g delays no request: one atomic read, without the lock.
func (g *Gate) Free() bool { return g == nil || g.Allowance() == math.MaxInt }

// holds reports whether a request that is due must wait for one in flight to be done.
func (g *Gate) holds(now law.Time) bool {
	return !g.Free() && g.Closed() && g.inFlight >= g.Allowance() && now < g.waitsUntil()
}

// waitsUntil returns when g stops waiting for those in flight.
func (g *Gate) waitsUntil() law.Time { return law.Later(g.last, g.ProbeTimeout()) }

// pass lets one request pass at now with p, or not. A request that passes while the gate
// bounds what is in flight is counted until it is done, in the current generation. A new
// generation begins when none is left or the probe timeout has passed: what is still
// out then no longer counts, and must not be subtracted when it is done after all.
func (l *locked) pass(g *Gate, p *Pass, now law.Time) bool {
	if g.holds(now) {
		return false
	}
	ticket, probe, ok := g.Take(l.epoch.time(now))
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

// passFree is pass where g is free: it needs no time, and gives no probe.
func (g *Gate) passFree() (Pass, bool) {
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

// done ends p's part of what is in flight.
func (p *Pass) done() {
	if p.generation != 0 && p.generation == p.gate.generation {
		p.gate.inFlight--
	}
	p.generation = 0
}

// giveBack undoes pass for a request that was not sent.
func (p *Pass) giveBack() {
	if p.gate == nil {
		return // noDetails has one that is never written to
	}
	if p.Ticket != nil {
		p.gate.Return(p.Ticket)
	}
	p.done()
	*p = Pass{}
}

// EndPass tells the line that the breaker knows how the request with p has ended. A
// second call changes nothing. It reports whether the gate is still in use: otherwise
// the breaker has been forgotten meanwhile.
func (line *Line) EndPass(p *Pass) bool {
	if p.gate == nil {
		return true
	}
	l := line.lockOnly()
	p.done()
	l.mu.Unlock()
	return line.RecheckGate(p.gate)
}

// RecheckGate looks again at the requests in front of g, after its breaker has changed.
// It reports whether the gate is still in use, as EndPass does.
func (line *Line) RecheckGate(g *Gate) bool {
	l, now := line.lock()
	defer l.unlock()
	l.thinGate(g, now)
	l.dispatch(now)
	return !g.retired
}

// RetireGate forgets g if its breaker is no different from a new one. It reports
// whether it did.
func (line *Line) RetireGate(g *Gate) bool {
	l, now := line.lock()
	defer l.unlock()
	return l.retireGate(g, now)
}

func (l *locked) retireGate(g *Gate, now law.Time) bool {
	g.retired = g.waiting == 0 && g.inFlight == 0 && g.Clean(l.epoch.time(now))
	return g.retired
}

// CheckGate returns the refusal of a request that would arrive in front of g now, or nil
// where it may enter.
func (line *Line) CheckGate(g *Gate) (*Refusal, error) {
	l, now := line.lock()
	defer l.unlock()
	if l.retired || g.retired {
		return nil, ErrRetired
	}
	return l.barred(g, now), nil
}

// barred returns the refusal of a request that arrives in front of g now, or nil where
// it may start or join the line.
func (l *locked) barred(g *Gate, now law.Time) *Refusal {
	if g == nil || g.Closed() || g.waiting < g.Room(l.epoch.time(now)) {
		return nil
	}
	return l.refusalOf(g, now)
}

// shut is barred for a request in line in front of g whose turn has come.
func (l *locked) shut(g *Gate, now law.Time) *Refusal {
	if g.Closed() || g.Room(l.epoch.time(now)) > 0 {
		return nil
	}
	return l.refusalOf(g, now)
}

// refusalOf returns the refusal of a request that g does not let pass. If there is
// room, that is kept for those in line, the first of which has not started yet: the
// reported time is the end of its probe timeout, as if it had.
func (l *locked) refusalOf(g *Gate, now law.Time) *Refusal {
	r := &Refusal{Reason: ByBreaker, Cause: g.Cause(), RetryAfter: g.Delay(l.epoch.time(now)), Need: -1}
	if r.RetryAfter > 0 || g.waiting == 0 {
		return r
	}
	w := l.first
	for w != nil && w.gate != g {
		w = w.next
	}
	at := now
	switch {
	case w == nil: // they wait in a store's line, which knows
		r.AtLeast = true
	case l.many:
		at = w.at
	default: // it is the first, and may have no planned start
		at = l.real(w.needs, now, now).at
	}
	r.RetryAfter = time.Duration(law.Later(max(now, at)-now, g.ProbeTimeout()))
	return r
}

// thinGate refuses the requests in front of g for which it has no room, the last to
// arrive first.
func (l *locked) thinGate(g *Gate, now law.Time) {
	if g.waiting == 0 || g.Closed() {
		return
	}
	room := g.Room(l.epoch.time(now))
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
		case room > 0: // it will be a probe
			room--
			l.gated = true
			l.limitWait(w)
			continue
		}
		freed = append(freed, w.needs...)
		from = min(from, w.at)
		l.refuse(w, l.refusalOf(g, now))
	}
	if l.many {
		l.improve(now, from, freed)
	} else {
		l.dropPlan()
	}
}
