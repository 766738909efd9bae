package headway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/headway-go/headway/internal/fault"
	"github.com/headway-go/headway/internal/roster"
)

// send hands the request to the base transport. Where there is a breaker to report
// to, body observes the request's body; see fault.Watch.
func (t *Transport) send(req *http.Request, g *roster.Gate, body **fault.Body) (*http.Response, error) {
	if g == nil || req.Body == nil {
		return oneOf(t.base.RoundTrip(req))
	}
	sent, b := fault.Watch(req)
	*body = b
	resp, err := oneOf(t.base.RoundTrip(sent))
	if sent != req && resp != nil && resp.Request == sent {
		resp.Request = req
	}
	return resp, err
}

// send is Transport.send, within AttemptTimeout.
func (v *request) send(ctx context.Context) (*http.Response, error) {
	if v.policy.AttemptTimeout == 0 {
		return v.t.send(v.req, v.Gate, &v.body)
	}
	return v.attempt(ctx)
}

// attempt is send under AttemptTimeout, with a copy of the request. The context of the
// copy ends when no response arrives in time; otherwise it ends with the response's
// body, for which v.cancel stays.
func (v *request) attempt(ctx context.Context) (*http.Response, error) {
	late := &attemptTimeout{policy: v.policy.name, host: v.name, after: v.policy.AttemptTimeout}
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(late.after, func() { cancel(late) })
	v.cancel = func() {
		timer.Stop()
		cancel(nil)
	}
	req := v.req.WithContext(ctx)
	resp, err := v.t.send(req, v.Gate, &v.body)
	if !timer.Stop() {
		cancel(late) // the timer's function may not have done it yet
	}
	if context.Cause(ctx) == error(late) {
		if resp != nil && resp.Body != nil {
			resp.Body.Close()
		}
		return nil, late
	}
	if resp != nil && resp.Request == req {
		resp.Request = v.req
	}
	return resp, err
}

// releaseAfter returns what is to be done once the request's body is closed, or nil where it is
// nothing: release, if there is any, and to end the context of AttemptTimeout.
func (v *request) releaseAfter(release func()) func() {
	cancel := v.cancel
	v.cancel = nil
	switch {
	case cancel == nil:
		return release
	case release == nil:
		return cancel
	}
	return func() {
		cancel()
		release()
	}
}

// An attemptTimeout is the error of a request without a response within AttemptTimeout.
// It is a net.Error.
type attemptTimeout struct {
	policy, host string
	after        time.Duration
}

func (e *attemptTimeout) Error() string {
	return fmt.Sprintf("headway: policy %q received no response from %s within its AttemptTimeout of %v", e.policy, e.host, e.after)
}

// Timeout and Temporary make it a net.Error.
func (e *attemptTimeout) Timeout() bool { return true }

func (e *attemptTimeout) Temporary() bool { return true }

// oneOf returns a response or an error, whatever the base transport has
// returned. Of both, the error counts.
func oneOf(resp *http.Response, err error) (*http.Response, error) {
	switch {
	case err == nil && resp != nil:
		return resp, nil
	case err == nil:
		return nil, errors.New("headway: the base transport returned neither a response nor an error")
	case resp != nil && resp.Body != nil:
		resp.Body.Close()
	}
	return nil, err
}
