package headway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/headway-go/headway/internal/desk"
	"github.com/headway-go/headway/internal/digest"
	"github.com/headway-go/headway/internal/respbody"
	"github.com/headway-go/headway/internal/roster"
	"github.com/headway-go/headway/limiter"
)

// Settle corrects what the request behind resp has cost under a rule, once the true
// cost is known from the body. Excess units are returned immediately, to requests in
// line first; missing units become a debt. Settling again replaces the previous
// correction. Units that no longer count by then are not returned.
//
// The rule is named as in the policy, a Limit by its text. It must have a Cost
// or a Settle, or be a Limit under a Call with a Cost; otherwise, and for a
// negative cost or a response that did not come from a Transport, Settle
// returns an error and changes nothing. While Config.Store is down it also returns an
// error, and can be called again. resp is the response that the client returned, not a
// copy. Any goroutine may settle it.
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
	key   digest.Key   // kept
	units []desk.Units // the latest last
}

// settles reports whether the cost of a claim may turn out to be another.
func (r *rule) settles(call Call) bool {
	return r.of.Cost != nil || r.of.Settle != nil || r.isLimit && call.Cost != 0
}

// newSettlement returns the settlement of a request that has its response.
func newSettlement(v *request, call Call) *settlement {
	s := &settlement{t: v.t, policy: v.policy, host: v.name}
	claims := v.Claims.All()
	for i := range claims {
		c := &claims[i]
		if r := &v.policy.rules[c.Rule.Place]; r.settles(call) {
			s.items = append(s.items, settleItem{r, v.t.digests.Keep(c.Key), []desk.Units{v.Taken(c)}})
		}
	}
	return s
}

// fromHeaders settles what Rule.Settle reads. The caller has a response to read,
// whatever becomes of it. The events go to v.
func (s *settlement) fromHeaders(v *request, resp *http.Response) {
	for i := range s.items {
		if r := s.items[i].rule; r.of.Settle != nil {
			if cost, ok := r.of.Settle(resp); ok && cost >= 0 {
				kept, _ := s.correct(&s.items[i], cost, true)
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
		if s.items[i].rule.Name == rule {
			kept, err := s.correct(&s.items[i], cost, false)
			s.mu.Unlock()
			s.t.reportKept(context.Background(), kept)
			return err
		}
	}
	s.mu.Unlock()
	return fmt.Errorf("headway: settle: no rule %q of policy %q that matched this request has a cost to settle", rule, s.policy.name)
}

// correct makes cost what the request has taken under a rule, as far as it can,
// and returns the events to report once s.mu is free. It holds s.mu even while a
// store works: only other calls that settle the same response wait for that. With later a store
// receives it afterwards.
func (s *settlement) correct(i *settleItem, cost int64, later bool) (*keptEvents, error) {
	ctx := context.Background()
	v := request{t: s.t, route: route{policy: s.policy, name: s.host}}
	v.Quota = true
	v.Claim(roster.Claim{Rule: i.rule.Rule, Key: i.key})
	v.open(limiter.Never)
	v.keep()
	units, changed, err := s.t.desk.Correct(ctx, &v.Ticket, i.units, cost, later)
	i.units = units
	if v.opened(ctx); err != nil {
		err = fmt.Errorf("headway: settle rule %q: %w", i.rule.Name, err)
	}
	e := Event{Kind: EventSettle, Policy: s.policy.name, Host: s.host, Rule: i.rule.Name, Cost: changed}
	if v.kept != nil && changed != 0 {
		e.KeyDigest = s.t.digests.Of(i.key)
		e.Remaining = s.t.desk.Left(ctx, &v.Ticket, &units[len(units)-1])
		v.kept.list = append(v.kept.list, e)
	}
	return v.takeKept(), err
}
