package headway

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/headway-go/headway/breaker"
	"github.com/headway-go/headway/internal/awake"
	"github.com/headway-go/headway/internal/inside"
	"github.com/headway-go/headway/internal/line"
)

// A gate is the breaker of one host under one policy, as the host's line sees
// it. The gate stays when the policy's Config changes; its breaker does not.
type gate struct {
	keyEntry           // in a Shared policy a host of its own in the table
	line     line.Gate // the line's side of it
	t        *Transport
	host     string // empty for what new hosts share

	breaker atomic.Pointer[breaker.Breaker] // nil: the policy has none any more
	config  breaker.Config                  // breaker's; guarded by the site's mu
	closed  *ticket                         // the latest of a closed breaker; guarded by the line's lock

	events eventQueue // changes of state to report
}

// A ticket is what a breaker has let a request through with. Those who pass in
// one closed state share one.
type ticket struct {
	breaker *breaker.Breaker
	breaker.Ticket
}

// set puts the gate under a Config; nil is no breaker. See SetPolicies for what
// becomes of a breaker whose Config changes. That one that was not closed is open
// is no news, and nobody is told. The site's mu is held.
func (g *gate) set(c *breaker.Config) {
	old := g.breaker.Load()
	if c == nil {
		g.breaker.Store(nil)
		return
	}
	if old != nil && g.config == *c {
		return
	}
	g.config = *c
	var b *breaker.Breaker
	b, err := breaker.New(*c, func(c breaker.Change) {
		if g.breaker.Load() == b {
			g.changed(c)
		}
	})
	if err != nil {
		panic(err) // policies are valid
	}
	if now := awake.Now(); old != nil && !old.Closed() {
		b.Trip(old.Cause(), old.Delay(now), now)
	}
	g.breaker.Store(b)
}

// changed is called with every change of the breaker's state. The requests in line
// follow it at once; the observer gets it from tell, which may take its time.
func (g *gate) changed(c breaker.Change) {
	g.recheck()
	if g.t.observer == nil {
		return
	}
	kinds := [...]EventKind{breaker.Closed: EventClosed, breaker.Open: EventOpen, breaker.HalfOpen: EventHalfOpen}
	g.events.add(Event{
		Kind: kinds[c.To], Policy: g.site.sites.name, Host: g.host, RetryAfter: c.Delay, Err: c.Err,
	})
}

// recheck looks again at those in line before g. It reports whether g is still in
// use.
func (g *gate) recheck() bool {
	used := g.site.line.RecheckGate(&g.line)
	if g.t.store != nil {
		g.t.store.recheck(g)
	}
	return used
}

func (g *gate) state() breaker.State {
	if b := g.breaker.Load(); b != nil {
		return b.State()
	}
	return breaker.Closed
}

// tell follows the changes that a Take has made under the line's lock, and reports
// all changes. Whatever changes the breaker calls it afterwards, once its own work
// is done and nothing is held.
func (g *gate) tell() {
	if g == nil {
		return
	}
	if b := g.breaker.Load(); b != nil {
		inside.Report(b)
	}
	g.events.tell(g.t)
}

// side returns the line's side of g, or nil.
func (g *gate) side() *line.Gate {
	if g == nil {
		return nil
	}
	return &g.line
}

// Closed and what follows it is line.Breaker. Without a breaker everybody may
// pass.
func (g *gate) Closed() bool {
	b := g.breaker.Load()
	return b == nil || b.Closed()
}

func (g *gate) Allowance() int {
	if b := g.breaker.Load(); b != nil {
		return inside.Allowance(b)
	}
	return math.MaxInt
}

func (g *gate) Room(now time.Time) int {
	if b := g.breaker.Load(); b != nil {
		return inside.Room(b, now)
	}
	return math.MaxInt
}

func (g *gate) Delay(now time.Time) time.Duration {
	if b := g.breaker.Load(); b != nil {
		return b.Delay(now)
	}
	return 0
}

func (g *gate) ProbeTimeout() time.Duration {
	if b := g.breaker.Load(); b != nil {
		return inside.ProbeTimeout(b)
	}
	return 0
}

func (g *gate) Cause() error {
	if b := g.breaker.Load(); b != nil {
		return b.Cause()
	}
	return nil
}

func (g *gate) Clean(now time.Time) bool {
	b := g.breaker.Load()
	return b == nil || inside.Clean(b, now)
}

func (g *gate) Take(now time.Time) (_ any, probe, ok bool) {
	b := g.breaker.Load()
	if b == nil {
		return nil, false, true
	}
	t, ok := b.Take(now)
	switch {
	case !ok:
		return nil, false, false
	case t.Probe():
		return &ticket{b, t}, true, true
	case g.closed == nil || g.closed.breaker != b || g.closed.Ticket != t:
		g.closed = &ticket{b, t}
	}
	return g.closed, false, true
}

func (g *gate) Return(t any) {
	k := t.(*ticket)
	k.breaker.Return(k.Ticket)
}

// record tells the breaker of a result. No lock is held.
func (k *ticket) record(r breaker.Result) {
	if r.Outcome == breaker.Success && inside.Well(k.breaker) {
		return // without reading the clock
	}
	k.breaker.Record(k.Ticket, r, awake.Now())
}
