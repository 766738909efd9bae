package breaker

import "time"

// An Outcome says what the end of a call means for the breaker. The zero
// Outcome is Ignored; so is any value not named here.
type Outcome uint8

const (
	// Ignored says nothing about the service: it was throttled, refused on this
	// side, or given up by its caller. It frees the place of a probe.
	Ignored Outcome = iota
	// Success: the service is up.
	Success
	// Failure: the service is down, or as good as down.
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
	// Err is the failure; Cause returns that of the last failure before the
	// breaker opened. Failure only.
	Err error
	// RetryAfter is how long from now the service asked to be left alone. Should
	// the breaker open, it stays open until then at least, even past MaxOpenFor:
	// what is not to be believed must be cut before. Zero or less: it did not
	// ask. Failure only.
	RetryAfter time.Duration
}
