package limiter

import (
	"time"

	"github.com/headway-go/headway/internal/show"
)

// A Reason says what kept a request from starting in time.
type Reason uint8

const (
	// ReasonLimit means that a limit had no room in time.
	ReasonLimit Reason = iota + 1
	// ReasonPause means that a pause, such as that of PauseUntil, held every
	// request.
	ReasonPause
	// ReasonInFlight means that as many requests were in flight as are allowed.
	ReasonInFlight
	// ReasonLineFull means that as many requests were in line as are allowed.
	ReasonLineFull
	// ReasonImpossible means that the cost is more than the limit can ever admit.
	ReasonImpossible
	// ReasonDisabled means that the limit is Blocked.
	ReasonDisabled
	// ReasonStore means that the store of the budgets was down.
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

// A Refusal is the error of a request that was refused immediately, because it
// could not start in time. No units were taken.
type Refusal struct {
	// Reason is what would have held the request the longest.
	Reason Reason
	// RetryAfter is how long the request would have had to wait from now, or Never.
	// With AtLeast it may be zero.
	RetryAfter time.Duration
	// AtLeast reports whether RetryAfter is a lower bound, because the wait depends
	// on responses that have not arrived.
	AtLeast bool
	// Err is context.DeadlineExceeded if the caller's deadline was too short, else
	// nil.
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
		s += "the store of the budgets is down"
	default:
		s += "no reason given"
	}
	switch {
	case r.RetryAfter == Never:
		s += ", now or later"
	case r.AtLeast && r.RetryAfter == 0:
		s += ", and its start cannot be predicted"
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

// Timeout reports whether the caller's deadline was too short. *url.Error and
// net.Error use it.
func (r *Refusal) Timeout() bool { return r.Err != nil }
