package headway

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/headway-go/headway/internal/awake"
	"github.com/headway-go/headway/internal/law"
	"github.com/headway-go/headway/internal/line"
	"github.com/headway-go/headway/internal/storeline"
	"github.com/headway-go/headway/retryafter"
	"github.com/headway-go/headway/store"
)

// errAway says that the store decides nothing; see Policy.Store.Down.
var errAway = storeline.ErrDown

// A farStore is a Transport's store.
type farStore struct{ client storeline.Client }

// A farVisit is what a visit knows of its way through a store.
type farVisit struct {
	line  *storeline.Line
	ask   storeline.Ask
	grant *storeline.Grant
}

// groupOf is what the store keeps together: a policy at a host, or at all of its
// hosts where it is Shared.
func (p *policy) groupOf(host string) string {
	if p.Shared {
		host = ""
	}
	return p.group + url.PathEscape(host)
}

// budgetName is what the store calls the budget of a rule and key.
func (v *visit) budgetName(r *rule, key keyRef) string {
	name := r.stored
	if r.key != nil {
		name += "/" + v.t.digestOf(key)
	}
	return name
}

// hostEar is who hears what concerns everybody.
const hostEar = "ear"

// ear is who hears what concerns the request's identity alone, or everybody
// where it has none.
func (v *visit) ear() string {
	if v.identity == 0 {
		return hostEar
	}
	var b strings.Builder
	b.WriteString(hostEar)
	for _, c := range v.claims.all() {
		if c.rule.key != nil {
			b.WriteByte('/')
			b.WriteString(v.budgetName(c.rule, c.key))
		}
	}
	return b.String()
}

// openFar finds the line and the needs, and the gate if there is one.
func (v *visit) openFar(ctx context.Context) {
	ss := v.policy.sites
	f := &farVisit{line: v.t.store.client.Line(ss, v.policy.groupOf(v.name), ss.plan)}
	v.far = f
	if v.policy.Breaker != nil {
		v.locate(ctx)
		if v.gate != nil {
			f.ask.Local, f.ask.Gate = &v.site.line, &v.gate.line
		}
	}
	f.ask.Identity = v.identity
	f.ask.Exact = v.settles(CallFrom(ctx))
	claims := v.claims.all()
	for i := range claims {
		if c := &claims[i]; c.cost > 0 {
			f.ask.Needs = append(f.ask.Needs, storeline.Need{Budget: v.budgetName(c.rule, c.key), Cost: c.cost})
		}
	}
	if v.policy.listens {
		if ear := v.ear(); ear != hostEar {
			f.ask.Audiences = append(f.ask.Audiences, ear)
		}
		f.ask.Audiences = append(f.ask.Audiences, hostEar)
	}
	f.line.Remember(&f.ask)
}

// endFar ends what openFar has begun.
func (v *visit) endFar() {
	if v.far != nil {
		v.far.line.Unuse()
		v.far = nil
	}
}

// plan is what the policy in force says of a line of the store; nil where it is gone.
func (ss *sites) plan() *storeline.Plan {
	if p := ss.current.Load(); p != nil {
		return p.plan
	}
	return nil
}

// enterFar is enter by way of the store. It returns an undecided error where that
// decides nothing.
func (v *visit) enterFar(ctx context.Context, maxWait time.Duration, noSlot bool) (*line.Refusal, error) {
	for began := time.Now(); ; {
		v.openFar(ctx)
		f := v.far
		f.ask.MaxWait, f.ask.NoSlot = maxWait, noSlot
		if v.record != nil {
			f.ask.Journal = &v.record.line
		}
		v.t.tellNews(ctx)
		grant, refusal, err := f.line.Enter(ctx, &f.ask)
		v.grant = line.Grant{Waited: time.Since(began)}
		if grant != nil && err == nil {
			f.grant, v.granted, v.heeded = grant, true, grant.Heeded
			v.grant.At, v.grant.Waited, v.grant.Slot, v.grant.Pass = time.Duration(grant.At), grant.Waited, grant.Slot, grant.Pass
		}
		v.yield()
		v.t.tellNews(ctx)
		v.gate.tell()
		switch {
		case err == line.ErrRetired:
			v.endFar()
			continue
		case err != nil:
			return nil, err
		case refusal != nil:
			return refusal, nil
		}
		return nil, nil
	}
}

// claimOf returns the claim of the need with an index, or nil.
func (v *visit) claimOf(need int) *claim {
	claims := v.claims.all()
	for i := range claims {
		if claims[i].cost <= 0 {
			continue
		}
		if need == 0 {
			return &claims[i]
		}
		need--
	}
	return nil
}

// yield hands over if there is an observer, which is called with nothing held.
func (v *visit) yield() {
	if v.granted && v.t.observer != nil {
		v.handOver()
	}
}

// handOver lets those go on who started after v. The second time it does nothing.
func (v *visit) handOver() {
	if v.handed {
		return
	}
	v.handed = true
	if v.far != nil {
		v.far.line.Sent(v.far.grant)
		return
	}
	v.site.line.Sent(&v.grant)
}

// cancelStart gives back a start that was not sent, if there is one.
func (v *visit) cancelStart() {
	if !v.granted {
		return
	}
	v.granted = false
	if v.far != nil {
		v.far.line.Cancel(v.far.grant)
		return
	}
	v.site.line.Cancel(&v.grant, v.needs.all())
}

// bound is the context that bounds what the caller waits for once the response is
// there: a slow store does not keep it past the deadline.
func (v *visit) bound() context.Context {
	if v.req == nil { // a Quota's
		return context.Background()
	}
	return v.req.Context()
}

// hasAnswer tells the line that the request has its answer, and returns the
// instant from which on its units count.
func (v *visit) hasAnswer() time.Duration {
	switch {
	case v.far != nil:
		return time.Duration(v.far.line.Responded(v.bound(), v.far.grant))
	case line.Strict(v.needs.all()):
		return v.site.line.Responded(v.needs.all())
	}
	return v.grant.At
}

// landed tells the line that what the answer says has been heard.
func (v *visit) landed() {
	if v.far != nil {
		v.far.line.Done(v.far.grant)
		return
	}
	v.site.line.Done(&v.grant, v.needs.all())
}

// releaser returns what gives the slot back.
func (v *visit) releaser() func() {
	if v.far != nil {
		return v.far.line.Release
	}
	return v.site.line.Release
}

// recheck looks again at those who stand before g in lines of the store, after its
// breaker has changed, or one who has passed it has landed.
func (s *farStore) recheck(g *gate) {
	ss := g.site.sites
	if g.host == "" { // it is that of many hosts
		s.client.Each(func(l *storeline.Line) {
			if l.Owner() == ss {
				l.Recheck(&g.site.line, &g.line)
			}
		})
	} else if l := s.client.Find(ss, url.PathEscape(ss.name)+"/"+url.PathEscape(g.site.host)); l != nil {
		l.Recheck(&g.site.line, &g.line)
		l.Unuse()
	}
}

// remaining returns what is left under a claim; with a store as it was at the
// start.
func (v *visit) remaining(c *claim) int64 {
	if v.far == nil {
		return v.site.line.Remaining(c.budget)
	}
	return v.far.grant.Remaining(v.budgetName(c.rule, c.key))
}

// succeeded tells the pauses that held the request that it has succeeded.
func (v *visit) succeeded() {
	if v.far == nil {
		v.site.line.Succeeded(v.who, v.grant.At)
		return
	}
	v.far.line.Do(v.bound(), store.Op{
		Kind: store.OpSuccess, Group: v.policy.groupOf(v.name), Audiences: v.far.ask.Audiences, Taken: int64(v.grant.At),
	}, false, false) // where the store is away the pauses grow on
}

// served tells the line that a request without limits has succeeded.
func (v *visit) served() {
	if v.far == nil {
		v.site.line.Served(v.grant.At, false)
		return
	}
	v.far.line.Served(store.Instant(v.grant.At))
}

// whoseFar returns whose pause an answer is: of those who hear ear, and of them, if
// there is only, of those who need that budget.
func (v *visit) whoseFar(s *retryafter.Signal) (ear, only string) {
	ear = hostEar
	if s.Scope != retryafter.ScopeHost && v.identity != 0 {
		ear = v.ear()
	}
	if c := v.narrowest(); s.Scope == retryafter.ScopeRule && c != nil {
		only = v.budgetName(c.rule, c.key)
	}
	return ear, only
}

// pauseFar is pause by way of the store.
func (v *visit) pauseFar(s *retryafter.Signal, p *line.Pause, e Event) Event {
	if p.For == 0 {
		return e
	}
	op := store.Op{Kind: store.OpPause, Group: v.policy.groupOf(v.name), Pause: &store.Pause{
		For: p.For, Grow: p.Grow, Most: p.Most, Started: int64(p.Started), Source: p.Source,
	}}
	for _, spec := range p.Limits {
		op.Pause.Limits = append(op.Pause.Limits, limitOf(spec))
	}
	if op.Audience, op.Only = v.whoseFar(s); op.Audience != hostEar {
		e.KeyDigest = v.label()
	}
	if op.Only != "" {
		e.Rule = v.narrowest().rule.name
	}
	if v.policy.open && op.Audience == hostEar && op.Only == "" {
		op.Pause.Found = max(1, v.far.line.Found(op.Pause.Started))
	}
	res, err := v.far.line.Do(v.bound(), op, false, true)
	if e.Pause = res.Paused; err == nil && e.Pause > 0 {
		v.far.line.Paused(op.Audience, op.Only, line.Span{To: e.Pause, Source: p.Source, Status: p.Status})
	}
	if err != nil {
		e.Pause = 0
	}
	return e
}

// learnFar is learn by way of the store, for the rule of c, or the identity where
// that is nil.
func (v *visit) learnFar(ctx context.Context, key line.AnnouncedKey, dialect string, said law.Said, c *claim, e Event) {
	op := store.Op{Kind: store.OpLearn, Group: v.policy.groupOf(v.name), Audience: hostEar, Learn: &store.Learn{
		Name: key.Name, Window: key.Window, Left: said.Left, Limit: said.Limit, Reset: time.Duration(said.Reset),
		Period: time.Duration(said.Window), Started: said.Started, Pace: said.Pace, Source: dialect,
	}}
	where := hostEar
	switch {
	case c != nil:
		op.Only, e.Rule, e.KeyDigest = v.budgetName(c.rule, c.key), c.rule.name, v.t.digestOf(c.key)
		where = op.Only
	case v.identity != 0:
		op.Audience, e.KeyDigest = v.ear(), v.label()
		where = op.Audience
	}
	op.Learn.InFlight = v.far.line.InFlight(where, v.far.grant)
	if _, err := v.far.line.Do(v.bound(), op, false, true); err == nil && v.t.observer != nil {
		if e.Rule == "" {
			e.Rule = learnedName(key.Name)
		}
		v.tell(ctx, e)
	}
}

// delay returns how long the request would wait if it came now. Its error is the
// context's, or that of a store whose place nothing takes (StoreDownRefuse).
func (v *visit) delay(ctx context.Context, noSlot bool) (time.Duration, error) {
	if v.t.store != nil {
		d, err := v.delayFar(ctx, noSlot)
		if err == nil || err == ctx.Err() || v.policy.Store.Down == StoreDownRefuse {
			return d, err
		}
	}
	v.open(ctx)
	if r := v.site.line.Delay(&line.Ask{Needs: v.needs.all(), NoSlot: noSlot, Identity: v.who}, v.gate.side()); r != nil {
		return r.RetryAfter, nil
	}
	return 0, nil
}

func (v *visit) delayFar(ctx context.Context, noSlot bool) (d time.Duration, err error) {
	defer v.endFar()
	v.openFar(ctx)
	v.far.ask.NoSlot = noSlot
	r, err := v.far.line.Delay(ctx, &v.far.ask)
	if err != nil {
		v.goNear(err)
		return 0, err
	}
	if r != nil {
		d = r.RetryAfter
	}
	if v.gate != nil && !v.gate.Closed() {
		d = max(d, v.gate.Delay(awake.Now()))
	}
	return d, nil
}

// do does an operation with n units of a claim, which were taken at an instant. A
// rule that is no more has all that anybody wants. When ctx ends, do returns its
// error; the operation is done all the same.
func (s *farStore) do(ctx context.Context, v *visit, kind store.OpKind, c *claim, n int64, taken time.Duration) (store.Result, error) {
	ss, group := v.policy.sites, v.policy.groupOf(v.name)
	p := ss.plan()
	if p == nil {
		return store.Result{Remaining: []int64{law.Unlimited}}, nil
	}
	limit, ok := p.Limits[c.rule.stored]
	if !ok {
		return store.Result{Remaining: []int64{law.Unlimited}}, nil
	}
	l := s.client.Line(ss, group, ss.plan)
	defer l.Unuse()
	l.Remember(&storeline.Ask{Needs: []storeline.Need{{Budget: v.budgetName(c.rule, c.key)}}})
	need := store.Need{Budget: v.budgetName(c.rule, c.key), Limit: limit, Cost: n, Taken: int64(taken)}
	frees := kind == store.OpGive || kind == store.OpSpend && n < 0
	uses := kind == store.OpSpend && n > 0
	return l.Do(ctx, store.Op{Kind: kind, Group: group, Needs: []store.Need{need}}, frees, uses)
}

// statuses returns what is known of the hosts of policies without asking the store.
// near is what this process's memory has of them.
func (s *farStore) statuses(policies map[*sites]*policy, near map[*site]*sight) (list []HostStatus) {
	type host struct {
		sites *sites
		name  string
	}
	sights := make(map[host]*sight, len(near))
	for _, n := range near {
		if !n.overflow {
			sights[host{n.sites, n.host}] = n
		}
	}
	seen := map[*storeline.Line]bool{}
	s.client.Each(func(l *storeline.Line) {
		ss := l.Owner().(*sites)
		p := policies[ss]
		if p == nil || seen[l] {
			return
		}
		seen[l] = true
		h := farStatus(p, l)
		if n := sights[host{ss, h.Host}]; n != nil {
			h.Breakers = n.breakers()
		}
		list = append(list, h)
	})
	return list
}

func farStatus(p *policy, l *storeline.Line) HostStatus {
	_, escaped, _ := strings.Cut(l.Group(), "/")
	name, err := url.PathUnescape(escaped)
	if err != nil {
		panic(err) // group has escaped it
	}
	h := HostStatus{Policy: p.name, Host: name, MaxInFlight: p.MaxInFlight}
	h.Waiting, h.InFlight = l.Waiting()
	rules := map[string]*rule{} // by the name that the store knows
	for i := range p.rules {
		rules[p.rules[i].stored] = &p.rules[i]
	}
	var heard []line.Announced
	places := map[*line.Budget]int{} // in h.Rules
	budgets := map[string]*line.Budget{}
	var found []store.Announced
	for k := range l.Known {
		found = append(found, k.Announcements...)
		stored, digest, _ := strings.Cut(k.Name, "/")
		r := rules[stored]
		if k.IsAudience || r == nil || !k.Reported && len(k.Announcements) == 0 {
			continue
		}
		budgets[k.Name] = new(line.Budget)
		if k.Reported {
			places[budgets[k.Name]] = len(h.Rules)
			h.Rules = append(h.Rules, RuleStatus{Rule: r.name, KeyDigest: digest, Limit: limitOf(r.spec), Remaining: k.Remaining, Age: k.Age})
		}
	}
	for _, e := range found {
		l := line.Announced{
			Source: e.Source, Pause: e.Pause, AnnouncedKey: line.AnnouncedKey{Name: e.Name, Window: e.Window},
			Left: e.Left, Limit: e.Limit, Reset: e.Reset, Age: e.Age,
		}
		if l.Rule = budgets[e.Audience]; l.Rule == nil {
			l.Rule, l.Label = budgets[e.Only], earLabel(e.Audience)
		}
		heard = append(heard, l)
	}
	h.hear(heard, places)
	h.sort()
	return h
}

// earLabel returns the digests of an ear's identity.
func earLabel(ear string) string {
	var digests []string
	parts := strings.Split(ear, "/")
	for i := 2; i < len(parts); i += 2 {
		digests = append(digests, parts[i])
	}
	return labelOf(digests)
}

var errNoSecret = errors.New("headway: Secret is empty: want the same secret in all processes that share the Store, since budgets are kept by the digests of keys")
