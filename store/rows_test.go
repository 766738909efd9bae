package store_test

import (
	"testing"
	"time"

	"github.com/headway-go/headway/store"
	"github.com/headway-go/headway/store/storetest"
)

func TestRowsOfMemory(t *testing.T) {
	storetest.RunUnreadable(t, func(t testing.TB, now func() time.Time) (store.Store, func(string, string, []byte), func(string, string) []byte) {
		m := &store.Memory{Now: now}
		return m, m.PutRow, m.Row
	})
}
