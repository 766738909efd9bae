package law

// meaning is what is known of what a server's resets mean: by its documentation, or else by
// two or three of its responses.
type meaning struct {
	resets    Resets
	confirmed int   // how many responses in a row fit a bucket that fills
	seenLeft  int64 // of an earlier response, by which the next are judged
	seenReset int64
	seenAt    Time  // when that came; zero with seenReset zero: there is none
	unit      int64 // the longest reset: the time of a unit where it is until the next one
}

// learn takes in what s shows of the meaning of resets.
//
// Nothing is assumed before it shows. Until then a limit with a period is rolling, which
// fits whatever the server does; and one without is a counter, of which at the reset one
// request goes alone, since only the next unit may have returned.
func (c *Cap) learn(now Time, s *LimitSignal) {
	m := &c.meaning
	if s.Resets != ResetsUnknown {
		m.resets = s.Resets
	}
	if s.Limit <= 0 || s.Reset < 0 || s.Early {
		return
	}
	if m.resets == ResetsUnknown {
		m.resets = c.shows(now, s)
	}
	m.unit = max(m.unit, s.Reset)
}

// shows returns what the resets mean by what s shows beside earlier responses.
func (c *Cap) shows(now Time, s *LimitSignal) Resets {
	m := &c.meaning
	slack := max(subSat(now, s.Started), shortest)
	if s.Whole {
		slack = addSat(slack, second)
	}
	if c.gen != 0 && c.kind == capCounter && c.rolled && !c.early && s.Started >= c.begun && s.Mark.Gen == c.gen && s.Limit >= 4 {
		// The reset has passed, and since then this client has taken taken units.
		taken, rest := subSat(s.Mark.Used, c.given), subSat(m.unit, subSat(now, c.begun))
		switch left := addSat(s.Left, taken); {
		case taken > s.Limit/4:
		case left <= s.Limit/2:
			return ResetsUnit
		case max(rest-s.Reset, s.Reset-rest) <= addSat(slack, m.unit/8): // a bucket would be full soon
			return ResetsWindow
		}
	}
	used := subSat(s.Limit, s.Left)
	if used <= 0 || s.Reset <= slack {
		return ResetsUnknown
	}
	seen := subSat(s.Limit, m.seenLeft)
	switch d := subSat(used, seen); {
	case m.seenReset == 0 || seen <= 0:
	case max(d, -d) < max(2, seen/3):
		return ResetsUnknown // too alike to show anything
	default:
		expected, _ := mulDiv(m.seenReset, used, 0, seen)
		off, moved := subSat(s.Reset, expected), subSat(addSat(now, s.Reset), addSat(m.seenAt, m.seenReset))
		change := subSat(expected, m.seenReset)
		if max(off, -off) <= max(max(change, -change)/4, slack) && max(change, -change) > addSat(slack, slack) && max(moved, -moved) > addSat(slack, slack) {
			if m.confirmed++; m.confirmed >= 2 {
				return ResetsFull
			}
		} else {
			m.confirmed = 0
		}
	}
	m.seenLeft, m.seenReset, m.seenAt = s.Left, s.Reset, now
	return ResetsUnknown
}

// countFor returns how the limit of s is counted, and its period.
func (c *Cap) countFor(s *LimitSignal) (kind capKind, per int64) {
	m := &c.meaning
	per = s.Window
	if s.Limit <= 0 {
		return capCounter, per
	}
	switch c.resets {
	case ResetsFull, ResetsUnit:
		if per <= 0 {
			per = c.fillTime(s)
		}
		if per > 0 {
			return capFilling, per
		}
	case ResetsWindow:
		// A short window whose end is known only to the second would be idle for most of it.
		if (s.Reset >= 0 || c.gen != 0 && c.kind == capCounter) && (s.Early || per <= 0 || !s.Whole || per >= 16*second) {
			return capCounter, per
		}
		if per > 0 {
			return capRolling, per
		}
	default:
		if per <= 0 && c.resets == ResetsRolling && s.Resets == ResetsUnknown {
			per = m.unit // no unit takes longer to return
		}
		if per > 0 && s.RuleFills && s.RulePeriod == per && c.resets == ResetsUnknown {
			return capFilling, per
		}
		if per > 0 {
			return capRolling, per
		}
	}
	return capCounter, per
}

// fillTime returns how long it takes until all units of a limit have returned that announces
// no period; zero where that is not known.
func (c *Cap) fillTime(s *LimitSignal) int64 {
	m := &c.meaning
	known := int64(0)
	if c.kind == capFilling {
		known = c.per
	}
	if c.resets == ResetsUnit {
		if m.unit <= 0 {
			return known
		}
		per, _ := mulDiv(m.unit, s.Limit, 0, 1)
		return min(max(per, shortest), longest)
	}
	used := subSat(s.Limit, s.Left)
	if used <= 0 || used > s.Limit || s.Early {
		return known
	}
	// What is left is rounded down, and so it is no more than one unit of which this is the
	// time, and a whole second is rounded either way.
	most, least := s.Reset, s.Reset
	if s.Whole {
		most, least = most+second, least-second
	}
	low, _ := mulDiv(max(0, least), s.Limit, 0, used)
	high := longest
	if used > 1 {
		high, _ = mulDiv(most, s.Limit, 0, used-1)
	}
	if known == 0 {
		known = low
	}
	if known = min(max(known, low), high); known == 0 {
		return 0
	}
	most, _ = mulDiv(m.unit, s.Limit, 0, 1) // no unit takes longer than the longest reset
	return min(max(min(known, most), shortest), longest)
}
