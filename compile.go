package headway

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"unsafe"

	"github.com/headway-go/headway/internal/desk"
	"github.com/headway-go/headway/internal/law"
	"github.com/headway-go/headway/internal/match"
	"github.com/headway-go/headway/internal/roster"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/retryafter"
)

// config is the policies in force, compiled. It is read-only.
type config struct {
	number   uint64 // which set of policies it is
	hosts    *match.HostTable
	policies []*policy
	plans    []*roster.Plan // theirs
	lastRule int            // the latest ID that a rule was given
}

// policy is a compiled Policy. It is read-only.
type policy struct {
	Policy
	name   string
	plan   *roster.Plan
	rules  []rule             // narrow before wide: those with keys first; as in the plan
	reader *retryafter.Reader // at hosts of no dialect
}

// rule is a compiled Rule or an element of Limits.
type rule struct {
	*roster.Rule
	match.Matcher
	of      *Rule // what it is compiled from
	isLimit bool
}

// compile compiles valid policies. Those that old has by the same name take over
// its hosts and what is remembered there.
func compile(policies []Policy, old *config, d *desk.Desk) *config {
	c := &config{hosts: match.NewHostTable()}
	if old != nil {
		c.number, c.lastRule = old.number+1, old.lastRule
	}
	for i := range policies {
		p := compilePolicy(&policies[i])
		for _, pattern := range p.Hosts {
			c.hosts.Add(pattern, i) // policies are valid
		}
		var before *roster.Plan
		if o := old.named(p.name); o != nil {
			before = o.plan
		}
		d.Prepare(p.plan)
		p.plan = roster.NewPlan(*p.plan, before, &c.lastRule)
		for i := range p.rules {
			p.rules[i].Rule = &p.plan.Rules[i]
		}
		c.policies, c.plans = append(c.policies, p), append(c.plans, p.plan)
	}
	return c
}

// compilePolicy returns a policy whose plan is not complete yet.
func compilePolicy(of *Policy) *policy {
	p := &policy{Policy: *of, name: of.name(), reader: retryafter.NewReader(of.Server.Dialects, "")}
	p.Rules = slices.Clone(p.Rules) // what the caller does with its own afterwards changes nothing
	for i := range p.Rules {
		p.add("rule "+p.Rules[i].Name, &p.Rules[i], false)
	}
	for i, l := range p.Limits {
		p.add("limit "+strconv.Itoa(i), &Rule{Name: l.String(), Limit: l}, true)
	}
	slices.SortStableFunc(p.rules, func(a, b rule) int { return a.width() - b.width() })
	p.plan = &roster.Plan{
		Name: p.name, Shared: p.Shared, MaxWaiting: cmp.Or(p.MaxWaiting, 10_000), MaxInFlight: p.MaxInFlight, Breaker: p.Breaker,
		Listens: !slices.Contains(p.Server.Dialects, retryafter.None),
		Open:    !slices.ContainsFunc(p.rules, func(r rule) bool { return !r.Rule.Narrow && !r.of.FirstAttemptOnly }),
		Group:   url.PathEscape(p.name) + "/", Down: roster.Down(p.Store.Down), Batch: p.Store.Batch, Share: p.Store.Share,
	}
	for i := range p.rules {
		r := &p.rules[i]
		r.SameKey = slices.IndexFunc(p.rules, func(o rule) bool { return sameFunc(o.of.Key, r.of.Key) })
		p.plan.Rules = append(p.plan.Rules, *r.Rule)
	}
	return p
}

func (p *policy) add(text string, of *Rule, isLimit bool) {
	m, _ := match.New(of.Methods, of.Path) // policies are valid
	r := &roster.Rule{Name: of.Name, Text: text, Stored: url.PathEscape(text), Limit: specOf(of.Limit), Keyed: of.Key != nil, Narrow: m.Narrow()}
	p.rules = append(p.rules, rule{r, m, of, isLimit})
}

// sameFunc reports whether a and b are one value: the same function with the same
// captured variables.
func sameFunc(a, b func(*http.Request) (string, error)) bool {
	return *(*unsafe.Pointer)(unsafe.Pointer(&a)) == *(*unsafe.Pointer)(unsafe.Pointer(&b))
}

// width orders rules by how many requests share a budget of theirs.
func (r *rule) width() int {
	switch {
	case r.Keyed:
		return 0
	case r.Rule.Narrow:
		return 1
	}
	return 2
}

// find returns the canonical text of a host, and its policy; nil where it has none.
func (c *config) find(scheme, host string) (name string, p *policy) {
	name, i := c.hosts.Lookup(scheme, host)
	if i >= 0 {
		p = c.policies[i]
	}
	return name, p
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
		if p.rules[i].Name == name {
			return &p.rules[i]
		}
	}
	return nil
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
	next := compile(policies, t.config.Load(), t.desk)
	t.desk.Configure(next.plans)
	t.config.Store(next)
	return nil
}

// specOf returns a limit in the form that the laws take.
func specOf(l limiter.Limit) law.Spec {
	return law.Spec{N: l.N, Per: l.Per, Kind: law.Kind(l.Law), Burst: l.Burst, Strict: l.Strict, Unit: law.Unit(l.Unit), Location: l.Location}
}
