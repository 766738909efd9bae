package retryafter

import (
	"math"
	"time"
)

// maxDuration is what a duration saturates at.
const maxDuration = time.Duration(math.MaxInt64)

// maxLimits is how many limits a Signal holds: as many as Kong has windows.
const maxLimits = 6

// A Signal is what one response says. The zero Signal says nothing. It is plain
// data: it may be copied, and is not safe for concurrent modification.
type Signal struct {
	// RetryAfter is how long the server asks to wait, from the moment the response
	// arrived. Zero with HasRetryAfter means that a retry may be immediate. It may
	// be as long as the largest Duration: cap it before use.
	RetryAfter time.Duration
	// HasRetryAfter reports whether RetryAfter is set.
	HasRetryAfter bool
	// Inferred is true if RetryAfter is the reset of the exhausted limit and not an
	// instruction. A reset of zero (in the past, or within this second) means that
	// the server's count contradicts its refusal, not that the next request will be
	// admitted: see [Signal.Wait].
	Inferred bool
	// Hint is what a malformed Retry-After most likely means ("60s", "60 seconds"),
	// or zero. RetryAfter does not include it.
	Hint time.Duration
	// Documented is true if RetryAfter comes from the vendor's documentation and
	// not from the response: a minimum, to be doubled if it was not enough.
	Documented bool
	// Throttled is true if the response refuses the request for exceeding a rate: a
	// 429 or 529; a 503, 420 or 509 with a time to wait; a status that its dialect
	// uses so; or a body that says so. There may be no time to wait.
	Throttled bool
	// NoRetry is true if the server says that a retry cannot succeed: a quota must
	// be paid for, or x-should-retry is false.
	NoRetry bool
	// ShouldRetry is true if the server says that the same request may be sent
	// again, whatever the status: x-should-retry is true. NoRetry takes precedence.
	ShouldRetry bool
	// Scope says which requests RetryAfter holds.
	Scope Scope
	// Resource names the resource that RetryAfter holds, as LimitSignal.Resource does:
	// of the requests of the same identity only those that draw on it. "" if the
	// refusal names none.
	Resource string
	// Dialect is the name of the dialect that was read ("github"), or "".
	Dialect string
	// Malformed names a header that was ignored, but for Hint, because its value
	// was malformed, or is "". If there are several, it is the first by name.
	Malformed string

	limits [maxLimits]LimitSignal
	n      uint8
	stored bool // it may be of a response that a cache has kept; see fromCache
}

// A LimitSignal is one limit that a response announces. A value that is missing is
// zero, and its Has field is false.
type LimitSignal struct {
	// Name is the label of the limit in the response, in lower case if it is part
	// of a header's name: a policy name, a resource, "tokens", "minute". It is ""
	// if there is none.
	Name string
	// Resource names what the limit is of, if it is not of all requests of the same
	// identity: GitHub's "search", Discord's bucket. It is [PerRoute] if the limit is of
	// the endpoint or method that the request was for, and "" if it is the identity's.
	Resource string
	// Limit is the number of units per window, and Remaining how many of them are
	// left. Neither is negative; a fraction is rounded down.
	Limit, Remaining int64
	// Reset is the time until units are replenished: all, or the next one, as Resets
	// says. Window is the period of the limit, if the response states it, or without
	// HasWindow if only the vendor's documentation does: Shopify's buckets leak in 20 s
	// what they hold.
	Reset, Window time.Duration

	// HasLimit, HasRemaining, HasReset and HasWindow report which values the
	// response states: a stated zero is a value, too.
	HasLimit, HasRemaining, HasReset, HasWindow bool

	// OtherUnit is true if the limit counts something other than requests (tokens,
	// points, bytes): Remaining is then not a number of requests.
	OtherUnit bool
	// Coarse is true if the response gives Reset in whole seconds, so that the true end
	// may be up to a second later.
	Coarse bool
	// Resets says what happens at Reset, if the vendor documents it. Without a Reset it is
	// ResetFull if the limit is a bucket that refills steadily in Window, by the vendor's
	// documentation, and else ResetUnknown.
	Resets ResetKind
}

// PerRoute is the Resource of a limit that a server keeps for each endpoint or method
// without naming it in the response: X, Slack. What the request's endpoint is, its
// [RouteDialect] knows.
const PerRoute = "*"

// A ResetKind says what happens at the reset of a limit. Vendors mean different things
// by the same header, and few of them document which.
type ResetKind uint8

const (
	ResetUnknown ResetKind = iota // the vendor does not document it
	ResetWindow                   // the window ends, and all units return at once
	ResetFull                     // a bucket that refills steadily is full again
	ResetUnit                     // the next unit returns
	ResetRolling                  // the oldest request leaves a rolling window: units return one by one
)

// String returns "unknown", "window", "full", "unit" or "rolling".
func (k ResetKind) String() string {
	switch k {
	case ResetWindow:
		return "window"
	case ResetFull:
		return "full"
	case ResetUnit:
		return "unit"
	case ResetRolling:
		return "rolling"
	}
	return "unknown"
}

// A Scope says which requests a RetryAfter holds.
type Scope uint8

const (
	ScopeIdentity Scope = iota // all requests of the same identity, on every path
	ScopeRule                  // only requests under the same rule: an endpoint, a bucket
	ScopeHost                  // all requests to the host: the limit is on an address, not an identity
	ScopeRequest               // this request alone: one object was busy, and no limit was reached
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

// Wait returns how long to wait after a refusal. It returns false if the response
// names no usable time, so that the caller's own backoff applies: it says nothing,
// or only states a reset in the past. Zero and true is an explicit permission to
// retry immediately.
func (s *Signal) Wait() (time.Duration, bool) {
	d, ok := s.RetryAfter, s.HasRetryAfter && !(s.Inferred && s.RetryAfter <= 0)
	if s.Hint > 0 && (!ok || s.Inferred) {
		return max(d, s.Hint), true
	}
	return d, ok
}

// Limits returns the announced limits, in an order that depends only on the
// response. The slice points into s.
func (s *Signal) Limits() []LimitSignal { return s.limits[:s.n] }

// Add adds a limit, for custom dialects. A Signal holds six limits; when it is
// full, the one that binds last is dropped.
func (s *Signal) Add(l LimitSignal) { s.add(&l) }

// add returns the place of the limit that was dropped to make room for l, or -1.
// It is false when l itself was dropped.
func (s *Signal) add(l *LimitSignal) (dropped int, ok bool) {
	dropped = -1
	if s.n == maxLimits {
		dropped = 0
		for i := 1; i < maxLimits; i++ {
			if !bindsBefore(&s.limits[i], &s.limits[dropped]) {
				dropped = i
			}
		}
		if !bindsBefore(l, &s.limits[dropped]) {
			return -1, false
		}
		s.remove(dropped)
	}
	s.limits[s.n] = *l
	s.n++
	return dropped, true
}

// remove drops the i-th limit and keeps the order of the others.
func (s *Signal) remove(i int) {
	copy(s.limits[i:s.n], s.limits[i+1:s.n])
	s.n--
	s.limits[s.n] = LimitSignal{}
}

// Binding returns the limit that binds first: of the exhausted limits, the one with
// the longest reset; else the one with the fewest units left, where requests come
// before other units. It returns false if no limit was announced.
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
