package breaker

import "time"

// A State is what a breaker does with calls.
type State uint8

const (
	// Closed lets every call pass.
	Closed State = iota
	// Open refuses every call. The first Take after its time is up makes it
	// half-open.
	Open
	// HalfOpen lets a few probes pass.
	HalfOpen
)

// String returns the state's name: "closed", "open" or "half-open".
func (s State) String() string {
	switch s {
	case Closed:
		return "closed"
	case Open:
		return "open"
	case HalfOpen:
		return "half-open"
	default:
		return "unknown"
	}
}

// A Change is one change of state, as New's callback is told of it.
type Change struct {
	// From and To are the states before and after.
	From, To State
	// At is the time at which it happened, as the call that caused it gave it.
	At time.Time
	// Delay is how long after At the first probe is possible. To Open only.
	Delay time.Duration
	// Err is the failure that opened the breaker. To Open only; nil where none
	// was given.
	Err error
}
