package roster

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/headway-go/headway/internal/digest"
	"github.com/headway-go/headway/internal/line"
)

// keys is the keys of a host.
type keys struct {
	mu        sync.RWMutex // guards following fields; writers hold the host's lock too, outside of it
	byID      map[keyID]*key
	newcomers []*key // those of byID that are not in the ring
	resources
}

// A keyID is one key under one rule, an identity of several keys, a resource of an identity, or
// one host's gate in a Shared policy.
type keyID struct {
	rule     int // its ID
	sum      digest.Sum
	identity uint64
}

// gateRule stands where keys have the IDs of their rules.
const gateRule = -1

func (id keyID) isGate() bool { return id.rule == gateRule }

// A key is the entry of a key, an identity, a resource or a gate. What is announced to an identity of
// one key is kept with the key's budget, so that it needs no entry of its own. The entry of
// the identity that all newcomers share is not in the ring.
type key struct {
	entry
	id        keyID
	text      string       // the key's digest, or the gate's host
	budget    *line.Budget // of a key, and nil for all others
	newcomers bool
	parts     atomic.Pointer[parts] // of an identity of several keys, or a resource
	resource  *resource             // nil: it is none
}

// parts is the keys of an identity: their budgets, and the IDs of their rules.
type parts struct {
	budgets []*line.Budget
	rules   []int
}

// gone reports whether a key, or one of an identity's, is of a rule that p, which may
// be nil, does not have.
func (k *key) gone(p *Plan) bool {
	if k.budget != nil {
		return p.Rule(k.id.rule) == nil
	}
	return slices.ContainsFunc(k.parts.Load().rules, func(id int) bool { return p.Rule(id) == nil })
}

// key returns the entry of a key or an identity, or nil.
func (h *Host) key(id keyID) *key {
	ks := h.keys.Load()
	if ks == nil {
		return nil
	}
	ks.mu.RLock()
	defer ks.mu.RUnlock()
	return ks.byID[id]
}

func (h *Host) allKeysLocked() map[keyID]*key {
	if ks := h.keys.Load(); ks != nil {
		return ks.byID
	}
	return nil
}

func (t *Roster) keyBudget(h *Host, own *Gate, opened []Claim, r *Rule, of digest.Key) (b *line.Budget, overflows bool) {
	id := keyID{rule: r.ID, sum: of.Sum}
	if k := h.key(id); k != nil {
		k.Touch()
		return k.budget, false
	}
	text := t.Digests.Of(of)
	t.mu.Lock()
	defer t.mu.Unlock()
	room := t.makeRoomLocked(h, own, opened)
	h.hosts.mu.RLock()
	defer h.hosts.mu.RUnlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	if k := h.allKeysLocked()[id]; k != nil {
		return k.budget, false
	}
	if !h.Owns(r) {
		return h.Line.NewBudget(nil), false
	}
	// An overflow host has no keys of its own, or it could not be forgotten while
	// there is room.
	room = room && h.hosts.overflow != h
	if o := h.At(r.Index); o != nil { // this key may have used it
		if !room || !h.Line.Retire(o) {
			return o, false
		}
		h.putLocked(r.Index, nil)
	}
	b = h.Line.NewBudget(h.hosts.current.Load().local(id.rule))
	if !room {
		h.putLocked(r.Index, b)
		return b, true
	}
	t.addKeyLocked(&key{entry: entry{host: h}, id: id, text: text, budget: b})
	return b, false
}

// addKeyLocked puts k into the ring, and among the keys of its host, whose lock must be held
// too.
func (t *Roster) addKeyLocked(k *key) {
	k.host.addKeyLocked(k)
	t.ring = append(t.ring, &k.entry)
}

func (h *Host) addKeyLocked(k *key) {
	k.key = k
	k.used.Store(true)
	ks := h.keys.Load()
	if ks == nil {
		ks = &keys{byID: map[keyID]*key{}}
		h.keys.Store(ks)
	}
	ks.mu.Lock()
	ks.byID[k.id] = k
	if k.newcomers {
		ks.newcomers = append(ks.newcomers, k)
	}
	ks.mu.Unlock()
}

func (h *Host) dropKeyLocked(k *key) {
	ks := h.keys.Load()
	ks.mu.Lock()
	delete(ks.byID, k.id)
	if k.newcomers {
		ks.newcomers = slices.DeleteFunc(slices.Clone(ks.newcomers), func(o *key) bool { return o == k })
	}
	if k.resource != nil {
		for _, route := range k.resource.routes {
			delete(ks.byRoute, route)
		}
	}
	ks.mu.Unlock()
}

// forgetKey drops a key, an identity or a resource if that makes no difference.
func (h *Host) forgetKey(k *key) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if k.budget != nil {
		if !h.Line.Retire(k.budget) {
			return false
		}
	} else if k.resource == nil && h.Line.InUse(k.parts.Load().budgets) || !h.Line.RetireAudience(k.id.identity, false) {
		// While all keys of an identity are remembered for a reason, so is it: else it might
		// have to count as newcomers.
		return false
	}
	h.dropKeyLocked(k)
	return true
}

// Identity makes room for what is announced to an identity of several keys. It reports
// whether that is remembered; else the identity counts as newcomers, which is what all
// identities share that there is no room for. See Host for overflows.
//
// An identity that counts as newcomers once does so as long as that can be noticed:
// something may have been announced to it there.
func (t *Roster) Identity(h *Host, own *Gate, opened []Claim, identity, newcomers uint64) (remembered, overflows bool) {
	id := keyID{identity: identity}
	if k := h.key(id); k != nil {
		k.Touch()
		k.join(opened)
		return true, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	room := t.makeRoomLocked(h, own, opened)
	h.hosts.mu.RLock()
	defer h.hosts.mu.RUnlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.allKeysLocked()[id] != nil {
		return true, false
	}
	room = room && h.hosts.overflow != h
	shared := h.allKeysLocked()[keyID{identity: newcomers}]
	if shared != nil {
		if !room || !h.Line.RetireAudience(newcomers, true) {
			return false, false
		}
		h.dropKeyLocked(shared)
	}
	k := &key{entry: entry{host: h}, id: id}
	if !room {
		k.id.identity, k.newcomers = newcomers, true
	}
	k.join(opened)
	if !room || h.hosts.current.Load() == nil {
		h.addKeyLocked(k)
	} else {
		t.addKeyLocked(k)
	}
	return room, !room
}

// join notes the budgets of an identity's keys, if they are not those noted.
func (k *key) join(opened []Claim) {
	n, same := 0, true
	noted := k.parts.Load()
	for _, c := range opened {
		if c.Rule.Keyed {
			same = same && noted != nil && n < len(noted.budgets) && noted.budgets[n] == c.Budget
			n++
		}
	}
	if same && noted != nil {
		return
	}
	of := new(parts)
	for _, c := range opened {
		if c.Rule.Keyed {
			of.budgets, of.rules = append(of.budgets, c.Budget), append(of.rules, c.Rule.ID)
		}
	}
	k.parts.Store(of)
}
