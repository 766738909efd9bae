package store

import (
	"bytes"
	"time"
)

// PutRow puts a row as another program would.
func (m *Memory) PutRow(group, n string, row []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rows == nil {
		m.rows = map[name]memoryRow{}
	}
	m.rows[name{group, n}] = memoryRow{row, time.Now().Add(24 * time.Hour)}
}

// Row returns the row of a name.
func (m *Memory) Row(group, n string) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return bytes.Clone(m.rows[name{group, n}].data)
}
