package digest

import "sync/atomic"

// A Memo remembers texts that were made from others, so that making them again costs
// neither time nor memory. It is a cache: it may forget any of them, and does not keep
// what they were made from. The zero Memo is ready.
type Memo struct {
	// A slot is replaced as a whole. Of two goroutines that fill one at the same time,
	// one wins; the other's text is made again when it is next needed.
	slots atomic.Pointer[[1 << 10]atomic.Pointer[memoEntry]]
}

type memoEntry struct {
	from Sum
	text string
}

// Text returns what make makes of from, whose sum is given, from memory if it can.
func (m *Memo) Text(sum Sum, from string, make func(string) string) string {
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
