package otelheadway

import (
	"net"
	"slices"
	"strconv"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/headway-go/headway/breaker"
	"github.com/headway-go/headway/limiter"
)

// The attributes that OpenTelemetry has no names for.
const (
	policyKey    = attribute.Key("headway.policy")
	ruleKey      = attribute.Key("headway.rule")
	outcomeKey   = attribute.Key("headway.outcome")
	reasonKey    = attribute.Key("headway.reason")
	sourceKey    = attribute.Key("headway.source")
	costKey      = attribute.Key("headway.cost")
	remainingKey = attribute.Key("headway.remaining")
	digestKey    = attribute.Key("headway.key.digest")
	retryKey     = attribute.Key("headway.retry_after")
	causeKey     = attribute.Key("headway.cause")
	dialectKey   = attribute.Key("headway.dialect")
	pauseKey     = attribute.Key("headway.pause.duration")
	stateKey     = attribute.Key("headway.state")
	awayKey      = attribute.Key("headway.store.away")
)

// A decision is the end of a request's wait.
type decision uint8

const (
	started decision = iota
	canceled
	refusedNoKey
	refusedOpen
	refused // for an unknown reason; the known reasons follow, in limiter's order
)

func refusedFor(r limiter.Reason) decision {
	if d := refused + decision(r); int(d) < len(outcomes) {
		return d
	}
	return refused
}

// A kind is a kind of decision with a histogram of its own.
type kind uint8

const (
	kindStarted kind = iota
	kindCanceled
	kindRefused
)

var kinds = [...]string{kindStarted: "started", kindCanceled: "canceled", kindRefused: "refused"}

// outcomes are the decisions as attributes.
var outcomes = [...]struct {
	kind   kind
	reason string
}{
	started:                                 {kind: kindStarted},
	canceled:                                {kind: kindCanceled},
	refusedNoKey:                            {kindRefused, "no_key"},
	refusedOpen:                             {kindRefused, "open"},
	refused:                                 {kindRefused, "unknown"},
	refused + decision(limiter.ReasonLimit): {kindRefused, "limit"},
	refused + decision(limiter.ReasonPause): {kindRefused, "pause"},
	refused + decision(limiter.ReasonInFlight):   {kindRefused, "in_flight"},
	refused + decision(limiter.ReasonLineFull):   {kindRefused, "line_full"},
	refused + decision(limiter.ReasonImpossible): {kindRefused, "impossible"},
	refused + decision(limiter.ReasonDisabled):   {kindRefused, "disabled"},
	refused + decision(limiter.ReasonStore):      {kindRefused, "store"},
}

// attrs returns a decision's attributes, together with others.
func (d decision) attrs(attrs []attribute.KeyValue) []attribute.KeyValue {
	o := &outcomes[d]
	attrs = append(attrs, outcomeKey.String(kinds[o.kind]))
	if o.reason != "" {
		attrs = append(attrs, reasonKey.String(o.reason))
	}
	return attrs
}

// states are the states of a breaker as an attribute and as a number.
var states = [...]struct {
	name  string
	level int64
}{
	breaker.Closed: {"closed", 0}, breaker.HalfOpen: {"half_open", 1}, breaker.Open: {"open", 2},
}

// A host holds the counts of a policy at one host.
type host struct {
	attrs []attribute.KeyValue // read-only
	// The attributes as options, made once.
	observe []metric.ObserveOption
	record  []metric.RecordOption
	waits   [len(kinds)][]metric.RecordOption

	decisions [len(outcomes)]tally
	delayed   atomic.Int64
	calls     atomic.Int64 // starts of first attempts
	retries   atomic.Int64 // starts of further attempts
	malformed atomic.Int64
	unread    atomic.Int64 // rows of the store
	overflows atomic.Int64
	changes   [len(states)]tally // of the breaker, by its new state
	missed    [len(kinds)]tally  // decisions made without the store

	rules  atomic.Pointer[[]*rule] // replaced, never changed
	pauses pauses
}

// A rule holds the counts of one rule at one host.
type rule struct {
	name            string
	client, outside units
	drift           atomic.Int64
	observe         []metric.ObserveOption
}

// units are the units taken and returned.
type units struct{ spent, returned tally }

func (u *units) add(n int64) {
	if n < 0 {
		u.returned.Add(-n)
		return
	}
	u.spent.Add(n)
}

// A tally is a number with its own attributes, which are made when it is first reported.
type tally struct {
	atomic.Int64
	observe []metric.ObserveOption // guarded by counts.mu
}

func newHost(p place) *host {
	h := &host{attrs: []attribute.KeyValue{policyKey.String(p.policy)}}
	if p.host != "" {
		name, port, err := net.SplitHostPort(p.host)
		if err != nil {
			name = p.host
		}
		h.attrs = append(h.attrs, semconv.ServerAddress(name))
		if n, err := strconv.Atoi(port); err == nil {
			h.attrs = append(h.attrs, semconv.ServerPort(n))
		}
	}
	h.attrs = slices.Clip(h.attrs)
	h.observe = []metric.ObserveOption{h.with()}
	h.record = []metric.RecordOption{h.with()}
	for i, name := range kinds {
		h.waits[i] = []metric.RecordOption{h.with(outcomeKey.String(name))}
	}
	h.rules.Store(new([]*rule))
	return h
}

// with returns the host's attributes and more as one option.
func (h *host) with(more ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(slices.Concat(h.attrs, more)...))
}

// maxRules bounds how many rules of a host have series of their own.
const maxRules = 64

func (h *host) rule(name string) *rule {
	for {
		list := h.rules.Load()
		for _, r := range *list {
			if r.name == name {
				return r
			}
		}
		if len(*list) >= maxRules && name != other {
			name = other
			continue
		}
		r := &rule{name: name, observe: []metric.ObserveOption{h.with(ruleKey.String(name))}}
		longer := append(slices.Clip(*list), r)
		if h.rules.CompareAndSwap(list, &longer) {
			return r
		}
	}
}
