package otelheadway

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
)

// The boundaries of the histograms, in seconds. The first bucket holds only decisions
// without a wait.
var (
	waitBounds  = []float64{0, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300}
	pauseBounds = []float64{0.1, 0.5, 1, 2, 5, 10, 30, 60, 300, 900, 3600, 21600, 86400}
)

// instruments are assigned once. The package's documentation has their names, units and
// attributes.
type instruments struct {
	waitDuration, pauseDuration metric.Float64Histogram

	decisions, delayed, retries   metric.Int64ObservableCounter
	spent, returned, drift        metric.Int64ObservableCounter
	malformed, overflows, changes metric.Int64ObservableCounter
	storeChanges, storeMissed     metric.Int64ObservableCounter
	storeRows                     metric.Int64ObservableCounter
	storeClock                    metric.Int64ObservableCounter
	waiting, inFlight             metric.Int64ObservableUpDownCounter
	remaining, state, storeAway   metric.Int64ObservableGauge
	pauseRemaining, amplification metric.Float64ObservableGauge
}

// make creates the instruments, and registers report for their collection.
func (in *instruments) make(p metric.MeterProvider, report metric.Callback) error {
	m := p.Meter(scope, metric.WithSchemaURL(semconv.SchemaURL))
	var all []metric.Observable
	var errs []error
	histogram := func(h *metric.Float64Histogram, name, about string, bounds []float64) {
		var err error
		*h, err = m.Float64Histogram(name, metric.WithDescription(about), metric.WithUnit("s"), metric.WithExplicitBucketBoundaries(bounds...))
		errs = append(errs, err)
	}
	counter := func(c *metric.Int64ObservableCounter, name, unit, about string) {
		var err error
		*c, err = m.Int64ObservableCounter(name, metric.WithDescription(about), metric.WithUnit(unit))
		all, errs = append(all, *c), append(errs, err)
	}
	level := func(c *metric.Int64ObservableUpDownCounter, name, about string) {
		var err error
		*c, err = m.Int64ObservableUpDownCounter(name, metric.WithDescription(about), metric.WithUnit("{request}"))
		all, errs = append(all, *c), append(errs, err)
	}
	gauge := func(g *metric.Float64ObservableGauge, name, unit, about string) {
		var err error
		*g, err = m.Float64ObservableGauge(name, metric.WithDescription(about), metric.WithUnit(unit))
		all, errs = append(all, *g), append(errs, err)
	}
	histogram(&in.waitDuration, "headway.wait.duration", "Time that requests waited in line until they started, were refused or were canceled.", waitBounds)
	histogram(&in.pauseDuration, "headway.pause.duration", "Length of the pauses raised by responses, from the arrival of the response.", pauseBounds)
	counter(&in.decisions, "headway.decisions", "{request}", "Requests that were started, refused or canceled.")
	counter(&in.delayed, "headway.delayed", "{request}", "Requests that had to wait, each once.")
	counter(&in.retries, "headway.retries", "{request}", "Starts that were not the first attempt of their call.")
	counter(&in.spent, "headway.units.spent", "{unit}", "Units of cost taken from a limit.")
	counter(&in.returned, "headway.units.returned", "{unit}", "Units of cost returned to a limit.")
	counter(&in.drift, "headway.drift", "{unit}", "Units that the server has counted and this process has not.")
	counter(&in.malformed, "headway.headers.malformed", "{header}", "Headers of responses that were malformed and ignored.")
	counter(&in.overflows, "headway.overflows", "{event}", "Times that hosts or keys began to share an overflow entry.")
	counter(&in.changes, "headway.breaker.transitions", "{transition}", "Changes of the breaker's state.")
	counter(&in.storeChanges, "headway.store.transitions", "{transition}", "Times that the store went down or came back.")
	counter(&in.storeMissed, "headway.store.missed", "{request}", "Requests that were decided without the store because it was down.")
	counter(&in.storeClock, "headway.store.clock_set_back", "{event}", "Times that the store's clock was found to be set back.")
	counter(&in.storeRows, "headway.store.unread", "{row}", "Rows of the store that could not be read.")
	level(&in.waiting, "headway.waiting", "Requests that wait in line.")
	level(&in.inFlight, "headway.in_flight", "Requests that are in flight.")
	gauge(&in.pauseRemaining, "headway.pause.remaining", "s", "Time until the last pause ends.")
	gauge(&in.amplification, "headway.amplification", "1", "Requests sent for each call.")
	number := func(g *metric.Int64ObservableGauge, name, unit, about string) {
		var err error
		*g, err = m.Int64ObservableGauge(name, metric.WithDescription(about), metric.WithUnit(unit))
		all, errs = append(all, *g), append(errs, err)
	}
	number(&in.remaining, "headway.remaining", "{unit}", "Units left of a limit, for the key with the fewest.")
	number(&in.state, "headway.breaker.state", "{state}", "State of the breaker: 0 closed, 1 half-open, 2 open.")
	number(&in.storeAway, "headway.store.away", "{transport}", "Transports whose store was down at their latest request.")
	if err := errors.Join(errs...); err != nil {
		return err
	}
	_, err := m.RegisterCallback(report, all...)
	return err
}

// report reports everything to o.
func (c *counts) report(_ context.Context, o metric.Observer) error {
	c.mu.Lock()
	all := c.transportsLocked()
	c.mu.Unlock()
	var now []headway.HostStatus
	for _, t := range all {
		now = append(now, t.Snapshot()...)
	}
	// Observing calls foreign code, so that c.mu must not be held: a request to a new
	// host needs it.
	c.collecting.Lock()
	defer c.collecting.Unlock()
	c.reportNow(o, now)
	c.reportStore(o)
	c.mu.Lock()
	hosts := slices.Collect(maps.Values(c.hosts))
	c.mu.Unlock()
	for _, h := range hosts {
		c.reportHost(o, h)
	}
	return nil
}

// The attributes of a store's transitions, made once.
var (
	storeGone = []metric.ObserveOption{metric.WithAttributeSet(attribute.NewSet(stateKey.String("away")))}
	storeBack = []metric.ObserveOption{metric.WithAttributeSet(attribute.NewSet(stateKey.String("back")))}
)

// reportStore reports to o the stores that are down.
func (c *counts) reportStore(o metric.Observer) {
	if n := c.setBack.Load(); n > 0 {
		o.ObserveInt64(c.storeClock, n)
	}
	back, gone := c.back.Load(), c.gone.Load()
	if gone == 0 {
		return
	}
	o.ObserveInt64(c.storeAway, max(0, gone-back))
	o.ObserveInt64(c.storeChanges, gone, storeGone...)
	if back > 0 {
		o.ObserveInt64(c.storeChanges, back, storeBack...)
	}
}

// reportHost reports the counts of a host to o.
func (c *counts) reportHost(o metric.Observer, h *host) {
	for d := range h.decisions {
		h.decisions[d].report(o, c.decisions, h, decision(d).attrs(nil)...)
	}
	number := func(in metric.Int64Observable, n int64, observe []metric.ObserveOption) {
		if n > 0 {
			o.ObserveInt64(in, n, observe...)
		}
	}
	number(c.delayed, h.delayed.Load(), h.observe)
	number(c.retries, h.retries.Load(), h.observe)
	number(c.malformed, h.malformed.Load(), h.observe)
	number(c.overflows, h.overflows.Load(), h.observe)
	number(c.storeRows, h.unread.Load(), h.observe)
	for s := range h.changes {
		h.changes[s].report(o, c.changes, h, stateKey.String(states[s].name))
	}
	for k := range h.missed {
		h.missed[k].report(o, c.storeMissed, h, outcomeKey.String(kinds[k]))
	}
	if calls := h.calls.Load(); calls > 0 {
		o.ObserveFloat64(c.amplification, float64(calls+h.retries.Load())/float64(calls), h.observe...)
	}
	for _, r := range *h.rules.Load() {
		number(c.drift, r.drift.Load(), r.observe)
		name, client, outside := ruleKey.String(r.name), sourceKey.String("client"), sourceKey.String("outside")
		r.client.spent.report(o, c.spent, h, name, client)
		r.client.returned.report(o, c.returned, h, name, client)
		r.outside.spent.report(o, c.spent, h, name, outside)
		r.outside.returned.report(o, c.returned, h, name, outside)
	}
}

// report reports t to o, with the host's attributes and its own.
func (t *tally) report(o metric.Observer, in metric.Int64Observable, h *host, attrs ...attribute.KeyValue) {
	n := t.Load()
	if n == 0 {
		return
	}
	if t.observe == nil {
		t.observe = []metric.ObserveOption{h.with(attrs...)}
	}
	o.ObserveInt64(in, n, t.observe...)
}

// A level is the present state of a host in the Transports.
type level struct {
	waiting, inFlight int64
	pause             float64
	remaining         map[*rule]int64
}

// reportNow reports the present state to o. A series that several Transports or keys share
// is one number.
func (c *counts) reportNow(o metric.Observer, now []headway.HostStatus) {
	levels, worst := map[*host]*level{}, map[*host]int64{}
	for i := range now {
		s := &now[i]
		name := s.Host
		if s.Overflow {
			name = other
		}
		h := c.host(s.Policy, name)
		l := levels[h]
		if l == nil {
			l = &level{remaining: map[*rule]int64{}}
			levels[h] = l
		}
		l.add(h, s)
		for _, b := range s.Breakers {
			name := b.Host
			if name == "" {
				name = other
			}
			h := c.host(s.Policy, name)
			worst[h] = max(worst[h], states[b.State].level)
		}
	}
	for h, n := range worst {
		o.ObserveInt64(c.state, n, h.observe...)
	}
	for h, l := range levels {
		o.ObserveInt64(c.waiting, l.waiting, h.observe...)
		o.ObserveInt64(c.inFlight, l.inFlight, h.observe...)
		o.ObserveFloat64(c.pauseRemaining, l.pause, h.observe...)
		for r, n := range l.remaining {
			o.ObserveInt64(c.remaining, n, r.observe...)
		}
	}
}

func (l *level) add(h *host, s *headway.HostStatus) {
	l.waiting += int64(s.Waiting)
	l.inFlight += int64(s.InFlight)
	for _, p := range s.Pauses {
		l.pause = max(l.pause, p.Left.Seconds())
	}
	left := func(name string, n int64) {
		if n == math.MaxInt64 {
			return // without a limit
		}
		r := h.rule(ruleName(name))
		if least, ok := l.remaining[r]; !ok || n < least {
			l.remaining[r] = n
		}
	}
	for _, r := range s.Rules {
		// A store's report that is older than a period says nothing about now.
		if r.Limit.Law == limiter.Calendar || r.Age <= r.Limit.Per {
			left(r.Rule, r.Remaining)
		}
	}
	for _, r := range s.Learned {
		left(r.Rule, r.Remaining)
	}
}
