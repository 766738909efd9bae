package headway

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/headway-go/headway/internal/far"
	"github.com/headway-go/headway/limiter"
)

// A farStore is a Transport's store, and what stands in for it.
type farStore struct {
	client far.Client
	local  *Transport // with each policy's share of its limits
}

// openStore makes cfg.Store the Transport's.
func (t *Transport) openStore(cfg Config) error {
	s := &farStore{}
	local := cfg
	local.Policies, local.Store = shares(cfg.Policies), nil
	var err error
	if s.local, err = NewTransport(t.base, local); err != nil {
		return err
	}
	s.client.Store, s.client.Max = cfg.Store, t.table.max
	s.client.Tell = func(err error) {
		e := Event{Kind: EventStoreDown, Err: err}
		if err == nil {
			e.Kind = EventStoreUp
		}
		t.observe(context.Background(), e)
	}
	s.local.away, t.store = s, s
	return nil
}

// set obeys SetPolicies.
func (s *farStore) set(policies []Policy) {
	if err := s.local.SetPolicies(shares(policies)); err != nil {
		panic("headway: " + err.Error()) // they are valid, and a share of them is
	}
	s.client.Changed()
}

// shares returns policies with the limits that hold in this process while the
// store is away. Rules and limits keep their names.
func shares(policies []Policy) []Policy {
	list := slices.Clone(policies)
	for i := range list {
		p := &list[i]
		share := p.StoreShare
		if share == 0 {
			share = 0.25
		}
		p.Limits, p.Rules = slices.Clone(p.Limits), slices.Clone(p.Rules)
		for j := range p.Limits {
			p.Limits[j] = shareOf(p.Limits[j], share)
		}
		for j := range p.Rules {
			p.Rules[j].Limit = shareOf(p.Rules[j].Limit, share)
		}
	}
	return list
}

func shareOf(l limiter.Limit, share float64) limiter.Limit {
	if l.N > 0 {
		l.N = max(1, int64(float64(l.N)*share))
	}
	if l.Burst > 0 {
		l.Burst = max(1, int64(float64(l.Burst)*share))
	}
	return l
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
