package headway

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"unsafe"

	"github.com/headway-go/headway/internal/law"
	"github.com/headway-go/headway/internal/match"
	"github.com/headway-go/headway/internal/storeline"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/retryafter"
)

// config is the policies in force, compiled. It is read-only.
type config struct {
	hosts    *hostTable
	policies []*policy
	last     int // the latest place given
}

// policy is a compiled Policy. It is read-only.
type policy struct {
	Policy
	name  string
	group string // what a store calls it
	rules []rule // narrow before wide: those with keys first
	// places gives every rule, by name, a place, so that budgets outlive a change of
	// policies. Limits are named by position there. A place is never given twice; its
	// index in the lists of budgets is, once its rule is no more.
	places map[string]place
	owners []int             // the place at each index; zero: none
	specs  map[int]*law.Spec // by place
	// plan has the limits where a store keeps the budgets; specs are then this process's
	// shares, for while the store is down.
	plan  *storeline.Plan
	sites *sites // the same for all policies that follow one another by name
	open  bool   // no rule matches every request
	// listens says that answers are read, by reader at hosts of no dialect.
	listens bool
	reader  *retryafter.Reader
}

type place struct{ id, index int }

// rule is a compiled Rule or an element of Limits.
type rule struct {
	match.Matcher
	name    string
	label   string // of the server's limit that it is; empty: see rule.fit
	id      string // among places
	stored  string // what a store calls its budgets
	place   int
	index   int
	spec    law.Spec
	isLimit bool
	first   bool // for first attempts only
	key     func(*http.Request) (string, error)
	keyed   int // the first rule with the same key function
	cost    func(*http.Request) (int64, error)
	settle  func(*http.Response) (int64, bool)
}

// compile compiles valid policies. Those that old has by the same name take over
// its hosts and places. stored says that a store keeps their budgets.
func compile(policies []Policy, old *config, stored bool) *config {
	c := &config{hosts: newHostTable(policies)}
	if old != nil {
		c.last = old.last
	}
	for i := range policies {
		p := &policy{Policy: policies[i], name: policies[i].name(), group: url.PathEscape(policies[i].name()) + "/", places: map[string]place{}}
		var known map[string]place
		if before := old.named(p.name); before != nil && before.Shared == p.Shared {
			p.sites = before.sites
			known = before.places
		} else {
			p.sites = &sites{name: p.name, hosts: map[string]*site{}}
			p.sites.current.Store(p)
		}
		for i := range p.Rules {
			r := &p.Rules[i]
			m, _ := match.New(r.Methods, r.Path) // policies are valid
			p.add("rule "+r.Name, rule{Matcher: m, name: r.Name, label: r.Announced, spec: specOf(r.Limit), first: r.FirstAttemptOnly, key: r.Key, cost: r.Cost, settle: r.Settle})
		}
		for i, l := range p.Limits {
			p.add("limit "+strconv.Itoa(i), rule{name: l.String(), spec: specOf(l), isLimit: true})
		}
		p.settle(known, &c.last)
		p.reader = retryafter.NewReader(p.Server.Dialects, "")
		p.listens = !slices.Contains(p.Server.Dialects, retryafter.None)
		slices.SortStableFunc(p.rules, func(a, b rule) int { return a.width() - b.width() })
		p.open = !slices.ContainsFunc(p.rules, func(r rule) bool { return !r.Narrow() && !r.first })
		p.specs = map[int]*law.Spec{}
		if stored {
			p.plan = &storeline.Plan{Limits: map[string]limiter.Limit{}, Waiting: p.maxWaiting(), InFlight: p.MaxInFlight, Batch: p.Store.Batch}
		}
		for i := range p.rules {
			r := &p.rules[i]
			share := p.share(r.spec).Shared()
			r.spec = r.spec.Shared()
			p.specs[r.place] = &r.spec
			r.keyed = slices.IndexFunc(p.rules, func(o rule) bool { return sameFunc(o.key, r.key) })
			if stored {
				p.plan.Limits[r.stored], p.specs[r.place] = limitOf(r.spec), &share
			}
		}
		c.policies = append(c.policies, p)
	}
	return c
}

// sameFunc reports whether a and b are one value: the same function with the same
// captured variables.
func sameFunc(a, b func(*http.Request) (string, error)) bool {
	return *(*unsafe.Pointer)(unsafe.Pointer(&a)) == *(*unsafe.Pointer)(unsafe.Pointer(&b))
}

func (p *policy) add(name string, r rule) {
	r.id, r.stored = name, url.PathEscape(name)
	p.rules = append(p.rules, r)
}

// settle gives each rule its place: the one that is known, or the next after last, at
// an index that is free.
func (p *policy) settle(known map[string]place, last *int) {
	for i := range p.rules {
		if at, ok := known[p.rules[i].id]; ok {
			p.take(&p.rules[i], at)
		}
	}
	free := 0
	for i := range p.rules {
		if r := &p.rules[i]; r.place == 0 {
			for free < len(p.owners) && p.owners[free] != 0 {
				free++
			}
			*last++
			p.take(r, place{*last, free})
		}
	}
}

func (p *policy) take(r *rule, at place) {
	for len(p.owners) <= at.index {
		p.owners = append(p.owners, 0)
	}
	p.owners[at.index], p.places[r.id] = at.id, at
	r.place, r.index = at.id, at.index
}

// owns reports whether the place is one of p's, which may be nil, at the index.
func (p *policy) owns(place, index int) bool {
	return p != nil && index < len(p.owners) && p.owners[index] == place
}

// width orders rules by how many requests share a budget of theirs.
func (r *rule) width() int {
	switch {
	case r.key != nil:
		return 0
	case r.Narrow():
		return 1
	}
	return 2
}

// named returns the policy of that name, or nil.
func (c *config) named(name string) *policy {
	if c != nil {
		for _, p := range c.policies {
			if p.name == name {
				return p
			}
		}
	}
	return nil
}

// rule returns the rule of that name, or the limit of that text, or nil.
func (p *policy) rule(name string) *rule {
	for i := range p.rules {
		if p.rules[i].name == name {
			return &p.rules[i]
		}
	}
	return nil
}

// maxWaiting returns the cap on the line.
func (p *policy) maxWaiting() int {
	if p.MaxWaiting == 0 {
		return 10_000
	}
	return p.MaxWaiting
}

// SetPolicies replaces all policies at once, or none if it returns an error, which
// names every mistake.
//
// Policies and rules keep their history by name, and Limits by position: under
// another limit, law or period, past starts still count. A policy that changes Shared
// starts afresh. Breakers are kept with their policy. With another breaker.Config a
// breaker starts afresh, unless it is open or half-open: then it is open, for as long
// as it would have been or for the new OpenFor, whichever is longer.
//
// Requests in line keep the rules under which they arrived, as far as these still
// exist, with their new limits. Those that can no longer start in time are refused,
// and the others are planned again. New rules apply to requests that arrive later. What
// this process remembers of rules and policies that are removed is forgotten
// immediately.
func (t *Transport) SetPolicies(policies []Policy) error {
	if err := validatePolicies(policies); err != nil {
		return err
	}
	t.setting.Lock()
	defer t.setting.Unlock()
	old := t.config.Load()
	next := compile(policies, old, t.store != nil)
	gone := false
	for _, p := range old.policies {
		n := next.named(p.name)
		if n != nil && n.sites != p.sites {
			n = nil
		}
		p.sites.set(n)
		gone = gone || n == nil || slices.ContainsFunc(p.rules, func(r rule) bool { return !n.owns(r.place, r.index) })
	}
	t.config.Store(next)
	if gone {
		t.table.sweep()
	}
	if t.store != nil {
		t.store.client.Reconfigure()
	}
	return nil
}

// specOf returns a limit in the form that the laws take.
func specOf(l limiter.Limit) law.Spec {
	return law.Spec{N: l.N, Per: l.Per, Kind: law.Kind(l.Law), Burst: l.Burst, Strict: l.Strict, Unit: law.Unit(l.Unit), Location: l.Location}
}

// limitOf is the way back.
func limitOf(s law.Spec) limiter.Limit {
	return limiter.Limit{N: s.N, Per: s.Per, Law: limiter.Law(s.Kind), Burst: s.Burst, Strict: s.Strict, Unit: limiter.Unit(s.Unit), Location: s.Location}
}
