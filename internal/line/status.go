package line

import (
	"time"

	"github.com/headway-go/headway/internal/law"
)

// Heard is what a line knows from answers, for pages.
type Heard struct {
	Label  string  // of the identity
	Shared bool    // it is what many identities without a label share
	Rule   *Budget // which it is about; nil: all
	Source string
	// A pause, or what is left of a limit.
	Pause time.Duration // until its end; zero for a limit
	LearnedKey
	Left, Limit int64         // Limit is negative where nobody said it
	Reset       time.Duration // until units come back; negative where nobody said
	Age         time.Duration
	Drift       int64
}

// Heard returns the pauses that hold and the limits that were learned, those of
// each of budgets among them.
func (l *Line) Heard(budgets []*Budget) (all []Heard) {
	now := l.lock()
	defer l.unlock()
	add := func(label string, shared bool, rule *Budget, list []held) {
		for i := range list {
			h := Heard{Label: label, Shared: shared, Rule: rule, Source: list[i].source, LearnedKey: list[i].key}
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
				s := st.Status(now)
				h.Left, h.Limit, h.Drift = s.Left, s.Limit, s.Drift
				h.Reset, h.Age = time.Duration(s.Reset-now), time.Duration(now-s.Told)
				if s.Blind {
					h.Reset, h.Limit = -1, -1
				}
			}
			all = append(all, h)
		}
	}
	for _, b := range budgets {
		add("", false, b, b.heard)
	}
	if h := l.heard; h != nil {
		add("", false, nil, h.host.list)
		for _, e := range h.ids {
			add(e.label, e.label == "", nil, e.list)
		}
	}
	return all
}
