package headway

import (
	"net/http"
	"time"

	"github.com/headway-go/headway/internal/attempt"
	"github.com/headway-go/headway/internal/fault"
	"github.com/headway-go/headway/internal/line"
	"github.com/headway-go/headway/internal/roster"
	"github.com/headway-go/headway/retryafter"
)

// Most requests take one unit of the same budgets as every other request to their host, in
// memory, and can start at once. They go a short way: what a request of their host needs is
// remembered, and taken under one lock, without a Ticket. As soon as anything is out of the
// ordinary, the way goes on as for every other request: before the start in request.run, after
// it in request.obey.

// reportShortStart reports a request that has taken a unit of each of the route's
// budgets at an instant. If the observer panics, it has not.
func (t *Transport) reportShortStart(r *route, req *http.Request, at time.Duration) {
	reported := false
	defer func() {
		if !reported {
			r.host.Line.UndoStart(r.budgets, r.listens, at)
			if req.Body != nil {
				req.Body.Close()
			}
		}
	}()
	ctx := req.Context()
	e := Event{Kind: EventStart, Policy: r.policy.name, Host: r.name, Attempt: AttemptFrom(ctx)}
	for i, b := range r.budgets {
		t.reportTake(ctx, &e, &roster.Claim{Rule: r.policy.rules[i].Rule, Cost: 1}, r.host.Line.Left(b))
	}
	t.observe(ctx, e)
	reported = true
}

// sendStarted sends a request that has taken a unit of each of the route's
// budgets at an instant, and p of its gate, if it has one. It obeys the
// response, and reports the result to the breaker. After a panic no place is to be given back:
// p is of a breaker that bounded nothing.
func (t *Transport) sendStarted(r *route, req *http.Request, at time.Duration, p line.Pass, marks *line.Marks, reading *attempt.Reading) (resp *http.Response, err error) {
	inFlight, reported, over := r.listens, false, false
	var kept *keptEvents
	defer func() {
		if over {
			return
		}
		if inFlight {
			r.host.Line.DoneStart(r.budgets)
		}
		defer closeUnless(&over, resp)
		if !reported {
			t.reportResponse(req.Context(), kept, r.gate, nil)
		}
	}()
	var body *fault.Body
	resp, err = t.send(req, r.gate, &body)
	var s retryafter.Signal
	if inFlight && err == nil {
		found, more := read(req, r.reader, resp, &s), needsBody(r.reader, resp)
		if more || found && (s.Throttled || t.observer != nil || !r.announce(at, resp.StatusCode, &s, marks, &inFlight)) {
			kept = r.obey(t, req, at, inFlight, marks, resp, found, more, &s)
		}
		if reading != nil {
			r.policy.leave(reading, resp, &s)
		}
	}
	well := len(r.budgets) == 0 && r.listens && succeeded(resp, &s)
	if well {
		r.host.Line.Served(at, inFlight)
	} else if inFlight {
		r.host.Line.DoneStart(r.budgets)
	}
	inFlight = false
	if r.gate != nil {
		late := t.desk.Record(r.policy.plan, r.name, r.host, r.gate, &p, r.policy.result(req, resp, err, &s, body))
		t.reportChanges(late)
	}
	reported = true
	if kept != nil {
		t.reportResponse(req.Context(), kept, r.gate, nil)
	} else if r.gate != nil {
		t.reportChanges(r.gate)
	}
	over = true
	return resp, err
}

// obey is request.obey for a request that sendStarted has sent. It returns the events
// to report.
func (r *route) obey(t *Transport, req *http.Request, at time.Duration, inFlight bool, marks *line.Marks, resp *http.Response, found, more bool, s *retryafter.Signal) *keptEvents {
	v := request{t: t, req: req, route: *r}
	t.desk.Open(&v.Ticket, r.policy.plan, r.name)
	v.Started(r.host, r.gate, r.budgets, at, inFlight, marks)
	v.keep()
	v.obey(req.Context(), resp, found, more, s)
	return v.takeKept()
}

// announce is request.announce for all limits that a response announces to a request that
// sendStarted has sent, of which nothing is reported. With the last it ends the flight, under
// one lock. It is false where request.announce has to look for what was forgotten meanwhile,
// or for a resource.
func (r *route) announce(at time.Duration, status int, s *retryafter.Signal, marks *line.Marks, inFlight *bool) bool {
	if r.policy.Server.Learn == LearnOff {
		return true
	}
	if namesResource(s) {
		return false
	}
	list := s.Limits()
	last := len(list) - 1
	for last >= 0 && !list[last].HasRemaining {
		last--
	}
	for i := range list[:last+1] {
		l := &list[i]
		if !l.HasRemaining {
			continue
		}
		report := line.LimitReport{Key: line.AnnouncedKey{Name: l.Name, Window: l.Window}, Source: s.Dialect}
		var of *rule
		if i := r.policy.ruleOf(l); i >= 0 {
			of, report.Scope.Rule = &r.policy.rules[i], r.budgets[i]
		}
		report.Signal = r.policy.limitSignal(s, l, of, at)
		if report.Signal.Empty() {
			continue
		}
		report.Signal.Own = 1
		var ended []*line.Budget
		if i == last {
			ended, *inFlight = r.budgets, false
		}
		if _, err := r.host.Line.AnnounceLimit(&report, nil, marks, ended); err != nil {
			return false
		}
	}
	return true
}
