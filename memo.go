package headway

import "sync/atomic"

// A memo remembers texts that were made from others, so that telling an observer
// of them again costs neither time nor memory: a cache that may forget any. It does
// not keep what they were made from. The zero memo is ready.
type memo struct {
	slots atomic.Pointer[[1 << 10]atomic.Pointer[memoEntry]]
}

type memoEntry struct {
	from keySum
	text string
}

// text returns what make makes of from, whose sum is given, from memory if it can.
func (m *memo) text(sum keySum, from string, make func(string) string) string {
	slots := m.slots.Load()
	if slots == nil {
		m.slots.CompareAndSwap(nil, new([1 << 10]atomic.Pointer[memoEntry]))
		slots = m.slots.Load()
	}
	slot := &slots[sum[0]%uint64(len(slots))]
	if e := slot.Load(); e != nil && e.from == sum {
		return e.text
	}
	e := &memoEntry{sum, make(from)}
	slot.Store(e)
	return e.text
}
