package storeline

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/headway-go/headway/internal/awake"
	"github.com/headway-go/headway/internal/line"
	"github.com/headway-go/headway/store"
)

// How many of a class ask at once, and how many of all classes: few while they are
// refused, more while all are granted.
const (
	least     = 2
	leastSpan = 8
	most      = 128
)

// kick makes sure that what is due is asked for. l.mu is held.
func (l *Line) kick() {
	if !l.running {
		l.running = true
		go l.run()
	}
}

// run asks the store until nothing is due.
func (l *Line) run() {
	l.hold()
	defer l.Unuse()
	for {
		set := l.setting()
		l.mu.Lock()
		b := l.collect(&set)
		if len(b.ops) == 0 {
			l.running = false
			l.arm(b.now)
			l.mu.Unlock()
			return
		}
		l.batch++
		number := l.batch
		l.mu.Unlock()
		err := l.client.available()
		var results []store.Result
		if err == nil {
			// A store that does not heed its context is left behind.
			late := time.AfterFunc(Timeout, func() { l.abandon(number, b) })
			results, err = l.client.ask(b.ops)
			late.Stop()
			if err != nil {
				l.client.failed(err, b.ops)
			}
		}
		l.mu.Lock()
		switch {
		case l.batch != number: // the others have gone on without it
			l.mu.Unlock()
			l.client.giveBack(b.ops, results)
			return
		case err != nil:
			l.fail(b, err)
		case awake.Now().Sub(b.now) > Timeout:
			// The machine has slept meanwhile: what was granted before may no longer
			// count, and is not used.
			l.client.failed(errLate, b.ops)
			l.fail(b, errLate)
			go l.client.giveBack(b.ops, results)
		default:
			l.apply(b, results, &set)
		}
		l.mu.Unlock()
	}
}

// abandon goes on without the answer to a batch, if it is still awaited.
func (l *Line) abandon(number uint64, b batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.batch != number || !l.running {
		return
	}
	l.client.failed(errLate, b.ops)
	l.batch++
	l.running = false
	l.fail(b, errLate)
}

// A batch is one round trip: errands, takes, and maybe a forecast.
type batch struct {
	now      time.Time
	ops      []store.Op
	errands  []*errand
	takes    []*waiter
	forecast []*waiter
}

// collect returns what is to be asked. l.mu is held.
func (l *Line) collect(s *Setting) (b batch) {
	b.now = awake.Now()
	b.errands, l.errands = l.errands, nil
	for _, e := range b.errands {
		b.ops = append(b.ops, e.build(s))
	}
	if l.check && !l.looked { // by turns, where both are due
		l.collectForecast(&b, s)
	}
	if b.forecast == nil {
		l.collectTakes(&b, s)
	}
	if len(b.ops) == 0 && l.check {
		l.collectForecast(&b, s)
	}
	l.looked = b.forecast != nil
	return b
}

func (l *Line) collectForecast(b *batch, s *Setting) {
	all := l.lowered
	l.check, l.lowered = false, false
	for e := l.order.Front(); e != nil; e = e.Next() {
		b.forecast = append(b.forecast, e.Value.(*waiter))
	}
	if all && len(b.forecast) > 0 || slices.ContainsFunc(b.forecast, func(w *waiter) bool { return w.full || !w.by.IsZero() }) {
		b.ops = append(b.ops, store.Op{Kind: store.OpForecast, Group: l.group, Asks: l.asks(s)})
	} else {
		b.forecast = nil
	}
}

// collectTakes adds the questions of those who are due, in order of arrival.
func (l *Line) collectTakes(b *batch, s *Setting) {
	l.startInLine(s, b.now)
	for _, c := range l.classes {
		if !l.isDueAt(c, b.now) {
			continue
		}
		n := 0
		for e := c.queue.Front(); e != nil && n < c.width; e = e.Next() {
			b.takes = append(b.takes, e.Value.(*waiter))
			n++
		}
	}
	slices.SortFunc(b.takes, func(a, b *waiter) int { return cmp.Compare(a.nr, b.nr) })
	b.takes = l.admit(b.takes, s)
	asked := map[*class]bool{}
	for _, w := range b.takes {
		w.asking, w.asked = true, b.now
		asked[w.class] = true
		b.ops = append(b.ops, l.op(w, s))
	}
	l.reserveMore(b, s)
	l.overdue = slices.DeleteFunc(l.overdue, func(w *waiter) bool {
		if w.inLine() && !asked[w.class] {
			l.refuse(w, l.atLeast(w, s, b.now))
		}
		return !w.inLine()
	})
	l.settle(s)
}

func (w *waiter) inLine() bool { return w.grant == nil && w.refusal == nil && w.err == nil && !w.left }

// op returns the question of w.
func (l *Line) op(w *waiter, s *Setting) store.Op {
	op := store.Op{Kind: store.OpTake, Group: l.group, ID: w.id, Ears: w.ask.Audiences, Line: w.class.line, Due: w.due}
	for _, n := range w.ask.Needs {
		if limit, ok := s.Limits(n.Place); ok {
			op.Needs = append(op.Needs, store.Need{Budget: n.Budget, Limit: limit, Cost: n.Cost})
		}
	}
	return op
}

// asks returns the questions of all in line.
func (l *Line) asks(s *Setting) (asks []store.Op) {
	for e := l.order.Front(); e != nil; e = e.Next() {
		asks = append(asks, l.op(e.Value.(*waiter), s))
	}
	return asks
}

// fail sends everybody away, in order of arrival.
func (l *Line) fail(b batch, err error) {
	for _, e := range append(b.errands, l.errands...) {
		e.finish(store.Result{}, fmt.Errorf("%w: %w", ErrDown, err))
	}
	l.errands, l.overdue, l.check = nil, nil, false
	for e := l.order.Front(); e != nil; {
		w := e.Value.(*waiter)
		e = e.Next()
		l.dismiss(w, ErrDown)
	}
}

// dismiss sends w away: the store does not decide for it.
func (l *Line) dismiss(w *waiter, err error) {
	if l.remove(w); !w.left {
		w.err = err
		l.wake(w)
	}
}

func (e *errand) finish(res store.Result, err error) {
	e.res, e.err = res, err
	if errors.Is(err, ErrDown) && e.failed != nil {
		e.failed()
	}
	if e.done != nil {
		close(e.done)
	}
}

// apply obeys what the store has answered.
func (l *Line) apply(b batch, results []store.Result, s *Setting) {
	now := awake.Now()
	for i := range results {
		l.know(&b.ops[i], &results[i], now)
	}
	for i, e := range b.errands {
		l.again(e.better, e.worse)
		e.finish(results[i], results[i].Err)
	}
	results = results[len(b.errands):]
	refused := map[*class]bool{}
	blocked := map[string]block{}
	for i, w := range b.takes {
		res := &results[i]
		w.asking = false
		l.told(w, res, now)
		switch {
		case res.OK:
			op := &b.ops[len(b.errands)+i]
			l.keepReserved(w, op, res, b.now)
			l.start(w, op, res, s, now)
		case w.left:
			l.remove(w)
		case res.Err != nil:
			l.dismiss(w, res.Err)
		case res.Skipped:
			refused[w.class] = true
		case res.For == store.Never:
			op := &b.ops[len(b.errands)+i]
			l.refuse(w, refusalOf(w.ask, op, res.Wait))
		default:
			refused[w.class] = true
			if res.Pause {
				l.returnAllReserved()
			}
			w.due, w.bind = res.Wait.At, *refusalOf(w.ask, &b.ops[len(b.errands)+i], res.Wait)
			w.class.due = now.Add(res.For)
			if j := w.journal(); j != nil {
				j.Bind = w.bind
			}
			if res.Bind >= 0 && !res.Pause && !res.Learned {
				n := b.ops[len(b.errands)+i].Needs[res.Bind]
				if o, ok := blocked[n.Budget]; !ok || n.Cost < o.cost {
					blocked[n.Budget] = block{n.Cost, w.class.due, res.Wait.At}
				}
			}
			if w.told && !w.by.IsZero() && w.class.due.After(w.by) {
				l.check = true
			}
		}
	}
	l.block(blocked)
	switch {
	case len(blocked) > 0:
		l.span = leastSpan
	case len(b.takes) > 0:
		l.span = min(most, 4*max(leastSpan, l.span))
	}
	for _, w := range b.takes {
		switch c := w.class; {
		case refused[c]:
			c.width, c.short = least, true
		case c.short: // others want what there is, too
			c.width = min(most, c.width+1)
		default:
			c.width = min(most, 4*c.width)
		}
	}
	l.settle(s)
	if b.forecast != nil {
		l.decide(b, results[len(b.takes)].Waits, s, now)
	}
}

// A block is what a refusal says of one budget: so many units, or more, do not fit
// before an instant, whoever asks.
type block struct {
	cost  int64
	until time.Time
	at    store.Instant // the same
}

// block spares those the question who need what has just been refused to others.
func (l *Line) block(blocked map[string]block) {
	if len(blocked) == 0 {
		return
	}
	for _, c := range l.classes {
		w := c.queue.Front().Value.(*waiter)
		for i, n := range w.ask.Needs {
			if b, ok := blocked[n.Budget]; ok && n.Cost >= b.cost && c.due.Before(b.until) {
				c.due = b.until
				w.due, w.bind = b.at, line.Refusal{Reason: line.ByLimit, Need: i}
			}
		}
	}
}

// start hands w its grant, if its gate still lets it pass.
func (l *Line) start(w *waiter, op *store.Op, res *store.Result, s *Setting, now time.Time) {
	w.class.due = time.Time{}
	g := &Grant{At: res.At, Waited: now.Sub(w.arrived), Heeded: res.Heeded, strict: res.Strict, take: *op, ask: w.ask, w: w}
	if a := w.ask; a.Gate != nil && !w.left {
		if ok, r := a.Local.PassGate(a.Gate, &g.Pass); !ok { // it has changed while the store was asked
			l.giveBack(g)
			if r != nil {
				l.refuse(w, l.gated(r, a.Gate))
			}
			return
		}
		l.detach(w)
	} else {
		l.remove(w)
	}
	i := 0
	for _, n := range w.ask.Needs {
		left := int64(unlimited)
		if i < len(op.Needs) && op.Needs[i].Budget == n.Budget {
			left = res.Remaining[i]
			i++
		}
		g.Remaining = append(g.Remaining, left)
	}
	l.addFlight(g, s)
	if w.left {
		l.cancel(g)
		return
	}
	if g.strict {
		l.keep(g)
	}
	w.grant = g
	l.wake(w)
}

// addFlight counts g as in flight.
func (l *Line) addFlight(g *Grant, s *Setting) {
	if l.slots(s) && !g.ask.NoSlot {
		g.Slot = true
		l.inFlight++
		l.hold()
	}
	if l.flights == nil {
		l.flights = map[*Grant]bool{}
	}
	l.flights[g] = true
}

// wake wakes w after those who were woken before it have gone on.
func (l *Line) wake(w *waiter) {
	if l.chain = append(l.chain, w); len(l.chain) == 1 {
		w.ready <- struct{}{}
	}
}

const unlimited = 1<<63 - 1

// decide refuses those who cannot start in time, and bounds the waits of the
// others.
func (l *Line) decide(b batch, waits []store.Wait, s *Setting, now time.Time) {
	op := &b.ops[len(b.ops)-1]
	var waiting *line.Crowd[int]
	for i, w := range b.forecast {
		if !w.inLine() || !w.full && w.by.IsZero() && waits[i].For != store.Never {
			continue
		}
		if waits[i].Err != nil {
			l.dismiss(w, waits[i].Err)
			continue
		}
		r := refusalOf(w.ask, &op.Asks[i], waits[i])
		l.bySlot(r, w.ask, s)
		at := now.Add(r.RetryAfter)
		switch {
		case r.RetryAfter == line.Never:
			l.refuse(w, r)
		case r.RetryAfter == 0 && r.Reason != line.ByInFlight && !l.isHalted(w.ask): // it starts with the next batch
			if w.class.due = (time.Time{}); w.full {
				w.full = false
				l.fresh = append(l.fresh, w)
			}
		case !w.by.IsZero() && (at.After(w.by) || !w.by.After(now)):
			r.Deadline = w.byDeadline
			l.refuse(w, r)
		case w.full && l.joined >= s.Waiting:
			if waiting == nil {
				waiting = newCrowd(b.forecast)
			}
			j, ok := waiting.Out(w.ask.Identity, func(i int) bool { // what is due within 1 ms stays
				o := b.forecast[i]
				return o.inLine() && (waits[i].For > time.Millisecond || waits[i].AtLeast || l.blocked(o.ask, s))
			})
			if !ok {
				r.Reason = line.ByLineFull
				l.refuse(w, r)
				continue
			}
			other := refusalOf(b.forecast[j].ask, &op.Asks[j], waits[j])
			l.bySlot(other, b.forecast[j].ask, s)
			other.Reason = line.ByLineFull
			l.refuse(b.forecast[j], other)
			waiting.Remove(b.forecast[j].member)
			w.member = waiting.Add(w.ask.Identity, i)
			l.admitted(w)
		case w.full:
			l.admitted(w)
		}
	}
}

// admitted notes that there is a place for w after all.
func (l *Line) admitted(w *waiter) {
	w.full, w.told = false, true
	l.joined++
	l.limitWait(w)
}

// limitWait arms the timer that ends the wait of w, who has been told to wait.
// Deadlines are the context's to end, and a wait that is over already the forecast's,
// which knows the true time.
func (l *Line) limitWait(w *waiter) {
	if w.timer != nil || w.by.IsZero() || w.byDeadline {
		return
	}
	if left := w.by.Sub(awake.Now()); left > 0 {
		w.timer = time.AfterFunc(awake.Piece(left), func() { l.expire(w) })
	}
}

// newCrowd returns the crowd of those that have been told to wait: their indices in
// a forecast.
func newCrowd(all []*waiter) *line.Crowd[int] {
	c := line.NewCrowd[int]()
	for i, w := range all {
		if w.told && w.inLine() {
			w.member = c.Add(w.ask.Identity, i)
		}
	}
	return c
}

// expire refuses w when its wait budget ends, if by then it has not started. If it is
// due now the store decides, but it is not waited for.
func (l *Line) expire(w *waiter) {
	set, now := l.setting(), awake.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	switch left := w.by.Sub(now); {
	case !w.inLine():
	case left > 0:
		w.timer.Reset(awake.Piece(left))
	case w.asking && w.asked.Before(now):
		w.refusal, w.left = l.atLeast(w, &set, now), true // what it gets goes back
		w.ready <- struct{}{}
	case !w.asking && left < 0, !w.asking && !l.isDue(w.class):
		l.refuse(w, l.atLeast(w, &set, now))
		l.kick()
	default:
		l.overdue = append(l.overdue, w)
		l.kick()
		w.timer.Reset(1) // after all that happens at this instant
	}
}

// atLeast is the refusal of one whose wait has ended before anybody could say how
// long it would be.
func (l *Line) atLeast(w *waiter, s *Setting, now time.Time) *line.Refusal {
	r := &line.Refusal{Reason: line.ByLimit, Need: -1}
	if first := w.class.queue.Front().Value.(*waiter); first.due != 0 {
		*r = first.bind
	}
	r.AtLeast, r.Deadline = true, w.byDeadline
	if r.RetryAfter = 0; !w.class.due.IsZero() {
		r.RetryAfter = max(0, w.class.due.Sub(now))
	}
	l.bySlot(r, w.ask, s)
	return r
}

// bySlot adds to a refusal what a cap on those in flight makes of it, and what holds
// the line: nobody knows until when.
func (l *Line) bySlot(r *line.Refusal, a *Ask, s *Setting) {
	if l.isHalted(a) {
		r.AtLeast = true
		if r.RetryAfter == 0 {
			r.Reason = line.ByPause
		}
	}
	if r.RetryAfter == line.Never || a.Gate.Free() && (!l.slots(s) || a.NoSlot) {
		return
	}
	full := l.blocked(a, s)
	if full && r.RetryAfter == 0 && r.Reason == line.ByLimit {
		r.Reason = line.ByInFlight
	}
	r.AtLeast = r.AtLeast || full || r.RetryAfter > 0
}

// refuse tells w that it cannot start in time.
func (l *Line) refuse(w *waiter, r *line.Refusal) {
	l.remove(w)
	w.refusal = r
	w.ready <- struct{}{}
}

// refusalOf returns what a wait of the question op comes to as a refusal of a: its Need
// is an index of a's needs, of which op leaves out those without a limit.
func refusalOf(a *Ask, op *store.Op, wait store.Wait) *line.Refusal {
	r := &line.Refusal{Reason: line.ByLimit, RetryAfter: wait.For, AtLeast: wait.AtLeast, Need: -1}
	if wait.Bind >= 0 {
		n := op.Needs[wait.Bind]
		r.Need = slices.IndexFunc(a.Needs, func(m Need) bool { return m.Budget == n.Budget })
		if wait.For == store.Never {
			r.Reason = neverBy(n.Limit)
			return r
		}
	} else if wait.Learned {
		r.Announced, r.Name = true, wait.Name
	}
	if wait.Pause {
		r.Reason = line.ByPause
	}
	return r
}

// arm sets the timer for the first class that will be due after now. l.mu is held.
func (l *Line) arm(now time.Time) {
	var at time.Time
	for _, c := range l.classes {
		if c.due.After(now) && (at.IsZero() || c.due.Before(at)) {
			at = c.due
		}
	}
	if l.relents.After(now) && (at.IsZero() || l.relents.Before(at)) {
		at = l.relents
	}
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	if !at.IsZero() {
		l.timer = time.AfterFunc(awake.Piece(at.Sub(awake.Now())), func() {
			l.mu.Lock()
			l.kick()
			l.mu.Unlock()
		})
	}
}
