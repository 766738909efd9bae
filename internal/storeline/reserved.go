package storeline

import (
	"math/rand/v2"
	"time"

	"github.com/headway-go/headway/internal/awake"
	"github.com/headway-go/headway/internal/line"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/store"
)

// What the store has set aside for this process, requests of its class start with
// without asking; see store.Op.More. It is used up, or goes back, within store.Use
// by a clock that began before the store's: so never later than the store thinks.

// A reserved is what is set aside for one class.
type reserved struct {
	class     string // its key
	op        store.Op
	at        store.Instant // when it was set aside
	sent      time.Time     // when it was asked for
	left      int64         // starts to come
	used      int64
	last      store.Instant // no earlier than the last of them
	remaining []int64       // under each need, but for what is set aside
	over      bool          // it has gone back
}

// mayReserve reports whether requests like a may start with what is set aside.
func mayReserve(a *Ask, s *Setting) bool {
	if s.Batch <= 1 || a.Exact || len(a.Needs) == 0 {
		return false
	}
	for _, n := range a.Needs {
		limit, ok := s.Limits(n.Place)
		if !ok || limit.Strict || limit.Law == limiter.Spaced {
			return false
		}
	}
	return true
}

// fits reports whether a request of its class can start with p.
func (p *reserved) fits(a *Ask) bool {
	if a.Exact {
		return false
	}
	for i, n := range a.Needs {
		if n.Cost != p.op.Needs[i].Cost {
			return false
		}
	}
	return true
}

// reserveMore has the last of each class in b set starts aside.
func (l *Line) reserveMore(b *batch, s *Setting) {
	if s.Batch <= 1 {
		return
	}
	asked := map[*class]bool{}
	for i := len(b.takes) - 1; i >= 0; i-- {
		if w := b.takes[i]; !asked[w.class] && mayReserve(w.ask, s) {
			asked[w.class] = true
			b.ops[len(b.errands)+i].More = int64(s.Batch) - 1
		}
	}
}

// keepReserved keeps what an OpTake of w has set aside at a question that was sent at
// an instant.
func (l *Line) keepReserved(w *waiter, op *store.Op, res *store.Result, sent time.Time) {
	if res.Aside == 0 {
		return
	}
	s := &reserved{class: w.class.key, op: *op, at: res.At, sent: sent, left: res.Aside, last: res.At, remaining: res.Remaining}
	if old := l.reserved[s.class]; old != nil {
		l.returnReserved(old)
	}
	if l.reserved == nil {
		l.reserved = map[string]*reserved{}
	}
	l.reserved[s.class] = s
	time.AfterFunc(sent.Add(store.Use).Sub(awake.Now()), func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.returnReserved(s)
		l.kick()
	})
}

// returnReserved gives back what is left of s, and reports what is used.
func (l *Line) returnReserved(s *reserved) {
	if s.over {
		return
	}
	s.over = true
	if l.reserved[s.class] == s {
		delete(l.reserved, s.class)
	}
	op := s.op
	op.Kind, op.Used, op.Due, op.Taken, op.More = store.OpReturn, s.used, s.last, s.at, 0
	l.errands = append(l.errands, &errand{better: s.left > 0, build: func(*Setting) store.Op { return op }})
}

// returnAllReserved is returnReserved for all, since something has changed.
func (l *Line) returnAllReserved() {
	for _, s := range l.reserved {
		l.returnReserved(s)
	}
}

// startReserved starts a request that has just come with what is set aside for its
// class, or returns nil. Behind those who are not sent yet its waiter has to wait.
func (l *Line) startReserved(a *Ask, s *Setting) *Grant {
	if len(l.reserved) == 0 || !mayReserve(a, s) {
		return nil
	}
	key := l.classKey(a, s)
	now := awake.Now()
	p := l.reserved[key]
	if p == nil || !p.fits(a) || l.classes[key] != nil || l.blocked(a, s) || l.isHalted(a) || now.Sub(p.sent) >= store.Use {
		return nil
	}
	var pass line.Pass
	if a.Gate != nil {
		if r, err := a.Local.JoinGate(a.Gate); r != nil || err != nil {
			return nil
		}
		if ok, _ := a.Local.PassGate(a.Gate, &pass); !ok {
			a.Local.LeaveGate(a.Gate)
			return nil
		}
	}
	g := l.startFrom(p, a, s, pass, now)
	if len(l.chain) > 0 {
		g.w = &waiter{ask: a, arrived: now, grant: g, ready: make(chan struct{}, 1)}
		l.wake(g.w)
	}
	return g
}

func (l *Line) startFrom(p *reserved, a *Ask, s *Setting, pass line.Pass, now time.Time) *Grant {
	p.left--
	p.used++
	p.last = p.at + int64(now.Sub(p.sent))
	g := &Grant{At: p.last, Pass: pass, reserved: p, take: p.op, ask: a}
	for i, n := range p.remaining {
		g.Remaining = append(g.Remaining, n+p.left*p.op.Needs[i].Cost)
		if k := l.known[p.op.Needs[i].Budget]; k != nil {
			k.left = g.Remaining[i] // as of when the store said it
		}
	}
	l.used(&p.op, 1)
	l.addFlight(g, s)
	if p.left == 0 {
		l.returnReserved(p) // with the next question, or when it is time
	}
	return g
}

// startInLine starts those in line who are due, as far as something is set aside for
// their class.
func (l *Line) startInLine(s *Setting, now time.Time) {
	for _, p := range l.reserved {
		c := l.classes[p.class]
		if c == nil || !l.isDueAt(c, now) || now.Sub(p.sent) >= store.Use {
			continue
		}
		for p.left > 0 && c.queue.Len() > 0 {
			w := c.queue.Front().Value.(*waiter)
			a := w.ask
			var pass line.Pass
			if !p.fits(a) || l.blocked(a, s) {
				break
			}
			if a.Gate != nil {
				if ok, _ := a.Local.PassGate(a.Gate, &pass); !ok {
					break
				}
			}
			l.detach(w)
			l.told(w, &store.Result{OK: true}, now)
			w.grant = l.startFrom(p, a, s, pass, now)
			w.grant.Waited, w.grant.w = now.Sub(w.arrived), w
			l.wake(w)
		}
	}
}

// unuse takes back a start that was not sent. It reports whether what it was
// started with is still at hand.
func (l *Line) unuse(g *Grant) bool {
	if g.reserved == nil || g.reserved.over {
		return false
	}
	g.reserved.left++
	g.reserved.used--
	return true
}

func newID() uint64 { return rand.Uint64() | 1 }
