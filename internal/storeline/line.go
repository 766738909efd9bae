package storeline

import (
	"container/list"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/headway-go/headway/internal/awake"
	"github.com/headway-go/headway/internal/line"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/store"
)

// A Setting is what the policy in force says of a line.
type Setting struct {
	Limits            func(place int) (limiter.Limit, bool) // false: there is none any more
	Waiting, InFlight int                                   // caps; zero: none
	Batch             int                                   // how many starts are asked for at once; 0 and 1: one
}

// A Need is what a request takes from one budget.
type Need struct {
	Budget string
	Place  int // of its limit
	Cost   int64
}

// An Ask is what a request needs to start, and how long it may wait for it.
type Ask struct {
	Needs     []Need
	Audiences []string
	Identity  uint64        // whose it is, when the line is full; zero: of those without a key
	MaxWait   time.Duration // the whole wait's budget; negative: none
	NoSlot    bool          // it takes no in-flight slot
	Exact     bool          // its cost may be corrected, so that the store must know when it started

	// Gate is what it must pass, before the line Local; nil is none.
	Local *line.Line
	Gate  *line.Gate

	Journal *line.Journal // what held it up, for those who ask; nil: nobody does
}

// A Grant is a start: the caller now sends, or gives back. Exactly one of Sent
// and Cancel must follow.
type Grant struct {
	At        store.Instant // of the store's clock
	Waited    time.Duration
	Remaining []int64 // under each need, after it; of needs without a limit math.MaxInt64
	Heeded    bool
	Slot      bool // it holds an in-flight slot until Release
	Pass      line.Pass

	take     store.Op
	ask      *Ask
	reserved *reserved // it started with; nil: the store was asked
	strict   bool
	renew    *time.Timer
	mu       sync.Mutex // guards renew and over
	over     bool
	w        *waiter
}

// A Line is the line of one group. Any goroutine may use it.
type Line struct {
	client  *Client
	group   string
	setting func() Setting
	owner   any // whose it is
	users   int // the client's lock guards it and the following field
	place   int // in the client's ring

	mu       sync.Mutex           // guards following fields
	running  bool                 // a goroutine is asking
	batch    uint64               // the number of what it asks
	flights  map[*Grant]bool      // granted and not answered
	known    map[string]*known    // budgets and ears, by name; see Known
	names    []*known             // the same, in order of their first use
	pauses   map[string]time.Time // the ends that were last reported, by ear and budget
	order    list.List            // of *waiter, by arrival
	arrivals uint64
	fresh    []*waiter // of order, those who have not been told to wait yet
	classes  map[string]*class
	lines    uint64 // the number of the latest class
	joined   int    // of order, how many have been told to wait
	inFlight int
	check    bool      // somebody may no longer start in time
	span     int       // how many of all classes ask at once
	lowered  bool      // some may never start now
	errands  []*errand // to be done besides
	overdue  []*waiter // whose wait is over
	chain    []*waiter // started, but not sent yet, or sent away; the first has been woken
	timer    *time.Timer
	looked   bool // the last batch was a forecast
	reserved map[string]*reserved
	recent   line.Recent  // the successes of requests without a limit
	relents  time.Time    // when a gate no longer waits for those in flight; zero: none does
	halted   map[halt]int // how often
}

// A class is those in line with the same budgets and ears.
type class struct {
	key   string
	line  uint64
	queue list.List // of *waiter
	due   time.Time // the store is not asked before; zero: now
	width int       // how many ask at once
	short bool      // it has been refused
}

// An errand is an operation for somebody outside the line.
type errand struct {
	build func(*Setting) store.Op // under the lock
	res   store.Result
	err   error
	done  chan struct{} // nil: nobody waits
	// failed is called, under the lock, where the store could not be asked; nil: nothing is
	// to be done then.
	failed func()
	// better says that those in line may start sooner by it, worse that they may
	// not start in time.
	better, worse bool
}

type waiter struct {
	ask        *Ask
	seq        *list.Element // in order
	place      *list.Element // in its class
	class      *class
	nr         uint64 // by arrival
	id         uint64
	arrived    time.Time
	by         time.Time // the last instant at which it may start; zero: none
	byDeadline bool
	due        store.Instant     // what the store told last
	bind       line.Refusal      // why the store has not let it start; meaningless while due is zero
	told       bool              // counted in joined
	member     *line.Member[int] // while decide looks who makes way
	full       bool              // there is no place for it to wait
	asking     bool              // it is in the batch that is out
	asked      time.Time         // since when
	left       bool              // its context has ended meanwhile
	timer      *time.Timer
	grant      *Grant
	refusal    *line.Refusal
	err        error
	ready      chan struct{}
}

func (l *Line) slots(s *Setting) bool { return s.InFlight > 0 }

// Enter waits until the request may start and takes what it needs, refuses it at
// once if it cannot start in time, or returns the plain error of a context that
// is over, ErrDown, or the *store.RowError of a row that it needs. Those due at one instant return one after another, each
// when the one before it is Sent. It returns line.ErrRetired where the gate has been
// forgotten.
func (l *Line) Enter(ctx context.Context, a *Ask) (*Grant, *line.Refusal, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	if a.Gate != nil && !a.Gate.Closed() { // the first look, before anything is looked up
		if r, err := a.Local.CheckGate(a.Gate); r != nil || err != nil {
			l.mu.Lock()
			defer l.mu.Unlock()
			return nil, l.gated(r, a.Gate), err
		}
	}
	if l.client.available() != nil {
		return nil, nil, ErrDown
	}
	set := l.setting()
	if r := never(a, &set); r != nil {
		return nil, r, nil
	}
	l.mu.Lock()
	if g := l.startReserved(a, &set); g != nil {
		l.mu.Unlock()
		if g.w != nil {
			return l.await(ctx, g.w)
		}
		return g, nil, nil
	}
	if a.Gate != nil {
		if r, err := a.Local.JoinGate(a.Gate); r != nil || err != nil {
			refusal := l.gated(r, a.Gate)
			l.mu.Unlock()
			return nil, refusal, err
		}
	}
	w := &waiter{ask: a, arrived: awake.Now(), id: newID(), ready: make(chan struct{}, 1)}
	w.bound(ctx)
	w.class = l.classOf(a, &set)
	l.arrivals++
	w.nr = l.arrivals
	w.seq, w.place = l.order.PushBack(w), w.class.queue.PushBack(w)
	l.fresh = append(l.fresh, w)
	l.note(w)
	l.settle(&set)
	if l.check || l.isDue(w.class) {
		l.kick()
	}
	l.mu.Unlock()
	return l.await(ctx, w)
}

// await waits until w, who is in line or has started, may go on.
func (l *Line) await(ctx context.Context, w *waiter) (*Grant, *line.Refusal, error) {
	select {
	case <-w.ready:
		if w.err != nil {
			l.mu.Lock()
			l.unchain(w)
			l.mu.Unlock()
		}
	case <-ctx.Done():
		l.leave(w)
		return nil, nil, ctx.Err()
	}
	return w.grant, w.refusal, w.err
}

// never returns the refusal of what no limit will ever admit; nil where they may.
func never(a *Ask, s *Setting) *line.Refusal {
	for i, n := range a.Needs {
		limit, ok := s.Limits(n.Place)
		most := limit.N
		switch {
		case limit.Law == limiter.Bucket && limit.N > 0 && limit.Burst > 0:
			most = limit.Burst
		case limit.Law == limiter.Spaced && limit.N > 0:
			most = n.Cost // it takes as many intervals
		}
		if ok && n.Cost > most {
			return &line.Refusal{Reason: neverBy(limit), RetryAfter: line.Never, Need: i}
		}
	}
	return nil
}

// neverBy returns why a limit never admits a cost.
func neverBy(l limiter.Limit) line.Reason {
	if l.N == 0 {
		return line.ByDisabled
	}
	return line.ByImpossible
}

// bound finds the last instant at which w may start. A wait budget includes its
// last instant, a deadline does not.
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

// classKey tells classes apart. Who takes no slot must not stand behind those who
// wait for one.
func (l *Line) classKey(a *Ask, s *Setting) string {
	var b strings.Builder
	if a.NoSlot && l.slots(s) {
		b.WriteByte('!')
	}
	if a.Gate != nil {
		fmt.Fprintf(&b, "%p", a.Gate)
	}
	for _, n := range a.Needs {
		b.WriteByte('\n')
		b.WriteString(n.Budget)
	}
	for _, e := range a.Audiences {
		b.WriteString("\n@")
		b.WriteString(e)
	}
	return b.String()
}

func (l *Line) classOf(a *Ask, s *Setting) *class {
	key := l.classKey(a, s)
	c := l.classes[key]
	if c == nil {
		l.lines++
		c = &class{key: key, line: l.lines, width: least}
		if mayReserve(a, s) {
			c.width = 1 // the others start with what it sets aside
		}
		l.classes[key] = c
	}
	return c
}

// isDue reports whether the first of c has a reason to ask.
func (l *Line) isDue(c *class) bool { return l.isDueAt(c, awake.Now()) }

func (l *Line) isDueAt(c *class, now time.Time) bool {
	return !c.due.After(now) && !l.isHalted(c.queue.Front().Value.(*waiter).ask)
}

// settle decides for those who came and have not started: they wait, and are told
// so; or it has to be looked at whether they can start in time. While their class
// is due, the store decides first.
func (l *Line) settle(s *Setting) {
	l.fresh = slices.DeleteFunc(l.fresh, func(w *waiter) bool {
		switch {
		case !w.inLine():
			return true
		case l.isDue(w.class) && !l.blocked(w.ask, s):
			return false
		}
		if s.Waiting > 0 && l.joined >= s.Waiting {
			w.full = true
		} else {
			w.told = true
			l.joined++
			l.limitWait(w)
		}
		if w.full || !w.by.IsZero() {
			l.check = true
		}
		return true
	})
}

// leave takes w out of the line, or gives back what it has got.
func (l *Line) leave(w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case w.grant != nil:
		l.unchain(w)
		l.cancel(w.grant)
	case w.err != nil:
		l.unchain(w)
	case w.refusal != nil:
	default:
		w.left = true
		if !w.asking { // else once it is known what it has got
			l.remove(w)
			l.kick()
		}
	}
}

// remove takes w out of the line and its class, and away from its gate.
func (l *Line) remove(w *waiter) {
	l.detach(w)
	if w.ask.Gate != nil {
		w.ask.Local.LeaveGate(w.ask.Gate)
	}
}

// detach takes w out of the line and its class. When it was the first, the next
// one asks for itself.
func (l *Line) detach(w *waiter) {
	c := w.class
	first := c.queue.Front() == w.place
	l.order.Remove(w.seq)
	c.queue.Remove(w.place)
	if w.told {
		l.joined--
	}
	if w.timer != nil {
		w.timer.Stop()
	}
	if first {
		l.leads(c)
	}
	if c.queue.Len() == 0 {
		delete(l.classes, c.key)
	} else if next := c.queue.Front().Value.(*waiter); first && !slices.Equal(next.ask.Needs, w.ask.Needs) {
		c.due = time.Time{}
	} else if first {
		next.due, next.bind = w.due, w.bind
	}
}

// Release gives back an in-flight slot.
func (l *Line) Release() {
	l.mu.Lock()
	l.inFlight--
	l.kick()
	l.mu.Unlock()
	l.Unuse()
}

// Sent tells the line that the caller is about to send: whoever started after it
// comes next.
func (l *Line) Sent(g *Grant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unchain(g.w)
}

func (l *Line) unchain(w *waiter) {
	i := slices.Index(l.chain, w)
	if i < 0 {
		return
	}
	l.chain = slices.Delete(l.chain, i, i+1)
	if i == 0 && len(l.chain) > 0 {
		l.chain[0].ready <- struct{}{}
	}
}

// Cancel gives back a start that was not sent.
func (l *Line) Cancel(g *Grant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unchain(g.w)
	l.cancel(g)
}

func (l *Line) cancel(g *Grant) {
	g.end()
	delete(l.flights, g)
	if a := g.ask; a.Gate != nil {
		a.Local.ReturnPass(&g.Pass)
	}
	if g.Slot {
		g.Slot = false
		l.inFlight--
		defer l.Unuse()
	}
	if !l.unuse(g) {
		l.giveBack(g)
	}
}

func (l *Line) giveBack(g *Grant) {
	if g.reserved != nil {
		g.At = g.reserved.last // as the store was told
	}
	l.errands = append(l.errands, &errand{better: true, build: func(*Setting) store.Op { return giveOp(&g.take, g.At) }})
	l.kick()
}

// InFlight returns how many units of a budget, or requests of an ear, are granted or
// set aside and have not landed, without those of own.
func (l *Line) InFlight(name string, own *Grant) (sum int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	add := func(op *store.Op, starts int64) {
		for _, n := range op.Needs {
			if n.Budget == name {
				sum += starts * n.Cost
			}
		}
		if slices.Contains(op.Ears, name) {
			sum += starts
		}
	}
	for g := range l.flights {
		if g != own {
			add(&g.take, 1)
		}
	}
	for _, s := range l.reserved {
		add(&s.op, s.left)
	}
	return sum
}

// end stops the renewing of the lease.
func (g *Grant) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.over = true
	if g.renew != nil {
		g.renew.Stop()
	}
}

// Responded tells that a request has its answer, or has ended without one. It
// returns the instant from which on its strict units count; where ctx ends before the
// store says it, that of the start.
func (l *Line) Responded(ctx context.Context, g *Grant) store.Instant {
	if !g.strict {
		return g.At
	}
	g.strict = false
	g.end()
	op := store.Op{Kind: store.OpAnswer, Group: l.group, ID: g.take.ID, Needs: g.take.Needs}
	res, err := l.tell(ctx, &errand{build: func(*Setting) store.Op { return op }, failed: func() { l.client.keepUnsent(op) }})
	if err != nil {
		return g.At
	}
	return res.At
}

// Done tells that what the answer says has been heard, or that there is none.
func (l *Line) Done(g *Grant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.flights, g)
}

// Served tells that a request without a limit, which started then, has succeeded.
func (l *Line) Served(started store.Instant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recent.Add(started)
}

// Found returns how many such requests of this process, of those started in the
// second that ends at an instant, have succeeded.
func (l *Line) Found(before store.Instant) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.recent.Before(before)
}

// keep renews a strict grant's lease while it is in flight.
func (l *Line) keep(g *Grant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over {
		return
	}
	g.renew = time.AfterFunc(store.Lease/3, func() {
		op := store.Op{Kind: store.OpRenew, Group: l.group, ID: g.take.ID, Needs: g.take.Needs}
		l.mu.Lock()
		l.errands = append(l.errands, &errand{build: func(*Setting) store.Op { return op }})
		l.kick()
		l.mu.Unlock()
		l.keep(g)
	})
}

// Do does an operation of the group, and returns when it is done, or with the error of
// ctx once that is over; the operation is done all the same. better says that those in
// line may start sooner by it, worse that they may start later.
func (l *Line) Do(ctx context.Context, op store.Op, better, worse bool) (store.Result, error) {
	return l.tell(ctx, &errand{build: func(*Setting) store.Op { return op }, better: better, worse: worse})
}

func (l *Line) tell(ctx context.Context, e *errand) (store.Result, error) {
	if l.client.available() != nil {
		if e.failed != nil {
			e.failed()
		}
		return store.Result{}, ErrDown
	}
	e.done = make(chan struct{})
	l.mu.Lock()
	l.errands = append(l.errands, e)
	l.kick()
	l.mu.Unlock()
	select {
	case <-e.done:
		return e.res, e.err
	case <-ctx.Done():
		return store.Result{}, ctx.Err()
	}
}

// Delay returns when a request that arrives now would start; nil is now. It takes
// nothing.
func (l *Line) Delay(ctx context.Context, a *Ask) (*line.Refusal, error) {
	var set Setting
	var asks []store.Op
	res, err := l.tell(ctx, &errand{build: func(s *Setting) store.Op {
		set = *s
		last := &waiter{ask: a, class: &class{line: math.MaxUint64}}
		if c := l.classes[l.classKey(a, s)]; c != nil {
			last.class = c
		}
		asks = append(l.asks(s), l.op(last, s))
		return store.Op{Kind: store.OpForecast, Group: l.group, Asks: asks}
	}})
	if err == nil {
		err = res.Waits[len(asks)-1].Err
	}
	if err != nil {
		return nil, err
	}
	r := refusalOf(a, &asks[len(asks)-1], res.Waits[len(asks)-1])
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bySlot(r, a, &set)
	if r.RetryAfter == 0 && !r.AtLeast {
		return nil, nil
	}
	return r, nil
}

// Waiting returns how many wait, and how many are in flight.
func (l *Line) Waiting() (waiting, inFlight int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.order.Len(), max(l.inFlight, len(l.flights))
}

// changed makes everybody ask again, under another setting.
func (l *Line) changed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.again(true, true)
	l.returnAllReserved()
	l.lowered = true
	l.kick()
}

// again notes that those in line may start sooner, or no longer in time.
func (l *Line) again(better, worse bool) {
	if better {
		for _, c := range l.classes {
			c.due = time.Time{}
		}
	}
	l.check = l.check || worse
}
