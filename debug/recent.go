package debug

import (
	"context"
	"sync"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/internal/merge"
)

// A Recent is a headway.Observer that keeps the latest refusals and pauses for the
// page, when the store last went down, and how much was decided without it.
// Refusals that differ only in time are kept as one, with a count. The last 32
// refusals and the last 32 pauses are kept. The zero Recent is ready to use, and is
// safe for concurrent use by any number of Transports. It must not be copied. To
// use it beside another observer, join them by headway.MultiObserver.
type Recent struct {
	mu       sync.Mutex // guards following fields
	refusals ring
	pauses   ring
	rows     ring
	store    outage
}

// Observe implements headway.Observer. It returns immediately unless e is a
// refusal, a pause, or about a store that is down.
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
	r.store.update(&e, now)
}

// read returns the remembered events, the newest first.
func (r *Recent) read() (refusals, pauses, rows []happening) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refusals.newest(), r.pauses.newest(), r.rows.newest()
}

// outage returns the latest outage of a store.
func (r *Recent) outage() outage {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.store
}

// An outage is the latest time during which the store, or at least one of several stores,
// was down.
type outage struct {
	down         int // how many are; below zero where a return was reported first
	began, ended time.Time
	err          error
	missed       int // what was decided without it, in this outage and those before
}

func (o *outage) update(e *headway.Event, now time.Time) {
	switch e.Kind {
	case headway.EventStoreDown:
		if o.down++; o.down == 1 {
			o.began, o.err = now, e.Err
		}
	case headway.EventStoreUp:
		if o.down--; o.down == 0 {
			o.ended = now
		}
	case headway.EventStart, headway.EventRefused, headway.EventOpenRefused, headway.EventCanceled:
		if e.Away {
			o.missed++
		}
	}
}

// A happening is a group of events that are alike, and a ring holds the latest ones.
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
