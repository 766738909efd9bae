package storeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/headway-go/headway/internal/awake"
	"github.com/headway-go/headway/internal/show"
	"github.com/headway-go/headway/store"
)

// A store is up until a round trip fails or takes longer than Timeout. From then on it is down:
// nothing waits for it, and Policy.Store.Down decides what requests do. A request that comes when a
// probe is due starts it, and goes on without the store all the same. A probe that succeeds
// brings the store up; until then the time between probes doubles.
//
//	up ──round trip fails──▶ down ──▶ 100 ms later, at a request: probe ──fails──▶ 200 ms … 5 s
//	▲                                                             │
//	└────────────────────── the probe succeeds ◀──────────────────┘
//
// All lines of a Client share this state, so that one failure is enough for all of them. A
// store of several nodes is down as a whole when one node is.

// Timeout bounds a round trip. A store that needs longer is down.
const Timeout = 2 * time.Second

// The time between probes doubles from least to most.
const (
	leastBackoff = 100 * time.Millisecond
	mostBackoff  = 5 * time.Second
)

// mostKept bounds how many operations that give units back are kept while the store is down.
// The oldest are dropped: their units return when their leases end.
const mostKept = 4096

// ErrDown is the error of what needed a store that is down.
var ErrDown = errors.New("the store is down")

var errLate = errors.New("the store did not answer in time")

// Down returns why the store is down; nil if it is up.
func (c *Client) Down() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.down
}

// ProbeIn returns the time until the next probe; zero where the store is up.
func (c *Client) ProbeIn() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down == nil {
		return 0
	}
	return max(0, time.Until(c.probeAt))
}

// available is Down for what needs the store. Where a probe is due it starts one, in a
// goroutine of its own, and does not wait for it. So a store that stays down costs one round
// trip per backoff, and none while there are no requests.
func (c *Client) available() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down != nil && !c.probing && !time.Now().Before(c.probeAt) {
		c.probing = true
		go c.probe()
	}
	return c.down
}

// probe finds out whether the store is up, and has it do what was kept and what is unsent. It
// reads a row of the group that failed, so that a store of several nodes asks the node that was
// down. Should it fail, all that is kept on: it may have been done, and doing it again does no
// harm.
func (c *Client) probe() {
	c.mu.Lock()
	ops := append([]store.Op{{Kind: store.OpRead, Group: c.group, Audiences: []string{"probe"}}}, c.kept...)
	kept := ops[1:]
	c.kept = nil
	parts := c.takeAllUnsentLocked(awake.Now())
	for _, p := range parts {
		ops = append(ops, p.ops...)
	}
	c.mu.Unlock()
	results, err := c.roundTrip(ops)
	if err == nil {
		results = results[1+len(kept):]
	}
	for _, p := range parts {
		results = p.landed(results, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.probing, c.down = false, err
	if err == nil {
		c.noticeLocked(Notice{})
		c.flushLocked()
		return
	}
	c.keepLocked(kept...)
	c.backoff = min(2*c.backoff, mostBackoff)
	c.probeAt = time.Now().Add(c.backoff)
}

// keepLocked keeps operations for when the store is up.
func (c *Client) keepLocked(ops ...store.Op) {
	c.kept = append(c.kept, ops...)
	c.kept = c.kept[max(0, len(c.kept)-mostKept):]
}

func (c *Client) keep(op store.Op) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keepLocked(op)
}

// failed notes that a round trip with ops has failed, so that the store is down. The store may
// have done them all the same. A strict unit that it took would then be in flight until its
// lease ends, and so operations that give such units back are kept. Giving back units that
// were never taken does nothing. Other units return by their laws.
func (c *Client) failed(err error, ops []store.Op) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range ops {
		if op := &ops[i]; op.Kind == store.OpTake && slices.ContainsFunc(op.Needs, func(n store.Need) bool { return n.Limit.Strict }) {
			c.keepLocked(store.Op{Kind: store.OpGive, Group: op.Group, ID: op.ID, Needs: op.Needs})
		}
	}
	if c.down != nil {
		return
	}
	c.wentDownLocked()
	c.group = ops[0].Group
	c.down, c.backoff = err, leastBackoff
	c.probeAt = time.Now().Add(c.backoff)
	c.noticeLocked(Notice{Err: err})
}

// do has the store do ops, unless it is down. When that fails, the store is down.
func (c *Client) do(ops []store.Op) ([]store.Result, error) {
	if err := c.available(); err != nil {
		return nil, err
	}
	results, err := c.roundTrip(ops)
	if err != nil {
		c.failed(err, ops)
	}
	return results, err
}

// roundTrip has the store do ops, and takes about as long as Timeout if the store heeds its
// context. A panic of the store must not end the program: the goroutine is not a caller's.
func (c *Client) roundTrip(ops []store.Op) (results []store.Result, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			results, err = nil, fmt.Errorf("the store has panicked: %v", p)
		}
		err = show.Error(err) // many requests return it, and it may name a server with its password
	}()
	results, err = c.Store.Do(ctx, ops)
	switch {
	case err != nil:
		return nil, err
	case len(results) != len(ops):
		return nil, errors.New("the store has not returned one result for each operation")
	}
	c.noteRows(ops, results)
	return results, nil
}

// giveBack gives back what was granted to requests that no longer wait for it. An error
// does not matter: the units return by their laws.
func (c *Client) giveBack(ops []store.Op, results []store.Result) {
	var back []store.Op
	for i := range results {
		if results[i].OK {
			back = append(back, giveOp(&ops[i], results[i].At))
		}
	}
	if len(back) > 0 {
		c.roundTrip(back)
	}
}

// giveOp returns the operation that gives back what take has taken at an instant.
func giveOp(take *store.Op, at store.Instant) store.Op {
	op := store.Op{Kind: store.OpGive, Group: take.Group, ID: take.ID, Audiences: take.Audiences, Taken: at}
	for _, n := range take.Needs {
		n.Taken = at
		op.Needs = append(op.Needs, n)
	}
	return op
}
