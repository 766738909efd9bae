package store

import (
	"context"
	"sync"
	"time"
)

// Memory is a Store in the memory of one process: several Transports of it, and
// the quotas of OpenQuota, can share one. It is also what other stores are
// compared with. The zero Memory is empty and ready to use.
type Memory struct {
	// Now is its clock. Nil is time.Now.
	Now func() time.Time

	mu   sync.Mutex // guards following fields
	rows map[name]memoryRow
}

type memoryRow struct {
	data    []byte
	expires time.Time
}

// Do is Store's.
func (m *Memory) Do(ctx context.Context, ops []Op) ([]Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	tx := memoryTx{m.rows, map[name]memoryRow{}}
	results, err := Run(now, tx, ops)
	if err != nil {
		return nil, err
	}
	if m.rows == nil {
		m.rows = map[name]memoryRow{}
	}
	for k, r := range tx.put {
		m.rows[k] = r
	}
	m.sweep(now)
	return results, nil
}

// now reads the clock.
func (m *Memory) now() time.Time {
	if m.Now != nil {
		return m.Now()
	}
	return time.Now()
}

// sweep forgets what has expired among a few rows; a map begins anywhere.
func (m *Memory) sweep(now time.Time) {
	looks := 4
	for k, r := range m.rows {
		if !r.expires.After(now) {
			delete(m.rows, k)
		}
		if looks--; looks == 0 {
			return
		}
	}
}

// Len is Store's.
func (m *Memory) Len(context.Context) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.rows), nil
}

// memoryTx is Rows over a map that stays as it was until all has gone well.
type memoryTx struct{ rows, put map[name]memoryRow }

func (t memoryTx) Get(group, n string) ([]byte, error) { return t.rows[name{group, n}].data, nil }

func (t memoryTx) Put(group, n string, row []byte, expires time.Time) error {
	t.put[name{group, n}] = memoryRow{append([]byte(nil), row...), expires}
	return nil
}
