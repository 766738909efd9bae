package headway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/headway-go/headway/internal/line"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/retryafter"
)

// A visit is one request on its way through the Transport.
type visit struct {
	t   *Transport
	req *http.Request
	route
	site  *site // the route's, or its successor
	grant line.Grant
	far   *farVisit // its way through a store; nil without

	claims list[claim]     // the rules that match, narrow before wide
	needs  list[line.Need] // what they take, without those that cost nothing

	who uint64 // its identity: the keys of the rules that match; zero: none

	granted, sent, answered bool
	heeded                  bool // its needs have what an answer brought
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
	key    string // empty where the rule has none
	cost   int64
	budget *line.Budget // nil until opened
}

// match finds the rules that apply, and asks them for key and cost.
func (v *visit) match(call Call) error {
	target := targetOf(v.req)
	for i := range v.policy.rules {
		r := &v.policy.rules[i]
		if !r.matches(target) {
			continue
		}
		c := claim{rule: r, cost: 1}
		var err error
		if r.key != nil {
			if c.key, err = r.key(v.req); err == nil && c.key == "" {
				err = errEmptyKey
			}
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
		v.claims.add(c)
	}
	return nil
}

// open finds the budgets of the claims.
func (v *visit) open(ctx context.Context) {
	site, news := v.route.site, false
	if site == nil || v.site != nil { // not known yet, or forgotten meanwhile
		site, news = v.t.table.site(v.policy, v.name)
		v.t.remember(&v.route, site)
	}
	site.touch()
	v.site = site
	v.needs.clear()
	claims := v.claims.all()
	for i := range claims {
		c := &claims[i]
		var n bool
		c.budget, n = v.t.table.budget(v.site, claims[:i], c.rule, c.key)
		news = news || n
		if c.cost > 0 {
			v.needs.add(line.Need{B: c.budget, Cost: c.cost})
		}
	}
	if news {
		v.tell(ctx, Event{Kind: EventOverflow})
	}
}

// run takes the request through the line and sends it.
func (v *visit) run(call Call) (resp *http.Response, err error) {
	defer v.finish()
	if err := v.match(call); err != nil {
		return nil, err
	}
	ctx := v.req.Context()
	refusal, err := v.enter(ctx, v.maxWait(call), false)
	switch {
	case err == errAway:
		return nil, err
	case err != nil:
		v.tell(ctx, Event{Kind: EventCanceled})
		return nil, err
	case refusal != nil:
		refused := v.refused(ctx, refusal)
		if v.policy.Answer == AnswerResponse {
			return answerRefusal(v.req, refused), nil
		}
		return nil, refused
	case ctx.Err() != nil: // ended between the start and here
		v.tell(ctx, Event{Kind: EventCanceled})
		return nil, ctx.Err()
	}
	// It hands over before it tells: an observer holds nobody else up.
	v.handOver()
	v.tellStart(ctx)
	v.sent = true
	resp, err = v.t.base.RoundTrip(v.req)
	return v.settle(ctx, call, resp, err)
}

// enter waits in line, in the successor where the line has been forgotten.
func (v *visit) enter(ctx context.Context, maxWait time.Duration, noSlot bool) (*line.Refusal, error) {
	if v.t.store != nil {
		return v.enterFar(ctx, maxWait, noSlot)
	}
	for {
		v.open(ctx)
		own := len(v.needs.all())
		ask := line.Ask{Needs: v.needs.all(), MaxWait: maxWait, NoSlot: noSlot, Who: v.who, Count: !noSlot && v.policy.listens}
		grant, needs, refusal, err := v.site.line.Enter(ctx, &ask)
		if errors.Is(err, line.ErrRetired) {
			continue
		}
		v.heeded = len(needs) > own
		v.needs.set(needs)
		v.grant, v.granted = grant, refusal == nil && err == nil
		return refusal, err
	}
}

// maxWait returns the request's wait budget as the line takes it.
func (v *visit) maxWait(call Call) time.Duration {
	var longest time.Duration
	for _, c := range v.claims.all() {
		longest = max(longest, c.rule.spec.Period())
	}
	return lineWait(waitBudget(v.policy.MaxWait, call.MaxWait, longest))
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
func (v *visit) refused(ctx context.Context, r *line.Refusal) *ThrottledError {
	refused := v.throttled(r)
	v.tell(ctx, Event{
		Kind: EventRefused, Rule: refused.Rule, KeyDigest: refused.KeyDigest,
		Reason: refused.Reason, RetryAfter: refused.RetryAfter, AtLeast: refused.AtLeast,
	})
	return refused
}

func (v *visit) throttled(r *line.Refusal) *ThrottledError {
	e := &ThrottledError{Policy: v.policy.name, Host: v.name, Refusal: refusalOf(r), Store: v.t.without()}
	for _, c := range v.claims.all() {
		if r.B != nil && c.budget == r.B {
			e.Rule, e.KeyDigest = c.rule.name, v.t.digestOf(c.key)
		}
	}
	if e.Rule == "" {
		e.Rule = r.Learned
	}
	return e
}

// refusalOf returns the line's refusal as limiter's.
func refusalOf(r *line.Refusal) limiter.Refusal {
	e := limiter.Refusal{Reason: limiter.ReasonLimit, RetryAfter: r.RetryAfter, AtLeast: r.AtLeast}
	switch {
	case r.Disabled:
		e.Reason = limiter.ReasonDisabled
	case r.Impossible:
		e.Reason = limiter.ReasonImpossible
	case r.LineFull:
		e.Reason = limiter.ReasonLineFull
	case r.Pause:
		e.Reason = limiter.ReasonPause
	case r.B == nil:
		e.Reason = limiter.ReasonInFlight
	}
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
	e := Event{Kind: EventStart, Wait: v.grant.Waited}
	for _, c := range v.claims.all() {
		if left := v.remaining(&c); e.Rule == "" || left < e.Remaining {
			e.Rule, e.KeyDigest, e.Cost, e.Remaining = c.rule.name, v.t.digestOf(c.key), c.cost, left
		}
	}
	v.tell(ctx, e)
}

func (v *visit) tell(ctx context.Context, e Event) {
	e.Policy, e.Host = v.policy.name, v.name
	v.t.observe(ctx, e)
}

// settle does what is due once the base transport has returned.
func (v *visit) settle(ctx context.Context, call Call, resp *http.Response, err error) (*http.Response, error) {
	at := v.grant.At
	if v.counts() {
		at = v.answeredAt()
	}
	v.answered = true
	if resp, err = oneOf(resp, err); err != nil {
		return nil, err
	}
	if v.policy.listens {
		var s retryafter.Signal
		if read(v.reader, resp, &s) {
			v.hear(ctx, resp.StatusCode, &s)
		}
		if v.heeded && resp.StatusCode < 400 && !s.Throttled {
			v.succeeded()
		}
	}
	if v.settles(call) {
		s := newSettlement(v, call, at)
		s.fromHeaders(resp)
		attach(resp, s)
	}
	if v.grant.Slot {
		v.grant.Slot = false
		holdSlot(ctx, resp, v.releaser())
	}
	return resp, nil
}

// counts reports whether the line has to hear of the answer.
func (v *visit) counts() bool {
	return v.far != nil || v.grant.Count || line.Strict(v.needs.all())
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
	if v.far != nil {
		defer v.far.line.Done()
	}
	switch {
	case !v.sent:
		if v.granted {
			v.cancelStart()
		}
		if v.far != nil && v.far.away {
			return // it goes another way
		}
		if v.req != nil && v.req.Body != nil {
			v.req.Body.Close()
		}
		return // the slot has gone back with the rest
	case !v.answered && v.counts():
		v.answeredAt()
	}
	if v.grant.Slot {
		v.releaser()()
	}
}
