package desk

import (
	"cmp"
	"strings"
	"time"

	"github.com/headway-go/headway/internal/line"
	"github.com/headway-go/headway/internal/roster"
	"github.com/headway-go/headway/internal/storeline"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/store"
)

// A Status is what is known of a plan at one host.
type Status struct {
	Plan              *roster.Plan
	Host              string
	Overflow          bool // it is the entry that new hosts share
	Waiting, InFlight int
	Budgets           []Budget
	Announced         []Announced
	Gates             []*roster.Gate
}

// A Budget is what is left of one.
type Budget struct {
	Rule      *roster.Rule
	KeyDigest string
	Limit     limiter.Limit
	Left      int64         // by what is announced of it too
	LimitLeft int64         // by Limit alone
	Age       time.Duration // since a store has reported them; zero in memory
}

// An Announced is a pause, or a limit that a server has announced.
type Announced struct {
	line.Announced
	Rule      *roster.Rule // nil: it is no rule's
	KeyDigest string
}

// Status returns what is known of all hosts. It makes no round trip and waits for none.
func (d *Desk) Status() (list []Status) {
	plans := map[*roster.Hosts]*roster.Plan{}
	for _, p := range *d.plans.Load() {
		plans[p.Hosts] = p
	}
	sights := d.Roster.Look(plans)
	if d.store != nil && d.store.Down() == nil {
		return d.statusStore(plans, sights)
	}
	for _, s := range sights {
		list = append(list, statusLocal(s))
	}
	return list
}

// resourceOf returns the server's name for the resource that an audience of a store is of, from
// those that are known by what stores call them; the digest where it is not among them.
func resourceOf(audience string, names map[string]string) string {
	i := strings.Index(audience, "//")
	if i < 0 {
		return ""
	}
	return cmp.Or(names[audience[i:]], audience[i+2:])
}

// statusLocal holds the line's lock for as much as roster.Piece at a time.
func statusLocal(s *roster.Sight) Status {
	st := Status{Plan: s.Plan, Host: s.Name, Overflow: s.Overflow, Gates: s.Gates()}
	held, ids := s.Budgets()
	budgets, rules := make([]*line.Budget, len(held)), map[*line.Budget]*roster.Held{}
	for i := range held {
		budgets[i], rules[held[i].Budget] = held[i].Budget, &held[i]
	}
	for first, from := true, 0; first || from < len(budgets) || len(ids) > 0; first = false {
		some := budgets[from:min(len(budgets), from+roster.Piece)]
		few := ids[:min(len(ids), roster.Piece-len(some))]
		part := s.Line.Status(some, few, first)
		if first {
			st.Waiting, st.InFlight = part.Waiting, part.InFlight
		}
		for i, left := range part.Left {
			h := &held[from+i]
			st.Budgets = append(st.Budgets, Budget{Rule: h.Rule, KeyDigest: h.Digest, Limit: limitOf(&h.Rule.Local), Left: left, LimitLeft: part.LimitLeft[i]})
		}
		for _, e := range part.Announced {
			a := Announced{Announced: e, KeyDigest: e.Label}
			if h := rules[e.Rule]; h != nil {
				if a.Rule = h.Rule; a.KeyDigest == "" {
					a.KeyDigest = h.Digest
				}
			}
			st.Announced = append(st.Announced, a)
		}
		from, ids = from+len(some), ids[len(few):]
	}
	return st
}

func (d *Desk) statusStore(plans map[*roster.Hosts]*roster.Plan, sights map[*roster.Host]*roster.Sight) (list []Status) {
	type host struct {
		of   *roster.Hosts
		name string
	}
	here := make(map[host]*roster.Sight, len(sights))
	for _, s := range sights {
		if !s.Overflow {
			here[host{s.Of(), s.Name}] = s
		}
	}
	seen := map[*storeline.Line]bool{}
	d.store.Each(func(l *storeline.Line) {
		of := l.Owner().(*roster.Hosts)
		p := plans[of]
		if p == nil || seen[l] {
			return
		}
		seen[l] = true
		s := here[host{of, hostOf(l.Group())}]
		st := statusStored(p, l, s)
		if s != nil {
			st.Gates = s.Gates()
		}
		list = append(list, st)
	})
	return list
}

// statusStored returns the status of a line of the store. here is what this process remembers of
// the host; nil: nothing.
func statusStored(p *roster.Plan, l *storeline.Line, here *roster.Sight) Status {
	st := Status{Plan: p, Host: hostOf(l.Group())}
	names := here.Resources()
	st.Waiting, st.InFlight = l.Waiting()
	type budget struct {
		rule   *roster.Rule
		digest string
	}
	budgets := map[string]budget{}
	var found []store.Announced
	for k := range l.Known {
		found = append(found, k.Announcements...)
		r, digest := p.RuleOf(k.Name)
		if k.IsAudience || r == nil || !k.Reported && len(k.Announcements) == 0 {
			continue
		}
		budgets[k.Name] = budget{r, digest}
		if k.Reported {
			st.Budgets = append(st.Budgets, Budget{
				Rule: r, KeyDigest: digest, Limit: limitOf(&r.Limit), Left: k.Remaining, LimitLeft: k.LimitRemaining, Age: k.Age,
			})
		}
	}
	for _, e := range found {
		a := Announced{Announced: line.Announced{
			Source: e.Source, Pause: e.Pause, AnnouncedKey: line.AnnouncedKey{Name: e.Name, Window: e.Window},
			Left: e.Left, Limit: e.Limit, Reset: e.Reset, Age: e.Age,
		}}
		b, ok := budgets[e.Audience]
		if !ok {
			b, a.KeyDigest = budgets[e.Only], digestsOf(e.Audience)
			a.Resource = resourceOf(e.Audience, names)
		}
		if a.Rule = b.rule; a.KeyDigest == "" {
			a.KeyDigest = b.digest
		}
		st.Announced = append(st.Announced, a)
	}
	return st
}
