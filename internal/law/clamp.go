package law

// Clamp is for states whose clock may be set back: what st remembers of after now
// has been at now then. How long ago it really was nobody knows; so nothing comes
// back early, and nothing more than its period late. It returns by how much st was
// ahead of the clock, zero for not at all.
func Clamp(st State, now Time) (ahead int64) {
	switch s := st.(type) {
	case *window:
		return s.clamp(now)
	case *bucket:
		return s.clamp(now)
	case *spaced:
		return s.bucket.clamp(now)
	case *sliding:
		if s.used && s.start > now {
			ahead = subSat(s.start, now)
			s.start = now
		}
	case *calendar:
		return s.clamp(now)
	case *Pace:
		if ahead = subSat(s.raised, now); ahead > 0 {
			s.end, s.raised = back(s.end, ahead), now
		}
	case *Cap:
		return s.clamp(now)
	}
	return max(0, ahead)
}

// back returns the instant that lies d before t. One that stands for never, or
// always, stays.
func back(t Time, d int64) Time {
	if t == Never || t <= -Never {
		return t
	}
	return subSat(t, d)
}

func (w *window) clamp(now Time) int64 {
	latest := now
	if w.len >= exact {
		latest = w.slice(now)
	}
	if w.len == 0 || w.last() <= latest {
		return 0
	}
	ahead, cost := subSat(w.last(), now), int64(0)
	for w.len > 0 && w.last() > latest {
		cost += w.at(w.len - 1).Cost
		w.len--
	}
	w.sum -= cost
	w.add(now, cost)
	return ahead
}

// clamp moves all by as much as the latest start is ahead: a debt may be full far
// ahead by right.
func (b *bucket) clamp(now Time) int64 {
	latest := b.since
	if b.gaps != nil && b.gaps.len > 0 {
		latest = max(latest, b.gaps.list[b.gaps.len-1].at)
	}
	ahead := subSat(latest, now)
	if ahead <= 0 {
		return 0
	}
	b.full, b.since = back(b.full, ahead), back(b.since, ahead)
	if b.gaps != nil {
		for i := range b.gaps.len {
			g := &b.gaps.list[i]
			g.at = back(g.at, ahead)
		}
	}
	return ahead
}

// clamp ends a period that has not begun yet with the one that now is in, whose
// units they are then. One that begins within the next moment may stay: clocks
// that agree differ by as much.
func (c *calendar) clamp(now Time) int64 {
	w := c.clock(now)
	if !w.Before(c.end) {
		return 0
	}
	end := c.unit.End(w, c.loc)
	if !end.Before(c.end) || end.Sub(w) <= some {
		return 0
	}
	ahead := int64(c.end.Sub(end))
	c.end = end
	return ahead
}

func (c *Cap) clamp(now Time) int64 {
	ahead := subSat(max(c.told, c.last, c.begun, c.since), now)
	if ahead > 0 {
		for _, t := range []*Time{&c.end, &c.begun, &c.keep, &c.last, &c.told, &c.since, &c.heard} {
			*t = back(*t, ahead)
		}
	}
	c.heard = min(c.heard, now)
	return max(0, ahead)
}
