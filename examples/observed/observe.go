package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/otlptranslator"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/breaker"
	"github.com/headway-go/headway/debug"
	"github.com/headway-go/headway/limiter"
	otelheadway "github.com/headway-go/headway/otel"
)

// slow is the least wait for which a request is printed.
const slow = 1500 * time.Millisecond

// An observed is a Transport, another whose budget is in a store, and the observers of
// both.
type observed struct {
	*headway.Transport
	stored   *headway.Transport
	store    shaky
	recent   debug.Recent
	registry *prometheus.Registry
	narrator *narrator
	spans    *tracetest.InMemoryExporter
	tracer   trace.Tracer
}

// observe returns Transports over base. Slow requests are printed to w.
func observe(base http.RoundTripper, w io.Writer) (*observed, error) {
	o := &observed{registry: prometheus.NewRegistry(), narrator: &narrator{w: w, begin: time.Now()}, spans: tracetest.NewInMemoryExporter()}
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(o.spans))
	o.tracer = tracers.Tracer("observed")
	exporter, err := otelprometheus.New(
		otelprometheus.WithRegisterer(o.registry), otelprometheus.WithoutScopeInfo(),
		otelprometheus.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes), // as the dashboard has them
	)
	if err != nil {
		return nil, err
	}
	metrics, err := otelheadway.NewObserver(otelheadway.WithTracerProvider(tracers), otelheadway.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(exporter))))
	if err != nil {
		return nil, err
	}
	o.Transport, err = headway.NewTransport(base, headway.Config{
		Policies: []headway.Policy{{
			Name:    "service",
			Hosts:   []string{"*"},
			MaxWait: 3 * time.Second,
			Rules:   []headway.Rule{{Name: "requests", Limit: limiter.Limit{N: perSecond, Per: time.Second, Strict: true}}},
			Breaker: &breaker.Config{Failures: 3, OpenFor: time.Second},
		}},
		Observer: headway.MultiObserver(metrics, &o.recent, o.narrator),
	})
	if err != nil {
		return nil, err
	}
	o.stored, err = headway.NewTransport(base, headway.Config{
		Policies: []headway.Policy{{
			Name:    "stored",
			Hosts:   []string{"*"},
			MaxWait: headway.NoWait,
			Limits:  []limiter.Limit{limiter.PerSecond(8)}, // a quarter of that without the store
		}},
		Observer: headway.MultiObserver(metrics, &o.recent, o.narrator),
		Store:    &o.store,
		Secret:   []byte("no keys here"),
	})
	return o, err
}

// handler serves the page and the metrics.
func (o *observed) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/debug/headway", debug.Handler(o.Transport, &o.recent))
	mux.Handle("/metrics", promhttp.HandlerFor(o.registry, promhttp.HandlerOpts{}))
	return mux
}

// print writes all metrics except the buckets of histograms.
func (o *observed) print(w io.Writer) error {
	families, err := o.registry.Gather()
	if err != nil {
		return err
	}
	for _, family := range families {
		var text strings.Builder
		if _, err := expfmt.MetricFamilyToText(&text, family); err != nil {
			return err
		}
		for line := range strings.Lines(text.String()) {
			if strings.HasPrefix(line, "headway_") && !strings.Contains(line, "_bucket{") {
				fmt.Fprint(w, "    ", line)
			}
		}
	}
	return nil
}

// A narrator prints some of each burst's requests that were slow or refused, and, as an
// Observer, the other events of the story.
type narrator struct {
	begin time.Time

	mu    sync.Mutex // guards following fields
	w     io.Writer
	shown map[string]int // printed requests, by burst and result
}

// trace prints what held a request up, for at most three requests of a burst with the
// same result.
func (t *narrator) trace(burst string, tr *headway.Trace) {
	for _, r := range tr.Requests() {
		var throttled *headway.ThrottledError
		refused := errors.As(r.Err, &throttled)
		if (refused || r.Wait >= slow) && t.first(fmt.Sprint(burst, refused)) {
			t.print("%q: %v", burst, r)
		}
	}
}

func (t *narrator) first(what string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.shown == nil {
		t.shown = map[string]int{}
	}
	t.shown[what]++
	return t.shown[what] <= 3
}

// Observe implements headway.Observer.
func (t *narrator) Observe(_ context.Context, e headway.Event) {
	switch {
	case e.Kind == headway.EventPause:
		t.print("a %d pauses all requests for %.0f s", e.Status, e.Pause.Seconds())
	case e.Kind == headway.EventOpen || e.Kind == headway.EventClosed:
		t.print("the breaker is %v", e.Kind)
	case e.Kind == headway.EventStoreDown:
		t.print("the store is down: %v", e.Err)
	case e.Kind == headway.EventStoreUp:
		t.print("the store is up")
	}
}

func (t *narrator) print(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(t.w, "    %5.2f s   "+format+"\n", append([]any{time.Since(t.begin).Seconds()}, args...)...)
}
