package otelheadway_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/headway-go/headway"
	otelheadway "github.com/headway-go/headway/otel"
)

// A rig is an observer on real SDKs that keep everything in memory.
type rig struct {
	testing.TB
	*otelheadway.Observer
	meters *sdkmetric.MeterProvider
	reader *sdkmetric.ManualReader
	spans  *tracetest.SpanRecorder
	tracer trace.Tracer
}

func newRig(t testing.TB, opts ...otelheadway.Option) *rig {
	r := &rig{TB: t, reader: sdkmetric.NewManualReader(), spans: tracetest.NewSpanRecorder()}
	r.meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(r.reader))
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(r.spans))
	r.tracer = tracers.Tracer("test")
	var err error
	r.Observer, err = otelheadway.NewObserver(append([]otelheadway.Option{
		otelheadway.WithMeterProvider(r.meters), otelheadway.WithTracerProvider(tracers),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// transport returns a Transport that r observes.
func (r *rig) transport(base http.RoundTripper, policies ...headway.Policy) *headway.Transport {
	r.Helper()
	tr, err := headway.NewTransport(base, headway.Config{Policies: policies, Observer: r.Observer})
	if err != nil {
		r.Fatal(err)
	}
	return tr
}

// collect returns all metrics by name.
func (r *rig) collect() map[string]metricdata.Metrics {
	r.Helper()
	var all metricdata.ResourceMetrics
	if err := r.reader.Collect(context.Background(), &all); err != nil {
		r.Fatal(err)
	}
	byName := map[string]metricdata.Metrics{}
	for _, s := range all.ScopeMetrics {
		for _, m := range s.Metrics {
			if _, ok := byName[m.Name]; ok {
				r.Errorf("%s comes twice", m.Name)
			}
			byName[m.Name] = m
		}
	}
	return byName
}

// series returns the series of all metrics as lines, "name{attributes} value".
// Those of a histogram are its count and its sum.
func (r *rig) series() (lines []string) {
	r.Helper()
	for name, m := range r.collect() {
		add := func(set attribute.Set, value any) {
			lines = append(lines, fmt.Sprintf("%s%s %v", name, attributes(set.ToSlice()), value))
		}
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			for _, p := range data.DataPoints {
				add(p.Attributes, p.Value)
			}
		case metricdata.Gauge[int64]:
			for _, p := range data.DataPoints {
				add(p.Attributes, p.Value)
			}
		case metricdata.Gauge[float64]:
			for _, p := range data.DataPoints {
				add(p.Attributes, p.Value)
			}
		case metricdata.Histogram[float64]:
			for _, p := range data.DataPoints {
				add(p.Attributes, fmt.Sprintf("%d %gs", p.Count, p.Sum))
			}
		default:
			r.Errorf("%s is a %T", name, data)
		}
	}
	slices.Sort(lines)
	return lines
}

// attributes returns attributes as text, without those that a whole test shares.
func attributes(list []attribute.KeyValue) string {
	text := "{"
	for _, a := range list {
		if (a.Key == "headway.policy" && a.Value.AsString() == "p") || (a.Key == "server.address" && a.Value.AsString() == "api.test") {
			continue
		}
		if len(text) > 1 {
			text += " "
		}
		text += string(a.Key) + "=" + a.Value.String()
	}
	return text + "}"
}

// wantSeries compares all series with those wanted.
func (r *rig) wantSeries(want ...string) {
	r.Helper()
	wantLines(r, r.series(), want)
}

func wantLines(t testing.TB, got, want []string) {
	t.Helper()
	want = slices.Sorted(slices.Values(want))
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("got, and do not want, %s", line)
		}
	}
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("want, and have not got, %s", line)
		}
	}
}

// sum returns the sum of a counter over the series that have all of attrs.
func (r *rig) sum(name string, attrs ...attribute.KeyValue) (n int64) {
	r.Helper()
	data, ok := r.collect()[name].Data.(metricdata.Sum[int64])
	if !ok {
		return 0
	}
	for _, p := range data.DataPoints {
		if has(p.Attributes, attrs) {
			n += p.Value
		}
	}
	return n
}

func has(set attribute.Set, attrs []attribute.KeyValue) bool {
	for _, a := range attrs {
		if v, ok := set.Value(a.Key); !ok || v != a.Value {
			return false
		}
	}
	return true
}

// A service responds after its latency, by respond or with a 200.
type service struct {
	latency time.Duration
	respond func(*http.Request) *http.Response
}

func (s service) RoundTrip(req *http.Request) (*http.Response, error) {
	select {
	case <-time.After(s.latency):
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
	if s.respond != nil {
		return s.respond(req), nil
	}
	return reply(req, 200), nil
}

func reply(req *http.Request, status int, header ...string) *http.Response {
	h := http.Header{}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, Body: http.NoBody, Request: req}
}

// send sends a GET and reads the response.
func send(rt http.RoundTripper, ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		return err
	}
	resp, err := rt.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// A crowd is requests on their way.
type crowd struct{ sync.WaitGroup }

func (c *crowd) send(rt http.RoundTripper, ctx context.Context, url string) {
	c.Go(func() { send(rt, ctx, url) })
}

// requests returns a function that sends one request repeatedly, without allocating.
func requests(t testing.TB, rt http.RoundTripper, ctx context.Context, url string) func() {
	req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Tenant", "7")
	req.Header.Set("User", "8")
	return func() {
		if _, err := rt.RoundTrip(req); err != nil {
			t.Error(err)
		}
	}
}
