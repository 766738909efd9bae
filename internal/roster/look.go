package roster

import (
	"cmp"
	"slices"

	"github.com/headway-go/headway/internal/line"
)

// Piece bounds what is looked at while one lock is held: requests wait for it.
const Piece = line.MostStatus

// A Sight is what a look at the roster has found of one host.
type Sight struct {
	*Host
	Plan     *Plan
	Overflow bool     // it is what new hosts share
	keys     []*key   // keys, identities and resources
	gates    []string // hosts of a Shared policy
}

// Look returns the hosts of plans with their keys. Those are found that are there all
// the while.
func (t *Roster) Look(plans map[*Hosts]*Plan) map[*Host]*Sight {
	found := map[*Host]*Sight{}
	at := func(h *Host) *Sight {
		if found[h] == nil {
			found[h] = &Sight{Host: h, Plan: plans[h.hosts]}
		}
		return found[h]
	}
	for hs := range plans {
		hs.mu.RLock()
		if o := hs.overflow; o != nil {
			at(o).Overflow = true
		}
		hs.mu.RUnlock()
	}
	seen := map[*entry]bool{}
	t.walk(func(e *entry) {
		switch k := e.key; {
		case plans[e.host.hosts] == nil || seen[e]:
			return
		case k == nil:
			at(e.host)
		case k.id.isGate():
			s := at(e.host)
			s.gates = append(s.gates, k.text)
		default:
			s := at(e.host)
			s.keys = append(s.keys, k)
		}
		seen[e] = true
	})
	for h, s := range found {
		if !s.Overflow && !h.remembered() { // forgotten meanwhile
			delete(found, h)
		}
	}
	return found
}

// A Held is one budget of a host: of a rule and, if it has keys, of the one with the
// digest; of all keys that share it where that is empty.
type Held struct {
	Rule   *Rule
	Digest string
	Budget *line.Budget
}

// Budgets returns the budgets of the host and of its keys, and the audiences of its identities
// and resources.
func (s *Sight) Budgets() (budgets []Held, ids []uint64) {
	for i := range s.Plan.Rules {
		r := &s.Plan.Rules[i]
		if b := s.At(r.Index); b != nil {
			budgets = append(budgets, Held{r, "", b})
		}
	}
	if ks := s.Host.keys.Load(); ks != nil {
		ks.mu.RLock()
		for _, k := range ks.newcomers {
			ids = append(ids, k.id.identity)
		}
		ks.mu.RUnlock()
	}
	for _, k := range s.keys {
		if k.budget == nil {
			ids = append(ids, k.id.identity)
		} else if r := s.Plan.Rule(k.id.rule); r != nil && r.Keyed {
			budgets = append(budgets, Held{r, k.text, k.budget})
		}
	}
	return budgets, ids
}

// Resources returns the names of the resources by what a store calls them. s may be nil.
func (s *Sight) Resources() map[string]string {
	names := map[string]string{}
	if s != nil {
		for _, k := range s.keys {
			if k.resource != nil {
				names[k.resource.Stored] = k.resource.Name
			}
		}
	}
	return names
}

// Gates returns the gates of the host, by host; the one that new hosts share is
// first.
func (s *Sight) Gates() (list []*Gate) {
	hosts := s.gates
	for own := true; own || len(hosts) > 0; own = false {
		n := min(len(hosts), Piece)
		s.mu.Lock()
		if gs := s.Host.gates.Load(); gs != nil {
			if own && gs.own != nil {
				list = append(list, gs.own)
			}
			for _, host := range hosts[:n] {
				if g := gs.hosts[host]; g != nil {
					list = append(list, g)
				}
			}
		}
		s.mu.Unlock()
		hosts = hosts[n:]
	}
	slices.SortFunc(list, func(a, b *Gate) int { return cmp.Compare(a.Host, b.Host) })
	return list
}
