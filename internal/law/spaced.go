package law

// spaced admits one unit per interval, without a burst, and a cost of c takes
// the budget for c intervals: a bucket that must be full for a start, whatever
// its cost. Where it is strict, the intervals count from the response, and only
// one start is in flight.
type spaced struct {
	bucket // full: when the next start may be
	responses
}

func newSpaced(s Spec) *spaced {
	return &spaced{bucket: *newBucket(s.shape()), responses: responses{strict: s.Strict}}
}

func (s *spaced) Earliest(now, t Time, cost int64) (Time, bool) {
	if s.inFlight == 0 {
		return s.bucket.Earliest(now, t, s.room(cost))
	}
	b := s.bucket.copy()
	b.Take(now, s.inFlight) // if its response comes now
	at, _ := b.Earliest(now, t, b.room(cost))
	return at, at != Never
}

func (s *spaced) Take(t Time, cost int64) bool {
	if s.strict {
		s.inFlight = addSat(s.inFlight, cost)
		return true
	}
	return s.bucket.Take(t, cost)
}

func (s *spaced) Done(t Time, cost int64) {
	if s.strict {
		s.done(cost)
		s.bucket.Take(t, cost)
	}
}

func (s *spaced) Give(taken Time, cost int64, inFlight bool) {
	if inFlight {
		s.done(cost)
		return
	}
	s.bucket.Give(taken, cost, false)
}

func (s *spaced) Remaining(now Time) int64 {
	if s.n == 0 {
		return 0
	}
	return subSat(s.bucket.Remaining(now), s.inFlight)
}

func (s *spaced) Recovered(now Time) bool { return s.inFlight == 0 && s.bucket.Recovered(now) }

func (s *spaced) Expires(now Time) Time {
	if s.inFlight > 0 {
		return Never
	}
	return s.bucket.Expires(now)
}

func (s *spaced) due(slot, now Time) Time {
	if s.strict {
		return now
	}
	return slot
}

func (s *spaced) inherit(old State, now Time) bool {
	o, ok := old.(*spaced)
	if !ok {
		return false
	}
	if s.rate == o.rate {
		s.bucket = o.bucket
	} else {
		for _, e := range o.running(now) {
			s.bucket.Take(e.At, e.Cost)
		}
	}
	if s.strict {
		s.inFlight = o.inFlight
	} else if o.inFlight > 0 {
		s.bucket.Take(now, o.inFlight)
	}
	return true
}

// running returns the intervals still running at now as one entry: a start so long
// ago that its last interval ends when the budget is free.
func (s *spaced) running(now Time) []Entry {
	h := s.bucket.history(now)
	for i := range h {
		h[i].At = min(now, subSat(s.full.ns, s.span(1).ns))
	}
	return h
}

func (s *spaced) history(now Time) []Entry {
	h := s.running(now)
	if s.inFlight > 0 {
		h = append(h, Entry{At: now, Cost: s.inFlight})
	}
	return h
}

func (s *spaced) code(c *Codec) {
	s.bucket.code(c)
	c.Ints(&s.inFlight)
}

func (s *spaced) simulate(now Time) sim {
	c := sim{kind: simBucket, bucket: s.bucket.copy(), loose: s.inFlight > 0, strict: s.strict, slack: s.latency}
	if s.inFlight > 0 {
		c.bucket.Take(now, s.inFlight)
	}
	return c
}
