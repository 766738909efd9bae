package roster

import (
	"slices"
	"strings"

	"github.com/headway-go/headway/breaker"
	"github.com/headway-go/headway/internal/law"
	"github.com/headway-go/headway/internal/storeline"
)

// A Plan is what a policy determines about the budgets at its hosts. It is read-only.
type Plan struct {
	Name        string // the policy's
	Shared      bool   // its hosts spend one budget and stand in one line; breakers stay per host
	Rules       []Rule // narrow before wide: those with keys first
	MaxWaiting  int    // cap on the line; zero: none
	MaxInFlight int    // zero: no cap
	Breaker     *breaker.Config
	Listens     bool // what responses announce is used
	Open        bool // no rule matches every request
	// How the store that keeps its budgets is used, if there is one.
	Group   string          // what the store calls the policy; a host follows
	Down    Down            // what happens to requests while the store is down
	Share   float64         // the part of each limit that a process may use then; zero: 0.25
	Batch   int             // starts that are reserved in one round trip; 0 and 1: one
	InStore *storeline.Plan // nil: budgets are in memory
	Hosts   *Hosts          // the same for all Plans that follow one another by name

	owners []int         // the rule at each index; zero: none
	rules  map[int]*Rule // by ID
}

// Down is what happens to requests while the store is down.
type Down uint8

// The values are those of headway.StoreDown.
const (
	Local  Down = iota // each process keeps to its share, in memory
	Refuse             // requests are refused
	Admit              // requests start without a limit
)

// A Rule is one budget for each host, or for each key at a host.
type Rule struct {
	Name    string // for people
	Text    string // what it is known by when policies change
	Stored  string // what a store calls its budgets; with a key, its digest follows
	Keyed   bool
	Narrow  bool // it is for some methods or paths only
	Limit   law.Spec
	Local   law.Spec // what this process's memory holds it to: Limit, or a share of it while a store is down
	ID      int      // by which budgets outlive a change of policies; never given twice
	Index   int      // in a host's list of budgets; given again once the rule is no more
	Place   int      // in Plan.Rules
	SameKey int      // the place of the first rule with the same key function
}

// NewPlan completes p, whose rules are in order and have no IDs yet. It takes over the
// hosts and, by the texts of the rules, the IDs of old, which may be nil. last is the
// latest ID given.
func NewPlan(p Plan, old *Plan, last *int) *Plan {
	p.rules = map[int]*Rule{}
	if old != nil && old.Shared == p.Shared {
		p.Hosts = old.Hosts
		for i := range p.Rules {
			r := &p.Rules[i]
			if j := slices.IndexFunc(old.Rules, func(o Rule) bool { return o.Text == r.Text }); j >= 0 {
				p.give(r, old.Rules[j].ID, old.Rules[j].Index)
			}
		}
	}
	free := 0
	for i := range p.Rules {
		r := &p.Rules[i]
		r.Limit, r.Local = r.Limit.Shared(), r.Local.Shared()
		if r.Place = i; r.ID == 0 {
			for free < len(p.owners) && p.owners[free] != 0 {
				free++
			}
			*last++
			p.give(r, *last, free)
		}
	}
	if p.Hosts == nil {
		p.Hosts = &Hosts{Name: p.Name, hosts: map[string]*Host{}}
		p.Hosts.current.Store(&p)
	}
	return &p
}

func (p *Plan) give(r *Rule, id, index int) {
	for len(p.owners) <= index {
		p.owners = append(p.owners, 0)
	}
	r.ID, r.Index = id, index
	p.owners[index], p.rules[id] = id, r
}

// Rule returns the rule of an ID; nil where p, which may be nil, has none.
func (p *Plan) Rule(id int) *Rule {
	if p == nil {
		return nil
	}
	return p.rules[id]
}

// breaker returns the Config of the breakers under p, which may be nil; nil for none.
func (p *Plan) breaker() *breaker.Config {
	if p == nil {
		return nil
	}
	return p.Breaker
}

// local returns the limit that budgets in memory have; nil for none.
func (p *Plan) local(id int) *law.Spec {
	if r := p.Rule(id); r != nil {
		return &r.Local
	}
	return nil
}

// owns reports whether the ID is that of one of p's rules, which may be nil, at the
// index.
func (p *Plan) owns(id, index int) bool {
	return p != nil && index < len(p.owners) && p.owners[index] == id
}

// Follows reports whether p, which may be nil, has all rules of old.
func (p *Plan) Follows(old *Plan) bool {
	return p != nil && !slices.ContainsFunc(old.Rules, func(r Rule) bool { return !p.owns(r.ID, r.Index) })
}

// RuleOf returns the rule that a budget of a store is of, by its name there, and the
// digest of its key; nil where p, which may be nil, has none.
func (p *Plan) RuleOf(budget string) (r *Rule, digest string) {
	stored, digest, _ := strings.Cut(budget, "/")
	if p != nil {
		for i := range p.Rules {
			if p.Rules[i].Stored == stored {
				return &p.Rules[i], digest
			}
		}
	}
	return nil, digest
}
