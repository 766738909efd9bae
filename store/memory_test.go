package store_test

import (
	"testing"
	"time"

	"github.com/headway-go/headway/store"
	"github.com/headway-go/headway/store/storetest"
)

func TestMemory(t *testing.T) {
	storetest.Run(t, func(_ testing.TB, now func() time.Time) store.Store { return &store.Memory{Now: now} })
}
