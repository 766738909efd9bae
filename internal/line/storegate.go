package line

import (
	"math"
	"time"
)

// Those whose budgets are in a store wait in a line of their own; see package storeline.
// The gate that they must pass is before this line, which keeps count of them.
// They stand before it until they have passed, or leave.

// JoinGate has one more stand before g, or returns its refusal.
func (l *Line) JoinGate(g *Gate) (*Refusal, error) {
	now := l.lock()
	defer l.unlock()
	if l.retired || g.retired {
		return nil, ErrRetired
	}
	r := l.barred(g, now)
	if r == nil {
		g.waiting++
	}
	return r, nil
}

// LeaveGate undoes JoinGate.
func (l *Line) LeaveGate(g *Gate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g.waiting--
}

// GatePlaces returns how many of those who stand before g, and whose turn has come, may
// pass; or how they are refused.
func (l *Line) GatePlaces(g *Gate) (int, *Refusal) {
	now := l.lock()
	defer l.unlock()
	switch r := l.shut(g, now); {
	case r != nil:
		return 0, r
	case g.Free():
		return math.MaxInt, nil
	case !g.Closed():
		return g.Room(l.time(now)), nil
	case now >= g.waitsUntil():
		return g.Allowance(), nil
	}
	return max(0, g.Allowance()-g.inFlight), nil
}

// PassGate lets one who stands before g, and whose turn has come, pass with p. Else it
// is refused, or has to wait for one in flight to land.
func (l *Line) PassGate(g *Gate, p *Pass) (ok bool, r *Refusal) {
	now := l.lock()
	defer l.unlock()
	if r := l.shut(g, now); r != nil {
		return false, r
	}
	if !l.take(g, p, now) {
		return false, nil
	}
	g.waiting--
	return true, nil
}

// GateWait returns until when who is due waits for one in flight to land, should none
// do so: zero if it need not.
func (l *Line) GateWait(g *Gate) time.Duration {
	now := l.lock()
	defer l.unlock()
	if !g.holds(now) {
		return 0
	}
	return time.Duration(g.waitsUntil() - now)
}

// ReturnPass undoes PassGate for one who was not sent.
func (l *Line) ReturnPass(p *Pass) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.giveBack()
}

// GateRoom returns how many of those who stand before g have room there, and how the
// others are refused; nil where all have.
func (l *Line) GateRoom(g *Gate) (room int, r *Refusal) {
	now := l.lock()
	defer l.unlock()
	if g.Closed() {
		return g.waiting, nil
	}
	if room = g.Room(l.time(now)); g.waiting <= room {
		return g.waiting, nil
	}
	return room, l.refusalOf(g, now)
}
