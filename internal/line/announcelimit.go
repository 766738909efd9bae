package line

import "github.com/headway-go/headway/internal/law"

// An AnnouncedKey tells the limits that one server announces apart.
type AnnouncedKey = law.LimitKey

// AnnounceLimit takes in what a response said is left of a limit: of the budget
// s.Rule, for all requests that need it, or else of the requests of an identity. It
// returns how many units other programs have spent; see law.Cap. The oldest of too many
// limits goes. Unless ended is nil it is DoneStart too, before that.
func (line *Line) AnnounceLimit(s Scope, key AnnouncedKey, source string, said *law.LimitSignal, ended []*Budget) (spent int64, err error) {
	l, now := line.lock()
	if ended != nil {
		l.addUnits(ended, -1)
	}
	spent, err = l.announceLimit(s, key, source, said, now)
	l.unlock()
	return spent, err
}

func (l *locked) announceLimit(s Scope, key AnnouncedKey, source string, said *law.LimitSignal, now law.Time) (spent int64, err error) {
	if said.Empty() {
		return 0, nil
	}
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
	a, isNew := list.Limit(now, key, inFlight, func(a *announcement) bool { return a.Budget.users == 0 })
	if a == nil {
		return 0, nil // there are too many, and all are in use
	}
	if isNew {
		a.Budget = newAnnounced(a, s.Rule)
	}
	a.Source = source
	c, b := a.Limit, a.Budget
	if l.waiting == 0 {
		return c.Update(now, *said), nil
	}
	before := c.Status(now)
	spent = c.Update(now, *said)
	if isNew {
		l.attach(b, s)
	}
	l.changed(now, isNew || c.Status(now).Tightens(before), b)
	return spent, nil
}

// announcedCap returns the limit that b is, if a response has announced it.
func (b *Budget) announcedCap() *law.Cap {
	c, _ := b.state.(*law.Cap)
	return c
}
