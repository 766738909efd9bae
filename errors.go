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
	// ErrThrottled matches every *ThrottledError with errors.Is.
	ErrThrottled = errors.New("headway: throttled")
	// ErrOpen matches every *OpenError with errors.Is.
	ErrOpen = errors.New("headway: open")
	// ErrKey matches every *KeyError with errors.Is.
	ErrKey = errors.New("headway: no key")
)

// A ThrottledError reports a request that the Transport refused: it could not start
// within its wait budget, before its context's deadline, within the line's cap, or
// ever. It is refused immediately; where only a response can determine the time, it
// is refused at the end of its wait budget. Nothing was sent and nothing taken. The
// embedded Refusal has the reason and the time until the request could have started.
//
// errors.Is(err, context.DeadlineExceeded) and Timeout are true if the deadline was
// too short, and false if only MaxWait or the line's cap was. Both work through the
// *url.Error of an http.Client too.
type ThrottledError struct {
	limiter.Refusal
	// Policy is the name of the policy that refused.
	Policy string
	// Host is the host that the request was for, in its canonical form.
	Host string
	// Rule is the name of the rule that delays the request the longest, or the text of
	// the limit; empty when the reason is not a rule.
	Rule string
	// KeyDigest is the keyed digest of the key whose budget it was; empty when
	// the rule has no key.
	KeyDigest string
	// Store is why Config.Store was down, so that the policy's Store.Down decided; nil
	// where the store decided, and without one.
	Store error
}

// Error names the limit that refused, whose budget it was, and when the request could
// have started.
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

// As lets errors.As find the embedded Refusal, as a *limiter.Refusal.
func (e *ThrottledError) As(target any) bool {
	r, ok := target.(**limiter.Refusal)
	if ok {
		*r = &e.Refusal
	}
	return ok
}

// StatusCode returns 429, the status that a server would have responded with.
func (e *ThrottledError) StatusCode() int { return 429 }

// An OpenError reports a request that the Transport refused because its host is down:
// the breaker is open, or half-open without room for another probe. Requests in line
// are refused at the moment when it opens. Nothing was sent and nothing taken.
type OpenError struct {
	// Policy is the name of the policy whose breaker it is.
	Policy string
	// Host is the host that the request was for, in its canonical form.
	Host string
	// RetryAfter is the time until the host may be probed: the rest of the time that
	// the breaker is open, or, while probes are in flight, the time until the first of
	// them loses its place for want of a result.
	RetryAfter time.Duration
	// Err is the failure that opened the breaker; nil where none was given. It is a
	// copy, since the failure was another request's: its text has at most 500 bytes, and
	// neither the query and user information of URLs nor values that are named like
	// secrets, as in password=…. errors.As finds the network's own errors in it, such as
	// a syscall.Errno or a net.Error, and errors.Is the errors that it wraps, but neither
	// finds a *url.Error.
	Err error
}

// Error names the host that is down, why, and when it may be probed.
func (e *OpenError) Error() string {
	s := fmt.Sprintf("headway: policy %q refused a request to %s: its breaker is open, retry in %v", e.Policy, e.Host, show.Duration(e.RetryAfter))
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Is reports whether target is ErrOpen.
func (e *OpenError) Is(target error) bool { return target == ErrOpen }

// Unwrap returns Err.
func (e *OpenError) Unwrap() error { return e.Err }

// StatusCode returns 503, the status that a server would have responded with.
func (e *OpenError) StatusCode() int { return 503 }

// A refusalError is a *ThrottledError or an *OpenError.
type refusalError interface {
	error
	StatusCode() int
}

// A KeyError reports a request whose key or cost under a rule could not be determined:
// the rule's Key returned an error or an empty key, or its Cost an error or a negative
// cost. Nothing was sent and nothing taken, and a retry fails in the same way.
type KeyError struct {
	// Policy and Rule are the names of the policy and its rule.
	Policy, Rule string
	// Err is the error of Key or Cost, or describes what is wrong with their value.
	Err error
}

// Error names the rule that could not be applied, and why.
func (e *KeyError) Error() string {
	return fmt.Sprintf("headway: policy %q cannot apply rule %q: %v", e.Policy, e.Rule, e.Err)
}

// Is reports whether target is ErrKey.
func (e *KeyError) Is(target error) bool { return target == ErrKey }

// Unwrap returns Err.
func (e *KeyError) Unwrap() error { return e.Err }

// errEmptyKey is the Err of a KeyError when Key returned nothing.
var errEmptyKey = errors.New("the key is empty")
