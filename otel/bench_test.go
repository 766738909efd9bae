package otelheadway_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
)

func BenchmarkCounter(b *testing.B) {
	c, _ := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader())).Meter("x").Int64Counter("c")
	opt := []metric.AddOption{metric.WithAttributeSet(attribute.NewSet(attribute.String("headway.policy", "p"), attribute.String("server.address", "api.test")))}
	b.ReportAllocs()
	for b.Loop() {
		c.Add(context.Background(), 1, opt...)
	}
}

func BenchmarkTransport(b *testing.B) {
	o, ctx := still(b)
	for name, tt := range map[string]struct {
		observer headway.Observer
		ctx      context.Context
	}{"observer=none": {nil, context.Background()}, "observer=metrics": {o, context.Background()}, "observer=spans": {o, ctx},
		"observer=func": {headway.ObserverFunc(func(context.Context, headway.Event) {}), context.Background()}} {
		b.Run(name, func(b *testing.B) {
			tr, err := headway.NewTransport(roundTripper(func(r *http.Request) (*http.Response, error) { return okResponse, nil }), headway.Config{Observer: tt.observer, Policies: []headway.Policy{{
				Hosts: []string{"*"}, Limits: []limiter.Limit{{N: 1_000_000_000, Per: time.Second, Law: limiter.Bucket}},
			}}})
			if err != nil {
				b.Fatal(err)
			}
			send := requests(b, tr, tt.ctx, url)
			b.ReportAllocs()
			for b.Loop() {
				send()
			}
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

var okResponse = &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody}

func BenchmarkSpan(b *testing.B) {
	o, ctx := still(b)
	e := headway.Event{Kind: headway.EventStart, Policy: "p", Host: "api.test", Rule: "r", Cost: 1, Remaining: 9}
	b.Run("observer", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			o.Observe(ctx, e)
		}
	})
	tracer := trace.SpanFromContext(ctx).TracerProvider().Tracer("x")
	b.Run("bare", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, span := tracer.Start(ctx, "headway wait", trace.WithAttributes(
				attribute.String("headway.policy", "p"), attribute.String("server.address", "api.test"), attribute.String("headway.rule", "r"),
				attribute.String("headway.outcome", "started"), attribute.Int64("headway.cost", 1), attribute.Int64("headway.remaining", 9)))
			span.End()
		}
	})
}
