package headway_test

import (
	"context"
	"testing"

	"github.com/headway-go/headway"
)

func TestEventKindString(t *testing.T) {
	for kind, want := range map[headway.EventKind]string{
		0: "unknown", headway.EventStart: "start", headway.EventRefused: "refused", headway.EventCanceled: "canceled",
		headway.EventSpend: "spend", headway.EventPause: "pause", headway.EventLearned: "learned",
		headway.EventMalformed: "malformed", headway.EventOverflow: "overflow",
		headway.EventOpenRefused: "open_refused", headway.EventOpen: "open", headway.EventHalfOpen: "half_open",
		headway.EventClosed: "closed", headway.EventTake: "take", headway.EventNoKey: "no_key",
		headway.EventSettle: "settle", headway.EventStoreUp: "store_up", headway.EventStoreRow: "store_row", headway.EventStoreClock: "store_clock", headway.EventStoreClock + 1: "unknown",
	} {
		if got := kind.String(); got != want {
			t.Errorf("%d: got %q, want %q", kind, got, want)
		}
	}
}

func TestObserverFunc(t *testing.T) {
	var got headway.Event
	var o headway.Observer = headway.ObserverFunc(func(_ context.Context, e headway.Event) { got = e })
	want := headway.Event{Kind: headway.EventSpend, Policy: "p", Cost: -3}
	if o.Observe(t.Context(), want); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
