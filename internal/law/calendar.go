package law

import "time"

// calendar admits at most n units in each period of a calendar. The wall clock
// decides: wall is its reading at the instant 0. Where it is set back within a
// period, that goes on until its end comes; where it is set back before it, see
// Clamp.
type calendar struct {
	common
	n    int64
	unit Unit
	loc  *time.Location
	wall time.Time
	used int64
	end  time.Time // of the period that used counts; zero before the first
}

func newCalendar(s Spec, wall time.Time) *calendar {
	c := &calendar{n: s.N, unit: s.Unit, loc: s.Location, wall: wall.Round(0)}
	if c.loc == nil {
		c.loc = time.UTC
	}
	return c
}

// IsCalendar reports whether st follows the wall clock.
func IsCalendar(st State) bool {
	_, ok := st.(*calendar)
	return ok
}

// skew is by how much clocks that agree may differ.
const skew = 10 * time.Millisecond

// SetWall sets, where st follows the wall clock, what that clock shows at
// the instant 0. It differs from before when the clock was set, before now.
func SetWall(st State, wall time.Time, now Time) {
	c, ok := st.(*calendar)
	if !ok {
		return
	}
	// The wall clock drifts against the other, and the two are never read at
	// quite the same instant: at every look it seems to be a little ahead or
	// behind. Plans must not move by that. So it may be ahead by some
	// milliseconds, which makes periods begin that much late, and where it falls
	// behind it is given room for the next time; periods never begin early.
	switch ahead := wall.Sub(c.wall); {
	case ahead < 0 && ahead > -skew:
		c.wall = wall.Round(0).Add(-skew / 2)
	case ahead < 0, ahead > skew:
		c.wall = wall.Round(0)
		c.Clamp(now)
	}
}

func (c *calendar) clock(t Time) time.Time { return c.wall.Add(time.Duration(t)) }

func (c *calendar) instant(w time.Time) Time { return int64(w.Sub(c.wall)) }

// roll moves on to the period that holds t.
func (c *calendar) roll(t Time) {
	if w := c.clock(t); !w.Before(c.end) {
		c.used, c.end = 0, c.unit.End(w, c.loc)
	}
}

func (c *calendar) Earliest(_, t Time, cost int64) (Time, bool) {
	if cost > c.n {
		return Never, false
	}
	w := c.clock(t)
	if !w.Before(c.end) || c.used <= c.n-cost {
		return t, false
	}
	return max(t, c.instant(c.end)), false
}

func (c *calendar) Take(t Time, cost int64) bool {
	c.roll(t)
	c.used = addSat(c.used, cost)
	return false
}

func (c *calendar) Give(taken Time, cost int64, _ bool) {
	if c.unit.End(c.clock(taken), c.loc).Equal(c.end) {
		c.used = max(0, c.used-cost)
	}
}

func (c *calendar) Spend(now Time, n int64) {
	c.roll(now)
	c.used = max(0, addSat(c.used, n))
}

func (c *calendar) Remaining(now Time) int64 {
	c.roll(now)
	return subSat(c.n, c.used)
}

func (c *calendar) Recovered(now Time) bool {
	c.roll(now)
	return c.used == 0
}

func (c *calendar) Expires(now Time) Time {
	if c.used > 0 {
		return max(now, c.instant(c.end))
	}
	return now
}

func (c *calendar) Max() int64 { return c.n }

// Clamp ends a period that has not begun yet with the one that now is in, whose
// units they are then. A period that begins within the next moment may stay: clocks
// that agree differ by as much.
func (c *calendar) Clamp(now Time) int64 {
	w := c.clock(now)
	if !w.Before(c.end) {
		return 0
	}
	end := c.unit.End(w, c.loc)
	if !end.Before(c.end) || end.Sub(w) <= skew {
		return 0
	}
	ahead := int64(c.end.Sub(end))
	c.end = end
	return ahead
}

func (c *calendar) inherit(old State, now Time) bool {
	o, ok := old.(*calendar)
	if !ok {
		return false
	}
	o.roll(now)
	if c.roll(now); o.used > 0 {
		c.used = o.used
	}
	return true
}

func (c *calendar) code(d *Codec) {
	end := int64(c.end.Sub(c.wall))
	if d.Ints(&c.used, &end); d.reading {
		c.end = c.wall.Add(time.Duration(end))
	}
}

func (c *calendar) history(now Time) []Entry {
	if c.Recovered(now) {
		return nil
	}
	return []Entry{{now, c.used}}
}

func (c *calendar) simulate(Time) sim { return sim{kind: simCalendar, calendar: *c} }

// End returns the end of the period of u that holds w in loc. It is after w.
func (u Unit) End(w time.Time, loc *time.Location) time.Time {
	w = w.In(loc)
	switch u {
	case Minute:
		return endOf(time.Minute, w)
	case Hour:
		return endOf(time.Hour, w)
	}
	day := latest(w)
	switch u {
	case Day:
		day = day.AddDate(0, 0, 1)
	case Week:
		day = day.AddDate(0, 0, 7-(int(day.Weekday())+6)%7)
	default:
		day = day.AddDate(0, 1, 1-day.Day())
	}
	return begin(day, w)
}

// endOf returns the end of w's minute or hour in elapsed time: a clock change of
// whole minutes or hours moves no border, and an hour that comes twice is two
// periods. Any other change begins a period.
func endOf(d time.Duration, w time.Time) time.Time {
	local := shown(w)
	end := w.Add(d - local.Sub(local.Truncate(d)))
	if change, ok := nextChange(w); ok && change.Before(end) && shown(change).Sub(shown(w))%d != change.Sub(w)%d {
		return change
	}
	return end
}

// latest returns the latest day that the clock has shown in the days before w: a
// day that had begun goes on when the clock is set back before it.
func latest(w time.Time) time.Time {
	day := shown(w).Truncate(24 * time.Hour)
	for at := w; ; {
		change, _ := at.ZoneBounds()
		if change.IsZero() || change.After(at) || w.Sub(change) > 48*time.Hour {
			return day
		}
		at = change.Add(-1) // earlier each time, and by not more than two days
		if before := shown(at).Truncate(24 * time.Hour); before.After(day) {
			day = before
		}
	}
}

// shown returns what the clock shows at t, as if it were UTC.
func shown(t time.Time) time.Time {
	_, offset := t.Zone()
	return t.Add(time.Duration(offset) * time.Second).UTC()
}

// begin returns the first instant after w at which the clock of w's zone shows
// day, or more where a change skips its midnight.
func begin(day, w time.Time) time.Time {
	for {
		_, offset := w.Zone()
		at := day.Add(-time.Duration(offset) * time.Second)
		if at.Before(w) {
			at = w
		}
		change, ok := nextChange(w)
		if !ok || at.Before(change) {
			return at
		}
		w = change
	}
}

// nextChange returns an instant after w, in w's zone, before which its clock does
// not change, and false where it never does again.
//
// By what ZoneBounds says alone there is no progress: where a rule continues a
// zone's table, each year ends after 365 days for it, which on the last day of a
// leap year (in UTC) has passed. Then the offset holds until the year is over.
func nextChange(w time.Time) (time.Time, bool) {
	_, change := w.ZoneBounds()
	switch {
	case change.IsZero():
		return change, false
	case change.After(w):
		return change, true
	}
	return w.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour).In(w.Location()), true
}
