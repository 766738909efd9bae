package line

import (
	"time"

	"github.com/headway-go/headway/internal/law"
)

// Start is Enter for a request that takes one unit of each of budgets and starts at
// once, through a gate that bounds nothing; nil is no gate. It returns when that was. ok
// is false where Enter has to decide, since the request would have to wait, to hand over
// to the next, to give a slot back or to report its response. With inFlight the request
// counts as in flight until DoneStart. What announced limits have counted then is noted in
// marks, which is zero before.
func (line *Line) Start(budgets []*Budget, g *Gate, inFlight bool, marks *Marks) (at time.Duration, p Pass, ok bool) {
	l, now := line.lock()
	ok = l.waiting == 0 && l.chain.first == nil && l.slots == 0 && !l.strict && !l.retired
	if ok && l.audiences != nil {
		p, ok = l.startAnnounced(budgets, g, now, marks)
	} else if ok {
		for _, b := range budgets {
			if at, _ := b.state.Earliest(now, now, 1); at > now {
				ok = false
			}
		}
		if ok && g != nil {
			p, ok = g.passFree()
		}
		for i := 0; ok && i < len(budgets); i++ {
			budgets[i].state.Take(now, 1)
			budgets[i].forget()
		}
	}
	if ok && inFlight {
		l.addUnits(budgets, 1)
	}
	l.unlock()
	return time.Duration(now), p, ok
}

// startAnnounced is Start where there may be announcements besides. It is apart since the
// room for needs on its stack takes as long to clear as all the rest of Start.
func (l *locked) startAnnounced(budgets []*Budget, g *Gate, now law.Time, marks *Marks) (p Pass, ok bool) {
	var buf startNeeds
	needs := l.withAnnounced(oneOfEach(buf[:0], budgets), Who{})
	announced := needs[len(budgets):]
	ok = len(announced) <= len(marks.list) && !holdPause(announced) && haveRoom(needs, now)
	if ok && g != nil {
		p, ok = g.passFree()
	}
	if ok {
		takeAll(needs, now)
		marks.n = len(announced)
		for i := range announced {
			marks.list[i] = marked{announced[i].B, announced[i].mark}
		}
	}
	return p, ok
}

// Marks are what announced limits had counted when Start started a request: what the number
// in its response is compared with.
type Marks struct {
	n    int
	list [4]marked
}

type marked struct {
	b    *Budget
	mark law.Mark
}

// Needs returns what the limits were taken for, to keep the marks with what else a request
// has taken. Their cost counts elsewhere, and is zero here.
func (m *Marks) Needs(add func(Need)) {
	for i := range m.list[:m.n] {
		add(Need{B: m.list[i].b, mark: m.list[i].mark})
	}
}

// of returns the mark of b; zero if there is none.
func (m *Marks) of(b *Budget) (mark law.Mark) {
	if m == nil {
		return mark
	}
	for i := range m.list[:m.n] {
		if m.list[i].b == b {
			mark = m.list[i].mark
		}
	}
	return mark
}

// markOf returns the mark of b in needs that were taken; zero if there is none.
func markOf(needs []Need, b *Budget) (mark law.Mark) {
	for i := range needs {
		if needs[i].B == b {
			mark = needs[i].mark
		}
	}
	return mark
}

// note notes what an announced limit has counted, now that n is taken.
func (n *Need) note(now law.Time) {
	if c, ok := n.B.state.(*law.Cap); ok {
		n.mark = c.Mark(now)
	}
}

// startNeeds is the room on the stack for the needs of Start. Announced limits beyond
// it cost an allocation.
type startNeeds [5]Need

// oneOfEach appends the needs of a request that takes one unit of each of budgets.
func oneOfEach(needs []Need, budgets []*Budget) []Need {
	for _, b := range budgets {
		needs = append(needs, Need{B: b, Cost: 1})
	}
	return needs
}

// holdPause reports whether needs include a pause. Start leaves them to Enter even when
// it has ended, since it may have to learn of the request's success.
func holdPause(needs []Need) bool {
	for i := range needs {
		if _, ok := needs[i].B.state.(*law.Pace); ok {
			return true
		}
	}
	return false
}

// haveRoom reports whether all needs have room at now, whatever waits.
func haveRoom(needs []Need, now law.Time) bool {
	for i := range needs {
		if at, _ := needs[i].B.state.Earliest(now, now, needs[i].Cost); at > now {
			return false
		}
	}
	return true
}

// takeAll takes all needs, which have room at now.
func takeAll(needs []Need, now law.Time) {
	for i := range needs {
		n := &needs[i]
		n.inFlight, n.at = n.B.state.Take(now, n.Cost), now
		n.note(now)
		n.B.forget()
	}
}

// UndoStart gives back what Start took at an instant.
func (line *Line) UndoStart(budgets []*Budget, inFlight bool, at time.Duration) {
	l, now := line.lock()
	defer l.unlock()
	if inFlight {
		l.addUnits(budgets, -1)
	}
	l.giveBack(l.withAnnounced(oneOfEach(nil, budgets), Who{}), int64(at), false, new(Pass), now)
}

// DoneStart is Done for a request that Start counted as in flight. AnnounceLimit and
// Served can do it besides.
func (line *Line) DoneStart(budgets []*Budget) {
	l := line.lockOnly()
	defer l.mu.Unlock()
	l.addUnits(budgets, -1)
}

// addUnits is addInFlight for one unit of each of budgets, and no identity.
func (l *locked) addUnits(budgets []*Budget, n int64) {
	for _, b := range budgets {
		b.addInFlight(n)
	}
	l.inFlight += n
}

// Done tells the line that what the response announces has been taken in, or that there
// is none: the request is no longer in flight. It must not come earlier. Until then,
// what the response says is left may be less than what other requests were granted.
func (line *Line) Done(g *Grant, needs []Need) {
	if !g.InFlight {
		return
	}
	g.InFlight = false
	l := line.lockOnly()
	defer l.mu.Unlock()
	l.addInFlight(needs, g.who, -1)
}

// addInFlight counts a request as in flight; with n of -1 it no longer is. The count is
// kept with the budgets, with the line, with the identity and with the resource, since an
// announced limit of each subtracts what the server may not have counted yet; see law.Cap.
func (l *locked) addInFlight(needs []Need, who Who, n int64) {
	for i := range needs {
		needs[i].B.addInFlight(n * needs[i].Cost)
	}
	l.inFlight += n
	if who.Identity != 0 {
		l.addToAudience(who.Identity, n)
	}
	if who.Resource != 0 {
		l.addToAudience(who.Resource, n)
	}
}

// addToAudience is addInFlight for one audience. Where it is not open it is counted in a
// map, from which OpenAudience takes it over.
func (l *locked) addToAudience(id uint64, n int64) {
	h := l.openAudiences()
	if e := h.ids[id]; e != nil {
		e.inFlight += n
		return
	}
	if h.inFlight == nil {
		h.inFlight = map[uint64]int64{}
	}
	if h.inFlight[id] += n; h.inFlight[id] <= 0 {
		delete(h.inFlight, id)
	}
}
