package headway

import (
	"hash/maphash"
	"sync/atomic"
)

// A memo remembers texts that were made from others, so that telling an observer
// of them again costs neither time nor memory: a cache that may forget any. The
// zero memo is ready.
type memo struct {
	slots atomic.Pointer[[1 << 10]atomic.Pointer[memoEntry]]
}

type memoEntry struct{ from, text string }

var memoSeed = maphash.MakeSeed()

// text returns what make makes of from, from memory if it can.
func (m *memo) text(from string, make func(string) string) string {
	slots := m.slots.Load()
	if slots == nil {
		m.slots.CompareAndSwap(nil, new([1 << 10]atomic.Pointer[memoEntry]))
		slots = m.slots.Load()
	}
	slot := &slots[maphash.String(memoSeed, from)%uint64(len(slots))]
	if e := slot.Load(); e != nil && e.from == from {
		return e.text
	}
	e := &memoEntry{from, make(from)}
	slot.Store(e)
	return e.text
}
