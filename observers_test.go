package headway_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
)

// A watcher writes down what it receives.
type watcher struct {
	name string
	log  *[]string
	seen *headway.Transport
}

func (w *watcher) Observe(_ context.Context, e headway.Event) {
	*w.log = append(*w.log, fmt.Sprint(w.name, " ", e.Kind))
}

func (w *watcher) Watch(t *headway.Transport) { w.seen = t }

func TestObservers(t *testing.T) {
	var log []string
	w := &watcher{name: "watcher", log: &log}
	f := headway.ObserverFunc(func(_ context.Context, e headway.Event) { log = append(log, fmt.Sprint("func ", e.Kind)) })
	if o := headway.MultiObserver(); o != nil {
		t.Errorf("of none: got %v, want nil", o)
	}
	if o := headway.MultiObserver(nil, nil); o != nil {
		t.Errorf("of nil ones: got %v, want nil", o)
	}
	if o := headway.MultiObserver(nil, w); o != headway.Observer(w) {
		t.Errorf("of one: got %v, want it", o)
	}
	both := headway.MultiObserver(f, nil, w)
	tr := newTransport(t, &base{}, headway.Config{Observer: both, Policies: limits(limiter.PerSecond(9))})
	if w.seen != tr {
		t.Error("the watcher has not seen the Transport")
	}
	if _, err := tr.RoundTrip(ask{}.request("")); err != nil {
		t.Fatal(err)
	}
	if want := []string{"func start", "watcher start"}; !slices.Equal(log, want) {
		t.Errorf("got %v, want %v", log, want)
	}
	newTransport(t, nil, headway.Config{Observer: headway.MultiObserver(f, f)}) // nobody to show it to
}

// events returns a Config whose observer notes every event in a line.
func events(log *[]string, policies []headway.Policy) headway.Config {
	var mu sync.Mutex
	return headway.Config{Policies: policies, Secret: []byte("s"), Observer: headway.ObserverFunc(func(_ context.Context, e headway.Event) {
		mu.Lock()
		defer mu.Unlock()
		*log = append(*log, fmt.Sprintf("%v %s cost %d left %d wait %v attempt %d", e.Kind, e.Rule, e.Cost, e.Remaining, e.Wait, e.Attempt))
	})}
}

// A start tells of every rule: the first request finds the way for those that
// have to be looked at, the next ones the way for those that need not.
func TestS80_EveryRuleIsReported(t *testing.T) {
	var log []string
	playConfig(t, events(&log, limits(limiter.PerMinute(5), limiter.PerHour(3), limiter.PerDay(9))), func(s *scene) {
		s.sendAll(ask{}, "a", "b")
		s.send("c", ask{ctx: headway.WithAttempt(t.Context(), 1)})
		s.wantStarts("a@0s b@0s c@0s")
	})
	want := []string{
		"take 5/1m cost 1 left 4 wait 0s attempt 0", "take 9/24h cost 1 left 8 wait 0s attempt 0", "start 3/1h cost 1 left 2 wait 0s attempt 0",
		"take 5/1m cost 1 left 3 wait 0s attempt 0", "take 9/24h cost 1 left 7 wait 0s attempt 0", "start 3/1h cost 1 left 1 wait 0s attempt 0",
		"take 5/1m cost 1 left 2 wait 0s attempt 1", "take 9/24h cost 1 left 6 wait 0s attempt 1", "start 3/1h cost 1 left 0 wait 0s attempt 1",
	}
	if !slices.Equal(log, want) {
		t.Errorf("got\n%q\nwant\n%q", log, want)
	}
}

// Waits are reported however they end.
func TestS80_WaitsOfRequestsThatDoNotStart(t *testing.T) {
	var log []string
	policy := headway.Policy{Hosts: []string{"*"}, MaxInFlight: 1, MaxWait: 5 * time.Second}
	playConfig(t, events(&log, []headway.Policy{policy}), func(s *scene) {
		s.base.latency = time.Minute
		s.send("a", ask{})
		s.send("b", ask{}) // nobody can know that a takes so long
		c := s.send("c", ask{})
		s.until(2 * time.Second)
		c.cancel()
		s.until(time.Minute)
	})
	want := []string{"start  cost 0 left 0 wait 0s attempt 0", "canceled  cost 0 left 0 wait 2s attempt 0", "refused  cost 0 left 0 wait 5s attempt 0"}
	if !slices.Equal(log, want) {
		t.Errorf("got\n%q\nwant\n%q", log, want)
	}
}

func TestNoKeyIsReported(t *testing.T) {
	var log []string
	policy := headway.Policy{Hosts: []string{"*"}, Rules: []headway.Rule{{Name: "r", Limit: limiter.PerSecond(1), Key: headway.ByHeader("Tenant")}}}
	tr := newTransport(t, &base{}, events(&log, []headway.Policy{policy}))
	if _, err := tr.RoundTrip(ask{}.request("")); !errors.Is(err, headway.ErrKey) {
		t.Errorf("got %v, want a KeyError", err)
	}
	if want := []string{"no_key r cost 0 left 0 wait 0s attempt 0"}; !slices.Equal(log, want) {
		t.Errorf("got %q, want %q", log, want)
	}
}

// A correction is reported with what it has changed, and no lock held: the observer
// may settle again.
func TestSettleIsReported(t *testing.T) {
	var log []string
	cfg := events(&log, []headway.Policy{{Hosts: []string{"*"}, Rules: []headway.Rule{{
		Name: "tokens", Limit: limiter.PerMinute(100), Cost: func(*http.Request) (int64, error) { return 10, nil },
		Settle: func(*http.Response) (int64, bool) { return 30, true },
	}}}})
	var resp *http.Response
	note := cfg.Observer
	cfg.Observer = headway.ObserverFunc(func(ctx context.Context, e headway.Event) {
		note.Observe(ctx, e)
		if resp != nil && e.Cost == -25 {
			if err := headway.Settle(resp, "tokens", 6); err != nil {
				t.Error(err)
			}
		}
	})
	tr := newTransport(t, &base{}, cfg)
	resp, err := tr.RoundTrip(ask{}.request(""))
	if err != nil {
		t.Fatal(err)
	}
	for _, cost := range []int64{30, 5} { // the first changes nothing
		if err := headway.Settle(resp, "tokens", cost); err != nil {
			t.Error(err)
		}
	}
	want := []string{
		"start tokens cost 10 left 90 wait 0s attempt 0", "settle tokens cost 20 left 70 wait 0s attempt 0",
		"settle tokens cost -25 left 95 wait 0s attempt 0", "settle tokens cost 1 left 94 wait 0s attempt 0",
	}
	if !slices.Equal(log, want) {
		t.Errorf("got\n%q\nwant\n%q", log, want)
	}
}

// A request whose start needed no look, and whose observer panics, has taken nothing,
// and is not in flight.
func TestPanicOfAnObserverTakesNothing(t *testing.T) {
	panics := false
	tr := newTransport(t, &base{}, headway.Config{Policies: limits(limiter.PerHour(3)), Observer: headway.ObserverFunc(func(context.Context, headway.Event) {
		if panics {
			panic("no")
		}
	})})
	send := func() (body *body, got any) {
		defer func() { got = recover() }()
		body = newBody("x")
		if _, err := tr.RoundTrip(ask{body: body}.request("")); err != nil {
			t.Error(err)
		}
		return body, nil
	}
	send()
	for range 3 {
		panics = true
		if body, got := send(); got != "no" || body.closed.Load() != 1 {
			t.Errorf("got %v, body closed %d times; want the panic, and the body closed once", got, body.closed.Load())
		}
		panics = false
		if left := tr.Snapshot()[0].Rules[0].Remaining; left != 2 {
			t.Errorf("%d left, want 2", left)
		}
		wantIdle(t, tr)
	}
	send()
}

// Without a cap on those in flight, they are still counted.
func TestS81_InFlightWithoutACap(t *testing.T) {
	play(t, limits(limiter.PerSecond(9)), func(s *scene) {
		s.base.latency = time.Second
		s.sendAll(ask{}, "a", "b")
		if h := s.Snapshot()[0]; h.InFlight != 2 {
			s.Errorf("got %d in flight, want 2", h.InFlight)
		}
		s.until(time.Second)
		wantIdle(s, s.Transport)
	})
}
