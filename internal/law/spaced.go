package law

// spaced admits one unit per interval: free is when the next may start. It has
// no burst, and a cost of c holds the budget for c intervals. Where it is
// strict, the intervals count from the answer, and only one start is in flight.
type spaced struct {
	rate
	strict     bool
	free, frac int64 // when the next start may be
	since      Time  // when it was last seen free; see bucket
	flying     int64 // strict: units in flight
}

func (s *spaced) Earliest(t Time, cost int64) (Time, bool) {
	if s.n == 0 || cost > MaxN {
		return Never, false
	}
	at := s.free
	if s.frac > 0 {
		at = addSat(at, 1)
	}
	if s.flying > 0 {
		// The answer may come at once, and an interval for each unit follows.
		ns, frac := s.span(s.flying)
		if frac > 0 {
			ns = addSat(ns, 1)
		}
		return max(t, addSat(max(at, t), ns)), true
	}
	return max(t, at), false
}

func (s *spaced) Take(t Time, cost int64) bool {
	if s.strict {
		s.flying = addSat(s.flying, cost)
		return true
	}
	s.hold(t, cost)
	return false
}

// hold counts cost intervals from t, or from the end of those before.
func (s *spaced) hold(t Time, cost int64) {
	b := bucket{rate: s.rate, full: s.free, frac: s.frac, since: s.since}
	b.Take(t, cost)
	s.free, s.frac, s.since = b.full, b.frac, b.since
}

func (s *spaced) Answered(t Time, cost int64) {
	if s.strict {
		s.flying = max(0, s.flying-cost)
		s.hold(t, cost)
	}
}

func (s *spaced) Give(taken Time, cost int64, flying bool) {
	switch {
	case flying:
		s.flying = max(0, s.flying-cost)
	case taken >= s.since && s.n > 0:
		b := bucket{rate: s.rate, full: s.free, frac: s.frac}
		b.push(-cost)
		s.free, s.frac = b.full, b.frac
	}
}

func (s *spaced) Spend(now Time, n int64) {
	switch {
	case n > 0:
		s.hold(now, n)
	case n < 0 && !s.idle(now):
		s.Give(s.since, -n, false)
	}
}

func (s *spaced) Remaining(now Time) int64 {
	if s.n == 0 {
		return 0
	}
	left := int64(1)
	if !s.idle(now) {
		left -= s.ceilUnits(subSat(s.free, now), s.frac)
	}
	return subSat(left, s.flying)
}

func (s *spaced) idle(now Time) bool { return s.free < now || s.free == now && s.frac == 0 }

func (s *spaced) Recovered(now Time) bool { return s.flying == 0 && s.idle(now) }

func (s *spaced) inherit(o *spaced, now Time) {
	if s.rate == o.rate {
		s.free, s.frac, s.since = o.free, o.frac, o.since
	} else if !o.idle(now) {
		for _, e := range o.held(now) {
			s.hold(e.At, e.Cost)
		}
	}
	if s.strict {
		s.flying = o.flying
	} else if o.flying > 0 {
		s.hold(now, o.flying)
	}
}

// held returns the intervals still running at now as one entry: a start so long
// ago that its last interval ends when the budget is free.
func (s *spaced) held(now Time) []Entry {
	if s.n == 0 || s.idle(now) {
		return nil
	}
	one, _ := s.span(1)
	return []Entry{{At: min(now, subSat(s.free, one)), Cost: s.ceilUnits(subSat(s.free, now), s.frac)}}
}

func (s *spaced) history(now Time) []Entry {
	h := s.held(now)
	if s.flying > 0 {
		h = append(h, Entry{At: now, Cost: s.flying})
	}
	return h
}

func (s *spaced) simulate(now Time) sim {
	c := *s
	loose := false
	if c.flying > 0 {
		c.hold(now, c.flying)
		c.flying, loose = 0, true
	}
	c.strict = false
	return sim{kind: simSpaced, spaced: c, loose: loose, strict: s.strict}
}
