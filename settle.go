package headway

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
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
// returns an error and changes nothing. resp is the response that the client
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
	at     time.Duration // when the units began to count

	mu    sync.Mutex // guards following fields
	items []settleItem
}

type settleItem struct {
	rule *rule
	key  string
	cost int64
}

// settles reports whether the cost of a claim may turn out to be another.
func (c *claim) settles(call Call) bool {
	return c.rule.cost != nil || c.rule.settle != nil || c.rule.isLimit && call.Cost != 0
}

func (v *visit) settles(call Call) bool {
	for i := range v.claims {
		if v.claims[i].settles(call) {
			return true
		}
	}
	return false
}

func newSettlement(v *visit, call Call, at time.Duration) *settlement {
	s := &settlement{t: v.t, policy: v.policy, host: v.host, at: at}
	for i := range v.claims {
		if c := &v.claims[i]; c.settles(call) {
			s.items = append(s.items, settleItem{c.rule, c.key, c.cost})
		}
	}
	return s
}

// fromHeaders settles what Rule.Settle reads.
func (s *settlement) fromHeaders(resp *http.Response) {
	for i := range s.items {
		if r := s.items[i].rule; r.settle != nil {
			if cost, ok := r.settle(resp); ok && cost >= 0 {
				s.correct(&s.items[i], cost)
			}
		}
	}
}

func (s *settlement) settle(rule string, cost int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.items {
		if s.items[i].rule.name == rule {
			s.correct(&s.items[i], cost)
			return nil
		}
	}
	return fmt.Errorf("headway: settle: no rule %q of policy %q that matched this request has a cost to settle", rule, s.policy.name)
}

func (s *settlement) correct(i *settleItem, cost int64) {
	more := cost - i.cost
	i.cost = cost
	if more == 0 {
		return
	}
	// The budget is looked up again: it may have been forgotten meanwhile, and
	// then a debt has to find its successor.
	for done := false; !done; {
		site, _ := s.t.table.site(s.policy, s.host)
		b, _ := s.t.table.budget(site, i.rule, i.key)
		if more > 0 {
			done = site.line.Spend(more, b)
		} else {
			done = site.line.Give(b, s.at, -more)
		}
	}
}
