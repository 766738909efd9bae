package retry

import (
	"net"
	"net/http"
	"time"

	"github.com/headway-go/headway/breaker"
	"github.com/headway-go/headway/internal/attempt"
	"github.com/headway-go/headway/internal/awake"
	"github.com/headway-go/headway/internal/fault"
	"github.com/headway-go/headway/internal/inside"
	"github.com/headway-go/headway/internal/peek"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/retryafter"
)

// A call is one request of the caller, from the failure of its first attempt on.
type call struct {
	t         *Transport
	req       *http.Request
	allowance *allowance

	// resp and err are the result of the last attempt that was sent.
	resp *http.Response
	err  error
	n    int // how many attempts were sent before that one

	body    *fault.Body     // watches the body of that attempt; nil: it is not watched
	reading attempt.Reading // how the Transport has read resp
	outcome outcome         // of that attempt
	own     bool            // the package's rules lead to that outcome without Config.Retry

	next *http.Request // the attempt that is due, without its body; nil: none
	wait time.Duration // the time before it
	end  error         // what ended the call while an attempt was due
}

// run retries the request, and returns the final response or error.
func (c *call) run() (*http.Response, error) {
	if c.judge(); c.outcome == final {
		return c.resp, c.err
	}
	if err := c.loop(); err != nil && c.end == nil {
		c.end = err
	}
	if c.end != nil {
		return nil, c.ended()
	}
	return c.resp, c.err
}

func (c *call) ended() *Error {
	e := &Error{Err: c.end, Cause: c.err, Attempts: c.n + 1, MaxElapsed: c.t.config.MaxElapsed}
	if c.resp != nil {
		e.StatusCode, e.Header = c.resp.StatusCode, c.resp.Header
	}
	return e
}

// budget returns the budget of the request's host. Each call looks it up, because
// the host may have been forgotten in between.
func (c *call) budget() *budget { return c.t.budgets.of(c.req.URL) }

// judge determines the outcome of the last attempt. It is called once per attempt.
func (c *call) judge() {
	if c.err == nil {
		c.read()
		c.outcome = ofResponse(c.resp, &c.reading.Signal)
	} else {
		c.outcome = ofError(c.req, c.err, c.body)
	}
	c.own = true
	if c.t.config.Retry == nil || c.err == nil && isRefusalResponse(c.resp) || c.err != nil && isRefusal(c.err) {
		return
	}
	switch c.decision() {
	case Yes:
		c.own, c.outcome = c.outcome == refused, refused
	case No:
		c.own, c.outcome = c.outcome == final, final
	}
}

// decision calls Config.Retry. If that function panics, decision closes the
// response, because no other code can.
func (c *call) decision() Decision {
	over := false
	defer func() {
		if !over && c.resp != nil && c.resp.Body != nil {
			c.resp.Body.Close()
		}
	}()
	d := c.t.config.Retry(c.req, c.resp, c.err)
	over = true
	return d
}

// read reads the last response, unless the Transport has read it. For a 429 whose
// limit may be in the body alone, that includes the first bytes of the body.
func (c *call) read() {
	if c.reading.Done || c.resp.StatusCode < 400 || isRefusalResponse(c.resp) {
		return
	}
	r := retryafter.NewReader(nil, c.req.URL.Host)
	s := &c.reading.Signal
	*s = r.Read(c.resp.StatusCode, c.resp.Header, time.Now())
	if c.resp.StatusCode == http.StatusTooManyRequests && c.resp.Body != nil && c.resp.Body != http.NoBody && inside.NeedsBody(r, c.resp.StatusCode, c.resp.Header) {
		if fromBody, ok := r.ReadBody(c.resp.StatusCode, c.resp.Header, peek.Body(c.req.Context(), c.resp), time.Now()); ok {
			*s = fromBody
		}
	}
}

// serverWait returns how long the server asked to wait, at most the policy's
// MaxPause. The bool is false if the server gave no time.
func (c *call) serverWait() (time.Duration, bool) {
	if c.resp == nil || c.resp.StatusCode < 400 {
		return 0, false
	}
	d, ok := c.reading.Signal.Wait()
	if c.reading.Done && c.reading.MaxPause > 0 {
		d = min(d, c.reading.MaxPause)
	}
	return d, ok
}

// decide reports whether another attempt is due, and prepares it. Every check that
// can rule a retry out comes here, while the response is still open.
func (c *call) decide() bool {
	if c.end != nil {
		return false
	}
	if c.outcome == final {
		if c.own && c.n > 0 && c.err == nil && !isRefusalResponse(c.resp) {
			c.budget().succeeded(c.t.budgets)
		}
		return false
	}
	if c.req.Context().Err() != nil || retriedOutside(c.req) ||
		!rewindable(c.req) || c.outcome == unknown && !repeatable(c.req) {
		return false
	}
	now := time.Now()
	c.prepare()
	delay, err := c.t.next.Delay(c.next)
	if err != nil { // it cannot be sent at all
		if c.resp == nil {
			c.end = err
		}
		return false
	}
	if !c.plan(now, delay) || !c.allowance.take(c.t.config.MaxRetries) {
		return false
	}
	if !c.budget().take(c.t.budgets, now) {
		c.allowance.used.Add(-1)
		return false
	}
	return true
}

// prepare makes the next attempt.
func (c *call) prepare() {
	a := &attempt.Attempt{N: c.n + 1}
	if most := c.t.config.MaxElapsed; most > 0 {
		a.By = c.allowance.began.Add(most)
	}
	c.next = c.req.WithContext(attempt.With(c.req.Context(), a))
}

const (
	// longestPause is the longest Retry-After that is waited for.
	longestPause = 24 * time.Hour
	// sinceResponse is how long ago the Transport may have read the response. Its
	// pause has become shorter by that time.
	sinceResponse = 10 * time.Millisecond
)

// plan sets c.wait, the time before the next attempt. An attempt that entered the
// line now would start after delay. plan reports whether the attempt can start in
// time.
func (c *call) plan(now time.Time, delay time.Duration) bool {
	jitter := c.t.backoff(c.n)
	var floor time.Duration
	// If the Transport holds the attempt until the server's time, the wait is in its
	// line. Otherwise it is here, within the same wait budget.
	if wait, ok := c.serverWait(); ok {
		switch {
		case wait > longestPause:
			return false
		case wait > delay+sinceResponse, wait > delay && !c.paused():
			floor = wait
		case wait > 0:
			jitter = 0
		}
	}
	if c.isOpen() { // the service is down: do not wait for it
		c.wait = 0
		return c.resp == nil // see the end
	}
	left := limiter.Never // until the last instant that is in time
	if deadline, ok := c.req.Context().Deadline(); ok {
		left = deadline.Sub(now) - 1
	}
	if most := c.t.config.MaxElapsed; most > 0 {
		elapsed := c.allowance.began.Add(most).Sub(now)
		left = min(left, elapsed)
		if floor > 0 { // the server has chosen the time, so that a shorter jitter will do
			jitter = max(0, min(jitter, elapsed-floor))
		}
	}
	c.wait = floor + jitter
	if c.wait > left {
		return false
	}
	budget, err := c.t.next.WaitBudget(c.next)
	if err == nil && delay <= left && max(delay-c.wait, floor) <= budget {
		return true
	}
	// The Transport would refuse the attempt. After an error there is no response to
	// return, so the attempt is made at once, for the Transport's own error.
	c.wait = 0
	return c.resp == nil
}

// isOpen reports whether the breaker of the host is open.
func (c *call) isOpen() bool {
	host := c.req.URL.Host
	if c.req.URL.Scheme == "http" && c.req.URL.Port() == "" {
		host = net.JoinHostPort(c.req.URL.Hostname(), "80")
	}
	b, err := c.t.next.Breaker(host)
	return err == nil && b.State() == breaker.Open
}

// paused reports whether the Transport makes the next attempt wait for anything
// but its limits.
func (c *call) paused() bool {
	free := c.next.WithContext(attempt.With(c.req.Context(), &attempt.Attempt{N: c.n + 1, Free: true}))
	delay, err := c.t.next.Delay(free)
	return err == nil && delay > 0
}

// backoff returns a random time to wait before the retry that follows n others.
func (t *Transport) backoff(n int) time.Duration {
	d := t.config.MinBackoff
	for ; n > 0 && d < t.config.MaxBackoff/2; n-- {
		d *= 2
	}
	if n > 0 {
		d = t.config.MaxBackoff
	}
	return t.jitter(d)
}

// sleep waits until the next attempt is due. The error is the context's.
func (c *call) sleep() error {
	if c.wait > 0 {
		awake.Sleep(c.wait, c.req.Context().Done())
	}
	return c.req.Context().Err()
}

// send sends the next attempt.
func (c *call) send() {
	req := c.next
	c.next = nil
	if c.req.Body != nil && c.req.Body != http.NoBody {
		body, err := c.req.GetBody()
		if err != nil {
			c.end = err
			return
		}
		req.Body = body
	}
	c.reading.Done = false
	resp, body, err := c.t.send(req, &c.reading)
	if err != nil && (isRefusal(err) || c.req.Context().Err() != nil) {
		c.end = err
		return
	}
	c.resp, c.err, c.body = resp, err, body
	c.n++
	if resp != nil && resp.Request == req {
		resp.Request = c.req
	}
	c.judge()
}
