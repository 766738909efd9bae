package storeline

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/headway-go/headway/internal/awake"
	"github.com/headway-go/headway/internal/line"
	"github.com/headway-go/headway/store"
)

// What a response brings is sent to the store, and the response does not wait for that. It is
// noted here, as an unsent, until a round trip takes it along. This process obeys at once:
//
//   - A take is decided after everything that was noted before it. It goes in the same round
//     trip, behind what is unsent of its line, or in a later one.
//   - What the store grants in a round trip that was out already when a pause was noted is given
//     back, for the requests that the pause concerns; they ask again, behind the pause.
//   - What is reserved is given back when a pause is noted.
//
// Whichever comes first takes the unsent of a line along: a round trip of the line itself, or
// one of the sender, which sends what is unsent of all lines. A line still has at most one
// round trip out, so that nothing of it is overtaken.
//
// With round trips of 4 ms, which the store decides after 2 ms:
//
//	 0  response of a1: pause of 5 s    noted, and the response returns
//	 0  sender: pause ──▶ 2 raised      4
//	 1  a3 arrives                      (a round trip is out)
//	 1  response of a4: 2 are left      noted, and the response returns
//	 4  2 are left, take a3 ──▶ 6 not before 5002    8  a3 sleeps until 5004
//
// What a process that exits has not sent is younger than one round trip. While the store is
// down, pauses and successes stay noted until it is up. A number of units that are left is not
// sent so late: the next response brings a newer one. Of the correction of a cost the Receipt
// tells that it was lost.

// mostUnsent bounds how much is noted in all lines, besides what is on its way. Beyond it one of these is dropped, the
// first kind of which there is any, and the new one counts:
//
//   - the number of units left that was noted first: the next response brings a newer one;
//   - the success that was noted first, and a pause grows once more;
//   - the pause that ends first.
//
// The end of strict units in flight and the correction of a cost are never dropped: beyond
// mostReceipts a response waits for the store itself. Units that never end would be in flight until
// their lease does.
const (
	mostUnsent   = 1024
	mostReceipts = mostUnsent / 2
)

// An unsent is an operation that a response has brought and that the store has not received.
type unsent struct {
	key unsentKey
	op  store.Op
	at  time.Time // when it was noted

	until  time.Time // of a pause: its end, as far as this process knows: it is not sent later
	raised Raised    // of a pause
	ends   *Receipt  // of strict units and of corrections
}

// An unsentKey tells apart what is sent by itself. Of what has the same key one is sent.
type unsentKey struct {
	kind           store.OpKind
	audience, only string // of a success: all its audiences
	name           string // of a limit
	window         time.Duration
	grow           bool
	number         uint64 // of a success, how many pauses were noted before; else what makes it unique
}

// A Raised is what this process knows of a pause that it has raised.
type Raised struct {
	Lasts  time.Duration // from when it was noted, as far as this process knows; zero: no request waits longer
	Status int           // of the response
	News   any           // the caller's: see Notice
}

// A Receipt is what becomes of an operation that is sent later.
type Receipt struct {
	over chan struct{} // closed once the rest is there
	at   store.Instant // when the store did it; where it did not, what it was at first
	err  error
}

// Wait returns when the store did the operation, or why it did not. It waits for that, no longer
// than ctx.
func (r *Receipt) Wait(ctx context.Context) (store.Instant, error) {
	select {
	case <-r.over:
		return r.at, r.err
	case <-ctx.Done():
		return r.at, ctx.Err()
	}
}

// lost ends a receipt of what the store may not have received.
func (r *Receipt) lost() {
	r.err = ErrDown
	close(r.over)
}

// merge takes in newer, which has the same key.
//
//   - Of several pauses with a length the one that ends last holds.
//   - A pause that grows grows once for all responses whose requests had started before, so that
//     the newest start counts.
//   - Of a limit the number of the request counts that started last.
func (e *unsent) merge(newer *unsent) {
	switch p, q := e.op.Pause, newer.op.Pause; {
	case e.key.grow:
		grown := *q
		grown.For, grown.Most, grown.Started = max(p.For, q.For), max(p.Most, q.Most), max(p.Started, q.Started)
		e.op.Pause = &grown
		if newer.until.After(e.until) {
			e.until = newer.until
		}
		if newer.raised.Lasts > 0 {
			e.at, e.raised = newer.at, newer.raised
		}
	case p != nil:
		if newer.until.After(e.until) {
			*e = *newer
		}
	case e.op.Learn != nil:
		if newer.op.Learn.Started >= e.op.Learn.Started {
			*e = *newer
		}
	case e.op.Kind == store.OpSuccess:
		e.op.Taken = max(e.op.Taken, newer.op.Taken)
	}
}

// rank orders what is dropped first; see mostUnsent.
func (e *unsent) rank() (kind int, at time.Time) {
	switch e.op.Kind {
	case store.OpLearn:
		return 0, e.at
	case store.OpSuccess:
		return 1, e.at
	case store.OpPause:
		return 2, e.until
	}
	return 3, e.at
}

// noteLocked notes e, and reports whether there was room for it.
func (l *Line) noteLocked(e *unsent) bool {
	e.op.Group = l.Group()
	c := l.client
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.noteLocked(l, e)
}

func (c *Client) noteLocked(l *Line, e *unsent) bool {
	if e.key.kind == store.OpSuccess {
		e.key.number = uint64(l.pausesNoted) // its place among the pauses decides whether one grows
	}
	if old := l.unsentOf[e.key]; old != nil {
		old.merge(e)
		return true
	}
	switch {
	case c.down != nil && !e.keeps(), e.ends != nil && c.count >= mostReceipts, c.count >= mostUnsent && !c.makeRoomLocked(e):
		return false
	}
	if len(l.unsent) == 0 {
		l.users++
		c.unsent = append(c.unsent, l)
	}
	if l.unsentOf == nil {
		l.unsentOf = map[unsentKey]*unsent{}
	}
	l.unsentOf[e.key] = e
	l.unsent = append(l.unsent, e)
	c.count++
	if e.key.kind == store.OpPause {
		l.pausesNoted++
	}
	return true
}

// makeRoomLocked drops what matters least, and reports false where that is e.
func (c *Client) makeRoomLocked(e *unsent) bool {
	of, least := (*Line)(nil), e
	kind, at := e.rank()
	for _, l := range c.unsent {
		for _, o := range l.unsent {
			if k, t := o.rank(); k < kind || k == kind && t.Before(at) || k == kind && t.Equal(at) && of == nil {
				of, least, kind, at = l, o, k, t
			}
		}
	}
	if of != nil {
		c.dropUnsentLocked(of, least)
	}
	return of != nil
}

// dropUnsentLocked drops one of the notes of l.
func (c *Client) dropUnsentLocked(l *Line, e *unsent) {
	if len(l.unsent) == 1 {
		c.forgetUnsentLocked(l)
		return
	}
	delete(l.unsentOf, e.key)
	l.unsent = slices.DeleteFunc(l.unsent, func(o *unsent) bool { return o == e })
	c.count--
}

// forgetUnsentLocked empties the notes of l.
func (c *Client) forgetUnsentLocked(l *Line) {
	c.count -= len(l.unsent)
	l.unsent, l.unsentOf, l.pausesNoted = nil, nil, 0
	c.unsent = slices.DeleteFunc(c.unsent, func(o *Line) bool { return o == l })
	l.users--
}

// A part is what is sent of one line's notes.
type part struct {
	line *Line
	list []*unsent
	ops  []store.Op // one for each
}

// takeUnsent takes what is unsent of a line, to be sent now: nothing while the store is down.
func (l *Line) takeUnsent(now time.Time) part {
	c := l.client
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down != nil {
		return part{line: l}
	}
	return c.takeUnsentLocked(l, now)
}

func (c *Client) takeUnsentLocked(l *Line, now time.Time) part {
	p := part{line: l}
	if len(l.unsent) == 0 {
		return p
	}
	for _, e := range l.unsent {
		if op := e.op; op.Kind == store.OpPause {
			left := e.until.Sub(now)
			if left <= 0 {
				continue
			}
			if !op.Pause.Grow { // it counts from when the store receives it
				pause := *op.Pause
				pause.For = left
				op.Pause = &pause
			}
			p.ops = append(p.ops, op)
		} else {
			p.ops = append(p.ops, op)
		}
		p.list = append(p.list, e)
	}
	c.forgetUnsentLocked(l)
	return p
}

// takeAllUnsentLocked takes what is unsent of all lines.
func (c *Client) takeAllUnsentLocked(now time.Time) (parts []part) {
	for len(c.unsent) > 0 {
		l := c.unsent[0]
		if p := c.takeUnsentLocked(l, now); len(p.ops) > 0 {
			l.users++ // until it has landed
			parts = append(parts, p)
		}
	}
	return parts
}

// landed carries out what has become of p, which a probe has sent, and returns the results of
// the parts behind it.
func (p *part) landed(results []store.Result, err error) (rest []store.Result) {
	l := p.line
	defer l.Unuse()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.failUnsentLocked(p.list)
		return nil
	}
	now := awake.Now()
	for i := range p.ops {
		l.noteResultLocked(&p.ops[i], &results[i], now)
	}
	l.applyUnsentLocked(p.list, results, now)
	return results[len(p.ops):]
}

// applyUnsentLocked carries out the results of what was unsent, which arrived now. Where the
// store has made a pause longer than this process knew, since it has grown by what other
// processes received, a notice says so.
func (l *Line) applyUnsentLocked(list []*unsent, results []store.Result, now time.Time) {
	for i, e := range list {
		res := &results[i]
		switch e.op.Kind {
		case store.OpDone, store.OpGive, store.OpSpend:
			e.ends.at, e.ends.err = res.At, res.Err
			close(e.ends.over)
			if e.op.Kind != store.OpDone {
				l.changedLocked(e.op.Kind == store.OpGive, e.op.Kind == store.OpSpend)
			}
		case store.OpLearn:
			l.changedLocked(false, res.Err == nil)
			l.learnedLocked()
		case store.OpPause:
			l.changedLocked(false, res.Err == nil)
			if res.Paused <= 0 {
				continue
			}
			l.returnAllLocked()
			if e.key.grow && res.Paused > e.raised.Lasts {
				l.pausedLocked(e, res.Paused, now)
				l.client.notice(Notice{Raised: &e.raised, Paused: res.Paused, At: now})
			}
		}
	}
}

// failUnsentLocked notes again what may not have reached the store, which is down, before what
// was noted since.
func (l *Line) failUnsentLocked(list []*unsent) {
	c := l.client
	c.mu.Lock()
	defer c.mu.Unlock()
	newer := l.unsent
	if len(newer) > 0 {
		c.forgetUnsentLocked(l)
	}
	for _, e := range append(list, newer...) {
		if e.keeps() {
			c.noteLocked(l, e)
		} else {
			c.lostLocked(e)
		}
	}
}

// keeps reports whether e stays noted while the store is down: a pause and a success do.
func (e *unsent) keeps() bool { return e.op.Kind == store.OpPause || e.op.Kind == store.OpSuccess }

// lostLocked is called with what the store, which is down, may not have received, and which does
// not stay noted. The end of strict units in flight is kept with the others of its kind. A number
// of units left and a correction are forgotten.
func (c *Client) lostLocked(e *unsent) {
	if e.ends == nil {
		return
	}
	if e.op.Kind == store.OpDone {
		c.keepLocked(e.op)
	}
	e.ends.lost()
}

// wentDownLocked is called when the store has gone down.
func (c *Client) wentDownLocked() {
	for _, l := range slices.Clone(c.unsent) {
		for _, e := range slices.Clone(l.unsent) {
			if !e.keeps() {
				c.dropUnsentLocked(l, e)
				c.lostLocked(e)
			}
		}
	}
}

// A sender sends what is unsent of all lines while there is any. It is one goroutine.
type sender struct{ _ byte }

// flushLocked has what is unsent of l sent: by its own next round trip where one is out, or else
// by the sender.
func (l *Line) flushLocked() {
	if l.out != nil {
		return
	}
	c := l.client
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(l.unsent) > 0 {
		c.flushLocked()
	}
}

// flushLocked makes sure that the sender looks for what is unsent, unless the store is down.
func (c *Client) flushLocked() {
	if c.flushed = len(c.unsent) > 0; c.flushed && c.down == nil && c.sender == nil {
		c.sender = new(sender)
		go c.send(c.sender)
	}
}

// send makes one round trip after another while there is something unsent. A store that hangs
// is left behind as run does.
func (c *Client) send(s *sender) {
	for {
		c.mu.Lock()
		if c.sender != s {
			c.mu.Unlock()
			return
		}
		if !c.flushed || c.down != nil {
			c.sender = nil
			c.mu.Unlock()
			return
		}
		c.flushed = false
		lines := slices.Clone(c.unsent)
		c.mu.Unlock()
		var batches []*batch
		var ops []store.Op
		for _, l := range lines {
			if b := l.takeBatch(); b != nil {
				batches, ops = append(batches, b), append(ops, b.ops...)
			}
		}
		if len(ops) == 0 {
			continue
		}
		late := time.AfterFunc(Timeout, func() { c.abandon(s, batches) })
		results, err := c.do(ops)
		late.Stop()
		for _, b := range batches {
			var own []store.Result
			if err == nil {
				own, results = results[:len(b.ops)], results[len(b.ops):]
			}
			b.unsent.line.sent(b, own, err)
		}
	}
}

// takeBatch takes what is unsent of l as its round trip, which ends with sent; nil where one is
// out, which is followed by another that takes it, or where nothing is unsent.
func (l *Line) takeBatch() *batch {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.out != nil {
		return nil
	}
	b := &batch{sent: awake.Now()}
	if b.unsent = l.takeUnsent(b.sent); len(b.unsent.ops) == 0 {
		return nil
	}
	b.ops = b.unsent.ops
	l.use()
	l.out = b
	return b
}

// sent carries out what has become of b, unless it was abandoned, and goes on with what is due.
func (l *Line) sent(b *batch, results []store.Result, err error) {
	defer l.Unuse()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.out != b {
		return
	}
	if l.out = nil; err != nil {
		l.failLocked(b, err)
	} else {
		l.applyLocked(b, results, awake.Now())
	}
	if l.order.Len() > 0 || len(l.queued) > 0 {
		l.kickLocked()
		return
	}
	l.flushLocked()
}

// abandon goes on without the results of a sender's round trip.
func (c *Client) abandon(s *sender, batches []*batch) {
	c.mu.Lock()
	if c.sender == s {
		c.sender = nil
	}
	c.mu.Unlock()
	for _, b := range batches {
		b.unsent.line.abandon(b)
	}
}

// AnnouncePause has the store raise a pause that op has, which is sent now. This process obeys it
// from now on.
func (l *Line) AnnouncePause(op store.Op, r Raised) {
	l.client.available()
	p := op.Pause
	e := &unsent{op: op, at: awake.Now(), raised: r, key: unsentKey{kind: op.Kind, audience: op.Audience, only: op.Only, grow: p.Grow}}
	e.until = e.at.Add(max(p.For, r.Lasts))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.raised = true
	if r.Lasts > 0 {
		l.returnAllLocked()
		l.recallLocked(&scope{op.Audience, op.Only})
		l.pausedLocked(e, r.Lasts, e.at)
	}
	l.noteLocked(e)
	l.flushLocked()
}

// AnnounceLimit has the store learn of a limit what op has, unless it is down. It is sent with
// Done, so that all that one response brings is sent together.
func (l *Line) AnnounceLimit(op store.Op) error {
	if l.client.available() != nil {
		return ErrDown
	}
	n := op.Learn
	l.mu.Lock()
	defer l.mu.Unlock()
	l.noteLocked(&unsent{op: op, at: awake.Now(), key: unsentKey{kind: op.Kind, audience: op.Audience, only: op.Only, name: n.Name, window: n.Window}})
	return nil
}

// Succeeded has the store end the growth of the pauses of audiences, for a request that started
// then. It is sent with Done. It reports whether this process has raised any pause of the line.
func (l *Line) Succeeded(audiences []string, started store.Instant) (raised bool) {
	op := store.Op{Kind: store.OpSuccess, Audiences: audiences, Taken: started}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.noteLocked(&unsent{op: op, at: awake.Now(), key: unsentKey{kind: op.Kind, audience: strings.Join(audiences, "\n")}})
	return l.raised
}

// Responded notes that a request has its response, or has ended without one. Where its strict
// units were in flight, that is sent with Done. Where too much is unsent already it waits for
// the store, no longer than ctx.
func (l *Line) Responded(ctx context.Context, g *Grant) {
	if !g.strict { // only this goroutine changes it after the start
		return
	}
	op := store.Op{Kind: store.OpDone, ID: g.take.ID, Needs: g.take.Needs}
	e := &unsent{op: op, at: awake.Now(), key: unsentKey{kind: op.Kind, number: op.ID}, ends: &Receipt{over: make(chan struct{}), at: g.At}}
	g.ended = e.ends
	l.mu.Lock()
	g.endRenewalLocked()
	noted := l.noteLocked(e)
	l.mu.Unlock()
	if !noted {
		if res, err := l.Do(ctx, op); err == nil {
			g.ended.at = res.At
		}
		close(g.ended.over)
	}
}

// Adjust has the store do op, which gives back or spends units of one need, and returns what
// becomes of that; nil, and nothing is sent, where the store is down or too much is unsent.
func (l *Line) Adjust(op store.Op) *Receipt {
	if l.client.available() != nil {
		return nil
	}
	e := &unsent{op: op, at: awake.Now(), key: unsentKey{kind: op.Kind, number: rand.Uint64()}, ends: &Receipt{over: make(chan struct{})}}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rememberLocked(op.Needs[0].Budget, false)
	if !l.noteLocked(e) {
		return nil
	}
	l.flushLocked()
	return e.ends
}

// RespondedAt returns the instant from which the strict units of g count: when the store has
// received that there is a response. It waits for that, no longer than ctx. Where the store has
// not received it, and where there are no strict units, it is that of the start.
func (g *Grant) RespondedAt(ctx context.Context) store.Instant {
	if g.ended == nil {
		return g.At
	}
	at, _ := g.ended.Wait(ctx)
	return at
}

// pausedLocked notes in the journals of the requests that a pause concerns that it lasts so long
// from now.
func (l *Line) pausedLocked(e *unsent, lasts time.Duration, now time.Time) {
	paused := scope{e.op.Audience, e.op.Only}
	for w := range l.eachLocked {
		if j := w.journalLocked(); j != nil && paused.concerns(w.ask) {
			at := now.Sub(w.arrived)
			j.Pauses = append(j.Pauses, line.Span{From: at, To: at + lasts, Source: e.op.Pause.Source, Status: e.raised.Status})
		}
	}
}

// recallLocked has what the round trip that is out grants to the requests of a scope be given
// back: the store has decided without knowing what holds now.
func (l *Line) recallLocked(s *scope) {
	if l.out != nil && l.out != &starting {
		l.out.recalled = append(l.out.recalled, s)
	}
}
