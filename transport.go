package headway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headway-go/headway/internal/attempt"
	"github.com/headway-go/headway/internal/storeline"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/store"
)

// Config is what a Transport is made from. The zero Config limits nothing.
type Config struct {
	// Policies determine which hosts are limited, and how. Requests to other hosts
	// pass untouched. SetPolicies replaces them.
	Policies []Policy
	// Observer receives every decision. Nil means none.
	Observer Observer
	// MaxHosts bounds how many hosts and keys are remembered. One is forgotten only
	// when that makes no difference. When none can be forgotten, new hosts share one
	// overflow entry of their policy (budgets, line, slots and breaker), new keys
	// share one of their host, and EventOverflow reports it. Each host with a breaker
	// under a Shared policy counts, and so does each combination of keys where several
	// rules of a request have one. A pause or a limit that a server announces to one
	// of the keys that share an overflow entry applies to all of them, and to no
	// others. It must not be negative; zero means 100,000.
	MaxHosts int
	// Secret keys the digests of keys, so that several processes agree on them.
	// Empty means a random one per process.
	Secret []byte
	// Store keeps budgets, pauses and announced limits outside the process, so that
	// they outlive it and are shared with other processes. Each process has its own
	// lines, MaxInFlight and MaxWaiting. A Store needs a Secret. Nil means in memory.
	Store store.Store
}

// A Transport is an http.RoundTripper that lets requests wait their turn, each
// under the policy of its host, and hands them to a base transport unchanged.
// It never retries. Any number of goroutines may use it. It starts goroutines only
// while it asks a Config.Store, and needs no closing.
type Transport struct {
	base     http.RoundTripper
	observer Observer
	digests  digester
	known    memo // digests, where there is an observer
	learned  memo // names of what was learned
	table    table
	routes   routes

	store *farStore // nil: in memory; assigned once

	setting sync.Mutex // held by SetPolicies
	config  atomic.Pointer[config]
}

// NewTransport returns a Transport over base; nil is http.DefaultTransport. The
// error names every mistake in cfg.
func NewTransport(base http.RoundTripper, cfg Config) (*Transport, error) {
	if base == nil {
		base = http.DefaultTransport
	}
	t := &Transport{base: base, observer: cfg.Observer, digests: newDigester(cfg.Secret)}
	t.routes.init()
	var bad error
	t.table.digest = t.digestOf
	if t.table.max = cfg.MaxHosts; cfg.MaxHosts == 0 {
		t.table.max = 100_000
	} else if cfg.MaxHosts < 0 {
		bad = fmt.Errorf("headway: MaxHosts = %d: want a positive number, or zero for 100,000", cfg.MaxHosts)
	}
	if cfg.Store != nil && len(cfg.Secret) == 0 {
		bad = errors.Join(bad, errNoSecret)
	}
	if err := errors.Join(bad, validatePolicies(cfg.Policies)); err != nil {
		return nil, err
	}
	t.config.Store(compile(cfg.Policies, nil, cfg.Store != nil))
	if cfg.Store != nil {
		t.store = &farStore{storeline.Client{Store: cfg.Store, Max: t.table.max}}
	}
	if w, ok := t.observer.(TransportObserver); ok {
		w.Watch(t)
	}
	return t, nil
}

// Wrap returns a copy of c that keeps its requests to each host under limits, with
// separate budgets for each host. Its transport is a Transport over that of c, with
// one policy named "*" for all hosts. Nil means the zero http.Client. The error names
// every mistake in limits.
func Wrap(c *http.Client, limits ...limiter.Limit) (*http.Client, error) {
	var wrapped http.Client
	if c != nil {
		wrapped = *c
	}
	t, err := NewTransport(wrapped.Transport, Config{Policies: []Policy{{Hosts: []string{"*"}, Limits: limits}}})
	if err != nil {
		return nil, err
	}
	wrapped.Transport = t
	return &wrapped, nil
}

// RoundTrip sends the request when its turn comes, after the steps that the
// package's documentation lists, and returns what the base transport returns.
//
// A request that cannot start in time is refused immediately with a bare
// *ThrottledError, and one whose host is down with a bare *OpenError; under
// RefuseWithResponse both get a local response instead. A request whose key or cost
// cannot be determined fails with a *KeyError, and one whose context ends with the
// context's error. None of these is sent or takes anything, and their bodies are
// closed. A request that AttemptTimeout cuts was sent; its error is a bare net.Error.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	return t.roundTrip(req, nil)
}

func init() {
	attempt.RoundTrip = func(t http.RoundTripper, req *http.Request, heard *attempt.Reading) (*http.Response, error) {
		heard.Done = false
		return t.(*Transport).roundTrip(req, heard)
	}
}

// roundTrip is RoundTrip, and leaves in heard how the response was read, unless that
// is nil.
func (t *Transport) roundTrip(req *http.Request, heard *attempt.Reading) (*http.Response, error) {
	ctx := req.Context()
	with := carriedFrom(ctx)
	if req.URL == nil || with.Bypass { // the base transport has an error for no URL
		return t.base.RoundTrip(req)
	}
	if r := t.routes.find(t.config.Load(), req.URL); r != nil && r.budgets != nil && with == (carried{}) && ctx.Err() == nil {
		if at, pass, ok := r.start(ctx); ok { // most requests: nothing to wait for
			if t.observer != nil {
				t.tellStart(r, req, at)
			}
			if !r.policy.listens && r.gate == nil {
				return oneOf(t.base.RoundTrip(req))
			}
			return t.sendStarted(r, req, at, pass, heard)
		}
	}
	v := visit{t: t, req: req, route: t.route(req.URL), heard: heard}
	if v.policy == nil {
		return t.base.RoundTrip(req)
	}
	if with.trace != nil {
		v.record = v.newRecord(with.trace)
	}
	return v.run(with.Call)
}

// CloseIdleConnections closes the base transport's idle connections, if it can.
// No limit is forgotten.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// Delay returns how long req would wait if it arrived now, and takes nothing. It is
// the whole wait, behind the requests in line and for every reason; zero if req would
// start immediately, and limiter.Never if it can never start. While the breaker of the
// host is open, Delay is at least the time until the host may be probed. Where the
// wait cannot be predicted, Delay is a lower bound. The error is a *KeyError, or the
// context's if that ends before Config.Store responds.
func (t *Transport) Delay(req *http.Request) (time.Duration, error) {
	call := CallFrom(req.Context())
	if call.Bypass || req.URL == nil {
		return 0, nil
	}
	v := visit{t: t, req: req, route: t.route(req.URL)}
	if v.policy == nil {
		return 0, nil
	}
	if err := v.match(call); err != nil {
		return 0, err
	}
	d, err := v.delay(req.Context(), false)
	if err != nil && err != req.Context().Err() {
		return t.store.retryIn(err), nil
	}
	return d, err
}

// WaitBudget returns the wait budget of req: how long it may wait in line, by its
// policy and its Call. It is limiter.Never where only its context bounds the wait. A
// request whose Delay is longer is refused. The error is a *KeyError.
func (t *Transport) WaitBudget(req *http.Request) (time.Duration, error) {
	call := CallFrom(req.Context())
	if call.Bypass || req.URL == nil {
		return limiter.Never, nil
	}
	v := visit{t: t, req: req, route: t.route(req.URL)}
	if v.policy == nil {
		return limiter.Never, nil
	}
	if err := v.match(call); err != nil {
		return 0, err
	}
	return v.maxWait(req.Context(), call), nil
}

// tellStart tells of a request that has taken a unit of each of the route's
// budgets at an instant. If the observer panics, it has not.
func (t *Transport) tellStart(r *route, req *http.Request, at time.Duration) {
	told := false
	defer func() {
		if !told {
			r.site.line.UndoStart(r.budgets, r.policy.listens, at)
			if req.Body != nil {
				req.Body.Close()
			}
		}
	}()
	ctx := req.Context()
	e := Event{Kind: EventStart, Policy: r.policy.name, Host: r.name, Attempt: AttemptFrom(ctx)}
	for i, b := range r.budgets {
		t.took(ctx, &e, r.policy.rules[i].name, keyRef{}, 1, r.site.line.Left(b))
	}
	t.observe(ctx, e)
	told = true
}

// took notes in e, an EventStart, what the request took under one more rule. Of
// the rule with the fewest units left e tells; it tells of the others here.
func (t *Transport) took(ctx context.Context, e *Event, rule string, key keyRef, cost, left int64) {
	digest := t.digestOf(key)
	tightest := e.Rule == "" || left < e.Remaining
	if e.Rule != "" {
		other := *e
		if !tightest {
			other.Rule, other.KeyDigest, other.Cost, other.Remaining = rule, digest, cost, left
		}
		other.Kind, other.Wait = EventTake, 0
		t.observe(ctx, other)
	}
	if tightest {
		e.Rule, e.KeyDigest, e.Cost, e.Remaining = rule, digest, cost, left
	}
}
