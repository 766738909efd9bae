package breaker

import "time"

// A State is what a breaker does with calls.
type State uint8

const (
	// Closed permits every call.
	Closed State = iota
	// Open refuses every call. It becomes HalfOpen at the first Take after its time
	// is up.
	Open
	// HalfOpen permits a few calls as probes.
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

// A Change is one change of state, as reported to the callback given to New.
type Change struct {
	// From and To are the states before and after.
	From, To State
	// At is when it happened: the time given to the method that caused it.
	At time.Time
	// Delay is how long after At the first probe is possible. For To == Open only.
	Delay time.Duration
	// Err is the failure that opened the breaker, or nil. For To == Open only.
	Err error
}
