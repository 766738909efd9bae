package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
)

// server serves on the loopback as long as the process lives. All subjects share its
// connections.
var server = sync.OnceValues(func() (url string, base *http.Transport) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "ok")
	}))
	base = http.DefaultTransport.(*http.Transport).Clone()
	base.MaxIdleConnsPerHost = callers
	return s.URL, base
})

// callers is how many goroutines call at once when throughput is measured.
const callers = 16

func get(c *http.Client, url string) {
	resp, err := c.Get(url)
	if err != nil {
		panic(err)
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
}

// overLoopback measures calls one after another, each by the next subject, so that the
// machine is in the same state for all; then calls by several goroutines at once, in
// slices of time that take turns.
func overLoopback(subjects ...func(base http.RoundTripper) http.RoundTripper) func(*options) func() [][]float64 {
	return func(o *options) func() [][]float64 {
		url, base := server()
		clients := make([]*http.Client, len(subjects))
		for i, over := range subjects {
			clients[i] = &http.Client{Transport: over(base)}
			get(clients[i], url)
		}
		const slice = 10 * time.Millisecond
		pass := 0
		return func() [][]float64 {
			pass++
			times := make([][]float64, len(clients))
			for begin := time.Now(); time.Since(begin) < o.each*time.Duration(len(clients)); {
				for k := range clients {
					i := (pass + k) % len(clients)
					sent := time.Now()
					get(clients[i], url)
					times[i] = append(times[i], float64(time.Since(sent))/1000)
				}
			}
			done, took := make([]int, len(clients)), make([]time.Duration, len(clients))
			for range o.each / slice {
				for k := range clients {
					i := (pass + k) % len(clients)
					n, t := together(clients[i], url, slice)
					done[i] += n
					took[i] += t
				}
			}
			values := make([][]float64, len(clients))
			for i := range values {
				slices.Sort(times[i])
				values[i] = []float64{quantile(times[i], 0.5), quantile(times[i], 0.99), float64(done[i]) / took[i].Seconds()}
			}
			return values
		}
	}
}

// together has all callers make calls for a time, and returns the number of calls and
// the time that they took.
func together(c *http.Client, url string, long time.Duration) (int, time.Duration) {
	var wg workers
	var counts [callers]int
	begin := time.Now()
	for i := range callers {
		wg.Go(func() {
			for time.Since(begin) < long {
				get(c, url)
				counts[i]++
			}
		})
	}
	wg.Wait()
	sum := 0
	for _, n := range counts {
		sum += n
	}
	return sum, time.Since(begin)
}

func loopbackRows() []row {
	const bare, us = "floor: bare http.Transport", "Headway, one Bucket"
	same := func(base http.RoundTripper) http.RoundTripper { return base }
	return []row{{
		name: "loopback", procs: 2, most: 8,
		about: "GET of 2 bytes from a real server on the loopback in the same process, HTTP/1.1 with kept connections: one caller for the latency, 16 for the throughput.",
		metrics: []metric{
			{name: "p50 µs", digits: 1, ratio: true}, {name: "p99 µs", digits: 1, neutral: true},
			{name: "per s", more: true, ratio: true},
		},
		subjects: []subject{
			{name: bare, kind: floor},
			{name: "bare once more: the effect of chance", kind: extra},
			{name: us, kind: ours},
			{name: "Headway, one Window and MaxInFlight", kind: extra},
			{name: "failsafehttp: retry, breaker, limiter", kind: peer},
			{name: "otelhttp, no-op providers", kind: peer},
		},
		together: overLoopback(same, same,
			func(base http.RoundTripper) http.RoundTripper { return headwayOver(base, 0, ampleBucket) },
			func(base http.RoundTripper) http.RoundTripper {
				return must(headway.NewTransport(base, headway.Config{Policies: []headway.Policy{{
					Hosts: []string{"*"}, MaxInFlight: 1000, Limits: []limiter.Limit{limiter.PerSecond(10_000_000)},
				}}}))
			},
			failsafeOver,
			func(base http.RoundTripper) http.RoundTripper {
				return otelhttp.NewTransport(base,
					otelhttp.WithTracerProvider(tracenoop.NewTracerProvider()),
					otelhttp.WithMeterProvider(metricnoop.NewMeterProvider()))
			},
		),
		goals: []goal{{us, "p50 µs", bare, 1.01}, {us, "per s", bare, 0.99}},
	}}
}
