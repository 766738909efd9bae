// Package sqlite keeps Headway's budgets in a file that the processes of one machine
// share, and that outlives them. It uses SQLite without cgo.
//
//	budgets, err := sqlite.Open(sqlite.Config{Path: "/var/lib/import/budgets.db"})
//	…
//	defer budgets.Close()
//	transport, err := headway.NewTransport(nil, headway.Config{Policies: policies, Secret: secret, Store: budgets})
//
// A request's units are in the file before the request is sent, so that they count
// however the process ends. After a power failure, the last moments may be missing, but
// the file stays intact. The file must be on a local disk, because SQLite's locks do
// not work over a network.
//
// The clock is the machine's. If it is set back, budgets in use have room again one
// period later, or two under Sliding; if it is set forward, earlier.
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

// Config configures a Store.
type Config struct {
	// Path is the file. It is created if it does not exist, but its folder is not.
	// SQLite keeps two more files beside it, whose names end in -wal and -shm.
	Path string
	// Now is the clock. Nil means time.Now.
	Now func() time.Time
	// Moved is called after a damaged file was moved aside. Nil means that the
	// error is written to the log package's standard logger.
	Moved func(*MovedError)
}

// A Store keeps budgets in a file. It is safe for concurrent use. Any number of Stores,
// in any number of processes of the machine, may use the same file.
type Store struct {
	cfg  Config
	path string // absolute

	mu    sync.Mutex // guards following fields
	file  *file      // nil: must be opened again
	swept time.Time  // when expired rows were last deleted
	over  bool       // Close was called
}

// A file is one connection to the file.
type file struct {
	info                    os.FileInfo // distinguishes it from a file that replaced it
	db                      *sql.DB
	conn                    *sql.Conn
	begin, commit, rollback *sql.Stmt
	get, put                *sql.Stmt
}

// Open opens a file, or creates it. A damaged file is moved aside first. The error wraps
// ErrNewer, ErrReadOnly, ErrFull or ErrOther if that is the reason.
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
	if err := s.openLocked(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// openLocked opens the file, after a repair if necessary.
func (s *Store) openLocked(ctx context.Context) error {
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

// openFile opens a connection, and creates the table if there is none.
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

// create creates the table, unless another process has created it by now.
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

// stillAt reports whether path still names f.
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

// patiently calls do again and again while another process holds SQLite's lock, which
// has no queue, until ctx ends.
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

// Do implements store.Store, in one transaction.
func (s *Store) Do(ctx context.Context, ops []store.Op) (results []store.Result, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil { // it ended while waiting for the mutex
		return nil, err
	}
	err = s.inLocked(ctx, func(f *file) error {
		now := s.cfg.Now()
		if results, err = store.Run(now, rows{f}, ops); err != nil {
			return err
		}
		return s.sweepLocked(f, now)
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

var errClosed = errors.New("sqlite: the store is closed")

// inLocked calls do in a transaction.
func (s *Store) inLocked(ctx context.Context, do func(*file) error) error {
	if s.over {
		return errClosed
	}
	if s.file != nil && !s.file.stillAt(s.path) {
		s.file.close() // another process has moved it aside
		s.file = nil
	}
	if s.file == nil {
		if err := s.openLocked(ctx); err != nil {
			return err
		}
	}
	f, none := s.file, context.Background() // a statement is too short to be cut off by ctx
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
	// After any other error, the next transaction opens the file again: it may have
	// been moved or repaired, or the disk may have room again.
	s.file = nil
	f.close()
	if isDamage(err) {
		if err := s.repair(ctx); err != nil {
			return s.explain(err)
		}
	}
	return s.explain(err)
}

// rows implements store.Rows in a transaction.
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

// sweepLocked deletes expired rows, once a minute.
func (s *Store) sweepLocked(f *file, now time.Time) error {
	if d := now.Sub(s.swept); d >= 0 && d < time.Minute {
		return nil
	}
	s.swept = now
	_, err := f.conn.ExecContext(context.Background(), "DELETE FROM budget WHERE expires <= ?", now.UnixNano())
	return err
}

// Len implements store.Store.
func (s *Store) Len(ctx context.Context) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err = s.inLocked(ctx, func(f *file) error {
		return f.conn.QueryRowContext(context.Background(), "SELECT count(*) FROM budget").Scan(&n)
	})
	return n, err
}

var _ store.Store = (*Store)(nil)
