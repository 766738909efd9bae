package headway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/headway-go/headway/breaker"
	"github.com/headway-go/headway/internal/attempt"
	"github.com/headway-go/headway/internal/awake"
	"github.com/headway-go/headway/internal/fault"
	"github.com/headway-go/headway/internal/line"
	"github.com/headway-go/headway/internal/match"
	"github.com/headway-go/headway/internal/respbody"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/retryafter"
)

// A visit is one request on its way through the Transport.
type visit struct {
	t   *Transport
	req *http.Request
	route
	site   *site // the route's, or its successor
	gate   *gate // of site; nil: no breaker
	grant  line.Grant
	cancel func()    // of AttemptTimeout; nil: none, or the body's
	far    *farVisit // its way through a store; nil: it is in memory
	away   error     // why it is, though there is a store

	claims list[claim]     // the rules that match, narrow before wide
	needs  list[line.Need] // what they take, without those that cost nothing

	identity  uint64 // the keys of the rules that match; zero: none
	newcomers uint64 // the identity of all whose keys, under these rules, there is no room for
	keyed     int    // how many of these rules have keys
	who       uint64 // as whom it listens: one of the two; zero: none

	record *record          // nil: it is not traced
	kept   *keptEvents      // what tell has kept; nil: it reports at once
	heard  *attempt.Reading // where to leave how its response was read; nil: nowhere
	body   *fault.Body      // what follows its body; nil: nothing

	granted, handed, sent, answered bool
	heeded                          bool // its needs have what an answer brought
}

// A list keeps its first few elements in place, so that a visit stays on the
// stack.
type list[T any] struct {
	few  [4]T
	n    int // how many of few are in use
	more []T // all elements, once they are too many for few
}

func (l *list[T]) all() []T {
	if l.more != nil {
		return l.more
	}
	return l.few[:l.n]
}

func (l *list[T]) add(v T) {
	if l.n < len(l.few) {
		l.few[l.n] = v
		l.n++
		return
	}
	if l.more == nil {
		l.more = append(l.more, l.few[:]...)
	}
	l.more = append(l.more, v)
}

// set replaces the elements by those of a slice that all has returned and others
// may have appended to.
func (l *list[T]) set(s []T) {
	if len(s) <= len(l.few) {
		l.n, l.more = copy(l.few[:], s), nil
		return
	}
	l.more = slices.Clone(s)
}

func (l *list[T]) clear() { l.n, l.more = 0, nil }

// A claim is one rule's part in a request.
type claim struct {
	rule   *rule
	key    keyRef // of none where the rule has none
	cost   int64
	budget *line.Budget // nil until opened
}

// match finds the rules that apply, and asks them for key and cost.
func (v *visit) match(call Call) *KeyError {
	target := match.TargetOf(v.req)
	a := attempt.From(v.req.Context())
	for i := range v.policy.rules {
		r := &v.policy.rules[i]
		if !r.Matches(target) || r.first && a != nil && a.N > 0 {
			continue
		}
		c := claim{rule: r, cost: 1}
		var err error
		if r.key != nil {
			var key string
			if key, err = r.key(v.req); err == nil && key == "" {
				err = errEmptyKey
			}
			c.key = refTo(key)
			v.identify(r, c.key)
		}
		switch {
		case err != nil:
		case r.cost != nil:
			c.cost, err = r.cost(v.req)
		case r.isLimit && call.Cost != 0:
			c.cost = call.Cost
		}
		if err == nil && c.cost < 0 {
			err = fmt.Errorf("the cost is %d; it must be 0 or more", c.cost)
		}
		if err != nil {
			return &KeyError{Policy: v.policy.name, Rule: r.name, Err: err}
		}
		if a != nil && a.Free {
			c.cost = 0
		}
		v.claims.add(c)
	}
	return nil
}

// locate finds the site and, for a request, its gate.
func (v *visit) locate(ctx context.Context) {
	site, gate, news := v.route.site, v.route.gate, false
	if site == nil || v.site != nil { // not known yet, or forgotten meanwhile
		site, news = v.t.table.site(v.policy, v.name)
		if v.req != nil {
			var n bool
			gate, n = v.t.gate(site, v.policy, v.name)
			news = news || n
		}
		v.t.remember(&v.route, site, gate)
	}
	site.touch()
	if gate != nil {
		gate.touch()
	}
	v.site, v.gate = site, gate
	if news {
		v.tell(ctx, Event{Kind: EventOverflow})
	}
}

// open finds the site, and the budgets of the claims.
func (v *visit) open(ctx context.Context) {
	v.locate(ctx)
	v.openBudgets(ctx)
}

func (v *visit) openBudgets(ctx context.Context) {
	news := false
	v.needs.clear()
	claims := v.claims.all()
	for i := range claims {
		c := &claims[i]
		var n bool
		c.budget, n = v.t.table.budget(v.site, v.gate, claims[:i], c.rule, c.key)
		news = news || n
		if c.cost > 0 {
			v.needs.add(line.Need{B: c.budget, Cost: c.cost})
		}
	}
	news = v.chooseEar() || news
	if news {
		v.tell(ctx, Event{Kind: EventOverflow})
	}
}

// run takes the request through the line and sends it.
func (v *visit) run(call Call) (resp *http.Response, err error) {
	defer v.finish()
	ctx := v.req.Context()
	if v.record != nil {
		defer func() { v.record.end(v, resp, err) }()
	}
	if err := v.match(call); err != nil {
		v.tell(ctx, Event{Kind: EventNoKey, Rule: err.Rule})
		return nil, err
	}
	refusal, err := v.enter(ctx, lineWait(v.maxWait(ctx, call)), false)
	switch {
	case undecided(err):
		refused := v.refusedAway(ctx, err)
		if v.policy.Refusal == RefuseWithResponse {
			return answer(v.req, refused), nil
		}
		return nil, refused
	case err != nil:
		v.tell(ctx, Event{Kind: EventCanceled, Wait: v.grant.Waited})
		return nil, err
	case refusal != nil:
		refused := v.refused(ctx, refusal)
		if v.policy.Refusal == RefuseWithResponse {
			return answer(v.req, refused), nil
		}
		return nil, refused
	case ctx.Err() != nil: // ended between the start and here
		v.cancelStart()
		v.tell(ctx, Event{Kind: EventCanceled, Wait: v.grant.Waited})
		return nil, ctx.Err()
	}
	v.tellStart(ctx)
	v.handOver()
	v.sent = true
	v.record.started(v)
	resp, err = v.send(ctx)
	v.record.answered()
	return v.settle(ctx, call, resp, err)
}

// enter waits in line. The error is undecided where that is refused since the
// store does not decide. A request that starts has a turn until it hands over: where
// there is an observer, before that is called; else as its last step before it is
// sent, so that the base gets those due at one instant in their order.
func (v *visit) enter(ctx context.Context, maxWait time.Duration, noSlot bool) (*line.Refusal, error) {
	if v.t.store == nil {
		return v.enterNear(ctx, maxWait, noSlot)
	}
	refusal, err := v.enterFar(ctx, maxWait, noSlot)
	if !undecided(err) || v.policy.Store.Down == StoreDownRefuse {
		return refusal, err
	}
	waited := v.grant.Waited
	v.record.leftStore(v)
	v.goNear(err)
	if maxWait >= 0 {
		maxWait = max(0, maxWait-waited)
	}
	v.grant = line.Grant{}
	refusal, err = v.enterNear(ctx, maxWait, noSlot)
	v.grant.Waited += waited
	return refusal, err
}

// enterNear is enter in memory, in the successor where the line has been
// forgotten.
func (v *visit) enterNear(ctx context.Context, maxWait time.Duration, noSlot bool) (*line.Refusal, error) {
	waiting := ctx
	if v.record != nil {
		waiting = line.WithJournal(ctx, &v.record.line)
	}
	for {
		v.locate(ctx)
		if v.gate != nil && !v.gate.Closed() { // the first look, before anything is looked up
			r, err := v.site.line.CheckGate(&v.gate.line)
			switch {
			case err != nil:
				continue
			case r != nil:
				return r, nil
			}
		}
		v.openBudgets(ctx)
		own := len(v.needs.all())
		ask := line.Ask{Needs: v.needs.all(), MaxWait: maxWait, NoSlot: noSlot, Identity: v.who, Key: v.identity, InFlight: !noSlot && v.policy.listens}
		grant, needs, refusal, err := v.site.line.Enter(waiting, &ask, v.gate.side())
		v.heeded = len(needs) > own
		v.needs.set(needs)
		v.grant, v.granted = grant, refusal == nil && err == nil
		v.yield()
		v.gate.tell()
		if errors.Is(err, line.ErrRetired) {
			continue
		}
		return refusal, err
	}
}

// maxWait returns the request's wait budget.
func (v *visit) maxWait(ctx context.Context, call Call) time.Duration {
	var longest time.Duration
	for _, c := range v.claims.all() {
		longest = max(longest, c.rule.spec.Period())
	}
	budget := waitBudget(v.policy.MaxWait, call.MaxWait, longest)
	if a := attempt.From(ctx); a != nil && !a.By.IsZero() {
		budget = min(budget, max(0, time.Until(a.By)))
	}
	return budget
}

// lineWait turns a wait budget into the line's form, which has negative for
// none.
func lineWait(d time.Duration) time.Duration {
	if d == limiter.Never {
		return -1
	}
	return d
}

// refused tells of a refusal, and returns it as the error that callers get.
func (v *visit) refused(ctx context.Context, r *line.Refusal) refusalError {
	if r.Reason == line.ByBreaker {
		e := &OpenError{Policy: v.policy.name, Host: v.name, RetryAfter: r.RetryAfter, Err: r.Cause}
		v.tell(ctx, Event{Kind: EventOpenRefused, RetryAfter: e.RetryAfter, Err: e.Err})
		return e
	}
	refused := v.throttled(r)
	v.tell(ctx, Event{
		Kind: EventRefused, Rule: refused.Rule, KeyDigest: refused.KeyDigest, Wait: v.grant.Waited,
		Reason: refused.Reason, RetryAfter: refused.RetryAfter, AtLeast: refused.AtLeast,
	})
	return refused
}

func (v *visit) throttled(r *line.Refusal) *ThrottledError {
	e := &ThrottledError{Policy: v.policy.name, Host: v.name, Refusal: refusalOf(r), Store: v.away}
	if c := v.claimOf(r.Need); c != nil {
		e.Rule, e.KeyDigest = c.rule.name, v.t.digestOf(c.key)
	} else if r.Announced {
		e.Rule = learnedName(r.Name)
	}
	return e
}

// refusalOf returns the line's refusal as limiter's.
func refusalOf(r *line.Refusal) limiter.Refusal {
	e := limiter.Refusal{Reason: limiter.Reason(r.Reason), RetryAfter: r.RetryAfter, AtLeast: r.AtLeast}
	if r.Deadline {
		e.Err = context.DeadlineExceeded
	}
	return e
}

// tellStart tells of a start, under the rule that has the fewest units left.
func (v *visit) tellStart(ctx context.Context) {
	if v.t.observer == nil {
		return
	}
	e := Event{Kind: EventStart, Policy: v.policy.name, Host: v.name, Attempt: AttemptFrom(ctx), Wait: v.grant.Waited, Away: v.away != nil}
	for _, c := range v.claims.all() {
		v.t.took(ctx, &e, c.rule.name, c.key, c.cost, v.remaining(&c))
	}
	v.t.observe(ctx, e)
}

func (v *visit) tell(ctx context.Context, e Event) {
	e.Policy, e.Host, e.Attempt, e.Away = v.policy.name, v.name, AttemptFrom(ctx), v.away != nil
	if v.kept != nil {
		v.kept.list = append(v.kept.list, e)
		return
	}
	v.t.observe(ctx, e)
}

// settle does what is due once the base transport has returned. The observer gets
// what it reports at the end: a slow one delays no pause, refund, slot or breaker.
func (v *visit) settle(ctx context.Context, call Call, resp *http.Response, err error) (*http.Response, error) {
	at := v.hasAnswer()
	v.answered = true
	over, done := false, false
	defer func() {
		defer closeUnless(&over, resp)
		v.t.tellResponse(ctx, v.takeKept(), v.gate)
		over = done
	}()
	v.keep()
	// A pause comes before the breaker hears of the answer, and lets others start.
	var s retryafter.Signal
	if err == nil && v.policy.listens {
		v.listen(ctx, resp, &s)
		v.policy.leave(v.heard, resp, &s)
	}
	v.landed()
	v.land(resp, err, &s)
	if err != nil {
		return nil, err
	}
	if v.settles(call) {
		s := newSettlement(v, call, at)
		s.fromHeaders(v, resp)
		respbody.Attach(resp, s)
	}
	if release := v.release(); release != nil {
		respbody.Hold(ctx, resp, release)
	}
	done = true
	return resp, nil
}

// land tells the breaker how the request has ended.
func (v *visit) land(resp *http.Response, err error, s *retryafter.Signal) {
	if v.gate != nil {
		v.t.record(&v.route, v.site, v.gate, &v.grant.Pass, v.policy.result(v.req, resp, err, s, v.body))
	}
}

// record tells the breaker of a result, and the line that it has. Then p is used
// up. The caller reports by gate.tell what has changed.
func (t *Transport) record(r *route, s *site, g *gate, p *line.Pass, result breaker.Result) {
	if k, ok := p.Ticket.(*ticket); ok {
		k.record(result)
	}
	late := false
	if p.HoldsPlace() || result.Outcome == breaker.Failure {
		late = !s.line.EndPass(p) && result.Outcome == breaker.Failure
		if t.store != nil && g != nil {
			t.store.recheck(g)
		}
	}
	*p = line.Pass{}
	if late {
		t.reportLate(r, result)
	}
}

// reportLate reports a failure of a request whose host has been forgotten
// meanwhile: what follows the breaker must know of it.
func (t *Transport) reportLate(r *route, result breaker.Result) {
	s, _ := t.table.site(r.policy, r.name)
	g, _ := t.gate(s, r.policy, r.name)
	if b := g.breaker.Load(); b != nil && b.Closed() {
		b.Fail(result.Err, result.RetryAfter, awake.Now())
	}
	g.tell()
}

// closeUnless closes the body of a response that the caller does not get, since
// something has panicked: nobody else could.
func closeUnless(over *bool, resp *http.Response) {
	if !*over && resp != nil && resp.Body != nil {
		resp.Body.Close()
	}
}

// oneOf returns a response or an error, whatever the base transport has
// returned. Of both, the error counts.
func oneOf(resp *http.Response, err error) (*http.Response, error) {
	switch {
	case err == nil && resp != nil:
		return resp, nil
	case err == nil:
		return nil, errors.New("headway: the base transport returned neither a response nor an error")
	case resp != nil && resp.Body != nil:
		resp.Body.Close()
	}
	return nil, err
}

// finish cleans up whatever way the request went, a panic and runtime.Goexit
// among them.
func (v *visit) finish() {
	defer v.endFar()
	if v.cancel != nil {
		v.cancel()
	}
	if v.sent && v.grant.Pass.Ticket != nil {
		defer v.gate.tell()
		defer v.t.record(&v.route, v.site, v.gate, &v.grant.Pass, breaker.Result{})
	}
	switch {
	case !v.sent:
		v.cancelStart()
		if v.req != nil && v.req.Body != nil {
			v.req.Body.Close()
		}
		return // the slot has gone back with the rest
	case !v.answered:
		v.hasAnswer()
	}
	v.landed()
	if v.grant.Slot {
		v.releaser()()
	}
}
