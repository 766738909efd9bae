package headway

import (
	"sync"
	"sync/atomic"

	"github.com/headway-go/headway/internal/law"
	"github.com/headway-go/headway/internal/line"
)

// A table is the hosts and keys that a Transport remembers. When it is full, an
// entry that has not been used for a while makes room, if nobody can notice:
// nobody in line or in flight, no debt, no pause, every law recovered.
//
// Locks are taken in this order: table, sites, site, line.
type table struct {
	max int // assigned once

	mu   sync.Mutex // guards following fields
	ring []*entry
	hand int
}

// An entry is one host, or one key of a host.
type entry struct {
	site   *site
	id     keyID        // of a key; zero for the host itself
	budget *line.Budget // of a key
	used   atomic.Bool  // since the hand last passed
}

// touch notes that e is in use. It writes only where that is news, since all
// callers share it.
func (e *entry) touch() {
	if !e.used.Load() {
		e.used.Store(true)
	}
}

// sites is the hosts of a policy, and of those that follow it by name.
type sites struct {
	mu       sync.RWMutex // guards following fields
	current  *policy      // nil: there is no such policy any more
	hosts    map[string]*site
	overflow *site
}

// A site is what a policy remembers of one host, or of all of a Shared one.
type site struct {
	entry
	sites   *sites
	host    string
	line    *line.Line
	budgets atomic.Pointer[[]*line.Budget] // by place; nil where there is none yet
	// overflowing: the entry that new hosts or keys share is in use, and the
	// observer has been told.
	overflowing atomic.Bool

	mu   sync.RWMutex // guards following fields, and writing budgets
	keys map[keyID]*entry
}

// A keyID is one key under one rule. An empty key is the entry that keys share
// when the table is full.
type keyID struct {
	place int
	key   string
}

// site returns the host's entry, or the one that new hosts share, and whether
// the observer has to hear that this has begun.
func (t *table) site(p *policy, host string) (s *site, news bool) {
	if p.Shared {
		host = ""
	}
	p.sites.mu.RLock()
	s = p.sites.hosts[host]
	p.sites.mu.RUnlock()
	if s == nil {
		return t.addSite(p, host)
	}
	s.touch()
	return s, false
}

func (t *table) addSite(p *policy, host string) (s *site, news bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	room := t.makeRoom()
	p.sites.mu.Lock()
	defer p.sites.mu.Unlock()
	if s := p.sites.hosts[host]; s != nil {
		return s, false
	}
	if room {
		s = p.sites.add(host)
		p.sites.hosts[host] = s
		t.ring = append(t.ring, &s.entry)
		return s, false
	}
	if p.sites.overflow == nil {
		p.sites.overflow = p.sites.add("")
	}
	return p.sites.overflow, p.sites.overflow.overflowing.CompareAndSwap(false, true)
}

// add returns a new site. sites.mu is held.
func (ss *sites) add(host string) *site {
	s := &site{sites: ss, host: host, line: line.New(), keys: map[keyID]*entry{}}
	s.entry.site = s
	s.budgets.Store(new([]*line.Budget))
	s.used.Store(true)
	if ss.current != nil {
		s.line.SetCaps(ss.current.maxWaiting(), ss.current.MaxInFlight)
	}
	return s
}

// budget returns the budget of a rule and key at s; see table.site for news.
func (t *table) budget(s *site, r *rule, key string) (b *line.Budget, news bool) {
	if r.key != nil {
		return t.keyBudget(s, keyID{r.place, key})
	}
	if list := *s.budgets.Load(); r.place < len(list) && list[r.place] != nil {
		return list[r.place], false
	}
	return s.addBudget(r.place), false
}

func (s *site) addBudget(place int) *line.Budget {
	s.sites.mu.RLock()
	defer s.sites.mu.RUnlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	old := *s.budgets.Load()
	if place < len(old) && old[place] != nil {
		return old[place]
	}
	list := make([]*line.Budget, max(len(old), place+1))
	copy(list, old)
	list[place] = s.line.NewBudget(s.sites.current.spec(place))
	s.budgets.Store(&list)
	return list[place]
}

// spec returns the limit of a place; nil for none.
func (p *policy) spec(place int) *law.Spec {
	if p == nil || place >= len(p.specs) {
		return nil
	}
	return p.specs[place]
}

func (t *table) keyBudget(s *site, id keyID) (b *line.Budget, news bool) {
	s.mu.RLock()
	e := s.keys[id]
	s.mu.RUnlock()
	if e == nil {
		e, news = t.addKey(s, id)
	}
	e.touch()
	return e.budget, news
}

func (t *table) addKey(s *site, id keyID) (e *entry, news bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	room := t.makeRoom()
	s.sites.mu.RLock()
	defer s.sites.mu.RUnlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !room {
		id.key = ""
	}
	if e := s.keys[id]; e != nil {
		return e, false
	}
	e = &entry{site: s, id: id, budget: s.line.NewBudget(s.sites.current.spec(id.place))}
	s.keys[id] = e
	if room {
		t.ring = append(t.ring, e)
		return e, false
	}
	return e, s.overflowing.CompareAndSwap(false, true)
}

// sweep is how many entries are looked at for one that can be forgotten.
const sweep = 512

// makeRoom reports whether there is room for one more entry. It forgets one if
// need be. t.mu is held.
func (t *table) makeRoom() bool {
	if len(t.ring) < t.max {
		return true
	}
	for range min(2*len(t.ring), sweep) {
		t.hand = (t.hand + 1) % len(t.ring)
		e := t.ring[t.hand]
		if !e.used.Swap(false) && e.forget() {
			last := len(t.ring) - 1
			t.ring[t.hand], t.ring[last] = t.ring[last], nil
			t.ring = t.ring[:last]
			return true
		}
	}
	return false
}

// forget drops e if nobody can notice.
func (e *entry) forget() bool {
	s := e.site
	if e.budget != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.line.Retire(e.budget) {
			return false
		}
		delete(s.keys, e.id)
		s.overflowing.Store(false)
		return true
	}
	s.sites.mu.Lock()
	defer s.sites.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.keys) > 0 || !s.line.RetireAll(*s.budgets.Load()) {
		return false
	}
	delete(s.sites.hosts, s.host)
	if o := s.sites.overflow; o != nil {
		o.overflowing.Store(false)
	}
	return true
}

// set puts all hosts under p; nil ends their policy.
func (ss *sites) set(p *policy) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.current = p
	for _, s := range ss.hosts {
		s.set(p)
	}
	if ss.overflow != nil {
		ss.overflow.set(p)
	}
}

func (s *site) set(p *policy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var changes []line.Change
	for place, b := range *s.budgets.Load() {
		if b != nil {
			changes = append(changes, line.Change{B: b, Limit: p.spec(place)})
		}
	}
	for id, e := range s.keys {
		changes = append(changes, line.Change{B: e.budget, Limit: p.spec(id.place)})
	}
	if p == nil {
		s.line.Reconfigure(changes, 0, 0)
	} else {
		s.line.Reconfigure(changes, p.maxWaiting(), p.MaxInFlight)
	}
}
