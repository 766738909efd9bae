package retry

import (
	"context"
	"io"
	"math"
	"net/http"
	"net/url"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// newEngine returns go-retryablehttp, set up for calls that are under way. It
// keeps the loop: it calls back whether to go on, drains and closes what failed, and
// sends again.
//
// It never sees the caller's request or response: it would read the
// body whole and change the request, and an http.Client below it may follow a
// redirect, or close a response whose Location it cannot read. What it sends and
// gets are stand-ins, and the call in their context knows the real ones. Nor do
// its backoff and its count of retries do: the former runs when the response is
// drained already and has no context, the latter when the call is decided on.
func newEngine() *retryablehttp.Client {
	return &retryablehttp.Client{
		// Neither jar nor timeout, and no CloseIdleConnections: giving up on one
		// request is no reason to close the connections of others.
		HTTPClient: &http.Client{Transport: standIn{}},
		RetryMax:   math.MaxInt,
		CheckRetry: func(ctx context.Context, _ *http.Response, err error) (bool, error) {
			if err != nil {
				return false, err
			}
			return callFrom(ctx).decide(), nil
		},
		Backoff:      func(_, _ time.Duration, _ int, _ *http.Response) time.Duration { return 0 },
		PrepareRetry: func(req *http.Request) error { return callFrom(req.Context()).sleep() },
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
}

type callKey struct{}

func callFrom(ctx context.Context) *call { return ctx.Value(callKey{}).(*call) }

var (
	standInURL    = &url.URL{Scheme: "http", Host: "stand-in.invalid"}
	standInHeader = http.Header{}
)

// loop takes the call through the engine, from its first outcome on.
func (c *call) loop() error {
	req := &http.Request{Method: http.MethodGet, URL: standInURL, Header: standInHeader}
	req = req.WithContext(context.WithValue(c.req.Context(), callKey{}, c))
	_, err := c.t.engine.Do(&retryablehttp.Request{Request: req})
	return err
}

// A standIn is what the engine sends through.
type standIn struct{}

// RoundTrip sends the next attempt of the request's call, if one is due, and
// returns a response with the body of what that came to.
func (standIn) RoundTrip(req *http.Request) (*http.Response, error) {
	c := callFrom(req.Context())
	if c.next != nil {
		c.send()
	}
	resp := &http.Response{StatusCode: http.StatusOK, Header: standInHeader, Body: http.NoBody, Request: req}
	if c.resp != nil && c.resp.Body != nil {
		resp.Body = &draining{body: c.resp.Body}
	}
	return resp, nil
}

// drainFor is how long a response that failed is drained before its connection
// is given up.
const drainFor = 500 * time.Millisecond

// A draining is a body that the engine drains and closes. It bounds the bytes,
// this the time.
type draining struct {
	body  io.ReadCloser
	timer *time.Timer
}

func (d *draining) Read(p []byte) (int, error) {
	if d.timer == nil {
		d.timer = time.AfterFunc(drainFor, func() { d.body.Close() })
	}
	return d.body.Read(p)
}

func (d *draining) Close() error {
	if d.timer != nil {
		d.timer.Stop()
	}
	return d.body.Close()
}
