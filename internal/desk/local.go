package desk

import (
	"context"
	"errors"
	"time"

	"github.com/headway-go/headway/internal/digest"
	"github.com/headway-go/headway/internal/line"
	"github.com/headway-go/headway/internal/roster"
)

// locate finds the host and, for a request, its gate.
func (k *Ticket) locate() {
	if k.Host == nil || k.located { // not known yet, or forgotten meanwhile
		var host, gate bool
		k.Host, host = k.desk.Roster.Host(k.Plan, k.Name)
		if k.Gate = nil; !k.Quota {
			k.Gate, gate = k.desk.Roster.Gate(k.Host, k.Plan, k.Name)
		}
		k.Overflows = k.Overflows || host || gate
	}
	k.located = true
	k.Host.Touch()
	if k.Gate != nil {
		k.Gate.Touch()
	}
}

// openBudgets finds the budgets of the claims.
func (k *Ticket) openBudgets() {
	k.needs.clear()
	claims := k.Claims.All()
	for i := range claims {
		c := &claims[i]
		var overflows bool
		c.Budget, overflows = k.desk.Roster.Budget(k.Host, k.Gate, claims[:i], c.Rule, c.Key)
		k.Overflows = k.Overflows || overflows
		if c.Cost > 0 {
			k.needs.Add(line.Need{B: c.Budget, Cost: c.Cost})
		}
	}
	k.chooseAudience()
	k.findResource()
}

// enterLocal is Enter in memory, in the successor where the line has been forgotten.
func (d *Desk) enterLocal(ctx context.Context, k *Ticket) (*line.Refusal, error) {
	for {
		if k.locate(); k.Overflows {
			return nil, ErrAgain
		}
		if k.lacksRoute() {
			return nil, ErrRoute
		}
		if k.Gate != nil && !k.Gate.Closed() { // the first look, before anything is looked up
			if r, err := k.Host.Line.CheckGate(k.Gate.Side()); err != nil {
				continue
			} else if r != nil {
				return r, nil
			}
		}
		if k.openBudgets(); k.Overflows {
			return nil, ErrAgain
		}
		own := len(k.needs.All())
		ask := line.Ask{
			Needs: k.needs.All(), MaxWait: k.MaxWait, NoSlot: k.Quota, Who: k.who(), Key: k.identity.of,
			InFlight: !k.Quota && k.Plan.Listens,
		}
		grant, needs, refusal, err := k.Host.Line.Enter(ctx, &ask, k.Gate.Side(), k.Journal)
		if errors.Is(err, line.ErrRetired) {
			continue
		}
		k.announced = len(needs) > own
		k.needs.set(needs)
		k.grant, k.granted = grant, refusal == nil && err == nil
		k.At, k.Waited = grant.At, k.before+grant.Waited
		return refusal, err
	}
}

func (d *Desk) delayLocal(k *Ticket) (time.Duration, error) {
	if k.locate(); k.lacksRoute() {
		return 0, ErrRoute
	}
	k.openBudgets()
	r := k.Host.Line.Delay(&line.Ask{Needs: k.needs.All(), NoSlot: k.Quota, Who: k.who()}, k.Gate.Side())
	if r == nil {
		return 0, nil
	}
	return r.RetryAfter, nil
}

// retry does what needs the host, the claims' budgets and the request's audience, again with
// their successors where they have been forgotten meanwhile.
func (k *Ticket) retry(do func() error) error {
	for {
		err := do()
		if errors.Is(err, line.ErrNoAudience) && k.named != nil {
			err = k.openResource()
		} else if errors.Is(err, line.ErrNoAudience) {
			err = k.openAudience()
		} else if !errors.Is(err, line.ErrRetired) {
			return err
		}
		if err != nil {
			k.locate()
			k.openBudgets()
			if k.named != nil {
				k.learn(k.named)
			}
		}
	}
}

// Budgets returns the budgets of which every request to a host takes one unit, for Start; nil
// where they are in a store.
func (d *Desk) Budgets(plan *roster.Plan, h *roster.Host, g *roster.Gate) []*line.Budget {
	if d.store != nil {
		return nil
	}
	budgets := make([]*line.Budget, len(plan.Rules))
	for i := range plan.Rules {
		budgets[i], _ = d.Roster.Budget(h, g, nil, &plan.Rules[i], digest.Key{})
	}
	return budgets
}

// Start is Enter for a request that takes one unit of each of budgets, if it can start at once
// and its context does not end meanwhile. With listens it is in flight until Line.DoneStart.
func Start(ctx context.Context, h *roster.Host, g *roster.Gate, budgets []*line.Budget, listens bool, marks *line.Marks) (at time.Duration, p line.Pass, ok bool) {
	gate := g.Side()
	if !gate.Free() {
		return 0, line.Pass{}, false
	}
	at, p, ok = h.Line.Start(budgets, gate, listens, marks)
	if ok && ctx.Err() != nil {
		h.Line.UndoStart(budgets, listens, at)
		return 0, line.Pass{}, false
	}
	h.Touch()
	if g != nil {
		g.Touch()
	}
	return at, p, ok
}

// Started makes k the Ticket of a request that Start has started with a unit of each of budgets.
// With counted it still counts as in flight. marks are what Start has noted.
func (k *Ticket) Started(h *roster.Host, g *roster.Gate, budgets []*line.Budget, at time.Duration, counted bool, marks *line.Marks) {
	marks.Needs(k.needs.Add)
	k.Host, k.Gate, k.located, k.Sent, k.At = h, g, true, true, at
	k.grant.At, k.grant.InFlight = at, counted
	for i := range k.Plan.Rules {
		k.Claims.Add(roster.Claim{Rule: &k.Plan.Rules[i], Cost: 1, Budget: budgets[i]})
	}
}
