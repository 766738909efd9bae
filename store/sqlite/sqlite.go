// Package sqlite keeps Headway's budgets in a file, which the processes of one
// machine share and which outlives them. It is SQLite's own code, without cgo.
//
//	budgets, err := sqlite.Open(sqlite.Config{Path: "/var/lib/import/budgets.db"})
//	…
//	defer budgets.Close()
//	transport, err := headway.NewTransport(nil, headway.Config{Policies: policies, Secret: secret, Store: budgets})
//
// What a process has taken is in the file before its request is sent, whatever
// way the process ends afterwards. After a power failure the last moments may be
// missing, never the file. The file must be on a disk of the machine, since
// SQLite's locks do not work over a network.
//
// The clock is the machine's. Where that is set back, budgets in use have room again
// one period later, two under Sliding; where it is set forward, earlier.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/headway-go/headway/store"
	_ "modernc.org/sqlite" // the driver
)

// Config is what a Store is opened with.
type Config struct {
	// Path is the file. It is made if there is none; its folder is not. SQLite
	// keeps two more beside it, with -wal and -shm behind the name.
	Path string
	// Now is the clock. Nil is time.Now.
	Now func() time.Time
	// Moved hears that a damaged file was moved aside, when that has been done.
	// Nil: it is written to the log package's standard logger.
	Moved func(*MovedError)
}

// A Store is a file. Any number of goroutines may use it, and any number of
// Stores, in any number of processes, the same file.
type Store struct {
	cfg  Config
	path string // absolute

	mu    sync.Mutex // guards following fields
	file  *file      // nil: to be opened again
	swept time.Time
	over  bool
}

// A file is one connection.
type file struct {
	info                    os.FileInfo // to tell it from a successor
	db                      *sql.DB
	conn                    *sql.Conn
	begin, commit, rollback *sql.Stmt
	get, put                *sql.Stmt
}

// Open opens a file, or makes it. A damaged one is moved aside first. The error
// is ErrNewer, ErrReadOnly, ErrFull or ErrOther where that is the reason.
func Open(cfg Config) (*Store, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Moved == nil {
		cfg.Moved = func(err *MovedError) { log.Print(err) }
	}
	path, err := filepath.Abs(cfg.Path)
	if err != nil {
		return nil, fmt.Errorf("sqlite: %w", err)
	}
	if cfg.Path == "" {
		return nil, errors.New("sqlite: Path is empty: want the name of a file")
	}
	s := &Store{cfg: cfg, path: path}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// open opens the file, after a repair if need be. s.mu is held.
func (s *Store) open(ctx context.Context) error {
	f, err := openFile(ctx, s.path)
	if isDamage(err) {
		if err = s.repair(ctx); err == nil {
			f, err = openFile(ctx, s.path)
		}
	}
	if err != nil {
		return s.explain(err)
	}
	s.file = f
	return nil
}

const (
	schema        = 1
	applicationID = 0x48647779 // "Hdwy"
)

// openFile opens a connection, and makes the table where there is none.
func openFile(ctx context.Context, path string) (f *file, err error) {
	db, err := sql.Open("sqlite", fileURL(path))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	f = &file{db: db}
	defer func(opened *file) {
		if err != nil {
			opened.close()
		}
	}(f)
	if f.conn, err = db.Conn(ctx); err != nil {
		return nil, err
	}
	var version, id, tables int
	err = patiently(ctx, func() error {
		err := f.conn.QueryRowContext(context.Background(),
			"SELECT (SELECT user_version FROM pragma_user_version), (SELECT application_id FROM pragma_application_id), (SELECT count(*) FROM sqlite_schema)").
			Scan(&version, &id, &tables)
		switch {
		case err != nil:
			return err
		case id != applicationID && (id != 0 || version != 0 || tables != 0):
			return ErrOther
		case version > schema:
			return ErrNewer
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, text := range []string{
		"PRAGMA journal_mode=WAL", "PRAGMA synchronous=NORMAL", "PRAGMA busy_timeout=0", // patiently has a context
	} {
		if err := patiently(ctx, func() error { return f.exec(text) }); err != nil {
			return nil, err
		}
	}
	if version < schema {
		if err := patiently(ctx, f.create); err != nil {
			return nil, err
		}
	}
	for text, stmt := range map[string]**sql.Stmt{
		"BEGIN IMMEDIATE": &f.begin,
		"COMMIT":          &f.commit,
		"ROLLBACK":        &f.rollback,
		"SELECT row FROM budget WHERE family = ? AND name = ?": &f.get,
		"INSERT INTO budget (family, name, expires, row) VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET expires = excluded.expires, row = excluded.row": &f.put,
	} {
		err := patiently(ctx, func() (err error) {
			*stmt, err = f.conn.PrepareContext(context.Background(), text)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	f.info, err = os.Stat(path)
	return f, err
}

func (f *file) exec(text string) error {
	_, err := f.conn.ExecContext(context.Background(), text)
	return err
}

// create makes the table, unless another process has by now.
func (f *file) create() error {
	if err := f.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	for _, text := range []string{
		"CREATE TABLE IF NOT EXISTS budget (family TEXT NOT NULL, name TEXT NOT NULL, expires INTEGER NOT NULL, row BLOB NOT NULL, PRIMARY KEY (family, name)) WITHOUT ROWID",
		fmt.Sprintf("PRAGMA application_id=%d", applicationID),
		fmt.Sprintf("PRAGMA user_version=%d", schema),
		"COMMIT",
	} {
		if err := f.exec(text); err != nil {
			f.exec("ROLLBACK") // the first error counts
			return err
		}
	}
	return nil
}

// stillAt reports whether f is what path names.
func (f *file) stillAt(path string) bool {
	info, err := os.Stat(path)
	return err == nil && os.SameFile(info, f.info)
}

func (f *file) close() error {
	if f.conn != nil {
		f.conn.Close()
	}
	return f.db.Close()
}

// patiently does what another process may keep from being done at once, again
// and again until ctx is over: SQLite has no queue for its lock.
func patiently(ctx context.Context, do func() error) error {
	for pause := 50 * time.Microsecond; ; pause = min(2*pause, 5*time.Millisecond) {
		err := do()
		if !isBusy(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (the file is locked)", ctx.Err())
		case <-time.After(pause/2 + rand.N(pause)):
		}
	}
}

// Close closes the file. Do returns an error afterwards.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	if s.file == nil {
		return nil
	}
	f := s.file
	s.file = nil
	return f.close()
}

// Do is that of store.Store: one transaction.
func (s *Store) Do(ctx context.Context, ops []store.Op) (results []store.Result, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil { // the wait for others took that long
		return nil, err
	}
	err = s.in(ctx, func(f *file) error {
		now := s.cfg.Now()
		if results, err = store.Run(now, rows{f}, ops); err != nil {
			return err
		}
		return s.sweep(f, now)
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

var errClosed = errors.New("sqlite: the store is closed")

// in does something in a transaction. s.mu is held.
func (s *Store) in(ctx context.Context, do func(*file) error) error {
	if s.over {
		return errClosed
	}
	if s.file != nil && !s.file.stillAt(s.path) {
		s.file.close() // another process has moved it aside
		s.file = nil
	}
	if s.file == nil {
		if err := s.open(ctx); err != nil {
			return err
		}
	}
	f, none := s.file, context.Background() // a statement takes no time that ctx would have to end
	err := patiently(ctx, func() error { _, err := f.begin.ExecContext(none); return err })
	if err == nil {
		if err = do(f); err == nil {
			_, err = f.commit.ExecContext(none)
		}
		if err != nil {
			f.rollback.ExecContext(none) // the first error counts
		}
	}
	if err == nil || errors.Is(err, ctx.Err()) {
		return err
	}
	// Whatever it was, the next one begins with the file as it is then: moved,
	// repaired, or with room again.
	s.file = nil
	f.close()
	if isDamage(err) {
		if err := s.repair(ctx); err != nil {
			return s.explain(err)
		}
	}
	return s.explain(err)
}

// rows is store.Rows in a transaction.
type rows struct{ *file }

func (r rows) Get(group, name string) (row []byte, err error) {
	err = r.get.QueryRowContext(context.Background(), group, name).Scan(&row)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return row, err
}

func (r rows) Put(group, name string, row []byte, expires time.Time) error {
	_, err := r.put.ExecContext(context.Background(), group, name, expires.UnixNano(), row)
	return err
}

// sweep forgets what has expired, once a minute.
func (s *Store) sweep(f *file, now time.Time) error {
	if d := now.Sub(s.swept); d >= 0 && d < time.Minute {
		return nil
	}
	s.swept = now
	_, err := f.conn.ExecContext(context.Background(), "DELETE FROM budget WHERE expires <= ?", now.UnixNano())
	return err
}

// Len is that of store.Store.
func (s *Store) Len(ctx context.Context) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err = s.in(ctx, func(f *file) error {
		return f.conn.QueryRowContext(context.Background(), "SELECT count(*) FROM budget").Scan(&n)
	})
	return n, err
}

var _ store.Store = (*Store)(nil)
