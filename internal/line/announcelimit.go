package line

import "github.com/headway-go/headway/internal/law"

// An AnnouncedKey tells the limits that one server announces apart.
type AnnouncedKey = law.LimitKey

// A LimitReport is what a response has announced of one limit.
type LimitReport struct {
	Scope  Scope // the budget Rule, for all requests that need it, or else the requests of an identity
	Key    AnnouncedKey
	Source string // the dialect
	// Undrawn is set where it was not known of the request that it draws on the resource that
	// Scope is. Others in flight of Identity, which is its identity, may draw on it as well.
	Undrawn  bool
	Identity uint64
	Signal   law.LimitSignal
}

// AnnounceLimit takes in a report, and returns how many units other programs have spent; see
// law.Cap. needs are what the request took, or marks what Start noted; either may be nil. The
// oldest of too many limits goes. Unless ended is nil it is DoneStart too, afterwards.
func (line *Line) AnnounceLimit(r *LimitReport, needs []Need, marks *Marks, ended []*Budget) (spent int64, err error) {
	l, now := line.lock()
	spent, err = l.announceLimit(r, needs, marks, now)
	if ended != nil {
		l.addUnits(ended, -1)
	}
	l.unlock()
	return spent, err
}

func (l *locked) announceLimit(r *LimitReport, needs []Need, marks *Marks, now law.Time) (spent int64, err error) {
	if r.Signal.Empty() {
		return 0, nil
	}
	s := r.Scope
	if s.Rule != nil {
		s.Identity = 0
	}
	e, err := l.audienceOf(s)
	if err != nil {
		return 0, err
	}
	list, inFlight := &e.list, &e.inFlight
	switch {
	case s.Rule != nil:
		list, inFlight = &s.Rule.wanted().announced, s.Rule.countInFlight()
	case s.Identity == 0:
		inFlight = &l.inFlight
	}
	a, isNew := list.Limit(now, r.Key, inFlight, func(a *announcement) bool { return a.Budget.users == 0 })
	if a == nil {
		return 0, nil // there are too many, and all are in use
	}
	if isNew {
		a.Budget = newAnnounced(a, s.Rule)
	}
	a.Source = r.Source
	c, b := a.Limit, a.Budget
	if r.Undrawn {
		r.Signal.InFlight = max(0, l.flightOf(r.Identity)-1)
	}
	if s.Rule != nil {
		c.Of(s.Rule.state)
	}
	if r.Signal.Mark = marks.of(b); needs != nil {
		r.Signal.Mark = markOf(needs, b)
	}
	if l.waiting == 0 {
		return c.Update(now, r.Signal), nil
	}
	before := c.Status(now)
	spent = c.Update(now, r.Signal)
	if isNew {
		l.attach(b, s)
	}
	l.changed(now, isNew || c.Status(now).Tightens(before), b)
	return spent, nil
}

// flightOf returns how many requests of an identity are in flight; of all, if that is zero.
func (l *locked) flightOf(identity uint64) int64 {
	if identity == 0 {
		return l.inFlight
	}
	if e := l.audiences.ids[identity]; e != nil {
		return e.inFlight
	}
	return l.audiences.inFlight[identity]
}

// announcedCap returns the limit that b is, if a response has announced it.
func (b *Budget) announcedCap() *law.Cap {
	c, _ := b.state.(*law.Cap)
	return c
}
