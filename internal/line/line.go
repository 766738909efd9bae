// Package line is the queue of those who wait for one set of budgets: a real
// queue, planned again whenever something changes, with one timer and no
// goroutine of its own.
//
// Everybody in line has a planned start. A later one may start first only if no
// earlier planned start moves later by it (conservative backfilling), and those
// with the same needs start in order of arrival. Units are taken at the start.
//
// While all in line need the same budgets, only the first has to know its
// start, and the others are planned when somebody asks (fifo.go). From the
// first request with other needs until the line is empty, everybody is planned
// (backfill.go).
package line

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headway-go/headway/internal/awake"
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
	epoch time.Duration // the instant 0, as package awake counts; assigned once, read-only afterwards

	// quick stands for lone while nobody waits, and is held under the lock.
	quick atomic.Pointer[law.Quick]

	mu         sync.Mutex // guards following fields, and those of budgets and waiters
	last       law.Time   // the latest clock reading
	max        int32      // cap on waiting; zero: none
	slots      int32      // cap on in flight; zero: none
	slotsTaken int32
	retired    bool  // forgotten; see Budget
	strict     bool  // some budget is, or was
	inFlight   int64 // requests granted and not answered, where that is counted

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

	audiences *audiences // nil before the first answer that counts

	recent law.Recent // the successes of requests without a limit
}

// noExtra is the extra of every line without one. Nobody writes to it.
var noExtra extra

// more gives l an extra of its own, to write to.
func (l *Line) more() *extra {
	if l.extra == &noExtra {
		l.extra = new(extra)
	}
	return l.extra
}

// A queue is what a line knows of those who wait. Most lines of a Transport have
// nobody in them, and do without.
type queue struct {
	seq         uint64 // of the last to arrive
	waiting     int
	bounded     int             // of those waiting, how many have a last instant
	lowered     bool            // a limit admits less at once than before: some may never fit now
	slotless    int             // of those waiting, how many need no slot
	keyed       int             // of those waiting, how many have a key
	crowd       *Crowd[*waiter] // see crowdOut
	first, tail *waiter         // in order of arrival

	single    class    // the only class while the line is not mixed
	loose     []*class // mixed: the classes that need no budget
	unplanned *waiter  // the first without a planned start, while not mixed
	stalled   bool     // somebody due waits for a slot
	gated     bool     // somebody came whose gate might hold him up
	many      bool
	due       classHeap          // mixed: by the planned start of each class's first
	ready     classHeap          // mixed: due, but waiting for a slot, by order of arrival
	parked    []*class           // mixed: due, but waiting for an answer
	bySeq     map[uint64]*waiter // mixed: all of them
	later     heads              // mixed: those whom a change may help and who have not been looked at yet
	looks     int                // mixed: how many were looked at to move them up, for tests

	chain   chain // started, but not handed over to the base yet
	timer   *time.Timer
	timerAt law.Time // law.Never: not armed
	fired   int      // how often the timer has, for tests
}

// idleQueue is the queue of every line without one. Nobody writes to it; see guard.
var idleQueue = queue{timerAt: law.Never}

// New returns an empty line without caps.
func New() *Line {
	l := new(Line)
	l.Init()
	return l
}

// Init is New for a line that is part of something else.
func (l *Line) Init() {
	l.epoch, l.extra, l.queue = awake.Elapsed(), &noExtra, &idleQueue
}

// clock reads the clock, which goes on while the machine sleeps.
func (l *Line) clock() law.Time { return int64(awake.Elapsed() - l.epoch) }

// instant returns the instant that t is. If t has the wall clock alone, that is by
// what this shows now.
func (l *Line) instant(t time.Time) law.Time { return satAdd(l.clock(), time.Until(t)) }

// open gives l a queue.
func (l *Line) open() {
	if l.queue == &idleQueue {
		l.queue = &queue{timerAt: law.Never, due: classHeap{less: byStart}, ready: classHeap{less: byArrival}}
	}
}

// A Need is what a request takes from one budget. The needs of a request are
// in order: narrow budgets before wide ones. A cost of zero is no need, so
// leave it out.
type Need struct {
	B        *Budget
	Cost     int64
	inFlight bool     // a strict unit, not answered yet
	at       law.Time // when it was taken
}

// An Ask is what a request needs to start, and how long it may wait for it.
type Ask struct {
	// List is what SetLimits returned, if the needs are of it: one unit of the
	// pause, and Cost of each of the others, as long as there is a Cost. Needs is
	// not set then. When it is no longer the latest, Enter returns ErrRetired.
	List     *[]*Budget
	Cost     int64
	Needs    []Need        // Enter writes to it, and uses what room there is behind it
	MaxWait  time.Duration // the whole wait's budget; negative: none
	NoSlot   bool          // it takes no in-flight slot
	InFlight bool          // what is granted is in flight until Done
	Identity uint64        // its identity; zero: none but the line's
	Key      uint64        // whose it is, when the line is full; zero: of those without a key
}

// A Grant is a start: the caller now sends, or gives back. Exactly one of Sent
// and Cancel must follow. Cancel, Responded and Done take the needs that Enter returned.
type Grant struct {
	At       time.Duration // the start, since the line's epoch
	Waited   time.Duration // also where there was no start
	Slot     bool          // it holds an in-flight slot until Release
	Pass     Pass          // of its gate
	InFlight bool          // it is in flight until Done
	identity uint64
	turn     Turn
}

// lock locks l and reads the clock, which never runs backwards under the lock.
func (l *Line) lock() law.Time {
	l.mu.Lock()
	if len(l.walls) > 0 {
		return l.readWall()
	}
	l.last = max(l.last, l.clock())
	if q := l.quick.Load(); q != nil {
		l.last = q.Hold(l.lone.state, l.last)
	}
	return l.last
}

// readWall reads both clocks. It is apart so that lock, on which many wait,
// takes little of the stack.
//
//go:noinline
func (l *Line) readWall() law.Time {
	l.last = max(l.last, l.clock())
	wall := l.wall(l.last)
	for _, b := range l.walls {
		law.SetWall(b.state, wall, l.last)
	}
	return l.last
}

// unlock ends what lock has begun. When nobody waits any more the queue goes.
// Where the only budget is one that can then do without the lock, it does.
func (l *Line) unlock() {
	guard()
	if l.queue != &idleQueue && l.waiting == 0 && l.chain.first == nil && l.timerAt == law.Never {
		l.queue = &idleQueue
	}
	if q := l.quick.Load(); q != nil && l.waiting == 0 && l.chain.first == nil && l.pause.state.Recovered(l.last) {
		l.lone.forget()
		if !q.Release(l.lone.state, l.last) {
			l.renewQuick()
		}
	}
	l.mu.Unlock()
}

// watchSteps is where a test sees how many steps a loop has made, of those that look
// for a start or start all who are due, and how many waited meanwhile. Their number
// depends on those in line and on their rules, and on no number of a server's.
var watchSteps func(l *Line, steps, waiting int)

func (l *Line) watchSteps(steps, waiting int) {
	if watchSteps != nil {
		watchSteps(l, steps, waiting)
	}
}

func (l *Line) full() bool { return l.slots > 0 && l.slotsTaken >= l.slots }

// Start is Enter for a request that takes one unit of each of budgets and starts
// at once, through a gate that holds nobody up; nil is none. It returns when it
// did. ok is false where it did not, since more is to be done: to wait, to hand
// over, to give a slot back, or to tell of the answer. With count what started is
// in flight until DoneStart.
func (l *Line) Start(budgets []*Budget, g *Gate, count bool) (at time.Duration, p Pass, ok bool) {
	now := l.lock()
	ok = l.waiting == 0 && l.chain.first == nil && l.slots == 0 && !l.strict && !l.retired
	for i := 0; ok && i < len(budgets); i++ {
		at, _ := budgets[i].state.Earliest(now, now, 1)
		ok = at <= now
	}
	if ok && l.audiences != nil {
		ok = l.roomAnnounced(budgets, now)
	}
	if ok && g != nil {
		p, ok = l.pass(g)
	}
	if ok {
		for _, b := range budgets {
			b.state.Take(now, 1)
			b.forget()
		}
		if l.audiences != nil {
			l.takeAnnounced(budgets, now)
		}
		if count {
			l.addInFlight1(budgets, 1)
		}
	}
	l.unlock()
	return time.Duration(now), p, ok
}

// UndoStart gives back what Start has taken at an instant.
func (l *Line) UndoStart(budgets []*Budget, count bool, at time.Duration) {
	for _, b := range budgets {
		l.Give(b, at, 1)
	}
	l.undoAnnounced(budgets, count, at)
}

// Release gives back an in-flight slot.
func (l *Line) Release() {
	now := l.lock()
	defer l.unlock()
	l.slotsTaken--
	l.dispatch(now)
}

// Sent tells the line that the caller is about to send: whoever started after it
// at the same instant comes next.
func (l *Line) Sent(g *Grant) {
	l.Next(g.turn)
	g.turn = Turn{}
}

// Next is Sent for a Turn.
func (l *Line) Next(t Turn) {
	if t.w == nil {
		return
	}
	l.lock()
	defer l.unlock()
	l.chain.remove(t.w)
}

// Cancel gives back a start that was not sent.
func (l *Line) Cancel(g *Grant, needs []Need) {
	now := l.lock()
	defer l.unlock()
	if g.turn.w != nil {
		l.chain.remove(g.turn.w)
	}
	if g.InFlight {
		l.addInFlight(needs, g.identity, -1)
	}
	l.giveBack(needs, int64(g.At), g.Slot, &g.Pass, now)
}

func (l *Line) giveBack(needs []Need, taken law.Time, slot bool, pass *Pass, now law.Time) {
	pass.giveBack()
	for _, n := range needs {
		n.B.state.Give(taken, n.Cost, n.inFlight)
		n.B.forget()
	}
	if slot {
		l.slotsTaken--
	}
	l.replan(now, needs, false)
}

// Responded tells strict laws that a request has its answer, or has ended without
// one. It returns the time from which on its units count.
func (l *Line) Responded(needs []Need) time.Duration {
	now := l.lock()
	defer l.unlock()
	strict := false
	for i := range needs {
		if n := &needs[i]; n.inFlight {
			n.B.state.Done(now, n.Cost)
			n.B.state.Latency(now - n.at)
			n.B.forget()
			if !strict {
				l.more().stamp++ // marks the budgets with an answer
			}
			n.B.wanted().stamp = l.stamp
			n.inFlight, strict = false, true
		}
	}
	if strict {
		l.responded(now)
	}
	return time.Duration(now)
}

// Strict reports whether any of needs waits for Responded.
func Strict(needs []Need) bool {
	for _, n := range needs {
		if n.inFlight {
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
	if b.state.(*law.Pace).Until(now, l.instant(t)) {
		l.changed(now, true, b)
	}
}

// Delay returns how long a request that arrives now would wait, as a refusal
// would tell it; nil means not at all. It takes nothing.
func (l *Line) Delay(a *Ask, g *Gate) *Refusal {
	now := l.lock()
	defer l.unlock()
	needs := a.Needs
	if a.List != nil {
		needs = l.needsOf(a.Cost)
	}
	needs = l.withAnnounced(needs, a.Identity)
	l.dispatch(now)
	p := l.foresee(needs, a.NoSlot && l.slots > 0, g, now)
	barred := l.barred(g, now)
	switch {
	case p.now(now):
		return barred
	case barred != nil && int64(barred.RetryAfter) > p.at-now:
		return barred
	}
	return p.refusal(needs, now, false)
}

// Remaining returns how many units of the tightest of budgets could start now.
func (l *Line) Remaining(budgets ...*Budget) int64 {
	now := l.lock()
	defer l.unlock()
	least := int64(law.Unlimited)
	for _, b := range budgets {
		least = min(least, b.remaining(now))
	}
	return least
}

// Left is Remaining of b at the latest reading of the clock, for who has just
// called Start.
func (l *Line) Left(b *Budget) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return b.remaining(l.last)
}

// Waiting returns how many wait, and how many in-flight slots are taken.
func (l *Line) Waiting() (waiting, inFlight int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting, int(l.slotsTaken)
}
