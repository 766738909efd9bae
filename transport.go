package headway

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headway-go/headway/internal/attempt"
	"github.com/headway-go/headway/internal/desk"
	"github.com/headway-go/headway/internal/digest"
	"github.com/headway-go/headway/internal/roster"
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
	// MaxHosts bounds how many hosts, keys and servers' resources are remembered. One is
	// forgotten only when that makes no difference. When none can be forgotten, new hosts
	// share one overflow entry of their policy (budgets, line, slots and breaker), new
	// keys share one of their host, and EventOverflow reports it; what is announced of a
	// new resource applies to the whole identity. Each host with a breaker
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
// while it asks a Config.Store, or sends it what responses announce; they end with
// that, within 2 s. It needs no closing.
type Transport struct {
	base     http.RoundTripper
	observer Observer
	desk     *desk.Desk // what stands between a request and its budgets
	digests  *digest.Digester
	learned  digest.Memo // names of announced limits
	routes   *roster.Routes[route]

	setting sync.Mutex // held by SetPolicies
	config  atomic.Pointer[config]
}

// NewTransport returns a Transport over base; nil is http.DefaultTransport. The
// error names every mistake in cfg.
func NewTransport(base http.RoundTripper, cfg Config) (*Transport, error) {
	if base == nil {
		base = http.DefaultTransport
	}
	var bad error
	most := cmp.Or(cfg.MaxHosts, 100_000)
	if most < 0 {
		bad = fmt.Errorf("headway: MaxHosts = %d: want a positive number, or zero for 100,000", most)
	}
	if cfg.Store != nil && len(cfg.Secret) == 0 {
		bad = errors.Join(bad, errors.New("headway: Secret is empty: want the same secret in all processes that share the Store, since budgets are kept by the digests of keys"))
	}
	if err := errors.Join(bad, validatePolicies(cfg.Policies)); err != nil {
		return nil, err
	}
	watched := cfg.Observer != nil
	digests := digest.New(cfg.Secret, watched)
	t := &Transport{
		base: base, observer: cfg.Observer, digests: digests, routes: roster.NewRoutes[route](),
		desk: desk.New(&roster.Roster{Max: most, Digests: digests, Watched: watched}, cfg.Store),
	}
	c := compile(cfg.Policies, nil, t.desk)
	t.desk.Configure(c.plans)
	t.config.Store(c)
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
	attempt.RoundTrip = func(t http.RoundTripper, req *http.Request, reading *attempt.Reading) (*http.Response, error) {
		reading.Done = false
		return t.(*Transport).roundTrip(req, reading)
	}
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
	ctx := req.Context()
	v, err := t.matched(req)
	if err != nil || v.policy == nil {
		return 0, err
	}
	d, err := t.desk.Delay(ctx, &v.Ticket)
	if err == desk.ErrRoute {
		v.findRoute()
		d, err = t.desk.Delay(ctx, &v.Ticket)
	}
	v.opened(ctx)
	if err != ctx.Err() { // the store's, and d is the time until it can be asked again
		err = nil
	}
	return d, err
}

// WaitBudget returns the wait budget of req: how long it may wait in line, by its
// policy and its Call. It is limiter.Never where only its context bounds the wait. A
// request whose Delay is longer is refused. The error is a *KeyError.
func (t *Transport) WaitBudget(req *http.Request) (time.Duration, error) {
	v, err := t.matched(req)
	switch {
	case err != nil:
		return 0, err
	case v.policy == nil || v.MaxWait < 0:
		return limiter.Never, nil
	}
	return v.MaxWait, nil
}

// matched returns the request that RoundTrip would make of req, its claims known. Its policy
// is nil where RoundTrip would send req untouched.
func (t *Transport) matched(req *http.Request) (v request, err error) {
	call := CallFrom(req.Context())
	if call.Bypass || req.URL == nil {
		return v, nil
	}
	v = request{t: t, req: req, route: t.route(req.URL)}
	if v.policy != nil {
		if e := v.match(call); e != nil { // not nil as an error otherwise
			err = e
		}
	}
	return v, err
}
