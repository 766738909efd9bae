package line

import (
	"time"

	"github.com/headway-go/headway/internal/law"
)

// Announced is what a line knows from answers, for pages.
type Announced struct {
	Label  string  // of the identity
	Shared bool    // it is what many identities without a label share
	Rule   *Budget // which it is about; nil: all
	Source string
	// A pause, or what is left of a limit.
	Pause time.Duration // until its end; zero for a limit
	AnnouncedKey
	Left, Limit int64         // Limit is negative where nobody said it
	Reset       time.Duration // until units come back; negative where nobody said
	Age         time.Duration
	Drift       int64
}

// MostStatus bounds what one Status is about: it holds the lock meanwhile.
const MostStatus = 256

// A Status is what a line says of itself at one instant.
type Status struct {
	Waiting, InFlight int
	Left              []int64 // under each of the budgets
	// Announced are the pauses that hold and the limits that were learned.
	Announced []Announced
}

// Status returns the status with no more than MostStatus budgets and identities: what
// is left of the budgets, and what concerns one of them, an identity of one of them or
// one of ids; with host also what concerns everybody.
func (l *Line) Status(budgets []*Budget, ids []uint64, host bool) (s Status) {
	if len(budgets)+len(ids) > MostStatus {
		panic("line: too much to look at under one lock")
	}
	now := l.lock()
	defer l.unlock()
	s.Waiting, s.InFlight = l.waiting, int(max(int64(l.slotsTaken), l.inFlight))
	if len(budgets) > 0 {
		s.Left = make([]int64, len(budgets))
	}
	for i, b := range budgets {
		s.Left[i] = b.remaining(now)
		s.add("", false, b, b.announced, now)
		s.addAudience(b.audience, now)
	}
	h := l.audiences
	if h == nil {
		return s
	}
	if host {
		s.add("", false, nil, h.all.list, now)
	}
	for _, identity := range ids {
		s.addAudience(h.ids[identity], now)
	}
	return s
}

func (s *Status) addAudience(e *audience, now law.Time) {
	if e != nil {
		s.add(e.label, e.label == "", nil, e.list, now)
	}
}

func (s *Status) add(label string, shared bool, rule *Budget, list []announcement, now law.Time) {
	for i := range list {
		h := Announced{Label: label, Shared: shared, Rule: rule, Source: list[i].source, AnnouncedKey: list[i].key}
		if list[i].only != nil {
			h.Rule = list[i].only
		}
		switch st := list[i].b.state.(type) {
		case *law.Pace:
			end, paused := st.End(now)
			if !paused {
				continue
			}
			h.Pause = time.Duration(end - now)
		case *law.Cap:
			c := st.Status(now)
			h.Left, h.Limit, h.Drift = c.Left, c.Limit, c.Drift
			h.Reset, h.Age = time.Duration(c.Reset-now), time.Duration(now-c.Updated)
			if c.Blind {
				h.Reset, h.Limit = -1, -1
			}
		}
		s.Announced = append(s.Announced, h)
	}
}
