package law

// A capSim is what a sim of an announced limit has beside the count that it plans with.
// It does not change while the sim is in use.
type capSim struct {
	limit  int64 // negative: none
	per    int64 // zero: not known
	keep   Time
	margin int64 // of a counter or a bucket; a window has it in sum
	till   Time  // of a bucket: see careTill
}

func (c *Cap) simulate(now Time) sim {
	c.settle(now)
	if c.gen == 0 {
		return sim{}
	}
	margin := c.margin(now)
	s := sim{capped: true, cap: capSim{limit: c.limit, per: c.per, keep: c.keep, margin: margin}, turns: c.turns}
	switch c.kind {
	case capRolling:
		w := c.window.simulate(now)
		s.kind, s.window = w.kind, w.window
		s.cap.margin = 0
		s.window.more, s.window.till = addSat(c.extra, margin), c.surplusTill(margin)
		s.window.sum = addSat(s.window.sum, s.window.more)
	case capFilling:
		s.kind, s.bucket, s.cap.till = simBucket, c.bucket.copy(), c.careTill()
	default:
		s.kind, s.counter = simCounter, c.counter
	}
	return s
}

// earliestAnnounced is earliest for an announced limit. When that ends, nothing is held
// up any more.
func (s *sim) earliestAnnounced(t Time, cost int64, todo *schedule) Time {
	if t >= s.cap.keep || cost == 0 {
		return t
	}
	at := s.turns.next(t)
	margin := s.cap.margin
	cost = fits(cost, s.cap.limit)
	switch s.kind {
	case simBucket:
		at = s.bucket.earliestWithCare(at, cost, margin, s.cap.till)
	case simWindow:
		at, _ = s.window.earliest(at, cost, todo)
	default:
		n := s.counter // nothing has been taken at that instant yet
		if at >= n.end {
			n.roll(at, s.cap.limit, s.cap.per)
		}
		at = n.earliest(at, fits(addSat(cost, margin), s.cap.limit))
	}
	return max(t, min(at, s.cap.keep))
}

// rollTo returns the units of a counter that are due at t.
func (s *sim) rollTo(t Time) {
	if t >= s.counter.end {
		s.counter.roll(t, s.cap.limit, s.cap.per)
	}
}

func (c *Cap) idle(t Time) bool { return c.gen == 0 || t >= c.keep }

// windowOf returns the window that st counts by, or nil.
func windowOf(st State) *window {
	switch st := st.(type) {
	case *window:
		return st
	case *Cap:
		return st.window
	}
	return nil
}

func (c *Cap) reach(t Time) Time {
	switch c.kind {
	case capRolling:
		return c.window.reach(t)
	case capFilling:
		return c.bucket.reach(t)
	}
	return t
}
