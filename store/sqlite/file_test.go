package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/store"
	"github.com/headway-go/headway/store/storetest"
)

func openTest(t *testing.T, path string, moved *[]*MovedError) *Store {
	t.Helper()
	s, err := Open(Config{Path: path, Moved: func(e *MovedError) {
		if moved == nil {
			t.Errorf("moved aside: %v", e)
			return
		}
		*moved = append(*moved, e)
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func spend(budget string, n int64) store.Op {
	return store.Op{Kind: store.OpSpend, Group: "g", Needs: []store.Need{{Budget: budget, Limit: limiter.PerDay(1000), Cost: n}}}
}

// left returns what is left of a budget, or -1 and the error.
func left(s *Store, budget string) (int64, error) {
	op := spend(budget, 0)
	op.Kind = store.OpRead
	res, err := s.Do(context.Background(), []store.Op{op})
	if err != nil {
		return -1, err
	}
	return res[0].Remaining[0], nil
}

func mustSpend(t *testing.T, s *Store, budget string, n, want int64) {
	t.Helper()
	res, err := s.Do(context.Background(), []store.Op{spend(budget, n)})
	if err != nil {
		t.Fatal(err)
	}
	if got := res[0].Remaining[0]; got != want {
		t.Errorf("%d left of %s, want %d", got, budget, want)
	}
}

// by runs SQL on a file like another program.
func by(t *testing.T, path string, texts ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", fileURL(path))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, text := range texts {
		if _, err := db.Exec(text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
}

func TestOpenAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b?.db") // a name that must be escaped in a URL
	s := openTest(t, path, nil)
	mustSpend(t, s, "b", 3, 997)
	s.Close()
	mustSpend(t, openTest(t, path, nil), "b", 2, 995)
	if _, err := s.Do(context.Background(), nil); !errors.Is(err, errClosed) {
		t.Errorf("closed: got %v, want %v", err, errClosed)
	}
}

func TestFilesThatAreLeftAsTheyAre(t *testing.T) {
	for name, tc := range map[string]struct {
		make []string
		want error
	}{
		"newer schema":      {[]string{"PRAGMA user_version=2", "PRAGMA application_id=" + strconv.Itoa(applicationID)}, ErrNewer},
		"another program's": {[]string{"CREATE TABLE t (x)"}, ErrOther},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.db")
			by(t, path, tc.make...)
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Open(Config{Path: path}); !errors.Is(err, tc.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v, want %v, with the path", err, tc.want)
			}
			if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
				t.Errorf("the file has changed (%v)", err)
			}
		})
	}
}

func TestNewerBudgetInTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	s := openTest(t, path, nil)
	mustSpend(t, s, "b", 1, 999)
	by(t, path, "UPDATE budget SET row = x'0200'")
	res, err := s.Do(t.Context(), []store.Op{spend("b", 1), spend("c", 1)})
	if err != nil || !errors.Is(res[0].Err, ErrNewer) || res[1].Err != nil || res[1].Remaining[0] != 999 {
		t.Errorf("got %+v, %v; want %v for the first alone", res, err, ErrNewer)
	}
}

// Rows that cannot be read are handled as by every store.
func TestRows(t *testing.T) {
	storetest.RunUnreadable(t, func(t testing.TB, now func() time.Time) (store.Store, func(string, string, []byte), func(string, string) []byte) {
		s, err := Open(Config{Path: filepath.Join(t.TempDir(), "x.db"), Now: now, Moved: func(e *MovedError) { t.Error(e) }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		put := func(group, name string, row []byte) {
			text, args := "DELETE FROM budget WHERE family = ? AND name = ?", []any{group, name}
			if row != nil {
				text, args = "INSERT OR REPLACE INTO budget VALUES (?, ?, ?, ?)", []any{group, name, now().Add(24 * time.Hour).UnixNano(), row}
			}
			if _, err := s.file.conn.ExecContext(t.Context(), text, args...); err != nil {
				t.Fatal(err)
			}
		}
		get := func(group, name string) []byte {
			row, err := rows{s.file}.Get(group, name)
			if err != nil {
				t.Fatal(err)
			}
			return row
		}
		return s, put, get
	})
}

// A damaged budget begins anew; the file and all other budgets in it stay.
func TestDamagedBudgetInTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	var moved []*MovedError
	s := openTest(t, path, &moved)
	mustSpend(t, s, "b", 1, 999)
	mustSpend(t, s, "c", 5, 995)
	for _, row := range []string{"x'01ff'", "'text'", "17", "1.5", "x''"} {
		by(t, path, "UPDATE budget SET row = "+row+" WHERE name = 'b'")
		mustSpend(t, s, "b", 3, 997)
		mustSpend(t, s, "c", 0, 995)
	}
	if len(moved) != 0 {
		t.Errorf("moved %v", moved)
	}
}

func TestReadOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	s := openTest(t, path, nil)
	mustSpend(t, s, "b", 1, 999)
	if err := s.file.exec("PRAGMA query_only=1"); err != nil { // file permissions do not restrict root
		t.Fatal(err)
	}
	if _, err := s.Do(context.Background(), []store.Op{spend("b", 1)}); !errors.Is(err, ErrReadOnly) {
		t.Errorf("got %v, want %v", err, ErrReadOnly)
	}
	if _, err := Open(Config{Path: filepath.Join(t.TempDir(), "no", "x.db")}); !errors.Is(err, ErrReadOnly) {
		t.Errorf("without a folder: got %v, want %v", err, ErrReadOnly)
	}
}

func TestFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	s := openTest(t, path, nil)
	mustSpend(t, s, "first", 5, 995)
	if err := s.file.exec("PRAGMA max_page_count=8"); err != nil {
		t.Fatal(err)
	}
	full := error(nil)
	written := 0
	for ; full == nil && written < 10_000; written++ {
		_, full = s.Do(context.Background(), []store.Op{spend(strconv.Itoa(written), 1), spend("first", 1)})
	}
	if !errors.Is(full, ErrFull) {
		t.Fatalf("got %v, want %v", full, ErrFull)
	}
	// The next operation finds room, and the failed one has left nothing behind.
	mustSpend(t, s, "first", 0, 995-int64(written-1))
	mustSpend(t, s, strconv.Itoa(written-1), 0, 1000)
}

func TestDamagedFileIsMovedAside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	garbage := bytes.Repeat([]byte("no database "), 1000)
	if err := os.WriteFile(path, garbage, 0o666); err != nil {
		t.Fatal(err)
	}
	var moved []*MovedError
	s := openTest(t, path, &moved)
	mustSpend(t, s, "b", 1, 999)
	if len(moved) != 1 || moved[0].Path != path {
		t.Fatalf("got %v, want the report that %s was moved", moved, path)
	}
	if kept, err := os.ReadFile(moved[0].Aside); err != nil || !bytes.Equal(kept, garbage) {
		t.Errorf("aside: %d bytes, %v; want it as it was", len(kept), err)
	}
}

// Two stores use a file that is damaged meanwhile: one of them moves it aside, and both
// go on with the new one.
func TestDamagedInUse(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, path string){
		"pages": func(t *testing.T, path string) {
			by(t, path, "PRAGMA wal_checkpoint(TRUNCATE)")
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			info, err := f.Stat()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteAt(bytes.Repeat([]byte{0xa5}, int(info.Size())-4096), 4096); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.db")
			var moved []*MovedError
			one, two := openTest(t, path, &moved), openTest(t, path, &moved)
			for i := range 200 {
				mustSpend(t, one, strconv.Itoa(i), 1, 999)
			}
			damage(t, path)
			one.file.close() // its cache
			one.file = nil
			_, err := left(one, "7")
			for _, s := range []*Store{one, two} {
				if n, err2 := left(s, "7"); n != 1000 || err2 != nil {
					t.Errorf("afterwards %d left, %v (before: %v); want a new file", n, err2, err)
				}
			}
			mustSpend(t, one, "7", 1, 999)
			mustSpend(t, two, "7", 1, 998) // the same file
			if len(moved) != 1 {
				t.Errorf("moved %d times, want once", len(moved))
			}
		})
	}
}

// While another process has the lock, Do waits until its context ends.
func TestLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	one, two := openTest(t, path, nil), openTest(t, path, nil)
	if err := one.file.exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := two.Do(ctx, []store.Op{spend("b", 1)}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
	}
	if err := one.file.exec("COMMIT"); err != nil {
		t.Fatal(err)
	}
	mustSpend(t, two, "b", 1, 999)
}
