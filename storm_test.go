package headway_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
	"pgregory.net/rapid"
)

// S17: a server that counts arrivals on the dot never sees one too many, however
// the network delays, and the last of k x N requests starts within k periods and
// k longest latencies.
func TestS17_StrictNeverSeesA429(t *testing.T) {
	outer := t
	rapid.Check(t, func(t *rapid.T) {
		per := time.Duration(rapid.IntRange(1, 1000).Draw(t, "per")) * time.Millisecond
		n := rapid.IntRange(1, 8).Draw(t, "n")
		k := rapid.IntRange(1, 5).Draw(t, "k")
		spaced := n == 1 && rapid.Bool().Draw(t, "spaced")
		longest := rapid.Int64Range(0, int64(2*per)).Draw(t, "longest")
		way := rapid.SliceOfN(rapid.Int64Range(0, longest/2), 2*n*k, 2*n*k).Draw(t, "ways")
		l := limiter.Limit{N: int64(n), Per: per, Strict: true}
		if spaced {
			l.Law = limiter.Spaced
		}
		bubble(outer, func() {
			begin := time.Now()
			var mu sync.Mutex // guards following
			var arrivals, starts []time.Duration
			tr, err := headway.NewTransport(roundTripper(func(req *http.Request) (*http.Response, error) {
				mu.Lock()
				starts = append(starts, time.Since(begin))
				i := len(starts) - 1
				mu.Unlock()
				time.Sleep(time.Duration(way[2*i]))
				mu.Lock()
				arrivals = append(arrivals, time.Since(begin))
				mu.Unlock()
				time.Sleep(time.Duration(way[2*i+1]))
				return ok(req), nil
			}), headway.Config{Policies: limits(l)})
			if err != nil {
				t.Fatal(err)
			}
			var all sync.WaitGroup
			for range n * k {
				all.Go(func() { tr.RoundTrip(ask{}.request("x")) })
			}
			all.Wait()
			for i := n; i < len(arrivals); i++ {
				if arrivals[i]-arrivals[i-n] < per {
					t.Errorf("429: %d arrivals from %v to %v", n+1, arrivals[i-n], arrivals[i])
				}
			}
			if bound := time.Duration(k) * (per + time.Duration(longest)); starts[len(starts)-1] > bound {
				t.Errorf("the last started at %v, want at most %v", starts[len(starts)-1], bound)
			}
		})
	})
}

// S42 and S4: in a line of mixed needs no request starts later than Delay returned on
// arrival, and no period of any key holds more than its limit. Those without a
// cost to them are there too.
func TestS42_NoRequestStartsLaterThanReported(t *testing.T) {
	outer := t
	rapid.Check(t, func(t *rapid.T) {
		drawLimit := func(name string) limiter.Limit {
			return limiter.Limit{
				N:   rapid.Int64Range(2, 6).Draw(t, name+" n"),
				Per: time.Duration(rapid.IntRange(5, 100).Draw(t, name+" per")) * time.Millisecond,
				Law: limiter.Law(rapid.SampledFrom([]limiter.Law{limiter.Window, limiter.Bucket, limiter.Spaced}).Draw(t, name+" law")),
			}
		}
		all := drawLimit("shared")
		search, tenant := drawLimit("search"), drawLimit("tenant")
		p := []headway.Policy{{Hosts: []string{"*"}, Limits: []limiter.Limit{all}, Rules: []headway.Rule{
			{Name: "search", Limit: search, Path: "/search"},
			{Name: "tenant", Limit: tenant, Key: headway.FromCallKey, Cost: headway.FromCallCost},
		}}}
		n := rapid.IntRange(1, 40).Draw(t, "requests")
		type arrival struct {
			tenant int
			cost   int64
			search bool
			pause  time.Duration
			cancel time.Duration // after it; zero: never
		}
		traffic := make([]arrival, n)
		for i := range traffic {
			traffic[i] = arrival{
				rapid.IntRange(0, 3).Draw(t, "tenant"), rapid.Int64Range(1, 2).Draw(t, "cost"), rapid.Bool().Draw(t, "search"),
				time.Duration(rapid.SampledFrom([]int{0, 0, 0, 1, 3, 17, 200}).Draw(t, "pause")) * time.Millisecond,
				time.Duration(rapid.SampledFrom([]int{0, 0, 0, 1, 9, 60}).Draw(t, "cancel")) * time.Millisecond,
			}
		}
		bubble(outer, func() {
			type start struct {
				at   time.Time
				cost int64
			}
			var mu sync.Mutex // guards following
			starts := map[string][]start{}
			tr, err := headway.NewTransport(roundTripper(func(req *http.Request) (*http.Response, error) {
				mu.Lock()
				defer mu.Unlock()
				c := headway.CallFrom(req.Context())
				s := start{time.Now(), c.Cost}
				starts["all"] = append(starts["all"], s)
				starts[c.Key] = append(starts[c.Key], s)
				if req.URL.Path == "/search" {
					starts["search"] = append(starts["search"], start{s.at, 1})
				}
				return ok(req), nil
			}), headway.Config{Policies: p})
			if err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			for i, a := range traffic {
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				if a.cancel > 0 {
					time.AfterFunc(a.cancel, cancel)
				}
				ask := ask{ctx: ctx, call: headway.Call{Key: strconv.Itoa(a.tenant), Cost: a.cost}, url: "https://api.test/"}
				if a.search {
					ask.url += "search"
				}
				req := ask.request(strconv.Itoa(i))
				told, err := tr.Delay(req)
				if err != nil {
					t.Errorf("Delay: %v", err)
				}
				begin := time.Now()
				wg.Go(func() {
					_, err := tr.RoundTrip(req)
					took := time.Since(begin)
					if err == nil && took > told {
						t.Errorf("%d was told %v, and started after %v", i, told, took)
					}
					if err != nil && !errors.Is(err, context.Canceled) {
						t.Errorf("%d: %v", i, err)
					}
				})
				synctest.Wait()
				time.Sleep(a.pause)
				synctest.Wait() // who gives up at this instant must not do so between the next Delay and its request
			}
			wg.Wait()
			for name, list := range starts {
				l := tenant
				switch name {
				case "all":
					l = all
				case "search":
					l = search
				}
				if l.Law != limiter.Window {
					continue
				}
				for i := range list {
					sum := int64(0)
					for _, s := range list[i:] {
						if s.at.Sub(list[i].at) < l.Per {
							sum += s.cost
						}
					}
					if sum > l.N {
						t.Errorf("%s: %d units within %v of %v", name, sum, l.Per, list[i].at)
					}
				}
			}
			for _, h := range tr.Snapshot() {
				if h.Waiting > 0 {
					t.Errorf("%d stay in line", h.Waiting)
				}
			}
		})
	})
}

// C54: after a million random operations with cancels, panics and goroutines
// that end, no request is in line or in flight, and the limits are whole again.
func TestC54_Storm(t *testing.T) {
	workers, rounds := 100, fewer(2500) // of four operations and more
	per := func(n int64, d time.Duration) limiter.Limit { return limiter.Limit{N: n, Per: d} }
	p := []headway.Policy{
		{
			Hosts: []string{"*"}, MaxInFlight: 40, MaxWaiting: 60, MaxWait: 3 * time.Millisecond, Limits: []limiter.Limit{per(400, time.Millisecond)},
			Rules: []headway.Rule{
				{Name: "key", Limit: limiter.Limit{N: 60, Per: time.Millisecond, Strict: true}, Key: headway.FromCallKey},
				{Name: "tokens", Limit: limiter.Limit{N: 100_000, Per: time.Second, Law: limiter.Bucket, Burst: 500}, Cost: headway.FromCallCost, Path: "/tokens"},
			},
		},
		{Name: "mixed", Hosts: []string{"mixed.test"}, Shared: true, MaxWait: time.Millisecond, Limits: []limiter.Limit{per(50, 100*time.Microsecond)}},
	}
	var events atomic.Int64
	observer := headway.ObserverFunc(func(_ context.Context, e headway.Event) {
		if events.Add(1)%997 == 0 {
			panic(stormy)
		}
	})
	tr := newTransport(t, roundTripper(func(req *http.Request) (*http.Response, error) {
		switch rand.IntN(20) {
		case 0:
			return nil, io.ErrUnexpectedEOF
		case 1:
			panic(stormy)
		case 2:
			runtime.Goexit()
		case 3, 4, 5:
			return &http.Response{StatusCode: 200, Body: newBody("hello"), Request: req}, nil
		case 6:
			runtime.Gosched()
		case 7:
			return nil, req.Context().Err() // neither, as long as the context lives
		}
		return ok(req), nil
	}), headway.Config{Policies: p, MaxHosts: 8, Observer: observer})

	step := func() {
		i := rand.IntN(1000)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		a := ask{ctx: ctx, url: "https://" + strconv.Itoa(i%3) + ".test", call: headway.Call{Key: strconv.Itoa(i % 5), Cost: int64(i % 4)}}
		switch i % 7 {
		case 0:
			a.url += "/tokens"
		case 1:
			a.url = "https://mixed.test"
		}
		switch i % 11 {
		case 0:
			cancel()
		case 1, 2:
			go cancel()
		case 3:
			a.call.MaxWait = headway.NoWait
		}
		storm(func() {
			resp, err := tr.RoundTrip(a.request("x"))
			if (resp == nil) == (err == nil) {
				t.Errorf("got %v and %v", resp, err)
			}
			if err != nil {
				return
			}
			if i%2 == 0 {
				headway.Settle(resp, "tokens", int64(i%9))
			}
			if i%3 == 0 {
				io.Copy(io.Discard, resp.Body)
			}
			if i%5 > 0 { // else the context ends it
				resp.Body.Close()
			}
		})
		storm(func() {
			switch i % 500 {
			case 0:
				q, err := tr.Quota("1.test", "key", "2")
				if err != nil {
					t.Error(err)
					return
				}
				spend(t, q, int64(i%7)-3)
				q.Wait(ctx, 1)
			case 1:
				tr.Snapshot()
			case 2:
				p := slices.Clone(p)
				p[0].MaxInFlight = 20 + i%40
				if err := tr.SetPolicies(p); err != nil {
					t.Error(err)
				}
			case 3:
				tr.Delay(a.request("x"))
			}
		})
	}
	var all sync.WaitGroup
	for range workers {
		all.Add(1)
		done := 0
		var again func()
		again = func() { // a goroutine that ends is followed by another
			defer func() {
				if done < rounds {
					done++
					go again()
				} else {
					all.Done()
				}
			}()
			for ; done < rounds; done++ {
				step()
			}
		}
		go again()
	}
	all.Wait()
	settled := func() bool {
		for _, h := range tr.Snapshot() {
			if h.Waiting > 0 || h.InFlight > 0 {
				return false
			}
			for _, r := range h.Rules {
				if r.Rule != "tokens" && r.Remaining != r.Limit.N {
					return false
				}
			}
		}
		return true
	}
	for end := time.Now().Add(5 * time.Second); !settled(); {
		if time.Now().After(end) {
			t.Fatalf("not all have left: %+v", tr.Snapshot())
		}
		runtime.Gosched()
	}
}

const stormy = "stormy"

// storm runs f, which may panic so.
func storm(f func()) {
	defer func() {
		if p := recover(); p != nil && p != stormy {
			panic(p)
		}
	}()
	f()
}

// C55: a cancel races with the release of a slot, and with the timer: no
// deadlock, exact counts.
func TestC55_CancelRacesWithRelease(t *testing.T) {
	rounds := fewer(50_000)
	p := limits()
	p[0].MaxInFlight = 1
	var sent atomic.Int64
	release := make(chan struct{})
	tr := newTransport(t, roundTripper(func(req *http.Request) (*http.Response, error) {
		sent.Add(1)
		if req.Header.Get("Name") == "holder" {
			<-release
		}
		return ok(req), nil
	}), headway.Config{Policies: p})
	got := int64(0)
	for range rounds {
		ctx, cancel := context.WithCancel(context.Background())
		var both sync.WaitGroup
		both.Go(func() { tr.RoundTrip(ask{}.request("holder")) })
		for tr.Snapshot() == nil || tr.Snapshot()[0].InFlight == 0 {
			runtime.Gosched()
		}
		var err error
		both.Go(func() { _, err = tr.RoundTrip(ask{ctx: ctx}.request("x")) })
		for i := 0; i < 3 && tr.Snapshot()[0].Waiting == 0; i++ {
			runtime.Gosched()
		}
		go cancel()
		release <- struct{}{}
		both.Wait()
		got++
		if err == nil {
			got++
		} else if err != context.Canceled {
			t.Fatal(err)
		}
	}
	if sent.Load() != got {
		t.Errorf("sent %d, want %d", sent.Load(), got)
	}
	wantIdle(t, tr)
}

// A context that ends at the very instant at which the wait budget does takes
// its request out of line once.
func TestCancelMeetsTheEndOfTheWait(t *testing.T) {
	p := limits(limiter.PerSecond(1000))
	p[0].MaxInFlight, p[0].MaxWait = 1, time.Second
	play(t, p, func(s *scene) {
		s.base.latency = time.Minute
		s.send("holder", ask{})
		for i := range 200 {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			if i%2 > 0 {
				time.AfterFunc(time.Second, cancel)
			}
			s.send("x", ask{ctx: ctx})
			if i%2 == 0 {
				time.AfterFunc(time.Second, cancel)
			}
		}
		s.until(2 * time.Second)
		if h := s.Snapshot()[0]; h.Waiting != 0 || h.InFlight != 1 {
			s.Errorf("got %d waiting, %d in flight, want 0 and 1", h.Waiting, h.InFlight)
		}
		s.wantLater()
	})
}

// An observer may call anything of ours, for the same host too.
func TestObserverMayCall(t *testing.T) {
	var tr *headway.Transport
	var depth atomic.Int32
	var s *scene
	observer := headway.ObserverFunc(func(ctx context.Context, e headway.Event) {
		if tr == nil || depth.Add(1) > 1 {
			return
		}
		defer depth.Add(-1)
		if _, err := tr.Delay(ask{}.request("x")); err != nil {
			s.Error(err)
		}
		tr.Snapshot()
		q, err := tr.Quota("api.test", "3/1m", "")
		if err != nil {
			s.Error(err)
			return
		}
		remaining(t, q)
		spend(t, q, 1)
		spend(t, q, -1)
		if err := tr.SetPolicies(limits(limiter.PerMinute(3))); err != nil {
			s.Error(err)
		}
	})
	playConfig(t, headway.Config{Policies: limits(limiter.PerMinute(3)), Observer: observer}, func(scene *scene) {
		s, tr = scene, scene.Transport
		s.sendAll(ask{}, "A", "B", "C", "D", "E")
		s.wantStarts("A@0s B@0s C@0s D@1m0s E@1m0s")
	})
}

// What the observer receives.
func TestEvents(t *testing.T) {
	var events []headway.Event
	p := limits(limiter.Limit{N: 2, Per: time.Minute})
	p[0].Name = "p"
	p[0].Rules = []headway.Rule{{Name: "hour", Limit: limiter.PerHour(9), Cost: headway.FromCallCost}}
	playConfig(t, headway.Config{Policies: p, Observer: collect(&events)}, func(s *scene) {
		s.send("A", cost(2))
		b := s.send("B", ask{})
		s.send("C", ask{call: headway.Call{MaxWait: headway.NoWait}})
		s.send("D", ask{})
		s.until(time.Second)
		b.cancel()
		s.all.Wait()
		var got []string
		for _, e := range events {
			got = append(got, fmt.Sprintf("%v %s %s %s cost %d left %d wait %v %v %v", e.Kind, e.Policy, e.Host, e.Rule, e.Cost, e.Remaining, e.Wait, e.Reason, e.RetryAfter))
		}
		want := []string{
			"take p api.test hour cost 2 left 7 wait 0s unknown 0s",
			"start p api.test 2/1m cost 2 left 0 wait 0s unknown 0s",
			"refused p api.test 2/1m cost 0 left 0 wait 0s limit 1m0s",
			"canceled p api.test  cost 0 left 0 wait 1s unknown 0s",
			"take p api.test hour cost 1 left 6 wait 0s unknown 0s",
			"start p api.test 2/1m cost 1 left 1 wait 1m0s unknown 0s",
		}
		if !slices.Equal(got, want) {
			s.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}
