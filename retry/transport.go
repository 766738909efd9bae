package retry

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/internal/attempt"
	"github.com/headway-go/headway/internal/fault"
)

// A Transport is an http.RoundTripper that sends requests through a
// headway.Transport, and retries those that fail if that is safe. It is safe for
// concurrent use, starts no goroutine and needs no closing.
type Transport struct {
	next    *headway.Transport
	config  Config // with its defaults
	budgets *budgets
	engine  *retryablehttp.Client
	jitter  func(time.Duration) time.Duration // returns a random time below its argument
}

// New returns a Transport over next. The error names every mistake in cfg, and a
// nil next.
func New(next *headway.Transport, cfg Config) (*Transport, error) {
	cfg, err := cfg.check()
	if next == nil {
		err = errors.Join(errors.New("retry: the headway.Transport is nil"), err)
	}
	if err != nil {
		return nil, err
	}
	return &Transport{
		next: next, config: cfg, engine: newEngine(),
		budgets: newBudgets(cfg.Budget, cfg.MaxHosts),
		jitter:  rand.N[time.Duration],
	}, nil
}

// NewClient returns an http.Client whose Transport is New(next, cfg), with the error
// of New.
func NewClient(next *headway.Transport, cfg Config) (*http.Client, error) {
	t, err := New(next, cfg)
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: t}, nil
}

// RoundTrip sends the request, retries it if it fails and that is safe, and returns
// the last response or the last error. The package documentation says when, how
// often, and which errors are an *Error.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL == nil {
		return t.next.RoundTrip(req) // which has an error for it
	}
	var began time.Time
	if t.config.MaxElapsed > 0 {
		began = time.Now()
	}
	reading := readings.Get().(*attempt.Reading)
	resp, body, err := t.send(req, reading)
	if err != nil && isRefusal(err) || err == nil && isRefusalResponse(resp) {
		readings.Put(reading)
		return resp, err
	}
	if headway.AttemptFrom(req.Context()) == 0 {
		t.budgets.of(req.URL).first()
	}
	if err == nil && resp.StatusCode < 400 && t.config.Retry == nil {
		readings.Put(reading)
		return resp, nil
	}
	c := call{t: t, req: req, resp: resp, err: err, body: body, reading: *reading}
	readings.Put(reading)
	c.allowance, _ = req.Context().Value(sharedKey{}).(*allowance)
	if c.allowance == nil {
		c.allowance = &allowance{began: began}
	}
	return c.run()
}

// readings are reused, so that a call whose first attempt succeeds does not
// allocate one.
var readings = sync.Pool{New: func() any { return new(attempt.Reading) }}

// send sends one attempt. If its body can be sent again, the returned *fault.Body
// watches the body for errors.
func (t *Transport) send(req *http.Request, reading *attempt.Reading) (*http.Response, *fault.Body, error) {
	sent, body := req, (*fault.Body)(nil)
	if req.GetBody != nil { // else it is not retried anyway
		sent, body = fault.Watch(req)
	}
	resp, err := attempt.RoundTrip(t.next, sent, reading)
	if resp != nil && resp.Request == sent {
		resp.Request = req
	}
	return resp, body, err
}

// CloseIdleConnections closes the idle connections of the headway.Transport.
// Budgets are kept.
func (t *Transport) CloseIdleConnections() { t.next.CloseIdleConnections() }
