package interop_test

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	collectormetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
	otelheadway "github.com/headway-go/headway/otel"
)

// A receiver is an OTLP/HTTP endpoint that keeps what it is sent.
type receiver struct {
	mu      sync.Mutex // guards following fields
	metrics []*metrics.ScopeMetrics
	spans   []*traces.ScopeSpans
	bad     []error
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if err := r.receive(req); err != nil {
		r.mu.Lock()
		r.bad = append(r.bad, err)
		r.mu.Unlock()
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/x-protobuf") // an empty message: all is well
}

func (r *receiver) receive(req *http.Request) error {
	body := io.Reader(req.Body)
	if req.Header.Get("Content-Encoding") == "gzip" {
		var err error
		if body, err = gzip.NewReader(req.Body); err != nil {
			return err
		}
	}
	data, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch req.URL.Path {
	case "/v1/metrics":
		var m collectormetrics.ExportMetricsServiceRequest
		if err := proto.Unmarshal(data, &m); err != nil {
			return err
		}
		r.metrics = nil // they are cumulative: the latest says all
		for _, resource := range m.ResourceMetrics {
			r.metrics = append(r.metrics, resource.ScopeMetrics...)
		}
	case "/v1/traces":
		var m collectortrace.ExportTraceServiceRequest
		if err := proto.Unmarshal(data, &m); err != nil {
			return err
		}
		for _, resource := range m.ResourceSpans {
			r.spans = append(r.spans, resource.ScopeSpans...)
		}
	default:
		return fmt.Errorf("no such path: %s", req.URL.Path)
	}
	return nil
}

func text(list []*common.KeyValue) string {
	var parts []string
	for _, a := range list {
		switch v := a.Value.Value.(type) {
		case *common.AnyValue_StringValue:
			parts = append(parts, a.Key+"="+v.StringValue)
		case *common.AnyValue_IntValue:
			parts = append(parts, fmt.Sprint(a.Key, "=", v.IntValue))
		case *common.AnyValue_DoubleValue:
			parts = append(parts, fmt.Sprint(a.Key, "=", v.DoubleValue))
		}
	}
	return strings.Join(parts, " ")
}

// Everything reaches a real receiver through the real exporters, and means there
// what it meant here.
func TestOTLP(t *testing.T) {
	received := new(receiver)
	server := httptest.NewServer(received)
	defer server.Close()
	ctx := t.Context()
	metricExporter, err := otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpointURL(server.URL+"/v1/metrics"))
	if err != nil {
		t.Fatal(err)
	}
	traceExporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(server.URL+"/v1/traces"), otlptracehttp.WithCompression(otlptracehttp.GzipCompression))
	if err != nil {
		t.Fatal(err)
	}
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(metricExporter)))
	tracers := sdktrace.NewTracerProvider(sdktrace.WithBatcher(traceExporter))
	observer, err := otelheadway.NewObserver(otelheadway.WithMeterProvider(meters), otelheadway.WithTracerProvider(tracers))
	if err != nil {
		t.Fatal(err)
	}

	vendor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/pause" {
			w.Header().Set("Retry-After", "30")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	defer vendor.Close()
	transport, err := headway.NewTransport(nil, headway.Config{Observer: observer, Policies: []headway.Policy{{
		Name: "vendor", Hosts: []string{"*"}, Limits: []limiter.Limit{limiter.Every(20 * time.Millisecond)}, MaxWait: time.Second,
	}}})
	if err != nil {
		t.Fatal(err)
	}
	defer transport.CloseIdleConnections()
	ids := map[string]string{} // of callers by name
	for _, path := range []string{"/a", "/b", "/pause", "/refused"} {
		ctx, span := tracers.Tracer("test").Start(ctx, "GET "+path)
		id := span.SpanContext().SpanID()
		ids[string(id[:])] = path
		req, err := http.NewRequestWithContext(ctx, "GET", vendor.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := transport.RoundTrip(req); err == nil {
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		} else if path != "/refused" {
			t.Error(path, err)
		}
		span.End()
	}
	for _, flush := range []func(context.Context) error{meters.Shutdown, tracers.Shutdown} {
		if err := flush(ctx); err != nil {
			t.Error(err)
		}
	}

	received.mu.Lock()
	defer received.mu.Unlock()
	for _, err := range received.bad {
		t.Error("the receiver:", err)
	}
	decisions, waits := map[string]int64{}, map[string]uint64{}
	found := 0
	for _, scope := range received.metrics {
		if scope.SchemaUrl != semconv.SchemaURL {
			t.Errorf("the metrics' schema is %s, want %s", scope.SchemaUrl, semconv.SchemaURL)
		}
		for _, m := range scope.Metrics {
			found++
			switch m.Name {
			case "headway.decisions":
				for _, p := range m.GetSum().DataPoints {
					decisions[text(p.Attributes)] = p.GetAsInt()
				}
			case "headway.wait.duration":
				for _, p := range m.GetHistogram().DataPoints {
					waits[text(p.Attributes)] = p.Count
					if len(p.Exemplars) == 0 || len(p.Exemplars[0].TraceId) != 16 {
						t.Errorf("%s has no exemplar with a trace", text(p.Attributes))
					}
				}
			}
		}
	}
	host := strings.TrimPrefix(vendor.URL, "http://127.0.0.1:")
	place := " headway.policy=vendor"
	address := " server.address=127.0.0.1 server.port=" + host
	for key, want := range map[string]int64{
		"headway.outcome=started" + place + address:                           3,
		"headway.outcome=refused" + place + " headway.reason=pause" + address: 1,
	} {
		if decisions[key] != want {
			t.Errorf("%d decisions with %s, want %d; all: %v", decisions[key], key, want, decisions)
		}
	}
	if got := waits["headway.outcome=started"+place+address]; got != 3 {
		t.Errorf("%d waits of those started, want 3; all: %v", got, waits)
	}
	if found < 8 {
		t.Errorf("%d metrics have come, want most of them", found)
	}

	spans := map[string]*traces.Span{} // of waits by their caller
	for _, scope := range received.spans {
		for _, s := range scope.Spans {
			if s.Name == "headway wait" {
				spans[ids[string(s.ParentSpanId)]] = s
			}
		}
	}
	if len(spans) != 4 {
		t.Fatalf("spans of waits under %v, want one under each caller", spans)
	}
	if s := spans["/b"]; len(s.Events) != 1 || s.Events[0].Name != "headway.held" || s.EndTimeUnixNano <= s.StartTimeUnixNano {
		t.Errorf("the span of /b is %v, want a wait for the rule", s)
	}
	s := spans["/refused"]
	if s.Status.Code != traces.Status_STATUS_CODE_ERROR || len(s.Links) != 1 || ids[string(s.Links[0].SpanId)] != "/pause" ||
		!strings.Contains(text(s.Attributes), "error.type=*headway.ThrottledError") {
		t.Errorf("the span of /refused is %v, want an error, linked to the request whose response raised the pause", s)
	}
}
