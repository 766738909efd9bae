package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/headway-go/headway/store"
)

// A server that announces a limit of no units says nothing of when one comes.
func TestForecastUnderALimitOfNone(t *testing.T) {
	m := &store.Memory{Now: func() time.Time { return time.Unix(1, 0) }}
	ask := store.Op{Kind: store.OpTake, Group: "g", Ears: []string{"ear"}}
	results, err := m.Do(context.Background(), []store.Op{
		{Kind: store.OpLearn, Group: "g", Ear: "ear", Learn: &store.Learn{Name: "n", Limit: 0, Reset: time.Second, Period: time.Second}},
		{Kind: store.OpForecast, Group: "g", Asks: []store.Op{ask}},
	})
	if err != nil || results[1].Waits[0].For != time.Second {
		t.Errorf("got %+v, %v, want a wait until the window's end", results, err)
	}
}
