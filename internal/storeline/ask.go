package storeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/headway-go/headway/internal/awake"
	"github.com/headway-go/headway/internal/line"
	"github.com/headway-go/headway/store"
)

// How many requests of a class ask in one round trip, and how many of all classes: few
// while they are refused, for a refusal of the first holds for those behind it, and more
// and more while all are granted.
const (
	leastWidth = 2
	leastSpan  = 8
	most       = 128
)

// A batch is one round trip: operations that were queued, and then either the takes of
// requests that are due or one forecast for all in line.
type batch struct {
	sent     time.Time
	ops      []store.Op
	queued   []*operation // of the first ops
	takes    []*waiter    // of those behind them
	forecast []*waiter    // of the last one; nil: it is no forecast
}

// An operation is something for the store to do besides the takes of those in line.
type operation struct {
	op            store.Op
	delay         *Ask // not nil: op is to be its forecast, built when it is asked
	sooner, later bool // those in line may start sooner by it, or later

	res  store.Result
	err  error
	done chan struct{} // closed once res and err are there; nil: no one waits
}

// queueLocked has the store do an operation in the next round trip.
func (l *Line) queueLocked(o *operation) {
	l.queued = append(l.queued, o)
	l.kickLocked()
}

// Do has the store do an operation of the group, and returns when it is done. Where ctx ends
// before, Do returns its error and the operation is done all the same. Sooner and later say
// that those in line may start sooner, or later, by it.
func (l *Line) Do(ctx context.Context, op store.Op, sooner, later bool) (store.Result, error) {
	return l.do(ctx, &operation{op: op, sooner: sooner, later: later})
}

func (l *Line) do(ctx context.Context, o *operation) (store.Result, error) {
	if l.client.available() != nil {
		l.finish(o, store.Result{}, ErrDown)
		return o.res, o.err
	}
	o.done = make(chan struct{})
	l.mu.Lock()
	l.queueLocked(o)
	l.mu.Unlock()
	select {
	case <-o.done:
		return o.res, o.err
	case <-ctx.Done():
		return store.Result{}, ctx.Err()
	}
}

// finish ends an operation. That a request has its response must reach the store, which
// would hold the units until their lease ends: it is kept while the store is down.
func (l *Line) finish(o *operation, res store.Result, err error) {
	o.res, o.err = res, err
	if errors.Is(err, ErrDown) && o.op.Kind == store.OpAnswer {
		l.client.keep(o.op)
	}
	if o.done != nil {
		close(o.done)
	}
}

// Delay returns when a request that arrives now would start; nil for now. It takes nothing.
func (l *Line) Delay(ctx context.Context, a *Ask) (*line.Refusal, error) {
	o := &operation{delay: a}
	res, err := l.do(ctx, o)
	if err != nil {
		return nil, err
	}
	last := len(res.Waits) - 1
	if err := res.Waits[last].Err; err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.refusalLocked(a, &o.op.Asks[last], &res.Waits[last])
	if r.RetryAfter == 0 && !r.AtLeast {
		return nil, nil
	}
	return r, nil
}

// kickLocked makes sure that what is due is asked.
func (l *Line) kickLocked() {
	if l.out == nil {
		l.out = new(batch)
		go l.run()
	}
}

// run makes one round trip after another until nothing is due, and then sets the timer that
// runs it next. So a line has one round trip out at most, and what comes up meanwhile goes
// with the next.
//
// l.out names the round trip that the line waits for. A store that hangs, whatever its
// context says, must not hold the line: a timer then abandons the round trip. It fails
// everything that waits and sets l.out to nil, so that the next request may run another. The
// goroutine that is left behind sees that l.out is not its own when the store returns at
// last; all it still does is give back what was granted. Between two round trips mu is not
// released: nothing can come between a result and the next question.
func (l *Line) run() {
	l.use()
	defer l.Unuse()
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		b := l.collectLocked()
		if len(b.ops) == 0 {
			l.out = nil
			l.armLocked(b.sent)
			return
		}
		l.out = b
		l.mu.Unlock()
		late := time.AfterFunc(Timeout, func() { l.abandon(b) })
		results, err := l.client.do(b.ops)
		late.Stop()
		l.mu.Lock()
		if l.out != b {
			go l.client.giveBack(b.ops, results)
			return
		}
		now := awake.Now()
		if err == nil && now.Sub(b.sent) > Timeout {
			// The machine has slept meanwhile. What was granted before may count no more: a
			// request that started with it now would be one too many.
			err = errLate
			l.client.failed(err, b.ops)
			go l.client.giveBack(b.ops, results)
		}
		if err != nil {
			l.failLocked(b, err)
		} else {
			l.applyLocked(b, results, now)
		}
	}
}

// abandon goes on without the results of b, if they are still awaited.
func (l *Line) abandon(b *batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.out == b {
		l.client.failed(errLate, b.ops)
		l.out = nil
		l.failLocked(b, errLate)
	}
}

// collectLocked returns what is to be asked: all that is queued, and takes or a forecast, by
// turns where both are due. A forecast beside takes would be wrong at once: it is for the
// line as it is when the store works.
func (l *Line) collectLocked() *batch {
	b := &batch{sent: awake.Now()}
	b.queued, l.queued = l.queued, nil
	for _, o := range b.queued {
		if o.delay != nil {
			number := uint64(math.MaxUint64)
			if c := l.classes[l.classKey(o.delay)]; c != nil {
				number = c.number
			}
			asks := append(l.asksLocked(), l.takeOp(o.delay, 0, number, 0))
			o.op = store.Op{Kind: store.OpForecast, Group: l.Group(), Asks: asks}
		}
		b.ops = append(b.ops, o.op)
	}
	if l.check && !l.checked {
		l.collectForecastLocked(b)
	}
	if b.forecast == nil {
		l.collectTakesLocked(b)
		if len(b.ops) == 0 && l.check {
			l.collectForecastLocked(b)
		}
	}
	l.checked = b.forecast != nil
	return b
}

// collectForecastLocked adds the forecast for all in line, if it can matter to one of them.
func (l *Line) collectForecastLocked(b *batch) {
	matters := l.checkAll && l.order.Len() > 0
	l.check, l.checkAll = false, false
	var all []*waiter
	for e := l.order.Front(); e != nil; e = e.Next() {
		w := e.Value.(*waiter)
		all = append(all, w)
		matters = matters || w.full || !w.by.IsZero()
	}
	if matters {
		b.forecast = all
		b.ops = append(b.ops, store.Op{Kind: store.OpForecast, Group: l.Group(), Asks: l.asksLocked()})
	}
}

// collectTakesLocked adds the takes of the requests that are due, in order of arrival. Those
// for which starts are reserved start before, and those whose wait is over and that are not
// among the ones that ask are refused.
func (l *Line) collectTakesLocked(b *batch) {
	l.startDueLocked(b.sent)
	for _, c := range l.classes {
		if !l.isDueLocked(c, b.sent) {
			continue
		}
		n := 0
		for e := c.queue.Front(); e != nil && n < c.width; e = e.Next() {
			b.takes = append(b.takes, e.Value.(*waiter))
			n++
		}
	}
	slices.SortFunc(b.takes, func(a, b *waiter) int { return cmp.Compare(a.number, b.number) })
	b.takes = l.admitLocked(b.takes, b.sent)
	p := l.plan()
	asks, reserves := map[*class]bool{}, map[*class]int{}
	for _, w := range b.takes {
		w.asking, asks[w.class] = b.sent, true
		if p.reserves(w.ask) {
			reserves[w.class] = len(b.ops)
		}
		b.ops = append(b.ops, l.takeOp(w.ask, w.id, w.class.number, w.due))
	}
	for _, last := range reserves { // the last take of a class, so that no other needs what it reserves
		b.ops[last].More = int64(p.Batch) - 1
	}
	l.overdue = slices.DeleteFunc(l.overdue, func(w *waiter) bool {
		if !asks[w.class] && w.inLine() {
			l.refuseLocked(w, l.atLeastLocked(w, b.sent))
		}
		return !w.inLine()
	})
	l.settleLocked()
}

// takeOp returns the operation that takes what a request needs, as the store knows it. It
// leaves out the needs whose limit is gone.
func (l *Line) takeOp(a *Ask, id, class uint64, due store.Instant) store.Op {
	op := store.Op{Kind: store.OpTake, Group: l.Group(), ID: id, Ears: a.Audiences, Line: class, Due: due}
	p := l.plan()
	for _, n := range a.Needs {
		if limit, ok := p.limit(n.Budget); ok {
			op.Needs = append(op.Needs, store.Need{Budget: n.Budget, Limit: limit, Cost: n.Cost})
		}
	}
	return op
}

// asksLocked returns the takes of all in line.
func (l *Line) asksLocked() (asks []store.Op) {
	for e := l.order.Front(); e != nil; e = e.Next() {
		w := e.Value.(*waiter)
		asks = append(asks, l.takeOp(w.ask, w.id, w.class.number, w.due))
	}
	return asks
}

// failLocked ends all that waits for the store, which is down. Those in line go, in order of
// arrival, where Policy.Store.Down sends them.
func (l *Line) failLocked(b *batch, err error) {
	for _, o := range append(b.queued, l.queued...) {
		l.finish(o, store.Result{}, fmt.Errorf("%w: %w", ErrDown, err))
	}
	l.queued, l.overdue, l.check = nil, nil, false
	for e := l.order.Front(); e != nil; {
		w := e.Value.(*waiter)
		e = e.Next()
		l.dismissLocked(w, ErrDown)
	}
}

// dismissLocked takes w out of the line with an error: the store does not decide for it.
func (l *Line) dismissLocked(w *waiter, err error) {
	if l.removeLocked(w); !w.left {
		w.err = err
		l.wakeLocked(w)
	}
}

// applyLocked carries out what the store has decided. Each take has one of five results:
//
//   - Granted: the request starts, if its gate still lets it pass.
//   - An error: a row that it needs cannot be read, so that the store does not decide.
//   - Skipped: one before it in its class was refused, and so would it be.
//   - Never: no limit admits it any more. It is refused.
//   - Refused until an instant: its class is due then, and is not asked before. That is
//     by this process's clock, the time from when the result arrived, so never too early.
//
// A request that gave up while it was asked is still in line, with left set: it goes now,
// and what it was granted goes back.
func (l *Line) applyLocked(b *batch, results []store.Result, now time.Time) {
	for i := range results {
		l.learnLocked(&b.ops[i], &results[i], now)
	}
	for i, o := range b.queued {
		l.changedLocked(o.sooner, o.later)
		l.finish(o, results[i], results[i].Err)
	}
	ops, results := b.ops[len(b.queued):], results[len(b.queued):]
	if b.forecast != nil {
		l.settleLocked()
		l.decideLocked(b.forecast, ops[0].Asks, results[0].Waits, now)
		return
	}
	refused := map[*class]bool{}
	blocked := map[string]block{}
	for i, w := range b.takes {
		op, res := &ops[i], &results[i]
		w.asking = time.Time{}
		w.journalResultLocked(res, now)
		switch {
		case res.OK:
			l.keepReservedLocked(w.class.key, op, res, b.sent)
			l.grantLocked(w, op, res, now)
		case w.left:
			l.removeLocked(w)
		case res.Err != nil:
			l.dismissLocked(w, res.Err)
		case res.Skipped:
			refused[w.class] = true
		case res.For == store.Never:
			l.refuseLocked(w, refusalOf(w.ask, op, &res.Wait))
		default:
			refused[w.class] = true
			l.delayLocked(w, op, res, now, blocked)
		}
	}
	l.spareLocked(blocked)
	switch {
	case len(blocked) > 0:
		l.span = leastSpan
	case len(b.takes) > 0:
		l.span = min(most, 4*max(leastSpan, l.span))
	}
	for _, w := range b.takes {
		switch c := w.class; {
		case refused[c]:
			c.width, c.refused = leastWidth, true
		case c.refused: // others want what there is, too
			c.width = min(most, c.width+1)
		default:
			c.width = min(most, 4*c.width)
		}
	}
	l.settleLocked()
}

// A block is what one refusal says of a budget: so many units, or more, have no room in it
// before an instant, whichever request needs them.
type block struct {
	cost  int64
	until time.Time
	at    store.Instant // the same by the store's clock
}

// delayLocked has w, and with it its class, ask again when the store has said. In a pause
// what is reserved must not be used, and goes back.
func (l *Line) delayLocked(w *waiter, op *store.Op, res *store.Result, now time.Time, blocked map[string]block) {
	if res.Pause {
		l.returnAllLocked()
	}
	until := now.Add(res.For)
	w.class.due, w.due, w.bind = until, res.Wait.At, *refusalOf(w.ask, op, &res.Wait)
	if j := w.journalLocked(); j != nil {
		j.Bind = w.bind
	}
	if res.Bind >= 0 && !res.Pause && !res.Learned {
		n := op.Needs[res.Bind]
		if o, ok := blocked[n.Budget]; !ok || n.Cost < o.cost {
			blocked[n.Budget] = block{n.Cost, until, res.Wait.At}
		}
	}
	if w.counted && !w.by.IsZero() && until.After(w.by) {
		l.check = true
	}
}

// spareLocked spares other classes the question that was just refused to one: those that
// need as much of the same budget are due when it is.
func (l *Line) spareLocked(blocked map[string]block) {
	if len(blocked) == 0 {
		return
	}
	for _, c := range l.classes {
		w := c.first()
		for i, n := range w.ask.Needs {
			if b, ok := blocked[n.Budget]; ok && n.Cost >= b.cost && c.due.Before(b.until) {
				c.due = b.until
				w.due, w.bind = b.at, line.Refusal{Reason: line.ByLimit, Need: i}
			}
		}
	}
}

// armLocked sets the timer for the first instant after now at which something is due.
func (l *Line) armLocked(now time.Time) {
	at := l.gateFrees
	for _, c := range l.classes {
		if c.due.After(now) && (!at.After(now) || c.due.Before(at)) {
			at = c.due
		}
	}
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	if at.After(now) {
		l.timer = time.AfterFunc(awake.Piece(at.Sub(awake.Now())), func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.kickLocked()
		})
	}
}
