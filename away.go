package headway

import (
	"context"

	"github.com/headway-go/headway/internal/law"
	"github.com/headway-go/headway/limiter"
)

// tellNews tells the observer, in the goroutine of a request, that the store is
// away or back.
func (t *Transport) tellNews(ctx context.Context) {
	var list []Event
	for _, err := range t.store.client.News() {
		e := Event{Kind: EventStoreDown, Err: err}
		if err == nil {
			e.Kind = EventStoreUp
		}
		list = append(list, e)
	}
	t.observeAll(ctx, list)
}

// share returns what this process may use of a limit while the store is away.
func (p *policy) share(l law.Spec) law.Spec {
	share := p.StoreShare
	if share == 0 {
		share = 0.25
	}
	part := func(n int64) int64 {
		if n <= 0 {
			return n
		}
		return max(1, int64(float64(n)*share))
	}
	l.N, l.Burst = part(l.N), part(l.Burst)
	return l
}

// goNear goes on in this process's memory, without the store.
func (v *visit) goNear() {
	v.away = v.t.store.client.Why()
	if v.away == nil {
		v.away = errAway // it is back by now, but this request knows its way
	}
	v.endFar()
	if v.policy.StoreDown == StoreDownAdmit {
		v.claims.clear()
	}
}

// refusedAway tells of a refusal for want of the store, and returns it.
func (v *visit) refusedAway(ctx context.Context) *ThrottledError {
	refused := &ThrottledError{
		Policy: v.policy.name, Host: v.name, Store: v.t.store.client.Why(),
		Refusal: limiter.Refusal{Reason: limiter.ReasonStore, RetryAfter: v.t.store.client.ProbeIn(), AtLeast: true},
	}
	if refused.Store == nil {
		refused.Store = errAway
	}
	v.away = refused.Store
	v.tell(ctx, Event{Kind: EventRefused, Wait: v.grant.Waited, Reason: refused.Reason, RetryAfter: refused.RetryAfter, AtLeast: true})
	return refused
}
