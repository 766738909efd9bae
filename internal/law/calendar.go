package law

import "time"

// calendar admits at most n units in each period of a calendar. The wall clock
// decides: wall is its reading at the instant 0. Where it is set back, the
// running period goes on until its end comes again.
type calendar struct {
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

// SetWall tells st, where it follows the wall clock, what that clock shows at
// the instant 0; it differs from before when the clock was set.
func SetWall(st State, wall time.Time) {
	if c, ok := st.(*calendar); ok {
		c.wall = wall.Round(0)
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

func (c *calendar) Earliest(t Time, cost int64) (Time, bool) {
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

func (c *calendar) Answered(Time, int64) {}

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

func (c *calendar) inherit(o *calendar, now Time) {
	o.roll(now)
	if c.roll(now); o.used > 0 {
		c.used = o.used
	}
}

func (c *calendar) history(now Time) []Entry {
	if c.Recovered(now) {
		return nil
	}
	return []Entry{{now, c.used}}
}

func (c *calendar) simulate(Time) sim { return sim{kind: simCalendar, calendar: *c} }

// End returns the end of the period of u that holds w in loc.
func (u Unit) End(w time.Time, loc *time.Location) time.Time {
	w = w.In(loc)
	switch u {
	case Minute, Hour:
		// In elapsed time of the present offset: a clock change of whole hours
		// moves no border, and an hour that comes twice is two periods.
		d := time.Minute
		if u == Hour {
			d = time.Hour
		}
		_, offset := w.Zone()
		local := w.Add(time.Duration(offset) * time.Second)
		return w.Add(d - local.Sub(local.Truncate(d)))
	}
	y, m, d := w.Date()
	switch u {
	case Day:
		d++
	case Week:
		d += 7 - (int(w.Weekday())+6)%7
	default:
		m, d = m+1, 1
	}
	return midnight(y, m, d, loc)
}

// midnight returns the first instant of a day. Where a clock change skips
// midnight that is the change itself; where midnight comes twice, the first.
func midnight(y int, m time.Month, d int, loc *time.Location) time.Time {
	day := time.Date(y, m, d, 12, 0, 0, 0, loc)
	t := time.Date(y, m, d, 0, 0, 0, 0, loc)
	if t.Day() != day.Day() { // Date took the offset after the change
		_, t = t.ZoneBounds()
	}
	// The change, if there is one, is at t or within the hours before it.
	if change, _ := t.ZoneBounds(); !change.IsZero() {
		before := change.Add(-1)
		_, o1 := before.Zone()
		_, o2 := t.Zone()
		if first := t.Add(time.Duration(o2-o1) * time.Second); first.Before(change) && o1 > o2 {
			return first
		}
		if change.Before(t) && change.Day() == day.Day() {
			return change
		}
	}
	return t
}
