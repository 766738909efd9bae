package line

import "container/heap"

// waiters is a list of waiters by their prev and next: those in line in order of
// arrival, or those in the chain in order of their starts. A waiter stands in one of
// the two at most.
type waiters struct{ first, tail *waiter }

func (s *waiters) push(w *waiter) {
	w.prev, w.next = s.tail, nil
	if s.tail == nil {
		s.first = w
	} else {
		s.tail.next = w
	}
	s.tail = w
}

func (s *waiters) remove(w *waiter) {
	if w.prev == nil {
		s.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		s.tail = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next = nil, nil
}

// A chain holds the requests that have started and are not sent yet, in order of
// their starts. The first has been woken. Each wakes the next as its last step before
// it is sent, so that the base transport gets requests of one instant in order.
type chain struct {
	waiters
	woken bool // the first has been woken
}

func (c *chain) remove(w *waiter) {
	if c.first == w {
		c.woken = false
	}
	c.waiters.remove(w)
	c.kick()
}

// kick wakes the first, unless that is awake.
func (c *chain) kick() {
	if c.first != nil && !c.woken {
		c.woken = true
		c.first.ready <- struct{}{}
	}
}

// A heapOf is a heap for container/heap. moved, unless nil, learns where an item
// stands now, so that heap.Fix and heap.Remove can be called for it.
type heapOf[T any] struct {
	items []T
	less  func(a, b T) bool
	moved func(item T, index int)
}

func (h *heapOf[T]) Len() int           { return len(h.items) }
func (h *heapOf[T]) Less(i, j int) bool { return h.less(h.items[i], h.items[j]) }

func (h *heapOf[T]) Swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	if h.moved != nil {
		h.moved(h.items[i], i)
		h.moved(h.items[j], j)
	}
}

func (h *heapOf[T]) Push(x any) {
	h.items = append(h.items, x.(T))
	if h.moved != nil {
		h.moved(x.(T), len(h.items)-1)
	}
}

func (h *heapOf[T]) Pop() any {
	last := len(h.items) - 1
	x := h.items[last]
	var zero T
	h.items[last] = zero // a waiter that has left is not kept alive
	h.items = h.items[:last]
	return x
}

// min returns the first item, or the zero T if there is none.
func (h *heapOf[T]) min() (first T) {
	if len(h.items) > 0 {
		first = h.items[0]
	}
	return first
}

var _ heap.Interface = (*heapOf[int])(nil)
