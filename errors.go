package headway

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/headway-go/headway/internal/show"
	"github.com/headway-go/headway/limiter"
)

var (
	// ErrThrottled is what errors.Is finds in every *ThrottledError.
	ErrThrottled = errors.New("headway: throttled")
	// ErrOpen is what errors.Is finds in every *OpenError.
	ErrOpen = errors.New("headway: open")
	// ErrKey is what errors.Is finds in every *KeyError.
	ErrKey = errors.New("headway: no key")
)

// A ThrottledError says that a request was refused on this side: it could not
// start within its wait budget, before its context's deadline, within the line's
// cap, or ever. That was said at once, unless only an answer could tell; then it
// waited as long as its budget was. Nothing was sent and nothing taken. The embedded
// Refusal has the reason and the time until it could have started.
//
// errors.Is(err, context.DeadlineExceeded) and Timeout hold when the deadline
// was too short, and do not when only MaxWait or the line's cap was. Both work
// through the *url.Error of an http.Client too.
type ThrottledError struct {
	limiter.Refusal
	// Policy is the name of the policy that refused.
	Policy string
	// Host is the host that the request was for, in its canonical form.
	Host string
	// Rule is the name of the rule that held the request up the longest, or the
	// text of the limit; empty when it was no rule's doing.
	Rule string
	// KeyDigest is the keyed digest of the key whose budget it was; empty when
	// the rule has no key.
	KeyDigest string
	// Store is why Config.Store could not be asked, so that the policy's Store.Down
	// decided; nil where the store decided, and without one.
	Store error
}

// Error says which limit refused, whose budget it was, and when the request
// could have started.
func (e *ThrottledError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "headway: policy %q throttled a request to %s", e.Policy, e.Host)
	if e.Rule != "" {
		fmt.Fprintf(&b, " by rule %q", e.Rule)
	}
	if e.KeyDigest != "" {
		fmt.Fprintf(&b, " for key %s", e.KeyDigest)
	}
	b.WriteString(": ")
	b.WriteString(strings.TrimPrefix(e.Refusal.Error(), "limiter: refused: "))
	if e.Store != nil {
		fmt.Fprintf(&b, " (without the store: %v)", e.Store)
	}
	return b.String()
}

// Is reports whether target is ErrThrottled.
func (e *ThrottledError) Is(target error) bool { return target == ErrThrottled }

// As gives errors.As the embedded Refusal, as a *limiter.Refusal.
func (e *ThrottledError) As(target any) bool {
	r, ok := target.(**limiter.Refusal)
	if ok {
		*r = &e.Refusal
	}
	return ok
}

// StatusCode returns 429, the status that a server would have answered with.
func (e *ThrottledError) StatusCode() int { return 429 }

// An OpenError says that a request was refused on this side because its host is
// down: the breaker of the policy is open, or half-open without room for one more
// probe. Whoever stood in line when it opened was told at that moment. Nothing
// was sent and nothing taken.
type OpenError struct {
	// Policy is the name of the policy whose breaker it is.
	Policy string
	// Host is the host that the request was for, in its canonical form.
	Host string
	// RetryAfter is the time until the host may be probed: the rest of the time
	// that the breaker is open, or, when there are probes, the time until one
	// that is never heard of gives its place up.
	RetryAfter time.Duration
	// Err is the failure that opened the breaker; nil where none was given. It is
	// another request's, so that it is not the error itself: its text has no query
	// and no user information of a URL, no value that is named like a secret, as in
	// password=…, and at most 500 bytes; errors.As finds the
	// network's own errors within it, such as a syscall.Errno or a net.Error, and
	// errors.Is those that it is compared with, but no *url.Error.
	Err error
}

// Error says which host is down, why, and when it may be probed.
func (e *OpenError) Error() string {
	s := fmt.Sprintf("headway: policy %q leaves %s alone: its breaker is open, try in %v", e.Policy, e.Host, show.Duration(e.RetryAfter))
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Is reports whether target is ErrOpen.
func (e *OpenError) Is(target error) bool { return target == ErrOpen }

// Unwrap returns Err.
func (e *OpenError) Unwrap() error { return e.Err }

// StatusCode returns 503, the status that a server would have answered with.
func (e *OpenError) StatusCode() int { return 503 }

// A refusalError is a *ThrottledError or an *OpenError.
type refusalError interface {
	error
	StatusCode() int
}

// A KeyError says that a rule could not tell whose budget a request uses, or
// how much of it: the rule's Key returned an error or an empty key, or its Cost
// an error or a negative cost. Nothing was sent and nothing taken, and trying
// again does not help.
type KeyError struct {
	// Policy and Rule are the names of the policy and its rule.
	Policy, Rule string
	// Err is what Key or Cost returned, or says what was wrong with it.
	Err error
}

// Error says which rule could not be applied, and why.
func (e *KeyError) Error() string {
	return fmt.Sprintf("headway: policy %q cannot apply rule %q: %v", e.Policy, e.Rule, e.Err)
}

// Is reports whether target is ErrKey.
func (e *KeyError) Is(target error) bool { return target == ErrKey }

// Unwrap returns Err.
func (e *KeyError) Unwrap() error { return e.Err }

// errEmptyKey is the Err of a KeyError when Key returned nothing.
var errEmptyKey = errors.New("the key is empty")
