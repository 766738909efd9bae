package headway

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/headway-go/headway/internal/law"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/store"
)

// tellNews tells the observer, in the goroutine of a request, that the store is
// away or back, which of its rows could not be read, and that its clock was set back.
func (t *Transport) tellNews(ctx context.Context) {
	var list []Event
	for _, n := range t.store.client.Notices() {
		e := Event{Kind: EventStoreDown, Err: n.Err}
		switch {
		case n.Row != nil:
			e = t.rowEvent(n.Row)
		case n.Back != 0:
			e = Event{Kind: EventStoreClock, Err: fmt.Errorf("the store's clock has been set back by %v or more", n.Back)}
		case n.Err == nil:
			e.Kind = EventStoreUp
		}
		list = append(list, e)
	}
	t.observeAll(ctx, list)
}

// rowEvent returns the event of a row that could not be read.
func (t *Transport) rowEvent(row *store.RowError) Event {
	e := Event{Kind: EventStoreRow, Err: row, Away: !row.Anew}
	name, digest, _ := strings.Cut(row.Name, "/")
	for _, p := range t.config.Load().policies {
		escaped, ok := strings.CutPrefix(row.Group, p.group)
		if !ok {
			continue
		}
		e.Policy = p.name
		e.Host, _ = url.PathUnescape(escaped) // groupOf has escaped it
		for i := range p.rules {
			if p.rules[i].stored == name {
				e.Rule, e.KeyDigest = p.rules[i].name, digest
			}
		}
	}
	if name == hostEar {
		e.KeyDigest = earLabel(row.Name)
	}
	return e
}

// undecided reports whether the error of an enterFar is that the store does not decide.
func undecided(err error) bool {
	_, row := err.(*store.RowError)
	return row || err == errAway
}

// rowRetry is the time after which a request may try again that was refused since a
// row cannot be read.
const rowRetry = time.Second

// share returns what this process may use of a limit while the store is away.
func (p *policy) share(l law.Spec) law.Spec {
	share := p.Store.Share
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

// goNear goes on in this process's memory, without the store, which does not decide
// because of err.
func (v *visit) goNear(err error) {
	v.away = v.t.store.why(err)
	v.endFar()
	if v.policy.Store.Down == StoreDownAdmit {
		v.claims.clear()
	}
}

// why returns why the store does not decide, from the error of whoever asked it.
func (s *farStore) why(err error) error {
	if row, ok := err.(*store.RowError); ok {
		return row
	}
	if err := s.client.Down(); err != nil {
		return err
	}
	return errAway // it is back by now, but this request knows its way
}

// retryIn returns when it makes sense to ask the store again after that error.
func (s *farStore) retryIn(err error) time.Duration {
	if _, ok := err.(*store.RowError); ok {
		return rowRetry
	}
	return s.client.ProbeIn()
}

// refusedAway tells of a refusal since the store does not decide because of err, and
// returns it.
func (v *visit) refusedAway(ctx context.Context, err error) *ThrottledError {
	refused := &ThrottledError{
		Policy: v.policy.name, Host: v.name, Store: v.t.store.why(err),
		Refusal: limiter.Refusal{Reason: limiter.ReasonStore, RetryAfter: v.t.store.retryIn(err), AtLeast: true},
	}
	v.away = refused.Store
	v.tell(ctx, Event{Kind: EventRefused, Wait: v.grant.Waited, Reason: refused.Reason, RetryAfter: refused.RetryAfter, AtLeast: true})
	return refused
}
