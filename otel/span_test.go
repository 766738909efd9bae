package otelheadway_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
)

// lines returns the spans that have ended, in that order: name, from and to since
// epoch, attributes, status, links and events. Callers stand for themselves by
// name.
func (r *rig) lines(epoch time.Time) (lines []string) {
	names := map[trace.SpanID]string{}
	for _, s := range r.spans.Started() {
		names[s.SpanContext().SpanID()] = s.Name()
	}
	for _, s := range r.spans.Ended() {
		if s.Name() != "headway wait" {
			continue
		}
		line := fmt.Sprintf("under %s %v to %v %s", names[s.Parent().SpanID()], s.StartTime().Sub(epoch), s.EndTime().Sub(epoch), attributes(s.Attributes()))
		if st := s.Status(); st != (sdktrace.Status{}) {
			line += fmt.Sprintf(" %v %q", st.Code, st.Description)
		}
		for _, l := range s.Links() {
			line += " linked to " + names[l.SpanContext.SpanID()]
		}
		for _, e := range s.Events() {
			line += fmt.Sprintf(" %s@%v%s", e.Name, e.Time.Sub(epoch), attributes(e.Attributes))
		}
		lines = append(lines, line)
	}
	return lines
}

// A caller's span is named and lasts as long as the request, body and all.
func (r *rig) call(rt http.RoundTripper, ctx context.Context, name string, more ...func(*http.Request)) error {
	ctx, span := r.tracer.Start(ctx, name)
	defer span.End()
	req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		return err
	}
	for _, f := range more {
		f(req)
	}
	_, err = rt.RoundTrip(req)
	return err
}

func TestSpans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		epoch := time.Now()
		r := newRig(t)
		tr := r.transport(service{time.Second, func(req *http.Request) *http.Response {
			if s := req.Header.Get("Pause"); s != "" {
				return reply(req, 429, "Retry-After", s)
			}
			return reply(req, 200)
		}}, headway.Policy{Name: "p", Hosts: []string{"*"}, Limits: []limiter.Limit{{N: 2, Per: 2 * time.Second}}})
		var all crowd
		at := func(d time.Duration, name string, ctx context.Context, more ...func(*http.Request)) {
			time.Sleep(d - time.Since(epoch))
			all.Go(func() { r.call(tr, ctx, name, more...) })
			synctest.Wait()
		}
		ended, cancel := context.WithCancel(t.Context())
		soon, stop := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer stop()
		now := headway.WithCall(t.Context(), headway.Call{MaxWait: headway.NoWait})
		at(0, "a", headway.WithAttempt(t.Context(), 2))
		at(0, "b", t.Context())
		at(500*time.Millisecond, "c", t.Context(), func(r *http.Request) { r.Header.Set("Pause", "4") })
		at(600*time.Millisecond, "d", now)
		at(700*time.Millisecond, "e", ended)
		at(800*time.Millisecond, "f", soon)
		time.Sleep(100 * time.Millisecond)
		cancel()
		at(3500*time.Millisecond, "g", t.Context()) // paused until 7 s
		at(4*time.Second, "h", now)
		all.Wait()

		const start = " headway.outcome=started headway.cost=1 headway.remaining="
		want := []string{
			"under a 0s to 0s {headway.rule=2/2s http.request.resend_count=2" + start + "1}",
			"under b 0s to 0s {headway.rule=2/2s" + start + "0}",
			"under d 600ms to 600ms {headway.rule=2/2s headway.outcome=refused headway.reason=limit error.type=*headway.ThrottledError headway.retry_after=1.4}" +
				` Error "limit" headway.held@600ms{headway.cause=rule headway.rule=2/2s}`,
			"under f 800ms to 800ms {headway.rule=2/2s headway.outcome=refused headway.reason=limit error.type=*headway.ThrottledError headway.retry_after=3.2}" +
				` Error "limit" headway.held@800ms{headway.cause=rule headway.rule=2/2s}`,
			`under e 700ms to 900ms {headway.outcome=canceled error.type=context.Canceled} Error "context canceled"`,
			"under c 500ms to 2s {headway.rule=2/2s" + start + "1} headway.held@500ms{headway.cause=rule headway.rule=2/2s}",
			"under h 4s to 4s {headway.outcome=refused headway.reason=pause error.type=*headway.ThrottledError headway.retry_after=4}" +
				` Error "pause" linked to c headway.held@4s{headway.cause=pause headway.pause.duration=4 http.response.status_code=429 headway.dialect=rfc9110}`,
			"under g 3.5s to 7s {headway.rule=2/2s" + start + "1} linked to c headway.held@3.5s" +
				"{headway.cause=pause headway.pause.duration=4 http.response.status_code=429 headway.dialect=rfc9110}",
		}
		if got := r.lines(epoch); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		for _, s := range r.spans.Ended() {
			if scope := s.InstrumentationScope(); s.Name() == "headway wait" && (scope.Name != "github.com/headway-go/headway/otel" || scope.SchemaURL != semconv.SchemaURL) {
				t.Errorf("scope %v, want ours and the schema of semconv", scope)
			}
		}
	})
}

// A span that waited ends at the deadline of its caller; one without key has an
// error of its own.
func TestSpansOfTheUnsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		epoch := time.Now()
		r := newRig(t)
		tr := r.transport(service{latency: time.Minute}, headway.Policy{Name: "p", Hosts: []string{"*"}, MaxInFlight: 1, Rules: []headway.Rule{
			{Name: "tenant", Limit: limiter.PerHour(5), Key: headway.FromCallKey},
		}})
		keyed := headway.WithCall(t.Context(), headway.Call{Key: "k"})
		var all crowd
		all.Go(func() { r.call(tr, keyed, "a") })
		synctest.Wait()
		short, cancel := context.WithTimeout(keyed, 3*time.Second)
		defer cancel()
		if err := r.call(tr, short, "b"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the deadline's error", err)
		}
		if err := r.call(tr, headway.WithCall(keyed, headway.Call{Key: "k", MaxWait: time.Second}), "c"); !errors.Is(err, headway.ErrThrottled) {
			t.Errorf("got %v, want a refusal", err)
		}
		if err := r.call(tr, t.Context(), "d"); !errors.Is(err, headway.ErrKey) {
			t.Errorf("got %v, want a KeyError", err)
		}
		all.Wait()
		digest := tr.Snapshot()[0].Rules[0].KeyDigest
		want := []string{
			"under a 0s to 0s {headway.rule=tenant headway.key.digest=" + digest + " headway.outcome=started headway.cost=1 headway.remaining=4}",
			`under b 0s to 3s {headway.outcome=canceled error.type=context.DeadlineExceeded} Error "context deadline exceeded"`,
			`under c 3s to 4s {headway.outcome=refused headway.reason=in_flight error.type=*headway.ThrottledError headway.retry_after=0} Error "in_flight" headway.held@3s{headway.cause=in_flight}`,
			`under d 4s to 4s {headway.rule=tenant headway.outcome=refused headway.reason=no_key error.type=*headway.KeyError} Error "no key"`,
		}
		if got := r.lines(epoch); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

// The span has ended when the base is called, even if the response is slow and
// its body is leaked; and there is none where the caller has none that records.
func TestS83_SpanEndsAtTheStart(t *testing.T) {
	r := newRig(t)
	open := 0
	tr := r.transport(roundTripper(func(req *http.Request) (*http.Response, error) {
		for _, s := range r.spans.Started() {
			if s.Name() == "headway wait" {
				open++
			}
		}
		for _, s := range r.spans.Ended() {
			if s.Name() == "headway wait" {
				open--
			}
		}
		resp := reply(req, 200)
		resp.Body = leaked{}
		return resp, nil
	}), headway.Policy{Name: "p", Hosts: []string{"*"}, Limits: []limiter.Limit{limiter.PerHour(9)}})
	if err := r.call(tr, t.Context(), "caller"); err != nil {
		t.Fatal(err)
	}
	if got := len(r.lines(time.Now())); got != 1 || open != 0 {
		t.Errorf("%d spans, %d open while the request was sent; want 1 and none", got, open)
	}
	never := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))
	unsampled, span := never.Tracer("x").Start(t.Context(), "caller")
	defer span.End()
	remote := trace.ContextWithRemoteSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled,
	}))
	for _, ctx := range []context.Context{t.Context(), unsampled, remote} {
		if err := send(tr, ctx, url); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(r.lines(time.Now())); got != 1 {
		t.Errorf("%d spans, want no more than the first: no other caller's is recording", got)
	}
}

type leaked struct{}

func (leaked) Read([]byte) (int, error) { return 0, io.EOF }
func (leaked) Close() error             { return nil }

// Of many pauses those are remembered that end last, and each holds whom it
// concerns.
func TestPausesThatHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		pause := func(name, rule, digest string, long time.Duration) {
			ctx, span := r.tracer.Start(t.Context(), name)
			defer span.End()
			r.Observe(ctx, headway.Event{Kind: headway.EventPause, Policy: "p", Host: "api.test", Rule: rule, KeyDigest: digest, Pause: long})
		}
		held := func(rule, digest string) []string {
			ctx, span := r.tracer.Start(t.Context(), "caller")
			defer span.End()
			r.Observe(ctx, headway.Event{Kind: headway.EventRefused, Policy: "p", Host: "api.test", Rule: rule, KeyDigest: digest, Reason: limiter.ReasonPause})
			all := r.spans.Ended()
			names := map[trace.SpanID]string{}
			for _, s := range all {
				names[s.SpanContext().SpanID()] = s.Name()
			}
			var list []string
			for _, l := range all[len(all)-1].Links() {
				if l.Attributes[0] != attribute.String("headway.cause", "pause") {
					t.Errorf("a link with %v, want the cause", l.Attributes)
				}
				list = append(list, names[l.SpanContext.SpanID()])
			}
			return list
		}
		pause("all", "", "", time.Minute)
		pause("key", "", "k", time.Minute)
		pause("rule", "r", "", time.Minute)
		for _, tt := range []struct{ rule, digest, want string }{
			{"", "", "[all]"}, {"", "k", "[all key]"}, {"r", "", "[all rule]"}, {"r", "k", "[all key rule]"}, {"other", "other", "[all]"},
		} {
			if got := fmt.Sprint(held(tt.rule, tt.digest)); got != tt.want {
				t.Errorf("rule %q, key %q: held by %s, want %s", tt.rule, tt.digest, got, tt.want)
			}
		}
		time.Sleep(time.Minute)
		if got := held("r", "k"); got != nil {
			t.Errorf("held by %v after the end", got)
		}
		for i := range 20 {
			pause(fmt.Sprint(i), "", "", time.Duration(100-i)*time.Second) // the later the shorter
		}
		got := held("", "")
		if len(got) != 16 || slices.Contains(got, "16") || slices.Contains(got, "19") {
			t.Errorf("held by %v, want the 16 that end last, 0 to 15", got)
		}
	})
}

func TestStatusOfARefusal(t *testing.T) {
	r := newRig(t)
	tr := r.transport(service{}, headway.Policy{Name: "p", Hosts: []string{"*"}, Limits: []limiter.Limit{limiter.Blocked()}})
	if err := r.call(tr, t.Context(), "caller"); !errors.Is(err, headway.ErrThrottled) {
		t.Errorf("got %v, want a refusal", err)
	}
	s := r.spans.Ended()[0]
	if s.Status().Code != codes.Error || s.SpanKind() != trace.SpanKindInternal || !strings.Contains(attributes(s.Attributes()), "reason=disabled") {
		t.Errorf("%v %v %v, want an error, internal, disabled", s.Status(), s.SpanKind(), s.Attributes())
	}
}
