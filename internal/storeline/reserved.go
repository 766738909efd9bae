package storeline

import (
	"time"

	"github.com/headway-go/headway/internal/awake"
	"github.com/headway-go/headway/store"
)

// A reserved is the starts that the store has reserved for one class of this process, see
// store.Op.Reserve. Requests of the class start with them without a round trip: so a fleet makes
// one round trip for Plan.Batch starts.
//
// The promise of the limit holds all the same, because the store counts reserved starts as
// if each could happen at any instant within store.UseWithin of when it reserved them. This process
// must therefore use none of them later. It cannot read the store's clock. It counts from
// when it sent the round trip, which is before the store reserved anything: its store.UseWithin is
// over first. What is left is given back then, and earlier in a pause, with a new plan, or
// when a later take reserves more.
//
// With Batch 4 and round trips of 4 ms, which the store decides after 2 ms:
//
//	 0  take, reserve 3 ──▶ 2 granted, 3 reserved  4  1st start (counts from 2)
//	10                                             2nd start (counts from 12 at the latest)
//	11                                             3rd start (13)
//	1000  return: 2 used, the last at 13 ──▶ 1002  the store frees the 4th
type reserved struct {
	class     string        // its key
	op        store.Op      // that they are like
	at        store.Instant // when they were reserved
	sent      time.Time     // when they were asked for
	left      int64         // starts to come
	used      int64
	last      store.Instant // an instant no earlier than the last start; at first, at
	remaining []int64       // under each need, besides what is reserved
	own       []int64       // the same by their limits alone
	marks     []store.Mark  // of announced limits, without what is reserved
	over      bool          // it has been given back
}

// keepReservedLocked keeps what a take has reserved. What is left of an older one is given back.
func (l *Line) keepReservedLocked(class string, op *store.Op, res *store.Result, sent time.Time) {
	if res.Reserved == 0 {
		return
	}
	p := &reserved{class: class, op: *op, at: res.At, sent: sent, left: res.Reserved, last: res.At, remaining: res.Remaining, own: limitRemaining(res), marks: res.Marks}
	if old := l.reserved[class]; old != nil {
		l.returnLocked(old)
	}
	if l.reserved == nil {
		l.reserved = map[string]*reserved{}
	}
	l.reserved[class] = p
	time.AfterFunc(sent.Add(store.UseWithin).Sub(awake.Now()), func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.returnLocked(p)
		l.kickLocked()
	})
}

// returnLocked gives back what is left of p with the next round trip, and reports how many of
// its starts are used, and when the last one was. It does not kick the line: a used one can
// wait for the next take, and the timer of keepReservedLocked kicks at the latest.
func (l *Line) returnLocked(p *reserved) {
	if p.over {
		return
	}
	p.over = true
	if l.reserved[p.class] == p {
		delete(l.reserved, p.class)
	}
	op := p.op
	op.Kind, op.Used, op.Due, op.Taken, op.Reserve = store.OpReturn, p.used, p.last, p.at, 0
	l.queued = append(l.queued, &operation{op: op, sooner: p.left > 0})
}

// returnAllLocked is returnLocked for all, since what they were reserved under has changed.
func (l *Line) returnAllLocked() {
	for _, p := range l.reserved {
		l.returnLocked(p)
	}
}

// fits reports whether a request of its class can start with p now: at the same cost, and
// before the store takes it back.
func (p *reserved) fits(a *Ask, now time.Time) bool {
	if a.Exact || p.left == 0 || now.Sub(p.sent) >= store.UseWithin {
		return false
	}
	for i, n := range a.Needs {
		if n.Cost != p.op.Needs[i].Cost {
			return false
		}
	}
	return true
}

// startReservedLocked starts a request with p. It returns nil where p does not fit, there is no
// slot, or the gate that the request has joined does not let it pass.
//
// The start counts from now, by the store's clock the instant of the reservation plus the
// time since it was sent. That is an instant that is no earlier than the true one, so that no
// unit returns too early. All starts of p count from the latest, which the store receives when
// p is given back.
func (l *Line) startReservedLocked(p *reserved, a *Ask, now time.Time) *Grant {
	if !p.fits(a, now) || l.isFullLocked(a) {
		return nil
	}
	g := &Grant{Local: now, reserved: p, take: p.op, ask: a}
	if a.Gate != nil {
		if ok, _ := a.Local.PassGate(a.Gate, &g.Pass); !ok {
			return nil
		}
	}
	p.left--
	p.used++
	p.last = p.at + int64(now.Sub(p.sent))
	g.At = p.last
	for i, n := range p.remaining {
		g.left = append(g.left, n+p.left*p.op.Needs[i].Cost)
		if k := l.known[p.op.Needs[i].Budget]; k != nil {
			// Their age stays that of the store's report.
			k.Remaining, k.LimitRemaining = g.left[i], p.own[i]+p.left*p.op.Needs[i].Cost
		}
	}
	for _, m := range p.marks { // the server counts those that were used, and not those reserved
		cost := int64(1)
		for _, n := range p.op.Needs {
			if n.Budget == m.Audience {
				cost = n.Cost
			}
		}
		m.Used += p.used * cost
		g.marks = append(g.marks, m)
	}
	l.lowerAnnouncedLocked(&p.op, 1)
	g.before = int64(len(l.flights))
	l.addFlightLocked(g)
	if p.left == 0 {
		l.returnLocked(p)
	}
	return g
}

// startDueLocked starts requests in line that are due, as far as starts are reserved for their
// class. They came while the take that reserved the starts was out.
func (l *Line) startDueLocked(now time.Time) {
	for _, p := range l.reserved {
		c := l.classes[p.class]
		if c == nil || !l.isDueLocked(c, now) {
			continue
		}
		for c.queue.Len() > 0 {
			w := c.first()
			g := l.startReservedLocked(p, w.ask, now)
			if g == nil {
				break
			}
			l.detachLocked(w)
			w.journalResultLocked(&store.Result{OK: true}, now)
			g.Waited, g.w = now.Sub(w.arrived), w
			w.grant = g
			l.wakeLocked(w)
		}
	}
}
