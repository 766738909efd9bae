package headway

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/headway-go/headway/internal/line"
	"github.com/headway-go/headway/store"
)

// Settle corrects what the request that resp answers has cost under a rule,
// once the true cost is known from its body: what was taken too much comes back
// at once, to those in line first, and what was too little is a debt. Settling
// again replaces what was settled before. Units that no longer count by then
// are not given back.
//
// The rule is named as in the policy, a Limit by its text. It must have a Cost
// or a Settle, or be a Limit under a Call with a Cost; otherwise, and for a
// negative cost or a response that did not come from a Transport, Settle
// returns an error and changes nothing. While Config.Store is away it returns an
// error too, and can be called again. resp is the response that the client
// returned, not a copy. Any goroutine may settle it.
func Settle(resp *http.Response, rule string, cost int64) error {
	if cost < 0 {
		return fmt.Errorf("headway: settle rule %q: the cost is %d; it must be 0 or more", rule, cost)
	}
	if resp == nil {
		return errors.New("headway: settle: the response is nil")
	}
	s, ok := attached(resp).(*settlement)
	if !ok {
		return errors.New("headway: settle: nothing to settle with this response; it must come from a Transport, under a rule with a Cost or a Settle")
	}
	return s.settle(rule, cost)
}

// A settlement is what one request has taken under the rules whose cost may turn
// out to be another.
type settlement struct {
	t      *Transport
	policy *policy
	host   string

	mu    sync.Mutex // guards following fields
	items []settleItem
}

// A settleItem is what the request has taken under one rule so far.
type settleItem struct {
	rule  *rule
	key   string
	cost  int64
	parts []part // that the cost is made of, the latest last
}

// A part is units taken together: what the request started with, or a debt.
type part struct {
	line   *line.Line    // nil with a store
	budget *line.Budget  // the same
	at     time.Duration // when they began to count
	cost   int64
}

// settles reports whether the cost of a claim may turn out to be another.
func (c *claim) settles(call Call) bool {
	return c.rule.cost != nil || c.rule.settle != nil || c.rule.isLimit && call.Cost != 0
}

func (v *visit) settles(call Call) bool {
	for _, c := range v.claims.all() {
		if c.settles(call) {
			return true
		}
	}
	return false
}

// newSettlement returns the settlement of a request that was answered at an
// instant of its line.
func newSettlement(v *visit, call Call, answered time.Duration) *settlement {
	s := &settlement{t: v.t, policy: v.policy, host: v.name}
	for _, c := range v.claims.all() {
		if c.settles(call) {
			at := v.grant.At
			if c.rule.spec.Strict {
				at = answered
			}
			parts := []part{{at: at, cost: c.cost}}
			if v.far == nil {
				parts[0].line, parts[0].budget = v.site.line, c.budget
			}
			s.items = append(s.items, settleItem{c.rule, c.key, c.cost, parts})
		}
	}
	return s
}

// fromHeaders settles what Rule.Settle reads. When that panics the caller gets
// no response, so that nobody else could close its body.
func (s *settlement) fromHeaders(resp *http.Response) {
	over := false
	defer func() {
		if !over && resp.Body != nil {
			resp.Body.Close()
		}
	}()
	for i := range s.items {
		if r := s.items[i].rule; r.settle != nil {
			if cost, ok := r.settle(resp); ok && cost >= 0 {
				s.correct(&s.items[i], cost) // the caller has a response to read, whatever becomes of it
			}
		}
	}
	over = true
}

func (s *settlement) settle(rule string, cost int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.items {
		if s.items[i].rule.name == rule {
			return s.correct(&s.items[i], cost)
		}
	}
	return fmt.Errorf("headway: settle: no rule %q of policy %q that matched this request has a cost to settle", rule, s.policy.name)
}

func (s *settlement) correct(i *settleItem, cost int64) error {
	if s.t.store != nil {
		return s.correctFar(i, cost)
	}
	more := cost - i.cost
	i.cost = cost
	for more < 0 {
		p := &i.parts[len(i.parts)-1]
		n := min(-more, p.cost)
		p.line.Give(p.budget, p.at, n) // a budget that is forgotten no longer counted them
		more += n
		if p.cost -= n; p.cost == 0 && len(i.parts) > 1 {
			i.parts = i.parts[:len(i.parts)-1]
		}
	}
	// The budget is looked up again: it may have been forgotten meanwhile, and
	// then the debt has to find its successor.
	for more > 0 {
		site, _ := s.t.table.site(s.policy, s.host)
		b, _ := s.t.table.budget(site, nil, i.rule, i.key)
		if at, ok := site.line.Spend(more, b); ok {
			i.parts = append(i.parts, part{site.line, b, at, more})
			break
		}
	}
	return nil
}

// correctFar is correct by way of the store: one part of the correction after
// the other, as far as they go. s.mu is held meanwhile, which only those wait for
// who settle the same response.
func (s *settlement) correctFar(i *settleItem, cost int64) error {
	v := visit{t: s.t, route: route{policy: s.policy, name: s.host}}
	name := v.budgetName(i.rule, i.key)
	group, ss := s.policy.group(s.host), s.policy.sites
	l := s.t.store.client.Line(ss, group, ss.farSetting)
	defer l.Done()
	do := func(kind store.OpKind, n int64, taken time.Duration) (at time.Duration, err error) {
		needs, ok := s.t.store.need(ss, name, i.rule.place, n)
		if !ok {
			return 0, nil // the rule is no more
		}
		needs[0].Taken = int64(taken)
		res, err := l.Do(store.Op{Kind: kind, Group: group, Needs: needs}, kind == store.OpGive, kind == store.OpSpend)
		return time.Duration(res.At), err
	}
	for cost < i.cost {
		p := &i.parts[len(i.parts)-1]
		n := min(i.cost-cost, p.cost)
		if _, err := do(store.OpGive, n, p.at); err != nil {
			return fmt.Errorf("headway: settle rule %q: %w", i.rule.name, err)
		}
		i.cost -= n
		if p.cost -= n; p.cost == 0 && len(i.parts) > 1 {
			i.parts = i.parts[:len(i.parts)-1]
		}
	}
	if more := cost - i.cost; more > 0 {
		at, err := do(store.OpSpend, more, 0)
		if err != nil {
			return fmt.Errorf("headway: settle rule %q: %w", i.rule.name, err)
		}
		i.parts = append(i.parts, part{at: at, cost: more})
		i.cost = cost
	}
	return nil
}
