// Package desk stands between a request and its budgets. Whether these are in this process's
// memory or in a store is known here and nowhere else.
//
// A request comes with a Ticket: which rules claim how much for it, and how long it may wait.
//
//	defer ticket.Return(ctx)                   gives back what it holds, however it ends
//	refusal, err := desk.Enter(ctx, &ticket)   it waits for its turn, or is refused
//	ticket.Send()                              the next one due at this instant may go
//	ticket.Responded(ctx)                      strict units count from this instant on
//	ticket.Pause, ticket.Limit                 what the response announces is in force
//	ticket.Done()                              it is no longer in flight; a store receives all that
//	ticket.Record(result)                      the breaker has the result
//	release := ticket.Release()                gives the slot back when the body is closed
//
// An example: a limit of 2 per second, MaxInFlight 1 and a breaker, in memory. Requests A and B
// arrive at 0 s, C at 0.1 s.
//
//	0.0 s  A enters: a unit and the slot are free, and are taken under one lock. It is sent.
//	0.0 s  B enters and waits: a unit is free, and the slot is not.
//	0.1 s  C enters and waits behind B.
//	0.3 s  A's response is a 503 with a Retry-After of 5 s. Pause: nothing starts before 5.3 s.
//	       Done, and then Record: the breaker has the result, and ignores a throttle.
//	0.4 s  A's body is closed, and its slot is free. B is next, and the pause holds it.
//	5.3 s  The pause is over, and B starts. Its response has no body: the slot is free.
//	5.8 s  C starts: after a pause requests start at the interval of the limit.
//
// If the result had opened the breaker, B and C would have been refused at 0.3 s. Over a store the
// units and the pause are the store's; the slot and the breaker are this process's. If the store
// goes down, B and C leave its line: by Plan.Down they enter again in memory, with a share
// of the limit or none, or are refused.
//
// Invariants:
//
//   - A pause is raised before the breaker gets the result, and the breaker gets the result
//     before the slot is free. So no request starts in between by what held before.
//   - Nothing is reported from here. What is to be reported is left in the Ticket, on a Gate or
//     in Notices. The caller reports it while it holds neither a lock nor a turn.
//   - A request for which the store does not decide has left it for good: it is refused, or goes
//     on in memory with what is left of its wait budget.
//   - In memory neither a Ticket nor what it points to is on the heap: a request that does not
//     wait allocates nothing.
package desk

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/headway-go/headway/breaker"
	"github.com/headway-go/headway/internal/awake"
	"github.com/headway-go/headway/internal/line"
	"github.com/headway-go/headway/internal/roster"
	"github.com/headway-go/headway/internal/storeline"
	"github.com/headway-go/headway/store"
)

// A Desk has the budgets of all requests of a Transport. Any number of goroutines may use it.
type Desk struct {
	Roster *roster.Roster    // assigned once
	store  *storeline.Client // nil: there is no store; its owners are *roster.Hosts; assigned once
	plans  atomic.Pointer[[]*roster.Plan]
}

// New returns a Desk over a store; nil is none.
func New(r *roster.Roster, s store.Store) *Desk {
	d := &Desk{Roster: r}
	if s != nil {
		d.store = &storeline.Client{Store: s, Max: r.Max}
		r.Recheck = d.recheck
	}
	return d
}

// Configure puts plans in force in place of those before, which may be none. Requests in line
// are planned again. Calls must not overlap.
func (d *Desk) Configure(plans []*roster.Plan) {
	before := d.plans.Load()
	if before == nil {
		d.plans.Store(&plans)
		return
	}
	gone := false
	for _, old := range *before {
		var next *roster.Plan
		if i := slices.IndexFunc(plans, func(p *roster.Plan) bool { return p.Hosts == old.Hosts }); i >= 0 {
			next = plans[i]
		}
		old.Hosts.Set(next)
		gone = gone || !next.Follows(old)
	}
	d.plans.Store(&plans) // after the hosts: Status finds no budget of a rule under another rule's name
	if gone {
		d.Roster.Sweep()
	}
	if d.store != nil {
		d.store.Reconfigure()
	}
}

// An Ask is what a request needs to start, and how long it may wait for it.
type Ask struct {
	Plan    *roster.Plan
	Name    string             // of its host, canonical
	Claims  List[roster.Claim] // of the rules that match, narrow before wide
	MaxWait time.Duration      // negative: none
	Quota   bool               // it is no request: it takes no slot and has no breaker
	Exact   bool               // its cost may be corrected
	Journal *line.Journal      // what holds it up is noted here; nil: nowhere
}

// A Ticket is an Ask and what becomes of it. It is used by one goroutine.
type Ticket struct {
	Ask
	Host *roster.Host // in memory; at first the one that the caller remembers, or nil
	Gate *roster.Gate // of Host; nil: no breaker
	// Overflows is true where an overflow entry begins to be used, which is to be reported.
	Overflows bool
	Down      error // why the store does not decide, though there is one
	Waited    time.Duration
	At        time.Duration // the start, by the clock of its line or of the store
	Sent      bool          // see Send

	desk     *Desk
	needs    List[line.Need] // what the claims take, without those that cost nothing
	identity identity
	grant    line.Grant
	stored   *stored       // its way through the store; nil: in memory
	before   time.Duration // how long it waited in a store's line that it has left
	strictAt time.Duration // from when on its strict units count; see Responded

	// See SetRoute and DrawOn.
	route    uint64           // a hash; zero: none
	resource *roster.Resource // what it draws on by its route; nil: that is not known
	named    *roster.Resource // what its response is about; nil: the identity
	namedBy  uint64           // the route that draws on it

	located, granted, handed, responded bool
	routed                              bool // SetRoute was called
	announced                           bool // its needs have what a response has brought
}

// A List keeps its first few elements in place, so that what holds it stays on the stack: a
// slice of an array beside it would bring both to the heap.
type List[T any] struct {
	few  [4]T
	n    int // how many of few are in use
	more []T // all elements, once they are too many for few
}

// All returns the elements.
func (l *List[T]) All() []T {
	if l.more != nil {
		return l.more
	}
	return l.few[:l.n]
}

// Add appends an element.
func (l *List[T]) Add(v T) {
	if l.n < len(l.few) {
		l.few[l.n] = v
		l.n++
		return
	}
	if l.more == nil {
		l.more = append(l.more, l.few[:]...)
	}
	l.more = append(l.more, v)
}

// set replaces the elements by those of a slice that All has returned and others
// may have appended to.
func (l *List[T]) set(s []T) {
	if len(s) <= len(l.few) {
		l.n, l.more = copy(l.few[:], s), nil
		return
	}
	l.more = slices.Clone(s)
}

func (l *List[T]) clear() { l.n, l.more = 0, nil }

type errAgain struct{}

func (errAgain) Error() string { return "desk: report, and enter again" }

// ErrAgain is what Enter returns where there is something to report before the request waits:
// the caller reports it and enters again.
var ErrAgain error = errAgain{}

// Open begins a Ticket of a request, or of a Quota, under a plan at a host, whose canonical name
// is given.
func (d *Desk) Open(k *Ticket, p *roster.Plan, name string) { k.desk, k.Plan, k.Name = d, p, name }

// Enter waits until the request may start, and takes what it needs; or it returns a refusal, the
// plain error of a context that is over, ErrAgain or ErrRoute. Those due at one instant return one after another,
// each when the one before it hands over. Return must follow in any case.
func (d *Desk) Enter(ctx context.Context, k *Ticket) (*line.Refusal, error) {
	if d.store == nil || k.Down != nil {
		return d.enterLocal(ctx, k)
	}
	refusal, err := d.enterStore(ctx, k)
	if isDown(err) {
		return d.fallBack(k, err)
	}
	return refusal, err
}

// Delay returns how long the request would wait if it arrived now; see Enter. It takes nothing. The
// error is the context's, or, under roster.Refuse, that of a store that is down: then the time is
// until the next attempt to reach the store.
func (d *Desk) Delay(ctx context.Context, k *Ticket) (time.Duration, error) {
	if d.store != nil {
		wait, err := d.delayStore(ctx, k)
		switch {
		case err == nil || err == ctx.Err() || err == ErrRoute:
			return wait, err
		case k.Plan.Down == roster.Refuse:
			return d.retryIn(err), d.why(err)
		}
		d.leaveStore(k, err)
	}
	return d.delayLocal(k)
}

// Need returns the claim of the need with an index, or nil.
func (k *Ticket) Need(index int) *roster.Claim {
	claims := k.Claims.All()
	for i := range claims {
		if claims[i].Cost <= 0 {
			continue
		}
		if index == 0 {
			return &claims[i]
		}
		index--
	}
	return nil
}

// HandOver lets the requests go on that start after this one. The second time it does nothing.
func (k *Ticket) HandOver() {
	if !k.granted || k.handed {
		return
	}
	k.handed = true
	if k.stored != nil {
		k.stored.line.Sent(k.stored.grant)
		return
	}
	k.Host.Line.Sent(&k.grant)
}

// Send is called when the request is about to be sent, or when a Quota's units are its own.
func (k *Ticket) Send() {
	k.HandOver()
	k.Sent = true
}

// Cancel gives back a start that was not sent, if there is one.
func (k *Ticket) Cancel() {
	if !k.granted || k.Sent {
		return
	}
	k.granted = false
	if k.stored != nil {
		k.stored.line.Cancel(k.stored.grant)
		return
	}
	k.Host.Line.Cancel(&k.grant, k.needs.All())
}

// Remaining returns how many units a claim has left; over a store as it was at the start.
func (k *Ticket) Remaining(c *roster.Claim) int64 {
	if k.stored != nil {
		return k.stored.grant.Remaining(k.budget(c))
	}
	return k.Host.Line.Remaining(c.Budget)
}

// Responded is called when the base transport has returned: strict units count from now on. It
// waits for a store, no longer than ctx, where that has not received a lot already.
func (k *Ticket) Responded(ctx context.Context) {
	k.responded = true
	switch {
	case k.stored != nil:
		k.stored.line.Responded(ctx, k.stored.grant)
	case line.Strict(k.needs.All()):
		k.strictAt = k.Host.Line.Responded(k.needs.All())
	}
}

// Done is called when what the response announces is in force, or when there is no response: the
// request is no longer in flight.
func (k *Ticket) Done() {
	if k.stored != nil {
		k.stored.line.Done(k.stored.grant)
		return
	}
	k.Host.Line.Done(&k.grant, k.needs.All())
}

// Record reports how the request has ended to its breaker, and then lets others start. The
// caller reports the changes of Gate afterwards, and those of late, which is not nil where the
// host has been forgotten meanwhile. The second time it does nothing.
func (k *Ticket) Record(result breaker.Result) (late *roster.Gate) {
	if k.grant.Pass.Ticket == nil {
		return nil
	}
	return k.desk.Record(k.Plan, k.Name, k.Host, k.Gate, &k.grant.Pass, result)
}

// Record is Ticket.Record for a request without a Ticket. Then p is used up.
func (d *Desk) Record(plan *roster.Plan, name string, h *roster.Host, g *roster.Gate, p *line.Pass, result breaker.Result) (late *roster.Gate) {
	roster.Record(p, result)
	failed := result.Outcome == breaker.Failure
	if p.HoldsPlace() || failed {
		used := h.Line.EndPass(p)
		if d.store != nil {
			d.recheck(g)
		}
		if !used && failed {
			late = d.recordLate(plan, name, result)
		}
	}
	*p = line.Pass{}
	return late
}

// recordLate reports a failure of a request whose host has been forgotten meanwhile to the
// breaker that the host has now, if any.
func (d *Desk) recordLate(plan *roster.Plan, name string, result breaker.Result) *roster.Gate {
	g := d.GateOf(plan, name)
	if g == nil {
		return nil
	}
	if b := g.Breaker(); b != nil && b.Closed() {
		b.Fail(result.Err, result.RetryAfter, awake.Now())
	}
	return g
}

// GateOf returns the gate of a host; nil where its policy has no breaker.
func (d *Desk) GateOf(plan *roster.Plan, name string) *roster.Gate {
	h, _ := d.Roster.Host(plan, name)
	g, _ := d.Roster.Gate(h, plan, name)
	return g
}

// Release returns what gives the slot back, to be called once the body is closed; nil where the
// request has none.
func (k *Ticket) Release() func() {
	switch {
	case !k.grant.Slot:
		return nil
	case k.stored != nil:
		k.grant.Slot = false
		return k.stored.line.Release
	}
	k.grant.Slot = false
	return k.Host.Line.Release
}

// Return gives back whatever the request still holds, whatever way it has gone, a panic and
// runtime.Goexit among them. A store is waited for no longer than ctx. It returns the gate
// whose changes are to be reported, or nil: none when Record has been called before.
func (k *Ticket) Return(ctx context.Context) (changed *roster.Gate) {
	if k.stored != nil {
		defer k.stored.line.Unuse()
	}
	if !k.Sent {
		k.Cancel()
		return nil // the slot has gone back with the rest
	}
	if !k.responded {
		k.Responded(ctx)
	}
	k.Done()
	if k.grant.Pass.Ticket != nil {
		k.Record(breaker.Result{})
		changed = k.Gate
	}
	if release := k.Release(); release != nil {
		release()
	}
	return changed
}
