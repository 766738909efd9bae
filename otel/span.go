package otelheadway

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
)

// spanName is the name of every span.
const spanName = "headway wait"

// The error types of spans are those of semconv for the errors of RoundTrip, as in
// otelhttp, except for the context's errors, whose types say nothing.
var (
	throttledType = semconv.ErrorType(&headway.ThrottledError{})
	noKeyType     = semconv.ErrorType(&headway.KeyError{})
	openType      = semconv.ErrorType(&headway.OpenError{})
	canceledType  = semconv.ErrorTypeKey.String("context.Canceled")
	expiredType   = semconv.ErrorTypeKey.String("context.DeadlineExceeded")
)

// record makes the span of a wait that has just ended.
func (o *Observer) record(ctx context.Context, h *host, e *headway.Event) {
	more := 4 // the most attributes that an event's kind adds
	if e.Kind == headway.EventStart {
		more = 3
	}
	for _, given := range [...]bool{e.Rule != "", e.KeyDigest != "", e.Attempt > 0, e.Away} {
		if given {
			more++
		}
	}
	attrs := append(make([]attribute.KeyValue, 0, len(h.attrs)+more), h.attrs...)
	if e.Rule != "" {
		attrs = append(attrs, ruleKey.String(e.Rule))
	}
	if e.KeyDigest != "" {
		attrs = append(attrs, digestKey.String(e.KeyDigest))
	}
	if e.Attempt > 0 {
		attrs = append(attrs, semconv.HTTPRequestResendCount(e.Attempt))
	}
	if e.Away {
		attrs = append(attrs, awayKey.Bool(true))
	}
	var failure string
	switch e.Kind {
	case headway.EventStart:
		attrs = started.attrs(attrs)
		if e.Rule != "" {
			attrs = append(attrs, costKey.Int64(e.Cost), remainingKey.Int64(e.Remaining))
		}
	case headway.EventRefused:
		failure = e.Reason.String()
		attrs = append(refusedFor(e.Reason).attrs(attrs), throttledType)
		if e.RetryAfter != limiter.Never {
			attrs = append(attrs, retryKey.Float64(e.RetryAfter.Seconds()))
		}
	case headway.EventOpenRefused:
		failure = "breaker open"
		attrs = append(refusedOpen.attrs(attrs), openType, retryKey.Float64(e.RetryAfter.Seconds()))
	case headway.EventNoKey:
		failure = "no key"
		attrs = append(refusedNoKey.attrs(attrs), noKeyType)
	case headway.EventCanceled:
		kind := canceledType
		if failure = "context canceled"; ctx.Err() == context.DeadlineExceeded {
			failure, kind = "context deadline exceeded", expiredType
		}
		attrs = append(canceled.attrs(attrs), kind)
	}
	if e.Wait == 0 && e.Kind == headway.EventStart {
		_, span := o.tracer.Start(ctx, spanName, trace.WithAttributes(attrs...))
		span.End()
		return
	}
	now := time.Now()
	arrived := now.Add(-e.Wait)
	_, span := o.tracer.Start(ctx, spanName, trace.WithAttributes(attrs...), trace.WithTimestamp(arrived))
	for _, c := range causesOf(h, e, arrived, now) {
		at := arrived
		if c.from.After(at) {
			at = c.from
		}
		span.AddEvent("headway.held", trace.WithTimestamp(at), trace.WithAttributes(c.attrs...))
		if c.by.IsValid() {
			span.AddLink(trace.Link{SpanContext: c.by, Attributes: []attribute.KeyValue{causeKey.String("pause")}})
		}
	}
	if failure != "" {
		span.SetStatus(codes.Error, failure)
	}
	span.End(trace.WithTimestamp(now))
}

// A cause is what held a request up.
type cause struct {
	from  time.Time // zero: since it arrived
	attrs []attribute.KeyValue
	by    trace.SpanContext // of the request whose response raised it
}

// causesOf returns what held up the request of e, as far as events show: the pauses of
// its wait; or else the reason of its refusal, the rule that e names, or a slot if a
// started request had no rule.
func causesOf(h *host, e *headway.Event, arrived, now time.Time) []cause {
	causes := h.pauses.during(e, arrived, now)
	name := ""
	switch {
	case e.Kind == headway.EventRefused && e.Reason != limiter.ReasonLimit:
		name = outcomes[refusedFor(e.Reason)].reason
	case e.Kind == headway.EventOpenRefused:
		name = "breaker"
	case e.Kind == headway.EventNoKey || causes != nil && e.Kind != headway.EventRefused:
	case e.Rule != "":
		name = "rule"
	case e.Kind == headway.EventStart:
		name = "slot"
	}
	if name == "" || name == "pause" && causes != nil {
		return causes
	}
	c := cause{attrs: []attribute.KeyValue{causeKey.String(name)}}
	if e.Rule != "" {
		c.attrs = append(c.attrs, ruleKey.String(e.Rule))
	}
	return append(causes, c)
}

// pauses remembers the latest pauses of a host, for the spans of the requests that they
// hold up.
type pauses struct {
	mu   sync.Mutex // guards following field
	list []pause
}

// mostPauses is how many pauses of a host are remembered.
const mostPauses = 16

type pause struct {
	cause
	rule, digest string
	ofResource   bool // and so of some requests only, which their events do not show
	until        time.Time
}

func (p *pauses) add(ctx context.Context, e *headway.Event) {
	now := time.Now()
	n := pause{rule: e.Rule, digest: e.KeyDigest, ofResource: e.Resource != "", until: now.Add(e.Pause)}
	n.from, n.by = now, trace.SpanContextFromContext(ctx)
	n.attrs = []attribute.KeyValue{causeKey.String("pause"), pauseKey.Float64(e.Pause.Seconds())}
	if e.Status > 0 {
		n.attrs = append(n.attrs, semconv.HTTPResponseStatusCode(e.Status))
	}
	if e.Dialect != "" {
		n.attrs = append(n.attrs, dialectKey.String(e.Dialect))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.list) < mostPauses {
		p.list = append(p.list, n)
		return
	}
	soonest := &p.list[0]
	for i := range p.list {
		if p.list[i].until.Before(soonest.until) {
			soonest = &p.list[i]
		}
	}
	if soonest.until.Before(n.until) {
		*soonest = n
	}
}

// during returns the pauses that held up the request of e between two instants.
func (p *pauses) during(e *headway.Event, arrived, now time.Time) (causes []cause) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.list {
		c := &p.list[i]
		if c.until.After(arrived) && !c.from.After(now) && c.holds(e) {
			causes = append(causes, c.cause)
		}
	}
	return causes
}

// holds reports whether a pause holds a request, as far as its event shows.
func (p *pause) holds(e *headway.Event) bool {
	return !p.ofResource && (p.rule == "" || p.rule == e.Rule) && (p.digest == "" || p.digest == e.KeyDigest)
}
