package line

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headway-go/headway/internal/awake"
	"github.com/headway-go/headway/internal/law"
)

// Never is the wait of a request that cannot start.
const Never time.Duration = math.MaxInt64

// catchUp bounds how late a waiter may be woken and still take its unit as of its
// slot, so that the delays of timers do not add up; see law.TakeLate.
const catchUp = law.Time(10 * time.Millisecond)

// A Line is the queue of the requests that need one or more budgets. Any goroutine may
// use it. User code never runs under its lock.
//
// The methods of Line take the lock and those of locked need it, so that the compiler
// keeps the two apart. Methods of a Budget, a Gate, a waiter, a class and a Journal
// that do not say otherwise need the lock of their line too.
type Line struct {
	epoch epoch // assigned once, read-only afterwards

	// quick counts the starts of the lone budget without the lock while the line is
	// empty. Under the lock it is frozen; see Quick.
	quick atomic.Pointer[law.Quick]

	mu         sync.Mutex // guards following fields, and those of budgets, gates and waiters
	last       law.Time   // the latest clock reading
	max        int32      // cap on waiting; zero: none
	slots      int32      // cap on slotsTaken; zero: none
	slotsTaken int32      // in-flight slots that starts hold until Release
	retired    bool       // forgotten; see Budget
	strict     bool       // some budget is, or was
	inFlight   int64      // requests that started and are not done, where that is counted

	*extra // the rarely needed fields; noExtra while they are all zero
	*queue // the waiting requests; idleQueue while there are none
}

// locked is a Line whose lock is held. Its methods need that, so that none of their
// names has to say so; lock is the only way to get one.
type locked Line

// An extra is the rest of a line's fields, which few lines of a Transport need.
type extra struct {
	walls []*Budget // those that follow the wall clock
	stamp uint64    // marks the budgets that a replan has touched; never the same twice

	// Of SetLimits: the only budget but for the pause, or nil; the pause; all budgets but
	// for the pause; and all of them as needs, for needsOf.
	lone, pause *Budget
	list        *[]*Budget
	listed      []Need

	audiences *audiences // nil before the first announcement

	recent law.Recent // the successes of requests without a limit
}

// noExtra is the extra of every line without one. A program may have a million lines,
// most of which need none. They share this one, which is read without any lock and never
// written: wantExtra gives a line its own before the first write, and guard checks it.
var noExtra extra

// wantExtra gives l an extra of its own, to write to.
func (l *locked) wantExtra() *extra {
	if l.extra == &noExtra {
		l.extra = new(extra)
	}
	return l.extra
}

// A queue is what a line knows of its waiting requests.
type queue struct {
	waiters         // in order of arrival
	seq      uint64 // of the last to arrive
	waiting  int    // how many
	bounded  int    // how many have a last instant
	slotless int    // how many need no slot
	keyed    int    // how many have a key
	lowered  bool   // a limit admits less at once than before: some may never fit now
	stalled  bool   // a request that is due waits for a slot
	gated    bool   // a request joined whose gate might delay it
	crowd    *Crowd[*waiter]

	// While all requests need the same budgets; see fifo.go.
	single    class
	unplanned *waiter // the first without a planned start

	// From the first request with other needs until the line is empty; see backfill.go.
	many   bool
	loose  []*class           // the classes that need no budget
	due    heapOf[*class]     // by the planned start of each class's first
	ready  heapOf[*class]     // due, but waiting for a slot or a gate, by order of arrival
	parked []*class           // due, but waiting for a response
	bySeq  map[uint64]*waiter // all of them
	later  heads              // those that a change may help and that have not been looked at yet
	looks  int                // how many were looked at to move them up, for tests

	chain   chain // started, but not sent yet
	timer   *time.Timer
	timerAt law.Time // law.Never: not armed
	fired   int      // how often the timer has, for tests
}

// idleQueue is the queue of every line in which nothing waits; it is shared and never
// written, as noExtra is. open replaces it when a request joins, unlock restores it.
var idleQueue = queue{timerAt: law.Never}

// open gives l a queue.
func (l *locked) open() {
	if l.queue == &idleQueue {
		index := func(c *class, i int) { c.index = i }
		l.queue = &queue{
			timerAt: law.Never,
			due:     heapOf[*class]{less: byStart, moved: index},
			ready:   heapOf[*class]{less: byArrival, moved: index},
		}
	}
}

// New returns an empty line without caps.
func New() *Line {
	line := new(Line)
	line.Init()
	return line
}

// Init is New for a line that is part of something else.
func (line *Line) Init() {
	line.epoch, line.extra, line.queue = epoch(awake.Elapsed()), &noExtra, &idleQueue
}

// An epoch is the instant 0 of a line, as package awake counts.
type epoch time.Duration

// clock reads the clock, which goes on while the machine sleeps.
func (e epoch) clock() law.Time { return int64(awake.Elapsed()) - int64(e) }

// instant returns the instant of t. If t has the wall clock alone, it is converted by
// what the wall clock shows now.
func (e epoch) instant(t time.Time) law.Time { return law.Later(e.clock(), time.Until(t)) }

// time returns the instant t as package awake's Now does.
func (e epoch) time(t law.Time) time.Time { return awake.At(time.Duration(int64(e) + t)) }

// InstantOf returns the line's instant of a time of awake.Now.
func (line *Line) InstantOf(t time.Time) time.Duration {
	return time.Duration(line.epoch.clock()) - awake.Now().Sub(t)
}

// forever is the last instant of a wait without bounds; law.Later is never after it.
const forever = law.Never - 1

// lock locks the line and reads the clock, which never runs backwards under the lock. It is
// read here and not by callers: readings from before the lock would come in another order
// than the locks, and when 30,000 callers arrive at once a law would admit several times
// its rate.
func (line *Line) lock() (*locked, law.Time) {
	line.mu.Lock()
	l := (*locked)(line)
	if len(l.walls) > 0 {
		return l, l.readWall()
	}
	l.last = max(l.last, l.epoch.clock())
	if q := l.quick.Load(); q != nil {
		l.last = q.Hold(l.lone.state, l.last)
	}
	return l, l.last
}

// lockOnly is lock for callers that need neither the clock nor what budgets remember.
// What it returns is unlocked by mu.Unlock.
func (line *Line) lockOnly() *locked {
	line.mu.Lock()
	return (*locked)(line)
}

// readWall reads both clocks. It is a function of its own so that lock, on which many
// goroutines wait, takes little of their stacks.
//
//go:noinline
func (l *locked) readWall() law.Time {
	l.last = max(l.last, l.epoch.clock())
	wall := l.wall(l.last)
	for _, b := range l.walls {
		law.SetWall(b.state, wall, l.last)
	}
	return l.last
}

// unlock ends what lock has begun. A queue that nothing needs any more is dropped: nothing
// waits, nothing is in the chain, and no timer is set that would come back to it. Where
// the only budget can do without the lock until the next lock, it does; see Quick.
func (l *locked) unlock() {
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

// watchSteps is where a test sees how many steps a loop has made, of those that search
// for a start or start all that are due, and how many requests waited meanwhile. The
// steps are bounded by the requests in line and their rules, and by no number that a
// server sends.
var watchSteps func(l *locked, steps, waiting int)

func (l *locked) watchSteps(steps, waiting int) {
	if watchSteps != nil {
		watchSteps(l, steps, waiting)
	}
}

// full reports whether all in-flight slots are taken.
func (l *locked) full() bool { return l.slots > 0 && l.slotsTaken >= l.slots }

// A Need is what a request takes from one budget. The needs of a request are in order,
// narrow budgets before wide ones. A need of no units is left out.
type Need struct {
	B        *Budget
	Cost     int64
	inFlight bool     // a strict unit, whose response has not come
	at       law.Time // when it was taken
	mark     law.Mark // of an announced limit, when it was taken
}

// costOf returns what needs take from b; zero if that is not among them.
func costOf(needs []Need, b *Budget) int64 {
	for i := range needs {
		if needs[i].B == b {
			return needs[i].Cost
		}
	}
	return 0
}

// Strict reports whether one of needs waits for Responded.
func Strict(needs []Need) bool {
	for i := range needs {
		if needs[i].inFlight {
			return true
		}
	}
	return false
}

// An Ask is what a request needs to start, and how long it may wait for it.
type Ask struct {
	// List is what SetLimits returned, if the needs are of it: one unit of the
	// pause, and Cost of each of the others, if Cost is positive. Needs is
	// not set then. If it is no longer the latest, Join returns ErrRetired.
	List     *[]*Budget
	Cost     int64
	Needs    []Need        // Enter writes to it, and uses the capacity behind it
	MaxWait  time.Duration // the budget of the whole wait; negative: none
	NoSlot   bool          // it takes no in-flight slot
	InFlight bool          // once started it counts as in flight until Done
	Who                    // as whom it receives announcements
	Key      uint64        // whose places in a full line it counts against; zero: those without a key
}

// Who is as whom a request receives announcements, besides those to all.
type Who struct {
	Identity uint64 // zero: none
	Resource uint64 // the audience of what it draws on, of that identity; zero: none, or it is not known
	// Route is a hash of where it goes, of that identity: once JoinAudience has told which
	// Resource that draws on, a request in line is of it too. Zero: it stays as it is.
	Route uint64
}

// is reports whether w is of an audience.
func (w *Who) is(audience uint64) bool {
	return audience == w.Identity || audience == w.Resource
}

// A Grant is a start: the caller now sends the request, or gives the start back.
// Exactly one of Sent and Cancel must follow. Cancel, Responded and Done take the needs
// that Enter returned.
type Grant struct {
	At       time.Duration // the start, since the line's epoch
	Waited   time.Duration // also if it did not start
	Slot     bool          // it holds an in-flight slot until Release
	Pass     Pass          // of its gate
	InFlight bool          // it counts as in flight until Done
	who      Who
	turn     Turn
}

// Who returns as whom the request received announcements when it started.
func (g *Grant) Who() Who { return g.who }

// DrawsOn reports whether the request counts for a resource.
func (g *Grant) DrawsOn(resource uint64) bool { return g.who.Resource == resource }

// Release gives back an in-flight slot.
func (line *Line) Release() {
	l, now := line.lock()
	defer l.unlock()
	l.slotsTaken--
	l.dispatch(now)
}

// Sent tells the line that the request is about to be sent: the next that started at
// the same instant follows.
func (line *Line) Sent(g *Grant) {
	line.Next(g.turn)
	g.turn = Turn{}
}

// Next is Sent for a Turn.
func (line *Line) Next(t Turn) {
	if t.w == nil {
		return
	}
	l, _ := line.lock()
	defer l.unlock()
	l.chain.remove(t.w)
}

// Cancel gives back a start whose request was not sent.
func (line *Line) Cancel(g *Grant, needs []Need) {
	l, now := line.lock()
	defer l.unlock()
	if g.turn.w != nil {
		l.chain.remove(g.turn.w)
	}
	if g.InFlight {
		l.addInFlight(needs, g.who, -1)
	}
	l.giveBack(needs, int64(g.At), g.Slot, &g.Pass, now)
}

// giveBack gives back all that a start took at an instant: its place at the gate, its
// units, and its slot. What becomes free may let others start.
func (l *locked) giveBack(needs []Need, taken law.Time, slot bool, pass *Pass, now law.Time) {
	pass.giveBack()
	for i := range needs {
		n := &needs[i]
		n.B.state.Give(taken, n.Cost, n.inFlight)
		n.B.forget()
	}
	if slot {
		l.slotsTaken--
	}
	l.replan(now, needs, false)
}

// Responded tells strict laws that a request has its response, or has ended without
// one. It returns the instant from which on its units count.
func (line *Line) Responded(needs []Need) time.Duration {
	l, now := line.lock()
	defer l.unlock()
	strict := false
	for i := range needs {
		n := &needs[i]
		if !n.inFlight {
			continue
		}
		n.B.state.Done(now, n.Cost)
		n.B.state.Latency(now - n.at)
		n.B.forget()
		if !strict {
			l.wantExtra().stamp++ // marks the budgets with a response
		}
		n.B.wanted().stamp = l.stamp
		n.inFlight, strict = false, true
	}
	if strict {
		switch {
		case l.first == nil:
		case l.many:
			l.unpark(now)
			l.replace(now, atOnce, false) // starts were planned as if this response came at once
		default:
			l.dropPlan()
		}
		l.dispatch(now)
	}
	return time.Duration(now)
}

// Give gives back cost units of b that were taken, or responded to, at an instant. It
// reports whether b is still in use; see ErrRetired.
func (line *Line) Give(b *Budget, taken time.Duration, cost int64) bool {
	l, now := line.lock()
	defer l.unlock()
	if l.retired || b.retired {
		return false
	}
	b.state.Give(int64(taken), cost, false)
	for i := range b.announced {
		b.announced[i].Limit.Give(int64(taken), cost, false)
	}
	l.changed(now, false, andAnnounced(b)...)
	return true
}

// Spend counts n units of each of budgets as used now; a negative n gives the oldest
// back. It returns when that was, and whether all are still in use; see ErrRetired.
func (line *Line) Spend(n int64, budgets ...*Budget) (at time.Duration, ok bool) {
	l, now := line.lock()
	defer l.unlock()
	for _, b := range budgets {
		if l.retired || b.retired {
			return 0, false
		}
	}
	for _, b := range budgets {
		b.state.Spend(now, n)
		for i := range b.announced {
			b.announced[i].Limit.Spend(now, n)
		}
	}
	l.changed(now, n > 0, andAnnounced(budgets...)...)
	return time.Duration(now), true
}

// PauseUntil extends the pause of b, which NewPause has made. The longest wins.
func (line *Line) PauseUntil(b *Budget, t time.Time) {
	l, now := line.lock()
	defer l.unlock()
	if b.state.(*law.Pace).Until(now, l.epoch.instant(t)) {
		l.changed(now, true, b)
	}
}

// Delay returns the refusal of a request that arrives now and may not wait at all; nil
// if it would start at once. It takes nothing.
func (line *Line) Delay(a *Ask, g *Gate) *Refusal {
	l, now := line.lock()
	defer l.unlock()
	k, _ := l.resolve(a, g)
	l.dispatch(now)
	p := l.foresee(k, now)
	barred := l.barred(g, now)
	switch {
	case p.now(now):
		return barred
	case barred != nil && int64(barred.RetryAfter) > p.at-now:
		return barred
	}
	return p.refusal(k.needs, now, false)
}

// Remaining returns how many units of the tightest of budgets could start now.
func (line *Line) Remaining(budgets ...*Budget) int64 {
	l, now := line.lock()
	defer l.unlock()
	least := int64(law.Unlimited)
	for _, b := range budgets {
		least = min(least, b.remaining(now))
	}
	return least
}

// Left is Remaining of b at the latest reading of the clock, right after Start.
func (line *Line) Left(b *Budget) int64 {
	l := line.lockOnly()
	defer l.mu.Unlock()
	return b.remaining(l.last)
}

// Waiting returns how many requests wait, and how many in-flight slots are taken.
func (line *Line) Waiting() (waiting, inFlight int) {
	l := line.lockOnly()
	defer l.mu.Unlock()
	return l.waiting, int(l.slotsTaken)
}
