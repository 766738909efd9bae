// Package attempt carries, in a request's context, which attempt of its call the
// request is. The root reads it, and package retry writes it.
package attempt

import (
	"context"
	"time"
)

// An Attempt is one of the requests that are sent for one call.
type Attempt struct {
	N  int       // how many were sent before it
	By time.Time // the last instant at which it may start; zero: none
	// Free means that it costs nothing, so that it waits for no limit. It is to
	// ask by, not to send.
	Free bool
}

type key struct{}

// With returns a context that carries a.
func With(ctx context.Context, a *Attempt) context.Context {
	return context.WithValue(ctx, key{}, a)
}

// From returns what ctx carries, or nil.
func From(ctx context.Context) *Attempt {
	a, _ := ctx.Value(key{}).(*Attempt)
	return a
}
