package retryafter

import (
	"math"
	"time"
)

// maxDuration is what a duration saturates at.
const maxDuration = time.Duration(math.MaxInt64)

// maxLimits is how many limits a Signal holds: as many as Kong has windows.
const maxLimits = 6

// Signal is what one response said. The zero Signal says nothing. It is plain
// data: copy it freely, and let one goroutine at a time change it.
type Signal struct {
	// RetryAfter is how long the server asked us to stay away, from the moment
	// the response came. Zero with HasRetryAfter means: come back at once. It may
	// be as long as the largest Duration, so cap it before you believe it.
	RetryAfter time.Duration
	// HasRetryAfter is false when the server asked nothing.
	HasRetryAfter bool
	// Inferred is true when RetryAfter is no instruction, but the reset of the
	// limit that refused. A reset of zero (one that is past, or this very second)
	// says that the server's count and its refusal disagree, not that the next
	// request will be admitted: see [Signal.Wait].
	Inferred bool
	// Hint is the length of time that a malformed Retry-After most likely means
	// ("60s", "60 seconds"), zero where there is none. RetryAfter does not include it.
	Hint time.Duration
	// Documented is true when RetryAfter stands in the vendor's documentation and
	// not in the response: the least wait, to be doubled when it was not enough.
	Documented bool
	// Throttled is true when the response refuses the request for coming too fast
	// or too often: a 429 or 529, a 503, 420 or 509 that says when to come back, a
	// status that its dialect uses so, or a body that says so. It may come without a
	// time.
	Throttled bool
	// NoRetry is true when the server said that a retry cannot succeed: a quota
	// that must be paid for, or x-should-retry: false.
	NoRetry bool
	// ShouldRetry is true when the server said that the same request may be sent
	// again, whatever the status: x-should-retry: true. NoRetry comes before it.
	ShouldRetry bool
	// Scope is whose pause RetryAfter is.
	Scope Scope
	// Dialect names the dialect that was read ("github"), "" when nothing was.
	Dialect string
	// Malformed names a header whose value was malformed and therefore ignored, but
	// for Hint; "" when there was none. Of several it is the first by name.
	Malformed string

	limits [maxLimits]LimitSignal
	n      uint8
}

// LimitSignal is one limit that a response announced. What it did not say is
// zero with its Has field false.
type LimitSignal struct {
	// Name is the label the response itself gives to the limit, in lower case
	// where it stands in a header's name: a policy name, a resource, "tokens",
	// "minute". It is "" where the response gives none.
	Name string
	// Limit is the most units per window, and Remaining what is left of them.
	// Neither is negative; a fraction is rounded down.
	Limit, Remaining int64
	// Reset is the time until units come back (until all have, or the next one:
	// vendors differ), Window the period of the limit where the response states it.
	Reset, Window time.Duration

	// HasLimit and its kin are true when the response said the value: zero is one.
	HasLimit, HasRemaining, HasReset, HasWindow bool

	// OtherUnit is true when something other than requests is counted (tokens,
	// points, bytes), so that Remaining must not be spent as requests.
	OtherUnit bool
}

// Scope says whose pause a response asks for.
type Scope uint8

const (
	ScopeIdentity Scope = iota // the identity that sent the request, over all its paths
	ScopeRule                  // only requests under the same rule: an endpoint, a bucket
	ScopeHost                  // everybody at the host: an address was limited, not a caller
	ScopeRequest               // this request alone: one object was busy, no limit was reached
)

// String returns "identity", "rule", "host" or "request".
func (s Scope) String() string {
	switch s {
	case ScopeRequest:
		return "request"
	case ScopeRule:
		return "rule"
	case ScopeHost:
		return "host"
	}
	return "identity"
}

// Wait returns how long to stay away after a refusal. It is false where the
// response names no usable time, so that the caller's own backoff applies: nothing
// was said, or all that was said is a reset that is over already. Zero and true
// is an explicit instruction to come back at once.
func (s *Signal) Wait() (time.Duration, bool) {
	d, ok := s.RetryAfter, s.HasRetryAfter && !(s.Inferred && s.RetryAfter <= 0)
	if s.Hint > 0 && (!ok || s.Inferred) {
		return max(d, s.Hint), true
	}
	return d, ok
}

// Limits returns the announced limits, in an order that depends only on what
// the response said. The slice points into s.
func (s *Signal) Limits() []LimitSignal { return s.limits[:s.n] }

// Add adds a limit, for dialects made outside this package. A Signal holds
// six; when it is full, the one that binds last is dropped.
func (s *Signal) Add(l LimitSignal) { s.add(l) }

// add returns the place of the limit that was dropped to make room for l, or -1.
// It is false when l itself was dropped.
func (s *Signal) add(l LimitSignal) (dropped int, ok bool) {
	dropped = -1
	if s.n == maxLimits {
		dropped = 0
		for i := 1; i < maxLimits; i++ {
			if !bindsBefore(&s.limits[i], &s.limits[dropped]) {
				dropped = i
			}
		}
		if !bindsBefore(&l, &s.limits[dropped]) {
			return -1, false
		}
		s.remove(dropped)
	}
	s.limits[s.n] = l
	s.n++
	return dropped, true
}

// remove drops the i-th limit and keeps the order of the others.
func (s *Signal) remove(i int) {
	copy(s.limits[i:s.n], s.limits[i+1:s.n])
	s.n--
	s.limits[s.n] = LimitSignal{}
}

// Binding returns the limit that binds first: of those with nothing left the
// one with the longest reset; else the one with fewest units left, requests
// before other units. It is false when no limit was announced.
func (s *Signal) Binding() (LimitSignal, bool) {
	i := s.binding()
	if i < 0 {
		return LimitSignal{}, false
	}
	return s.limits[i], true
}

func (s *Signal) binding() int {
	best := -1
	for i := range s.Limits() {
		if best < 0 || bindsBefore(&s.limits[i], &s.limits[best]) {
			best = i
		}
	}
	return best
}

// exhausted reports whether the response said that nothing is left.
func (l *LimitSignal) exhausted() bool { return l.HasRemaining && l.Remaining <= 0 }

// bindsBefore is the order behind Binding. It is false for equals, so that the
// first of them stays.
func bindsBefore(a, b *LimitSignal) bool {
	if x, y := a.exhausted(), b.exhausted(); x != y {
		return x
	} else if x {
		if x, y := a.reset(), b.reset(); x != y {
			return x > y
		}
		if a.Window != b.Window {
			return a.Window > b.Window // no reset known: the longer window lasts longer
		}
		return !a.OtherUnit && b.OtherUnit
	}
	if a.OtherUnit != b.OtherUnit {
		return b.OtherUnit
	}
	if a.HasRemaining != b.HasRemaining {
		return a.HasRemaining
	}
	if a.HasRemaining && a.Remaining != b.Remaining {
		return a.Remaining < b.Remaining
	}
	if x, y := a.reset(), b.reset(); x != y {
		return x > y
	}
	if a.HasLimit != b.HasLimit {
		return a.HasLimit
	}
	if a.HasLimit && a.Limit != b.Limit {
		return a.Limit < b.Limit
	}
	if a.HasWindow != b.HasWindow {
		return a.HasWindow
	}
	return a.HasWindow && a.Window < b.Window
}

// reset is Reset, or -1 when it is unknown.
func (l *LimitSignal) reset() time.Duration {
	if !l.HasReset {
		return -1
	}
	return l.Reset
}

// ask takes an explicit request to wait: it replaces what was inferred; of two
// the longest counts.
func (s *Signal) ask(d time.Duration) {
	if !s.HasRetryAfter || s.Inferred || d > s.RetryAfter {
		s.RetryAfter, s.HasRetryAfter, s.Inferred = d, true, false
	}
}

// infer takes a reset as the request to wait that the response lacks: the longest
// counts.
func (s *Signal) infer(d time.Duration) {
	if !s.HasRetryAfter || d > s.RetryAfter {
		s.RetryAfter, s.HasRetryAfter, s.Inferred = d, true, true
	}
}

// malformed remembers that the value of the header called name was ignored.
func (s *Signal) malformed(name string) {
	if s.Malformed == "" || name < s.Malformed {
		s.Malformed = name
	}
}
