package limiter

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/headway-go/headway/internal/law"
)

// Never is the duration of a wait that does not end: the limit is Blocked, or the
// cost is more than the limit can ever admit.
const Never time.Duration = math.MaxInt64

// A Law says how a limit counts. The zero Law is Window.
type Law uint8

const (
	// Window admits at most N units in any half-open period, exact to the
	// nanosecond. It remembers up to 65,536 starts one by one. Beyond that it
	// counts in slices of Per/65,536, and a unit may be returned up to one slice
	// late.
	Window Law = iota
	// Bucket admits N units per period on average, after a burst of at most Burst.
	// Up to N+Burst-1 units may fall into one period.
	Bucket
	// Spaced admits one unit every Per/N, without a burst. A cost of c takes c
	// intervals.
	Spaced
	// Sliding counts in fixed windows, the first of which begins with the first
	// use. It admits while the count of the current window, plus that of the
	// previous one weighted by how much of it lies within the last period, is at
	// most N. It is an estimate that assumes even traffic in the previous window.
	Sliding
	// Calendar admits at most N units in each minute, hour, day, week or month of a
	// time zone. Up to 2N units may pass within one period across a boundary.
	Calendar
)

// String returns the law's name in lower case.
func (l Law) String() string { return law.Kind(l).String() }

// A Unit is the period of a Calendar limit.
type Unit uint8

const (
	// Minute begins with second 0 of the wall clock.
	Minute Unit = iota + 1
	// Hour begins with minute 0 of the wall clock.
	Hour
	// Day begins at local midnight, or at the first instant of the day if a clock
	// change skips midnight.
	Day
	// Week begins on Monday.
	Week
	// Month begins on the first of the month.
	Month
)

// String returns the unit's name in lower case.
func (u Unit) String() string { return law.Unit(u).String() }

// A Limit is at most N units of cost per period, counted by a law. The zero Limit
// is not valid. PerSecond, PerMinute, PerHour, PerDay and Every return common ones.
type Limit struct {
	// N is the number of units per period: 1 to 10^9. To admit nothing, use
	// Blocked.
	N int64
	// Per is the period: 1 ns to 10 years. A Calendar has a Unit instead.
	Per time.Duration
	// Law says how the limit counts. Zero is Window.
	Law Law
	// Burst is the most units that a Bucket can hold, up to 10^9. Zero means N. For
	// a Bucket only.
	Burst int64
	// Strict returns a unit one period after its response arrived (the headers),
	// not one period after its start, so that a server that counts arrivals never
	// sees N+1 of them in a period, however much the network delays. It costs one
	// round trip per period, and at most N units are in flight. A request that ends
	// without a response counts for one period from its end. The promise does not
	// cover such a request, nor a base transport that sends a request twice. For
	// Window and Spaced only.
	Strict bool
	// Unit is the period of a Calendar. For a Calendar only.
	Unit Unit
	// Location is the time zone of a Calendar; nil means UTC. For a Calendar only.
	Location *time.Location
}

// PerSecond returns a Window of n units per second.
func PerSecond(n int64) Limit { return Limit{N: n, Per: time.Second} }

// PerMinute returns a Window of n units per minute.
func PerMinute(n int64) Limit { return Limit{N: n, Per: time.Minute} }

// PerHour returns a Window of n units per hour.
func PerHour(n int64) Limit { return Limit{N: n, Per: time.Hour} }

// PerDay returns a Window of n units in any 24 hours. For a quota that resets at
// midnight, use a Calendar.
func PerDay(n int64) Limit { return Limit{N: n, Per: 24 * time.Hour} }

// Every returns a Spaced limit of one unit per d.
func Every(d time.Duration) Limit { return Limit{N: 1, Per: d, Law: Spaced} }

// Blocked returns the limit that admits nothing: a request with a cost is refused
// immediately, with ReasonDisabled. It is a Window of 0 units per 31 days, the
// longest period of a Calendar: units used before it replaced another limit still
// count when it is replaced in turn.
func Blocked() Limit { return Limit{Per: 31 * 24 * time.Hour} }

// String returns the limit as short text, such as "50/1s" for a Window,
// "bucket 100/1m burst 10", "strict 50/1s", "2500/day America/Los_Angeles" or
// "blocked".
func (l Limit) String() string {
	if l == Blocked() {
		return "blocked"
	}
	return l.spec().String()
}

// Validate returns an error that names every mistake in the limit: the field,
// its value, and what would be valid. New, and headway's constructors, call it.
func (l Limit) Validate() error {
	var errs []error
	for _, p := range l.mistakes() {
		errs = append(errs, fmt.Errorf("limiter: %s", p))
	}
	return errors.Join(errs...)
}

// mistakes returns every mistake in l. The laws can count under an N of 0, but only
// Blocked has one on purpose.
func (l Limit) mistakes() []string {
	bad := l.spec().Validate()
	if l.N == 0 && l != Blocked() && l != (Limit{}) { // of the zero Limit it is enough that it has no period
		bad = append([]string{"N is 0; it must be 1 to 1,000,000,000; to admit nothing, use Blocked()"}, bad...)
	}
	return bad
}

func (l Limit) spec() law.Spec {
	return law.Spec{N: l.N, Per: l.Per, Kind: law.Kind(l.Law), Burst: l.Burst, Strict: l.Strict, Unit: law.Unit(l.Unit), Location: l.Location}
}
