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

// How many requests of one class, and of all classes, ask in one round trip. Both numbers
// fall to their least with a refusal, which holds for those behind it, so that asking for
// them too would be in vain. They grow while everything is granted: four times as many in the
// next round trip, or one more in a class that has been refused before, since others then
// use what it needs.
const (
	leastWidth = 2
	leastSpan  = 8
	most       = 128
)

// A batch is one round trip. Its operations are those that were queued, and behind them
// either the takes of requests that are due or one forecast for all in line.
type batch struct {
	sent     time.Time
	ops      []store.Op
	queued   []*operation // those of the first ops
	takes    []*waiter    // those of the ops behind them
	forecast []*waiter    // those of the last op, which is a forecast; nil: it is none
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

// Do has the store do an operation of the group, and returns when it is done. When ctx ends
// before that, Do returns its error, and the operation is done all the same. An operation is
// sooner if it may let requests in line start sooner, and later if it may delay them.
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

// finish ends an operation. While the store is down, responses are kept for it: it would hold
// the strict units of their requests until their leases end. The others are lost, since
// their units return by themselves. It may be called with mu held or without.
func (l *Line) finish(o *operation, res store.Result, err error) {
	o.res, o.err = res, err
	if errors.Is(err, ErrDown) && o.op.Kind == store.OpDone {
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

// run makes one round trip after another until nothing is due, and then arms the timer for
// what is due next. It is the only goroutine of its line that calls the store.
//
// A store may hang although its context is over. That must not hold the line for good, and
// the goroutine inside of the store cannot be stopped, so that the line leaves it behind.
// l.out is the round trip that the line waits for. A timer abandons it: everything that waits
// fails, and l.out becomes nil, so that the next request starts another run. When the store
// returns at last, the old run finds that l.out is not its own. Then it touches nothing of
// the line, and gives back what the store has granted.
//
// From the end of one round trip to the beginning of the next, mu is held without a pause.
// So l.out never names a batch whose results have been applied, and no timer can fail a
// batch that is over.
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
			// The machine has slept. Units that were granted before may count no more by
			// now: a request that started with them would be one too many.
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

// collectLocked returns what is due: all queued operations, and takes or a forecast. A
// forecast is for the line as it stands, which takes in the same round trip would change.
// Where both are due they take turns: a stream of changes, each of which makes a forecast
// due, must not keep requests from starting.
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

// collectForecastLocked adds a forecast for all in line, if its result can matter: to a request
// whose wait has an end, or that has no place in the line, or to any where limits were lowered
// so that one may never start. Those that may wait for ever are part of it in any case, since
// they start before others.
func (l *Line) collectForecastLocked(b *batch) {
	matters := l.checkAll && l.order.Len() > 0
	l.check, l.checkAll = false, false
	var all []*waiter
	for w := range l.eachLocked {
		all = append(all, w)
		matters = matters || w.full || !w.by.IsZero()
	}
	if matters {
		b.forecast = all
		b.ops = append(b.ops, store.Op{Kind: store.OpForecast, Group: l.Group(), Asks: l.asksLocked()})
	}
}

// collectTakesLocked adds the takes of requests that are due.
//
//  1. Those for whose class starts are reserved start, without the store.
//  2. Of each class that is due, the first few ask. The store skips those behind one that it
//     refuses, so that no request overtakes another of its class.
//  3. All of them are sorted by arrival, since the store decides in order, and as many remain
//     as have slots and places behind their gates. Units of the others would be taken for
//     requests that cannot start.
//  4. Those whose wait ends at this very instant are refused, unless their class asks: they
//     still start if it is granted now.
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
	for _, last := range reserves { // the last of a class: so the takes before it find all the room
		b.ops[last].Reserve = int64(p.Batch) - 1
	}
	l.overdue = slices.DeleteFunc(l.overdue, func(w *waiter) bool {
		if !asks[w.class] && w.inLine() {
			l.refuseLocked(w, l.atLeastLocked(w, b.sent))
		}
		return !w.inLine()
	})
	l.settleLocked()
}

// takeOp returns the operation that takes what a request needs under the plan in force. It
// leaves out needs whose limit is gone: so needs and op.Needs may differ in length.
func (l *Line) takeOp(a *Ask, id, class uint64, due store.Instant) store.Op {
	op := store.Op{Kind: store.OpTake, Group: l.Group(), ID: id, Audiences: a.Audiences, Line: class, Due: due}
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
	for w := range l.eachLocked {
		asks = append(asks, l.takeOp(w.ask, w.id, w.class.number, w.due))
	}
	return asks
}

// failLocked ends everything that waits for the store, which is down. The requests return in
// order of arrival: under StoreDownLocal they queue in memory next, in the same order.
func (l *Line) failLocked(b *batch, err error) {
	for _, o := range append(b.queued, l.queued...) {
		l.finish(o, store.Result{}, fmt.Errorf("%w: %w", ErrDown, err))
	}
	l.queued, l.overdue, l.check = nil, nil, false
	for w := range l.eachLocked {
		l.dismissLocked(w, ErrDown)
	}
}

// dismissLocked ends the wait of w with an error: the store does not decide for it.
func (l *Line) dismissLocked(w *waiter, err error) {
	if l.removeLocked(w); !w.left {
		w.err = err
		l.wakeLocked(w)
	}
}

// applyLocked carries out the results of b, which arrived now. Each take has one of these:
//
//   - It was granted: the request starts, if its gate still lets it pass.
//   - A row that it needs cannot be read: the store does not decide, and the request returns
//     the error.
//   - It was skipped, since one before it in its class was refused. It waits on.
//   - It can never be granted: the request is refused.
//   - It cannot be granted before an instant: then the class is due, and does not ask before.
//     The instant is the time of arrival here plus the wait that the store reports. The
//     store counted the wait from an earlier moment, so that the class never asks too early.
//
// A request whose caller left while it was asking is still in line, marked as left, since its
// result was on its way. It is removed now, and what it was granted is given back.
//
// Reserved starts are kept before the request that brought them starts, so that what
// starting it changes applies to them too.
func (l *Line) applyLocked(b *batch, results []store.Result, now time.Time) {
	for i := range results {
		l.noteResultLocked(&b.ops[i], &results[i], now)
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
		case c.refused:
			c.width = min(most, c.width+1)
		default:
			c.width = min(most, 4*c.width)
		}
	}
	l.settleLocked()
}

// A block is what a refusal implies for a budget: cost units, or more, have no room in it
// before an instant, whichever request needs them.
type block struct {
	cost  int64
	until time.Time
	at    store.Instant // the same by the store's clock
}

// delayLocked has the class of w ask again at the instant that the store reports, and notes
// which budget is blocked until then; a pause or an announced limit holds for one audience
// and blocks no budget. What is reserved must not be used in a pause, and is given back. A
// request that was to wait, and would now wait too long, makes a forecast due, which decides.
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

// spareLocked spares other classes the takes that would be refused like one just was: those
// whose first request needs as much of a blocked budget are due when it is free. Without it,
// ten thousand keys that share one exhausted budget would each ask for themselves.
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

// armLocked arms the timer for the first instant after now at which something is due. What was
// due by now has asked, or waits for something that kicks the line: a slot, a gate, a Halt.
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
