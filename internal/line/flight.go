package line

import "time"

// depart counts a request as granted and not answered; with n of -1 it takes
// that back.
func (l *Line) depart(needs []Need, who uint64, n int64) {
	for i := range needs {
		needs[i].B.fly(n * needs[i].Cost)
	}
	l.flying += n
	if who == 0 {
		return
	}
	h := l.hear()
	if e := h.ids[who]; e != nil {
		e.flying += n
		return
	}
	if h.flying == nil {
		h.flying = map[uint64]int64{}
	}
	if h.flying[who] += n; h.flying[who] <= 0 {
		delete(h.flying, who)
	}
}

// Landed tells that what the answer says has been heard, or that there is none: the
// request is no longer in flight. Not before: what an answer that nobody has heard
// would say may be less than what the others were told.
func (l *Line) Landed(g *Grant, needs []Need) {
	if !g.Count {
		return
	}
	g.Count = false
	l.mu.Lock()
	l.depart(needs, g.who, -1)
	l.mu.Unlock()
}

// Arrived is Landed for what Start has counted. Learn can do it besides.
func (l *Line) Arrived(budgets []*Budget) {
	l.mu.Lock()
	l.count1(budgets, -1)
	l.mu.Unlock()
}

// ArrivedWell is Arrived and Served, for a request without budgets.
func (l *Line) ArrivedWell(started time.Duration) {
	l.mu.Lock()
	l.flying--
	l.served(int64(started))
	l.mu.Unlock()
}

// count1 is depart for a request that takes one unit of each of budgets and has
// no identity.
func (l *Line) count1(budgets []*Budget, n int64) {
	for _, b := range budgets {
		b.fly(n)
	}
	l.flying += n
}
