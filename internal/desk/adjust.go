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

// Correct makes n units of those that were taken under k's only claim, as far as it can, and
// returns them and by how many it has changed their number. The latest are given back first, unless
// they no longer count; missing ones become a debt. Where the store does not decide it stops with
// an error, and can be called again.
func (d *Desk) Correct(ctx context.Context, k *Ticket, units []Units, n int64) (all []Units, changed int64, err error) {
	missing := n
	for _, u := range units {
		missing -= u.N
	}
	for missing < 0 {
		last := len(units) - 1
		u := &units[last]
		n := min(-missing, u.N)
		if u.line != nil {
			u.line.Give(u.budget, u.at, n) // a budget that is forgotten no longer counted them
		} else if _, err := d.do(ctx, k, store.OpGive, &k.Claims.All()[0], n, u.countedFrom(ctx)); err != nil {
			return units, changed, err
		}
		u.N -= n
		missing, changed = missing+n, changed-n
		if u.N == 0 && last > 0 {
			units = units[:last]
		}
	}
	switch {
	case missing == 0:
		return units, changed, nil
	case d.store == nil:
		return append(units, k.spendLocal(missing)), missing, nil
	}
	res, err := d.do(ctx, k, store.OpSpend, &k.Claims.All()[0], missing, 0)
	if err != nil {
		return units, 0, err
	}
	return append(units, Units{N: missing, at: time.Duration(res.At)}), missing, nil
}

// Left returns what is left of the budget that some units are of, under k's only claim.
func (d *Desk) Left(ctx context.Context, k *Ticket, u *Units) int64 {
	if u.line != nil {
		return u.line.Remaining(u.budget)
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
