package storeline

import (
	"container/list"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/headway-go/headway/internal/awake"
	"github.com/headway-go/headway/internal/line"
	"github.com/headway-go/headway/store"
)

// A Need is what a request takes from one budget.
type Need struct {
	Budget string
	Cost   int64
}

// An Ask is what a request needs to start, and how long it may wait for it.
type Ask struct {
	Needs     []Need
	Audiences []string      // whose pauses and announced limits hold for it
	Identity  uint64        // whose share of a full line it takes; zero: that of requests without keys
	MaxWait   time.Duration // the wait budget; negative: none
	NoSlot    bool          // it takes no in-flight slot
	Exact     bool          // its cost may be corrected, so that the store must know when it started

	Gate    *line.Gate    // the breaker that it must pass; nil: none
	Local   *line.Line    // the line in memory that Gate belongs to
	Journal *line.Journal // where to note what held it up; nil: nowhere
}

// A Line is the queue of the requests of one group in this process. Any goroutine may use it.
//
// A request in line is in three orders. All are in order, by arrival, for forecasts. Each is
// in the queue of its class, the requests with the same needs: what admits the first of a
// class admits the next, and what refuses it refuses the next, so that only the first few ask
// the store. And the requests that the store has just granted are in the chain, from which
// they are sent one after another.
//
//	order      a1   b1   a2   c1   a3        a2 and a3 need what a1 needs
//	classes    a: a1 a2 a3 (due at 1004)   b: b1 (due now)   c: c1 (due at 1250)
//	next       take b1; the timer then runs at 1004
type Line struct {
	client *Client
	key    lineKey
	policy func() *Plan

	// Guarded by the client's mu.
	users       int // while it is not zero the line stays
	place       int // in the client's ring
	unsent      []*unsent
	unsentOf    map[unsentKey]*unsent // the same
	pausesNoted int                   // among them

	// mu guards following fields. With it held, the client's mu and that of Ask.Local may
	// be taken, never the other way round. It is not held while the store works.
	mu sync.Mutex

	// The queue.
	order     list.List         // of *waiter, by arrival
	classes   map[string]*class // by classKey; none is empty
	arrivals  uint64            // the number of the latest waiter
	undecided []*waiter         // in order; whether they wait is not known: see settleLocked
	waiting   int               // how many in order are known to wait
	chain     []*waiter         // see wakeLocked
	halted    []*scope          // by a Halt each

	// What is to be asked of the store, and what is out; see collectLocked.
	out       *batch       // the round trip that is out; nil: run does not run
	queued    []*operation // to be done besides
	overdue   []*waiter    // whose wait ends now, unless they start
	check     bool         // a forecast is due: a wait may have become too long
	checkAll  bool         // also of requests that may wait for ever: a limit may never admit them now
	checked   bool         // the latest round trip was a forecast
	span      int          // how many of all classes may ask at once
	timer     *time.Timer  // runs at the next instant at which something is due
	gateFrees time.Time    // when a gate stops waiting for requests in flight; zero: none waits

	// What has started.
	flights  map[*Grant]bool      // granted and not done
	slots    int                  // in-flight slots that are taken
	reserved map[string]*reserved // by class
	recent   line.Recent          // the successes of requests without a limit
	raised   bool                 // this process has raised a pause

	// What the store has reported; see Known.
	known map[string]*known // by the name of a budget or audience
	names []*known          // the same, in order of their first use
}

// A class is the requests in line with the same budgets, audiences and gate. It exists while it
// has requests, so that a due of the past is no promise to those that come much later.
type class struct {
	key     string
	number  uint64    // the store's name for it: the number of its first waiter
	queue   list.List // of *waiter
	due     time.Time // when it may start at the earliest, and asks; zero: now
	width   int       // how many ask at once
	refused bool      // the store has refused one of them
	learned bool      // what holds it up is an announced limit; see askAgain
}

func (c *class) first() *waiter { return c.queue.Front().Value.(*waiter) }

// A waiter is a request in line, or one that has just left it. It ends in one of four ways: with
// a grant, a refusal, or an error, of which its caller learns by ready, or with left, when the
// caller's context ends first. The caller reads the three after it has received from ready,
// without a lock: nothing changes them any more.
type waiter struct {
	ask        *Ask
	class      *class
	inOrder    *list.Element // of the line
	inClass    *list.Element
	number     uint64 // by arrival
	id         uint64 // the store's name for it, unique among all processes
	arrived    time.Time
	by         time.Time // the last instant at which it may start; zero: none
	byDeadline bool      // by is due to the context's deadline, not to the wait budget
	timer      *time.Timer

	due     store.Instant // when it may start, as the store reported last; zero: it has not
	bind    line.Refusal  // what holds it up until due
	counted bool          // in Line.waiting
	full    bool          // there is no place for it to wait, unless it starts or another makes way
	asking  time.Time     // since when it is in the batch that is out; zero: it is not
	left    bool          // its caller has gone, while it was asking

	grant   *Grant
	refusal *line.Refusal
	err     error
	ready   chan struct{} // receives once, when the caller may go on
}

// inLine reports whether nothing is decided of w yet.
func (w *waiter) inLine() bool { return w.grant == nil && w.refusal == nil && w.err == nil && !w.left }

var noPlan Plan

// plan returns the plan in force. It may change between two calls, also while mu is held: no
// two fields of the line depend on having been set under the same plan.
func (l *Line) plan() *Plan {
	if p := l.policy(); p != nil {
		return p
	}
	return &noPlan
}

// Enter waits until the request may start and takes what it needs, or refuses it as soon as
// it is known that it cannot start in time. The error is the context's, ErrDown, the
// *store.RowError of a row that the request needs, or line.ErrRetired where its gate has
// been forgotten.
//
// Requests that start at one instant return in order of arrival, each when the one before it is
// Sent: goroutines that are woken together run in any order. The caller must therefore call
// Sent, or Cancel, without waiting for anything.
//
// The steps that need no store come first: the gate, and whether any limit can ever admit the
// cost. So an open breaker refuses while the store is down.
func (l *Line) Enter(ctx context.Context, a *Ask) (*Grant, *line.Refusal, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	if a.Gate != nil && !a.Gate.Closed() { // a first look, which needs no store
		if r, err := a.Local.CheckGate(a.Gate); r != nil || err != nil {
			l.mu.Lock()
			defer l.mu.Unlock()
			return nil, l.gateRefusalLocked(r, a.Gate), err
		}
	}
	if l.client.available() != nil {
		return nil, nil, ErrDown
	}
	if r := l.plan().never(a); r != nil {
		return nil, r, nil
	}
	l.mu.Lock()
	for _, n := range a.Needs {
		l.rememberLocked(n.Budget, false)
	}
	for _, audience := range a.Audiences {
		l.rememberLocked(audience, true)
	}
	if a.Gate != nil {
		if r, err := a.Local.JoinGate(a.Gate); r != nil || err != nil {
			defer l.mu.Unlock()
			return nil, l.gateRefusalLocked(r, a.Gate), err
		}
	}
	g, w := l.joinLocked(ctx, a)
	l.mu.Unlock()
	if w == nil {
		return g, nil, nil
	}
	return l.await(ctx, w)
}

// joinLocked starts a request with what is reserved for its class, or puts it in line. It has
// joined its gate already. A reserved start must not overtake a request of its class, so that
// it needs an empty class. It returns at once, without a waiter, unless starts that came
// before have not been sent yet: then it waits in the chain for its turn.
func (l *Line) joinLocked(ctx context.Context, a *Ask) (*Grant, *waiter) {
	now, key := awake.Now(), l.classKey(a)
	if p := l.reserved[key]; p != nil && l.classes[key] == nil && !l.isHaltedLocked(a) {
		if g := l.startReservedLocked(p, a, now); g != nil {
			if len(l.chain) == 0 {
				return g, nil
			}
			g.w = &waiter{ask: a, grant: g, ready: make(chan struct{}, 1)}
			l.wakeLocked(g.w)
			return nil, g.w
		}
	}
	w := &waiter{ask: a, arrived: now, id: rand.Uint64() | 1, ready: make(chan struct{}, 1)}
	w.bound(ctx)
	l.arrivals++
	w.number, w.class = l.arrivals, l.classes[key]
	if w.class == nil {
		w.class = &class{key: key, number: w.number, width: leastWidth}
		if l.plan().reserves(a) {
			w.class.width = 1 // the others start with what it reserves
		}
		l.classes[key] = w.class
	}
	w.inOrder, w.inClass = l.order.PushBack(w), w.class.queue.PushBack(w)
	l.undecided = append(l.undecided, w)
	l.journalLocked(w)
	l.settleLocked()
	if l.check || l.isDueLocked(w.class, now) {
		l.kickLocked()
	}
	return nil, w
}

// classKey returns what tells classes apart: budgets, audiences and the gate. Costs are no part
// of it, so that a cheap request does not overtake an expensive one for ever. A request that
// takes no slot has a class of its own, so as not to wait behind requests that wait for one.
func (l *Line) classKey(a *Ask) string {
	b := make([]byte, 0, 64)
	if a.NoSlot && l.plan().InFlight > 0 {
		b = append(b, '!')
	}
	if a.Gate != nil {
		b = fmt.Appendf(b, "%p", a.Gate)
	}
	for _, n := range a.Needs {
		b = append(append(b, '\n'), n.Budget...)
	}
	for _, audience := range a.Audiences {
		b = append(append(b, "\n@"...), audience...)
	}
	return string(b)
}

// bound finds the last instant at which w may start. A wait budget includes its last instant, a
// deadline does not: at the deadline the context is over, and the request could not be sent.
func (w *waiter) bound(ctx context.Context) {
	if w.ask.MaxWait >= 0 {
		w.by = w.arrived.Add(w.ask.MaxWait)
	}
	if d, ok := ctx.Deadline(); ok {
		if d = awake.On(d).Add(-1); w.by.IsZero() || d.Before(w.by) {
			w.by, w.byDeadline = d, true
		}
	}
}

// await waits until w, which is in line or has started, may go on.
func (l *Line) await(ctx context.Context, w *waiter) (*Grant, *line.Refusal, error) {
	select {
	case <-w.ready:
		if w.err != nil {
			l.mu.Lock()
			l.unchainLocked(w)
			l.mu.Unlock()
		}
		return w.grant, w.refusal, w.err
	case <-ctx.Done():
		l.leave(w)
		return nil, nil, ctx.Err()
	}
}

// leave ends the wait of w, whose context is over. Whatever the line has decided meanwhile is
// undone: the caller returns the context's error and never sees the grant.
func (l *Line) leave(w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case w.grant != nil:
		l.cancelLocked(w.grant)
	case w.err != nil:
		l.unchainLocked(w)
	case w.refusal != nil:
	default:
		w.left = true
		if w.asking.IsZero() { // else its result is on its way: see applyLocked
			l.removeLocked(w)
			l.kickLocked()
		}
	}
}

// removeLocked takes w out of the line and away from its gate.
func (l *Line) removeLocked(w *waiter) {
	l.detachLocked(w)
	if w.ask.Gate != nil {
		w.ask.Local.LeaveGate(w.ask.Gate)
	}
}

// detachLocked takes w, which has passed its gate or has none, out of the line. When w was the
// first of its class, what the store reported to it holds for the next one too; one with
// another cost asks for itself.
func (l *Line) detachLocked(w *waiter) {
	c := w.class
	first := c.first() == w
	l.order.Remove(w.inOrder)
	c.queue.Remove(w.inClass)
	if w.counted {
		l.waiting--
	}
	if w.timer != nil {
		w.timer.Stop()
	}
	if c.queue.Len() == 0 {
		delete(l.classes, c.key)
		return
	}
	if !first {
		return
	}
	next := c.first()
	next.journalHeadLocked()
	if slices.Equal(next.ask.Needs, w.ask.Needs) {
		next.due, next.bind = w.due, w.bind
	} else {
		c.due = time.Time{}
	}
}

// eachLocked yields the requests in line, by arrival. Each may be taken out meanwhile.
func (l *Line) eachLocked(yield func(*waiter) bool) {
	for e := l.order.Front(); e != nil; {
		w := e.Value.(*waiter)
		if e = e.Next(); !yield(w) {
			return
		}
	}
}

// isDueLocked reports whether the first of c has a reason to ask.
func (l *Line) isDueLocked(c *class, now time.Time) bool {
	return !c.due.After(now) && !l.isHaltedLocked(c.first().ask)
}

// reconfigure has the line follow another plan: all in line ask again, and what is reserved
// under the old limits is given back.
func (l *Line) reconfigure() {
	p := l.plan()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forgetGoneLocked(p)
	l.changedLocked(true, true)
	l.returnAllLocked()
	l.checkAll = true
	l.kickLocked()
}

// changedLocked notes that those in line may start sooner, or that they may start later
// and no longer in time.
func (l *Line) changedLocked(sooner, later bool) {
	if sooner {
		for _, c := range l.classes {
			c.due = time.Time{}
		}
	}
	l.check = l.check || later
}

// wakeLocked adds w to the chain, which keeps the order of requests that start together. Only
// the first of the chain is awake. It wakes the next one when it leaves the chain: by Sent, by
// Cancel, when its context ends, or when it returns an error. Requests that the store does not
// decide for join the chain too, since they start, in order, with what this process decides.
func (l *Line) wakeLocked(w *waiter) {
	if l.chain = append(l.chain, w); len(l.chain) == 1 {
		w.ready <- struct{}{}
	}
}

func (l *Line) unchainLocked(w *waiter) {
	i := slices.Index(l.chain, w)
	if i < 0 {
		return
	}
	l.chain = slices.Delete(l.chain, i, i+1)
	if i == 0 && len(l.chain) > 0 {
		l.chain[0].ready <- struct{}{}
	}
}

// Waiting returns how many requests wait, and how many are in flight.
func (l *Line) Waiting() (waiting, inFlight int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.order.Len(), max(l.slots, len(l.flights))
}
