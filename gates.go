package headway

import "github.com/headway-go/headway/breaker"

// gates is the breakers of a site.
type gates struct {
	own   *gate            // of its host; of a Shared policy, what new hosts share when the table is full
	hosts map[string]*gate // of a Shared policy, by host
}

// gate returns the gate of a host at s, or nil where its policy has no breaker;
// see table.site for news.
func (t *Transport) gate(s *site, p *policy, host string) (g *gate, news bool) {
	if p.Breaker == nil {
		return nil, false
	}
	if s.gates.Load() != nil {
		s.mu.Lock()
		g = s.gate(p, host)
		s.mu.Unlock()
	}
	if g == nil {
		return t.addGate(s, p, host)
	}
	g.touch()
	return g, false
}

// gate returns the gate that the host has already, or nil. s.mu is held.
func (s *site) gate(p *policy, host string) *gate {
	gs := s.gates.Load()
	switch {
	case gs == nil:
		return nil
	case p.Shared:
		return gs.hosts[host]
	}
	return gs.own
}

func (t *Transport) addGate(s *site, p *policy, host string) (g *gate, news bool) {
	room := false
	if p.Shared {
		t.table.mu.Lock()
		defer t.table.mu.Unlock()
		room = t.table.makeRoom(s, nil, nil)
	}
	s.sites.mu.RLock()
	defer s.sites.mu.RUnlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if g := s.gate(p, host); g != nil {
		return g, false
	}
	gs := s.gates.Load()
	if gs == nil {
		gs = new(gates)
		s.gates.Store(gs)
	}
	if !p.Shared {
		gs.own = s.newGate(t, s.host)
		return gs.own, false
	}
	// As in addKey.
	room = room && s.sites.overflow != s
	if o := gs.own; o != nil {
		if !room || !s.line.RetireGate(&o.line) {
			return o, false
		}
		gs.own = nil
	}
	if !room {
		gs.own = s.newGate(t, "")
		return gs.own, true
	}
	g = s.newGate(t, host)
	g.key, g.id = &g.keyEntry, keyID{place: gatePlace}
	g.text = host
	if gs.hosts == nil {
		gs.hosts = map[string]*gate{}
	}
	gs.hosts[host] = g
	if s.sites.current.Load() != nil {
		t.table.ring = append(t.table.ring, &g.entry)
	}
	return g, false
}

// newGate returns a gate at s. sites.mu and s.mu are held.
func (s *site) newGate(t *Transport, host string) *gate {
	g := &gate{t: t, host: host}
	g.entry.site = s
	g.used.Store(true)
	g.line.Breaker = g
	if p := s.sites.current.Load(); p != nil {
		g.set(p.Breaker)
	}
	return g
}

// forgetGate drops the gate of a host in a Shared policy if nobody can notice.
func (s *site) forgetGate(host string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	hosts := s.gates.Load().hosts
	if !s.line.RetireGate(&hosts[host].line) {
		return false
	}
	delete(hosts, host)
	return true
}

// setGates puts all gates under p, which may be nil. s.mu is held.
func (s *site) setGates(p *policy) {
	var c *breaker.Config
	if p != nil {
		c = p.Breaker
	}
	for _, g := range s.allGates() {
		g.set(c)
		g.recheck()
	}
}

// allGates returns the gates, the one that hosts share last. s.mu is held.
func (s *site) allGates() (all []*gate) {
	gs := s.gates.Load()
	if gs == nil {
		return nil
	}
	for _, g := range gs.hosts {
		all = append(all, g)
	}
	if gs.own != nil {
		all = append(all, gs.own)
	}
	return all
}
