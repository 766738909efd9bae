package headway

import (
	"context"
	"sync"
	"sync/atomic"
)

// observe reports an event to the observer, if there is one. Nothing is held: no
// lock, and no turn of others who start at the same instant.
func (t *Transport) observe(ctx context.Context, e Event) {
	if t.observer != nil {
		t.observer.Observe(ctx, e)
	}
}

// observeAll reports events in their order. When the observer panics, or ends its
// goroutine, the events after it are reported before the goroutine unwinds.
func (t *Transport) observeAll(ctx context.Context, list []Event) {
	for i := range list {
		t.observeOne(ctx, list[i], list[i+1:])
	}
}

func (t *Transport) observeOne(ctx context.Context, e Event, rest []Event) {
	returned := false
	defer func() {
		if !returned {
			t.observeAll(ctx, rest)
		}
	}()
	t.observe(ctx, e)
	returned = true
}

// keptEvents holds the events of a response until everything that it changes for
// other requests is done. A nil one is empty.
type keptEvents struct{ list []Event }

var keptPool = sync.Pool{New: func() any { return new(keptEvents) }}

// keep makes v.tell keep events until takeKept.
func (v *visit) keep() {
	if v.t.observer != nil && v.kept == nil {
		v.kept = keptPool.Get().(*keptEvents)
	}
}

// takeKept returns the events that v has kept, and ends the keeping.
func (v *visit) takeKept() *keptEvents {
	kept := v.kept
	v.kept = nil
	return kept
}

// tellResponse reports what a response has brought, and what it has changed of a
// breaker.
func (t *Transport) tellResponse(ctx context.Context, kept *keptEvents, g *gate) {
	defer g.tell()
	t.tellKept(ctx, kept)
}

// tellKept reports the events that takeKept has returned.
func (t *Transport) tellKept(ctx context.Context, kept *keptEvents) {
	if kept == nil {
		return
	}
	defer func() {
		clear(kept.list)
		kept.list = kept.list[:0]
		keptPool.Put(kept)
	}()
	t.observeAll(ctx, kept.list)
}

// A queue of events is reported in its order by one goroutine at a time: the
// first that finds them unreported. The others do not wait for it.
type eventQueue struct {
	some atomic.Bool // there may be events in list

	mu      sync.Mutex // guards following fields
	list    []Event
	telling bool
}

func (q *eventQueue) add(e Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.list = append(q.list, e)
	q.some.Store(true)
}

// tell reports what is in the queue. Nothing is held.
func (q *eventQueue) tell(t *Transport) {
	for q.some.Load() {
		e, ok := q.next()
		if !ok {
			return
		}
		q.tellOne(t, e)
	}
}

// next takes the next event, and with it the right to report until done is called.
func (q *eventQueue) next() (e Event, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.telling || len(q.list) == 0 {
		return Event{}, false
	}
	e, q.list[0] = q.list[0], Event{}
	q.list = q.list[1:]
	q.telling = true
	return e, true
}

func (q *eventQueue) done() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.telling = false
	q.some.Store(len(q.list) > 0)
}

func (q *eventQueue) tellOne(t *Transport, e Event) {
	returned := false
	defer func() {
		q.done()
		if !returned {
			q.tell(t) // before the goroutine unwinds
		}
	}()
	t.observe(context.Background(), e)
	returned = true
}
