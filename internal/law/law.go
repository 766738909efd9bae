// Package law holds the arithmetic of the limits: for each law, what it
// remembers of one budget, when a cost fits, and what taking it changes. Time
// comes in as an argument; nothing here waits, locks or reads a clock.
package law

import (
	"math"
	"math/bits"
	"time"
)

// Time is an instant: nanoseconds since the epoch that its line has chosen.
// Values from Never on do not come.
type Time = int64

// Never is the instant of what cannot happen.
const Never Time = math.MaxInt64

// Unlimited is what Remaining says where there is no limit.
const Unlimited = math.MaxInt64

// A State is what one law remembers of one budget. It is not safe for
// concurrent use; whoever holds it has a lock. Instants may repeat or run
// backwards: an older one counts as the latest seen.
type State interface {
	// Earliest returns the first instant at or after t at which cost more
	// units fit if nothing else is taken; Never if they never do. atLeast says
	// that it depends on an answer still to come: it is right if the answer
	// comes at now, and too early if it comes later.
	Earliest(now, t Time, cost int64) (at Time, atLeast bool)
	// Take counts cost units as started at t, whether they fit or not, and
	// reports whether the units wait for Answered (a strict law).
	Take(t Time, cost int64) (strict bool)
	// Answered tells a strict law that cost units, whose Take reported true,
	// are no longer in flight. They come back one period later.
	Answered(t Time, cost int64)
	// Give takes back cost units that were taken at the instant taken, as far
	// as they still count. Units of a strict law are in flight until they are
	// answered (flying), and count from then on.
	Give(taken Time, cost int64, flying bool)
	// Spend counts n units at now. A negative n gives back the oldest units
	// that still count.
	Spend(now Time, n int64)
	// Remaining returns how many units could start at now; negative in debt.
	Remaining(now Time) int64
	// Recovered reports that at now nothing is remembered: the state cannot be
	// told from a new one.
	Recovered(now Time) bool

	// history returns the units that count at now, oldest first, for another
	// law to take over.
	history(now Time) []Entry
	// simulate returns a copy to plan with; see Plan.
	simulate(now Time) sim
}

// New returns an empty State for a valid spec. wall is what the wall clock shows
// at the instant 0; only Calendar needs it.
func New(s Spec, wall time.Time) State {
	switch s.Kind {
	case Bucket:
		return newBucket(s.shape())
	case Spaced:
		return &spaced{bucket: *newBucket(s.shape()), strict: s.Strict}
	case Sliding:
		return &sliding{n: s.N, per: int64(s.Per)}
	case Calendar:
		return newCalendar(s, wall)
	default:
		return newWindow(s.shape(), s.Strict)
	}
}

// Convert returns a State for spec that still counts what old remembers at
// now: exactly where the law is the same, else as units started when the old
// law last knew them to count. A nil old is a new budget.
func Convert(old State, s Spec, now Time, wall time.Time) State {
	st := New(s, wall)
	switch o := old.(type) {
	case nil:
		return st
	case *window:
		if w, ok := st.(*window); ok {
			w.inherit(o, now)
			return w
		}
	case *bucket:
		if b, ok := st.(*bucket); ok {
			b.inherit(o, now)
			return b
		}
	case *spaced:
		if b, ok := st.(*spaced); ok {
			b.inherit(o, now)
			return b
		}
	case *sliding:
		if b, ok := st.(*sliding); ok && b.per == o.per {
			b.used, b.start, b.cur, b.prev = o.used, o.start, o.cur, o.prev
			return b
		}
	case *calendar:
		if c, ok := st.(*calendar); ok {
			c.inherit(o, now)
			return c
		}
	}
	for _, e := range old.history(now) {
		if st.Take(e.At, e.Cost) {
			st.Answered(e.At, e.Cost)
		}
	}
	return st
}

// Open returns a State that admits everything and remembers nothing.
func Open() State { return open{} }

type open struct{}

func (open) Earliest(_, t Time, _ int64) (Time, bool) { return t, false }
func (open) Take(Time, int64) bool                    { return false }
func (open) Answered(Time, int64)                     {}
func (open) Give(Time, int64, bool)                   {}
func (open) Spend(Time, int64)                        {}
func (open) Remaining(Time) int64                     { return Unlimited }
func (open) Recovered(Time) bool                      { return true }
func (open) history(Time) []Entry                     { return nil }
func (open) simulate(Time) sim                        { return sim{} }

// Admit takes cost units at now if they fit, and reports whether it did. The law
// is not strict.
func Admit(st State, now Time, cost int64) bool {
	if w, ok := st.(*window); ok { // the default law, without the way through the interface
		w.expire(now)
		if w.sum > w.n-cost {
			return false
		}
		w.push(now, cost)
		return true
	}
	at, _ := st.Earliest(now, now, cost)
	if at > now {
		return false
	}
	st.Take(now, cost)
	return true
}

// Max returns the largest cost that can ever fit: 0 where nothing can, or st is
// nil.
func Max(st State) int64 {
	switch s := st.(type) {
	case nil:
		return 0
	case *bucket:
		if s.n == 0 {
			return 0
		}
		return s.burst
	case *spaced:
		if s.n == 0 {
			return 0
		}
		return MaxN
	case *window:
		return s.n
	case *sliding:
		return s.n
	case *calendar:
		return s.n
	case *Pace:
		return 1
	}
	return Unlimited
}

// Latency tells a strict law how long an answer took. Planned starts under such
// a law are guesses, as if every answer came at once: when a Plan asks whether a
// further start makes one impossible, that one may come later by the latency.
// Without it, those planned by guesses would keep out all who came after them.
func Latency(st State, d Time) {
	switch s := st.(type) {
	case *window:
		if s.strict {
			s.slack = max(d, s.slack-s.slack/16)
		}
	case *spaced:
		s.slack = max(d, s.slack-s.slack/16)
	}
}

// Leasable reports whether units under s can be set aside, to be taken later: what
// has room now keeps it as long as nothing else is taken.
func Leasable(s Spec) bool { return s.N > 0 && !s.Strict && s.Kind != Spaced }

// TakeLate is Take for a waiter that was due at slot and is woken only now. In a
// Bucket or Spaced budget it takes its unit as of its slot, so that late timers
// do not add up; elsewhere the instant itself counts.
func TakeLate(st State, slot, now Time, cost int64) (strict bool) {
	switch s := st.(type) {
	case *bucket:
		now = slot
	case *spaced:
		if !s.strict {
			now = slot
		}
	}
	return st.Take(now, cost)
}

// rate is one unit per per/n nanoseconds, exactly.
type rate struct{ n, per int64 }

// span returns the time of c units in whole nanoseconds and n-ths of one,
// saturating.
func (r rate) span(c int64) (ns, frac int64) {
	hi, lo := bits.Mul64(uint64(c), uint64(r.per))
	if hi >= uint64(r.n) {
		return Never, 0
	}
	q, rem := bits.Div64(hi, lo, uint64(r.n))
	if q > math.MaxInt64 {
		return Never, 0
	}
	return int64(q), int64(rem)
}

// units returns how many units ns nanoseconds give, rounded down, saturating. ns is
// not negative.
func (r rate) units(ns int64) int64 {
	hi, lo := bits.Mul64(uint64(ns), uint64(r.n))
	if hi >= uint64(r.per) {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, uint64(r.per))
	return int64(min(q, math.MaxInt64))
}

// ceilUnits returns how many units ns nanoseconds and frac n-ths take, rounded
// up, saturating. ns is not negative.
func (r rate) ceilUnits(ns, frac int64) int64 {
	hi, lo := bits.Mul64(uint64(ns), uint64(r.n))
	lo, carry := bits.Add64(lo, uint64(frac), 0)
	hi += carry
	if hi >= uint64(r.per) {
		return math.MaxInt64
	}
	q, rem := bits.Div64(hi, lo, uint64(r.per))
	if rem > 0 {
		q++
	}
	if q > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(q)
}

// before reports whether r's interval is the shorter.
func (r rate) before(o rate) bool {
	h1, l1 := bits.Mul64(uint64(r.per), uint64(o.n))
	h2, l2 := bits.Mul64(uint64(o.per), uint64(r.n))
	return h1 < h2 || h1 == h2 && l1 < l2
}

func addSat(a, b int64) int64 {
	c := a + b
	switch {
	case a > 0 && b > 0 && c < 0:
		return math.MaxInt64
	case a < 0 && b < 0 && c >= 0:
		return math.MinInt64
	}
	return c
}

func subSat(a, b int64) int64 {
	if b == math.MinInt64 {
		return addSat(addSat(a, math.MaxInt64), 1)
	}
	return addSat(a, -b)
}

const year = 365 * 24 * time.Hour
