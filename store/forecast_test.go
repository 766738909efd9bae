package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/headway-go/headway/store"
)

// A limit of none with none left says nothing, however often it is said.
func TestForecastUnderALimitOfNone(t *testing.T) {
	m := &store.Memory{Now: func() time.Time { return time.Unix(1, 0) }}
	ask := store.Op{Kind: store.OpTake, Group: "g", Audiences: []string{"ear"}}
	learn := func(left, limit int64) store.Op {
		return store.Op{Kind: store.OpLearn, Group: "g", Audience: "ear", Learn: &store.Learn{Name: "n", Left: left, Limit: limit, Reset: time.Second, Period: time.Second}}
	}
	results, err := m.Do(context.Background(), []store.Op{
		learn(0, 0), learn(-5, 0),
		{Kind: store.OpForecast, Group: "g", Asks: []store.Op{ask, ask}},
		learn(1, 0), // and no more until the reset
		{Kind: store.OpForecast, Group: "g", Asks: []store.Op{ask, ask, ask}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range append(results[2].Waits, results[4].Waits...) {
		want := []time.Duration{0, 0, 0, time.Second, 1250 * time.Millisecond}[i] // at the reset one goes alone
		if w.For != want {
			t.Errorf("number %d: got a wait of %v, want %v", i, w.For, want)
		}
	}
}
