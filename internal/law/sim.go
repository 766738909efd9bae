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
func (s *sim) earliest(t Time, cost int64, todo *schedule) (at Time, atLeast bool) {
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
func (s *sim) take(t Time, cost int64, todo *schedule) {
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
		s.window.end = todo.next(s.window.end)
	}
}

// spoils returns the first start of todo, from place i on, that would no longer
// be possible if cost units more started at t, or nil. What is not possible
// anyway, since it was planned by a guess that has proved wrong, holds nobody
// back. Those cost units were planned for until, so that from then on they take
// no more than before.
func (s *sim) spoils(t Time, cost int64, todo *schedule, i place, until Time) *planned {
	e := todo.get(i)
	if e == nil {
		return nil
	}
	c := *s
	if c.kind == simWindow {
		c.window.sum = addSat(c.window.sum, cost) // stays until t+per, where the loop ends
	} else {
		c.take(t, cost, todo)
	}
	var without sim // as it would be at k
	alike := true   // there is none yet
	k := i
	for j := i; e != nil; j, e = todo.next(j), todo.get(todo.next(j)) {
		if e.at >= until || c.forgets(t, e.at) {
			return nil
		}
		if at, _ := c.earliest(e.at, e.cost, todo); at > addSat(e.at, s.slack) {
			if alike {
				without, alike = *s, false
			}
			for ; k.before(j); k = todo.next(k) {
				o := todo.get(k)
				without.take(o.at, o.cost, todo)
			}
			if at, _ := without.earliest(e.at, e.cost, todo); at <= addSat(e.at, s.slack) {
				return e
			}
		}
		c.take(e.at, e.cost, todo)
	}
	return nil
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
