package headway

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/headway-go/headway/internal/attempt"
	"github.com/headway-go/headway/internal/desk"
	"github.com/headway-go/headway/internal/digest"
	"github.com/headway-go/headway/internal/fault"
	"github.com/headway-go/headway/internal/line"
	"github.com/headway-go/headway/internal/match"
	"github.com/headway-go/headway/internal/respbody"
	"github.com/headway-go/headway/internal/roster"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/retryafter"
)

// A request is one request on its way through the Transport, or one use of a Quota.
type request struct {
	t   *Transport
	req *http.Request // nil: a Quota's
	route
	desk.Ticket

	record  *record          // nil: it is not traced
	kept    *keptEvents      // what report has kept; nil: it reports at once
	reading *attempt.Reading // where to leave how its response was read; nil: nowhere
	body    *fault.Body      // what follows its body; nil: nothing
	cancel  func()           // of AttemptTimeout; nil: none, or the body's
}

// roundTrip is RoundTrip, and leaves in reading how the response was read, unless that
// is nil. Most requests can start at once, and take the short way of short.go.
func (t *Transport) roundTrip(req *http.Request, reading *attempt.Reading) (*http.Response, error) {
	ctx := req.Context()
	with := carriedFrom(ctx)
	if req.URL == nil || with != nil && with.Bypass { // the base transport has an error for no URL
		return t.base.RoundTrip(req)
	}
	if r := t.findRoute(req.URL); r != nil && r.budgets != nil && with == nil && r.host.Names() == "" && ctx.Err() == nil {
		var marks line.Marks
		if at, pass, ok := desk.Start(ctx, r.host, r.gate, r.budgets, r.listens, &marks); ok {
			if t.observer != nil {
				t.reportShortStart(r, req, at)
			}
			if !r.listens && r.gate == nil {
				return oneOf(t.base.RoundTrip(req))
			}
			return t.sendStarted(r, req, at, pass, &marks, reading)
		}
	}
	return t.roundTripInFull(ctx, req, with, reading)
}

// roundTripInFull takes a request through all steps. It is a function of its own, since what it
// needs takes a good part of the stack.
//
//go:noinline
func (t *Transport) roundTripInFull(ctx context.Context, req *http.Request, with *carried, reading *attempt.Reading) (resp *http.Response, err error) {
	// 1. Which policy has the host?
	v := request{t: t, req: req, route: t.route(req.URL), reading: reading}
	if v.policy == nil {
		return t.base.RoundTrip(req)
	}
	defer v.finish(ctx)
	var call Call
	if with != nil {
		call = with.Call
		if with.trace != nil {
			v.record = v.newRecord(with.trace)
			defer func() { v.record.end(&v, resp, err) }()
		}
	}
	// 2. Which rules match, whose budgets are they, and what does it cost?
	if err := v.match(call); err != nil {
		v.report(ctx, Event{Kind: EventNoKey, Rule: err.Rule})
		return nil, err
	}
	// 3. Wait in line, once, for everything together.
	refusal, err := v.enter(ctx)
	// 4. Or be refused.
	switch {
	case refusal != nil:
		return v.refuse(ctx, refusal)
	case err == nil:
		err = ctx.Err() // it may have ended since the start
	}
	if err != nil {
		v.Cancel()
		v.report(ctx, Event{Kind: EventCanceled, Wait: v.Waited})
		return nil, err
	}
	// 5. Start. Handing over is the last step before sending, so that the base transport gets
	// requests that are due at one instant in their order.
	v.reportStart(ctx)
	v.Send()
	v.record.started(&v)
	// 6. Send.
	resp, err = v.send(ctx)
	v.record.responded()
	// 7 and 8. Obey the response, and hold its body.
	return v.respond(ctx, call, resp, err)
}

// match finds the rules that apply, and calls their Key and Cost.
func (v *request) match(call Call) *KeyError {
	target := match.TargetOf(v.req)
	a := attempt.From(v.req.Context())
	for i := range v.policy.rules {
		r := &v.policy.rules[i]
		if !r.Matches(target) || r.of.FirstAttemptOnly && a != nil && a.N > 0 {
			continue
		}
		c := roster.Claim{Rule: r.Rule, Cost: 1}
		var err error
		if r.Keyed {
			var key string
			if key, err = r.of.Key(v.req); err == nil && key == "" {
				err = errEmptyKey
			}
			c.Key = digest.KeyOf(key)
		}
		switch {
		case err != nil:
		case r.of.Cost != nil:
			c.Cost, err = r.of.Cost(v.req)
		case r.isLimit && call.Cost != 0:
			c.Cost = call.Cost
		}
		if err == nil && c.Cost < 0 {
			err = fmt.Errorf("the cost is %d; it must be 0 or more", c.Cost)
		}
		if err != nil {
			return &KeyError{Policy: v.policy.name, Rule: r.Name, Err: err}
		}
		if a != nil && a.Free {
			c.Cost = 0
		}
		v.Claim(c)
		v.Exact = v.Exact || r.settles(call)
	}
	v.open(v.waitBudget(v.req.Context(), call))
	if v.routed {
		v.findRoute()
	}
	return nil
}

// open completes the Ticket of a request whose claims are known.
func (v *request) open(budget time.Duration) {
	v.t.desk.Open(&v.Ticket, v.policy.plan, v.name)
	v.Host, v.Gate = v.route.host, v.route.gate
	if v.MaxWait = budget; budget == limiter.Never {
		v.MaxWait = -1
	}
	if v.record != nil {
		v.Journal = &v.record.line
	}
}

// waitBudget returns the request's wait budget.
func (v *request) waitBudget(ctx context.Context, call Call) time.Duration {
	var longest time.Duration
	for _, c := range v.Claims.All() {
		longest = max(longest, c.Rule.Limit.Period())
	}
	budget := waitBudget(v.policy.MaxWait, call.MaxWait, longest)
	if a := attempt.From(ctx); a != nil && !a.By.IsZero() {
		budget = min(budget, max(0, time.Until(a.By)))
	}
	return budget
}

// enter waits in line. A request that starts has a turn until it hands over: where
// there is an observer, before that is called.
func (v *request) enter(ctx context.Context) (*line.Refusal, error) {
	for {
		v.t.reportNotices(ctx)
		refusal, err := v.t.desk.Enter(ctx, &v.Ticket)
		if v.t.observer != nil {
			v.HandOver()
		}
		v.t.reportNotices(ctx)
		v.opened(ctx)
		v.t.reportChanges(v.Gate)
		switch err {
		case desk.ErrAgain:
			v.record.leftStore(v)
		case desk.ErrRoute:
			v.findRoute()
		default:
			return refusal, err
		}
	}
}

// opened reports that the request has begun to use an overflow entry, and remembers its host
// and gate for the next one; see remember for why not once it is sent.
func (v *request) opened(ctx context.Context) {
	if v.Overflows {
		v.Overflows = false
		v.report(ctx, Event{Kind: EventOverflow})
	}
	if v.req != nil && !v.Sent && v.Host != nil && (v.Host != v.route.host || v.Gate != v.route.gate) {
		v.t.remember(v.req.URL, &v.route, v.Host, v.Gate)
		v.route.host, v.route.gate = v.Host, v.Gate
	}
}

// respond does what is due once the base transport has returned. The observer gets
// what it reports at the end: a slow one delays no pause, refund, slot or breaker.
func (v *request) respond(ctx context.Context, call Call, resp *http.Response, err error) (*http.Response, error) {
	v.Responded(ctx)
	var late *roster.Gate
	over, done := false, false
	defer func() {
		defer closeUnless(&over, resp)
		v.t.reportResponse(ctx, v.takeKept(), v.Gate, late)
		over = done
	}()
	v.keep()
	// A pause is raised before the breaker gets the result and lets others start.
	var s retryafter.Signal
	if err == nil && v.listens {
		v.listen(ctx, resp, &s)
		v.policy.leave(v.reading, resp, &s)
	}
	v.Done()
	if v.Gate != nil {
		late = v.Record(v.policy.result(v.req, resp, err, &s, v.body))
	}
	if err != nil {
		return nil, err
	}
	if v.Exact {
		s := newSettlement(v, call)
		s.fromHeaders(v, resp)
		respbody.Attach(resp, s)
	}
	if release := v.releaseAfter(v.Release()); release != nil {
		respbody.Hold(ctx, resp, release)
	}
	done = true
	return resp, nil
}

// finish cleans up whatever way the request went, a panic and runtime.Goexit
// among them.
func (v *request) finish(ctx context.Context) {
	if v.cancel != nil {
		v.cancel()
	}
	changed := v.Return(ctx)
	if !v.Sent && v.req.Body != nil {
		v.req.Body.Close()
	}
	// Once respond has reported, nothing is left: the response is its caller's by then, and
	// an observer that panicked here would leave its body open.
	v.t.reportChanges(changed)
}

// closeUnless closes the body of a response that the caller does not get, since
// something has panicked: nothing else could.
func closeUnless(over *bool, resp *http.Response) {
	if !*over && resp != nil && resp.Body != nil {
		resp.Body.Close()
	}
}
