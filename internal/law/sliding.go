package law

// sliding keeps two counters: cur since start, prev in the period before. What
// counts at t is cur plus prev weighted by the part of the previous window that
// lies within the last period. Windows begin with the first use and keep their
// rhythm from then on: units given back may then free others, but never make
// one wait longer.
type sliding struct {
	common
	n, per    int64
	used      bool
	start     Time
	cur, prev int64
}

// begin makes t the first use, if it is.
func (s *sliding) begin(t Time) {
	if !s.used {
		s.used, s.start = true, t
	}
}

// roll moves on to the window that holds t.
func (s *sliding) roll(t Time) {
	switch d := subSat(t, s.start); {
	case d < s.per:
		return
	case subSat(d, s.per) < s.per:
		s.start, s.prev, s.cur = s.start+s.per, s.cur, 0
	default:
		s.start, s.prev, s.cur = t-d%s.per, 0, 0
	}
}

func (s *sliding) Earliest(_, t Time, cost int64) (Time, bool) {
	if cost > s.n {
		return Never, false
	}
	for c := *s; ; t = c.start + c.per {
		c.roll(t)
		t = max(t, c.start)
		room := subSat(c.n-cost, c.cur)
		if room < 0 {
			continue
		}
		if c.prev <= room {
			return t, false
		}
		// prev x (per-elapsed) <= room x per holds from here on.
		q, _ := mulDiv(room, c.per, 0, c.prev) // less than per, since room < prev
		if at := c.start + c.per - q; at < c.start+c.per {
			return max(t, at), false
		}
	}
}

func (s *sliding) Take(t Time, cost int64) bool {
	s.begin(t)
	s.roll(t)
	s.cur = addSat(s.cur, cost)
	return false
}

func (s *sliding) Give(taken Time, cost int64, _ bool) {
	switch {
	case taken >= s.start:
		s.cur = max(0, s.cur-cost)
	case taken >= subSat(s.start, s.per):
		s.prev = max(0, s.prev-cost)
	}
}

func (s *sliding) Spend(now Time, n int64) {
	if n >= 0 {
		s.Take(now, n)
		return
	}
	s.roll(now)
	back := subSat(0, n)
	old := min(s.prev, back)
	s.prev -= old
	s.cur = max(0, s.cur-(back-old))
}

func (s *sliding) Remaining(now Time) int64 {
	s.roll(now)
	past := s.per - min(s.per, max(0, subSat(now, s.start)))
	weighted, _ := mulDiv(s.prev, past, s.per-1, s.per)
	return subSat(subSat(s.n, s.cur), weighted)
}

func (s *sliding) Recovered(now Time) bool {
	s.roll(now)
	return s.cur == 0 && s.prev == 0
}

func (s *sliding) Expires(now Time) Time {
	if s.used {
		return max(now, addSat(s.start, addSat(s.per, s.per)))
	}
	return now
}

func (s *sliding) Max() int64 { return s.n }

func (s *sliding) Clamp(now Time) int64 {
	if !s.used || s.start <= now {
		return 0
	}
	ahead := subSat(s.start, now)
	s.start = now
	return ahead
}

func (s *sliding) reach(t Time) Time { return subSat(t, 2*s.per) }

// inOrder: units given back free the weight of others.
func (s *sliding) inOrder() bool { return false }

func (s *sliding) inherit(old State, _ Time) bool {
	o, ok := old.(*sliding)
	if !ok || s.per != o.per {
		return false
	}
	n := s.n
	*s = *o
	s.n = n
	return true
}

func (s *sliding) code(c *Codec) {
	c.Bool(&s.used)
	c.Ints(&s.start, &s.cur, &s.prev)
}

func (s *sliding) history(now Time) []Entry {
	s.roll(now)
	var h []Entry
	if left := s.n - s.cur - s.Remaining(now); left > 0 {
		h = append(h, Entry{s.start, left})
	}
	if s.cur > 0 {
		h = append(h, Entry{max(s.start, now), s.cur})
	}
	return h
}

// simulate is a use: the windows must not move with the request that starts first.
func (s *sliding) simulate(now Time) sim {
	s.begin(now)
	return sim{kind: simSliding, sliding: *s}
}
