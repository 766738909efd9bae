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

// newEngine returns a go-retryablehttp client that runs the loop of a call: it
// checks whether another attempt is due, drains and closes the failed response, and
// sends the next attempt.
//
// The client never sees the caller's request or response, for two reasons. It would
// read the whole body and change the request. And its http.Client may follow a
// redirect, or close a response whose Location it cannot parse. It sends stand-ins
// instead; their context holds the call, which has the real request and response.
//
// Its own backoff and its count of retries are switched off. The backoff has no
// context and begins only when the response is drained. The count begins only when
// the retry is decided on.
func newEngine() *retryablehttp.Client {
	return &retryablehttp.Client{
		// standIn has no CloseIdleConnections: the client calls that when it gives up,
		// and would close the connections of other requests.
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

// loop runs the call through the engine, from the outcome of its first attempt on.
func (c *call) loop() error {
	req := &http.Request{Method: http.MethodGet, URL: standInURL, Header: standInHeader}
	req = req.WithContext(context.WithValue(c.req.Context(), callKey{}, c))
	_, err := c.t.engine.Do(&retryablehttp.Request{Request: req})
	return err
}

// A standIn is the base transport of the engine.
type standIn struct{}

// RoundTrip sends the next attempt of the call in the request's context, if one is
// due. The response that it returns is a stand-in with the real body.
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

// drainFor is how long a failed response is drained before it is closed, which
// gives its connection up.
const drainFor = 500 * time.Millisecond

// A draining is a body that the engine drains and closes. The engine bounds the
// bytes, and draining bounds the time.
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
