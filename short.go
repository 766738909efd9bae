package headway

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/headway-go/headway/internal/attempt"
	"github.com/headway-go/headway/internal/fault"
	"github.com/headway-go/headway/internal/inside"
	"github.com/headway-go/headway/internal/line"
	"github.com/headway-go/headway/internal/roster"
	"github.com/headway-go/headway/retryafter"
)

// Most requests take one unit of the same budgets as every other request to their host, in
// memory, and can start at once. They go a short way: what a request of their host needs is
// remembered, and taken under one lock, without a Ticket. As soon as anything is out of the
// ordinary, the way goes on as for every other request: before the start in request.run, after
// it in request.obey.

// A route is what was found out for the requests to one host, by the spelling of
// their URLs. It is read-only.
type route struct {
	config  *config  // it holds while these policies are in force
	url     *url.URL // its scheme and host; of the request
	name    string   // the canonical host
	policy  *policy  // nil: none
	reader  *retryafter.Reader
	host    *roster.Host // holds until the host has been forgotten
	gate    *roster.Gate // of host; nil: no breaker
	listens bool         // what responses announce is used
	// budgets is what every request to the host takes one unit of. Nil where
	// requests differ: there are rules that match some only, or have a key or a
	// cost.
	budgets []*line.Budget
}

// findRoute returns the route of a URL from the cache, or nil.
func (t *Transport) findRoute(u *url.URL) *route {
	return t.routes.Find(t.config.Load().number, u.Scheme, u.Host)
}

// route returns the route of a URL, from the cache or found out. The host of the
// latter is nil: the desk finds it.
func (t *Transport) route(u *url.URL) route {
	if r := t.findRoute(u); r != nil {
		found := *r
		found.url = u
		return found
	}
	r := route{config: t.config.Load(), url: u}
	name, i := r.config.hosts.Lookup(u.Scheme, u.Host)
	if r.name = strings.Clone(name); i >= 0 {
		r.policy = r.config.policies[i]
		r.reader, r.listens = inside.ForHost(r.policy.reader, r.name), r.policy.plan.Listens
	} else {
		t.putRoute(r)
	}
	return r
}

// putRoute puts a route into the cache, without the URL.
func (t *Transport) putRoute(r route) {
	u := r.url
	r.url = nil
	t.routes.Put(r.config.number, u.Scheme, u.Host, r)
}

// remember puts a route into the cache with its host, unless it is a Quota's, or
// to an overflow entry, which a host leaves as soon as there is room.
func (t *Transport) remember(of *route, h *roster.Host, g *roster.Gate) {
	if of.url == nil || h.Name == "" && !of.policy.Shared || g != nil && g.Host == "" {
		return
	}
	r := *of
	r.host, r.gate, r.budgets = h, g, nil
	if r.policy.uniform() {
		r.budgets = t.desk.Budgets(r.policy.plan, h, g)
	}
	t.putRoute(r)
}

// uniform reports whether every request without a Call takes one unit of each of the same
// budgets, and nothing else is to be done for it.
func (p *policy) uniform() bool {
	return p.AttemptTimeout == 0 && p.Classify == nil && !slices.ContainsFunc(p.rules, func(r rule) bool {
		return r.Rule.Narrow || r.first || r.key != nil || r.cost != nil || r.settle != nil
	})
}

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
func (t *Transport) sendStarted(r *route, req *http.Request, at time.Duration, p line.Pass, reading *attempt.Reading) (resp *http.Response, err error) {
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
		said, more := read(req, r.reader, resp, &s), needsBody(r.reader, resp)
		if more || said && (s.Throttled || t.observer != nil || !r.announce(at, &s, &inFlight)) {
			kept = r.obey(t, req, at, inFlight, resp, said, more, &s)
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
func (r *route) obey(t *Transport, req *http.Request, at time.Duration, inFlight bool, resp *http.Response, said, more bool, s *retryafter.Signal) *keptEvents {
	v := request{t: t, req: req, route: *r}
	t.desk.Open(&v.Ticket, r.policy.plan, r.name)
	v.Started(r.host, r.gate, r.budgets, at, inFlight)
	v.keep()
	v.obey(req.Context(), resp, said, more, s)
	return v.takeKept()
}

// announce is request.announce for all limits that a response announces to a request that
// sendStarted has sent, of which nothing is reported. With the first it ends the flight, under
// one lock. It is false where request.announce has to look for what was forgotten meanwhile.
func (r *route) announce(at time.Duration, s *retryafter.Signal, inFlight *bool) bool {
	if r.policy.Server.Learn == LearnOff {
		return true
	}
	for i := range s.Limits() {
		l := &s.Limits()[i]
		if !l.HasRemaining {
			continue
		}
		var scope line.Scope
		if i := r.policy.ruleOf(l); i >= 0 {
			scope.Rule = r.budgets[i]
		}
		said := r.policy.said(l, at)
		if said.Empty() {
			continue
		}
		var ended []*line.Budget
		if *inFlight {
			ended, *inFlight = r.budgets, false
		}
		if _, err := r.host.Line.AnnounceLimit(scope, line.AnnouncedKey{Name: l.Name, Window: l.Window}, s.Dialect, &said, ended); err != nil {
			return false
		}
	}
	return true
}
