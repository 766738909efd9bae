package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/headway-go/headway/store"
	"modernc.org/sqlite"
)

var (
	// ErrNewer: the file was written by a newer version of this module, and stays as
	// it is. ErrNewer is also the cause of a store.Result.Err, for a budget in the file.
	ErrNewer = store.ErrNewer
	// ErrReadOnly: the file, or its folder, cannot be written to.
	ErrReadOnly = errors.New("the file or its folder cannot be written to; check their owner and permissions")
	// ErrFull: the disk is full.
	ErrFull = errors.New("the disk is full")
	// ErrOther: the file is a database of another program. It stays as it is.
	ErrOther = errors.New("the file is a database of another program; choose another path")
)

// A MovedError reports that a damaged file was moved aside and replaced by an empty
// one: all of its budgets begin anew.
type MovedError struct {
	// Path is the file's old name, and Aside its new one.
	Path, Aside string
	// Err describes the damage.
	Err error
}

// Error says which file was moved, where to, and why.
func (e *MovedError) Error() string {
	return fmt.Sprintf("sqlite: %s was damaged and is now %s; the budgets begin anew (%v)", e.Path, e.Aside, e.Err)
}

// Unwrap returns Err.
func (e *MovedError) Unwrap() error { return e.Err }

// SQLite's result codes.
const (
	codeBusy     = 5
	codeReadOnly = 8
	codeCorrupt  = 11
	codeFull     = 13
	codeCantOpen = 14
	codeProtocol = 15
	codeNotADB   = 26
)

// code returns the primary result code of an error; 0 if it is not SQLite's.
func code(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

func isBusy(err error) bool { c := code(err); return c == codeBusy || c == codeProtocol }

func isDamage(err error) bool {
	c := code(err)
	return c == codeCorrupt || c == codeNotADB || errors.Is(err, store.ErrDamaged)
}

// explain adds the name of the file to an error, and advice.
func (s *Store) explain(err error) error {
	switch code(err) {
	case codeReadOnly, codeCantOpen:
		err = fmt.Errorf("%w (%w)", ErrReadOnly, err)
	case codeFull:
		err = fmt.Errorf("%w (%w)", ErrFull, err)
	}
	return fmt.Errorf("sqlite: %s: %w", s.path, err)
}

// repair moves a damaged file aside, unless another process has done that by now. Its
// lock is another SQLite database, because the system releases such a lock however a
// process ends.
func (s *Store) repair(ctx context.Context) error {
	lock, err := sql.Open("sqlite", fileURL(s.path+"-repair"))
	if err != nil {
		return err
	}
	defer lock.Close()
	conn, err := lock.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	err = patiently(ctx, func() error {
		_, err := conn.ExecContext(context.Background(), "BEGIN EXCLUSIVE")
		return err
	})
	if err != nil {
		return err
	}
	why := s.check(ctx)
	if !isDamage(why) {
		return why
	}
	aside := s.path + ".damaged-" + time.Now().UTC().Format("20060102T150405.000000000")
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Rename(s.path+suffix, aside+suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	s.cfg.Moved(&MovedError{Path: s.path, Aside: aside, Err: why})
	return nil
}

// check checks the whole file. A damaged row in an intact file is no reason to move the file.
func (s *Store) check(ctx context.Context) error {
	f, err := openFile(ctx, s.path)
	if err != nil {
		return err
	}
	defer f.close()
	var verdict string
	if err := f.conn.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict); err != nil {
		return err
	}
	if verdict != "ok" {
		return fmt.Errorf("%w: %s", store.ErrDamaged, verdict)
	}
	return nil
}

func fileURL(path string) string {
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(path)}
	return u.String()
}
