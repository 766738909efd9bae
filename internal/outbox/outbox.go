// Package outbox keeps what is to be reported until no lock is held.
package outbox

import (
	"sync"
	"sync/atomic"
)

// A Queue is reported in its order by one goroutine at a time: the first that finds it
// unreported. The others do not wait for it. The zero Queue is empty.
type Queue[T any] struct {
	some atomic.Bool // there may be something in list

	mu        sync.Mutex // guards following fields
	list      []T
	reporting bool
}

// Add adds an item.
func (q *Queue[T]) Add(item T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.list = append(q.list, item)
	q.some.Store(true)
}

// Empty reports whether there is nothing to report. It takes one atomic read.
func (q *Queue[T]) Empty() bool { return !q.some.Load() }

// Report calls f with what is in the queue. No lock is held meanwhile. When f panics, or
// ends its goroutine, the items after that one are reported before the goroutine unwinds.
func (q *Queue[T]) Report(f func(T)) {
	for q.some.Load() {
		item, ok := q.next()
		if !ok {
			return
		}
		q.reportOne(item, f)
	}
}

// next takes the next item, and with it the right to report until done is called.
func (q *Queue[T]) next() (item T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.reporting || len(q.list) == 0 {
		return item, false
	}
	var none T
	item, q.list[0] = q.list[0], none
	q.list = q.list[1:]
	q.reporting = true
	return item, true
}

func (q *Queue[T]) done() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.reporting = false
	q.some.Store(len(q.list) > 0)
}

func (q *Queue[T]) reportOne(item T, f func(T)) {
	returned := false
	defer func() {
		q.done()
		if !returned {
			q.Report(f)
		}
	}()
	f(item)
	returned = true
}
