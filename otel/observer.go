package otelheadway

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/headway-go/headway"
)

// scope is the name of the instrumentation scope of all metrics and spans.
const scope = "github.com/headway-go/headway/otel"

// An Observer records metrics and spans of what Transports decide: see the package
// documentation. Create it with NewObserver, and set headway.Config.Observer of one
// or more Transports to it. It is safe for concurrent use.
type Observer struct {
	tracer trace.Tracer
	counts *counts
}

var _ headway.TransportObserver = (*Observer)(nil)

// An Option configures an Observer.
type Option func(*options)

type options struct {
	tracers  trace.TracerProvider
	meters   metric.MeterProvider
	maxHosts int
}

// WithTracerProvider sets the provider of tracers. The default is the global
// provider.
func WithTracerProvider(p trace.TracerProvider) Option {
	return func(o *options) { o.tracers = p }
}

// WithMeterProvider sets the provider of meters. The default is the global
// provider.
func WithMeterProvider(p metric.MeterProvider) Option {
	return func(o *options) { o.meters = p }
}

// WithMaxHosts bounds the number of hosts, counted once for each policy, with
// series of their own. The other hosts of a policy share one with the
// server.address "_OTHER". The default is 1,000; it must be positive.
func WithMaxHosts(n int) Option {
	return func(o *options) { o.maxHosts = n }
}

// NewObserver returns an Observer. Observers with the same meter provider and the
// same WithMaxHosts count together, so that a program may have one or many. The
// provider is never forgotten. The error is that of an instrument or of an invalid
// option.
func NewObserver(opts ...Option) (*Observer, error) {
	o := options{maxHosts: 1000}
	for _, opt := range opts {
		opt(&o)
	}
	if o.maxHosts <= 0 {
		return nil, fmt.Errorf("otelheadway: WithMaxHosts(%d): want a positive number", o.maxHosts)
	}
	if o.tracers == nil {
		o.tracers = otel.GetTracerProvider()
	}
	if o.meters == nil {
		o.meters = otel.GetMeterProvider()
	}
	c, err := countsOf(o.meters, o.maxHosts)
	if err != nil {
		return nil, fmt.Errorf("otelheadway: %w", err)
	}
	return &Observer{tracer: o.tracers.Tracer(scope, trace.WithSchemaURL(semconv.SchemaURL)), counts: c}, nil
}

// Observe counts an event. If the event ends a wait and the span of ctx is
// recording, it records the wait's span.
func (o *Observer) Observe(ctx context.Context, e headway.Event) {
	h := o.counts.count(ctx, &e)
	switch e.Kind {
	case headway.EventStart, headway.EventRefused, headway.EventCanceled, headway.EventNoKey, headway.EventOpenRefused:
		if trace.SpanFromContext(ctx).IsRecording() {
			o.record(ctx, h, &e)
		}
	case headway.EventPause:
		h.pauses.add(ctx, &e)
	}
}

// Watch includes t in the gauges for as long as it is in use. NewTransport calls it
// for the Observer in its Config, and headway.MultiObserver passes it on. Call it
// if the Observer of t is one of your own that calls this one.
func (o *Observer) Watch(t *headway.Transport) { o.counts.watch(t) }
