// Package storeline is the line of those whose budgets are in a store: a queue in this
// process, first in, first out among those with the same needs. The first of each
// kind asks the store, sleeps until the exact time that it tells, and asks again;
// nothing polls. No lock is held while the store works.
package storeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headway-go/headway/internal/awake"
	"github.com/headway-go/headway/internal/show"
	"github.com/headway-go/headway/store"
)

// Timeout bounds a round trip. A store that needs longer counts as away.
const Timeout = 2 * time.Second

// A Client asks one store for many lines. While the store is away, nobody waits
// for it: one question at a time, when somebody comes, finds out whether it is
// back.
type Client struct {
	Store store.Store
	// Max bounds how many lines and names are remembered for pages.
	Max int

	names      atomic.Int64 // of all lines
	hasNotices atomic.Bool  // there may be news
	hasBad     atomic.Bool  // bad is not empty

	mu      sync.Mutex // guards following fields
	lines   map[lineKey]*Line
	ring    []*Line // the same, to be looked at in pieces
	down    error   // why; nil: it is there
	notices []Notice
	bad     map[rowName]bool // rows that have been reported and have not been read since
	backAt  time.Time        // when the store's clock was last reported as set back
	probing bool
	probeAt time.Time     // no question before
	backoff time.Duration // from one to the next
	group   string        // what the question is about: what could not be asked
	unsent  []store.Op    // what the store has to hear when it is back
}

// mostUnsent bounds unsent. What is not in it the store finds out by its leases.
const mostUnsent = 4096

// keepUnsent keeps an operation for when the store is back.
func (c *Client) keepUnsent(op store.Op) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unsent = append(c.unsent, op)
	if n := len(c.unsent) - mostUnsent; n > 0 {
		c.unsent = c.unsent[n:]
	}
}

// unsentTakes keeps what gives back the flights that ops may have begun: nobody knows
// whether the store has done them.
func (c *Client) unsentTakes(ops []store.Op) {
	for i := range ops {
		if op := &ops[i]; op.Kind == store.OpTake && slices.ContainsFunc(op.Needs, func(n store.Need) bool { return n.Limit.Strict }) {
			c.keepUnsent(store.Op{Kind: store.OpGive, Group: op.Group, ID: op.ID, Needs: op.Needs})
		}
	}
}

// The time between questions doubles from least to most.
const (
	leastBackoff = 100 * time.Millisecond
	mostBackoff  = 5 * time.Second
)

// ErrDown says that the store could not be asked.
var ErrDown = errors.New("the store is away")

var errLate = errors.New("the store did not answer in time")

// available returns why the store is away, nil if it is there.
func (c *Client) available() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down != nil && !c.probing && !time.Now().Before(c.probeAt) {
		c.probing = true
		go c.probe()
	}
	return c.down
}

// probe asks what could not be asked, so that it comes to the same server, and
// tells what was unsent.
func (c *Client) probe() {
	c.mu.Lock()
	ops := append([]store.Op{{Kind: store.OpRead, Group: c.group, Ears: []string{"probe"}}}, c.unsent...)
	c.unsent = nil
	c.mu.Unlock()
	_, err := c.ask(ops)
	if err != nil {
		for _, op := range ops[1:] {
			c.keepUnsent(op)
		}
	}
	c.mu.Lock()
	c.probing = false
	if err == nil {
		c.down = nil
		c.toldLocked(Notice{})
	} else {
		c.down = err
		c.backoff = min(2*c.backoff, mostBackoff)
		c.probeAt = time.Now().Add(c.backoff)
	}
	c.mu.Unlock()
}

// A Notice is that the store is away, or back where Err is nil; or that it is there,
// but one Row could not be read.
type Notice struct {
	Err error
	Row *store.RowError
	// Back, not zero, is by how much the store's clock has been set back.
	Back time.Duration
}

// toldLocked keeps what Notices returns.
func (c *Client) toldLocked(n Notice) {
	c.notices = append(c.notices, n)
	c.hasNotices.Store(true)
}

type rowName struct{ group, name string }

// mostBad bounds how many rows are known to have been reported, and mostNotices what has
// not been fetched yet.
const (
	mostBad     = 1024
	mostNotices = 256
)

// noteRows reports rows that could not be read: one that stays as it is once, until it
// is read again.
func (c *Client) noteRows(ops []store.Op, results []store.Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	tell := func(e *store.RowError) {
		if len(c.notices) < mostNotices {
			c.toldLocked(Notice{Row: e})
		}
	}
	back := time.Duration(0)
	for i := range results {
		back = max(back, results[i].Back)
		for _, e := range results[i].Anew {
			tell(e)
		}
		if len(c.bad) > 0 && results[i].Err == nil && !results[i].Skipped {
			for _, n := range ops[i].Needs {
				delete(c.bad, rowName{ops[i].Group, n.Budget})
			}
			for _, ear := range ops[i].Ears {
				delete(c.bad, rowName{ops[i].Group, ear})
			}
		}
		if results[i].Err == nil {
			continue
		}
		e := results[i].Err.(*store.RowError) // see ask
		name := rowName{e.Group, e.Name}
		switch {
		case c.bad[name]:
			continue
		case c.bad == nil || len(c.bad) >= mostBad:
			c.bad = map[rowName]bool{}
		}
		c.bad[name] = true
		tell(e)
	}
	c.hasBad.Store(len(c.bad) > 0)
	// Each row that was ahead says so; one of them is enough.
	if now := awake.Now(); back > 0 && now.Sub(c.backAt) >= time.Minute && len(c.notices) < mostNotices {
		c.backAt = now
		c.toldLocked(Notice{Back: back})
	}
}

// Notices returns once, and to one caller, what has happened since.
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

// failed notes that the store is away: it could not be asked ops.
func (c *Client) failed(err error, ops []store.Op) {
	c.unsentTakes(ops)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down != nil {
		return
	}
	c.group = ops[0].Group
	c.down, c.backoff = err, leastBackoff
	c.probeAt = time.Now().Add(c.backoff)
	c.toldLocked(Notice{Err: err})
}

// ask asks the store, for about as long as Timeout if it heeds its context. A
// panic in it must not end the program, since this is no goroutine of a caller's.
func (c *Client) ask(ops []store.Op) (results []store.Result, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			results, err = nil, fmt.Errorf("the store has panicked: %v", p)
		}
		err = show.Error(err) // all who ask get it, and it may name a server with its password
	}()
	results, err = c.Store.Do(ctx, ops)
	if err == nil && len(results) != len(ops) {
		return nil, errors.New("the store has answered other questions than were asked")
	}
	if err == nil {
		showRows(ops, results)
	}
	if err == nil && (c.hasBad.Load() || slices.ContainsFunc(results, func(r store.Result) bool { return r.Err != nil || r.Anew != nil || r.Back != 0 })) {
		c.noteRows(ops, results)
	}
	return results, err
}

// showRows makes every error of a row a *store.RowError that may be kept and shown.
// No lock is held, since it may call methods of the store's errors.
func showRows(ops []store.Op, results []store.Result) {
	shown := func(e *store.RowError) *store.RowError {
		own := *e
		own.Err = show.Error(e.Err)
		return &own
	}
	for i := range results {
		r := &results[i]
		for j, e := range r.Anew {
			r.Anew[j] = shown(e)
		}
		if r.Err == nil {
			continue
		}
		var e *store.RowError
		if !errors.As(r.Err, &e) { // another store's
			e = &store.RowError{Group: ops[i].Group, Err: r.Err}
		}
		r.Err = shown(e)
	}
}

// giveBack gives back what was granted to those who no longer wait for it.
func (c *Client) giveBack(ops []store.Op, results []store.Result) {
	var back []store.Op
	for i := range results {
		if results[i].OK {
			back = append(back, giveOp(&ops[i], results[i].At))
		}
	}
	if len(back) > 0 {
		c.ask(back) // nobody is left to hear of an error; the units come back by their laws
	}
}

// giveOp returns what gives back what take has taken at an instant.
func giveOp(take *store.Op, at store.Instant) store.Op {
	op := store.Op{Kind: store.OpGive, Group: take.Group, ID: take.ID, Ears: take.Ears, Taken: at}
	for _, n := range take.Needs {
		n.Taken = at
		op.Needs = append(op.Needs, n)
	}
	return op
}

type lineKey struct {
	owner any
	group string
}

// Line returns the line of an owner and a group. It is in use until Unuse has been
// called on it as often as Line has returned it.
func (c *Client) Line(owner any, group string, setting func() Setting) *Line {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := lineKey{owner, group}
	l := c.lines[key]
	if l == nil {
		l = &Line{client: c, owner: owner, group: group, setting: setting, classes: map[string]*class{}}
		if c.lines == nil {
			c.lines = map[lineKey]*Line{}
		}
		for key, l := range c.lines {
			if len(c.lines) < c.Max {
				break
			}
			if l.users == 0 {
				delete(c.lines, key)
				c.dropLocked(l)
			}
		}
		c.lines[key] = l
		l.place = len(c.ring)
		c.ring = append(c.ring, l)
	}
	l.users++
	return l
}

// Find is Line, but nil where there is none at present.
func (c *Client) Find(owner any, group string) *Line {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.lines[lineKey{owner, group}]
	if l != nil {
		l.users++
	}
	return l
}

// Lines returns the lines of an owner. Unuse must be called on each.
func (c *Client) Lines(owner any) (all []*Line) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, l := range c.lines {
		if key.owner == owner {
			l.users++
			all = append(all, l)
		}
	}
	return all
}

// dropLocked takes l out of the ring: the last one takes its place.
func (c *Client) dropLocked(l *Line) {
	last := len(c.ring) - 1
	c.ring[l.place] = c.ring[last]
	c.ring[l.place].place = l.place
	c.ring[last] = nil
	c.ring = c.ring[:last]
}

// Each calls f with every line that is there all the while, some of them twice. It
// holds the lock for Piece lines at a time.
func (c *Client) Each(f func(*Line)) {
	var few [Piece]*Line
	c.mu.Lock()
	left := len(c.ring)
	c.mu.Unlock()
	for left > 0 {
		c.mu.Lock()
		left = min(left, len(c.ring)) // those behind it have been looked at
		n := copy(few[:], c.ring[max(0, left-Piece):left])
		c.mu.Unlock()
		left -= n
		for _, l := range few[:n] {
			f(l)
		}
	}
}

// Owner returns whose line it is.
func (l *Line) Owner() any { return l.owner }

// Group returns the name of its group.
func (l *Line) Group() string { return l.group }

// Unuse ends one use of l.
func (l *Line) Unuse() {
	c := l.client
	c.mu.Lock()
	defer c.mu.Unlock()
	l.users--
}

// room reports whether there is room for one name more. When there is none, all
// are forgotten, and those in use come back.
func (c *Client) room() bool {
	if c.names.Add(1) <= int64(c.Max) {
		return true
	}
	c.names.Store(0)
	go c.forget()
	return false
}

func (c *Client) forget() {
	for _, l := range c.all() {
		l.forget()
	}
}

func (c *Client) all() (all []*Line) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.lines {
		all = append(all, l)
	}
	return all
}

// hold is Line for who has l already.
func (l *Line) hold() {
	l.client.mu.Lock()
	l.users++
	l.client.mu.Unlock()
}

// Reconfigure tells all lines that their settings have. Of the names of their budgets,
// those are forgotten that known does not know, and of the lines that are not in use
// those of an owner that is gone.
func (c *Client) Reconfigure(gone func(owner any) bool, known func(owner any, budget string) bool) {
	c.mu.Lock()
	all := make(map[*Line]any, len(c.lines))
	for key, l := range c.lines {
		if l.users == 0 && gone(key.owner) {
			delete(c.lines, key)
			continue
		}
		all[l] = key.owner
	}
	c.mu.Unlock()
	for l, owner := range all {
		l.forgetNames(func(budget string) bool { return known(owner, budget) })
		l.changed()
	}
}

// Down returns why the store is away, nil if it is there. It asks nothing.
func (c *Client) Down() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.down
}

// ProbeIn returns the time until the next question whether the store is back.
func (c *Client) ProbeIn() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down == nil {
		return 0
	}
	return max(0, time.Until(c.probeAt))
}
