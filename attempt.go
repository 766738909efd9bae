package headway

import (
	"context"

	"github.com/headway-go/headway/internal/attempt"
)

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
