package debug

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
)

// shown returns a budget as "rule key: ours LEFT; theirs NAME LEFT, NAME LEFT; binds".
func shown(b budget) string {
	show := func(n count) string {
		if n == math.MaxInt64 {
			return "all"
		}
		return fmt.Sprint(int64(n))
	}
	parts := []string{b.Rule + b.Key}
	if b.Ours != nil {
		parts = append(parts, "ours "+show(b.Ours.Remaining))
	}
	var list []string
	for _, l := range b.Theirs {
		list = append(list, l.Name+show(l.Remaining))
	}
	if list != nil {
		parts = append(parts, "theirs "+strings.Join(list, ","))
	}
	if b.Binds != "" {
		parts = append(parts, b.Binds)
	}
	return strings.Join(parts, " ")
}

// Each budget is one row: what its limit has left, what the server has announced of it, and
// which has less.
func TestOneRowForEachBudget(t *testing.T) {
	rule := func(name, key string, least, own int64) headway.RuleStatus {
		return headway.RuleStatus{Rule: name, KeyDigest: key, Limit: limiter.PerMinute(100), Remaining: least, LimitRemaining: own}
	}
	of := func(name, key, label string, left int64) headway.LearnedStatus {
		return headway.LearnedStatus{Rule: name, OfRule: true, KeyDigest: key, Name: label, Source: "d", Remaining: left}
	}
	alone := func(label, key string, left int64) headway.LearnedStatus {
		return headway.LearnedStatus{Rule: "learned " + label, KeyDigest: key, Name: label, Source: "d", Remaining: left}
	}
	const all = math.MaxInt64
	for _, tt := range []struct {
		name    string
		rules   []headway.RuleStatus
		learned []headway.LearnedStatus
		want    string
	}{
		{"ours alone", []headway.RuleStatus{rule("r", "", 5, 5)}, nil, "r ours 5 ours"},
		{"ours less", []headway.RuleStatus{rule("r", "", 5, 5)}, []headway.LearnedStatus{of("r", "", "n", 6)}, "r ours 5 theirs n6 ours"},
		{"theirs less", []headway.RuleStatus{rule("r", "", 4, 5)}, []headway.LearnedStatus{of("r", "", "n", 4)}, "r ours 5 theirs n4 theirs"},
		{"as much", []headway.RuleStatus{rule("r", "", 5, 5)}, []headway.LearnedStatus{of("r", "", "n", 5)}, "r ours 5 theirs n5 both"},
		{"both in debt", []headway.RuleStatus{rule("r", "", -3, -1)}, []headway.LearnedStatus{of("r", "", "n", -3)}, "r ours -1 theirs n-3 theirs"},
		{"all of theirs is back", []headway.RuleStatus{rule("r", "", 5, 5)}, []headway.LearnedStatus{of("r", "", "n", all)}, "r ours 5 theirs nall ours"},
		{"neither", []headway.RuleStatus{rule("r", "", all, all)}, []headway.LearnedStatus{of("r", "", "n", all)}, "r ours all theirs nall"},
		{"many labels", []headway.RuleStatus{rule("r", "", 1, 9)}, []headway.LearnedStatus{of("r", "", "x", all), of("r", "", "y", 7), of("r", "", "z", 1), of("r", "", "w", 7)}, "r ours 9 theirs z1,y7,w7,xall theirs"},
		{
			"each key its own", []headway.RuleStatus{rule("r", "1", 5, 5), rule("r", "2", 5, 5), rule("s", "1", 5, 5)},
			[]headway.LearnedStatus{of("r", "2", "n", 4), of("s", "1", "n", 3)}, "r1 ours 5 ours; r2 ours 5 theirs n4 theirs; s1 ours 5 theirs n3 theirs",
		},
		{
			"of no rule", []headway.RuleStatus{rule("r", "", 5, 5)},
			[]headway.LearnedStatus{alone("n", "", 4), alone("n", "1", all), alone("n", "", 8)}, "r ours 5 ours; learned n theirs n4 theirs; learned n1 theirs nall; learned n theirs n8 theirs",
		},
		{
			"a rule with the name of one of none", []headway.RuleStatus{rule("learned n", "", 5, 5)},
			[]headway.LearnedStatus{alone("n", "", 4)}, "learned n ours 5 ours; learned n theirs n4 theirs",
		},
		{"a rule that is not known yet", nil, []headway.LearnedStatus{of("r", "", "y", 7), of("r", "", "z", 1)}, "r theirs z1,y7 theirs"},
		{"announced to another process", []headway.RuleStatus{rule("r", "", 4, 5)}, nil, "r ours 5 theirs 4 theirs"},
		{"reported before it was announced", []headway.RuleStatus{rule("r", "", 5, 5)}, []headway.LearnedStatus{of("r", "", "n", 2)}, "r ours 5 theirs n2 theirs"},
	} {
		h := newHost(headway.HostStatus{Policy: "p", Host: "h", Rules: tt.rules, Learned: tt.learned}, new(sight), window{rows: maxRows})
		var got []string
		for _, b := range h.Budgets {
			got = append(got, shown(b))
		}
		if got := strings.Join(got, "; "); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// Those with the least left by either limit are shown, in their order.
func TestBudgetsThatAreLeftOut(t *testing.T) {
	s := headway.HostStatus{Policy: "p", Host: "h"}
	for i, own := range []int64{9, 3, 8, 7} {
		r := headway.RuleStatus{Rule: fmt.Sprint("r", i), Limit: limiter.PerMinute(100), Remaining: own, LimitRemaining: own}
		if i == 2 {
			r.Remaining = 1
			s.Learned = append(s.Learned, headway.LearnedStatus{Rule: r.Rule, OfRule: true, Remaining: 1})
		}
		s.Rules = append(s.Rules, r)
	}
	s.Learned = append(s.Learned, headway.LearnedStatus{Rule: "learned", Remaining: 2})
	h := newHost(s, new(sight), window{rows: 3})
	var got []string
	for _, b := range h.Budgets {
		got = append(got, shown(b))
	}
	if want := "r1 ours 3 ours; r2 ours 8 theirs 1 theirs; learned theirs 2 theirs"; strings.Join(got, "; ") != want || h.MoreBudgets != 2 {
		t.Errorf("got %q, and %d more, want %q and 2", got, h.MoreBudgets, want)
	}
}

// The text of a row on the page.
func TestTextOfBudgets(t *testing.T) {
	server := headway.LearnedStatus{
		Rule: "r", OfRule: true, Name: "tokens", Source: "draft", Limit: 5000, Remaining: 1234, Reset: 30 * time.Second, Age: 7 * time.Second, Drift: 37,
	}
	ours := headway.RuleStatus{Rule: "r", Limit: limiter.PerMinute(2000), Remaining: 1234, LimitRemaining: 1500}
	for _, tt := range []struct {
		name string
		of   func(r *headway.RuleStatus, l *headway.LearnedStatus)
		want string
	}{
		{"theirs", func(*headway.RuleStatus, *headway.LearnedStatus) {},
			"r 2000/1m ours 1,500 of 2,000 left the server's tokens binds 1,234 of 5,000 left more in 30 s; read as draft 7 s ago drift 37, spent by others"},
		{"ours", func(r *headway.RuleStatus, l *headway.LearnedStatus) {
			r.LimitRemaining, l.Drift, l.Name, l.Reset = 900, 0, "", -1
		},
			"r 2000/1m ours binds 900 of 2,000 left the server's 1,234 of 5,000 left read as draft 7 s ago"},
		{"both, in debt", func(r *headway.RuleStatus, l *headway.LearnedStatus) {
			r.LimitRemaining, r.Age, l.Remaining, l.Drift, l.Window = -5, 3*time.Second, -5, 0, time.Minute
		}, "r 2000/1m ours binds 5 more than 2,000 spent, 3 s ago the server's tokens binds overdrawn by 5 of 5,000 per 60 s; more in 30 s; read as draft 7 s ago"},
		{"without a limit", func(r *headway.RuleStatus, l *headway.LearnedStatus) {
			r.LimitRemaining, l.Remaining, l.Limit, l.Drift = math.MaxInt64, math.MaxInt64, 0, 0
		}, "r 2000/1m ours no limit the server's tokens all is back more in 30 s; read as draft 7 s ago"},
		{"of another process", func(r *headway.RuleStatus, l *headway.LearnedStatus) {
			r.Age, l.OfRule, l.Rule = 2*time.Second, false, "learned tokens"
		},
			"r 2000/1m ours 1,500 of 2,000 left, 2 s ago the server's binds 1,234 left announced to another process " +
				"learned tokens ours none the server's 1,234 of 5,000 left more in 30 s; read as draft 7 s ago drift 37, spent by others"},
		{"of a resource", func(_ *headway.RuleStatus, l *headway.LearnedStatus) {
			l.OfRule, l.Rule, l.Resource, l.Drift = false, "learned tokens", "search", 0
		}, "learned tokens of search ours none the server's 1,234 of 5,000 left"},
		{"of a resource that gives it its name", func(_ *headway.RuleStatus, l *headway.LearnedStatus) {
			l.OfRule, l.Rule, l.Resource, l.Drift = false, "learned search", "search", 0
		}, "learned search ours none"},
		{"not known yet", func(_ *headway.RuleStatus, l *headway.LearnedStatus) { l.Rule, l.Drift = "s", 0 },
			"s ours not known yet the server's tokens 1,234 of 5,000 left more in 30 s; read as draft 7 s ago"},
	} {
		r, l := ours, server
		tt.of(&r, &l)
		at := time.Now()
		s := &sight{at: at, hosts: []headway.HostStatus{{Policy: "p", Host: "h", Rules: []headway.RuleStatus{r}, Learned: []headway.LearnedStatus{l}}}}
		var b strings.Builder
		if err := page.ExecuteTemplate(&b, "live", newView(s, window{limit: 1, rows: maxRows, page: true})); err != nil {
			t.Fatal(err)
		}
		if got := textOf("<main " + b.String()); !strings.Contains(got, tt.want) {
			t.Errorf("%s: no %q in %q", tt.name, tt.want, got)
		}
	}
}
