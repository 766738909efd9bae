package breaker

// The word of a Breaker holds, from the lowest bit: the state, whether a success
// must be recorded under the lock, whether there is a change to report, and above
// these the generation.
//
// It is always what the fields under the mutex say: to read it is to have locked
// the mutex at that instant.
const (
	stateBits     = 1<<2 - 1
	busyBit       = 1 << 2
	unreportedBit = 1 << 3
	genShift      = 4
)

// publishLocked writes the word anew, before the mutex is free again.
func (b *Breaker) publishLocked() {
	w := b.gen<<genShift | uint64(b.state)
	if b.backlog.matters() || b.rampsLocked() {
		w |= busyBit
	}
	if len(b.changes) > 0 {
		w |= unreportedBit
	}
	if b.word.Load() != w {
		b.word.Store(w)
	}
}
