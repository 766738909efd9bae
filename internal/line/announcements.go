package line

import (
	"slices"

	"github.com/headway-go/headway/internal/law"
)

// A response may say that no request is welcome for 30 s, or that 12 of 100 requests are
// left until the hour is full. Either becomes a budget: a law.Pace or a law.Cap. The
// requests that it concerns need one unit of it besides their own needs, and so pauses and
// announced limits are obeyed, planned, given back and reported by what does the same for
// configured limits.
//
// Which requests are concerned is a Scope, and where the announcement is kept follows
// from it, so that a request that arrives finds all that bind it in four lists:
//
//	kept with                       concerns
//	audiences.all                   every request of the line
//	audiences.ids[identity]         the requests of that identity
//	audiences.ids[resource]         of these, the requests that draw on one resource of the server's
//	Budget.announced (limits only)  the requests that need that budget
//
// In all but the last list, Only narrows a pause down to the requests that need one budget.
// Requests that are in line already when an announcement comes get the need added; see
// attach. When an announcement has ended and nothing in line needs it, the next request
// that looks at its list while nothing waits drops it.

// audiences are what a line knows from the responses of its server: pauses, and what is
// left of limits. Each is a budget that the requests which it concerns need besides
// their own.
type audiences struct {
	all audience             // what concerns every request; Line.inFlight counts for it
	ids map[uint64]*audience // what concerns one identity, or one resource of an identity
	// inFlight is how many requests of an identity or resource without an audience started
	// and are not done.
	inFlight map[uint64]int64
}

// An audience is what has been announced to one identity, of one of its resources, or to all.
type audience struct {
	label    string // of the identity, for Announced
	resource string // the server's name for it; empty: it is no resource's
	identity uint64
	inFlight int64 // requests that started and are not done
	list     announcements
}

// announcements are pauses and limits; each has a Budget of its own.
type (
	announcements = law.Announcements[*Budget]
	announcement  = law.Announced[*Budget]
)

// An origin is where a budget that is an announcement comes from.
type origin struct {
	rule     *Budget  // it concerns requests that need this one; nil: all of the audience
	source   string   // the dialect of the response that raised the pause
	status   int      // of that response
	reported law.Time // the end of the pause that was last reported
}

// newAnnounced returns the budget of an announcement.
func newAnnounced(a *announcement, rule *Budget) *Budget {
	return &Budget{state: a.State(), demand: &demand{origin: &origin{rule: rule}}}
}

// forgettable reports whether forgetting a makes no difference to any request.
func forgettable(a *announcement, now law.Time) bool {
	return a.Budget.users == 0 && a.Budget.state.Recovered(now)
}

func recovered(list announcements, now law.Time) bool {
	for i := range list {
		if !forgettable(&list[i], now) {
			return false
		}
	}
	return true
}

// forget drops what makes no difference any more. As a rule that is nothing, so that it
// looks before it copies.
func (e *audience) forget(now law.Time) {
	for i := range e.list {
		if forgettable(&e.list[i], now) {
			e.list = slices.DeleteFunc(e.list, func(a announcement) bool { return forgettable(&a, now) })
			return
		}
	}
}

// recovered reports whether forgetting e, which may be nil, makes no difference.
func (e *audience) recovered(now law.Time) bool {
	return e == nil || e.inFlight <= 0 && recovered(e.list, now)
}

// A Scope is which requests an announcement concerns: those of an identity, or of a resource
// of one, or all if that is zero; and of them those that need Rule, unless that is nil.
type Scope struct {
	Identity uint64
	Rule     *Budget
}

// OpenAudience makes the place for what concerns an identity alone, or one resource of it
// with the server's name for that, and reports whether it is new. Without it AnnouncePause and AnnounceLimit return ErrNoAudience. It
// is forgotten together with owner, or by RetireAudience if that is nil. The error is
// ErrRetired.
func (line *Line) OpenAudience(identity uint64, label, resource string, owner *Budget) (isNew bool, err error) {
	l, _ := line.lock()
	defer l.unlock()
	if l.retired || owner != nil && owner.retired {
		return false, ErrRetired
	}
	h := l.openAudiences()
	if h.ids[identity] != nil {
		return false, nil
	}
	if h.ids == nil {
		h.ids = map[uint64]*audience{}
	}
	e := &audience{label: label, resource: resource, identity: identity, inFlight: h.inFlight[identity]}
	h.ids[identity] = e
	delete(h.inFlight, identity)
	if owner != nil {
		owner.wanted().audience = e
	}
	return true, nil
}

// JoinAudience makes the requests in line that go a route, and of which it was not known what
// they draw on, draw on a resource: what has been announced of it concerns them too.
func (line *Line) JoinAudience(resource, route uint64) {
	l, now := line.lock()
	defer l.unlock()
	some := false
	for w := l.first; w != nil; w = w.next {
		if w.who.Route == route && w.who.Resource == 0 && route != 0 {
			w.who.Resource, some = resource, true
		}
	}
	if !some || l.audiences == nil || l.audiences.ids[resource] == nil {
		return
	}
	list := l.audiences.ids[resource].list
	for i := range list {
		a := &list[i]
		l.attachBy(a.Budget, func(w *waiter) int64 {
			if w.who.Resource != resource || costOf(w.needs, a.Budget) > 0 || a.Only != nil && costOf(w.needs, a.Only) == 0 {
				return 0
			}
			return 1
		})
		l.changed(now, true, a.Budget)
	}
}

// CloseAudience forgets what was announced to an identity whose rules are gone.
func (line *Line) CloseAudience(identity uint64) {
	l := line.lockOnly()
	defer l.mu.Unlock()
	if l.audiences != nil {
		delete(l.audiences.ids, identity)
	}
}

// RetireAudience forgets what was announced to an identity, if that makes no
// difference to any request, and reports whether it did. With waiting, requests in line
// count too.
func (line *Line) RetireAudience(identity uint64, waiting bool) bool {
	l, now := line.lock()
	defer l.unlock()
	if l.audiences == nil {
		return true
	}
	if l.audiences.inFlight[identity] > 0 || !l.audiences.ids[identity].recovered(now) {
		return false
	}
	if waiting {
		for w := l.first; w != nil; w = w.next {
			if w.who.is(identity) {
				return false
			}
		}
	}
	delete(l.audiences.ids, identity)
	return true
}

func (l *locked) openAudiences() *audiences {
	if l.audiences == nil {
		l.wantExtra().audiences = new(audiences)
	}
	return l.audiences
}

// audienceOf returns the audience of s, which must be in use.
func (l *locked) audienceOf(s Scope) (*audience, error) {
	h := l.openAudiences()
	switch {
	case l.retired || s.Rule != nil && s.Rule.retired:
		return nil, ErrRetired
	case s.Identity == 0:
		return &h.all, nil
	case h.ids[s.Identity] == nil:
		return nil, ErrNoAudience
	}
	return h.ids[s.Identity], nil
}

// withAnnounced appends to the needs of a request the announcements that bind it: of
// an announced limit of a budget as much as of that, of all others one unit.
func (l *locked) withAnnounced(needs []Need, who Who) []Need {
	h := l.audiences
	if h == nil {
		return needs
	}
	own := len(needs)
	for i := range own {
		n := needs[i]
		for j := range n.B.announced {
			needs = append(needs, Need{B: n.B.announced[j].Budget, Cost: n.Cost})
		}
	}
	if who.Resource != 0 {
		if e := h.ids[who.Resource]; e != nil {
			needs = l.withAudience(needs, own, e)
		}
	}
	if who.Identity != 0 {
		if e := h.ids[who.Identity]; e != nil {
			needs = l.withAudience(needs, own, e)
		}
	}
	return l.withAudience(needs, own, &h.all)
}

// withAudience is withAnnounced for one audience; the first own of needs are the
// request's own. What makes no difference any more is forgotten on the way.
func (l *locked) withAudience(needs []Need, own int, e *audience) []Need {
	if l.waiting == 0 {
		e.forget(l.last)
	}
	for i := range e.list {
		if a := &e.list[i]; a.Only == nil || costOf(needs[:own], a.Only) > 0 {
			needs = append(needs, Need{B: a.Budget, Cost: 1})
		}
	}
	return needs
}

// attach makes the requests in line that s concerns need b too: one unit of it, or, if
// that is not a pause, as much as of s.Rule.
func (l *locked) attach(b *Budget, s Scope) {
	_, pause := b.state.(*law.Pace)
	l.attachBy(b, func(w *waiter) (n int64) {
		if s.Identity != 0 && !w.who.is(s.Identity) {
			return 0
		}
		if n = 1; s.Rule != nil {
			n = costOf(w.needs, s.Rule)
		}
		if pause {
			n = min(n, 1)
		}
		return n
	})
}

// attachBy makes each request in line need as many units of b as cost returns.
//
// A line of one class stays one if all need it, or none. Otherwise the classes are made
// anew: what was one class may be two now.
func (l *locked) attachBy(b *Budget, cost func(*waiter) int64) {
	some, all := false, true
	for w := l.first; w != nil; w = w.next {
		concerned := cost(w) > 0
		some, all = some || concerned, all && concerned
	}
	switch {
	case !some:
	case l.many || !all:
		l.regroup(b, cost)
	default:
		l.dropPlan()
		for w := l.first; w != nil; w = w.next {
			l.need(w, b, cost(w))
		}
		l.single.needs = l.first.needs
	}
}

// need makes w need n units of b too, unless n is zero.
func (l *locked) need(w *waiter, b *Budget, n int64) {
	if n > 0 {
		w.needs = append(slices.Clip(w.needs), Need{B: b, Cost: n})
		b.wanted().users++
		l.limitWait(w)
	}
}

// regroup is attachBy where afterwards needs differ. Planned starts stay: the
// caller looks whether they are still possible.
func (l *locked) regroup(b *Budget, cost func(*waiter) int64) {
	if !l.many {
		l.split()
	}
	for w := l.first; w != nil; w = w.next {
		l.unplan(w)
		if w.class.first == w {
			l.drop(w.class)
		}
	}
	for w := l.first; w != nil; w = w.next {
		l.need(w, b, cost(w))
		l.classFor(w).push(w)
		l.seat(w, w.foresight)
		if w.class.first == w {
			w.journal.leads()
		}
	}
}
