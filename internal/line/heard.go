package line

import (
	"slices"

	"github.com/headway-go/headway/internal/law"
)

// A hearing is what a line knows from its server's answers: pauses, and what is
// said to be left. Each is a budget that those whom it concerns need besides
// their own.
type hearing struct {
	host ear             // what concerns everybody; line.flying counts for it
	ids  map[uint64]*ear // what concerns one identity
	// flying is how many requests of an identity without an ear are granted and
	// not answered.
	flying map[uint64]int64
}

// An ear is what was said to one identity, or to all.
type ear struct {
	label  string // of the identity, for Heard
	who    uint64
	flying int64 // requests granted and not answered
	list   []held
}

// held is one budget that an answer has made.
type held struct {
	b      *Budget
	only   *Budget    // it holds those of the identity who need this one; nil: all
	source string     // which dialect said so
	key    LearnedKey // of what is left
	status int        // of the answer that raised the pause
	told   law.Time   // the end of the pause that was last reported
}

// A Scope is whom an answer concerns: an identity, or everybody where that is
// zero; and of it those who need Rule, unless that is nil.
type Scope struct {
	Who  uint64
	Rule *Budget
}

// OpenEar makes the place for what concerns an identity alone, and reports
// whether it is new. Without it Pause and Learn return ErrNoEar. It is forgotten
// together with owner, or by RetireEar where that is nil. The error is ErrRetired.
func (l *Line) OpenEar(who uint64, label string, owner *Budget) (isNew bool, err error) {
	l.lock()
	defer l.unlock()
	if l.retired || owner != nil && owner.retired {
		return false, ErrRetired
	}
	h := l.hear()
	if h.ids[who] != nil {
		return false, nil
	}
	if h.ids == nil {
		h.ids = map[uint64]*ear{}
	}
	e := &ear{label: label, who: who, flying: h.flying[who]}
	h.ids[who] = e
	delete(h.flying, who)
	if owner != nil {
		owner.wanted().ear = e
	}
	return true, nil
}

// CloseEar forgets what was said to an identity whose rules are no more.
func (l *Line) CloseEar(who uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.heard != nil {
		delete(l.heard.ids, who)
	}
}

// RetireEar forgets what was said to an identity, if forgetting makes no
// difference to any request. With waiting, requests in line count too.
func (l *Line) RetireEar(who uint64, waiting bool) bool {
	now := l.lock()
	defer l.unlock()
	if l.heard == nil {
		return true
	}
	if l.heard.flying[who] > 0 || !l.heard.ids[who].recovered(now) {
		return false
	}
	if waiting {
		for w := l.first; w != nil; w = w.next {
			if w.who == who {
				return false
			}
		}
	}
	delete(l.heard.ids, who)
	return true
}

// recovered reports whether forgetting e, which may be nil, makes no difference.
func (e *ear) recovered(now law.Time) bool {
	return e == nil || e.flying <= 0 && recovered(e.list, now)
}

func (l *Line) hear() *hearing {
	if l.heard == nil {
		l.more().heard = new(hearing)
	}
	return l.heard
}

func recovered(list []held, now law.Time) bool {
	for i := range list {
		if b := list[i].b; b.users > 0 || !b.state.Recovered(now) {
			return false
		}
	}
	return true
}

// ear returns the ear of an identity; nil if there is none.
func (l *Line) ear(who uint64) *ear {
	h := l.hear()
	if who == 0 {
		return &h.host
	}
	return h.ids[who]
}

// heed adds to the needs of a request what answers have brought.
func (l *Line) heed(all []Need, who uint64) []Need {
	h := l.heard
	if h == nil {
		return all
	}
	own := len(all)
	for i := range own {
		n := all[i]
		for _, h := range n.B.heard {
			all = append(all, Need{B: h.b, Cost: n.Cost})
		}
	}
	if e := h.ids[who]; e != nil {
		all = l.heedEar(all, own, e)
	}
	return l.heedEar(all, own, &h.host)
}

func (l *Line) heedEar(all []Need, own int, e *ear) []Need {
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
func forget(list []held, now law.Time) []held {
	for i := range list {
		if recovered(list[i:i+1], now) {
			return slices.DeleteFunc(list, func(h held) bool { return recovered([]held{h}, now) })
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

func (e *ear) find(is func(*held) bool) *held {
	for i := range e.list {
		if is(&e.list[i]) {
			return &e.list[i]
		}
	}
	return nil
}

func (h *held) isPause() bool {
	_, ok := h.b.state.(*law.Pace)
	return ok
}

// remaining is how many units of b could start now, by what was learned too.
func (b *Budget) remaining(now law.Time) int64 {
	left := b.state.Remaining(now)
	for _, h := range b.heard {
		left = min(left, h.b.state.Remaining(now))
	}
	return left
}
