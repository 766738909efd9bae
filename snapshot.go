package headway

import (
	"cmp"
	"slices"
	"time"

	"github.com/headway-go/headway/breaker"
	"github.com/headway-go/headway/internal/awake"
	"github.com/headway-go/headway/internal/line"
	"github.com/headway-go/headway/limiter"
)

// A HostStatus is what a policy remembers of one host.
type HostStatus struct {
	// Policy is the policy's name.
	Policy string
	// Host is the host in its canonical form; empty for a Shared policy, and
	// for the entry that new hosts share when Config.MaxHosts are remembered.
	Host string
	// Overflow says that it is that entry.
	Overflow bool
	// Waiting is how many requests are in line.
	Waiting int
	// InFlight is how many requests are in flight: until their body is closed
	// under MaxInFlight, else until their headers are in. It is 0 without
	// MaxInFlight where the policy does not listen to answers.
	InFlight int
	// MaxInFlight is the policy's; zero is no cap.
	MaxInFlight int
	// Rules are the budgets in use, by rule and digest.
	Rules []RuleStatus
	// Breakers is the breaker of the host, if its policy has one, or those of
	// all hosts of a Shared policy, by host.
	Breakers []BreakerStatus
	// Pauses are those that answers have raised and that have not ended.
	Pauses []PauseStatus
	// Learned are the limits that answers have announced.
	Learned []LearnedStatus
}

// A BreakerStatus is the breaker of one host.
type BreakerStatus struct {
	// Host is the host in its canonical form; empty for the breaker that new
	// hosts share when Config.MaxHosts are remembered.
	Host string
	// State is what it does with requests.
	State breaker.State
	// RetryAfter is the time until the host may be probed, as in an OpenError;
	// zero when closed.
	RetryAfter time.Duration
	// Err is the failure that opened it; nil when closed, and where none was
	// given.
	Err error
}

// A PauseStatus is a pause that an answer has raised.
type PauseStatus struct {
	// Rule is the rule whose requests it holds up; empty for all.
	Rule string
	// KeyDigest is the digest of the identity that it holds up, several keys
	// joined by "+", each once; empty for everybody, and under Overflow.
	KeyDigest string
	// Overflow says that it holds up only the identities that there is no room to
	// remember; see Config.MaxHosts.
	Overflow bool
	// Left is the time until its end.
	Left time.Duration
	// Source is the dialect in which the answer spoke; empty where the answer
	// gave no time, and the pause is the Transport's own.
	Source string
}

// A LearnedStatus is what the server has announced of one limit.
type LearnedStatus struct {
	// Rule is the rule that it belongs to; "learned", with the server's name for
	// it, where it is a rule of its own.
	Rule string
	// KeyDigest is as in PauseStatus.
	KeyDigest string
	// Overflow is as in PauseStatus.
	Overflow bool
	// Source is the dialect in which the server spoke.
	Source string
	// Window is the limit's period where the server says it, else zero.
	Window time.Duration
	// Limit is the most units per window; zero where the server does not say.
	Limit int64
	// Remaining is what is left now, less what is granted and not answered. It is
	// math.MaxInt64 where all has come back and no limit is known.
	Remaining int64
	// Reset is the time until units come back; negative where nobody said it.
	Reset time.Duration
	// Age is the time since the answer.
	Age time.Duration
	// Drift is how many units more the server has counted than were used here, as
	// far as what it says is left shows it: what others have spent.
	Drift int64
}

// A RuleStatus is the budget of one rule and key.
type RuleStatus struct {
	// Rule is the rule's name, or the limit's text.
	Rule string
	// KeyDigest is the keyed digest of the key; empty where the rule has none,
	// and for the budget that new keys share when there is no room for more.
	KeyDigest string
	// Limit is the limit in force.
	Limit limiter.Limit
	// Remaining is how many units could start now; negative in debt. Over a
	// Config.Store it is what the store has said to this process last, less what has
	// started since from a batch of Store.Batch.
	Remaining int64
	// Age is the time since the store said it; zero in memory. Other processes may have
	// used some meanwhile, and units may have come back.
	Age time.Duration
}

// Snapshot returns what is remembered of every host, by policy and host, for pages,
// metrics and tests. It never waits for a Config.Store, asks it nothing, and holds no
// lock for longer than it takes to read some hundred entries: a host with more than that is
// read in pieces, each at one instant. Over a store it tells what the store has said to
// this process last; see RuleStatus.Age.
func (t *Transport) Snapshot() []HostStatus {
	policies := map[*sites]*policy{}
	for _, p := range t.config.Load().policies {
		policies[p.sites] = p
	}
	var list []HostStatus
	all := t.table.look(policies)
	if t.store != nil && t.store.client.Down() == nil {
		list = t.store.statuses(policies, all)
	} else {
		for _, s := range all {
			list = append(list, s.status())
		}
	}
	slices.SortFunc(list, func(a, b HostStatus) int {
		return cmp.Or(cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Host, b.Host))
	})
	return list
}

// A sight is what a look at the table has found of one site.
type sight struct {
	*site
	policy   *policy
	overflow bool
	keys     []*keyEntry // keys and identities
	gates    []string    // hosts of a Shared policy
}

// piece bounds what is looked at while one lock is held: others wait for it.
const piece = line.MostStatus

// look returns the sites of policies with their keys. Those are found that are there
// all the while.
func (t *table) look(policies map[*sites]*policy) map[*site]*sight {
	found := map[*site]*sight{}
	at := func(s *site) *sight {
		if found[s] == nil {
			found[s] = &sight{site: s, policy: policies[s.sites]}
		}
		return found[s]
	}
	for ss := range policies {
		ss.mu.RLock()
		if o := ss.overflow; o != nil {
			at(o).overflow = true
		}
		ss.mu.RUnlock()
	}
	seen := map[*entry]bool{}
	t.walk(func(e *entry) {
		switch k := e.key; {
		case policies[e.site.sites] == nil || seen[e]:
			return
		case k == nil:
			at(e.site)
		case k.id.place == gatePlace:
			s := at(e.site)
			s.gates = append(s.gates, k.text)
		default:
			s := at(e.site)
			s.keys = append(s.keys, k)
		}
		seen[e] = true
	})
	for s, f := range found {
		if !f.overflow && !s.current() { // forgotten meanwhile
			delete(found, s)
		}
	}
	return found
}

// walk calls f with every entry that is in the ring all the while, and with some twice:
// from the end on, since the last one takes the place of one that is forgotten.
func (t *table) walk(f func(*entry)) {
	var few [piece]*entry
	t.mu.Lock()
	left := len(t.ring)
	t.mu.Unlock()
	for left > 0 {
		t.mu.Lock()
		left = min(left, len(t.ring)) // what was behind it has been seen
		n := copy(few[:], t.ring[max(0, left-piece):left])
		t.mu.Unlock()
		left -= n
		for _, e := range few[:n] {
			f(e)
		}
	}
}

// current reports whether s is the entry of its host.
func (s *site) current() bool {
	s.sites.mu.RLock()
	defer s.sites.mu.RUnlock()
	return s.sites.hosts[s.host] == s
}

func (s *sight) status() HostStatus {
	p := s.policy
	h := HostStatus{Policy: p.name, Host: s.host, Overflow: s.overflow, MaxInFlight: p.MaxInFlight, Breakers: s.breakers()}
	rules := map[int]*rule{} // by place
	var budgets []*line.Budget
	places := map[*line.Budget]int{} // in h.Rules
	add := func(r *rule, digest string, b *line.Budget) {
		places[b] = len(h.Rules)
		h.Rules = append(h.Rules, RuleStatus{Rule: r.name, KeyDigest: digest, Limit: limitOf(*p.spec(r.place))})
		budgets = append(budgets, b)
	}
	for i := range p.rules {
		r := &p.rules[i]
		rules[r.place] = r
		if b := s.at(r.index); b != nil {
			add(r, "", b)
		}
	}
	ids := s.newcomers()
	for _, k := range s.keys {
		switch {
		case k.budget == nil:
			ids = append(ids, k.id.who)
		case rules[k.id.place] != nil && rules[k.id.place].key != nil:
			add(rules[k.id.place], k.text, k.budget)
		}
	}
	var heard []line.Announced
	for first, from := true, 0; first || from < len(budgets) || len(ids) > 0; first = false {
		some := budgets[from:min(len(budgets), from+piece)]
		few := ids[:min(len(ids), piece-len(some))]
		st := s.line.Status(some, few, first)
		if first {
			h.Waiting, h.InFlight = st.Waiting, st.InFlight
		}
		for i, left := range st.Left {
			h.Rules[from+i].Remaining = left
		}
		heard = append(heard, st.Announced...)
		from, ids = from+len(some), ids[len(few):]
	}
	h.hear(heard, places)
	h.sort()
	return h
}

// newcomers returns the identities that share what there is no room for.
func (s *site) newcomers() (ids []uint64) {
	k := s.keys.Load()
	if k == nil {
		return nil
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	for _, e := range k.newcomers {
		ids = append(ids, e.id.who)
	}
	return ids
}

// breakers returns the breakers of a site.
func (s *sight) breakers() (list []BreakerStatus) {
	add := func(g *gate) {
		if b := g.breaker.Load(); b != nil {
			list = append(list, BreakerStatus{g.host, b.State(), b.Delay(awake.Now()), b.Cause()})
		}
	}
	hosts := s.gates
	for own := true; own || len(hosts) > 0; own = false {
		var few []*gate
		n := min(len(hosts), piece)
		s.mu.Lock()
		if gs := s.site.gates.Load(); gs != nil {
			if own && gs.own != nil {
				few = append(few, gs.own)
			}
			for _, host := range hosts[:n] {
				if g := gs.hosts[host]; g != nil {
					few = append(few, g)
				}
			}
		}
		s.mu.Unlock()
		for _, g := range few {
			add(g)
		}
		hosts = hosts[n:]
	}
	slices.SortFunc(list, func(a, b BreakerStatus) int { return cmp.Compare(a.Host, b.Host) })
	return list
}

// hear adds what answers have brought. places says which of h.Rules a budget is.
func (h *HostStatus) hear(all []line.Announced, places map[*line.Budget]int) {
	for _, e := range all {
		rule, key := "", e.Label
		if i, ok := places[e.Rule]; ok {
			if rule = h.Rules[i].Rule; key == "" {
				key = h.Rules[i].KeyDigest
			}
		}
		if e.Pause > 0 {
			h.Pauses = append(h.Pauses, PauseStatus{Rule: rule, KeyDigest: key, Overflow: e.Shared, Left: e.Pause, Source: e.Source})
			continue
		}
		if rule == "" {
			rule = learnedName(e.Name)
		}
		h.Learned = append(h.Learned, LearnedStatus{
			Rule: rule, KeyDigest: key, Overflow: e.Shared, Source: e.Source, Window: e.Window, Limit: max(0, e.Limit),
			Remaining: e.Left, Reset: e.Reset, Age: e.Age, Drift: e.Drift,
		})
	}
}

// sort puts the rows in order.
func (h *HostStatus) sort() {
	slices.SortStableFunc(h.Rules, func(a, b RuleStatus) int {
		return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.KeyDigest, b.KeyDigest))
	})
	slices.SortStableFunc(h.Pauses, func(a, b PauseStatus) int {
		return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.KeyDigest, b.KeyDigest))
	})
	slices.SortStableFunc(h.Learned, func(a, b LearnedStatus) int {
		return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.KeyDigest, b.KeyDigest), cmp.Compare(a.Window, b.Window))
	})
}
