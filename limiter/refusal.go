package limiter

import (
	"time"

	"github.com/headway-go/headway/internal/show"
)

// A Reason says what a refused request could not wait for.
type Reason uint8

const (
	// ReasonLimit: a limit had no room in time.
	ReasonLimit Reason = iota + 1
	// ReasonPause: PauseUntil holds everybody.
	ReasonPause
	// ReasonInFlight: as many requests as are allowed are in flight.
	ReasonInFlight
	// ReasonLineFull: the line is as long as it may be.
	ReasonLineFull
	// ReasonImpossible: the cost is more than the limit can ever admit.
	ReasonImpossible
	// ReasonDisabled: the limit is Blocked.
	ReasonDisabled
	// ReasonStore: the store that keeps the budgets is away.
	ReasonStore
)

var reasons = [...]string{"", "limit", "pause", "in_flight", "line_full", "impossible", "disabled", "store"}

// String returns the reason as one lower-case word.
func (r Reason) String() string {
	if int(r) < len(reasons) && r > 0 {
		return reasons[r]
	}
	return "unknown"
}

// A Refusal is the error of a request that was told at once that it cannot
// start in time. Nothing was taken.
type Refusal struct {
	// Reason says what held it up the longest.
	Reason Reason
	// RetryAfter is how long from now it would have had to wait; Never when it
	// can never start. With AtLeast it may be 0: so come back with patience.
	RetryAfter time.Duration
	// AtLeast says that RetryAfter is a lower bound: the wait depends on an
	// answer that nobody can foretell.
	AtLeast bool
	// Err is context.DeadlineExceeded when the caller's deadline was too short,
	// else nil.
	Err error
}

// Error says what was refused, why, and when it could have started.
func (r *Refusal) Error() string {
	s := "limiter: refused: "
	switch r.Reason {
	case ReasonLimit:
		s += "the limit has no room yet"
	case ReasonPause:
		s += "paused"
	case ReasonInFlight:
		s += "too many requests are in flight"
	case ReasonLineFull:
		s += "the line is full"
	case ReasonImpossible:
		return s + "the cost is more than the limit can ever admit; lower the cost or raise the limit"
	case ReasonDisabled:
		return s + "the limit is Blocked; replace it to admit requests"
	case ReasonStore:
		s += "the store of the budgets is away"
	default:
		s += "no reason given"
	}
	switch {
	case r.RetryAfter == Never:
		s += ", now or later"
	case r.AtLeast && r.RetryAfter == 0:
		s += ", and nobody can tell when it could start"
	case r.AtLeast:
		s += ", could start in " + show.Duration(r.RetryAfter).String() + " at the earliest"
	default:
		s += ", could start in " + show.Duration(r.RetryAfter).String()
	}
	if r.Err != nil {
		s += ", after the caller's deadline"
	}
	return s
}

// Unwrap returns Err, so that errors.Is(err, context.DeadlineExceeded) holds
// exactly when the caller's deadline was too short.
func (r *Refusal) Unwrap() error { return r.Err }

// Timeout reports whether the caller's deadline was too short, as net.Error
// and *url.Error ask.
func (r *Refusal) Timeout() bool { return r.Err != nil }
