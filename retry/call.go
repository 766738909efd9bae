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

// A call is a request on its way, from when its first attempt has failed.
type call struct {
	t         *Transport
	req       *http.Request
	allowance *allowance

	// resp and err are what the last attempt that was sent has come to.
	resp *http.Response
	err  error
	n    int // how many were sent before it

	body  *fault.Body     // what followed the body of that attempt; nil: nothing
	heard attempt.Reading // how the Transport has read resp
	came  outcome         // what that attempt has come to
	own   bool            // and that it is so is not Config.Retry's decision

	next *http.Request // the attempt that is due, without its body; nil: none
	wait time.Duration // the time before it
	end  error         // what ended the call while an attempt was due
}

// run retries, and returns what comes of it.
func (c *call) run() (*http.Response, error) {
	if c.judge(); c.came == final {
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

// budget returns that of the host. It may be forgotten between two looks.
func (c *call) budget() *budget { return c.t.budgets.of(c.req.URL) }

// judge finds out what the last attempt has come to. It is called once for each.
func (c *call) judge() {
	if c.err == nil {
		c.read()
		c.came = ofResponse(c.resp, &c.heard.Signal)
	} else {
		c.came = ofError(c.req, c.err, c.body)
	}
	c.own = true
	if c.t.config.Retry == nil || c.err == nil && answeredHere(c.resp) || c.err != nil && refusedHere(c.err) {
		return
	}
	switch c.decision() {
	case Yes:
		c.own, c.came = c.came == refused, refused
	case No:
		c.own, c.came = c.came == final, final
	}
}

// decision asks Config.Retry. If that panics, no other code can close the response.
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

// read reads the last response, if the Transport has not: for a 429 including the
// first bytes of its body, if only they may reveal the limit.
func (c *call) read() {
	if c.heard.Done || c.resp.StatusCode < 400 || answeredHere(c.resp) {
		return
	}
	r := retryafter.NewReader(nil, c.req.URL.Host)
	s := &c.heard.Signal
	*s = r.Read(c.resp.StatusCode, c.resp.Header, time.Now())
	if c.resp.StatusCode == http.StatusTooManyRequests && c.resp.Body != nil && c.resp.Body != http.NoBody && inside.NeedsBody(r, c.resp.StatusCode, c.resp.Header) {
		if told, ok := r.ReadBody(c.resp.StatusCode, c.resp.Header, peek.Body(c.req.Context(), c.resp), time.Now()); ok {
			*s = told
		}
	}
}

// asked returns how long the server asked to wait, as far as the Transport's policy
// believes it.
func (c *call) asked() (time.Duration, bool) {
	if c.resp == nil || c.resp.StatusCode < 400 {
		return 0, false
	}
	d, ok := c.heard.Signal.Wait()
	if c.heard.Done && c.heard.MaxPause > 0 {
		d = min(d, c.heard.MaxPause)
	}
	return d, ok
}

// decide reports whether another attempt is due, and prepares it. Everything
// that can be known to stand against it is asked here, while the response is
// whole.
func (c *call) decide() bool {
	if c.end != nil {
		return false
	}
	if c.came == final {
		if c.own && c.n > 0 && c.err == nil && !answeredHere(c.resp) {
			c.budget().succeeded(c.t.budgets)
		}
		return false
	}
	if c.req.Context().Err() != nil || retriedOutside(c.req) ||
		!rewindable(c.req) || c.came == unknown && !repeatable(c.req) {
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
	// longestPause is the longest time of a server that is believed.
	longestPause = 24 * time.Hour
	// sinceAnswer is how long ago the Transport may have read what is read here
	// again: by so much its pause may seem shorter.
	sinceAnswer = 10 * time.Millisecond
)

// plan sets the time before the next attempt, which would be in line for delay
// if it came now. It reports whether it can start in time.
func (c *call) plan(now time.Time, delay time.Duration) bool {
	jitter := c.t.backoff(c.n)
	var floor time.Duration
	// A server's time is waited for in line where the Transport knows of it, else
	// here, within the same wait budget.
	if asked, ok := c.asked(); ok {
		switch {
		case asked > longestPause:
			return false
		case asked > delay+sinceAnswer, asked > delay && !c.paused():
			floor = asked
		case asked > 0:
			jitter = 0
		}
	}
	if c.isOpen() { // what would be waited for is a service that is down
		c.wait = 0
		return c.resp == nil // else it says so, as below
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
	// The Transport would refuse. After an error there is no response to keep, so
	// let it say so in its own words, now.
	c.wait = 0
	return c.resp == nil
}

// isOpen reports whether the breaker of the host leaves it alone.
func (c *call) isOpen() bool {
	host := c.req.URL.Host
	if c.req.URL.Scheme == "http" && c.req.URL.Port() == "" {
		host = net.JoinHostPort(c.req.URL.Hostname(), "80")
	}
	b, err := c.t.next.Breaker(host)
	return err == nil && b.State() == breaker.Open
}

// paused reports whether the Transport makes the next attempt wait for something
// else than its limits.
func (c *call) paused() bool {
	free := c.next.WithContext(attempt.With(c.req.Context(), &attempt.Attempt{N: c.n + 1, Free: true}))
	delay, err := c.t.next.Delay(free)
	return err == nil && delay > 0
}

// backoff returns a random time before the retry that comes after n others.
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
	c.heard.Done = false
	resp, body, err := c.t.send(req, &c.heard)
	if err != nil && (refusedHere(err) || c.req.Context().Err() != nil) {
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
