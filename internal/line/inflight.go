package line

// addInFlight counts a request as granted and not answered; with n of -1 it takes
// that back.
func (l *Line) addInFlight(needs []Need, identity uint64, n int64) {
	for i := range needs {
		needs[i].B.addInFlight(n * needs[i].Cost)
	}
	l.inFlight += n
	if identity == 0 {
		return
	}
	h := l.openAudiences()
	if e := h.ids[identity]; e != nil {
		e.inFlight += n
		return
	}
	if h.inFlight == nil {
		h.inFlight = map[uint64]int64{}
	}
	if h.inFlight[identity] += n; h.inFlight[identity] <= 0 {
		delete(h.inFlight, identity)
	}
}

// Done tells that what the answer says has been heard, or that there is none: the
// request is no longer in flight. Not before: what an answer that nobody has heard
// would say may be less than what the others were told.
func (l *Line) Done(g *Grant, needs []Need) {
	if !g.InFlight {
		return
	}
	g.InFlight = false
	l.mu.Lock()
	l.addInFlight(needs, g.identity, -1)
	l.mu.Unlock()
}

// DoneStart is Done for what Start has counted. AnnounceLimit can do it besides.
func (l *Line) DoneStart(budgets []*Budget) {
	l.mu.Lock()
	l.addInFlight1(budgets, -1)
	l.mu.Unlock()
}

// addInFlight1 is addInFlight for a request that takes one unit of each of budgets and has
// no identity.
func (l *Line) addInFlight1(budgets []*Budget, n int64) {
	for _, b := range budgets {
		b.addInFlight(n)
	}
	l.inFlight += n
}
