package desk

import (
	"slices"

	"github.com/headway-go/headway/internal/awake"
	"github.com/headway-go/headway/internal/line"
)

// A pause that a response requests over a store is raised in this process's memory too. So it
// holds the requests that memory decides for once the store is down, and its length is known
// before the store has received it. That of a pause which grows is known exactly where no other
// process has made it grow; else the store makes it longer, and this process follows: see
// longer.

// inMemory returns the request as one that memory decides for.
func (k *Ticket) inMemory() *Ticket {
	m := &Ticket{Ask: k.Ask, desk: k.desk, identity: k.identity, route: k.route, routed: k.routed, named: k.named, namedBy: k.namedBy}
	m.Claims.set(slices.Clone(k.Claims.All()))
	m.Journal = nil
	m.locate()
	m.openBudgets()
	return m
}

// pauseInMemory raises p in this process's memory, for a request whose budgets are in a store.
func (at *stored) pauseInMemory(k *Ticket, p *line.Pause, to Audience) Effect {
	if at.memory == nil {
		at.memory = k.inMemory()
	}
	m := at.memory
	m.named, m.namedBy = k.named, k.namedBy
	p.Started = m.Host.Line.InstantOf(at.grant.Local)
	return m.pauseLocal(p, to)
}

// succeeded ends the growth of the pauses that held the request, in the store and here.
func (at *stored) succeeded(k *Ticket) {
	if raised := at.line.Succeeded(at.ask.Audiences, int64(k.At)); raised {
		m := k.inMemory()
		m.Host.Line.Succeeded(m.who(), m.Host.Line.InstantOf(at.grant.Local))
	}
}

// A longer is a pause that the store may make longer than this process knows. It is fixed.
type longer struct {
	request Ticket // of which only the claims are known
	pause   line.Pause
	to      Audience
	effect  Effect
}

// longerOf returns p, which a response to k has raised with an effect.
func (k *Ticket) longerOf(p *line.Pause, to Audience, e Effect) *longer {
	g := &longer{request: Ticket{Ask: k.Ask, desk: k.desk, identity: k.identity, named: k.named, namedBy: k.namedBy}, pause: *p, to: to, effect: e}
	g.request.Claims.set(slices.Clone(k.Claims.All()))
	return g
}

// follow makes the pause as long here as the store has made it. It completes the notice of that,
// and returns false where there is nothing to report.
func (g *longer) follow(n *Notice) bool {
	now := awake.Now()
	left := n.At.Add(n.Paused).Sub(now)
	if left <= 0 {
		return false
	}
	m := g.request.inMemory()
	p := g.pause
	p.Over, p.For, p.Most, p.Grow = nil, left, left, true
	p.Started = m.Host.Line.InstantOf(now) + 1 // it grows, however recently it was raised
	e := m.pauseLocal(&p, g.to)
	if e.Lasts == 0 || !m.Host.Line.IsNews(&p) {
		return false
	}
	n.Policy, n.Host, n.KeyDigest, n.Resource = m.Plan.Name, m.Name, g.effect.KeyDigest, g.effect.Resource
	n.Pause, n.Lasts = &g.pause, e.Lasts
	if r := g.effect.Rule; r != nil {
		n.Rule = r.Name
	}
	return true
}
