package headway

import (
	"net/url"
	"slices"
	"strings"

	"github.com/headway-go/headway/internal/inside"
	"github.com/headway-go/headway/internal/line"
	"github.com/headway-go/headway/internal/roster"
	"github.com/headway-go/headway/retryafter"
)

// A route is what was found out for the requests to one host, by the spelling of
// their URLs. It is read-only.
//
// What the short way needs comes first: with what Routes keeps beside it, it fits into two
// cache lines.
type route struct {
	// budgets is what every request to the host takes one unit of. Nil where
	// requests differ: there are rules that match some only, or have a key or a
	// cost.
	budgets []*line.Budget
	host    *roster.Host // holds until the host has been forgotten
	gate    *roster.Gate // of host; nil: no breaker
	policy  *policy      // nil: none
	reader  *retryafter.Reader
	listens bool // what responses announce is used
	routed  bool // which way a request goes matters from the first one on; see request.findRoute

	config *config // the route holds while these policies are in force
	name   string  // the canonical host
}

// findRoute returns the route of a URL from the cache, or nil.
func (t *Transport) findRoute(u *url.URL) *route {
	return t.routes.Find(t.config.Load().number, u.Scheme, u.Host)
}

// route returns the route of a URL, from the cache or found out. The host of the
// latter is nil: the desk finds it.
func (t *Transport) route(u *url.URL) route {
	if r := t.findRoute(u); r != nil {
		return *r
	}
	r := route{config: t.config.Load()}
	name, p := r.config.find(u.Scheme, u.Host)
	r.name, r.policy = strings.Clone(name), p // of the URL nothing stays
	if p != nil {
		r.reader, r.listens = inside.ForHost(p.reader, r.name), p.plan.Listens
		r.routed = r.listens && inside.Routed(r.reader)
	} else {
		t.putRoute(u, r)
	}
	return r
}

// putRoute puts a route into the cache.
func (t *Transport) putRoute(u *url.URL, r route) {
	host := r.name
	if u.Host != host {
		host = strings.Clone(u.Host)
	}
	t.routes.Put(r.config.number, roster.SchemeText(u.Scheme), host, r)
}

// remember puts the route of a URL into the cache with its host, unless it is to an overflow
// entry, which a host leaves as soon as there is room. It is called before the base transport
// gets the request: one that rewrites the URL would have the route remembered for another host.
func (t *Transport) remember(u *url.URL, of *route, h *roster.Host, g *roster.Gate) {
	if h.Name == "" && !of.policy.Shared || g != nil && g.Host == "" {
		return
	}
	r := *of
	r.host, r.gate, r.budgets = h, g, nil
	if r.policy.uniform() && !r.routed {
		r.budgets = t.desk.Budgets(r.policy.plan, h, g)
	}
	t.putRoute(u, r)
}

// uniform reports whether every request without a Call takes one unit of each of the same
// budgets, and nothing else is to be done for it.
func (p *policy) uniform() bool {
	return p.AttemptTimeout == 0 && p.Classify == nil && !slices.ContainsFunc(p.rules, func(r rule) bool {
		return r.Rule.Narrow || r.of.FirstAttemptOnly || r.Keyed || r.of.Cost != nil || r.of.Settle != nil
	})
}
