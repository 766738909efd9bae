package headway

import (
	"context"
	"time"
)

// A Call overrides, for one request, what its policy says. WithCall puts it into
// the request's context. The zero Call overrides nothing.
type Call struct {
	// Key is whose budget the request uses under the rules that ask for it by
	// FromCallKey.
	Key string
	// Cost is how many units the request takes from every one of Policy.Limits,
	// and under the rules that ask for it by FromCallCost. Zero means 1; a
	// negative cost is an error.
	Cost int64
	// MaxWait takes the place of Policy.MaxWait: how long the request may wait in
	// line. Zero leaves the policy's; NoWait, OneWindow and WaitForever mean what
	// they say, and any other negative value NoWait.
	MaxWait time.Duration
	// Bypass sends the request untouched: it waits for nothing, takes nothing,
	// and is not seen.
	Bypass bool
}

// carried is what a context carries for its requests.
type carried struct {
	Call
	trace *Trace
}

type carriedKey struct{}

func carriedFrom(ctx context.Context) carried {
	if c, ok := ctx.Value(carriedKey{}).(*carried); ok {
		return *c
	}
	return carried{}
}

// WithCall returns a context that carries c to the requests made with it. It
// replaces a Call that ctx already carries, whole: to change one field, start
// from CallFrom(ctx).
func WithCall(ctx context.Context, c Call) context.Context {
	return context.WithValue(ctx, carriedKey{}, &carried{c, carriedFrom(ctx).trace})
}

// CallFrom returns the Call that ctx carries, or the zero Call.
func CallFrom(ctx context.Context) Call { return carriedFrom(ctx).Call }
