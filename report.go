package headway

import (
	"context"
	"fmt"
	"sync"

	"github.com/headway-go/headway/breaker"
	"github.com/headway-go/headway/internal/roster"
)

// observe reports an event to the observer, if there is one. Nothing is held: no
// lock, and no turn of other requests that start at the same instant.
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

// report reports an event of the request, now or once everything is done that its response
// changes.
func (v *request) report(ctx context.Context, e Event) {
	e.Policy, e.Host, e.Attempt, e.Away = v.policy.name, v.name, AttemptFrom(ctx), v.Down != nil
	if v.kept != nil {
		v.kept.list = append(v.kept.list, e)
		return
	}
	v.t.observe(ctx, e)
}

// reportStart reports a start, under the rule that has the fewest units left.
func (v *request) reportStart(ctx context.Context) {
	if v.t.observer == nil {
		return
	}
	e := Event{Kind: EventStart, Policy: v.policy.name, Host: v.name, Attempt: AttemptFrom(ctx), Wait: v.Waited, Away: v.Down != nil}
	claims := v.Claims.All()
	for i := range claims {
		v.t.reportTake(ctx, &e, &claims[i], v.Remaining(&claims[i]))
	}
	v.t.observe(ctx, e)
}

// reportTake notes in e, an EventStart, what the request took under one more rule. Of
// the rule with the fewest units left e reports; the others are reported here.
func (t *Transport) reportTake(ctx context.Context, e *Event, c *roster.Claim, left int64) {
	digest := t.digests.Of(c.Key)
	tightest := e.Rule == "" || left < e.Remaining
	if e.Rule != "" {
		other := *e
		if !tightest {
			other.Rule, other.KeyDigest, other.Cost, other.Remaining = c.Rule.Name, digest, c.Cost, left
		}
		other.Kind, other.Wait = EventTake, 0
		t.observe(ctx, other)
	}
	if tightest {
		e.Rule, e.KeyDigest, e.Cost, e.Remaining = c.Rule.Name, digest, c.Cost, left
	}
}

// keptEvents holds the events of a response until everything that it changes for
// other requests is done. A nil one is empty.
type keptEvents struct{ list []Event }

var keptPool = sync.Pool{New: func() any { return new(keptEvents) }}

// keep makes v.report keep events until takeKept.
func (v *request) keep() {
	if v.t.observer != nil && v.kept == nil {
		v.kept = keptPool.Get().(*keptEvents)
	}
}

// takeKept returns the events that v has kept, and ends the keeping.
func (v *request) takeKept() *keptEvents {
	kept := v.kept
	v.kept = nil
	return kept
}

// reportResponse reports what a response has brought, and what it has changed of breakers.
func (t *Transport) reportResponse(ctx context.Context, kept *keptEvents, g, late *roster.Gate) {
	defer t.reportChanges(late)
	defer t.reportChanges(g)
	t.reportKept(ctx, kept)
}

// reportKept reports the events that takeKept has returned.
func (t *Transport) reportKept(ctx context.Context, kept *keptEvents) {
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

// reportChanges reports what has changed of a breaker; nil is none. Whatever changes a breaker
// calls it afterwards, once its own work is done and no lock is held.
func (t *Transport) reportChanges(g *roster.Gate) {
	if g == nil {
		return
	}
	g.Follow()
	if g.Changes.Empty() {
		return
	}
	g.Changes.Report(func(c breaker.Change) {
		kinds := [...]EventKind{breaker.Closed: EventClosed, breaker.Open: EventOpen, breaker.HalfOpen: EventHalfOpen}
		t.observe(context.Background(), Event{
			Kind: kinds[c.To], Policy: g.At().Of().Name, Host: g.Host, RetryAfter: c.Delay, Err: c.Err,
		})
	})
}

// reportNotices reports, in the goroutine of a request, what has happened to the store.
func (t *Transport) reportNotices(ctx context.Context) {
	notices := t.desk.Notices()
	if notices == nil {
		return
	}
	var list []Event
	for _, n := range notices {
		e := Event{Kind: EventStoreDown, Policy: n.Policy, Host: n.Host, Rule: n.Rule, KeyDigest: n.KeyDigest, Resource: n.Resource, Err: n.Err}
		switch {
		case n.Row != nil:
			e.Kind, e.Err, e.Away = EventStoreRow, n.Row, !n.Row.Anew
		case n.Pause != nil:
			e.Kind, e.Status, e.Dialect, e.Pause, e.Cut = EventPause, n.Pause.Status, n.Pause.Source, n.Lasts, n.Pause.Cut
		case n.Back != 0:
			e.Kind, e.Err = EventStoreClock, fmt.Errorf("the store's clock has been set back by %v or more", n.Back)
		case n.Err == nil:
			e.Kind = EventStoreUp
		}
		list = append(list, e)
	}
	t.observeAll(ctx, list)
}
