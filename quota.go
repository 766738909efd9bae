package headway

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/headway-go/headway/internal/digest"
	"github.com/headway-go/headway/internal/law"
	"github.com/headway-go/headway/internal/roster"
	"github.com/headway-go/headway/limiter"
)

// A Quota is the budget of one rule and key at one host, which it shares with
// the Transport: what is spent on one side is gone on the other. It follows
// SetPolicies; when its rule is no more, it does nothing, admits everything and
// has math.MaxInt64 remaining. Any number of goroutines may use it.
//
// The context of its methods bounds the time that they wait, for Config.Store too:
// when the context ends, they return its error. Without a store, Spend, Remaining
// and Delay return no other error.
type Quota struct {
	t            *Transport
	scheme, host string
	policy, rule string
	key          digest.Key // kept
}

// Quota returns the budget of a rule at a host, by the rule's name, or a Limit's
// text such as "50/1s". key says whose budget it is where the rule has a Key,
// and is empty where it has none. A Limit's text is its name: once SetPolicies
// changes it, the Quota does nothing, so use a Rule for a budget whose limit may
// change. The host may have a port; 443 is that of https, 80 that of http. The error
// names what does not exist.
func (t *Transport) Quota(host, rule, key string) (*Quota, error) {
	q := &Quota{t: t, scheme: schemeOf(host), host: strings.Clone(host), rule: rule, key: t.digests.Keep(digest.KeyOf(key))}
	_, p := t.config.Load().find(q.scheme, host)
	if p == nil {
		return nil, fmt.Errorf("headway: quota: no policy has the host %q", host)
	}
	q.policy = p.name
	r := p.rule(rule)
	switch {
	case r == nil:
		return nil, fmt.Errorf("headway: quota: policy %q has no rule %q", q.policy, rule)
	case !r.Keyed && key != "":
		return nil, fmt.Errorf("headway: quota: rule %q has one budget for the host: want an empty key", rule)
	case r.Keyed && key == "":
		return nil, fmt.Errorf("headway: quota: rule %q has a budget for each key: want a key", rule)
	}
	return q, nil
}

// OpenQuota returns the budget of a rule at a host without a Transport: for a
// program that uses the same service by other means. With the Store, the Secret
// and the policies of programs that have a Transport, it shares their budgets.
// Close the store when the quota is no longer used; the Quota needs no closing.
func OpenQuota(cfg Config, host, rule, key string) (*Quota, error) {
	t, err := NewTransport(nil, cfg)
	if err != nil {
		return nil, err
	}
	return t.Quota(host, rule, key)
}

// String returns the rule, the host and the key's digest.
func (q *Quota) String() string {
	return fmt.Sprintf("quota of rule %q at %s for %q", q.rule, q.host, q.t.digests.Of(q.key))
}

// GoString is String: no form of printing shows the key.
func (q *Quota) GoString() string { return q.String() }

// request returns a request that claims n units of q, or nil where its rule is no
// more.
func (q *Quota) request(n int64) *request {
	c := q.t.config.Load()
	host, p := c.find(q.scheme, q.host)
	if p == nil || p.name != q.policy {
		return nil
	}
	r := p.rule(q.rule)
	if r == nil || r.Keyed == q.key.None() {
		return nil
	}
	v := &request{t: q.t, route: route{config: c, name: host, policy: p}}
	v.Quota = true
	v.Claim(roster.Claim{Rule: r.Rule, Key: q.key, Cost: n})
	v.open(limiter.Never)
	return v
}

// Spend counts n units as used now, by traffic that did not go through the
// Transport. It does not wait in line, and may overdraw: the debt delays later
// requests. A negative n returns the oldest units that still count.
//
// With a Config.Store it returns when the store has counted them. While the store
// is down, they count in this process alone under StoreDownLocal; otherwise they are
// not counted, and the error wraps the store's. When ctx has ended before, nothing is
// spent; when it ends while the store works, the units may count or not.
func (q *Quota) Spend(ctx context.Context, n int64) error {
	v := q.request(n)
	if v == nil || n == 0 || ctx.Err() != nil {
		return ctx.Err()
	}
	left, err := q.t.desk.Spend(ctx, &v.Ticket, n)
	if err != nil {
		return q.fail(ctx, err)
	}
	v.opened(ctx)
	v.report(ctx, Event{Kind: EventSpend, Rule: q.rule, KeyDigest: q.t.digests.Of(q.key), Cost: n, Remaining: left})
	return nil
}

// Wait takes n units as soon as its turn comes, in the same line as the requests
// that need this budget, within the policy's wait budget or that of the Call in
// ctx. It takes no in-flight slot. Its errors
// are those of RoundTrip under RefuseWithError. A negative n is an error.
func (q *Quota) Wait(ctx context.Context, n int64) error {
	if n < 0 {
		return fmt.Errorf("headway: quota: the cost is %d; it must be 0 or more, and Spend gives units back", n)
	}
	v := q.request(n)
	if v == nil {
		return ctx.Err()
	}
	defer v.Return(context.Background())
	v.open(v.waitBudget(ctx, CallFrom(ctx)))
	refusal, err := v.enter(ctx)
	switch {
	case err != nil:
		v.report(ctx, Event{Kind: EventCanceled, Rule: q.rule, KeyDigest: q.t.digests.Of(q.key), Cost: n, Wait: v.Waited})
		return err
	case refusal != nil:
		return v.refused(ctx, refusal)
	}
	v.HandOver()
	v.reportStart(ctx)
	v.Send()
	return nil
}

// Remaining returns how many units could start now: negative when overdrawn.
// While Config.Store is down, it is what this process may use on its own; under
// StoreDownRefuse it is an error that wraps the store's.
func (q *Quota) Remaining(ctx context.Context) (int64, error) {
	v := q.request(0)
	switch {
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case v == nil:
		return law.Unlimited, nil
	}
	left, err := q.t.desk.Remaining(ctx, &v.Ticket)
	v.opened(ctx)
	return left, q.fail(ctx, err)
}

// Delay returns how long a Wait for n units would take if it came now: zero if it
// would not wait, limiter.Never if it can never have them. It takes nothing. A
// negative n is an error. While Config.Store is down, it is what would hold in this
// process on its own; under StoreDownRefuse it is an error that wraps the store's.
func (q *Quota) Delay(ctx context.Context, n int64) (time.Duration, error) {
	if n < 0 {
		return 0, fmt.Errorf("headway: quota: the cost is %d; it must be 0 or more", n)
	}
	v := q.request(n)
	if v == nil || ctx.Err() != nil {
		return 0, ctx.Err()
	}
	d, err := q.t.desk.Delay(ctx, &v.Ticket)
	if v.opened(ctx); err != nil {
		return 0, q.fail(ctx, err)
	}
	return d, nil
}

// fail returns the public error for err, which is nil, the context's, or the store's.
func (q *Quota) fail(ctx context.Context, err error) error {
	if err == nil || err == ctx.Err() {
		return err
	}
	return fmt.Errorf("headway: %v, without the store: %w", q, err)
}
