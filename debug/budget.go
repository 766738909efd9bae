package debug

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
)

// A budget is what is left under one rule and key: by the rule's own limit, by what the server
// has announced of it, and which of the two decides. What the server has announced of no rule is
// a budget without ours.
type budget struct {
	Rule string `json:"rule"`
	Key  string `json:"key_digest,omitempty"`
	// Resource is what the server names as the resource; empty where Rule says it.
	Resource string   `json:"resource,omitempty"`
	Ours     *ours    `json:"ours,omitempty"`
	Theirs   []theirs `json:"theirs,omitempty"` // the one with the least left is first
	// Binds is the one that has less left, "ours" or "theirs", or "both"; empty where neither
	// holds requests up.
	Binds string `json:"binds,omitempty"`

	OfRule bool `json:"-"` // it is a rule's, whether its limit is known or not
}

// Both reports that the limits of both sides are known.
func (b budget) Both() bool { return b.Ours != nil && len(b.Theirs) > 0 }

// OursBind reports that ours decides, or no other has less left.
func (b budget) OursBind() bool { return b.Binds == "ours" || b.Binds == "both" }

// TheirsBind is OursBind of theirs.
func (b budget) TheirsBind() bool { return b.Binds == "theirs" || b.Binds == "both" }

// An ours is what the limit of a rule has left.
type ours struct {
	Limit     string `json:"limit"`
	Most      count  `json:"most"`
	Remaining count  `json:"remaining"`
	Age       span   `json:"age_seconds,omitempty"` // since the store reported it
}

// Debt returns by how much it is overdrawn; zero or less if it is not.
func (o ours) Debt() count { return -o.Remaining }

// Old reports that it may have changed since.
func (o ours) Old() bool { return time.Duration(o.Age) >= time.Second }

// Fill is the part of it that is left, from 0 to 100.
func (o ours) Fill() int64 { return fill(o.Remaining, o.Most) }

// Unbounded reports that it holds nothing up.
func (o ours) Unbounded() bool { return o.Remaining == math.MaxInt64 }

// A theirs is what the server has announced of one limit. Without a source it was announced to
// another process.
type theirs struct {
	Name      string `json:"name,omitempty"`
	Source    string `json:"source,omitempty"`
	Limit     count  `json:"limit,omitempty"`
	Window    span   `json:"window_seconds,omitempty"`
	Remaining count  `json:"remaining"`
	Reset     span   `json:"reset_seconds"`
	Age       span   `json:"age_seconds"`
	Drift     count  `json:"drift"`
}

// Debt is as for ours.
func (l theirs) Debt() count { return -l.Remaining }

// Fill is as for ours.
func (l theirs) Fill() int64 { return fill(l.Remaining, l.Limit) }

// Unbounded is as for ours.
func (l theirs) Unbounded() bool { return l.Remaining == math.MaxInt64 }

func newTheirs(l headway.LearnedStatus) theirs {
	return theirs{
		Name: l.Name, Source: l.Source, Limit: count(l.Limit), Window: span(l.Window),
		Remaining: count(l.Remaining), Reset: span(l.Reset), Age: span(l.Age), Drift: count(l.Drift),
	}
}

func fill(left, most count) int64 {
	if most <= 0 {
		return 0
	}
	return int64(math.Round(100 * float64(min(max(left, 0), most)) / float64(most)))
}

// most returns the units of a full budget.
func most(l limiter.Limit) int64 {
	if l.Law == limiter.Bucket && l.Burst > 0 {
		return l.Burst
	}
	return l.N
}

// A row is what a budget is made from. It is read-only.
type row struct {
	rule   *headway.RuleStatus     // nil: the server alone has announced it, or the rule is not known yet
	theirs []headway.LearnedStatus // the one with the least left is first
}

// rowsOf returns the budgets of s: those of its rules, then those that only the server has
// announced.
func rowsOf(s headway.HostStatus) (rows []row) {
	type key struct{ rule, digest string }
	of := map[key][]headway.LearnedStatus{} // what is announced of rules
	for _, l := range s.Learned {
		if l.OfRule {
			k := key{l.Rule, l.KeyDigest}
			of[k] = append(of[k], l)
		}
	}
	for i := range s.Rules {
		r := &s.Rules[i]
		k := key{r.Rule, r.KeyDigest}
		rows = append(rows, row{r, leastFirst(of[k])})
		delete(of, k)
	}
	for _, l := range s.Learned {
		if k := (key{l.Rule, l.KeyDigest}); !l.OfRule {
			rows = append(rows, row{theirs: []headway.LearnedStatus{l}})
		} else if list := of[k]; list != nil {
			rows = append(rows, row{theirs: leastFirst(list)})
			delete(of, k)
		}
	}
	return rows
}

func leastFirst(list []headway.LearnedStatus) []headway.LearnedStatus {
	slices.SortStableFunc(list, func(a, b headway.LearnedStatus) int { return cmp.Compare(a.Remaining, b.Remaining) })
	return list
}

// announced returns what the announced limit with the least units has left.
func (r row) announced() int64 {
	switch {
	case len(r.theirs) > 0:
		return r.theirs[0].Remaining
	case r.elsewhere():
		return r.rule.Remaining
	}
	return math.MaxInt64
}

// elsewhere reports that the server has announced what is left, and to another process alone:
// what the store reports is less than the limit has.
func (r row) elsewhere() bool {
	return len(r.theirs) == 0 && r.rule != nil && r.rule.Remaining < r.rule.LimitRemaining
}

// own returns what the rule's limit has left.
func (r row) own() int64 {
	if r.rule == nil {
		return math.MaxInt64
	}
	return r.rule.LimitRemaining
}

// left returns how many units could start now.
func (r row) left() int64 { return min(r.own(), r.announced()) }

func (r row) budget() (b budget) {
	if s := r.rule; s != nil {
		b.OfRule = true
		b.Rule, b.Key = s.Rule, s.KeyDigest
		b.Ours = &ours{Limit: s.Limit.String(), Most: count(most(s.Limit)), Remaining: count(s.LimitRemaining), Age: span(s.Age)}
	} else {
		l := &r.theirs[0]
		if b.Rule, b.Key, b.OfRule = l.Rule, l.KeyDigest, l.OfRule; l.Rule != "learned "+l.Resource {
			b.Resource = l.Resource
		}
	}
	for _, l := range r.theirs {
		b.Theirs = append(b.Theirs, newTheirs(l))
	}
	if r.elsewhere() {
		b.Theirs = []theirs{{Remaining: count(r.rule.Remaining), Reset: -1, Age: span(r.rule.Age)}}
	}
	switch own, announced := r.own(), r.announced(); {
	case own < announced:
		b.Binds = "ours"
	case announced < own:
		b.Binds = "theirs"
	case own != math.MaxInt64:
		b.Binds = "both"
	}
	return b
}
