package desk

import (
	"cmp"
	"strings"
	"time"

	"github.com/headway-go/headway/internal/law"
	"github.com/headway-go/headway/internal/line"
	"github.com/headway-go/headway/internal/roster"
	"github.com/headway-go/headway/internal/storeline"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/store"
)

// The store does not decide while it is down, nor for a request that needs a row which cannot be
// read.

// rowRetry is the time after which a request may try again that was refused because a
// row cannot be read.
const rowRetry = time.Second

// isDown reports whether the error of a storeline is that the store does not decide.
func isDown(err error) bool {
	_, row := err.(*store.RowError)
	return row || err == storeline.ErrDown
}

// why returns why the store does not decide, from the error of the request that found out.
func (d *Desk) why(err error) error {
	if row, ok := err.(*store.RowError); ok {
		return row
	}
	if err := d.store.Down(); err != nil {
		return err
	}
	return storeline.ErrDown // it is up again by now, but this request goes on as it began
}

// retryIn returns the time until the store may decide again after that error.
func (d *Desk) retryIn(err error) time.Duration {
	if _, row := err.(*store.RowError); row {
		return rowRetry
	}
	return d.store.ProbeIn()
}

// fallBack refuses a request for which the store does not decide, or has it enter again, in
// memory, with what is left of its wait budget.
func (d *Desk) fallBack(k *Ticket, err error) (*line.Refusal, error) {
	d.leaveStore(k, err)
	if k.Plan.Down == roster.Refuse {
		return &line.Refusal{Reason: line.ByStore, RetryAfter: d.retryIn(err), AtLeast: true, Need: -1, Cause: k.Down}, nil
	}
	if k.before = k.Waited; k.MaxWait >= 0 {
		k.MaxWait = max(0, k.MaxWait-k.before)
	}
	return nil, ErrAgain
}

// leaveStore has k go on in this process's memory.
func (d *Desk) leaveStore(k *Ticket, err error) {
	k.Down = d.why(err)
	k.close()
	if k.Plan.Down == roster.Admit {
		k.Claims.clear()
		k.Exact = false
	}
}

// Prepare completes a plan that is not in force yet: what this process's memory holds each rule
// to, and what lines of a store need to know.
func (d *Desk) Prepare(p *roster.Plan) {
	if d.store != nil {
		p.InStore = &storeline.Plan{Limits: map[string]limiter.Limit{}, Waiting: p.MaxWaiting, InFlight: p.MaxInFlight, Batch: p.Batch}
	}
	for i := range p.Rules {
		r := &p.Rules[i]
		if r.Local = r.Limit; p.InStore != nil {
			r.Local = share(r.Limit, cmp.Or(p.Share, 0.25))
			p.InStore.Limits[r.Stored] = limitOf(&r.Limit)
		}
	}
}

// share returns the part of a limit that a process may use while the store is down.
func share(l law.Spec, of float64) law.Spec {
	part := func(n int64) int64 {
		if n <= 0 {
			return n
		}
		return max(1, int64(float64(n)*of))
	}
	l.N, l.Burst = part(l.N), part(l.Burst)
	return l
}

// A Notice is something that has happened to the store, to be reported once; of a Row, with
// the budget that it holds, or whose pauses and limits, as far as that is known; of a pause that
// the store has made longer, with how long it lasts from now.
type Notice struct {
	storeline.Notice
	Policy, Host, Rule, KeyDigest, Resource string
	Pause                                   *line.Pause
	Lasts                                   time.Duration
}

// Notices returns, once and to one caller, what has happened to the store.
func (d *Desk) Notices() (list []Notice) {
	if d.store == nil {
		return nil
	}
	for _, n := range d.store.Notices() {
		own := Notice{Notice: n}
		switch {
		case n.Row != nil:
			d.nameRow(&own)
		case n.Raised != nil && !n.Raised.News.(*longer).follow(&own):
			continue
		}
		list = append(list, own)
	}
	return list
}

// nameRow names what the row of a notice holds.
func (d *Desk) nameRow(n *Notice) {
	group, name := n.Row.Group, n.Row.Name
	for _, p := range *d.plans.Load() {
		if strings.HasPrefix(group, p.Group) {
			n.Policy, n.Host = p.Name, hostOf(group)
			if r, digest := p.RuleOf(name); r != nil {
				n.Rule, n.KeyDigest = r.Name, digest
			}
		}
	}
	if first, _, _ := strings.Cut(name, "/"); first == all {
		n.KeyDigest = digestsOf(name)
	}
}
