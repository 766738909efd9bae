package headway

import (
	"context"
	"time"

	"github.com/headway-go/headway/internal/attempt"
)

// A Call overrides parts of the policy for one request. WithCall puts it into the
// request's context. The zero Call overrides nothing.
type Call struct {
	// Key is the key of the request under the rules whose Key is FromCallKey.
	Key string
	// Cost is how many units the request takes from each of Policy.Limits, and
	// under the rules whose Cost is FromCallCost. Zero means 1; a negative cost is
	// an error.
	Cost int64
	// MaxWait replaces Policy.MaxWait: how long the request may wait in line. Zero
	// keeps the policy's. NoWait, OneWindow and WaitForever are possible too; any
	// other negative value means NoWait.
	MaxWait time.Duration
	// Bypass sends the request untouched: it waits for nothing, takes nothing, and
	// causes no event.
	Bypass bool
}

// carried is what a context carries for its requests.
type carried struct {
	Call
	trace *Trace
}

type carriedKey struct{}

// carriedFrom returns what ctx carries, or nil. The caller only reads it.
func carriedFrom(ctx context.Context) *carried {
	c, _ := ctx.Value(carriedKey{}).(*carried)
	return c
}

// WithCall returns a context that carries c to the requests made with it. It
// replaces the whole Call that ctx already carries: to change one field, start
// from CallFrom(ctx).
func WithCall(ctx context.Context, c Call) context.Context {
	next := &carried{Call: c}
	if before := carriedFrom(ctx); before != nil {
		next.trace = before.trace
	}
	return context.WithValue(ctx, carriedKey{}, next)
}

// CallFrom returns the Call that ctx carries, or the zero Call.
func CallFrom(ctx context.Context) Call {
	if c := carriedFrom(ctx); c != nil {
		return c.Call
	}
	return Call{}
}

// WithAttempt returns a context whose requests are attempt n of one call: 0 for
// the first, 1 for its first retry. Package retry does this by itself; it is for
// other retry loops, so that Rule.FirstAttemptOnly and the events know of them. A
// negative n counts as 0.
func WithAttempt(ctx context.Context, n int) context.Context {
	return attempt.With(ctx, &attempt.Attempt{N: max(n, 0)})
}

// AttemptFrom returns which attempt of its call a request with ctx is: 0 for the
// first, and for a context without a number.
func AttemptFrom(ctx context.Context) int {
	if a := attempt.From(ctx); a != nil {
		return a.N
	}
	return 0
}
