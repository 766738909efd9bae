package roster

import (
	"sync"
	"sync/atomic"

	"github.com/headway-go/headway/internal/digest"
	"github.com/headway-go/headway/internal/line"
)

// Hosts is the hosts of a policy, and of those that follow it by name.
type Hosts struct {
	Name     string               // of the policies
	current  atomic.Pointer[Plan] // nil: there is no such policy any more; written under mu
	names    atomic.Bool          // see Names
	mu       sync.RWMutex         // guards following fields
	hosts    map[string]*Host
	overflow *Host // what new hosts share when the roster is full
}

// Current returns the plan in force; nil where the policy is no more.
func (hs *Hosts) Current() *Plan { return hs.current.Load() }

// A Host is what a policy remembers of one host, or of all of a Shared one.
// There may be a million, most of them idle: every byte counts.
type Host struct {
	entry
	hosts *Hosts
	Name  string // canonical; empty for all of a Shared policy, and for the overflow host
	Line  line.Line
	// first is the budget at index 0, and others are those behind it, by index;
	// nil where there is none yet. That of a rule with keys is the one that new
	// keys share when the roster is full. They are read without a lock, on the way of
	// every request: a budget is published whole, and its line's lock guards it.
	first  atomic.Pointer[line.Budget]
	others atomic.Pointer[[]*line.Budget]
	keys   atomic.Pointer[keys] // nil until there is one

	gates atomic.Pointer[gates] // nil until a breaker is needed

	mu sync.Mutex // held to write the above, and guards gates' fields
}

// A Claim is one rule's part in a request.
type Claim struct {
	Rule   *Rule
	Key    digest.Key // none where the rule has none
	Cost   int64
	Budget *line.Budget // nil until opened
}

// Of returns the hosts that h is one of.
func (h *Host) Of() *Hosts { return h.hosts }

// Host returns the host's entry, or the one that new hosts share, and whether sharing
// has just begun, which is to be reported.
func (t *Roster) Host(p *Plan, name string) (h *Host, overflows bool) {
	if p.Shared {
		name = ""
	}
	p.Hosts.mu.RLock()
	h = p.Hosts.hosts[name]
	p.Hosts.mu.RUnlock()
	if h == nil {
		return t.addHost(p, name)
	}
	h.Touch()
	return h, false
}

func (t *Roster) addHost(p *Plan, name string) (h *Host, overflows bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	room := t.makeRoomLocked(nil, nil, nil)
	hs := p.Hosts
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if h := hs.hosts[name]; h != nil {
		return h, false
	}
	if hs.current.Load() == nil { // the policy is no more: nothing is to be remembered
		return hs.newHostLocked(name), false
	}
	if o := hs.overflow; o != nil { // this host may have used it
		if !room || !o.retire() {
			return o, false
		}
		hs.overflow = nil
	}
	if !room {
		hs.overflow = hs.newHostLocked("")
		return hs.overflow, true
	}
	h = hs.newHostLocked(name)
	hs.hosts[name] = h
	t.ring = append(t.ring, &h.entry)
	return h, false
}

func (hs *Hosts) newHostLocked(name string) *Host {
	h := &Host{hosts: hs, Name: name}
	h.entry.host = h
	h.Line.Init()
	h.used.Store(true)
	if p := hs.current.Load(); p != nil {
		h.Line.SetCaps(p.MaxWaiting, p.MaxInFlight)
	}
	return h
}

// forget drops h if that makes no difference.
func (h *Host) forget() bool {
	h.hosts.mu.Lock()
	defer h.hosts.mu.Unlock()
	if !h.retire() {
		return false
	}
	delete(h.hosts.hosts, h.Name)
	return true
}

// retire ends h if that makes no difference; whatever still holds it looks for another.
// The lock of its Hosts is held.
func (h *Host) retire() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	var own *Gate
	if g := h.gates.Load(); g != nil {
		if len(g.hosts) > 0 {
			return false
		}
		own = g.own
	}
	for _, k := range h.allKeysLocked() {
		if !k.newcomers {
			return false
		}
	}
	var few [4]*line.Budget
	budgets := few[:0]
	for index := range h.indices() {
		budgets = append(budgets, h.At(index))
	}
	return h.Line.RetireAll(budgets, own.Side())
}

// remembered reports whether h is the entry of its host still.
func (h *Host) remembered() bool {
	h.hosts.mu.RLock()
	defer h.hosts.mu.RUnlock()
	return h.hosts.hosts[h.Name] == h
}

// Budget returns the budget of a rule and key at h for a request that has a gate
// and has opened other budgets there already; see Host for overflows.
func (t *Roster) Budget(h *Host, own *Gate, opened []Claim, r *Rule, key digest.Key) (b *line.Budget, overflows bool) {
	if r.Keyed {
		return t.keyBudget(h, own, opened, r, key)
	}
	// The budget is looked at first: its index is given to another rule only after
	// the policy has changed.
	if b := h.At(r.Index); b != nil && h.Owns(r) {
		return b, false
	}
	return h.addBudget(r), false
}

func (h *Host) addBudget(r *Rule) *line.Budget {
	h.hosts.mu.RLock()
	defer h.hosts.mu.RUnlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.Owns(r) {
		return h.Line.NewBudget(nil)
	}
	if b := h.At(r.Index); b != nil {
		return b
	}
	b := h.Line.NewBudget(h.hosts.current.Load().local(r.ID))
	h.putLocked(r.Index, b)
	return b
}

// Owns reports whether a rule is one of the plan in force still. One that is not limits
// nothing, and nothing of it is remembered.
func (h *Host) Owns(r *Rule) bool { return h.hosts.current.Load().owns(r.ID, r.Index) }

// At returns the budget at an index, or nil.
func (h *Host) At(index int) *line.Budget {
	if index == 0 {
		return h.first.Load()
	}
	if list := h.others.Load(); list != nil && index <= len(*list) {
		return (*list)[index-1]
	}
	return nil
}

func (h *Host) putLocked(index int, b *line.Budget) {
	if index == 0 {
		h.first.Store(b)
		return
	}
	var list []*line.Budget
	if old := h.others.Load(); old != nil {
		list = append(list, *old...)
	}
	for len(list) < index {
		list = append(list, nil)
	}
	list[index-1] = b
	h.others.Store(&list)
}

// indices returns how many indices may have a budget.
func (h *Host) indices() int {
	if list := h.others.Load(); list != nil {
		return 1 + len(*list)
	}
	return 1
}

// Set puts all hosts under p; nil ends their policy.
func (hs *Hosts) Set(p *Plan) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	old := hs.current.Load()
	hs.current.Store(p)
	for _, h := range hs.hosts {
		h.set(old, p)
	}
	if hs.overflow != nil {
		hs.overflow.set(old, p)
	}
}

// set puts h under p instead of old. The budgets of rules that are no more go.
func (h *Host) set(old, p *Plan) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var changes []line.Change
	for index := range h.indices() {
		b := h.At(index)
		if b == nil {
			continue
		}
		id := old.owners[index]
		gone := !p.owns(id, index)
		if gone {
			h.putLocked(index, nil)
		}
		changes = append(changes, line.Change{B: b, Limit: p.local(id), Gone: gone})
	}
	for id, k := range h.allKeysLocked() {
		gone := k.gone(p)
		if gone {
			h.dropKeyLocked(k)
		}
		switch {
		case k.budget != nil:
			changes = append(changes, line.Change{B: k.budget, Limit: p.local(id.rule), Gone: gone})
		case gone:
			h.Line.CloseAudience(id.identity)
		}
	}
	h.setGatesLocked(p)
	if p == nil {
		h.Line.Reconfigure(changes, 0, 0)
	} else {
		h.Line.Reconfigure(changes, p.MaxWaiting, p.MaxInFlight)
	}
}
