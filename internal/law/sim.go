package law

// sim is a copy of a State to plan with. Starts are taken in order of time. The
// zero sim has no limit.
//
// It is a value that has room for every law, and its methods are the one place that
// tells laws apart by a switch: a search copies a sim several times for each start
// that it looks at, and behind an interface each copy would be an allocation. A State
// makes its sim by simulate, and only here is it known which laws have one.
type sim struct {
	kind     simKind
	bucket   bucket // of Spaced too
	sliding  sliding
	calendar calendar
	pace     Pace
	counter  counter
	window   windowSim
	capped   bool // it is of an announced limit
	cap      capSim
	// loose: it depends on a response to come. strict: so does whatever is
	// taken from now on.
	loose, strict bool
	turns         turns // of an announced limit
	slack         Time  // by how much a planned start may come later; see State.Latency
}

type simKind uint8

const (
	simOpen simKind = iota
	simBucket
	simSliding
	simCalendar
	simPace
	simCounter
	simWindow
)

// earliest is State.Earliest; todo is the plan that is being taken in order.
func (s *sim) earliest(t Time, cost int64, todo *schedule) (at Time, atLeast bool) {
	if s.capped {
		return s.earliestAnnounced(t, cost, todo), false
	}
	switch s.kind {
	case simBucket:
		at, _ = s.bucket.Earliest(t, t, s.bucket.room(cost))
		return at, s.loose
	case simSliding:
		return s.sliding.Earliest(t, t, cost)
	case simCalendar:
		return s.calendar.Earliest(t, t, cost)
	case simPace:
		return s.pace.Earliest(t, t, cost)
	case simWindow:
		return s.window.earliest(t, cost, todo)
	}
	return t, false
}

// take counts the next start of the plan.
func (s *sim) take(t Time, cost int64, todo *schedule) {
	if s.capped {
		s.turns.take(t)
	}
	switch s.kind {
	case simBucket:
		if s.capped {
			cost = fits(cost, s.cap.limit) // as Cap.Take does
		}
		s.bucket.Take(t, cost)
		s.loose = s.loose || s.strict
	case simSliding:
		s.sliding.Take(t, cost)
	case simCalendar:
		s.calendar.Take(t, cost)
	case simPace:
		s.pace.Take(t, cost)
	case simCounter:
		s.rollTo(t)
		s.counter.take(t, cost)
	case simWindow:
		s.window.sum = addSat(s.window.sum, cost)
		s.window.end = todo.next(s.window.end)
	}
}

// forgets reports whether at the instant at a start at t no longer counts. The state
// has not been asked about at yet.
func (s *sim) forgets(t, at Time) bool {
	switch s.kind {
	case simBucket:
		return s.bucket.Recovered(at)
	case simSliding:
		return at >= addSat(t, 2*s.sliding.per)
	case simCalendar:
		return !s.calendar.clock(at).Before(s.calendar.end)
	case simPace:
		return s.pace.over(at)
	case simCounter:
		return at >= s.counter.end || at >= s.cap.keep
	case simWindow:
		return at >= addSat(t, s.window.per)
	}
	return true
}

// pass takes all starts until t from place i on, and returns the place after
// them. What is overdue starts at now.
func (s *sim) pass(now, t Time, todo *schedule, i place) place {
	for e := todo.get(i); e != nil && e.at <= t; e = todo.get(i) {
		if c := &todo.chunks[i.chunk]; s.kind == simBucket && !s.capped && i.i == 0 && e.at >= now && c.list[len(c.list)-1].at <= t && s.bucket.passChunk(c) {
			s.loose = s.loose || s.strict
			i = place{i.chunk + 1, 0}
			continue
		}
		s.take(max(now, e.at), e.cost, todo)
		i = todo.next(i)
	}
	return i
}

// spoils returns the first start of todo, from place i on, that would no longer
// be possible if cost units more started at t, or nil. A start that is not possible
// anyway, since it was planned by a guess that has proved wrong, holds no other
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
