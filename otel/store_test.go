package otelheadway_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
	otelheadway "github.com/headway-go/headway/otel"
	"github.com/headway-go/headway/store"
)

// A shaky store can be down.
type shaky struct {
	store.Memory
	down atomic.Bool
}

func (s *shaky) Do(ctx context.Context, ops []store.Op) ([]store.Result, error) {
	if s.down.Load() {
		return nil, errors.New("gone")
	}
	return s.Memory.Do(ctx, ops)
}

// The metrics and spans of a store that goes down and comes up again.
func TestS81_C87_Store(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		epoch := time.Now()
		r := newRig(t)
		disk := new(shaky)
		one := []limiter.Limit{limiter.Every(time.Minute)}
		tr, err := headway.NewTransport(service{}, headway.Config{
			Observer: r.Observer, Store: disk, Secret: []byte("s"),
			Policies: []headway.Policy{
				{Name: "p", Hosts: []string{"api.test"}, MaxWait: headway.NoWait, Limits: one},
				{Name: "strict", Hosts: []string{"strict.test"}, Store: headway.StorePolicy{Down: headway.StoreDownRefuse}, Limits: one},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		// wantStore compares the series of the store, and of all decisions.
		wantStore := func(want ...string) {
			t.Helper()
			var got []string
			for _, line := range r.series() {
				if strings.HasPrefix(line, "headway.store") || strings.HasPrefix(line, "headway.decisions") {
					got = append(got, line)
				}
			}
			wantLines(t, got, want)
		}
		for range 2 {
			r.call(tr, t.Context(), "there")
		}
		base := []string{
			"headway.decisions{headway.outcome=started} 1", "headway.decisions{headway.outcome=refused headway.reason=limit} 1",
		}
		wantStore(base...)

		disk.down.Store(true)
		time.Sleep(30 * time.Second)
		for range 3 {
			r.call(tr, t.Context(), "away")
		}
		send(tr, t.Context(), "https://strict.test/")
		base = []string{
			"headway.decisions{headway.outcome=started} 2", "headway.decisions{headway.outcome=refused headway.reason=limit} 3",
			"headway.decisions{headway.outcome=refused headway.policy=strict headway.reason=store server.address=strict.test} 1",
			"headway.store.missed{headway.outcome=started} 1", "headway.store.missed{headway.outcome=refused} 2",
			"headway.store.missed{headway.outcome=refused headway.policy=strict server.address=strict.test} 1",
			"headway.store.transitions{headway.state=away} 1",
		}
		wantStore(append(base, "headway.store.away{} 1")...)

		disk.down.Store(false)
		time.Sleep(time.Second)
		r.call(tr, t.Context(), "away") // finds out
		time.Sleep(time.Hour)
		r.call(tr, t.Context(), "back")
		base[0], base[1], base[4] = "headway.decisions{headway.outcome=started} 3", "headway.decisions{headway.outcome=refused headway.reason=limit} 4", "headway.store.missed{headway.outcome=refused} 3"
		wantStore(append(base, "headway.store.away{} 0", "headway.store.transitions{headway.state=back} 1")...)

		var got []string
		for _, line := range r.lines(epoch) {
			if strings.HasPrefix(line, "under away") {
				got = append(got, line)
			}
		}
		refused := "{headway.rule=spaced 1/1m headway.store.away=true headway.outcome=refused headway.reason=limit error.type=*headway.ThrottledError headway.retry_after="
		held := ` Error "limit" headway.held@`
		wantLines(t, got, []string{
			"under away 30s to 30s {headway.rule=spaced 1/1m headway.store.away=true headway.outcome=started headway.cost=1 headway.remaining=0}",
			"under away 30s to 30s " + refused + "60}" + held + "30s{headway.cause=rule headway.rule=spaced 1/1m}",
			"under away 31s to 31s " + refused + "59}" + held + "31s{headway.cause=rule headway.rule=spaced 1/1m}",
		})
	})
}

// Stores have no host and no policy, and take the series of no host. Two Transports
// report their stores, in any order.
func TestS82_StoresHaveOneSeries(t *testing.T) {
	r := newRig(t, otelheadway.WithMaxHosts(1))
	tell := func(kinds ...headway.EventKind) {
		for _, k := range kinds {
			r.Observe(t.Context(), headway.Event{Kind: k})
		}
	}
	tell(headway.EventStoreDown, headway.EventStoreDown)
	r.Observe(t.Context(), headway.Event{Kind: headway.EventMalformed, Policy: "q", Host: "h"})
	r.wantSeries(
		"headway.headers.malformed{headway.policy=q server.address=h} 1",
		"headway.store.away{} 2", "headway.store.transitions{headway.state=away} 2",
	)
	tell(headway.EventStoreUp, headway.EventStoreUp, headway.EventStoreUp)
	if _, series := hostsOf(r.collect()["headway.store.transitions"]); series != 2 {
		t.Errorf("%d series, want 2", series)
	}
	r.wantSeries(
		"headway.headers.malformed{headway.policy=q server.address=h} 1",
		"headway.store.away{} 0", "headway.store.transitions{headway.state=away} 2", "headway.store.transitions{headway.state=back} 3",
	)
	tell(headway.EventStoreDown)
	if got := r.sum("headway.store.transitions", attribute.String("headway.state", "away")); got != 3 {
		t.Errorf("it went down %d times, want 3", got)
	}
}

// Collecting does not call the store: its last report is valid for one period.
func TestCollectingAsksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		disk := new(shaky)
		tr, err := headway.NewTransport(service{}, headway.Config{
			Observer: r.Observer, Store: disk, Secret: []byte("s"),
			Policies: []headway.Policy{{Name: "p", Hosts: []string{"api.test"}, Limits: []limiter.Limit{limiter.PerMinute(5)}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.call(tr, t.Context(), "one"); err != nil {
			t.Fatal(err)
		}
		disk.down.Store(true)
		remaining := func() (got []string) {
			for _, line := range r.series() {
				if strings.HasPrefix(line, "headway.remaining") || strings.HasPrefix(line, "headway.store") {
					got = append(got, line)
				}
			}
			return got
		}
		time.Sleep(time.Minute)
		wantLines(t, remaining(), []string{"headway.remaining{headway.rule=5/1m} 4"})
		time.Sleep(time.Nanosecond)
		wantLines(t, remaining(), nil)
	})
}
