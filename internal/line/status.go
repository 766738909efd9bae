package line

import (
	"time"

	"github.com/headway-go/headway/internal/law"
)

// Announced is what a line knows from one kind of announcement, for pages.
type Announced struct {
	Label    string  // of the identity
	Resource string  // the server's name for the resource that it is about; empty: all
	Shared   bool    // it is what many identities without a label share
	Rule     *Budget // which it is about; nil: all
	Source   string
	AnnouncedKey
	// A pause, or what is left of the limit; see law.Standing.
	Pause       time.Duration
	Left, Limit int64
	Reset, Age  time.Duration
	Drift       int64
}

// MostStatus bounds how much one Status looks at, since it holds the lock meanwhile.
const MostStatus = 256

// A Status is what a line reports of itself at one instant.
type Status struct {
	Waiting, InFlight int
	Left              []int64 // under each of the budgets, by what is announced of it too
	LimitLeft         []int64 // under each by its own limit alone
	// Announced are the pauses that last and the limits that were announced.
	Announced []Announced
}

// Status returns the status with no more than MostStatus budgets and identities: what
// is left of the budgets, and what concerns one of them, an identity of one of them or
// one of ids; with host also what concerns every request.
func (line *Line) Status(budgets []*Budget, ids []uint64, host bool) (s Status) {
	if len(budgets)+len(ids) > MostStatus {
		panic("line: too much to look at under one lock")
	}
	l, now := line.lock()
	defer l.unlock()
	s.Waiting, s.InFlight = l.waiting, int(max(int64(l.slotsTaken), l.inFlight))
	if len(budgets) > 0 {
		s.Left, s.LimitLeft = make([]int64, len(budgets)), make([]int64, len(budgets))
	}
	for i, b := range budgets {
		s.LimitLeft[i] = b.state.Remaining(now)
		s.Left[i] = b.leastAnnounced(now, s.LimitLeft[i])
		s.add(b.announced, Announced{Rule: b}, now)
		s.addAudience(b.audience, now)
	}
	h := l.audiences
	if h == nil {
		return s
	}
	if host {
		s.add(h.all.list, Announced{}, now)
	}
	for _, identity := range ids {
		s.addAudience(h.ids[identity], now)
	}
	return s
}

func (s *Status) addAudience(e *audience, now law.Time) {
	if e != nil {
		s.add(e.list, Announced{Label: e.label, Resource: e.resource, Shared: e.label == "" && e.resource == ""}, now)
	}
}

// add adds what list announces to the audience, or about the budget, of by.
func (s *Status) add(list announcements, by Announced, now law.Time) {
	for i := range list {
		a, entry := &list[i], by
		st, holds := a.Standing(now)
		if !holds {
			continue
		}
		entry.Pause, entry.Left, entry.Limit = st.Pause, st.Left, st.Limit
		entry.Reset, entry.Age, entry.Drift = st.Reset, st.Age, st.Drift
		if entry.Source = a.Source; a.Only != nil {
			entry.Rule = a.Only
		}
		if a.Limit != nil {
			entry.AnnouncedKey = AnnouncedKey{Name: a.Limit.Name, Window: a.Window}
		}
		s.Announced = append(s.Announced, entry)
	}
}
