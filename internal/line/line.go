// Package line is the queue of those who wait for one set of budgets: a real
// queue, planned again whenever something changes, with one timer and no
// goroutine of its own.
//
// Everybody in line has a planned start. A later one may start first only if no
// earlier planned start moves later by it (conservative backfilling), and those
// with the same needs start in order of arrival. Units are taken at the start.
//
// While all in line need the same budgets, only the first has to know its
// start, and the others are planned when somebody asks (plain.go). From the
// first request with other needs until the line is empty, everybody is planned
// (mixed.go).
package line

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headway-go/headway/internal/law"
)

// Never is the wait of what cannot start.
const Never time.Duration = math.MaxInt64

// catchUp bounds how late a waiter may be woken and still take its unit as of
// its slot, so that late timers do not add up; see law.Take.
const catchUp = law.Time(10 * time.Millisecond)

// A Line is the line of one or more budgets. Any goroutine may use it. User
// code never runs under its lock.
type Line struct {
	epoch time.Duration // the instant 0, since origin; assigned once, read-only afterwards

	// quick stands for lone while nobody waits, and is held under the lock.
	quick atomic.Pointer[law.Quick]

	mu       sync.Mutex // guards following fields, and those of budgets and waiters
	last     law.Time   // the latest clock reading
	max      int32      // cap on waiting; zero: none
	slots    int32      // cap on in flight; zero: none
	inFlight int32
	retired  bool // forgotten; see Budget
	strict   bool // some budget is, or was

	*extra // what few lines of a Transport have; nothing while it has none
	*queue // of those who wait; idle while nobody does
}

// An extra is the rest of a line's fields.
type extra struct {
	walls []*Budget // those that follow the wall clock
	stamp uint64    // marks the budgets that a replan has touched; never the same twice

	// Of SetLimits: the only budget but for the pause, or nil; all but for the
	// pause; and all, for who needs them (see needsOf).
	lone, pause *Budget
	list        *[]*Budget
	listed      []Need
}

// nothing is the extra of every line without one. Nobody writes to it.
var nothing extra

// more gives l an extra of its own, to write to.
func (l *Line) more() *extra {
	if l.extra == &nothing {
		l.extra = new(extra)
	}
	return l.extra
}

// A queue is what a line knows of those who wait. Most lines of a Transport have
// nobody in them, and do without.
type queue struct {
	seq         uint64 // of the last to arrive
	waiting     int
	bounded     int     // of those waiting, how many have a last instant
	lowered     bool    // a limit admits less at once than before: some may never fit now
	slotless    int     // of those waiting, how many need no slot
	first, tail *waiter // in order of arrival

	plain     class    // the only class while the line is not mixed
	loose     []*class // mixed: the classes that need no budget
	unplanned *waiter  // the first without a planned start, while not mixed
	stalled   bool     // somebody due waits for a slot
	mixed     bool
	due       classHeap // mixed: by the planned start of each class's first
	ready     classHeap // mixed: due, but waiting for a slot, by order of arrival
	parked    []*class  // mixed: due, but waiting for an answer

	chain   chain // started, but not handed over to the base yet
	timer   *time.Timer
	timerAt law.Time // law.Never: not armed
	fired   int      // how often the timer has, for tests
}

// idle is the queue of every line without one. Nobody writes to it.
var idle = queue{timerAt: law.Never}

// New returns an empty line without caps.
func New() *Line {
	l := new(Line)
	l.Init()
	return l
}

// Init is New for a line that is part of something else.
func (l *Line) Init() {
	l.epoch, l.extra, l.queue = time.Since(origin), &nothing, &idle
}

// origin is what epochs count from: a number for each line is smaller than a
// time.Time. Only differences to it are looked at, since in a synctest bubble
// it lies in the future.
var origin = time.Now()

// clock reads the clock.
func (l *Line) clock() law.Time { return int64(time.Since(origin) - l.epoch) }

// instant returns the instant that t is.
func (l *Line) instant(t time.Time) law.Time { return int64(t.Sub(origin.Add(l.epoch))) }

// open gives l a queue.
func (l *Line) open() {
	if l.queue == &idle {
		l.queue = &queue{timerAt: law.Never, due: classHeap{less: byStart}, ready: classHeap{less: byArrival}}
	}
}

// A Need is what a request takes from one budget. The needs of a request are
// in order: narrow budgets before wide ones. A cost of zero is no need, so
// leave it out.
type Need struct {
	B      *Budget
	Cost   int64
	flying bool     // a strict unit, not answered yet
	at     law.Time // when it was taken
}

// An Ask is what a request needs to start, and how long it may wait for it.
type Ask struct {
	// List is what SetLimits returned, if the needs are of it: one unit of the
	// pause, and Cost of each of the others, as long as there is a Cost. Needs is
	// not set then. When it is no longer the latest, Enter returns ErrRetired.
	List    *[]*Budget
	Cost    int64
	Needs   []Need        // Enter writes to it; copied when the request waits
	MaxWait time.Duration // the whole wait's budget; negative: none
	NoSlot  bool          // it takes no in-flight slot
}

// A Grant is a start: the caller now sends, or gives back. Exactly one of Sent
// and Cancel must follow; both take the Ask's needs.
type Grant struct {
	At     time.Duration // the start, since the line's epoch
	Waited time.Duration
	Slot   bool // it holds an in-flight slot until Release
	w      *waiter
}

// lock locks l and reads the clock, which never runs backwards under the lock.
func (l *Line) lock() law.Time {
	l.mu.Lock()
	if len(l.walls) > 0 {
		return l.readWall()
	}
	l.last = max(l.last, l.clock())
	if q := l.quick.Load(); q != nil {
		q.Hold(l.lone.state, l.last)
	}
	return l.last
}

// readWall reads both clocks. It is apart so that lock, on which many wait,
// takes little of the stack.
//
//go:noinline
func (l *Line) readWall() law.Time {
	now := time.Now()
	l.last = max(l.last, l.instant(now))
	for _, b := range l.walls {
		law.SetWall(b.state, now.Round(0).Add(-time.Duration(l.last)))
	}
	return l.last
}

// unlock ends what lock has begun. When nobody waits any more the queue goes.
// Where the only budget is one that can then do without the lock, it does.
func (l *Line) unlock() {
	if l.queue != &idle && l.waiting == 0 && l.chain.first == nil && l.timerAt == law.Never {
		l.queue = &idle
	}
	if q := l.quick.Load(); q != nil && l.waiting == 0 && l.chain.first == nil && l.pause.state.Recovered(l.last) {
		if !q.Release(l.lone.state, l.last) {
			l.renewQuick()
		}
	}
	l.mu.Unlock()
}

// Enter waits until the request may start and takes what it needs, refuses it
// at once if it cannot start in time, or returns the plain error of a context
// that is over. Those due at one instant return one after another, each when
// the one before it is Sent.
func (l *Line) Enter(ctx context.Context, a *Ask) (Grant, *Refusal, error) {
	var g Grant
	refusal, err := l.Join(ctx, a, &g)
	if g.w != nil {
		refusal, err = l.Await(ctx, &g)
	}
	if refusal != nil || err != nil {
		return Grant{}, refusal, err
	}
	if g.w != nil && a.List == nil {
		copy(a.Needs, g.w.needs)
	}
	return g, nil, nil
}

// Join is Enter as far as it does not wait. Unless it refuses or fails, Await
// must follow, with the same context and grant.
func (l *Line) Join(ctx context.Context, a *Ask, g *Grant) (refusal *Refusal, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	now := l.lock()
	if !l.resolve(a) {
		l.unlock()
		return nil, ErrRetired
	}
	if l.waiting == 0 && l.chain.first == nil && l.tryStart(a, now) {
		*g = Grant{At: time.Duration(now), Slot: l.takeSlot(a)}
		l.unlock()
		return nil, nil
	}
	a.NoSlot = a.NoSlot && l.slots > 0 // without a cap it makes no difference, and one class
	// Unless it is known that nobody is due.
	if w := l.first; w == nil || l.mixed || !w.armed || w.at <= now {
		l.dispatch(now)
	}
	if by, byDeadline := l.lastInstant(ctx, now, a.MaxWait); by == forever && l.needNotPlan(a) {
		g.w = newWaiter()
		l.fill(g.w, a, now)
		l.add(g.w, nil)
	} else {
		g.w, refusal = l.join(a, now, by, byDeadline)
	}
	l.unlock()
	return refusal, nil
}

// resolve finds the needs of a, and reports whether they are still in use.
func (l *Line) resolve(a *Ask) bool {
	if a.List != nil {
		if a.List != l.list {
			return false
		}
		a.Needs = l.needsOf(a.Cost)
	}
	return !l.gone(a.Needs)
}

// needsOf returns what a request of that cost needs of the latest of SetLimits.
// It is good until the lock is given up: that nobody has to bring the memory
// keeps the stacks of those who wait small.
func (l *Line) needsOf(cost int64) []Need {
	if cost == 0 {
		return l.listed[:1]
	}
	for i := 1; i < len(l.listed); i++ {
		l.listed[i].Cost = cost
	}
	return l.listed
}

// tryStart takes the needs if all have room at now, and a slot is free.
func (l *Line) tryStart(a *Ask, now law.Time) bool {
	if l.full() && !a.NoSlot {
		return false
	}
	for i := range a.Needs {
		if at, _ := a.Needs[i].B.state.Earliest(now, now, a.Needs[i].Cost); at > now {
			return false
		}
	}
	for i := range a.Needs {
		n := &a.Needs[i]
		n.flying, n.at = n.B.state.Take(now, n.Cost), now
		n.B.forget()
	}
	return true
}

func (l *Line) full() bool { return l.slots > 0 && l.inFlight >= l.slots }

func (l *Line) takeSlot(a *Ask) bool {
	if l.slots == 0 || a.NoSlot {
		return false
	}
	l.inFlight++
	return true
}

// Start is Enter for a request that takes one unit of each of budgets and starts
// at once. It returns when it did. ok is false where it did not, since more is
// to be done: to wait, to hand over, to give a slot back, or to tell of the
// answer.
func (l *Line) Start(budgets []*Budget) (at time.Duration, ok bool) {
	now := l.lock()
	ok = l.waiting == 0 && l.chain.first == nil && l.slots == 0 && !l.strict && !l.retired
	for i := 0; ok && i < len(budgets); i++ {
		at, _ := budgets[i].state.Earliest(now, now, 1)
		ok = at <= now
	}
	if ok {
		for _, b := range budgets {
			b.state.Take(now, 1)
			b.forget()
		}
	}
	l.unlock()
	return time.Duration(now), ok
}

// Undo gives back what Start has taken at an instant.
func (l *Line) Undo(budgets []*Budget, at time.Duration) {
	for _, b := range budgets {
		l.Give(b, at, 1)
	}
}

// Try is Enter for a request that does not wait, takes no slot, and is sent at
// once. It reports whether the needs were taken.
func (l *Line) Try(a *Ask) (took bool, err error) {
	now := l.lock()
	defer l.unlock()
	if !l.resolve(a) {
		return false, ErrRetired
	}
	a.NoSlot = true // and so behind nobody of its kind
	if l.waiting > 0 {
		l.dispatch(now)
	}
	if l.waiting > 0 {
		if p := l.foresee(a.Needs, true, now); !p.now(now) {
			return false, nil
		}
	}
	return l.tryStart(a, now), nil
}

// join starts the request together with those who start at this instant
// before it, puts it in line with a planned start, or refuses it. Join does
// without where it can, since this takes more of the stack.
//
//go:noinline
func (l *Line) join(a *Ask, now, by law.Time, byDeadline bool) (*waiter, *Refusal) {
	if l.waiting == 0 && l.tryStart(a, now) {
		l.open()
		w := newWaiter()
		l.fill(w, a, now)
		w.slot = l.takeSlot(a)
		w.at, w.state = now, started
		l.chain.push(w)
		l.chain.kick()
		return w, nil
	}
	p := l.foresee(a.Needs, a.NoSlot, now)
	switch {
	case p.at == law.Never, p.at > by, by <= now && !p.now(now):
		return nil, p.refusal(a.Needs, now, byDeadline)
	case l.max > 0 && l.waiting >= int(l.max) && !p.now(now):
		r := p.refusal(a.Needs, now, false)
		r.LineFull = true
		return nil, r
	}
	l.open()
	w := newWaiter()
	l.fill(w, a, now)
	w.by, w.byDeadline = by, byDeadline
	l.add(w, &p)
	l.dispatch(now)
	return w, nil
}

// needNotPlan reports whether a request that waits as long as it takes can stand
// at the end of a plain line without a planned start, until somebody asks.
func (l *Line) needNotPlan(a *Ask) bool {
	if l.waiting == 0 || l.mixed || l.max > 0 && l.waiting >= int(l.max) || !l.plain.is(a.Needs, a.NoSlot) {
		return false
	}
	for i := range a.Needs {
		if a.Needs[i].Cost > law.Max(a.Needs[i].B.state) {
			return false
		}
	}
	return true
}

// forever is the last instant of a wait without bounds.
const forever = law.Never - 1

// lastInstant returns the last instant at which a request that arrives now may
// start, and whether the context's deadline sets it. A wait budget includes its
// last instant, a deadline does not.
func (l *Line) lastInstant(ctx context.Context, now law.Time, maxWait time.Duration) (by law.Time, byDeadline bool) {
	by = forever
	if maxWait >= 0 && int64(maxWait) < by-now {
		by = now + int64(maxWait)
	}
	if d, ok := ctx.Deadline(); ok {
		if d := l.instant(d) - 1; d < by {
			return d, true
		}
	}
	return by, false
}

// Release gives back an in-flight slot.
func (l *Line) Release() {
	now := l.lock()
	defer l.unlock()
	l.inFlight--
	l.dispatch(now)
}

// Sent tells the line that the caller is about to send: whoever started after it
// at the same instant comes next.
func (l *Line) Sent(g *Grant) {
	if g.w == nil {
		return
	}
	l.lock()
	defer l.unlock()
	l.chain.remove(g.w)
	g.w = nil
}

// Cancel gives back a start that was not sent.
func (l *Line) Cancel(g *Grant, needs []Need) {
	now := l.lock()
	defer l.unlock()
	if g.w != nil {
		l.chain.remove(g.w)
	}
	l.giveBack(needs, int64(g.At), g.Slot, now)
}

func (l *Line) giveBack(needs []Need, taken law.Time, slot bool, now law.Time) {
	for _, n := range needs {
		n.B.state.Give(taken, n.Cost, n.flying)
		n.B.forget()
	}
	if slot {
		l.inFlight--
	}
	l.replan(now, needs, false)
}

// Answered tells strict laws that a request has its answer, or has ended
// without one. It returns the time from which on its units count.
func (l *Line) Answered(needs []Need) time.Duration {
	now := l.lock()
	defer l.unlock()
	l.more().stamp++ // marks the budgets with an answer
	strict := false
	for i := range needs {
		if n := &needs[i]; n.flying {
			n.B.state.Answered(now, n.Cost)
			law.Latency(n.B.state, now-n.at)
			n.B.forget()
			n.B.wanted().stamp = l.stamp
			n.flying, strict = false, true
		}
	}
	if strict {
		l.answered(now)
	}
	return time.Duration(now)
}

// Strict reports whether any of needs waits for Answered.
func Strict(needs []Need) bool {
	for _, n := range needs {
		if n.flying {
			return true
		}
	}
	return false
}

// Give takes back cost units of b that started, or were answered, at taken. It
// reports whether b is still in use; see ErrRetired.
func (l *Line) Give(b *Budget, taken time.Duration, cost int64) bool {
	now := l.lock()
	defer l.unlock()
	if l.retired || b.retired {
		return false
	}
	b.state.Give(int64(taken), cost, false)
	l.changed(now, false, b)
	return true
}

// Spend counts n units of each of budgets as used now; a negative n gives back
// the oldest. It returns when that was, and whether they are still in use; see
// ErrRetired.
func (l *Line) Spend(n int64, budgets ...*Budget) (at time.Duration, ok bool) {
	now := l.lock()
	defer l.unlock()
	for _, b := range budgets {
		if l.retired || b.retired {
			return 0, false
		}
	}
	for _, b := range budgets {
		b.state.Spend(now, n)
	}
	l.changed(now, n > 0, budgets...)
	return time.Duration(now), true
}

// PauseUntil extends the pause of b, which NewPause has made. The longest wins.
func (l *Line) PauseUntil(b *Budget, t time.Time) {
	now := l.lock()
	defer l.unlock()
	if until := l.instant(t); until > now && b.state.(*law.Pace).Until(until) {
		l.changed(now, true, b)
	}
}

// Delay returns how long a request that arrives now would wait, as a refusal
// would tell it; nil means not at all. It takes nothing.
func (l *Line) Delay(needs []Need, noSlot bool) *Refusal {
	now := l.lock()
	defer l.unlock()
	return l.delay(needs, noSlot, now)
}

// DelayListed is Delay for a request that needs cost of the latest of SetLimits.
func (l *Line) DelayListed(cost int64) *Refusal {
	now := l.lock()
	defer l.unlock()
	return l.delay(l.needsOf(cost), false, now)
}

func (l *Line) delay(needs []Need, noSlot bool, now law.Time) *Refusal {
	l.dispatch(now)
	if p := l.foresee(needs, noSlot && l.slots > 0, now); !p.now(now) {
		return p.refusal(needs, now, false)
	}
	return nil
}

// Remaining returns how many units of the tightest of budgets could start now.
func (l *Line) Remaining(budgets ...*Budget) int64 {
	now := l.lock()
	defer l.unlock()
	least := int64(law.Unlimited)
	for _, b := range budgets {
		least = min(least, b.state.Remaining(now))
	}
	return least
}

// Waiting returns how many wait, and how many in-flight slots are taken.
func (l *Line) Waiting() (waiting, inFlight int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting, int(l.inFlight)
}

// Status is Waiting and the Remaining of each of budgets, at one instant.
func (l *Line) Status(budgets []*Budget) (waiting, inFlight int, left []int64) {
	now := l.lock()
	defer l.unlock()
	for _, b := range budgets {
		left = append(left, b.state.Remaining(now))
	}
	return l.waiting, int(l.inFlight), left
}
