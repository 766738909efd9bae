package law

import "sort"

// planned is a start to come.
type planned struct {
	at   Time
	seq  uint64 // order of arrival
	cost int64
}

// Plan is the starts to come under one budget, by time and then by order of
// arrival. It finds the earliest instant at which a further start delays none
// of them. The zero Plan is empty.
type Plan struct {
	todo []planned
	head int // todo[:head] has started

	// A checkpoint, so that a search need not begin at the present: the budget
	// as it will be at from, with todo[:taken] started.
	valid bool
	front sim
	taken int
	from  Time
	// dense: one unit more fits nowhere before from. hard: and not because of a
	// start planned later, so that dense stays true when one such goes.
	dense, hard bool
}

// Earliest returns the first instant at or after t, which is not before now, at
// which cost units fit and every start planned stays possible. fifo says that
// the next search will not begin before what this one returns.
func (p *Plan) Earliest(st State, now, t Time, cost int64, fifo bool) (at Time, atLeast bool) {
	var (
		s           sim
		i           int
		dense, hard bool
	)
	todo := p.todo[p.head:]
	if p.valid && now <= p.from && (t >= p.from || p.dense && cost > 0) {
		s, i = p.front, p.taken
		dense, hard = p.dense && t <= p.from, p.hard
		t = max(t, p.from)
	} else {
		s = st.simulate(now)
		dense, hard = t <= now, true
	}
	for {
		for ; i < len(todo) && todo[i].at <= t; i++ {
			s.take(max(now, todo[i].at), todo[i].cost)
		}
		at, atLeast = s.earliest(t, cost, todo)
		t = at
		if at == Never {
			return at, atLeast
		}
		if i < len(todo) && at >= todo[i].at {
			continue // with those started too, it fits no earlier than without
		}
		bad := s.spoils(t, cost, todo, i)
		if bad < 0 {
			break
		}
		hard = false
		for ; i <= bad; i++ {
			s.take(todo[i].at, todo[i].cost)
		}
		t = todo[bad].at
	}
	if dense = dense && cost <= 1; fifo || dense || !p.valid || !p.dense {
		p.valid, p.front, p.taken, p.from, p.dense, p.hard = true, s, i, t, dense, hard
	}
	return at, atLeast
}

// EarliestAmong is Earliest with only the planned starts of those that count, by
// their order of arrival.
func (p *Plan) EarliestAmong(st State, now, t Time, cost int64, counts func(seq uint64) bool) (at Time, atLeast bool) {
	some := Plan{}
	for _, e := range p.todo[p.head:] {
		if counts(e.seq) {
			some.todo = append(some.todo, e)
		}
	}
	return some.Earliest(st, now, t, cost, true)
}

// Feasible reports whether every planned start is possible.
func (p *Plan) Feasible(st State, now Time) bool {
	s, todo := st.simulate(now), p.todo[p.head:]
	for _, e := range todo {
		at := max(now, e.at)
		if t, _ := s.earliest(at, e.cost, todo); t > at {
			return false
		}
		s.take(at, e.cost)
	}
	return true
}

func (p *Plan) find(at Time, seq uint64) int {
	todo := p.todo[p.head:]
	return sort.Search(len(todo), func(i int) bool {
		return todo[i].at > at || todo[i].at == at && todo[i].seq >= seq
	})
}

// Insert adds a start.
func (p *Plan) Insert(at Time, seq uint64, cost int64) {
	i := p.find(at, seq)
	if i < p.taken || at < p.from {
		p.valid = false
	}
	if p.head > len(p.todo)/2 {
		n := copy(p.todo, p.todo[p.head:])
		p.todo, p.head = p.todo[:n], 0
	}
	p.todo = append(p.todo, planned{})
	todo := p.todo[p.head:]
	copy(todo[i+1:], todo[i:])
	todo[i] = planned{at, seq, cost}
}

// Remove takes a start out.
func (p *Plan) Remove(at Time, seq uint64) {
	i := p.find(at, seq)
	if i < p.taken || at <= p.from || !p.hard {
		p.valid = false
	}
	p.cut(i)
}

func (p *Plan) cut(i int) {
	if i == 0 {
		p.head++
	} else {
		p.todo = append(p.todo[:p.head+i], p.todo[p.head+i+1:]...)
	}
	if p.head == len(p.todo) {
		p.todo, p.head = p.todo[:0], 0
	}
}

// Start removes a start that was planned for at and takes its units from st as
// of its slot or of now; see TakeLate.
func (p *Plan) Start(st State, at Time, seq uint64, cost int64, slot, now Time) (strict bool) {
	i := p.find(at, seq)
	if i > 0 || p.taken == 0 || !p.valid {
		p.valid = false
		p.cut(i)
		return TakeLate(st, slot, now, cost)
	}
	// What the checkpoint knew as planned, it now knows as past.
	p.taken--
	w, _ := st.(*window)
	if w == nil {
		p.valid = slot == at
		p.cut(i)
		return TakeLate(st, slot, now, cost)
	}
	before := w.head + w.len
	strict = TakeLate(st, slot, now, cost)
	f := &p.front.window
	if f.end--; f.at > 0 {
		f.at--
		f.log += w.head + w.len - before
	}
	p.valid = !strict && slot == at // else it counted from another time
	p.cut(i)
	return strict
}

// Forget drops the checkpoint: what the budget remembers has changed.
func (p *Plan) Forget() { p.valid = false }

// Clear removes every start.
func (p *Plan) Clear() { p.todo, p.head, p.valid, p.taken = p.todo[:0], 0, false, 0 }

// Len returns how many starts are planned.
func (p *Plan) Len() int { return len(p.todo) - p.head }
