package debug

import (
	"context"
	"sync"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/internal/merge"
)

// Recent is a headway.Observer that remembers the last refusals and pauses for
// the page, when the store last went away, and how much was decided without it.
// Refusals that differ in nothing but their time are one, with a count;
// the last 32 that do differ are kept, and as many pauses. The zero Recent is
// ready to use, by any number of goroutines and Transports; it must not be copied.
// To have another observer beside it, join them by headway.MultiObserver.
type Recent struct {
	mu       sync.Mutex // guards following fields
	refusals ring
	pauses   ring
	rows     ring
	store    outage
}

// Observe implements headway.Observer. It is done at once with what is neither a
// refusal, a pause nor about a store that is away.
func (r *Recent) Observe(_ context.Context, e headway.Event) {
	var to *ring
	switch e.Kind {
	case headway.EventRefused, headway.EventOpenRefused:
		to = &r.refusals
	case headway.EventPause:
		to = &r.pauses
	case headway.EventStoreRow:
		to = &r.rows
	case headway.EventStoreDown, headway.EventStoreUp:
	default:
		if !e.Away {
			return
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if to != nil {
		to.add(e, now)
	}
	r.store.hear(&e, now)
}

// read returns what is remembered, the newest first.
func (r *Recent) read() (refusals, pauses, rows []happening) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refusals.newest(), r.pauses.newest(), r.rows.newest()
}

// outage returns the last of a store.
func (r *Recent) outage() outage {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.store
}

// An outage is the time that a store was away, or is; of several stores, that one
// of them is.
type outage struct {
	away         int // how many are; below zero where that one is back was told first
	began, ended time.Time
	err          error
	missed       int // what was decided without it, in this outage and those before
}

func (o *outage) hear(e *headway.Event, now time.Time) {
	switch e.Kind {
	case headway.EventStoreDown:
		if o.away++; o.away == 1 {
			o.began, o.err = now, e.Err
		}
	case headway.EventStoreUp:
		if o.away--; o.away == 0 {
			o.ended = now
		}
	case headway.EventStart, headway.EventRefused, headway.EventOpenRefused, headway.EventCanceled:
		if e.Away {
			o.missed++
		}
	}
}

// A happening is events alike, and a ring the last of them.
type (
	happening = merge.Entry[headway.Event]
	ring      struct{ merge.Ring[headway.Event] }
)

func (r *ring) add(e headway.Event, now time.Time) {
	r.Put(e, now, (*headway.Event).Alike).Count++
}

func (r *ring) newest() []happening {
	list := make([]happening, 0, merge.Size)
	for h := range r.All() {
		list = append(list, *h)
	}
	return list
}
