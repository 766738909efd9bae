package store_test

import (
	"testing"
	"time"

	"github.com/headway-go/headway/headwaytest"
	"github.com/headway-go/headway/store"
)

func TestMemory(t *testing.T) {
	headwaytest.TestStore(t, func(_ testing.TB, now func() time.Time) store.Store { return &store.Memory{Now: now} })
}
