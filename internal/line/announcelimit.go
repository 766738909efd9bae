package line

import (
	"slices"
	"strings"
	"time"

	"github.com/headway-go/headway/internal/law"
)

// A AnnouncedKey tells the limits that one server announces apart.
type AnnouncedKey struct {
	Name   string
	Window time.Duration
}

// mostAnnounced bounds how many limits of one identity or budget are kept: the
// names are the server's.
const mostAnnounced = 8

// AnnounceLimit takes in what an answer said is left of a limit: of the budget
// s.Rule, whoever needs it, or else of those of an identity. It reports how many
// units others have spent; see law.Cap. The oldest of too many limits goes. With
// ended it is Arrived too, before that.
func (l *Line) AnnounceLimit(s Scope, key AnnouncedKey, source string, said *law.LimitSignal, ended []*Budget) (spent int64, err error) {
	now := l.lock()
	if ended != nil {
		l.addInFlight1(ended, -1)
	}
	spent, err = l.announceLimit(s, key, source, said, now)
	l.unlock()
	return spent, err
}

func (l *Line) announceLimit(s Scope, key AnnouncedKey, source string, said *law.LimitSignal, now law.Time) (spent int64, err error) {
	if l.retired || s.Rule != nil && s.Rule.retired {
		return 0, ErrRetired
	}
	if said.Empty() {
		return 0, nil
	}
	var list *[]announcement
	var flying *int64
	l.openAudiences()
	if s.Rule != nil {
		s.Identity = 0
		list, flying = &s.Rule.wanted().announced, s.Rule.countInFlight()
	} else {
		e := l.audienceOf(s.Identity)
		if e == nil {
			return 0, ErrNoAudience
		}
		if list, flying = &e.list, &e.inFlight; s.Identity == 0 {
			flying = &l.inFlight
		}
	}
	i := slices.IndexFunc(*list, func(h announcement) bool { return h.key == key && !h.isPause() })
	isNew := i < 0
	if isNew {
		if i = l.makeRoom(list); i < 0 {
			return 0, nil
		}
		key.Name = strings.Clone(key.Name) // it was a part of all headers
		(*list)[i] = announcement{b: &Budget{state: law.NewCap(key.Name, flying), demand: &noDemand}, key: key}
	}
	h := &(*list)[i]
	h.source = source
	c := h.b.state.(*law.Cap)
	if l.waiting == 0 {
		return c.Update(now, *said), nil
	}
	before := c.Status(now)
	spent = c.Update(now, *said)
	if isNew {
		l.holdWaiting(h.b, s, false)
	}
	l.changed(now, isNew || c.Status(now).Tightens(before), h.b)
	return spent, nil
}

// makeRoom returns the index of a new element, or -1 where the list is full and
// all are in use. One that has ended is in use by none, whoever still stands in
// line with it.
func (l *Line) makeRoom(list *[]announcement) int {
	n, idle := 0, -1
	for i := range *list {
		if h := &(*list)[i]; !h.isPause() {
			if n++; idle < 0 && (h.b.users == 0 || h.b.state.(*law.Cap).Over(l.last)) {
				idle = i
			}
		}
	}
	if n >= mostAnnounced {
		return idle
	}
	*list = append(*list, announcement{})
	return len(*list) - 1
}
