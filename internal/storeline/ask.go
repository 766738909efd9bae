package storeline

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/headway-go/headway/internal/awake"
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

// A batch is one round trip. Its operations are what was unsent, those that were queued, and
// behind them either the takes of requests that are due or one forecast for all in line.
type batch struct {
	sent     time.Time
	ops      []store.Op
	unsent   part         // what the first ops are
	queued   []*operation // those of the ops behind them
	takes    []*waiter    // those of the ops behind them
	forecast []*waiter    // those of the last op, which is a forecast; nil: it is none
	recalled []*scope     // what is granted to their requests is given back; see recallLocked
}

// starting stands for the first round trip of a run that has not collected it yet.
var starting batch

// kickLocked makes sure that what is due is asked.
func (l *Line) kickLocked() {
	if l.out == nil {
		l.out = &starting
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

// collectLocked returns what is due: all that is unsent, so that what follows is decided after
// it, all queued operations, and takes or a forecast. A
// forecast is for the line as it is, which takes in the same round trip would change.
// Where both are due they take turns: a stream of changes, each of which makes a forecast
// due, must not keep requests from starting.
func (l *Line) collectLocked() *batch {
	b := &batch{sent: awake.Now()}
	b.unsent = l.takeUnsent(b.sent)
	b.ops = b.unsent.ops
	b.queued, l.queued = l.queued, nil
	for _, o := range b.queued {
		if o.delay != nil {
			w := &waiter{ask: o.delay, class: l.classes[l.classKey(o.delay)]}
			if w.class == nil {
				w.class = &class{number: math.MaxUint64}
			}
			o.op = store.Op{Kind: store.OpForecast, Group: l.Group(), Asks: append(l.asksLocked(), l.takeOp(w))}
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
	p, reserves := l.plan(), map[*class]int{}
	for _, w := range b.takes {
		w.asking = b.sent
		if p.reserves(w.ask) {
			reserves[w.class] = len(b.ops)
		}
		b.ops = append(b.ops, l.takeOp(w))
	}
	for _, last := range reserves { // the last of a class: so the takes before it find all the room
		b.ops[last].Reserve = int64(p.Batch) - 1
	}
	l.overdue = slices.DeleteFunc(l.overdue, func(w *waiter) bool {
		if w.inLine() && w.class.first().asking.IsZero() {
			l.refuseLocked(w, l.atLeastLocked(w, b.sent))
		}
		return !w.inLine()
	})
	l.settleLocked()
}

// takeOp returns the operation that takes what w needs under the plan in force. It leaves out
// needs whose limit is gone: so Ask.Needs and op.Needs may differ in length.
func (l *Line) takeOp(w *waiter) store.Op {
	op := store.Op{Kind: store.OpTake, Group: l.Group(), ID: w.id, Audiences: w.ask.Audiences, Line: w.class.number, Due: w.due}
	p := l.plan()
	for _, n := range w.ask.Needs {
		if limit, ok := p.limit(n.Budget); ok {
			op.Needs = append(op.Needs, store.Need{Budget: n.Budget, Limit: limit, Cost: n.Cost})
		}
	}
	return op
}

// asksLocked returns the takes of all in line.
func (l *Line) asksLocked() (asks []store.Op) {
	for w := range l.eachLocked {
		asks = append(asks, l.takeOp(w))
	}
	return asks
}

// failLocked ends everything that waits for the store, which is down. The requests return in
// order of arrival: under StoreDownLocal they queue in memory next, in the same order.
func (l *Line) failLocked(b *batch, err error) {
	l.failUnsentLocked(b.unsent.list)
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
