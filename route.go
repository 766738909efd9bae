package headway

import (
	"context"
	"hash/maphash"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/headway-go/headway/internal/hostname"
	"github.com/headway-go/headway/internal/inside"
	"github.com/headway-go/headway/internal/line"
	"github.com/headway-go/headway/retryafter"
)

// A route is what was found out for the requests to one host, by the spelling of
// their URLs. It is read-only.
type route struct {
	config       *config // it holds while these policies are in force
	scheme, host string
	name         string  // the canonical host
	policy       *policy // nil: none
	reader       *retryafter.Reader
	site         *site // holds until the site has been forgotten
	gate         *gate // of site; nil: no breaker
	// budgets is what every request to the host takes one unit of. Nil where
	// requests differ: there are rules that match some only, or have a key or a
	// cost.
	budgets []*line.Budget
}

// routes remembers routes by a hash of the host: a cache that may forget any.
type routes struct {
	seed  maphash.Seed // assigned once
	slots atomic.Pointer[[]atomic.Pointer[cached]]
}

type cached struct {
	route
	used atomic.Bool // since another host last wanted the slot
}

// The cache grows from fewRoutes to mostRoutes when hosts want the same slots. A
// host has two: one that its hash gives, and that one's neighbour.
const (
	fewRoutes  = 64
	mostRoutes = 1 << 13
)

func (rs *routes) init() {
	rs.seed = maphash.MakeSeed()
	slots := make([]atomic.Pointer[cached], fewRoutes)
	rs.slots.Store(&slots)
}

func (rs *routes) pair(slots []atomic.Pointer[cached], host string) (first, second *atomic.Pointer[cached]) {
	i := maphash.String(rs.seed, host) & uint64(len(slots)-1)
	return &slots[i], &slots[i^1]
}

// find returns the route of u under c, or nil.
func (rs *routes) find(c *config, u *url.URL) *route {
	first, second := rs.pair(*rs.slots.Load(), u.Host)
	r := first.Load()
	if r == nil || r.host != u.Host {
		r = second.Load()
	}
	if r == nil || r.host != u.Host || r.config != c || r.scheme != u.Scheme {
		return nil
	}
	if !r.used.Load() {
		r.used.Store(true)
	}
	return &r.route
}

// place returns the slot for a route, or nil where others are of more use, or the host
// is too long to be kept.
// Another goroutine may fill it at the same time and win; what is lost is found
// out again.
func (rs *routes) place(r *route) *atomic.Pointer[cached] {
	if len(r.host) > hostname.MostText {
		return nil
	}
	for slots := *rs.slots.Load(); ; {
		first, second := rs.pair(slots, r.host)
		a, b := first.Load(), second.Load()
		switch {
		case a == nil || a.host == r.host || a.config != r.config:
			return first
		case b == nil || b.host == r.host || b.config != r.config:
			return second
		case len(slots) < mostRoutes:
			slots = rs.grow(slots)
		case !a.used.Swap(false):
			return first
		case !b.used.Swap(false):
			return second
		default:
			return nil
		}
	}
}

func (rs *routes) grow(slots []atomic.Pointer[cached]) []atomic.Pointer[cached] {
	more := make([]atomic.Pointer[cached], 2*len(slots))
	for i := range slots {
		if old := slots[i].Load(); old != nil {
			first, second := rs.pair(more, old.host)
			if first.Load() != nil {
				first = second
			}
			first.Store(old)
		}
	}
	rs.slots.Store(&more)
	return more
}

// route returns the route of a URL, from the cache or found out. The site of the
// latter is nil: visit.open finds it.
func (t *Transport) route(u *url.URL) route {
	c := t.config.Load()
	if r := t.routes.find(c, u); r != nil {
		return *r
	}
	r := route{config: c, scheme: schemeText(u.Scheme), host: strings.Clone(u.Host)} // of the URL nothing stays
	name, i := c.hosts.lookup(u.Scheme, r.host)
	if r.name = name; i >= 0 {
		r.policy = c.policies[i]
		r.reader = inside.ForHost(r.policy.reader, name)
	} else if slot := t.routes.place(&r); slot != nil {
		slot.Store(&cached{route: r})
	}
	return r
}

// remember puts a route into the cache with its site, unless it is a Quota's, or
// to an overflow entry, which a host leaves as soon as there is room.
func (t *Transport) remember(r *route, s *site, g *gate) {
	if r.host == "" || s.host == "" && !r.policy.Shared || g != nil && g.host == "" {
		return
	}
	slot := t.routes.place(r)
	if slot == nil {
		return
	}
	c := &cached{route: *r}
	c.site, c.gate, c.budgets = s, g, nil
	uniform := t.store == nil && r.policy.AttemptTimeout == 0 && r.policy.Classify == nil
	for i := 0; uniform && i < len(r.policy.rules); i++ {
		uniform = r.policy.rules[i].uniform()
	}
	if uniform {
		c.budgets = make([]*line.Budget, len(r.policy.rules))
		for i := range r.policy.rules {
			c.budgets[i], _ = t.table.budget(s, g, nil, &r.policy.rules[i], keyRef{})
		}
	}
	slot.Store(c)
}

// start takes what every request takes, if it can start at once and ctx does not
// end meanwhile.
func (r *route) start(ctx context.Context) (at time.Duration, p line.Pass, ok bool) {
	gate := r.gate.side()
	if !gate.Free() {
		return 0, line.Pass{}, false
	}
	at, p, ok = r.site.line.Start(r.budgets, gate, r.policy.listens)
	if ok && ctx.Err() != nil {
		r.site.line.UndoStart(r.budgets, r.policy.listens, at)
		return 0, line.Pass{}, false
	}
	r.site.touch()
	if r.gate != nil {
		r.gate.touch()
	}
	return at, p, ok
}

// uniform reports whether the rule takes one unit of one budget for every
// request without a Call.
func (r *rule) uniform() bool {
	return !r.Narrow() && r.key == nil && r.cost == nil && r.settle == nil && !r.first
}

// schemeText returns a scheme as text that is no part of a URL's.
func schemeText(scheme string) string {
	switch scheme {
	case "http":
		return "http"
	case "https":
		return "https"
	}
	return strings.Clone(scheme)
}
