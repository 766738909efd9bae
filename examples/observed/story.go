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

	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/headway-go/headway"
)

// runStory sends requests to the service at url, and prints the story to w. The error
// says what was counted wrong.
func runStory(o *observed, s *service, url string, w io.Writer) error {
	fmt.Fprintf(w, "\n  A service allows %d requests per second. What made requests slow:\n\n", perSecond)
	before := s.requests()
	c := caller{transport: o, url: url, trace: o.narrator.trace, tracer: o.tracer}

	c.burst("burst", 50) // the last ten wait for two seconds
	time.Sleep(2500 * time.Millisecond)

	s.become(busy) // the first request is refused with a Retry-After
	c.burst("paused", 1)
	time.Sleep(200 * time.Millisecond)
	c.burst("after the pause", 5)
	time.Sleep(3 * time.Second)

	s.become(down)
	for range 30 {
		c.burst("outage", 1)
		time.Sleep(100 * time.Millisecond)
	}
	s.become(up)
	time.Sleep(3 * time.Second) // longer than the breaker stays open
	c.burst("again", 1)         // it closes the breaker
	time.Sleep(time.Second)

	c.burst("too many", 90) // some of them would wait for too long
	q, err := o.Quota(strings.TrimPrefix(url, "http://"), "requests", "")
	if err != nil {
		return err
	}
	if err := q.Spend(context.Background(), 5); err != nil { // as if spent by another program
		return err
	}
	c.all.Wait()

	stored := caller{transport: o.stored, url: url, trace: o.narrator.trace, tracer: o.tracer}
	o.store.away.Store(true)
	stored.burst("without the store", 4)
	stored.all.Wait()
	o.store.away.Store(false)
	time.Sleep(time.Second)
	stored.burst("finds the store up again", 1)
	time.Sleep(time.Second)
	stored.burst("with the store", 1)
	stored.all.Wait()

	fmt.Fprint(w, "\n  The spans of some calls:\n\n")
	printTree(w, o.spans.GetSpans())
	fmt.Fprintf(w, "\n  %d requests were sent for %d calls. The metrics, as Prometheus gets them:\n\n", s.requests()-before, c.calls+stored.calls)
	if err := o.print(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	return c.check(o, s)
}

// A caller makes calls, each with one retry.
type caller struct {
	transport http.RoundTripper
	url       string
	trace     func(burst string, t *headway.Trace)
	tracer    oteltrace.Tracer
	all       sync.WaitGroup
	calls     int
	last      string // the name of the last burst
}

// burst makes n calls at once, under a name.
func (c *caller) burst(what string, n int) {
	first := what != c.last // the first burst with that name
	c.last = what
	for i := range n {
		c.calls++
		name := fmt.Sprintf("%q %d", what, i+1)
		trace := new(headway.Trace)
		ctx := headway.WithTrace(context.Background(), trace)
		c.all.Go(func() {
			defer func() { c.trace(what, trace) }()
			if first && i == n-1 { // this call has spans
				var span oteltrace.Span
				ctx, span = c.tracer.Start(ctx, name)
				defer span.End()
			}
			for attempt := range 2 {
				if c.send(headway.WithAttempt(ctx, attempt)) {
					return
				}
			}
		})
	}
}

// send sends a request, and reports whether a retry would be pointless.
func (c *caller) send(ctx context.Context) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+"/items", nil)
	if err != nil {
		panic(err) // the URL is valid
	}
	resp, err := c.transport.RoundTrip(req)
	if err != nil {
		return errors.Is(err, headway.ErrOpen) || errors.Is(err, headway.ErrThrottled)
	}
	resp.Body.Close()
	return resp.StatusCode != http.StatusTooManyRequests
}

// check compares the metrics with the requests that were sent.
func (c *caller) check(o *observed, s *service) error {
	families, err := o.registry.Gather()
	if err != nil {
		return err
	}
	started := 0.0
	for _, family := range families {
		if family.GetName() != "headway_decisions_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "headway_outcome" && l.GetValue() == "started" {
					started += m.GetCounter().GetValue()
				}
			}
		}
	}
	if got := s.requests(); float64(got) != started {
		return fmt.Errorf("the service got %d requests, %v were counted", got, started)
	}
	return nil
}
