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

	config  *config // the route holds while these policies are in force
	scheme  string  // of the URLs
	spelled string  // the host as it stands in the URLs; empty for a Quota's
	name    string  // the canonical host
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
	r := route{config: t.config.Load(), scheme: roster.SchemeText(u.Scheme), spelled: strings.Clone(u.Host)} // of the URL nothing stays
	r.name, r.policy = r.config.find(u.Scheme, r.spelled)
	if r.policy != nil {
		r.reader, r.listens = inside.ForHost(r.policy.reader, r.name), r.policy.plan.Listens
	} else {
		t.routes.Put(r.config.number, r.scheme, r.spelled, r)
	}
	return r
}

// remember puts a route into the cache with its host, unless it is a Quota's, or
// to an overflow entry, which a host leaves as soon as there is room.
func (t *Transport) remember(of *route, h *roster.Host, g *roster.Gate) {
	if of.spelled == "" || h.Name == "" && !of.policy.Shared || g != nil && g.Host == "" {
		return
	}
	r := *of
	r.host, r.gate, r.budgets = h, g, nil
	if r.policy.uniform() {
		r.budgets = t.desk.Budgets(r.policy.plan, h, g)
	}
	t.routes.Put(r.config.number, r.scheme, r.spelled, r)
}

// uniform reports whether every request without a Call takes one unit of each of the same
// budgets, and nothing else is to be done for it.
func (p *policy) uniform() bool {
	return p.AttemptTimeout == 0 && p.Classify == nil && !slices.ContainsFunc(p.rules, func(r rule) bool {
		return r.Rule.Narrow || r.of.FirstAttemptOnly || r.Keyed || r.of.Cost != nil || r.of.Settle != nil
	})
}
