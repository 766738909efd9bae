package breaker

import "time"

// A Ticket lets one call pass and ties its result to the state in which it
// passed. Use each for one call and record it once. The zero Ticket is of no
// state: recording it does nothing. Tickets are values; they may be copied and
// may be dropped, as a probe's place comes back at the end of its lease.
type Ticket struct {
	gen   uint64 // the generation it was taken in; 0 is none
	probe uint32 // which probe of that generation; 0 when closed
}

// Probe reports whether the ticket holds the place of a probe.
func (t Ticket) Probe() bool { return t.probe != 0 }

// remembered is how many probes whose lease has ended are kept in mind, so that
// a late result still counts. Without, a service slower than the lease would
// never be found well.
const remembered = 16

// A gate is what half-open lets through: never more probes with a running lease
// than there are places left. Not safe for concurrent use.
type gate struct {
	leases []lease // in the order taken, which is that of their ends too
	last   uint32  // number of the last probe taken; they begin with 1
}

type lease struct {
	probe uint32
	end   time.Time
}

// take lends one of the places until end, and returns the probe's number.
func (g *gate) take(places int, now, end time.Time) (probe uint32, ok bool) {
	if g.room(places, now) == 0 {
		return 0, false
	}
	ended := g.ended(now)
	if ended > remembered {
		g.leases = append(g.leases[:0], g.leases[ended-remembered:]...)
	}
	g.last++
	g.leases = append(g.leases, lease{g.last, end})
	return g.last, true
}

// giveBack ends the lease of a probe, and reports whether it had one, running
// or remembered.
func (g *gate) giveBack(probe uint32) bool {
	for i, l := range g.leases {
		if l.probe == probe {
			g.leases = append(g.leases[:i], g.leases[i+1:]...)
			return true
		}
	}
	return false
}

// wait returns the time from now until one of the places, of which there is at
// least one, is free, should no result come before.
func (g *gate) wait(places int, now time.Time) time.Duration {
	if g.room(places, now) > 0 {
		return 0
	}
	return g.leases[len(g.leases)-places].end.Sub(now)
}

// room returns how many of the places are free.
func (g *gate) room(places int, now time.Time) int {
	return max(0, places-(len(g.leases)-g.ended(now)))
}

// ended returns how many leases have ended by now.
func (g *gate) ended(now time.Time) int {
	for i, l := range g.leases {
		if l.end.After(now) {
			return i
		}
	}
	return len(g.leases)
}

// clear begins a generation: every lease is forgotten.
func (g *gate) clear() { g.leases, g.last = g.leases[:0], 0 }
