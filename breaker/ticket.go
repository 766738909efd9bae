package breaker

import "time"

// A Ticket permits one call and ties its result to the state in which it was
// taken. Use each for one call, and record it once. Recording the zero Ticket
// does nothing. A ticket that is never recorded does no lasting harm: a probe
// gives up its place after Config.ProbeTimeout.
type Ticket struct {
	gen   uint64 // the generation it was taken in; 0 is none
	probe uint32 // which probe of that generation; 0 when closed
}

// Probe reports whether the call is a probe.
func (t Ticket) Probe() bool { return t.probe != 0 }

// remembered is how many probes that timed out are remembered, so that a late
// result still counts. Otherwise a service slower than the probe timeout would
// never be found healthy.
const remembered = 16

// probes are the probes of a half-open breaker: never more in flight than there
// are places, not counting the ones that timed out. Not safe for concurrent use.
type probes struct {
	list []probe // in the order taken, which is that of their timeouts too
	last uint32  // number of the last probe taken; they begin with 1
}

type probe struct {
	number  uint32
	timeout time.Time // when it gives up its place
}

// take adds a probe that times out at timeout, and returns its number.
func (p *probes) take(places int, now, timeout time.Time) (number uint32, ok bool) {
	if p.room(places, now) == 0 {
		return 0, false
	}
	if n := p.timedOut(now); n > remembered {
		p.list = append(p.list[:0], p.list[n-remembered:]...)
	}
	p.last++
	p.list = append(p.list, probe{p.last, timeout})
	return p.last, true
}

// end removes a probe, and reports whether it was there: in flight, or timed out
// and remembered.
func (p *probes) end(number uint32) bool {
	for i, l := range p.list {
		if l.number == number {
			p.list = append(p.list[:i], p.list[i+1:]...)
			return true
		}
	}
	return false
}

// wait returns the time from now until there is room for a probe, of which places
// permits at least one, should no result come before.
func (p *probes) wait(places int, now time.Time) time.Duration {
	if p.room(places, now) > 0 {
		return 0
	}
	return p.list[len(p.list)-places].timeout.Sub(now)
}

// room returns how many of the places are free.
func (p *probes) room(places int, now time.Time) int {
	return max(0, places-(len(p.list)-p.timedOut(now)))
}

// timedOut returns how many probes have timed out by now.
func (p *probes) timedOut(now time.Time) int {
	for i, l := range p.list {
		if l.timeout.After(now) {
			return i
		}
	}
	return len(p.list)
}

// clear begins a generation: every probe is forgotten.
func (p *probes) clear() { p.list, p.last = p.list[:0], 0 }
