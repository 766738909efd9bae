// Package attempt is what the root and package retry share beyond what is exported:
// in a request's context, which attempt of its call the request is, which the root
// reads and package retry writes; and for each attempt how the root has read its
// response.
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
	// Done is false where the Transport has read nothing: the request had no policy
	// or passed it by, its policy does not listen, or there was no response. Then
	// the other fields mean nothing.
	Done   bool
	Signal retryafter.Signal
	// MaxPause is the longest pause that the policy believes; zero: it does not say.
	MaxPause time.Duration
}

// RoundTrip is the RoundTrip of a headway.Transport that leaves in r how it has read
// the response. r is not used once it has returned. The root assigns it.
var RoundTrip func(transport http.RoundTripper, req *http.Request, r *Reading) (*http.Response, error)
