package headway

import (
	"cmp"
	"slices"
	"time"

	"github.com/headway-go/headway/breaker"
	"github.com/headway-go/headway/internal/awake"
	"github.com/headway-go/headway/internal/desk"
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
	// MaxInFlight when the policy reads no responses.
	InFlight int
	// MaxInFlight is the policy's; zero is no cap.
	MaxInFlight int
	// Rules are the budgets in use, by rule and digest.
	Rules []RuleStatus
	// Breakers is the breaker of the host, if its policy has one, or those of
	// all hosts of a Shared policy, by host.
	Breakers []BreakerStatus
	// Pauses are those that responses have raised and that have not ended.
	Pauses []PauseStatus
	// Learned are the limits that responses have announced, by rule, digest and window. Those of
	// a rule's budget are among them; see LearnedStatus.OfRule.
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

// A PauseStatus is a pause that a response has raised.
type PauseStatus struct {
	// Rule is the rule whose requests it holds up; empty for all.
	Rule string
	// KeyDigest is the digest of the identity that it holds up, several keys
	// joined by "+", each once; empty for all identities, and under Overflow.
	KeyDigest string
	// Overflow says that it holds up only the identities that there is no room to
	// remember; see Config.MaxHosts.
	Overflow bool
	// Resource is the server's name for the resource, bucket or endpoint that it holds
	// up; empty where it is not about one.
	Resource string
	// Left is the time until its end.
	Left time.Duration
	// Source is the dialect of the response; empty if the response gave no time
	// and the Transport chose one.
	Source string
}

// A LearnedStatus is what the server has announced of one limit.
type LearnedStatus struct {
	// Rule is the rule that it belongs to; if it belongs to none, "learned" and the
	// server's name for it.
	Rule string
	// OfRule says that it belongs to a rule: it limits the budget whose RuleStatus has the
	// same Rule and KeyDigest.
	OfRule bool
	// Name is the server's name for it; empty where it gives none.
	Name string
	// KeyDigest is as in PauseStatus.
	KeyDigest string
	// Overflow is as in PauseStatus.
	Overflow bool
	// Resource is the server's name for the resource, bucket or endpoint that the limit
	// is of; empty where it is not of one, or belongs to a rule.
	Resource string
	// Source is the dialect of the response.
	Source string
	// Window is the limit's period, by the response or the vendor's documentation; zero
	// if neither says.
	Window time.Duration
	// Limit is the most units per window; zero if the server does not announce it.
	Limit int64
	// Remaining is what is left now: what the last response says, less what has started
	// since and what the server may not have counted then, plus what has been restored. It is
	// negative when overdrawn, and math.MaxInt64 once all units have been restored and no
	// limit is known.
	Remaining int64
	// Reset is the time until units are restored, a second longer than announced if that is
	// in whole seconds; negative if it is not known.
	Reset time.Duration
	// Age is the time since the response.
	Age time.Duration
	// Drift is how many units more the server has counted than were used here, as
	// far as the announced number shows: what other clients have spent. Over a
	// Config.Store it is zero: no store reports it.
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
	// Remaining is how many units could start now, by Limit and by the limits that the
	// server has announced of this budget; negative in debt. Over a Config.Store it is what
	// the store last reported to this process, less what has started since from units
	// reserved by Store.Batch.
	Remaining int64
	// LimitRemaining is how many units Limit alone has left, whatever the server has
	// announced; negative in debt. It is never less than Remaining, and over a Config.Store
	// as old. Where it is more and no LearnedStatus is of this budget, the server has
	// announced what is left to another process. Both are math.MaxInt64 where SetPolicies
	// has just removed the rule.
	LimitRemaining int64
	// Age is the time since the store reported them; zero in memory. Other processes may
	// have used some since, and units may have come back.
	Age time.Duration
}

// Snapshot returns what is remembered of every host, by policy and host, for pages,
// metrics and tests. It never waits for a Config.Store, makes no round trip, and holds no
// lock for longer than it takes to read a few hundred entries: a host with more than that is
// read in pieces, each at one instant. Over a store it returns what the store last reported
// to this process; see RuleStatus.Age.
func (t *Transport) Snapshot() []HostStatus {
	var list []HostStatus
	for _, st := range t.desk.Status() {
		list = append(list, hostStatus(&st))
	}
	slices.SortFunc(list, func(a, b HostStatus) int {
		return cmp.Or(cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Host, b.Host))
	})
	return list
}

func hostStatus(st *desk.Status) HostStatus {
	h := HostStatus{
		Policy: st.Plan.Name, Host: st.Host, Overflow: st.Overflow,
		Waiting: st.Waiting, InFlight: st.InFlight, MaxInFlight: st.Plan.MaxInFlight,
	}
	for _, g := range st.Gates {
		if b := g.Breaker(); b != nil {
			h.Breakers = append(h.Breakers, BreakerStatus{g.Host, b.State(), b.Delay(awake.Now()), b.Cause()})
		}
	}
	for _, b := range st.Budgets {
		h.Rules = append(h.Rules, RuleStatus{Rule: b.Rule.Name, KeyDigest: b.KeyDigest, Limit: b.Limit, Remaining: b.Left, LimitRemaining: b.LimitLeft, Age: b.Age})
	}
	for _, a := range st.Announced {
		rule := ""
		if a.Rule != nil {
			rule = a.Rule.Name
		}
		if a.Pause > 0 {
			h.Pauses = append(h.Pauses, PauseStatus{Rule: rule, KeyDigest: a.KeyDigest, Overflow: a.Shared, Resource: a.Resource, Left: a.Pause, Source: a.Source})
			continue
		}
		if a.Rule == nil {
			rule = learnedName(a.Name)
		}
		h.Learned = append(h.Learned, LearnedStatus{
			Rule: rule, OfRule: a.Rule != nil, Name: a.Name,
			KeyDigest: a.KeyDigest, Overflow: a.Shared, Resource: a.Resource, Source: a.Source, Window: a.Window, Limit: max(0, a.Limit),
			Remaining: a.Left, Reset: a.Reset, Age: a.Age, Drift: a.Drift,
		})
	}
	sortBy(h.Rules, func(r *RuleStatus) (string, string, time.Duration) { return r.Rule, r.KeyDigest, 0 })
	sortBy(h.Pauses, func(p *PauseStatus) (string, string, time.Duration) { return p.Rule, p.KeyDigest, 0 })
	sortBy(h.Learned, func(l *LearnedStatus) (string, string, time.Duration) { return l.Rule, l.KeyDigest, l.Window })
	return h
}

// sortBy sorts rows by rule, digest and window.
func sortBy[T any](rows []T, key func(*T) (rule, digest string, window time.Duration)) {
	slices.SortStableFunc(rows, func(a, b T) int {
		rule, digest, window := key(&a)
		rule2, digest2, window2 := key(&b)
		return cmp.Or(cmp.Compare(rule, rule2), cmp.Compare(digest, digest2), cmp.Compare(window, window2))
	})
}
