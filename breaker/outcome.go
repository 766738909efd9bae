package breaker

import "time"

// An Outcome says what the end of a call means for the breaker. The zero
// Outcome, and any value not named here, is Ignored.
type Outcome uint8

const (
	// Ignored says nothing about the health of the service: the call was throttled,
	// refused locally, or canceled by its caller. It makes room for another probe.
	Ignored Outcome = iota
	// Success means that the service is up.
	Success
	// Failure means that the service is down, or as good as down.
	Failure
)

// String returns the outcome's name in lower case.
func (o Outcome) String() string {
	switch o {
	case Success:
		return "success"
	case Failure:
		return "failure"
	default:
		return "ignored"
	}
}

// A Result is how a call ended. The zero Result is an ignored one.
type Result struct {
	// Outcome is what it means for the breaker.
	Outcome Outcome
	// Err is the failure: see Cause. For a Failure only.
	Err error
	// RetryAfter is the Retry-After that came with the failure, if any. If the
	// breaker opens, it stays open for at least that long, even past MaxOpenFor: cap
	// an implausible value first. Zero or less means none. For a Failure only.
	RetryAfter time.Duration
}
