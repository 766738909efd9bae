package line

import (
	"math"
	"time"
)

// Requests whose budgets are in a store wait in a line of their own; see package
// storeline. The breaker gate that they must pass is in front of this line, which counts
// them: from JoinGate until PassGate lets them through, or LeaveGate.

// JoinGate has one more request wait in front of g, or returns its refusal.
func (line *Line) JoinGate(g *Gate) (*Refusal, error) {
	l, now := line.lock()
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
func (line *Line) LeaveGate(g *Gate) {
	l := line.lockOnly()
	defer l.mu.Unlock()
	g.waiting--
}

// GatePlaces returns how many of the requests in front of g whose turn has come may
// pass, or the refusal of all of them.
func (line *Line) GatePlaces(g *Gate) (int, *Refusal) {
	l, now := line.lock()
	defer l.unlock()
	switch r := l.shut(g, now); {
	case r != nil:
		return 0, r
	case g.Free():
		return math.MaxInt, nil
	case !g.Closed():
		return g.Room(l.epoch.time(now)), nil
	case now >= g.waitsUntil():
		return g.Allowance(), nil
	}
	return max(0, g.Allowance()-g.inFlight), nil
}

// PassGate lets one request in front of g whose turn has come pass with p. Otherwise it
// is refused, or, without a refusal, has to wait for one in flight to be done.
func (line *Line) PassGate(g *Gate, p *Pass) (ok bool, r *Refusal) {
	l, now := line.lock()
	defer l.unlock()
	if r := l.shut(g, now); r != nil {
		return false, r
	}
	if ok = l.pass(g, p, now); ok {
		g.waiting--
	}
	return ok, nil
}

// GateWait returns for how long a request that is due waits for one in flight to be
// done, if none is before: zero if it need not wait.
func (line *Line) GateWait(g *Gate) time.Duration {
	l, now := line.lock()
	defer l.unlock()
	if !g.holds(now) {
		return 0
	}
	return time.Duration(g.waitsUntil() - now)
}

// ReturnPass undoes PassGate for a request that was not sent.
func (line *Line) ReturnPass(p *Pass) {
	l := line.lockOnly()
	defer l.mu.Unlock()
	p.giveBack()
}

// GateRoom returns for how many of the requests in front of g there is room, and the
// refusal of the others; nil where there are none.
func (line *Line) GateRoom(g *Gate) (room int, r *Refusal) {
	l, now := line.lock()
	defer l.unlock()
	if g.Closed() {
		return g.waiting, nil
	}
	if room = g.Room(l.epoch.time(now)); g.waiting <= room {
		return g.waiting, nil
	}
	return room, l.refusalOf(g, now)
}
