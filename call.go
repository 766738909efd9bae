package headway

import (
	"context"
	"time"
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
