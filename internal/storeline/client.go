package storeline

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/headway-go/headway/internal/line"
	"github.com/headway-go/headway/store"
)

// A Client is one store's side of a Transport: it finds the lines, and knows whether the store
// is down. A Client with a Store and a Max is ready for use.
type Client struct {
	Store store.Store
	Max   int // bounds the lines, and the names of budgets and audiences known in them

	names      atomic.Int64 // known in all lines; lines that were dropped may still count
	hasNotices atomic.Bool  // notices is not empty: Notices is called for every request

	mu    sync.Mutex // guards following fields, and users, place and unsent of every Line
	lines map[lineKey]*Line
	ring  []*Line // the same lines, each at its place, so that Each can hold mu for a piece

	down    error // why the store is down; nil: it is not
	probing bool
	probeAt time.Time     // no probe before
	backoff time.Duration // from one probe to the next
	group   string        // that the failed round trip was about, and probes are
	kept    []store.Op    // to be done when the store is up

	unsent  []*Line // those that have unsent announcements, by the oldest of the first; see unsent.go
	count   int     // of unsent announcements
	flushed bool    // there may be some that no round trip has looked for
	sender  *sender // sends them; nil: none does

	notices []Notice
	bad     map[rowName]bool // rows that have been reported and not been read since
	backAt  time.Time        // when the store's clock was last reported as set back
}

type lineKey struct {
	owner any
	group string
}

// Line returns the line of an owner and a group, which it uses until Unuse is called. The policy
// returns the plan in force; nil where the policy is gone. It is called with locks held, and
// must do no more than read.
//
// Where there are Max lines, those that are not in use make way: what they remember is only for
// pages, and the budgets themselves are in the store. All lines that are in use are kept, so
// that there may be more than Max.
func (c *Client) Line(owner any, group string, policy func() *Plan) *Line {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := lineKey{owner, group}
	l := c.lines[key]
	if l == nil {
		l = &Line{client: c, key: key, policy: policy, classes: map[string]*class{}, flights: map[*Grant]bool{}}
		if c.lines == nil {
			c.lines = map[lineKey]*Line{}
		}
		for _, old := range c.lines {
			if len(c.lines) < c.Max {
				break
			}
			if old.users == 0 {
				c.dropLocked(old)
			}
		}
		c.lines[key], l.place = l, len(c.ring)
		c.ring = append(c.ring, l)
	}
	l.users++
	return l
}

// dropLocked forgets l, if it is still there. The last line of the ring takes its place, so that
// the ring has no holes. A line that is not in use has nothing in line, in flight or to be
// asked but what it knows, and what it has reserved, which its timer gives back.
func (c *Client) dropLocked(l *Line) {
	if c.lines[l.key] != l {
		return
	}
	delete(c.lines, l.key)
	last := len(c.ring) - 1
	c.ring[l.place] = c.ring[last]
	c.ring[l.place].place = l.place
	c.ring[last] = nil
	c.ring = c.ring[:last]
}

// Piece bounds how many lines or names are looked at while one lock is held: requests wait
// for it.
const Piece = 256

// Each calls f, with no lock held, with every line that exists during the whole call. It
// walks from the end of the ring: a line that takes the place of a dropped one has been
// looked at, so that f may be called twice with it, and none is missed.
func (c *Client) Each(f func(*Line)) {
	var piece [Piece]*Line
	c.mu.Lock()
	left := len(c.ring)
	c.mu.Unlock()
	for left > 0 {
		c.mu.Lock()
		left = min(left, len(c.ring))
		n := copy(piece[:], c.ring[max(0, left-Piece):left])
		c.mu.Unlock()
		left -= n
		for _, l := range piece[:n] {
			f(l)
		}
	}
}

// Reconfigure has all lines follow their policies: lines of policies that are gone are
// dropped unless they are in use, and all requests in line are decided anew.
func (c *Client) Reconfigure() {
	c.Each(func(l *Line) {
		c.mu.Lock()
		if l.users == 0 && l.policy() == nil {
			c.dropLocked(l)
		}
		c.mu.Unlock()
		l.reconfigure()
	})
}

// Recheck looks again at the requests that have joined g, a gate of local, after its breaker has
// changed or a request that passed it has ended. They are in the line of a group or, where that
// is empty, in any line of the owner.
func (c *Client) Recheck(owner any, group string, local *line.Line, g *line.Gate) {
	if group == "" {
		c.Each(func(l *Line) {
			if l.key.owner == owner {
				l.recheck(local, g)
			}
		})
		return
	}
	c.mu.Lock()
	l := c.lines[lineKey{owner, group}]
	c.mu.Unlock()
	if l != nil {
		l.recheck(local, g)
	}
}

// hasRoom counts one name more. Where there are too many, all lines forget theirs in a
// goroutine of its own, since mu of a line is held here; those in use are remembered again.
func (c *Client) hasRoom() bool {
	if c.names.Add(1) <= int64(c.Max) {
		return true
	}
	c.names.Store(0)
	go c.Each((*Line).forget)
	return false
}

// Owner returns the owner that Client.Line was called with.
func (l *Line) Owner() any { return l.key.owner }

// Group returns the group that Client.Line was called with.
func (l *Line) Group() string { return l.key.group }

// use has l used once more: a request in flight and a running round trip hold on to it.
func (l *Line) use() {
	l.client.mu.Lock()
	defer l.client.mu.Unlock()
	l.users++
}

// Unuse ends one use of l. A line that is not in use may be dropped.
func (l *Line) Unuse() {
	l.client.mu.Lock()
	defer l.client.mu.Unlock()
	l.users--
}
