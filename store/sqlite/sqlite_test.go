package sqlite_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/headway-go/headway/store"
	"github.com/headway-go/headway/store/sqlite"
	"github.com/headway-go/headway/store/storetest"
)

// open opens a store on a file of the test's.
func open(t testing.TB, cfg sqlite.Config) *sqlite.Store {
	t.Helper()
	if cfg.Path == "" {
		cfg.Path = filepath.Join(t.TempDir(), "budgets.db")
	}
	s, err := sqlite.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(t testing.TB, now func() time.Time) store.Store {
		return open(t, sqlite.Config{Now: now})
	})
}
