package main

import (
	"context"
	"net/http"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	otelmetric "go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/headway-go/headway"
	otelheadway "github.com/headway-go/headway/otel"
)

// telemetry is a pair of providers.
type telemetry struct {
	meters  otelmetric.MeterProvider
	tracers trace.TracerProvider
}

var noTelemetry = telemetry{metricnoop.NewMeterProvider(), tracenoop.NewTracerProvider()}

// realMeters is the SDK's provider, whose metrics are never collected.
func realMeters() otelmetric.MeterProvider {
	return sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
}

// over puts Headway with an observer over base.
func (t telemetry) over(base http.RoundTripper) http.RoundTripper {
	observer := must(otelheadway.NewObserver(otelheadway.WithMeterProvider(t.meters), otelheadway.WithTracerProvider(t.tracers)))
	return must(headway.NewTransport(base, headway.Config{Observer: observer, Policies: ampleForAll}))
}

// otelhttp puts otelhttp over base.
func (t telemetry) otelhttp(base http.RoundTripper) http.RoundTripper {
	return otelhttp.NewTransport(base, otelhttp.WithMeterProvider(t.meters), otelhttp.WithTracerProvider(t.tracers))
}

// traced makes a caller's span for each request, as an instrumented server does.
func (t telemetry) traced(over http.RoundTripper) http.RoundTripper {
	return traced{over, t.tracers.Tracer("caller")}
}

type traced struct {
	over   http.RoundTripper
	tracer trace.Tracer
}

func (t traced) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, span := t.tracer.Start(req.Context(), "caller")
	defer span.End()
	return t.over.RoundTrip(req.WithContext(ctx))
}

// added measures by how much an operation is slower, and allocates more, than
// another; both in turns so short that they see the same machine.
func added(prepare func() (with, without operation)) func(*options) func() []float64 {
	return func(o *options) func() []float64 {
		with, without := prepare()
		const turns = 20
		n := max(2, calibrate(with, o.each/2, cpuTime)/turns)
		return func() []float64 {
			var ns, allocs float64
			for range turns {
				a, b, _ := perOperation(with, n, cpuTime)
				c, d, _ := perOperation(without, n, cpuTime)
				ns, allocs = ns+(a-c)/turns, allocs+(b-d)/turns
			}
			return []float64{ns, allocs}
		}
	}
}

// tripsWith is like trips, for a request with a context.
func tripsWith(ctx context.Context, rt http.RoundTripper) operation {
	req := newRequest("https://api.example.com/v1/items").WithContext(ctx)
	return func(n int) {
		for range n {
			rt.RoundTrip(req)
		}
	}
}

// caller is the context of a recording span that lasts.
func (t telemetry) caller() context.Context {
	ctx, _ := t.tracers.Tracer("caller").Start(context.Background(), "caller")
	return ctx
}

var placeAttributes = []attribute.KeyValue{
	attribute.String("headway.policy", "*"), attribute.String("server.address", "api.example.com"), attribute.String("headway.outcome", "started"),
}

// increments counts on a counter of its own with a cached attribute set.
func increments() operation {
	counter := must(realMeters().Meter("bench").Int64Counter("requests"))
	set := []otelmetric.AddOption{otelmetric.WithAttributeSet(attribute.NewSet(placeAttributes...))}
	ctx := context.Background()
	return func(n int) {
		for range n {
			counter.Add(ctx, 1, set...)
		}
	}
}

// bareSpans starts and ends spans with the attributes of Headway's.
func bareSpans() operation {
	t := telemetry{tracers: sdktrace.NewTracerProvider()}
	ctx, tracer := t.caller(), t.tracers.Tracer("bench")
	rule := ampleBucket.String()
	return func(n int) {
		for i := range n {
			_, span := tracer.Start(ctx, "headway wait", trace.WithAttributes(
				placeAttributes[0], placeAttributes[1], attribute.String("headway.rule", rule), placeAttributes[2],
				attribute.Int64("headway.cost", 1), attribute.Int64("headway.remaining", int64(i)),
			))
			span.End()
		}
	}
}

// batching is a tracer provider that records everything and exports it, to
// nowhere, in batches.
func batching() trace.TracerProvider {
	return sdktrace.NewTracerProvider(sdktrace.WithBatcher(discard{}))
}

type discard struct{}

func (discard) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }
func (discard) Shutdown(context.Context) error                             { return nil }

func otelRows() []row {
	const counter, bareSpan, ourMetrics, ourSpan = "one increment of a counter", "a bare span with the same attributes", "Headway's metrics", "Headway's span"
	const transport, theirs = "Headway, one Bucket, with metrics", "otelhttp"
	over := func(t func() telemetry) func() (with, without operation) {
		return func() (with, without operation) {
			t := t()
			ctx := context.Background()
			if _, recording := t.tracers.(*sdktrace.TracerProvider); recording {
				ctx = t.caller()
			}
			return tripsWith(ctx, t.over(newStub())), tripsWith(ctx, headwayOver(newStub(), 0, ampleBucket))
		}
	}
	unrecorded := func() telemetry { return telemetry{realMeters(), tracenoop.NewTracerProvider()} }
	rows := []row{{
		name: "otel/metrics", procs: 1, rounds: rounds, metrics: perOp,
		about: "What OpenTelemetry's metrics add to a request through the Transport over a stub, without a recording span, on the real SDK.",
		subjects: []subject{
			{counter, floor, ops(increments)},
			{ourMetrics, ours, added(over(unrecorded))},
			{"no-op providers", extra, added(over(func() telemetry { return noTelemetry }))},
			{"an observer that does nothing", extra, added(func() (with, without operation) {
				nothing := headway.ObserverFunc(func(context.Context, headway.Event) {})
				rt := must(headway.NewTransport(newStub(), headway.Config{Observer: nothing, Policies: ampleForAll}))
				return tripsWith(context.Background(), rt), tripsWith(context.Background(), headwayOver(newStub(), 0, ampleBucket))
			})},
		},
		goals: []goal{{ourMetrics, "ns", counter, 2.5}, {ourMetrics, "allocs", "", 0}},
	}, {
		name: "otel/span", procs: 1, rounds: rounds, metrics: perOp,
		about: "What a span of the wait adds to a request through the Transport over a stub, under a recording span of the caller's, on the real SDK; the spans go nowhere.",
		subjects: []subject{
			{bareSpan, floor, ops(bareSpans)},
			{ourSpan, ours, added(over(func() telemetry { return telemetry{metricnoop.NewMeterProvider(), sdktrace.NewTracerProvider()} }))},
			{"Headway's span and metrics", extra, added(over(func() telemetry { return telemetry{realMeters(), sdktrace.NewTracerProvider()} }))},
		},
		goals: []goal{{ourSpan, "ns", bareSpan, 1.3}, {ourSpan, "allocs", "", 8}},
	}, {
		name: "otel/transport", procs: 1, rounds: rounds, metrics: perOp,
		about: "RoundTrip over a stub that makes its responses, with metrics of the real SDK, without spans: the whole Transport with its observer, and otelhttp.",
		subjects: []subject{
			{"floor: the bare stub", floor, ops(trips(func(http.RoundTripper) http.RoundTripper { return freshStub{} }))},
			{transport, ours, ops(trips(func(http.RoundTripper) http.RoundTripper { return unrecorded().over(freshStub{}) }))},
			{theirs, peer, ops(trips(func(http.RoundTripper) http.RoundTripper { return unrecorded().otelhttp(freshStub{}) }))},
		},
		goals: []goal{{transport, "ns", theirs, 0.25}},
	}}
	for _, l := range []struct {
		name, about string
		setup       func() telemetry
		least       float64
	}{
		{"no-op", "no-op providers", func() telemetry { return noTelemetry }, 0.97},
		{"unsampled", "metrics of the real SDK, and a tracer provider that samples nothing", func() telemetry {
			return telemetry{realMeters(), sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))}
		}, 0.87},
		{"sampled", "metrics of the real SDK, and a tracer provider that samples everything and exports it in batches, to nowhere", func() telemetry {
			return telemetry{realMeters(), batching()}
		}, 0.67},
	} {
		rows = append(rows, otelLoopback(l.name, l.about, l.setup, l.least))
	}
	return rows
}

// freshStub is stub with a response for each request: otelhttp changes them.
type freshStub struct{}

func (freshStub) RoundTrip(*http.Request) (*http.Response, error) { return okResponse(), nil }

func otelLoopback(name, about string, setup func() telemetry, least float64) row {
	const bare, us = "floor: bare http.Transport", "Headway with its observer"
	caller := func(over func(telemetry) func(http.RoundTripper) http.RoundTripper) func(http.RoundTripper) http.RoundTripper {
		return func(base http.RoundTripper) http.RoundTripper {
			t := setup()
			rt := over(t)(base)
			if name == "sampled" {
				rt = t.traced(rt)
			}
			return rt
		}
	}
	return row{
		name: "otel/loopback/" + name, procs: 2, most: 8,
		about: "The calls of the row loopback, with " + about + ". Where spans are sampled, the callers of all but the bare one have a span of their own.",
		metrics: []metric{
			{name: "p50 µs", digits: 1, ratio: true}, {name: "p99 µs", digits: 1, neutral: true},
			{name: "per s", more: true, ratio: true},
		},
		subjects: []subject{
			{name: bare, kind: floor},
			{name: us, kind: ours},
			{name: "otelhttp", kind: peer},
			{name: "Headway over otelhttp", kind: extra},
		},
		together: overLoopback(
			func(base http.RoundTripper) http.RoundTripper { return base },
			caller(func(t telemetry) func(http.RoundTripper) http.RoundTripper { return t.over }),
			caller(func(t telemetry) func(http.RoundTripper) http.RoundTripper { return t.otelhttp }),
			caller(func(t telemetry) func(http.RoundTripper) http.RoundTripper {
				return func(base http.RoundTripper) http.RoundTripper { return t.over(t.otelhttp(base)) }
			}),
		),
		goals: []goal{{us, "per s", bare, least}},
	}
}
