package roster

import (
	"testing"
)

// fill returns a roster whose ring has n keys of one host.
func fill(n int) (*Roster, *Host) {
	hs := &Hosts{hosts: map[string]*Host{}}
	h := hs.newHostLocked("h")
	hs.hosts["h"] = h
	t := &Roster{Max: n}
	for i := range n {
		t.addKeyLocked(&key{entry: entry{host: h}, id: keyID{identity: uint64(i) + 1}})
	}
	return t, h
}

// drop takes an entry out of the ring as makeRoom does.
func (t *Roster) drop(i int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := len(t.ring) - 1
	t.ring[i], t.ring[last] = t.ring[last], nil
	t.ring = t.ring[:last]
}

// A look at the roster holds its lock for one piece at a time, and never while what was
// found is looked at: what is forgotten after the first piece is not found any more.
func TestLookTakesTheRosterInPieces(t *testing.T) {
	tab, _ := fill(4 * Piece)
	first := tab.ring[0]
	calls := 0
	tab.walk(func(e *entry) {
		if calls++; calls == 1 {
			tab.drop(0) // it would hang if the lock were held
		}
		if e == first {
			t.Error("an entry was found after it was forgotten: more than a piece was copied at once")
		}
	})
	if calls < 4*Piece-1 {
		t.Errorf("%d entries were found, want all others", calls)
	}
}

// What is there all the while is found, whatever is forgotten meanwhile.
func TestLookMissesNothing(t *testing.T) {
	for _, every := range []int{1, 2, 3, 7} {
		tab, _ := fill(6*Piece + 17)
		kept := map[*entry]bool{}
		for _, e := range tab.ring {
			kept[e] = true
		}
		found := map[*entry]bool{}
		calls := 0
		tab.walk(func(e *entry) {
			found[e] = true
			if calls++; calls%every == 0 && len(tab.ring) > 1 {
				i := calls * 7919 % len(tab.ring)
				delete(kept, tab.ring[i])
				tab.drop(i)
			}
		})
		for e := range kept {
			if !found[e] {
				t.Fatalf("every %d: an entry that was there all the while was not found", every)
			}
		}
	}
}
