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
	// joined by "+"; empty for everybody, and under Overflow.
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
	// Remaining is how many units could start now; negative in debt.
	Remaining int64
}

// Snapshot returns what is remembered of every host, by policy and host, for
// pages and tests. Each host is read at one instant, but not all at the same.
func (t *Transport) Snapshot() []HostStatus {
	var list []HostStatus
	for _, p := range t.config.Load().policies {
		if t.store != nil && t.store.client.Why() == nil {
			list = append(list, t.store.status(t, p)...)
			continue
		}
		p.sites.mu.RLock()
		var all []*site
		for _, s := range p.sites.hosts {
			all = append(all, s)
		}
		overflow := p.sites.overflow
		p.sites.mu.RUnlock()
		if overflow != nil {
			all = append(all, overflow)
		}
		for _, s := range all {
			h := s.status(p)
			h.Overflow = s == overflow
			list = append(list, h)
		}
	}
	slices.SortFunc(list, func(a, b HostStatus) int {
		return cmp.Or(cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Host, b.Host))
	})
	return list
}

func (s *site) status(p *policy) HostStatus {
	h := HostStatus{Policy: p.name, Host: s.host, MaxInFlight: p.MaxInFlight, Breakers: s.breakers()}
	s.mu.Lock()
	defer s.mu.Unlock()
	var budgets []*line.Budget
	add := func(r *rule, digest string, b *line.Budget) {
		h.Rules = append(h.Rules, RuleStatus{Rule: r.name, KeyDigest: digest, Limit: limitOf(*p.spec(r.place))})
		budgets = append(budgets, b)
	}
	for i := range p.rules {
		r := &p.rules[i]
		if b := s.at(r.place); b != nil {
			add(r, "", b)
		}
		for id, e := range s.all() {
			if r.key != nil && id.place == r.place && e.budget != nil {
				add(r, e.text, e.budget)
			}
		}
	}
	var left []int64
	h.Waiting, h.InFlight, left = s.line.Status(budgets)
	for i := range left {
		h.Rules[i].Remaining = left[i]
	}
	h.hear(s.line.Heard(budgets), budgets)
	slices.SortStableFunc(h.Rules, func(a, b RuleStatus) int {
		return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.KeyDigest, b.KeyDigest))
	})
	return h
}

func (s *site) breakers() (list []BreakerStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.allGates() {
		if b := g.breaker.Load(); b != nil {
			list = append(list, BreakerStatus{g.host, b.State(), b.Delay(awake.Now()), b.Cause()})
		}
	}
	slices.SortFunc(list, func(a, b BreakerStatus) int { return cmp.Compare(a.Host, b.Host) })
	return list
}

// hear adds what answers have brought. h.Rules are the rules of budgets.
func (h *HostStatus) hear(all []line.Heard, budgets []*line.Budget) {
	for _, e := range all {
		rule, key := "", e.Label
		if i := slices.Index(budgets, e.Rule); i >= 0 {
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
	slices.SortStableFunc(h.Pauses, func(a, b PauseStatus) int {
		return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.KeyDigest, b.KeyDigest))
	})
	slices.SortStableFunc(h.Learned, func(a, b LearnedStatus) int {
		return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.KeyDigest, b.KeyDigest), cmp.Compare(a.Window, b.Window))
	})
}
