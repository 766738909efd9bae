package law

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Kind names a law; the order is that of limiter.Law.
type Kind uint8

// The laws.
const (
	Window Kind = iota
	Bucket
	Spaced
	Sliding
	Calendar
)

var kinds = [...]string{"window", "bucket", "spaced", "sliding", "calendar"}

func (k Kind) String() string {
	if int(k) < len(kinds) {
		return kinds[k]
	}
	return "law(" + strconv.Itoa(int(k)) + ")"
}

// Unit is a calendar period; the order is that of limiter.Unit.
type Unit uint8

// The calendar periods.
const (
	Minute Unit = iota + 1
	Hour
	Day
	Week
	Month
)

var units = [...]string{"", "minute", "hour", "day", "week", "month"}

func (u Unit) String() string {
	if u > 0 && int(u) < len(units) {
		return units[u]
	}
	return "unit(" + strconv.Itoa(int(u)) + ")"
}

// Spec is a limit; the fields are those of limiter.Limit.
type Spec struct {
	N        int64
	Per      time.Duration
	Kind     Kind
	Burst    int64
	Strict   bool
	Unit     Unit
	Location *time.Location

	common *shape // of budgets under this limit; nil: each has its own
}

// Shared returns s for many budgets, which then share what they can.
func (s Spec) Shared() Spec {
	s.common = s.shape()
	return s
}

func (s Spec) shape() *shape {
	if s.common != nil {
		return s.common
	}
	shape := newShape(s.rate(), s.burst())
	if s.Kind == Spaced {
		shape.burst, shape.whole = 1, true
	}
	return shape
}

// The largest valid N and Burst, the longest valid Per, and the longest time
// that a Bucket may take to fill, so that instants do not overflow.
const (
	MaxN    = 1_000_000_000
	MaxPer  = 10 * year
	maxFill = 100 * year
)

// Validate returns every mistake in s: the field, its value, what is right.
func (s Spec) Validate() (bad []string) {
	say := func(format string, args ...any) { bad = append(bad, fmt.Sprintf(format, args...)) }
	if s.N < 0 || s.N > MaxN {
		say("N is %d; it must be 1 to 1,000,000,000", s.N)
	}
	if s.Kind > Calendar {
		say("Law is %d; it must be Window, Bucket, Spaced, Sliding or Calendar", s.Kind)
	}
	if s.Kind == Calendar {
		if s.Per != 0 {
			say("Per is %v; a Calendar limit has a Unit and no Per", s.Per)
		}
		if s.Unit < Minute || s.Unit > Month {
			say("Unit is %d; a Calendar limit needs Minute, Hour, Day, Week or Month", s.Unit)
		}
	} else {
		if s.Per <= 0 || s.Per > MaxPer {
			say("Per is %v; it must be 1ns to 10 years (%v)", s.Per, MaxPer)
		}
		if s.Unit != 0 {
			say("Unit is %v; only a Calendar limit has one, use Per", s.Unit)
		}
		if s.Location != nil {
			say("Location is %v; only a Calendar limit has one, leave it nil", s.Location)
		}
	}
	switch {
	case s.Kind != Bucket && s.Burst != 0:
		say("Burst is %d; only a Bucket has one, leave it 0", s.Burst)
	case s.Burst < 0 || s.Burst > MaxN:
		say("Burst is %d; it must be 1 to 1,000,000,000, or 0 for N, since a smaller one admits nothing", s.Burst)
	}
	if len(bad) == 0 && s.Kind == Bucket && s.N > 0 {
		if s.rate().span(s.burst()).ns > int64(maxFill) {
			say("Burst is %d; at this rate it takes more than 100 years to fill, and must be smaller", s.Burst)
		}
	}
	if s.Strict && s.Kind != Window && s.Kind != Spaced {
		say("Strict is true; only Window and Spaced can be strict, not %v", s.Kind)
	}
	return bad
}

// Equal reports whether s and o are the same limit: time zones by their names.
func (s Spec) Equal(o Spec) bool {
	same := s.Location.String() == o.Location.String() // nil is UTC
	s.Location, s.common, o.Location, o.common = nil, nil, nil, nil
	return same && s == o
}

// zone returns the name of the time zone as it is written down, empty for UTC.
func (s Spec) zone() string {
	if s.Location == nil || s.Location == time.UTC {
		return ""
	}
	return s.Location.String()
}

// Reservable reports whether units under s can be reserved, to be taken later: what
// has room now keeps it as long as nothing else is taken.
func (s Spec) Reservable() bool { return s.N > 0 && !s.Strict && s.Kind != Spaced }

// Period returns Per, or the nominal length of a calendar unit.
func (s Spec) Period() time.Duration {
	if s.Kind != Calendar {
		return s.Per
	}
	return [...]time.Duration{0, time.Minute, time.Hour, 24 * time.Hour, 7 * 24 * time.Hour, 31 * 24 * time.Hour}[s.Unit]
}

func (s Spec) rate() rate { return rate{n: s.N, per: int64(s.Per)} }

func (s Spec) burst() int64 {
	if s.Burst == 0 {
		return s.N
	}
	return s.Burst
}

// String returns the limit as short text: "50/1s", "bucket 100/1m burst 10".
func (s Spec) String() string {
	var b strings.Builder
	if s.Strict {
		b.WriteString("strict ")
	}
	if s.Kind != Window && s.Kind != Calendar {
		b.WriteString(s.Kind.String())
		b.WriteByte(' ')
	}
	b.WriteString(strconv.FormatInt(s.N, 10))
	b.WriteByte('/')
	if s.Kind == Calendar {
		b.WriteString(s.Unit.String())
		if zone := s.zone(); zone != "" {
			b.WriteByte(' ')
			b.WriteString(zone)
		}
		return b.String()
	}
	b.WriteString(short(s.Per))
	if s.Kind == Bucket && s.Burst != 0 && s.Burst != s.N {
		b.WriteString(" burst ")
		b.WriteString(strconv.FormatInt(s.Burst, 10))
	}
	return b.String()
}

// short is d.String() without trailing zero units: 1h0m0s is 1h.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
