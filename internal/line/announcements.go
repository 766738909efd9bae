package line

import (
	"slices"

	"github.com/headway-go/headway/internal/law"
)

// audiences is what a line knows from its server's answers: pauses, and what is
// said to be left. Each is a budget that those whom it concerns need besides
// their own.
type audiences struct {
	all audience             // what concerns everybody; line.flying counts for it
	ids map[uint64]*audience // what concerns one identity
	// flying is how many requests of an identity without an ear are granted and
	// not answered.
	inFlight map[uint64]int64
}

// An audience is what was said to one identity, or to all.
type audience struct {
	label    string // of the identity, for Announced
	identity uint64
	inFlight int64 // requests granted and not answered
	list     []announcement
}

// An announcement is one budget that an answer has made.
type announcement struct {
	b        *Budget
	only     *Budget      // it holds those of the identity who need this one; nil: all
	source   string       // which dialect said so
	key      AnnouncedKey // of what is left
	status   int          // of the answer that raised the pause
	reported law.Time     // the end of the pause that was last reported
}

// A Scope is whom an answer concerns: an identity, or everybody where that is
// zero; and of it those who need Rule, unless that is nil.
type Scope struct {
	Identity uint64
	Rule     *Budget
}

// OpenAudience makes the place for what concerns an identity alone, and reports
// whether it is new. Without it AnnouncePause and AnnounceLimit return ErrNoAudience. It is forgotten
// together with owner, or by RetireAudience where that is nil. The error is ErrRetired.
func (l *Line) OpenAudience(identity uint64, label string, owner *Budget) (isNew bool, err error) {
	l.lock()
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
	e := &audience{label: label, identity: identity, inFlight: h.inFlight[identity]}
	h.ids[identity] = e
	delete(h.inFlight, identity)
	if owner != nil {
		owner.wanted().audience = e
	}
	return true, nil
}

// CloseAudience forgets what was said to an identity whose rules are no more.
func (l *Line) CloseAudience(identity uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.audiences != nil {
		delete(l.audiences.ids, identity)
	}
}

// RetireAudience forgets what was said to an identity, if forgetting makes no
// difference to any request. With waiting, requests in line count too.
func (l *Line) RetireAudience(identity uint64, waiting bool) bool {
	now := l.lock()
	defer l.unlock()
	if l.audiences == nil {
		return true
	}
	if l.audiences.inFlight[identity] > 0 || !l.audiences.ids[identity].recovered(now) {
		return false
	}
	if waiting {
		for w := l.first; w != nil; w = w.next {
			if w.identity == identity {
				return false
			}
		}
	}
	delete(l.audiences.ids, identity)
	return true
}

// recovered reports whether forgetting e, which may be nil, makes no difference.
func (e *audience) recovered(now law.Time) bool {
	return e == nil || e.inFlight <= 0 && recovered(e.list, now)
}

func (l *Line) openAudiences() *audiences {
	if l.audiences == nil {
		l.more().audiences = new(audiences)
	}
	return l.audiences
}

func recovered(list []announcement, now law.Time) bool {
	for i := range list {
		if b := list[i].b; b.users > 0 || !b.state.Recovered(now) {
			return false
		}
	}
	return true
}

// ear returns the ear of an identity; nil if there is none.
func (l *Line) audienceOf(identity uint64) *audience {
	h := l.openAudiences()
	if identity == 0 {
		return &h.all
	}
	return h.ids[identity]
}

// withAnnounced adds to the needs of a request what answers have brought.
func (l *Line) withAnnounced(all []Need, identity uint64) []Need {
	h := l.audiences
	if h == nil {
		return all
	}
	own := len(all)
	for i := range own {
		n := all[i]
		for _, h := range n.B.announced {
			all = append(all, Need{B: h.b, Cost: n.Cost})
		}
	}
	if e := h.ids[identity]; e != nil {
		all = l.withAudience(all, own, e)
	}
	return l.withAudience(all, own, &h.all)
}

func (l *Line) withAudience(all []Need, own int, e *audience) []Need {
	if l.waiting == 0 {
		e.list = forget(e.list, l.last)
	}
	for i := range e.list {
		if h := &e.list[i]; h.only == nil || needs(all[:own], h.only) {
			all = append(all, Need{B: h.b, Cost: 1})
		}
	}
	return all
}

// forget drops what no longer makes a difference.
func forget(list []announcement, now law.Time) []announcement {
	for i := range list {
		if recovered(list[i:i+1], now) {
			return slices.DeleteFunc(list, func(h announcement) bool { return recovered([]announcement{h}, now) })
		}
	}
	return list
}

func needs(list []Need, b *Budget) bool {
	for i := range list {
		if list[i].B == b {
			return true
		}
	}
	return false
}

func (e *audience) find(is func(*announcement) bool) *announcement {
	for i := range e.list {
		if is(&e.list[i]) {
			return &e.list[i]
		}
	}
	return nil
}

func (h *announcement) isPause() bool {
	_, ok := h.b.state.(*law.Pace)
	return ok
}

// remaining is how many units of b could start now, by what was learned too.
func (b *Budget) remaining(now law.Time) int64 {
	left := b.state.Remaining(now)
	for _, h := range b.announced {
		left = min(left, h.b.state.Remaining(now))
	}
	return left
}
