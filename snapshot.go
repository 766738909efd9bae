package headway

import (
	"cmp"
	"slices"

	"github.com/headway-go/headway/internal/line"
	"github.com/headway-go/headway/limiter"
)

// A HostStatus is what a policy remembers of one host.
type HostStatus struct {
	// Policy is the policy's name.
	Policy string
	// Host is the host in its canonical form; empty for a Shared policy, and
	// for the entry that new hosts share when Config.MaxHosts are remembered.
	Host string
	// Overflow says that it is that entry.
	Overflow bool
	// Waiting is how many requests are in line, InFlight how many in-flight
	// slots are taken; always 0 without MaxInFlight.
	Waiting, InFlight int
	// Rules are the budgets in use, by rule and digest.
	Rules []RuleStatus
}

// A RuleStatus is the budget of one rule and key.
type RuleStatus struct {
	// Rule is the rule's name, or the limit's text.
	Rule string
	// KeyDigest is the keyed digest of the key; empty where the rule has none,
	// and for the budget that new keys share when there is no room for more.
	KeyDigest string
	// Limit is the limit in force.
	Limit limiter.Limit
	// Remaining is how many units could start now; negative in debt.
	Remaining int64
}

// Snapshot returns what is remembered of every host, by policy and host, for
// pages and tests. Each host is read at one instant, but not all at the same.
func (t *Transport) Snapshot() []HostStatus {
	var list []HostStatus
	for _, p := range t.config.Load().policies {
		p.sites.mu.RLock()
		var all []*site
		for _, s := range p.sites.hosts {
			all = append(all, s)
		}
		overflow := p.sites.overflow
		p.sites.mu.RUnlock()
		if overflow != nil {
			all = append(all, overflow)
		}
		for _, s := range all {
			h := s.status(p, t.digests)
			h.Overflow = s == overflow
			list = append(list, h)
		}
	}
	slices.SortFunc(list, func(a, b HostStatus) int {
		return cmp.Or(cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Host, b.Host))
	})
	return list
}

func (s *site) status(p *policy, d digester) HostStatus {
	h := HostStatus{Policy: p.name, Host: s.host}
	s.mu.Lock()
	defer s.mu.Unlock()
	var budgets []*line.Budget
	add := func(r *rule, key string, b *line.Budget) {
		e := RuleStatus{Rule: r.name, Limit: limitOf(r.spec)}
		if key != "" {
			e.KeyDigest = d.digest(key)
		}
		h.Rules = append(h.Rules, e)
		budgets = append(budgets, b)
	}
	for i := range p.rules {
		r := &p.rules[i]
		if b := s.at(r.place); b != nil {
			add(r, "", b)
		}
		for id, e := range s.all() {
			if r.key != nil && id.place == r.place {
				add(r, id.key, e.budget)
			}
		}
	}
	var left []int64
	h.Waiting, h.InFlight, left = s.line.Status(budgets)
	for i := range left {
		h.Rules[i].Remaining = left[i]
	}
	slices.SortStableFunc(h.Rules, func(a, b RuleStatus) int {
		return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.KeyDigest, b.KeyDigest))
	})
	return h
}

// digestOf returns the digest of a key, or nothing for none.
func (t *Transport) digestOf(key string) string {
	if key == "" {
		return ""
	}
	return t.digests.digest(key)
}
