// Package law holds the arithmetic of the limits: for each law, what it
// remembers of one budget, when a cost fits, and what taking it changes. Time
// comes in as an argument; nothing here waits, locks or reads a clock.
//
// # An example
//
// Under each law of 4 units per 8 seconds, six requests of one unit arrive at 0, in a
// minute that ends at 8. They start at the instants that Earliest returns, one after
// the other:
//
//	seconds   0     2     4     6     8     10    12
//	Window    ####                    ##                  a unit returns 8 s after its start
//	Bucket    ####  #     #                               4 to begin with, then one per 2 s
//	Spaced    #     #     #     #     #     #             never two within 2 s
//	Sliding   ####                          #     #       the last 4 count by what of them is within 8 s
//	Calendar  ####                    ##                  the next minute begins
//
// A State answers three questions about this: Earliest, when a cost fits; Remaining, how
// much fits now; Recovered, whether anything is remembered. Take changes it, and never
// refuses: units that do not fit are a debt. So for the Window above, at 3:
//
//	Earliest(3, 3, 1)  = 8     the first of the four units returns
//	Remaining(3)       = 0
//	Take(3, 2)                 a debt: six units count in the period that ends at 3
//	Remaining(3)       = -2
//	Earliest(3, 3, 1)  = 8     at 8 all four of 0 return at once; two of 3 still count
//
// # Planning
//
// A Plan is the starts of the requests that wait for one budget. It finds the earliest
// instant at which a further start delays none of them. Under a Window of 2 per 10 s, of
// which both units were taken at 0, a request C of cost 2 arrives at 1, and D of cost 1
// behind it:
//
//	C  at 10   both units return
//	D  at 20   at 10 there is room for D alone, but C would become impossible
//
// A Plan tries instants on copies of the State, each a sim, and keeps one as a checkpoint,
// so that the next search does not begin at the present; 100,000 starts make a search no
// longer.
//
// # Announcements
//
// What servers announce holds requests up in the same way: a Pace is a pause and the
// gentle restart after it, a Cap is a limit that a server reports. Both are States, so
// that a line plans under them as under any law. Announcements is the list of those that
// one audience has been announced.
//
// # Invariants
//
//   - No law admits more than it promises, for any order of calls: where memory is
//     bounded (the starts of a Window beyond 65,536, the gaps of a bucket), what is
//     forgotten makes units return later, never earlier.
//   - Rates are exact. Instants of buckets are whole nanoseconds and fractions in n-ths of
//     one, so that no rounding adds up over any number of starts.
//   - Sums saturate; none wraps. A debt of any size ages out.
//   - Earliest and simulate change nothing that a later call could notice, but that a
//     first use has happened (Sliding). Calls with an older instant count as of the latest.
//   - A planned start stays possible as long as all units are taken through the plan.
//     Under a strict limit it is a guess, which is too early, never too late, if responses
//     take time.
//   - Forgetting a State that has Recovered makes no difference to any later call.
//   - A State that is written down and read back decides as the one that was not, and its
//     bytes change only together with their version.
//   - Earliest and Take allocate nothing in the long run, and neither does a search.
package law

import (
	"math"
	"time"
)

// Time is an instant: nanoseconds since the epoch that its line has chosen.
// Values from Never on do not come.
type Time = int64

// Never is the instant of what cannot happen.
const Never Time = math.MaxInt64

// Unlimited is what Remaining returns where there is no limit.
const Unlimited = math.MaxInt64

const second = int64(time.Second)

const year = 365 * 24 * time.Hour

// A State is what one law remembers of one budget. It is not safe for
// concurrent use; its owner holds a lock. Instants may repeat or run
// backwards: an older one counts as the latest seen.
//
// Each law is a type in a file of its own, and all that is particular to it is a
// method there. Only planning needs more: see sim.
type State interface {
	// Earliest returns the first instant at or after t at which cost more
	// units fit if nothing else is taken; Never if they never do. atLeast says
	// that it depends on a response still to come: it is right if the response
	// comes at now, and too early if it comes later.
	Earliest(now, t Time, cost int64) (at Time, atLeast bool)
	// Take counts cost units as started at t, whether they fit or not, and
	// reports whether the units wait for Done (a strict law).
	Take(t Time, cost int64) (strict bool)
	// Done reports to a strict law that cost units, whose Take returned true,
	// are no longer in flight. They come back one period later.
	Done(t Time, cost int64)
	// Give takes back cost units that were taken at the instant taken, as far
	// as they still count. Units of a strict law are in flight until their
	// response has come, and count from then on.
	Give(taken Time, cost int64, inFlight bool)
	// Spend counts n units at now. A negative n gives back the oldest units
	// that still count.
	Spend(now Time, n int64)
	// Remaining returns how many units could start at now; negative in debt.
	Remaining(now Time) int64
	// Recovered reports that at now nothing is remembered: the state cannot be
	// told from a new one.
	Recovered(now Time) bool
	// Expires returns an instant from which on the state is recovered if nothing
	// is taken. It is not before now, and late rather than early.
	Expires(now Time) Time
	// Max returns the largest cost that can ever fit: 0 where nothing can.
	Max() int64
	// Clamp is for states whose clock may be set back: what the state remembers of
	// after now has been at now then. How long ago it really was cannot be known;
	// so nothing comes back early, and nothing more than its period late. It
	// returns by how much the state was ahead of the clock, zero for not at all.
	Clamp(now Time) (ahead int64)
	// Latency reports to a strict law how long a response took. Planned starts
	// under such a law are guesses, as if every response came at once: when a Plan
	// asks whether a further start makes one impossible, that one may come later by
	// the latency. Without it, starts planned by guesses would keep out all requests
	// that come after them.
	Latency(d Time)

	// history returns the units that count at now, oldest first, for another
	// law to take over.
	history(now Time) []Entry
	// inherit takes over what old remembers at now, exactly, and reports whether
	// it could: old is of the same law.
	inherit(old State, now Time) bool
	// code writes the state down, or reads it.
	code(c *Codec)

	// due returns the instant as of which units are taken that were due at slot
	// and are taken at now.
	due(slot, now Time) Time
	// reach returns an instant before t: what starts at t, or does not, makes no
	// difference to starts before it; or little enough to hold back there.
	reach(t Time) Time
	// inOrder reports that units are forgotten in the order in which they were
	// taken, at instants that are known when they are.
	inOrder() bool
	// idle reports that nothing is held up from t on. It changes nothing.
	idle(t Time) bool
	// simulate returns a copy to plan with; see Plan.
	simulate(now Time) sim
	// jumps reports that there is simulateAt, which is simulate with all of the plan
	// up to t taken, that is all before the place.
	jumps() bool
	simulateAt(now, t Time, plan *schedule) (sim, place)
}

// Entry is units that count from one instant on.
type Entry struct {
	At   Time
	Cost int64
}

// New returns an empty State for a valid spec. wall is what the wall clock shows
// at the instant 0; only Calendar needs it.
func New(s Spec, wall time.Time) State {
	switch s.Kind {
	case Bucket:
		return newBucket(s.shape())
	case Spaced:
		return newSpaced(s)
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
	if old == nil || st.inherit(old, now) {
		return st
	}
	for _, e := range old.history(now) {
		if st.Take(e.At, e.Cost) {
			st.Done(e.At, e.Cost)
		}
	}
	return st
}

// TakeLate is Take for a waiter that was due at slot and is woken only now. In a
// Bucket or Spaced budget it takes its unit as of its slot, so that late timers
// do not add up; elsewhere the instant itself counts.
func TakeLate(st State, slot, now Time, cost int64) (strict bool) {
	return st.Take(st.due(slot, now), cost)
}

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

// Open returns a State that admits everything and remembers nothing.
func Open() State { return open{} }

type open struct{ common }

func (open) idle(Time) bool { return true }

// common is what laws have in common: the methods of a State that admits everything
// and remembers nothing. Each law embeds it and has its own methods where it does not.
type common struct{}

func (common) Earliest(_, t Time, _ int64) (Time, bool)          { return t, false }
func (common) Take(Time, int64) bool                             { return false }
func (common) Done(Time, int64)                                  {}
func (common) Give(Time, int64, bool)                            {}
func (common) Spend(Time, int64)                                 {}
func (common) Remaining(Time) int64                              { return Unlimited }
func (common) Recovered(Time) bool                               { return true }
func (common) Expires(now Time) Time                             { return now }
func (common) Max() int64                                        { return Unlimited }
func (common) Clamp(Time) int64                                  { return 0 }
func (common) Latency(Time)                                      {}
func (common) history(Time) []Entry                              { return nil }
func (common) inherit(State, Time) bool                          { return false }
func (common) code(*Codec)                                       {}
func (common) due(_, now Time) Time                              { return now }
func (common) reach(t Time) Time                                 { return t }
func (common) inOrder() bool                                     { return true }
func (common) idle(Time) bool                                    { return false }
func (common) simulate(Time) sim                                 { return sim{} }
func (common) jumps() bool                                       { return false }
func (common) simulateAt(Time, Time, *schedule) (s sim, p place) { return s, p }

// responses is what a strict law remembers of the responses to come.
type responses struct {
	strict   bool
	inFlight int64 // units in flight
	latency  Time  // the longest latency of late; see State.Latency
}

// done has cost units no longer in flight.
func (f *responses) done(cost int64) { f.inFlight = max(0, f.inFlight-cost) }

func (f *responses) Latency(d Time) {
	if f.strict {
		f.latency = max(d, f.latency-f.latency/16)
	}
}

// inOrder: a start under a strict law is planned by a guess of when responses come.
func (f *responses) inOrder() bool { return !f.strict }
