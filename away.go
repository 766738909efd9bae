package headway

import (
	"context"
	"net/http"
	"time"

	"github.com/headway-go/headway/internal/far"
	"github.com/headway-go/headway/internal/law"
	"github.com/headway-go/headway/limiter"
)

// A farStore is a Transport's store, and what stands in for it.
type farStore struct {
	client far.Client
	local  *Transport // with each policy's share of its limits
}

// openStore makes cfg.Store the Transport's.
func (t *Transport) openStore(cfg Config) {
	s := &farStore{}
	s.local = &Transport{base: t.base, observer: t.observer, digests: t.digests, away: s}
	s.local.routes.init()
	s.local.table.max = t.table.max
	s.local.config.Store(compile(cfg.Policies, nil, true))
	s.client.Store, s.client.Max = cfg.Store, t.table.max
	t.store = s
}

// tellNews tells the observer, in the goroutine of a request, that the store is
// away or back.
func (t *Transport) tellNews(ctx context.Context) {
	for _, err := range t.store.client.News() {
		e := Event{Kind: EventStoreDown, Err: err}
		if err == nil {
			e.Kind = EventStoreUp
		}
		t.observe(ctx, e)
	}
}

// set obeys SetPolicies.
func (s *farStore) set(policies []Policy) {
	if err := s.local.SetPolicies(policies); err != nil {
		panic("headway: " + err.Error()) // they are valid
	}
	s.client.Changed()
}

// share returns what this process may use of a limit while the store is away.
func (p *policy) share(l limiter.Limit) law.Spec {
	share := p.StoreShare
	if share == 0 {
		share = 0.25
	}
	if l.N > 0 {
		l.N = max(1, int64(float64(l.N)*share))
	}
	if l.Burst > 0 {
		l.Burst = max(1, int64(float64(l.Burst)*share))
	}
	return specOf(l)
}

// without returns why the store that t stands in for, or has, cannot be asked;
// nil without one.
func (t *Transport) without() error {
	s := t.away
	if s == nil {
		s = t.store
	}
	if s == nil {
		return nil
	}
	return s.client.Why()
}

// runFar is run, but goes another way while the store is away.
func (v *visit) runFar(call Call) (*http.Response, error) {
	resp, err := v.run(call)
	if err != errAway {
		return resp, err
	}
	switch v.policy.StoreDown {
	case StoreDownRefuse:
		refused := v.refusedAway(v.req.Context())
		if v.req.Body != nil {
			v.req.Body.Close()
		}
		if v.policy.Answer == AnswerResponse {
			return answerRefusal(v.req, refused), nil
		}
		return nil, refused
	case StoreDownAdmit:
		return oneOf(v.t.base.RoundTrip(v.req))
	}
	return v.t.store.local.RoundTrip(v.req)
}

// refusedAway tells of a refusal for want of the store, and returns it.
func (v *visit) refusedAway(ctx context.Context) *ThrottledError {
	refused := &ThrottledError{
		Policy: v.policy.name, Host: v.name, Store: v.t.without(),
		Refusal: limiter.Refusal{Reason: limiter.ReasonStore, RetryAfter: v.t.store.client.ProbeIn(), AtLeast: true},
	}
	v.tell(ctx, Event{Kind: EventRefused, Reason: refused.Reason, RetryAfter: refused.RetryAfter, AtLeast: true})
	return refused
}

// delayOrAway is delay by way of the store; while that is away it asks local,
// unless the policy says something else.
func (v *visit) delayOrAway(local func(*Transport) (time.Duration, error)) (time.Duration, error) {
	v.openFar()
	defer v.far.line.Done()
	r := v.delay(v.req == nil)
	switch {
	case !v.far.away && r == nil:
		return 0, nil
	case !v.far.away:
		return r.RetryAfter, nil
	case v.policy.StoreDown == StoreDownRefuse:
		return v.t.store.client.ProbeIn(), nil
	case v.policy.StoreDown == StoreDownAdmit:
		return 0, nil
	}
	return local(v.t.store.local)
}
