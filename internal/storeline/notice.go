package storeline

import (
	"errors"
	"time"

	"github.com/headway-go/headway/internal/awake"
	"github.com/headway-go/headway/internal/show"
	"github.com/headway-go/headway/store"
)

// Round trips run in goroutines of their lines, which have no context of a request for the
// observer. So they leave notices, and the next request that comes by reports them.

// A Notice is something to report of the store: that it is down because of Err, or, where
// all fields are zero, up again; or, while it is up, a Row, its clock, or a pause.
type Notice struct {
	Err  error
	Row  *store.RowError // could not be read
	Back time.Duration   // not zero: by how much the store's clock has been set back

	// Raised is a pause that grows and that the store has made longer than Raised.Lasts: it
	// lasts for Paused, from At, an instant of awake.Now.
	Raised *Raised
	Paused time.Duration
	At     time.Time
}

// A rowName is a row of a store: what it remembers under one name.
type rowName struct{ group, name string }

// mostBad bounds how many rows are known to have been reported, and mostNotices what has
// not been fetched yet.
const (
	mostBad     = 1024
	mostNotices = 256
)

// Notices returns what has happened since the last call. Each notice is returned once.
func (c *Client) Notices() []Notice {
	if !c.hasNotices.Load() {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	notices := c.notices
	c.notices = nil
	c.hasNotices.Store(false)
	return notices
}

// notice gives a notice, unless there are too many.
func (c *Client) notice(n Notice) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.notices) < mostNotices {
		c.noticeLocked(n)
	}
}

func (c *Client) noticeLocked(n Notice) {
	c.notices = append(c.notices, n)
	c.hasNotices.Store(true)
}

// noteRows gives notice of rows that could not be read, and of a clock that was set back. A row
// that is damaged begins anew, and each time is reported. One of a newer version stays as it
// is, and would be reported for each request that needs it: see noteRowLocked.
//
// Every error of a row becomes a *store.RowError that may be kept and shown. That calls
// methods of the store's errors, with no lock held.
func (c *Client) noteRows(ops []store.Op, results []store.Result) {
	for i := range results {
		r := &results[i]
		for j, e := range r.Anew {
			r.Anew[j] = shown(e)
		}
		if r.Err != nil {
			e := &store.RowError{Group: ops[i].Group, Err: r.Err} // of a store that does not call Run
			errors.As(r.Err, &e)
			r.Err = shown(e)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	back := time.Duration(0)
	for i := range results {
		r := &results[i]
		back = max(back, r.Back)
		for _, e := range r.Anew {
			c.noteRowLocked(e)
		}
		switch {
		case r.Err != nil:
			c.noteRowLocked(r.Err.(*store.RowError))
		case len(c.bad) > 0 && !r.Skipped: // these rows have been read
			for _, n := range ops[i].Needs {
				delete(c.bad, rowName{ops[i].Group, n.Budget})
			}
			for _, audience := range ops[i].Audiences {
				delete(c.bad, rowName{ops[i].Group, audience})
			}
		}
	}
	// Each row that is ahead of the clock reports it; one notice is enough.
	if now := awake.Now(); back > 0 && now.Sub(c.backAt) >= time.Minute && len(c.notices) < mostNotices {
		c.backAt = now
		c.noticeLocked(Notice{Back: back})
	}
}

// noteRowLocked gives notice of a row. One that stays as it is is reported once, until it is
// read again.
func (c *Client) noteRowLocked(e *store.RowError) {
	if name := (rowName{e.Group, e.Name}); !e.Anew {
		switch {
		case c.bad[name]:
			return
		case c.bad == nil || len(c.bad) >= mostBad:
			c.bad = map[rowName]bool{}
		}
		c.bad[name] = true
	}
	if len(c.notices) < mostNotices {
		c.noticeLocked(Notice{Row: e})
	}
}

func shown(e *store.RowError) *store.RowError {
	own := *e
	own.Err = show.Error(e.Err)
	return &own
}
