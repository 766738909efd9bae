// Package merge remembers the latest events, and merges events that are alike.
package merge

import (
	"iter"
	"time"
)

// Size is how many different events a Ring remembers. It is small enough for a linear
// search.
const Size = 32

// An Entry stands for all events that are alike.
type Entry[E any] struct {
	Event       E // the last of them
	First, Last time.Time
	Count       int
}

// A Ring is the last entries, in the order of their last event. The zero Ring is
// empty.
type Ring[E any] struct {
	list [Size]Entry[E]
	n    int
	like E // the event that Find looks for; as a field it costs no allocation
}

// Find returns the entry of events like e, or nil. It is good until the next Put.
func (r *Ring[E]) Find(e E, alike func(a, b *E) bool) *Entry[E] {
	if i := r.index(e, alike); i >= 0 {
		return &r.list[i]
	}
	return nil
}

func (r *Ring[E]) index(e E, alike func(a, b *E) bool) int {
	r.like = e
	i := r.n - 1
	for i >= 0 && !alike(&r.list[i].Event, &r.like) {
		i--
	}
	return i
}

// Put makes e the newest entry: that of events like e, or a new one without a Count,
// for which the oldest makes room.
func (r *Ring[E]) Put(e E, now time.Time, alike func(a, b *E) bool) *Entry[E] {
	at := r.index(e, alike)
	entry := Entry[E]{First: now}
	switch {
	case at >= 0:
		entry = r.list[at]
	case r.n < Size:
		at = r.n
		r.n++
	default:
		at = 0
	}
	copy(r.list[at:r.n], r.list[at+1:r.n])
	entry.Event, entry.Last = e, now
	r.list[r.n-1] = entry
	return &r.list[r.n-1]
}

// Oldest returns the entry that makes room for the next, or nil while there is room.
func (r *Ring[E]) Oldest() *Entry[E] {
	if r.n < Size {
		return nil
	}
	return &r.list[0]
}

// All returns the entries, the newest first.
func (r *Ring[E]) All() iter.Seq[*Entry[E]] {
	return func(yield func(*Entry[E]) bool) {
		for i := r.n - 1; i >= 0 && yield(&r.list[i]); i-- {
		}
	}
}
