package headwaytest

import (
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/headway-go/headway/limiter"
)

// This file counts on its own, by the words in which the laws are promised, and
// shares nothing with the module's own counting: a test must not check code by
// itself.

// A budget is one limit and what has been let in under it.
type budget struct {
	limit limiter.Limit
	law   law
}

// A law says whether units more would keep a promise. fits does not change the
// law and may be asked about any time that is not before the last take; once
// units fit they fit ever after, while nothing is taken.
type law interface {
	fits(at time.Time, units int64) bool
	take(at time.Time, units int64)
}

func newBudget(l limiter.Limit) *budget {
	b := &budget{limit: l}
	switch l.Law {
	case limiter.Bucket:
		b.law = &bucket{limit: l}
	case limiter.Spaced:
		b.law = &spaced{limit: l}
	case limiter.Sliding:
		b.law = &sliding{limit: l}
	case limiter.Calendar:
		b.law = &calendar{limit: l}
	default:
		b.law = &window{limit: l}
	}
	return b
}

// farFuture is when a budget without room has none for ever: no valid limit
// needs so long for a cost that it can admit at all, unless in a bucket or
// spacing of decades, which no test waits for.
const farFuture = 200 * 365 * 24 * time.Hour

// wait returns how long from now units more would fit if nothing else came: the
// first nanosecond, found by halving.
func (b *budget) wait(now time.Time, units int64) time.Duration {
	fits := func(d time.Duration) bool {
		return units == 0 || b.limit.N > 0 && b.law.fits(now.Add(d), units)
	}
	if fits(0) {
		return 0
	}
	if !fits(farFuture) {
		return limiter.Never
	}
	short, long := time.Duration(0), farFuture
	for long-short > 1 {
		if middle := short + (long-short)/2; fits(middle) {
			long = middle
		} else {
			short = middle
		}
	}
	return long
}

func (b *budget) take(now time.Time, units int64) {
	if units > 0 {
		b.law.take(now, units)
	}
}

// A taking is units that were let in together.
type taking struct {
	at    time.Time
	units int64
}

// window: at most N units in any half-open period, so in the one that ends now.
type window struct {
	limit limiter.Limit
	taken []taking // of the last period
}

func (w *window) fits(at time.Time, units int64) bool {
	for _, t := range w.taken {
		if at.Sub(t.at) < w.limit.Per {
			units += t.units
		}
	}
	return units <= w.limit.N
}

func (w *window) take(at time.Time, units int64) {
	w.taken = slices.DeleteFunc(w.taken, func(t taking) bool { return at.Sub(t.at) >= w.limit.Per })
	w.taken = append(w.taken, taking{at, units})
}

// calendar: at most N units in one period of the calendar.
type calendar struct {
	limit limiter.Limit
	now   string // the period of the last taking
	taken int64  // in that period
}

func (c *calendar) fits(at time.Time, units int64) bool {
	if c.period(at) == c.now {
		units += c.taken
	}
	return units <= c.limit.N
}

func (c *calendar) take(at time.Time, units int64) {
	if p := c.period(at); p != c.now {
		c.now, c.taken = p, 0
	}
	c.taken += units
}

// period names the period that holds at. An hour that comes twice, as a clock
// is set back, is two periods.
func (c *calendar) period(at time.Time) string {
	if c.limit.Location == nil {
		at = at.UTC()
	} else {
		at = at.In(c.limit.Location)
	}
	switch c.limit.Unit {
	case limiter.Minute:
		return at.Format("2006-01-02 15:04 -0700")
	case limiter.Hour:
		return at.Format("2006-01-02 15 -0700")
	case limiter.Day:
		return at.Format("2006-01-02")
	case limiter.Week: // one of ISO 8601 begins on Monday
		year, week := at.ISOWeek()
		return fmt.Sprint(year, " ", week)
	}
	return at.Format("2006-01")
}

// sliding: what the window before has let in, weighted by the part of it that
// lies in the last period, and what this one has, are at most N. The first
// window begins with the first taking, and one follows the other.
type sliding struct {
	limit limiter.Limit
	begin time.Time // of the first window; zero before it
	taken []taking  // of this window and the one before
}

// windowAt returns when the window that holds at began.
func (s *sliding) windowAt(at time.Time) time.Time {
	return at.Add(-(at.Sub(s.begin) % s.limit.Per))
}

func (s *sliding) fits(at time.Time, units int64) bool {
	begin := s.windowAt(at)
	var before int64
	for _, t := range s.taken {
		switch age := begin.Sub(t.at); {
		case age <= 0:
			units += t.units
		case age <= s.limit.Per:
			before += t.units
		}
	}
	// before x (Per - passed) / Per + units <= N
	per, passed := int64(s.limit.Per), int64(at.Sub(begin))
	return product(before, per-passed).Cmp(product(s.limit.N-units, per)) <= 0
}

func (s *sliding) take(at time.Time, units int64) {
	if s.begin.IsZero() {
		s.begin = at
	}
	oldest := s.windowAt(at).Add(-s.limit.Per)
	s.taken = slices.DeleteFunc(s.taken, func(t taking) bool { return t.at.Before(oldest) })
	s.taken = append(s.taken, taking{at, units})
}

// The clock of the next two has whole nanoseconds and their slots have not: an
// arrival that reads t came after t-1. It gets the benefit of the doubt, or the
// fractions would add up, and 1001 per millisecond would become 1000.

// bucket: units drip in at N per period until there are Burst, and come out
// whole. It counts in drops, Per to the unit, of which N drip in each
// nanosecond.
type bucket struct {
	limit limiter.Limit
	last  time.Time
	drops *big.Int // at last; nil: full
}

func (b *bucket) at(at time.Time) *big.Int {
	size := b.limit.Burst
	if size == 0 {
		size = b.limit.N
	}
	full := product(size, int64(b.limit.Per))
	full.Add(full, big.NewInt(b.limit.N-1)) // of the present nanosecond
	if b.drops == nil {
		return full
	}
	drops := product(b.limit.N, int64(at.Sub(b.last)))
	if drops.Add(drops, b.drops); drops.Cmp(full) > 0 {
		return full
	}
	return drops
}

func (b *bucket) fits(at time.Time, units int64) bool {
	return b.at(at).Cmp(product(units, int64(b.limit.Per))) >= 0
}

func (b *bucket) take(at time.Time, units int64) {
	drops := b.at(at)
	b.drops = drops.Sub(drops, product(units, int64(b.limit.Per)))
	b.last = at
}

// spaced: after a unit comes none for Per/N. It counts time from the first
// taking in N-ths of a nanosecond, of which Per are between two units.
type spaced struct {
	limit limiter.Limit
	begin time.Time
	free  *big.Int // from when on the next may come; nil: always
}

func (s *spaced) fits(at time.Time, units int64) bool {
	return s.free == nil || product(s.limit.N, int64(at.Sub(s.begin))).Cmp(s.free) >= 0
}

func (s *spaced) take(at time.Time, units int64) {
	if s.free == nil {
		s.begin = at
	}
	from := product(s.limit.N, int64(at.Sub(s.begin)))
	from.Sub(from, big.NewInt(s.limit.N-1)) // the beginning of this nanosecond
	if s.free != nil && s.free.Cmp(from) > 0 {
		from = s.free
	}
	s.free = from.Add(from, product(units, int64(s.limit.Per)))
}

func product(a, b int64) *big.Int {
	return new(big.Int).Mul(big.NewInt(a), big.NewInt(b))
}
