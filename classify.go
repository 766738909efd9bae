package headway

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/headway-go/headway/breaker"
	"github.com/headway-go/headway/internal/fault"
	"github.com/headway-go/headway/internal/show"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/retryafter"
)

// result returns what the end of a request means for the breaker. signal is what was
// read from the response, and body observes the request's body.
func (p *policy) result(req *http.Request, resp *http.Response, err error, signal *retryafter.Signal, body *fault.Body) breaker.Result {
	if p.Classify == nil && err == nil && resp.StatusCode < 400 && !signal.Throttled {
		return breaker.Result{Outcome: breaker.Success} // nearly all requests
	}
	if err == nil && resp.StatusCode >= 400 && p.unread(resp, signal) {
		*signal = retryafter.Read(resp.StatusCode, resp.Header, time.Now())
	}
	var r breaker.Result
	if p.Classify != nil {
		r.Outcome = p.Classify(req, resp, err)
	} else {
		r.Outcome = classify(req, resp, err, signal, body)
	}
	if r.Outcome == breaker.Failure {
		if r.Err = show.Error(err); err == nil { // a copy, for other requests
			r.Err = statusError(resp.StatusCode)
		}
		r.RetryAfter = min(signal.RetryAfter, p.maxPause())
	}
	return r
}

// unread reports whether signal lacks what the table of Policy.Classify needs: the
// policy does not read responses, or in no dialect that knows Retry-After.
func (p *policy) unread(resp *http.Response, signal *retryafter.Signal) bool {
	return !p.plan.Listens || !signal.HasRetryAfter && resp.Header["Retry-After"] != nil
}

// classify is the table in the documentation of Policy.Classify. req is the caller's
// request.
func classify(req *http.Request, resp *http.Response, err error, signal *retryafter.Signal, body *fault.Body) breaker.Outcome {
	switch {
	case err == nil:
		return classifyStatus(resp.StatusCode, signal)
	case errors.As(err, new(*attemptTimeout)):
		return breaker.Failure
	case req.Context().Err() != nil, errors.Is(err, context.Canceled), isRefusal(err), body.Failed(), fault.OfCaller(req, err):
		return breaker.Ignored
	}
	return breaker.Failure
}

// statusOverloaded is the status of a service that is overloaded by all its callers
// together. No RFC defines it.
const statusOverloaded = 529

func classifyStatus(status int, signal *retryafter.Signal) breaker.Outcome {
	switch {
	case signal.Throttled, status == http.StatusTooManyRequests, status == statusOverloaded:
		return breaker.Ignored
	case status == http.StatusNotImplemented, status == http.StatusHTTPVersionNotSupported:
		return breaker.Success // the service is up
	case status >= 500, status == http.StatusRequestTimeout:
		return breaker.Failure
	}
	return breaker.Success
}

// isRefusal reports whether a limiter or a Transport below refused the request before
// it was sent.
func isRefusal(err error) bool {
	return errors.Is(err, ErrThrottled) || errors.Is(err, ErrOpen) || errors.Is(err, ErrKey) ||
		errors.As(err, new(*limiter.Refusal))
}

// A statusError is the failure of a request that received a response.
type statusError int

func (e statusError) Error() string {
	return "headway: the response was " + statusText(int(e))
}

// StatusCode returns the status of the response.
func (e statusError) StatusCode() int { return int(e) }

// statusText returns a status with its text, if it has one: "529", "503 Service
// Unavailable".
func statusText(status int) string {
	text := strconv.Itoa(status)
	if t := http.StatusText(status); t != "" {
		text += " " + t
	}
	return text
}
