package law

// spaced admits one unit per interval, without a burst, and a cost of c holds
// the budget for c intervals: a bucket that must be full for a start, whatever
// its cost. Where it is strict, the intervals count from the answer, and only
// one start is in flight.
type spaced struct {
	bucket // full: when the next start may be
	strict bool
	flying int64 // strict: units in flight
	slack  Time  // strict: see Latency
}

func (s *spaced) Earliest(now, t Time, cost int64) (Time, bool) {
	if s.n == 0 || cost > MaxN {
		return Never, false
	}
	b := s.bucket.copy()
	if s.flying > 0 {
		b.Take(now, s.flying) // if it is answered at now
	}
	if b.frac > 0 {
		b.full = addSat(b.full, 1)
	}
	return max(t, b.full), s.flying > 0
}

func (s *spaced) Take(t Time, cost int64) bool {
	if s.strict {
		s.flying = addSat(s.flying, cost)
		return true
	}
	return s.bucket.Take(t, cost)
}

func (s *spaced) Answered(t Time, cost int64) {
	if s.strict {
		s.flying = max(0, s.flying-cost)
		s.bucket.Take(t, cost)
	}
}

func (s *spaced) Give(taken Time, cost int64, flying bool) {
	if flying {
		s.flying = max(0, s.flying-cost)
		return
	}
	s.bucket.Give(taken, cost, false)
}

func (s *spaced) Remaining(now Time) int64 {
	if s.n == 0 {
		return 0
	}
	return subSat(s.bucket.Remaining(now), s.flying)
}

func (s *spaced) Recovered(now Time) bool { return s.flying == 0 && s.bucket.Recovered(now) }

func (s *spaced) inherit(o *spaced, now Time) {
	if s.rate == o.rate {
		s.bucket = o.bucket
	} else {
		for _, e := range o.held(now) {
			s.bucket.Take(e.At, e.Cost)
		}
	}
	if s.strict {
		s.flying = o.flying
	} else if o.flying > 0 {
		s.bucket.Take(now, o.flying)
	}
}

// held returns the intervals still running at now as one entry: a start so long
// ago that its last interval ends when the budget is free.
func (s *spaced) held(now Time) []Entry {
	if s.n == 0 || s.isFull(now) {
		return nil
	}
	one, _ := s.span(1)
	return []Entry{{At: min(now, subSat(s.full, one)), Cost: s.ceilUnits(subSat(s.full, now), s.frac)}}
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
	c.bucket = s.bucket.copy()
	loose := false
	if c.flying > 0 {
		c.bucket.Take(now, c.flying)
		c.flying, loose = 0, true
	}
	c.strict = false
	return sim{kind: simSpaced, spaced: c, loose: loose, strict: s.strict, slack: s.slack}
}
