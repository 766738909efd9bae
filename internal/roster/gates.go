package roster

import (
	"sync/atomic"
	"time"

	"github.com/headway-go/headway/breaker"
	"github.com/headway-go/headway/internal/awake"
	"github.com/headway-go/headway/internal/inside"
	"github.com/headway-go/headway/internal/line"
	"github.com/headway-go/headway/internal/outbox"
)

// gates is the breakers of a host.
type gates struct {
	own   *Gate            // of its host; of a Shared policy, what new hosts share when the roster is full
	hosts map[string]*Gate // of a Shared policy, by host
}

// A Gate is the breaker of one host under one policy, as the host's line sees
// it. The gate stays when the policy's Config changes; its breaker does not.
type Gate struct {
	key            // in a Shared policy a host of its own in the ring
	line line.Gate // the line's side of it
	of   *Roster
	Host string // empty for what new hosts share

	breaker atomic.Pointer[breaker.Breaker] // none: the policy has none any more
	config  breaker.Config                  // breaker's; guarded by the host's mu
	closed  *ticket                         // the latest of a closed breaker; guarded by the line's lock

	// Changes are the changes of state to report, where the Roster is Watched.
	Changes outbox.Queue[breaker.Change]
}

// none stands for the breaker of a policy that has none any more: it is closed, and stays so,
// since no result reaches it.
var none = must(breaker.New(breaker.Config{}, nil))

func must(b *breaker.Breaker, err error) *breaker.Breaker {
	if err != nil {
		panic(err) // policies are valid
	}
	return b
}

// A ticket is what a breaker has let a request through with. Requests that pass in one
// closed state share one.
type ticket struct {
	breaker *breaker.Breaker
	breaker.Ticket
}

// Gate returns the gate of a host at h, or nil where its policy has no breaker;
// see Host for overflows.
func (t *Roster) Gate(h *Host, p *Plan, host string) (g *Gate, overflows bool) {
	if p.Breaker == nil {
		return nil, false
	}
	if h.gates.Load() != nil {
		h.mu.Lock()
		g = h.gateLocked(p, host)
		h.mu.Unlock()
	}
	if g == nil {
		return t.addGate(h, p, host)
	}
	g.Touch()
	return g, false
}

// gateLocked returns the gate that the host has already, or nil.
func (h *Host) gateLocked(p *Plan, host string) *Gate {
	gs := h.gates.Load()
	switch {
	case gs == nil:
		return nil
	case p.Shared:
		return gs.hosts[host]
	}
	return gs.own
}

func (t *Roster) addGate(h *Host, p *Plan, host string) (g *Gate, overflows bool) {
	room := false
	if p.Shared {
		t.mu.Lock()
		defer t.mu.Unlock()
		room = t.makeRoomLocked(h, nil, nil)
	}
	h.hosts.mu.RLock()
	defer h.hosts.mu.RUnlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	if g := h.gateLocked(p, host); g != nil {
		return g, false
	}
	gs := h.gates.Load()
	if gs == nil {
		gs = new(gates)
		h.gates.Store(gs)
	}
	if !p.Shared {
		gs.own = h.newGateLocked(t, h.Name)
		return gs.own, false
	}
	room = room && h.hosts.overflow != h // as for keys
	if o := gs.own; o != nil {
		if !room || !h.Line.RetireGate(&o.line) {
			return o, false
		}
		gs.own = nil
	}
	if !room {
		gs.own = h.newGateLocked(t, "")
		return gs.own, true
	}
	g = h.newGateLocked(t, host)
	g.entry.key, g.id, g.text = &g.key, keyID{rule: gateRule}, host
	if gs.hosts == nil {
		gs.hosts = map[string]*Gate{}
	}
	gs.hosts[host] = g
	if h.hosts.current.Load() != nil {
		t.ring = append(t.ring, &g.entry)
	}
	return g, false
}

func (h *Host) newGateLocked(t *Roster, host string) *Gate {
	g := &Gate{of: t, Host: host}
	g.entry.host = h
	g.used.Store(true)
	g.line.Breaker = g
	g.breaker.Store(none)
	g.setLocked(h.hosts.current.Load().breaker())
	return g
}

// forgetGate drops the gate of a host in a Shared policy if that makes no difference.
func (h *Host) forgetGate(host string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	hosts := h.gates.Load().hosts
	if !h.Line.RetireGate(&hosts[host].line) {
		return false
	}
	delete(hosts, host)
	return true
}

// setGatesLocked puts all gates under p, which may be nil.
func (h *Host) setGatesLocked(p *Plan) {
	gs := h.gates.Load()
	if gs == nil {
		return
	}
	for _, g := range gs.hosts {
		g.setLocked(p.breaker())
		g.Recheck()
	}
	if gs.own != nil {
		gs.own.setLocked(p.breaker())
		gs.own.Recheck()
	}
}

// setLocked puts the gate under a Config; nil is no breaker. A breaker that was not closed is
// re-created open and reports no change.
func (g *Gate) setLocked(c *breaker.Config) {
	old := g.breaker.Load()
	switch {
	case c == nil:
		g.breaker.Store(none)
		return
	case old != none && g.config == *c:
		return
	}
	g.config = *c
	var b *breaker.Breaker
	b = must(breaker.New(*c, func(c breaker.Change) {
		if g.breaker.Load() != b {
			return
		}
		// The requests in line follow the change at once. The observer receives it from Changes
		// later.
		g.Recheck()
		if g.of.Watched {
			g.Changes.Add(c)
		}
	}))
	if now := awake.Now(); !old.Closed() {
		b.Trip(old.Cause(), old.Delay(now), now)
	}
	g.breaker.Store(b)
}

// At returns the host in front of whose line g stands.
func (g *Gate) At() *Host { return g.host }

// Breaker returns the breaker; nil where the policy has none any more.
func (g *Gate) Breaker() *breaker.Breaker {
	if b := g.breaker.Load(); b != none {
		return b
	}
	return nil
}

// Recheck looks again at the requests in line before g. It reports whether g is still in
// use.
func (g *Gate) Recheck() bool {
	used := g.host.Line.RecheckGate(&g.line)
	if g.of.Recheck != nil {
		g.of.Recheck(g)
	}
	return used
}

// State returns the state of the breaker; closed where there is none.
func (g *Gate) State() breaker.State { return g.breaker.Load().State() }

// Follow takes up the changes that a Take has made under the line's lock. Whatever changes
// the breaker calls it afterwards, once its own work is done and no lock is held, and reports
// Changes then.
func (g *Gate) Follow() { inside.Report(g.breaker.Load()) }

// Side returns the line's side of g, or nil.
func (g *Gate) Side() *line.Gate {
	if g == nil {
		return nil
	}
	return &g.line
}

// Closed and what follows it is line.Breaker.
func (g *Gate) Closed() bool                      { return g.breaker.Load().Closed() }
func (g *Gate) Allowance() int                    { return inside.Allowance(g.breaker.Load()) }
func (g *Gate) Room(now time.Time) int            { return inside.Room(g.breaker.Load(), now) }
func (g *Gate) Delay(now time.Time) time.Duration { return g.breaker.Load().Delay(now) }
func (g *Gate) ProbeTimeout() time.Duration       { return inside.ProbeTimeout(g.breaker.Load()) }
func (g *Gate) Cause() error                      { return g.breaker.Load().Cause() }
func (g *Gate) Clean(now time.Time) bool          { return inside.Clean(g.breaker.Load(), now) }

func (g *Gate) Take(now time.Time) (_ any, probe, ok bool) {
	b := g.breaker.Load()
	if b == none {
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

func (g *Gate) Return(t any) {
	k := t.(*ticket)
	k.breaker.Return(k.Ticket)
}

// Record reports the result of a request to the breaker that has let it through with p.
// No lock is held.
func Record(p *line.Pass, r breaker.Result) {
	k, ok := p.Ticket.(*ticket)
	if !ok || r.Outcome == breaker.Success && inside.Well(k.breaker) {
		return // without reading the clock
	}
	k.breaker.Record(k.Ticket, r, awake.Now())
}
