// Package attempt holds what the root and package retry share without exporting it. In a
// request's context, package retry writes which attempt of its call the request is, and
// the root reads it. For each attempt, the root returns how it has read the response.
package attempt

import (
	"context"
	"net/http"
	"time"

	"github.com/headway-go/headway/retryafter"
)

// An Attempt describes one of the requests that are sent for one call.
type Attempt struct {
	N  int       // how many attempts were sent before it
	By time.Time // the last instant at which it may start; zero: none
	// Free means that the attempt costs nothing, so that it waits for no limit. It is
	// only passed to Delay, not sent.
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

// A Reading is how a Transport has read the response to an attempt, under the
// policy of its host.
type Reading struct {
	// Done is false if the Transport has read nothing: the request had no policy or
	// bypassed it, its policy does not listen, or there was no response. The other
	// fields then mean nothing.
	Done   bool
	Signal retryafter.Signal
	// MaxPause is the policy's longest pause; zero: not known.
	MaxPause time.Duration
}

// RoundTrip is the RoundTrip of a headway.Transport, which also writes to r how it has
// read the response. It does not use r after it has returned. The root assigns it.
var RoundTrip func(transport http.RoundTripper, req *http.Request, r *Reading) (*http.Response, error)
