package desk

import (
	"context"
	"time"

	"github.com/headway-go/headway/internal/line"
	"github.com/headway-go/headway/internal/roster"
	"github.com/headway-go/headway/internal/storeline"
	"github.com/headway-go/headway/store"
)

// Units are units of one budget that were taken together: what a request started with, or a
// debt.
type Units struct {
	N      int64
	at     time.Duration    // when they began to count
	strict *storeline.Grant // not nil: they are of this start, and a store knows since when they count
	line   *line.Line       // nil: a store has them
	budget *line.Budget     // the same

	// The last change of N, which a store receives later; see Correct.
	unsent    *storeline.Receipt // what becomes of it; nil: that is known
	change    int64              // units that were spent; negative: given back
	left      int64              // of the budget afterwards
	leftKnown bool
}

// Taken returns the units that the request has started with under a claim. Strict ones count
// from Responded on.
func (k *Ticket) Taken(c *roster.Claim) Units {
	u := Units{N: c.Cost, at: k.At}
	switch {
	case k.stored == nil:
		if u.line, u.budget = &k.Host.Line, c.Budget; c.Rule.Limit.Strict {
			u.at = k.strictAt
		}
	case c.Rule.Limit.Strict:
		u.strict = k.stored.grant
	}
	return u
}

// countedFrom returns when u began to count. It waits for a store no longer than ctx.
func (u *Units) countedFrom(ctx context.Context) time.Duration {
	if u.strict != nil {
		return time.Duration(u.strict.RespondedAt(ctx))
	}
	return u.at
}

// Spend counts n units of a Ticket's only claim as used now. A negative n gives back the
// oldest units that still count. While the store is down they count in this process, if each
// process keeps to its share then. It returns what is left. The error is the context's, or why
// the store does not decide.
func (d *Desk) Spend(ctx context.Context, k *Ticket, n int64) (left int64, err error) {
	if d.store != nil {
		res, err := d.do(ctx, k, store.OpSpend, &k.Claims.All()[0], n, 0)
		switch {
		case err == nil:
			return res.Remaining[0], nil
		case err == ctx.Err():
			return 0, err
		case k.Plan.Down != roster.Local:
			return 0, d.why(err)
		}
	}
	u := k.spendLocal(n)
	return u.line.Remaining(u.budget), nil
}

// spendLocal counts n units of k's only claim in memory. Its budget may be forgotten
// meanwhile, and then the debt has to find the successor.
func (k *Ticket) spendLocal(n int64) Units {
	for {
		k.locate()
		k.openBudgets()
		b := k.Claims.All()[0].Budget
		if at, ok := k.Host.Line.Spend(n, b); ok {
			return Units{N: n, at: at, line: &k.Host.Line, budget: b}
		}
	}
}

// settled waits until it is known what has become of the changes of units, no longer than ctx. A
// change that the store has not received is undone.
func settled(ctx context.Context, units []Units) (all []Units) {
	for _, u := range units {
		if u.unsent == nil {
			all = append(all, u)
			continue
		}
		at, err := u.unsent.Wait(ctx)
		u.unsent = nil
		if u.change < 0 { // they were given back
			if err != nil {
				u.N -= u.change
			}
			all = append(all, u)
		} else if err == nil { // they were spent
			u.at = time.Duration(at)
			all = append(all, u)
		}
	}
	return all
}

// Correct makes n units of those that were taken under k's only claim, as far as it can, and
// returns them and by how many it has changed their number. The latest are given back first, unless
// they no longer count; missing ones become a debt. Where the store does not decide it stops with
// an error, and can be called again. With later, a store that is up receives it afterwards, unless
// units are strict.
func (d *Desk) Correct(ctx context.Context, k *Ticket, units []Units, n int64, later bool) (all []Units, changed int64, err error) {
	units = settled(ctx, units)
	missing := n
	for _, u := range units {
		missing -= u.N
	}
	for missing < 0 {
		last := len(units) - 1
		u := &units[last]
		n := min(-missing, u.N)
		if err := d.give(ctx, k, u, n, later); err != nil {
			return units, changed, err
		}
		u.N -= n
		missing, changed = missing+n, changed-n
		if u.N == 0 && last > 0 {
			units = units[:last]
		}
	}
	if missing == 0 {
		return units, changed, nil
	}
	u, err := d.spend(ctx, k, missing, later)
	if err != nil {
		return units, 0, err
	}
	return append(units, u), missing, nil
}

// give gives back n of units; see Correct.
func (d *Desk) give(ctx context.Context, k *Ticket, u *Units, n int64, later bool) error {
	if u.line != nil {
		u.line.Give(u.budget, u.at, n) // a budget that is forgotten no longer counted them
		return nil
	}
	if later && u.strict == nil && d.adjust(k, u, store.OpGive, n, u.at) {
		u.change = -n
		return nil
	}
	_, err := d.do(ctx, k, store.OpGive, &k.Claims.All()[0], n, u.countedFrom(ctx))
	return err
}

// spend counts n units as used now; see Correct.
func (d *Desk) spend(ctx context.Context, k *Ticket, n int64, later bool) (u Units, err error) {
	if d.store == nil {
		return k.spendLocal(n), nil
	}
	u.N, u.change = n, n
	if later && d.adjust(k, &u, store.OpSpend, n, 0) {
		return u, nil
	}
	res, err := d.do(ctx, k, store.OpSpend, &k.Claims.All()[0], n, 0)
	u.at = time.Duration(res.At)
	return u, err
}

// adjust has a store give back or spend n units for u, which were taken at an instant, and does
// not wait for it. It returns false where that cannot be.
func (d *Desk) adjust(k *Ticket, u *Units, kind store.OpKind, n int64, taken time.Duration) bool {
	need, ok := k.need(&k.Claims.All()[0], n, taken)
	if !ok {
		return false
	}
	l := d.storeLine(k.Plan, k.Name)
	defer l.Unuse()
	left, known := l.Left(need.Budget)
	if kind == store.OpSpend {
		n = -n
	}
	u.left, u.leftKnown = left+n, known
	u.unsent = l.Adjust(store.Op{Kind: kind, Needs: []store.Need{need}})
	return u.unsent != nil
}

// Left returns what is left of the budget that some units are of, under k's only claim: where
// their last change is unsent, as far as this process knows.
func (d *Desk) Left(ctx context.Context, k *Ticket, u *Units) int64 {
	switch {
	case u.line != nil:
		return u.line.Remaining(u.budget)
	case u.unsent != nil && u.leftKnown:
		return u.left
	}
	left, _ := d.Remaining(ctx, k)
	return left
}

// Remaining returns what is left of k's only claim. While the store is down it is what this
// process may use, or an error where requests are refused. See Spend for errors.
func (d *Desk) Remaining(ctx context.Context, k *Ticket) (int64, error) {
	if d.store != nil {
		res, err := d.do(ctx, k, store.OpRead, &k.Claims.All()[0], 0, 0)
		switch {
		case err == nil:
			return res.Remaining[0], nil
		case err == ctx.Err():
			return 0, err
		case k.Plan.Down == roster.Refuse:
			return 0, d.why(err)
		}
	}
	k.locate()
	k.openBudgets()
	return k.Host.Line.Remaining(k.Claims.All()[0].Budget), nil
}
