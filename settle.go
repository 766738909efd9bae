package headway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/headway-go/headway/internal/line"
	"github.com/headway-go/headway/internal/respbody"
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
	s, ok := respbody.Attached(resp).(*settlement)
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
	key   keyRef // kept
	cost  int64
	parts []part // that the cost is made of, the latest last
}

// A part is units taken together: what the request started with, or a debt.
type part struct {
	line   *line.Line    // nil: a store has it
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
			p := part{at: at, cost: c.cost}
			if v.far == nil {
				p.line, p.budget = &v.site.line, c.budget
			}
			s.items = append(s.items, settleItem{c.rule, v.t.keep(c.key), c.cost, []part{p}})
		}
	}
	return s
}

// fromHeaders settles what Rule.Settle reads. The caller has a response to read,
// whatever becomes of it. The events go to v.
func (s *settlement) fromHeaders(v *visit, resp *http.Response) {
	for i := range s.items {
		if r := s.items[i].rule; r.settle != nil {
			if cost, ok := r.settle(resp); ok && cost >= 0 {
				kept, _ := s.correct(&s.items[i], cost)
				if kept != nil {
					v.kept.list = append(v.kept.list, kept.list...)
				}
			}
		}
	}
}

func (s *settlement) settle(rule string, cost int64) error {
	s.mu.Lock()
	for i := range s.items {
		if s.items[i].rule.name == rule {
			kept, err := s.correct(&s.items[i], cost)
			s.mu.Unlock()
			s.t.tellKept(context.Background(), kept)
			return err
		}
	}
	s.mu.Unlock()
	return fmt.Errorf("headway: settle: no rule %q of policy %q that matched this request has a cost to settle", rule, s.policy.name)
}

// correct makes cost what the request has taken under a rule, as far as it can,
// and returns the events to report once s.mu is free. It holds s.mu even while a
// store works: only those wait for that who settle the same response.
func (s *settlement) correct(i *settleItem, cost int64) (*keptEvents, error) {
	ctx, before := context.Background(), i.cost
	v := visit{t: s.t, route: route{policy: s.policy, name: s.host}}
	v.keep()
	v.claims.add(claim{rule: i.rule, key: i.key})
	err := v.correct(ctx, i, cost)
	if err != nil {
		err = fmt.Errorf("headway: settle rule %q: %w", i.rule.name, err)
	}
	e := Event{Kind: EventSettle, Policy: s.policy.name, Host: s.host, Rule: i.rule.name, Cost: i.cost - before}
	if v.kept != nil && e.Cost != 0 {
		e.KeyDigest = s.t.digestOf(i.key)
		if last := &i.parts[len(i.parts)-1]; last.line != nil {
			e.Remaining = last.line.Remaining(last.budget)
		} else {
			e.Remaining, _ = v.left(ctx)
		}
		v.kept.list = append(v.kept.list, e)
	}
	return v.takeKept(), err
}

func (v *visit) correct(ctx context.Context, i *settleItem, cost int64) error {
	for cost < i.cost {
		p := &i.parts[len(i.parts)-1]
		n := min(i.cost-cost, p.cost)
		if p.line != nil {
			p.line.Give(p.budget, p.at, n) // a budget that is forgotten no longer counted them
		} else if _, err := v.t.store.do(ctx, v, store.OpGive, &v.claims.few[0], n, p.at); err != nil {
			return err
		}
		i.cost -= n
		if p.cost -= n; p.cost == 0 && len(i.parts) > 1 {
			i.parts = i.parts[:len(i.parts)-1]
		}
	}
	more := cost - i.cost
	if more == 0 {
		return nil
	}
	p := part{cost: more}
	if v.t.store != nil {
		res, err := v.t.store.do(ctx, v, store.OpSpend, &v.claims.few[0], more, 0)
		if err != nil {
			return err
		}
		p.at = time.Duration(res.At)
	} else {
		p.line, p.budget, p.at = v.spendNear(ctx, more)
	}
	i.parts, i.cost = append(i.parts, p), cost
	return nil
}
