package law

// sim is a copy of a State to plan with: a value, so that planning allocates
// nothing. Starts are taken in order of time. The zero sim has no limit.
type sim struct {
	kind     simKind
	bucket   bucket
	spaced   spaced
	sliding  sliding
	calendar calendar
	pace     Pace
	learned  Cap
	window   windowSim
	// loose: it depends on an answer to come. strict: so does whatever is
	// taken from now on.
	loose, strict bool
	slack         Time // by how much a planned start may come later; see Latency
}

type simKind uint8

const (
	simOpen simKind = iota
	simBucket
	simSpaced
	simSliding
	simCalendar
	simPace
	simCap
	simWindow
)

// earliest is State.Earliest; todo is the plan that is being taken in order.
func (s *sim) earliest(t Time, cost int64, todo []planned) (at Time, atLeast bool) {
	switch s.kind {
	case simBucket:
		return s.bucket.Earliest(t, t, cost)
	case simSpaced:
		at, _ = s.spaced.Earliest(t, t, cost)
		return at, s.loose
	case simSliding:
		return s.sliding.Earliest(t, t, cost)
	case simCalendar:
		return s.calendar.Earliest(t, t, cost)
	case simPace:
		return s.pace.Earliest(t, t, cost)
	case simCap:
		return s.learned.Earliest(t, t, cost)
	case simWindow:
		if cost > s.window.n {
			return Never, false
		}
		return s.window.earliest(t, cost, todo)
	}
	return t, false
}

// take counts the next start of the plan.
func (s *sim) take(t Time, cost int64) {
	switch s.kind {
	case simBucket:
		s.bucket.Take(t, cost)
	case simSpaced:
		s.spaced.Take(t, cost)
		s.loose = s.loose || s.strict
	case simSliding:
		s.sliding.Take(t, cost)
	case simCalendar:
		s.calendar.Take(t, cost)
	case simPace:
		s.pace.Take(t, cost)
	case simCap:
		s.learned.Take(t, cost)
	case simWindow:
		s.window.sum = addSat(s.window.sum, cost)
		s.window.end++
	}
}

// spoils returns the first of todo[i:] that would no longer be possible if cost
// units more started at t, or -1. What is not possible anyway, since it was
// planned by a guess that has proved wrong, holds nobody back.
func (s *sim) spoils(t Time, cost int64, todo []planned, i int) int {
	if i >= len(todo) {
		return -1
	}
	c := *s
	if c.kind == simWindow {
		c.window.sum = addSat(c.window.sum, cost) // stays until t+per, where the loop ends
	} else {
		c.take(t, cost)
	}
	var without sim // as it would be at todo[k]
	k := -1
	for j := i; j < len(todo); j++ {
		e := todo[j]
		if c.forgets(t, e.at) {
			return -1
		}
		if at, _ := c.earliest(e.at, e.cost, todo); at > addSat(e.at, s.slack) {
			if k < 0 {
				without, k = *s, i
			}
			for ; k < j; k++ {
				without.take(todo[k].at, todo[k].cost)
			}
			if at, _ := without.earliest(e.at, e.cost, todo); at <= addSat(e.at, s.slack) {
				return j
			}
		}
		c.take(e.at, e.cost)
	}
	return -1
}

// forgets reports whether at the instant at a start at t no longer counts.
func (s *sim) forgets(t, at Time) bool {
	switch s.kind {
	case simOpen:
		return true
	case simBucket:
		return s.bucket.Recovered(at)
	case simSpaced:
		return s.spaced.bucket.Recovered(at)
	case simSliding:
		return at >= addSat(t, 2*s.sliding.per)
	case simCalendar:
		return !s.calendar.clock(at).Before(s.calendar.end) // roll has not been here yet
	case simPace:
		return s.pace.over(at)
	case simCap:
		return at >= s.learned.end && !s.learned.blind // roll has not been here yet
	case simWindow:
		return at >= addSat(t, s.window.per)
	}
	return false
}
