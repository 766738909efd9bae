package headway

import (
	"fmt"
	"strings"
	"time"

	"github.com/headway-go/headway/breaker"
	"github.com/headway-go/headway/internal/awake"
	"github.com/headway-go/headway/internal/hostname"
	"github.com/headway-go/headway/internal/roster"
	"github.com/headway-go/headway/internal/show"
)

// A HostBreaker is the breaker of one host under its policy, for inspection and
// manual control. It follows SetPolicies: when the policy is removed, or has no
// breaker any more, it is closed and does nothing. Any number of goroutines may use
// it.
//
// Fail, Trip and Reset report changes to the Observer before they return.
type HostBreaker struct {
	t            *Transport
	scheme, host string
	policy       string
}

// Breaker returns the breaker of a host. The host may have a port: 80 means http,
// 443 and no port mean https. The error names what does not exist.
func (t *Transport) Breaker(host string) (*HostBreaker, error) {
	scheme := schemeOf(host)
	_, p := t.config.Load().find(scheme, host)
	switch {
	case p == nil:
		return nil, fmt.Errorf("headway: breaker: no policy has the host %q", host)
	case p.Breaker == nil:
		return nil, fmt.Errorf("headway: breaker: policy %q of the host %q has none: set its Breaker", p.name, host)
	}
	return &HostBreaker{t: t, scheme: scheme, host: strings.Clone(host), policy: p.name}, nil
}

// schemeOf returns the scheme that a host without one is meant to be reached by.
func schemeOf(host string) string {
	if _, port, _ := hostname.Cut(host); port == "80" {
		return "http"
	}
	return "https"
}

// gate returns the host's gate, or nil.
func (h *HostBreaker) gate() *roster.Gate {
	host, p := h.t.config.Load().find(h.scheme, h.host)
	if p == nil || p.name != h.policy {
		return nil
	}
	return h.t.desk.GateOf(p.plan, host)
}

// do does something with the breaker, if there is one. A breaker that is forgotten at this
// moment does not count: then it does it again with the next.
func (h *HostBreaker) do(f func(*breaker.Breaker)) {
	for {
		g := h.gate()
		if g == nil {
			return
		}
		if b := g.Breaker(); b != nil {
			f(b)
		}
		used := g.Recheck()
		if h.t.reportChanges(g); used {
			return
		}
	}
}

// State returns the breaker's state. An open breaker becomes half-open with the first
// request after its time is up.
func (h *HostBreaker) State() breaker.State {
	if g := h.gate(); g != nil {
		return g.State()
	}
	return breaker.Closed
}

// Fail reports a failure that is not the result of a request, such as an error in the
// middle of a response's body. It counts like any other failure; a half-open breaker
// opens. An open breaker stays open for at least retryAfter, if that is positive. err
// is the failure, for OpenError.Err.
func (h *HostBreaker) Fail(err error, retryAfter time.Duration) {
	err = show.Error(err)
	h.do(func(b *breaker.Breaker) { b.Fail(err, retryAfter, awake.Now()) })
}

// Trip opens the breaker for as long as any other opening would, or for retryAfter if
// that is longer. The requests in line are refused with err, which may be nil.
func (h *HostBreaker) Trip(err error, retryAfter time.Duration) {
	err = show.Error(err)
	h.do(func(b *breaker.Breaker) { b.Trip(err, retryAfter, awake.Now()) })
}

// Reset closes the breaker and makes it like new, without a bound on the requests in
// flight: requests that waited for it start. The results of requests that have started
// are ignored.
func (h *HostBreaker) Reset() {
	h.do(func(b *breaker.Breaker) { b.Reset(awake.Now()) })
}
