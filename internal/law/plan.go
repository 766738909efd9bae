package law

// Plan is the starts to come under one budget, by time and then by order of
// arrival. It finds the earliest instant at which a further start delays none
// of them. The zero Plan is empty.
type Plan struct {
	todo schedule

	// A checkpoint, so that a search need not begin at the present.
	valid bool
	known checkpoint
	// One unit more fits nowhere from since on and before known.from. hard: and
	// not because of a start planned later, so that this stays true when one
	// such goes.
	since Time
	hard  bool
	// stale: known is no longer right but for known.from, and a window finds
	// the rest again by itself.
	stale bool

	mark *checkpoint // another; see Mark

	turns int // of searches after their first, for tests
}

// A checkpoint is a budget as it will be at an instant.
type checkpoint struct {
	front sim
	from  Time
	// All before edge have started. For windows, those from oldest on count.
	edge, oldest key
}

// note makes c the state s at the instant t, with all before i started. These
// are the starts until t.
func (c *checkpoint) note(s *sim, t Time, i place, todo *schedule) {
	c.front, c.from, c.edge = *s, t, key{t, 0}
	if last := todo.prev(i); last != nil && last.at == t {
		c.edge.seq = last.seq + 1
	}
	if s.kind != simWindow {
		return
	}
	c.oldest = c.edge
	if s.window.at.before(i) {
		c.oldest = todo.get(s.window.at).key()
	}
}

// restore returns what note has noted.
func (c *checkpoint) restore(todo *schedule) (s sim, i place) {
	s, i = c.front, todo.find(c.edge)
	if s.kind == simWindow {
		s.window.at, s.window.end = todo.find(c.oldest), i
	}
	return s, i
}

// longSearch is how many starts a search passes before it leaves a checkpoint in any
// case.
const longSearch = 16

// Earliest returns the first instant at or after t, which is not before now, at
// which cost units fit and every start planned stays possible. fifo promises that
// the next search will not begin before what this one returns.
func (p *Plan) Earliest(st State, now, t Time, cost int64, fifo bool) (at Time, atLeast bool) {
	return p.earliest(st, now, t, cost, fifo, Never)
}

// Sooner is Earliest for a start that was planned for until, and has just been
// removed.
func (p *Plan) Sooner(st State, now, t, until Time, cost int64) (at Time, atLeast bool) {
	if !st.inOrder() {
		until = Never
	}
	return p.earliest(st, now, t, cost, false, until)
}

func (p *Plan) earliest(st State, now, t Time, cost int64, fifo bool, until Time) (at Time, atLeast bool) {
	if st.idle(t) {
		return t, false
	}
	todo, begin := &p.todo, p.todo.steps
	s, i, t, since, hard := p.begin(st, now, t, cost)
	// Each turn passes a planned start, or is the last: what a server announced has
	// no part in how many there are.
	for ; ; p.turns++ {
		i = s.pass(now, t, todo, i)
		e := todo.get(i)
		at, atLeast = s.earliest(t, cost, todo)
		t = at
		if at == Never {
			return at, atLeast
		}
		if e != nil && at >= e.at {
			continue // with those started too, it fits no earlier than without
		}
		bad := s.spoils(t, cost, todo, i, until)
		if bad == nil {
			break
		}
		hard = false
		for end := todo.find(key{bad.at, bad.seq + 1}); i.before(end); i = todo.next(i) {
			e := todo.get(i)
			s.take(e.at, e.cost, todo)
		}
		t = bad.at
	}
	if cost > 1 {
		since = Never
	}
	if fifo || !p.valid || now > p.known.from || since <= p.since || todo.steps-begin > longSearch {
		p.known.note(&s, t, i, todo)
		p.valid, p.stale, p.since, p.hard = true, false, since, hard
	}
	return at, atLeast
}

// begin returns a state to search from, with all before i started, and the
// instant from which the search goes on. One unit fits nowhere between since
// and that.
func (p *Plan) begin(st State, now, t Time, cost int64) (s sim, i place, from, since Time, hard bool) {
	if p.valid && now <= p.known.from {
		known := p.known.from
		if cost > 0 && p.since <= t && t <= known {
			if p.stale {
				p.refresh(st, now)
			}
			s, i = p.known.restore(&p.todo)
			return s, i, known, p.since, p.hard
		}
		if t >= known && !p.stale && !(p.jumps() && known <= subSat(t, p.known.front.window.per)) {
			s, i = p.known.restore(&p.todo)
			return s, i, t, t, true
		}
	}
	if st.jumps() {
		s, i = st.simulateAt(now, t, &p.todo)
		return s, i, t, t, true
	}
	if p.mark != nil && p.mark.from <= t && now <= p.mark.from {
		s, i = p.mark.restore(&p.todo)
		return s, i, t, t, true
	}
	return st.simulate(now), place{}, t, t, true
}

// refresh mends a checkpoint that is stale.
func (p *Plan) refresh(st State, now Time) {
	s, i := st.simulateAt(now, p.known.from, &p.todo)
	p.known.note(&s, p.known.from, i, &p.todo)
	p.stale = false
}

// Mark makes searches from t on cheap until something before t changes, where
// the law cannot begin one anywhere by itself.
func (p *Plan) Mark(st State, now, t Time) {
	p.mark = nil
	if st.jumps() || st.idle(t) {
		return
	}
	s, i, t, _, _ := p.begin(st, now, t, 0)
	i = s.pass(now, t, &p.todo, i)
	p.mark = new(checkpoint)
	p.mark.note(&s, t, i, &p.todo)
}

// Reach returns an instant before t: what starts at t, or does not, makes no
// difference to starts before it; or little enough to hold back there. No more
// than some hundred starts are planned between the two.
func (p *Plan) Reach(st State, t Time) Time {
	at := st.reach(t)
	const most = 4 // chunks
	if i := p.todo.find(key{t, 0}).chunk - most; i >= 0 {
		at = max(at, p.todo.get(place{i, 0}).at)
	}
	return min(at, t)
}

// EarliestAmong is Earliest with only the planned starts of those that count, by
// their order of arrival.
func (p *Plan) EarliestAmong(st State, now, t Time, cost int64, counts func(seq uint64) bool) (at Time, atLeast bool) {
	some := Plan{}
	for i := (place{}); p.todo.get(i) != nil; i = p.todo.next(i) {
		if e := p.todo.get(i); counts(e.seq) {
			some.todo.insert(*e)
		}
	}
	at, atLeast = some.Earliest(st, now, t, cost, true)
	p.turns += some.turns
	return at, atLeast
}

// Feasible reports whether every planned start is possible.
func (p *Plan) Feasible(st State, now Time) bool {
	s, todo := st.simulate(now), &p.todo
	i := place{}
	for e := todo.get(i); e != nil; e = todo.get(i) {
		at := max(now, e.at)
		if t, _ := s.earliest(at, e.cost, todo); t > at {
			return false
		}
		s.take(at, e.cost, todo)
		i = todo.next(i)
	}
	return true
}

// Next returns the first start that is not before the one given.
func (p *Plan) Next(at Time, seq uint64) (Time, uint64, bool) {
	e := p.todo.get(p.todo.find(key{at, seq}))
	if e == nil {
		return Never, 0, false
	}
	return e.at, e.seq, true
}

// Insert adds a start.
func (p *Plan) Insert(at Time, seq uint64, cost int64) {
	k := key{at, seq}
	if p.valid && !p.stale && (k.before(p.known.edge) || at < p.known.from) {
		p.valid, p.stale = p.jumps(), true
	}
	p.unmark(k)
	p.todo.insert(planned{at, seq, cost})
}

// jumps reports whether a search may begin anywhere.
func (p *Plan) jumps() bool {
	return p.known.front.kind == simWindow && !p.known.front.window.strict && !p.known.front.capped
}

func (p *Plan) unmark(k key) {
	if p.mark != nil && (k.before(p.mark.edge) || k.at < p.mark.from) {
		p.mark = nil
	}
}

// Remove takes a start out.
func (p *Plan) Remove(at Time, seq uint64) {
	k := key{at, seq}
	if p.valid && (at <= p.known.from || !p.hard) {
		// A start within the period before this one may be possible now.
		p.valid, p.stale = p.jumps(), true
		if p.valid {
			p.known.from = min(p.known.from, subSat(at, p.known.front.window.per))
			p.hard = true
			p.valid = p.since <= p.known.from
		}
	}
	p.unmark(k)
	p.todo.remove(p.todo.find(k))
}

// Start removes a start that was planned for at and takes its units from st as
// of its slot or of now; see TakeLate.
func (p *Plan) Start(st State, at Time, seq uint64, cost int64, slot, now Time) (strict bool) {
	k := key{at, seq}
	i := p.todo.find(k)
	w := windowOf(st)
	before := 0
	if w != nil {
		before = w.head + w.len
	}
	strict = TakeLate(st, slot, now, cost)
	// What the checkpoint knew as planned, it now knows as past.
	switch {
	case !p.valid:
	case strict || p.stale:
		p.valid = !strict
	case i == place{} && k.before(p.known.edge) && slot == at: // else it counted from another time
		if w != nil && k.before(p.known.oldest) {
			p.known.front.window.log += w.head + w.len - before
		}
	default:
		p.valid, p.stale = p.jumps(), true
	}
	p.mark = nil
	p.todo.remove(i)
	return strict
}

// Forget drops the checkpoint: what the budget remembers has changed.
func (p *Plan) Forget() { p.valid, p.mark = false, nil }

// Clear removes every start.
func (p *Plan) Clear() {
	p.todo.clear()
	p.Forget()
}

// Len returns how many starts are planned.
func (p *Plan) Len() int { return p.todo.len() }

// Steps returns how many planned starts have been passed in searches since p was
// made, for tests.
func (p *Plan) Steps() int { return p.todo.steps }

// Turns returns how many instants searches have found wanting since it was last
// called, for tests.
func (p *Plan) Turns() (n int) {
	n, p.turns = p.turns, 0
	return n
}
