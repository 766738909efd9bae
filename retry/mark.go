package retry

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/headway-go/headway"
)

type idempotentKey struct{}

// Idempotent returns a context whose requests may be repeated, whatever their
// method, even if an earlier attempt may have been processed.
func Idempotent(ctx context.Context) context.Context {
	return context.WithValue(ctx, idempotentKey{}, true)
}

// repeatable reports whether doing req twice is doing it once.
func repeatable(req *http.Request) bool {
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	for _, name := range [...]string{"Idempotency-Key", "X-Idempotency-Key"} {
		if len(req.Header[name]) > 0 {
			return true
		}
	}
	marked, _ := req.Context().Value(idempotentKey{}).(bool)
	return marked
}

// rewindable reports whether the body of req can be had again.
func rewindable(req *http.Request) bool {
	return req.Body == nil || req.Body == http.NoBody || req.GetBody != nil
}

type sharedKey struct{}

// Shared returns a context whose requests share one allowance: together they are
// retried up to Config.MaxRetries times, within Config.MaxElapsed from now. It is
// for code that retries by itself, such as an SDK: with one such context per call,
// its retries and these add up instead of multiplying.
func Shared(ctx context.Context) context.Context {
	return context.WithValue(ctx, sharedKey{}, &allowance{began: time.Now()})
}

// An allowance is how often requests have been retried, together.
type allowance struct {
	began time.Time
	used  atomic.Int64
}

// take takes one of most retries, if there is one left.
func (a *allowance) take(most int) bool {
	if a.used.Add(1) <= int64(most) {
		return true
	}
	a.used.Add(-1)
	return false
}

// retriedOutside reports whether req is already a retry, of a layer above this one.
func retriedOutside(req *http.Request) bool {
	if headway.AttemptFrom(req.Context()) > 0 {
		return true
	}
	// What Stainless makes, as for OpenAI and Anthropic, counts retries from 0.
	if v := req.Header["X-Stainless-Retry-Count"]; len(v) > 0 && v[0] != "0" {
		return true
	}
	// AWS counts attempts from 1: "attempt=2; max=3".
	v := req.Header["Amz-Sdk-Request"]
	return len(v) > 0 && strings.Contains(v[0], "attempt=") && !strings.Contains(v[0]+";", "attempt=1;")
}
