package headway

import (
	"context"
	"testing"
	"time"
)

func TestCallFrom(t *testing.T) {
	ctx := t.Context()
	if got := CallFrom(ctx); got != (Call{}) {
		t.Errorf("without a Call: got %+v, want zero", got)
	}
	want := Call{Key: "k", Cost: 3, MaxWait: time.Second, Bypass: true}
	ctx = WithCall(ctx, want)
	if got := CallFrom(context.WithoutCancel(ctx)); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	// The inner Call replaces the outer, whole.
	if got := CallFrom(WithCall(ctx, Call{Cost: 5})); got != (Call{Cost: 5}) {
		t.Errorf("inner: got %+v, want only Cost 5", got)
	}
	if got := CallFrom(ctx); got != want {
		t.Errorf("outer, after an inner was made: got %+v, want %+v", got, want)
	}
}

func TestCallFromZeroAllocs(t *testing.T) {
	if raceEnabled {
		return // the race detector allocates by itself; make test runs this without it too
	}
	type otherKey struct{}
	without := context.WithValue(t.Context(), otherKey{}, 1)
	with := context.WithValue(WithCall(without, Call{Key: "k", Cost: 3}), otherKey{}, 2)
	var cost int64
	for _, ctx := range []context.Context{without, with} {
		if n := testing.AllocsPerRun(100, func() { cost += CallFrom(ctx).Cost }); n != 0 {
			t.Errorf("%v: got %v allocations, want 0", CallFrom(ctx), n)
		}
	}
	if cost != 303 { // AllocsPerRun runs once more, to warm up
		t.Errorf("got %d in all, want 303", cost)
	}
}
