package otelheadway_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
	otelheadway "github.com/headway-go/headway/otel"
)

// still returns an observer without memory of spans.
func still(t testing.TB) (*otelheadway.Observer, context.Context) {
	tracers := sdktrace.NewTracerProvider()
	o, err := otelheadway.NewObserver(
		otelheadway.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))),
		otelheadway.WithTracerProvider(tracers))
	if err != nil {
		t.Fatal(err)
	}
	ctx, span := tracers.Tracer("test").Start(context.Background(), "caller")
	t.Cleanup(func() { span.End() })
	return o, ctx
}

// allocs returns how many allocations f makes, or none under the race detector,
// which allocates by itself; make test runs these without it too.
func allocs(f func()) float64 {
	if raceEnabled {
		return 0
	}
	return testing.AllocsPerRun(1000, f)
}

// Counting a request that starts at once allocates nothing.
func TestAllocMetrics(t *testing.T) {
	ample := limiter.Limit{N: 1_000_000, Per: time.Second, Law: limiter.Bucket}
	for name, policy := range map[string]headway.Policy{
		"no limit":   {},
		"one limit":  {Limits: []limiter.Limit{ample}},
		"two limits": {Limits: []limiter.Limit{ample, {N: 900_000, Per: time.Second, Law: limiter.Bucket}}},
		"keys":       {Rules: []headway.Rule{{Name: "a", Limit: ample, Key: headway.ByHeader("Tenant")}, {Name: "b", Limit: ample, Key: headway.ByHeader("User")}}},
	} {
		o, _ := still(t)
		policy.Hosts = []string{"*"}
		var hosts [20]func()
		for i := range hosts {
			tr, err := headway.NewTransport(roundTripper(func(*http.Request) (*http.Response, error) { return okResponse, nil }), headway.Config{Observer: o, Policies: []headway.Policy{policy}})
			if err != nil {
				t.Fatal(err)
			}
			hosts[i] = requests(t, tr, trace.ContextWithSpan(context.Background(), noop.Span{}), fmt.Sprintf("https://h%d.test/", i))
		}
		if n := allocs(func() {
			for _, send := range hosts {
				send()
			}
		}); n > 0 {
			t.Errorf("%s: %v allocations for 20 requests, want none", name, n)
		}
	}
}

// The span of a wait costs at most 8 allocations, also one without the store.
func TestAllocSpan(t *testing.T) {
	o, ctx := still(t)
	e := headway.Event{Kind: headway.EventStart, Policy: "p", Host: "api.test", Rule: "r", KeyDigest: "0123", Cost: 1, Remaining: 9, Attempt: 1, Away: true}
	if n := allocs(func() { o.Observe(ctx, e) }); n > 8 {
		t.Errorf("%v allocations, want at most 8", n)
	}
	if n := allocs(func() { o.Observe(context.Background(), e) }); n > 0 {
		t.Errorf("%v allocations without a span, want none", n)
	}
}
