package storeline

import (
	"math"
	"slices"
	"time"

	"github.com/headway-go/headway/internal/line"
	"github.com/headway-go/headway/store"
)

// A Grant is a start. Its caller goes through these calls, each of them once:
//
//	Enter ──▶ Sent ──▶ Responded ──▶ Done ──▶ Release, where it holds a Slot
//	      └─▶ Cancel
//
// Until Responded, strict units are in flight for the store, and this process renews their
// lease. Until Done, the start counts in InFlight: what a response announces is compared with
// what the server may not have counted. Until Release it holds its in-flight slot, which is
// when the body of its response is closed.
type Grant struct {
	At         store.Instant // of the store's clock
	Local      time.Time     // the same by awake.Now, when this process received it
	Waited     time.Duration
	UnderPause bool // a pause held once, which the request's success ends; see store.OpSuccess
	Slot       bool // it holds an in-flight slot
	Pass       line.Pass

	take     store.Op // what it has taken
	left     []int64  // under each need of take, after the start
	marks    []store.Mark
	before   int64 // how many requests were in flight before it
	ask      *Ask
	w        *waiter   // in the chain until Sent; nil: it never was
	reserved *reserved // what it has started with; nil: the store was asked
	strict   bool      // it has strict units in flight; written under the line's mu
	ended    *Receipt  // of these, since Responded; nil: there are none
	renew    *time.Timer
}

// grantLocked starts w, for which op has taken units. A gate may have shut while the store was
// working. Then the units are given back, and w is refused, or waits on where the gate waits
// for requests in flight. The same units are given back for a w that has left.
func (l *Line) grantLocked(w *waiter, op *store.Op, res *store.Result, now time.Time) {
	w.class.due = time.Time{}
	g := &Grant{At: res.At, Local: now, Waited: now.Sub(w.arrived), UnderPause: res.UnderPause, strict: res.Strict, take: *op, left: res.Remaining, marks: res.Marks, ask: w.ask, w: w}
	if w.left {
		l.removeLocked(w)
		l.giveBackLocked(g)
		return
	}
	if a := w.ask; a.Gate != nil {
		if ok, r := a.Local.PassGate(a.Gate, &g.Pass); !ok {
			l.giveBackLocked(g)
			if r != nil {
				l.refuseLocked(w, l.gateRefusalLocked(r, a.Gate))
			}
			return
		}
	}
	l.detachLocked(w)
	g.before = int64(len(l.flights))
	l.addFlightLocked(g)
	if g.strict {
		g.renew = time.AfterFunc(store.StrictLease/3, func() { l.renew(g) })
	}
	w.grant = g
	l.wakeLocked(w)
}

// Remaining returns what the start has left of a budget; math.MaxInt64 where it took nothing of
// a limit.
func (g *Grant) Remaining(budget string) int64 {
	for i, n := range g.take.Needs {
		if n.Budget == budget {
			return g.left[i]
		}
	}
	return math.MaxInt64
}

// Before returns how many units of requests like this one, if it needs cost of them, may have
// been in flight before it.
func (g *Grant) Before(cost int64) int64 { return g.before * cost }

// Mark returns what an announced limit, of a budget or an audience, had counted after the
// start; zero where it was not known then.
func (g *Grant) Mark(where string, key line.AnnouncedKey) store.Mark {
	for _, m := range g.marks {
		if m.Audience == where && m.Name == key.Name && m.Window == key.Window {
			return m
		}
	}
	return store.Mark{}
}

// addFlightLocked counts g as in flight, and takes a slot where there is a cap. A slot is a use
// of the line, since Release comes long after the request has forgotten it. g.Slot remembers
// whether there was a cap: the plan may have another one by then.
func (l *Line) addFlightLocked(g *Grant) {
	if l.plan().InFlight > 0 && !g.ask.NoSlot {
		g.Slot = true
		l.slots++
		l.use()
	}
	l.flights[g] = true
}

// Release gives back an in-flight slot.
func (l *Line) Release() {
	l.mu.Lock()
	l.slots--
	l.kickLocked()
	l.mu.Unlock()
	l.Unuse()
}

// Sent has the next start of the chain go on: the caller is about to send.
func (l *Line) Sent(g *Grant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unchainLocked(g.w)
}

// Cancel gives back a start that was not sent.
func (l *Line) Cancel(g *Grant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cancelLocked(g)
}

// A reserved start goes back to the others of its batch, as if it had not been used, unless
// the batch has been given back: then its unit counts as used by what was reported.
func (l *Line) cancelLocked(g *Grant) {
	l.unchainLocked(g.w)
	g.endRenewalLocked()
	delete(l.flights, g)
	if a := g.ask; a.Gate != nil {
		a.Local.ReturnPass(&g.Pass)
	}
	if g.Slot {
		g.Slot = false
		l.slots--
		defer l.Unuse()
	}
	if p := g.reserved; p != nil && !p.over {
		p.left++
		p.used--
		return
	}
	l.giveBackLocked(g)
}

// giveBackLocked has the store take back what g has taken. Requests in line may start with it.
func (l *Line) giveBackLocked(g *Grant) {
	if g.reserved != nil {
		g.At = g.reserved.last // as it was reported
	}
	l.queueLocked(&operation{op: giveOp(&g.take, g.At), sooner: true})
}

// renew reports to the store, three times in a lease, that the strict units of g are still in
// flight. A process that is gone renews nothing, and its units return after the lease.
func (l *Line) renew(g *Grant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !g.strict {
		return
	}
	l.queueLocked(&operation{op: store.Op{Kind: store.OpRenew, Group: g.take.Group, ID: g.take.ID, Needs: g.take.Needs}})
	g.renew.Reset(store.StrictLease / 3)
}

func (g *Grant) endRenewalLocked() {
	if g.strict = false; g.renew != nil {
		g.renew.Stop()
	}
}

// Done notes that what the response announces has been noted, or that there is none, and has it
// sent. From then on the request does not count as in flight.
func (l *Line) Done(g *Grant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.flights, g)
	l.flushLocked()
}

// InFlight returns how many units of a budget, or requests of an audience, are granted or
// reserved and not done, without those of own. The server may not have counted them when it
// sent the response to own, so that what it announces as left does not allow for them.
func (l *Line) InFlight(name string, own *Grant) (sum int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	add := func(op *store.Op, starts int64) {
		for _, n := range op.Needs {
			if n.Budget == name {
				sum += starts * n.Cost
			}
		}
		if slices.Contains(op.Audiences, name) {
			sum += starts
		}
	}
	for g := range l.flights {
		if g != own {
			add(&g.take, 1)
		}
	}
	for _, p := range l.reserved {
		add(&p.op, p.left)
	}
	return sum
}

// Served notes that a request without a limit, which started then, has succeeded.
func (l *Line) Served(started store.Instant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recent.Add(started)
}

// Found returns how many such requests, of those started in the second that ends at an
// instant, have succeeded in this process: the rate at which it may restart after a pause.
func (l *Line) Found(before store.Instant) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.recent.Before(before)
}
