// Package roster remembers the hosts of policies, and their keys and breakers. When there are too
// many, it forgets some for which that makes no difference.
//
// With room for 3 entries:
//
//	GET a.example            ring: [a]          a new host
//	GET a.example, key 7     ring: [a, a/7]     a budget of its own for the key
//	GET b.example            ring: [a, a/7, b]  full
//	GET c.example            the hand looks at a, then a/7, then b. b has no request in
//	                         line or in flight, no debt and no pause: it makes room.
//	                         ring: [a, a/7, c]
//	GET d.example            nothing can be forgotten: d, and every other new host,
//	                         shares the policy's overflow host until there is room
//	                         and forgetting that one makes no difference either.
//
// Invariants:
//
//   - Forgetting makes no difference: there is no request in line or in flight, no debt and no
//     pause, every law has recovered, and the breaker is as good as new. What is forgotten is
//     retired under the line's lock; a request that still holds it looks for its successor.
//   - A host or key that has used an overflow entry may have left something there. So while that
//     entry cannot be forgotten, new ones go on sharing it even when there is room.
//   - A search for room forgets nothing that its own request has opened: the request would look
//     for that again and forget the next, for ever.
//   - Locks are taken in this order: Roster, Hosts, Host, line, breaker.
package roster

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/headway-go/headway/internal/digest"
)

// A Roster is the hosts and keys that a Transport remembers. Any number of goroutines
// may use it. The fields are assigned once.
type Roster struct {
	Max     int // how many entries are remembered
	Digests *digest.Digester
	// Watched is true where changes of breakers are to be reported: see Gate.Changes.
	Watched bool
	// Recheck is called after a gate's breaker has changed, besides rechecking its line;
	// nil: nothing is.
	Recheck func(*Gate)

	mu    sync.Mutex // guards following fields
	ring  []*entry
	hand  int
	looks int // how many entries the next search for room may look at
}

// An entry is one host, one key of a host, or one host's gate in a Shared policy.
type entry struct {
	host *Host
	key  *key        // whose entry it is; nil for the host itself
	used atomic.Bool // since the hand last passed
}

// Touch notes that e is in use. It writes only where that is news, since all callers
// share it.
func (e *entry) Touch() {
	if !e.used.Load() {
		e.used.Store(true)
	}
}

// sweep is how many entries a search for room may look at, on average.
const sweep = 512

// makeRoomLocked reports whether there is room for one more entry. It forgets one if
// need be, but neither h nor a gate or budget that the request has opened.
func (t *Roster) makeRoomLocked(h *Host, own *Gate, opened []Claim) bool {
	// Twice around the ring finds whatever can be forgotten. When that is nothing, the
	// next searches look less far, each from where the last one stopped.
	t.looks = min(t.looks+sweep, 2*t.Max)
	if len(t.ring) < t.Max {
		return true
	}
	for ; t.looks > 0; t.looks-- {
		t.hand = (t.hand + 1) % len(t.ring)
		e := t.ring[t.hand]
		if e.host == h && e.opened(own, opened) {
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

// opened reports whether a request holds e: its host, its gate or a budget.
func (e *entry) opened(own *Gate, opened []Claim) bool {
	switch {
	case e.key == nil:
		return true
	case e.key.id.isGate():
		return own != nil && e == &own.entry
	case e.key.budget == nil: // an identity or a resource, which are opened last
		return false
	}
	return slices.ContainsFunc(opened, func(c Claim) bool { return c.Budget == e.key.budget })
}

// forget drops e if that makes no difference.
func (e *entry) forget() bool {
	switch h := e.host; {
	case e.key == nil:
		return h.forget()
	case e.key.id.isGate():
		return h.forgetGate(e.key.text)
	default:
		return h.forgetKey(e.key)
	}
}

// Sweep forgets the entries of rules and policies that are no more.
func (t *Roster) Sweep() {
	t.mu.Lock()
	defer t.mu.Unlock()
	kept := t.ring[:0]
	for _, e := range t.ring {
		p := e.host.hosts.current.Load()
		if p == nil || e.key != nil && !e.key.id.isGate() && e.key.gone(p) {
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

// walk calls f with every entry that is in the ring all the while, and with some twice:
// from the end on, since the last one takes the place of one that is forgotten. No lock
// is held while f runs, or for longer than it takes to copy Piece entries.
func (t *Roster) walk(f func(*entry)) {
	var few [Piece]*entry
	t.mu.Lock()
	left := len(t.ring)
	t.mu.Unlock()
	for left > 0 {
		t.mu.Lock()
		left = min(left, len(t.ring)) // what was behind it has been seen
		n := copy(few[:], t.ring[max(0, left-Piece):left])
		t.mu.Unlock()
		left -= n
		for _, e := range few[:n] {
			f(e)
		}
	}
}
