package headway

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/headway-go/headway/internal/law"
	"github.com/headway-go/headway/internal/line"
)

// A table is the hosts and keys that a Transport remembers. When it is full, an
// entry that has not been used for a while makes room, if nobody can notice:
// nobody in line or in flight, no debt, no pause, every law recovered, the breaker
// closed and clean.
//
// Locks are taken in this order: table, sites, site, line, breaker.
type table struct {
	max    int                 // assigned once
	digest func(keyRef) string // assigned once

	mu    sync.Mutex // guards following fields
	ring  []*entry
	hand  int
	looks int // how many entries the next search for room may look at
}

// An entry is one host, one key of a host, or one host's gate in a Shared policy.
type entry struct {
	site *site
	key  *keyEntry   // whose entry it is; nil for the host itself
	used atomic.Bool // since the hand last passed
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
	name     string                 // of the policies
	current  atomic.Pointer[policy] // nil: there is no such policy any more; written under mu
	mu       sync.RWMutex           // guards following fields
	hosts    map[string]*site
	overflow *site // what new hosts share when the table is full
}

// A site is what a policy remembers of one host, or of all of a Shared one.
// There may be a million, most of them idle: every byte counts.
type site struct {
	entry
	sites *sites
	host  string
	line  line.Line
	// first is the budget at index 0, and others are those behind it, by index;
	// nil where there is none yet. That of a rule with keys is the one that new
	// keys share when the table is full.
	first  atomic.Pointer[line.Budget]
	others atomic.Pointer[[]*line.Budget]
	keys   atomic.Pointer[keys] // nil until there is one

	gates atomic.Pointer[gates] // nil until a breaker is needed

	mu sync.Mutex // held to write the above, and guards gates' fields
}

// keys is the keys of a site.
type keys struct {
	mu        sync.RWMutex // guards following fields; also held by who writes, inside the site's
	byID      map[keyID]*keyEntry
	newcomers []*keyEntry // those of byID that are not in the ring
}

// A keyID is one key under one rule, an identity of several keys, or one host's
// gate in a Shared policy.
type keyID struct {
	place int
	sum   keySum
	who   uint64
}

// gatePlace stands where rules have their places.
const gatePlace = -1

// A keyEntry is the entry of a key, an identity or a gate. What the server says to
// an identity of one key is kept with the key's budget, so that it needs no entry
// of its own. The entry of the identity that all newcomers share is not in the ring.
type keyEntry struct {
	entry
	id        keyID
	text      string       // the key's digest, or the gate's host
	budget    *line.Budget // of a key, and nil for all others
	newcomers bool
	parts     atomic.Pointer[parts] // of an identity of several keys
}

// parts is the keys of an identity: their budgets, and the places of their rules.
type parts struct {
	budgets []*line.Budget
	places  []int
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
	room := t.makeRoom(nil, nil, nil)
	p.sites.mu.Lock()
	defer p.sites.mu.Unlock()
	if s := p.sites.hosts[host]; s != nil {
		return s, false
	}
	if p.sites.current.Load() == nil { // the policy is no more: nothing is to be remembered
		return p.sites.add(host), false
	}
	// Nobody knows which hosts have used the overflow entry. So while that can
	// be noticed, every new host may be one of them.
	if o := p.sites.overflow; o != nil {
		if !room || !o.retire() {
			return o, false
		}
		p.sites.overflow = nil
	}
	if !room {
		p.sites.overflow = p.sites.add("")
		return p.sites.overflow, true
	}
	s = p.sites.add(host)
	p.sites.hosts[host] = s
	t.ring = append(t.ring, &s.entry)
	return s, false
}

// add returns a new site. sites.mu is held.
func (ss *sites) add(host string) *site {
	s := &site{sites: ss, host: host}
	s.entry.site = s
	s.line.Init()
	s.used.Store(true)
	if p := ss.current.Load(); p != nil {
		s.line.SetCaps(p.maxWaiting(), p.MaxInFlight)
	}
	return s
}

// budget returns the budget of a rule and key at s for a request that has a gate
// and has opened other budgets there already; see table.site for news.
func (t *table) budget(s *site, own *gate, opened []claim, r *rule, key keyRef) (b *line.Budget, news bool) {
	if r.key != nil {
		return t.keyBudget(s, own, opened, r, keyID{place: r.place, sum: key.sum}, key)
	}
	// The budget is looked at first: its index is given to another rule only after
	// the policy has changed.
	if b := s.at(r.index); b != nil && s.owns(r) {
		return b, false
	}
	return s.addBudget(r), false
}

func (s *site) addBudget(r *rule) *line.Budget {
	s.sites.mu.RLock()
	defer s.sites.mu.RUnlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.owns(r) {
		return s.line.NewBudget(nil)
	}
	if b := s.at(r.index); b != nil {
		return b
	}
	b := s.line.NewBudget(s.sites.current.Load().spec(r.place))
	s.put(r.index, b)
	return b
}

// owns reports whether a rule still is one of the policy in force. One that is not
// limits nothing, and nothing of it is remembered.
func (s *site) owns(r *rule) bool { return s.sites.current.Load().owns(r.place, r.index) }

// at returns the budget at an index, or nil.
func (s *site) at(index int) *line.Budget {
	if index == 0 {
		return s.first.Load()
	}
	if list := s.others.Load(); list != nil && index <= len(*list) {
		return (*list)[index-1]
	}
	return nil
}

// put puts b at an index. s.mu is held.
func (s *site) put(index int, b *line.Budget) {
	if index == 0 {
		s.first.Store(b)
		return
	}
	var list []*line.Budget
	if old := s.others.Load(); old != nil {
		list = append(list, *old...)
	}
	for len(list) < index {
		list = append(list, nil)
	}
	list[index-1] = b
	s.others.Store(&list)
}

// indices returns how many indices may have a budget.
func (s *site) indices() int {
	if list := s.others.Load(); list != nil {
		return 1 + len(*list)
	}
	return 1
}

// key returns the entry of a key or an identity, or nil.
func (s *site) key(id keyID) *keyEntry {
	k := s.keys.Load()
	if k == nil {
		return nil
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.byID[id]
}

// all returns the keys. s.mu is held.
func (s *site) all() map[keyID]*keyEntry {
	if k := s.keys.Load(); k != nil {
		return k.byID
	}
	return nil
}

// spec returns the limit of a place; nil for none.
func (p *policy) spec(place int) *law.Spec {
	if p == nil {
		return nil
	}
	return p.specs[place]
}

func (t *table) keyBudget(s *site, own *gate, opened []claim, r *rule, id keyID, key keyRef) (b *line.Budget, news bool) {
	if e := s.key(id); e != nil {
		e.touch()
		return e.budget, false
	}
	return t.addKey(s, own, opened, r, id, t.digest(key))
}

func (t *table) addKey(s *site, own *gate, opened []claim, r *rule, id keyID, digest string) (b *line.Budget, news bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	room := t.makeRoom(s, own, opened)
	s.sites.mu.RLock()
	defer s.sites.mu.RUnlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.all()[id]; e != nil {
		return e.budget, false
	}
	if !s.owns(r) {
		return s.line.NewBudget(nil), false
	}
	// As in addSite. An overflow entry has no keys of its own, or it could not
	// be forgotten while there is room.
	room = room && s.sites.overflow != s
	if o := s.at(r.index); o != nil {
		if !room || !s.line.Retire(o) {
			return o, false
		}
		s.put(r.index, nil)
	}
	b = s.line.NewBudget(s.sites.current.Load().spec(id.place))
	if !room {
		s.put(r.index, b)
		return b, true
	}
	t.file(&keyEntry{entry: entry{site: s}, id: id, text: digest, budget: b})
	return b, false
}

// file puts e into the ring, and among the keys of its site. t.mu and the site's
// are held.
func (t *table) file(e *keyEntry) {
	e.site.fileKey(e)
	t.ring = append(t.ring, &e.entry)
}

// fileKey puts e among the keys of s. s.mu is held.
func (s *site) fileKey(e *keyEntry) {
	e.key = e
	e.used.Store(true)
	k := s.keys.Load()
	if k == nil {
		k = &keys{byID: map[keyID]*keyEntry{}}
		s.keys.Store(k)
	}
	k.mu.Lock()
	k.byID[e.id] = e
	if e.newcomers {
		k.newcomers = append(k.newcomers, e)
	}
	k.mu.Unlock()
}

// dropKey is fileKey's opposite. s.mu is held.
func (s *site) dropKey(e *keyEntry) {
	k := s.keys.Load()
	k.mu.Lock()
	delete(k.byID, e.id)
	if e.newcomers {
		k.newcomers = slices.DeleteFunc(slices.Clone(k.newcomers), func(o *keyEntry) bool { return o == e })
	}
	k.mu.Unlock()
}

// identity makes room for what the server says to an identity of several keys. It
// reports whether that is remembered; else the identity counts as newcomers, which
// all share that there is no room for. See table.site for news.
//
// An identity that counts as newcomers once does so as long as that can be
// noticed: it may have been told something there.
func (t *table) identity(s *site, own *gate, opened []claim, who, newcomers uint64) (remembered, news bool) {
	id := keyID{who: who}
	if e := s.key(id); e != nil {
		e.touch()
		e.join(opened)
		return true, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	room := t.makeRoom(s, own, opened)
	s.sites.mu.RLock()
	defer s.sites.mu.RUnlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all()[id] != nil {
		return true, false
	}
	room = room && s.sites.overflow != s
	shared := s.all()[keyID{who: newcomers}]
	if shared != nil {
		if !room || !s.line.RetireAudience(newcomers, true) {
			return false, false
		}
		s.dropKey(shared)
	}
	if !room {
		e := &keyEntry{entry: entry{site: s}, id: keyID{who: newcomers}, newcomers: true}
		e.join(opened)
		s.fileKey(e)
		return false, true
	}
	e := &keyEntry{entry: entry{site: s}, id: id}
	e.join(opened)
	if s.sites.current.Load() == nil {
		s.fileKey(e)
	} else {
		t.file(e)
	}
	return true, false
}

// join notes the budgets of an identity's keys, if they are not those noted.
func (e *keyEntry) join(opened []claim) {
	n, same := 0, true
	noted := e.parts.Load()
	for _, c := range opened {
		if c.rule.key != nil {
			same = same && noted != nil && n < len(noted.budgets) && noted.budgets[n] == c.budget
			n++
		}
	}
	if same && noted != nil {
		return
	}
	of := new(parts)
	for _, c := range opened {
		if c.rule.key != nil {
			of.budgets, of.places = append(of.budgets, c.budget), append(of.places, c.rule.place)
		}
	}
	e.parts.Store(of)
}

// sweep is how many entries a search for room may look at, on average.
const sweep = 512

// makeRoom reports whether there is room for one more entry. It forgets one if
// need be, but neither s nor a gate or budget that the request has opened
// already: it would look for them again, and forget the next. t.mu is held.
func (t *table) makeRoom(s *site, own *gate, opened []claim) bool {
	// Twice around the ring finds whatever can be forgotten. When that is
	// nothing, those who come next look less far, each from where the last one
	// stopped.
	t.looks = min(t.looks+sweep, 2*t.max)
	if len(t.ring) < t.max {
		return true
	}
	for ; t.looks > 0; t.looks-- {
		t.hand = (t.hand + 1) % len(t.ring)
		e := t.ring[t.hand]
		if e.site == s && e.opened(own, opened) {
			continue
		}
		if !e.used.Swap(false) && e.forget() {
			last := len(t.ring) - 1
			t.ring[t.hand], t.ring[last] = t.ring[last], nil
			t.ring = t.ring[:last]
			return true
		}
	}
	return false
}

// opened reports whether a request holds e: its site, its gate or a budget.
func (e *entry) opened(own *gate, opened []claim) bool {
	switch {
	case e.key == nil:
		return true
	case e.key.id.place == gatePlace:
		return own != nil && e == &own.entry
	case e.key.budget == nil: // an identity, which is opened last
		return false
	}
	return slices.ContainsFunc(opened, func(c claim) bool { return c.budget == e.key.budget })
}

// forget drops e if nobody can notice.
func (e *entry) forget() bool {
	s := e.site
	if e.key != nil && e.key.id.place == gatePlace {
		return s.forgetGate(e.key.text)
	}
	if e.key != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		switch b := e.key.budget; {
		case b != nil && !s.line.Retire(b):
			return false
		// While all of its keys are remembered for a reason, so is it: else it might
		// have to count as newcomers.
		case b == nil && (s.line.InUse(e.key.parts.Load().budgets) || !s.line.RetireAudience(e.key.id.who, false)):
			return false
		}
		s.dropKey(e.key)
		return true
	}
	s.sites.mu.Lock()
	defer s.sites.mu.Unlock()
	if !s.retire() {
		return false
	}
	delete(s.sites.hosts, s.host)
	return true
}

// retire ends s if nobody can notice; whoever still holds it looks for another.
// sites.mu is held.
func (s *site) retire() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	var own *gate
	if g := s.gates.Load(); g != nil {
		if len(g.hosts) > 0 {
			return false
		}
		own = g.own
	}
	for _, e := range s.all() {
		if !e.newcomers {
			return false
		}
	}
	var few [4]*line.Budget
	budgets := few[:0]
	for index := range s.indices() {
		budgets = append(budgets, s.at(index))
	}
	return s.line.RetireAll(budgets, own.side())
}

// gone reports whether a key, or one of an identity's, is of a rule that p, which may
// be nil, does not have.
func (e *keyEntry) gone(p *policy) bool {
	if e.budget != nil {
		return p.spec(e.id.place) == nil
	}
	return slices.ContainsFunc(e.parts.Load().places, func(place int) bool { return p.spec(place) == nil })
}

// sweep forgets the entries of rules and policies that are no more.
func (t *table) sweep() {
	t.mu.Lock()
	defer t.mu.Unlock()
	kept := t.ring[:0]
	for _, e := range t.ring {
		p := e.site.sites.current.Load()
		if p == nil || e.key != nil && e.key.id.place != gatePlace && e.key.gone(p) {
			continue
		}
		kept = append(kept, e)
	}
	clear(t.ring[len(kept):])
	if t.ring = kept; len(kept) < cap(kept)/4 {
		t.ring = slices.Clone(kept)
	}
	t.hand = 0
}

// set puts all hosts under p; nil ends their policy.
func (ss *sites) set(p *policy) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	old := ss.current.Load()
	ss.current.Store(p)
	for _, s := range ss.hosts {
		s.set(old, p)
	}
	if ss.overflow != nil {
		ss.overflow.set(old, p)
	}
}

// set puts s under p instead of old. The budgets of rules that are no more go.
func (s *site) set(old, p *policy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var changes []line.Change
	for index := range s.indices() {
		b := s.at(index)
		if b == nil {
			continue
		}
		place := old.owners[index]
		gone := !p.owns(place, index)
		if gone {
			s.put(index, nil)
		}
		changes = append(changes, line.Change{B: b, Limit: p.spec(place), Gone: gone})
	}
	for id, e := range s.all() {
		gone := e.gone(p)
		if gone {
			s.dropKey(e)
		}
		switch {
		case e.budget != nil:
			changes = append(changes, line.Change{B: e.budget, Limit: p.spec(id.place), Gone: gone})
		case gone:
			s.line.CloseAudience(id.who)
		}
	}
	s.setGates(p)
	if p == nil {
		s.line.Reconfigure(changes, 0, 0)
	} else {
		s.line.Reconfigure(changes, p.maxWaiting(), p.MaxInFlight)
	}
}
