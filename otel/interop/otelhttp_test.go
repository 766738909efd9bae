package interop_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/headwaytest"
	"github.com/headway-go/headway/limiter"
	otelheadway "github.com/headway-go/headway/otel"
)

// otelhttp inside sees the network alone, outside the wait too; either way the
// wait has a span beside the network's, and what it says is the same.
func TestOtelhttpInsideAndOutside(t *testing.T) {
	for _, tt := range []struct {
		name, want      string
		inside, outside bool
	}{
		{"inside", "caller 0s to 1s; caller/HTTP GET 800ms to 1s; caller/headway wait 0s to 800ms", true, false},
		{"outside", "caller 0s to 1s; caller/HTTP GET 0s to 1s; caller/HTTP GET/headway wait 0s to 800ms", false, true},
		{"both", "caller 0s to 1s; caller/HTTP GET 0s to 1s; caller/HTTP GET/HTTP GET 800ms to 1s; caller/HTTP GET/headway wait 0s to 800ms", true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				spans := tracetest.NewSpanRecorder()
				tracers := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
				meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
				observer, err := otelheadway.NewObserver(otelheadway.WithTracerProvider(tracers), otelheadway.WithMeterProvider(meters))
				if err != nil {
					t.Fatal(err)
				}
				network := func(base http.RoundTripper) http.RoundTripper {
					return otelhttp.NewTransport(base, otelhttp.WithTracerProvider(tracers), otelhttp.WithMeterProvider(meters))
				}
				base := http.RoundTripper(&headwaytest.Vendor{Latency: 100 * time.Millisecond})
				if tt.inside {
					base = network(base)
				}
				transport, err := headway.NewTransport(base, headway.Config{Observer: observer, Policies: []headway.Policy{{
					Hosts: []string{"*"}, Limits: []limiter.Limit{limiter.Every(time.Second)},
				}}})
				if err != nil {
					t.Fatal(err)
				}
				client := &http.Client{Transport: transport}
				if tt.outside {
					client.Transport = network(transport)
				}
				var epoch time.Time
				for range 2 { // the second waits
					spans.Reset()
					epoch = time.Now()
					ctx, caller := tracers.Tracer("test").Start(t.Context(), "caller")
					req, err := http.NewRequestWithContext(ctx, "GET", "https://api.test/", nil)
					if err != nil {
						t.Fatal(err)
					}
					resp, err := client.Do(req)
					if err != nil {
						t.Fatal(err)
					}
					resp.Body.Close()
					caller.End()
				}
				if got := tree(spans.Ended(), epoch); got != tt.want {
					t.Errorf("got  %s\nwant %s", got, tt.want)
				}
			})
		})
	}
}

// tree returns spans with the names of those above them and their times.
func tree(spans []sdktrace.ReadOnlySpan, epoch time.Time) string {
	byID := map[trace.SpanID]sdktrace.ReadOnlySpan{}
	for _, s := range spans {
		byID[s.SpanContext().SpanID()] = s
	}
	var lines []string
	for _, s := range spans {
		path := s.Name()
		for p := byID[s.Parent().SpanID()]; p != nil; p = byID[p.Parent().SpanID()] {
			path = p.Name() + "/" + path
		}
		lines = append(lines, fmt.Sprintf("%s %v to %v", path, s.StartTime().Sub(epoch), s.EndTime().Sub(epoch)))
	}
	slices.Sort(lines)
	return strings.Join(lines, "; ")
}
