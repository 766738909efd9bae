package headway

import (
	"context"
	"strings"
	"time"

	"github.com/headway-go/headway/internal/law"
	"github.com/headway-go/headway/internal/line"
	"github.com/headway-go/headway/retryafter"
)

// assumedReset bounds the time until units come back where the server says how
// long its windows are, but not when this one ends.
const assumedReset = time.Minute

// learn is visit.learn for all limits that an answer announces to a request that
// sendStarted has sent, of which nobody is told. With the first it ends the
// flight, under one lock. It is false where visit.learn has to look for what was
// forgotten meanwhile.
func (r *route) learn(at time.Duration, s *retryafter.Signal, flying *bool) bool {
	if r.policy.Server.Learn == LearnOff {
		return true
	}
	for i := range s.Limits() {
		l := &s.Limits()[i]
		if !l.HasRemaining {
			continue
		}
		var scope line.Scope
		if i := r.policy.ruleOf(l); i >= 0 {
			scope.Rule = r.budgets[i]
		}
		said := r.policy.said(l, at)
		if said.Empty() {
			continue
		}
		var ended []*line.Budget
		if *flying {
			ended, *flying = r.budgets, false
		}
		if _, err := r.site.line.AnnounceLimit(scope, line.AnnouncedKey{Name: l.Name, Window: l.Window}, s.Dialect, &said, ended); err != nil {
			return false
		}
	}
	return true
}

// plain reads what HTTP itself says of coming back.
var plain = retryafter.NewReader([]retryafter.Dialect{retryafter.RFC9110}, "")

// learn takes in one limit that an answer announces.
func (v *visit) learn(ctx context.Context, status int, dialect string, l *retryafter.LimitSignal) {
	if !l.HasRemaining {
		return
	}
	said := v.policy.said(l, v.grant.At)
	if said.Empty() {
		return
	}
	e := Event{
		Kind: EventLearned, Status: status, Dialect: dialect,
		Limit: max(0, said.Limit), Remaining: l.Remaining, Reset: time.Duration(said.Reset),
		Cut: l.HasReset && l.Reset > v.policy.maxPause(),
	}
	key := line.AnnouncedKey{Name: l.Name, Window: l.Window}
	if v.far != nil {
		v.learnFar(ctx, key, dialect, said, v.ruleOf(l), e)
		return
	}
	err := v.retry(ctx, func() (err error) {
		var s line.Scope
		own := int64(1)
		if c := v.ruleOf(l); c != nil {
			s.Rule, e.Rule, own = c.budget, c.rule.name, c.cost
			if v.t.observer != nil {
				e.KeyDigest = v.t.digestOf(c.key)
			}
		} else if s.Identity = v.who; s.Identity != 0 && v.t.observer != nil {
			e.KeyDigest = v.label()
		}
		if v.grant.InFlight {
			said.Own = own
		}
		e.Drift, err = v.site.line.AnnounceLimit(s, key, dialect, &said, nil)
		return err
	})
	if err == nil && v.t.observer != nil {
		if e.Rule == "" {
			e.Rule = v.t.learned.text(sumOf(l.Name), l.Name, learnedName)
		}
		v.tell(ctx, e)
	}
}

// said is what the answer to a request that started at an instant says of a
// limit, as the line takes it.
func (p *policy) said(l *retryafter.LimitSignal, started time.Duration) law.Said {
	said := law.Said{Left: l.Remaining, Limit: -1, Reset: -1, Started: int64(started), Pace: p.Server.Learn == LearnPace}
	if l.HasLimit {
		said.Limit = l.Limit
		if l.Limit < 0 && l.Remaining <= 0 {
			said.Limit = 0 // as a server without a limit says too
		}
	}
	most := p.maxPause()
	if l.HasWindow {
		said.Window = int64(min(l.Window, most))
	}
	switch {
	case l.HasReset:
		said.Reset = int64(min(l.Reset, most))
	case l.HasWindow && l.Window <= assumedReset:
		said.Reset = int64(l.Window)
	}
	return said
}

// learnedName is the name of the rule that a limit without a rule is.
func learnedName(name string) string {
	if name == "" {
		return "learned"
	}
	return "learned " + name
}

// ruleOf returns the claim of the rule that a server's limit belongs to, or nil.
func (v *visit) ruleOf(l *retryafter.LimitSignal) (of *claim) {
	claims, best := v.claims.all(), 0
	for i := range claims {
		c := &claims[i]
		if fit := c.rule.fit(l); fit > best && c.cost > 0 && v.owns(c) {
			of, best = c, fit
		}
	}
	return of
}

// owns reports whether a claim's budget is that of the request's identity alone, so
// that what a server says to the identity may be said of the budget: all keys that
// make up the identity are the budget's.
func (v *visit) owns(c *claim) bool {
	if v.identity == 0 {
		return true
	}
	for _, o := range v.claims.all() {
		if o.rule.key != nil && (c.rule.key == nil || o.rule.keyed != c.rule.keyed) {
			return false
		}
	}
	return true
}

// ruleOf is visit.ruleOf for a request that takes one unit under each rule: the
// index of the rule, or -1.
func (p *policy) ruleOf(l *retryafter.LimitSignal) int {
	of, best := -1, 0
	for i := range p.rules {
		if fit := p.rules[i].fit(l); fit > best {
			of, best = i, fit
		}
	}
	return of
}

// fit says by what a server's limit belongs to the rule; it belongs to the one that
// it fits best. 3: by Announced. 2: by Name. 1: by the length of its windows. 0: it
// does not. A rule with Announced takes no limit of another label.
func (r *rule) fit(l *retryafter.LimitSignal) int {
	switch {
	case l.Name != "" && r.label != "":
		if strings.EqualFold(r.label, l.Name) {
			return 3
		}
	case l.Name != "" && strings.EqualFold(r.name, l.Name):
		return 2
	case l.HasWindow && !l.OtherUnit && r.spec.Period() == l.Window:
		return 1
	}
	return 0
}
