package debug

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
)

// TestRecentFolds: what is alike is one, the newest comes first.
func TestRecentFolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var r Recent
		tell := func(e headway.Event) {
			r.Observe(t.Context(), e)
			time.Sleep(time.Second)
		}
		a := headway.Event{Kind: headway.EventRefused, Policy: "p", Host: "a", Reason: limiter.ReasonLimit, RetryAfter: time.Second}
		b := a
		b.Host = "b"
		tell(a)
		tell(b)
		tell(headway.Event{Kind: headway.EventStart, Policy: "p", Host: "a"})
		a.RetryAfter = time.Minute
		tell(a)
		c := a
		c.Kind, c.Reason, c.Status = headway.EventPause, 0, 429
		tell(c)
		refusals, pauses, _ := r.read()
		check := func(h happening, host string, first, last time.Duration, count int, retryAfter time.Duration) {
			t.Helper()
			if h.Event.Host != host || h.First.Sub(begin) != first || h.Last.Sub(begin) != last || h.Count != count || h.Event.RetryAfter != retryAfter {
				t.Errorf("got %+v", h)
			}
		}
		if len(refusals) != 2 || len(pauses) != 1 {
			t.Fatalf("got %+v and %+v, want two and one", refusals, pauses)
		}
		check(refusals[0], "a", 0, 3*time.Second, 2, time.Minute)
		check(refusals[1], "b", time.Second, time.Second, 1, time.Second)
		check(pauses[0], "a", 4*time.Second, 4*time.Second, 1, time.Minute)
	})
}

// TestRecentIsBounded: the last 32 kinds are kept, each field makes a kind.
func TestRecentIsBounded(t *testing.T) {
	var r Recent
	for i := range 100 {
		r.Observe(t.Context(), headway.Event{Kind: headway.EventRefused, Host: fmt.Sprint(i)})
	}
	r.Observe(t.Context(), headway.Event{Kind: headway.EventRefused, Host: "80"})
	refusals, _, _ := r.read()
	if len(refusals) != 32 {
		t.Fatalf("%d are kept, want 32", len(refusals))
	}
	for i, want := range []string{"80", "99", "98"} {
		if got := refusals[i].Event.Host; got != want {
			t.Errorf("%d: got %s, want %s", i, got, want)
		}
	}
	if got := refusals[31].Event.Host; got != "68" {
		t.Errorf("the oldest is %s, want 68", got)
	}
	base := headway.Event{Kind: headway.EventRefused}
	for _, e := range []headway.Event{
		{Policy: "x"}, {Host: "x"}, {Rule: "x"}, {KeyDigest: "x"}, {Reason: limiter.ReasonPause}, {Status: 429}, {Dialect: "x"}, {Away: true},
	} {
		e.Kind = headway.EventRefused
		if base.Alike(&e) {
			t.Errorf("%+v is merged with %+v", e, base)
		}
	}
}

// TestRecentFromMany: nothing is lost where many are refused at once.
func TestRecentFromMany(t *testing.T) {
	var r Recent
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 1000 {
				r.Observe(context.Background(), headway.Event{Kind: headway.EventRefused, Host: fmt.Sprint(i % 20)})
			}
		})
	}
	all.Wait()
	refusals, _, _ := r.read()
	sum := 0
	for _, h := range refusals {
		sum += h.Count
	}
	if len(refusals) != 20 || sum != 8000 {
		t.Errorf("%d kinds, %d in all, want 20 and 8000", len(refusals), sum)
	}
}

// TestRecentAlloc: neither a start nor the thousandth refusal allocates.
func TestRecentAlloc(t *testing.T) {
	var r Recent
	for _, kind := range []headway.EventKind{headway.EventStart, headway.EventRefused} {
		if n := testing.AllocsPerRun(1000, func() { r.Observe(t.Context(), headway.Event{Kind: kind}) }); n != 0 {
			t.Errorf("%v: %v allocations, want 0", kind, n)
		}
	}
}
