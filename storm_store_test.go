package headway_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/breaker"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/store"
)

// flaky is a store that fails, is slow, heeds no context, panics and answers other
// questions than were asked, by chance.
type flaky struct {
	store.Memory
	calm atomic.Bool
	out  atomic.Int64 // calls that have not returned
}

func (f *flaky) Do(ctx context.Context, ops []store.Op) ([]store.Result, error) {
	f.out.Add(1)
	defer f.out.Add(-1)
	if !f.calm.Load() {
		switch n := rand.IntN(4000); {
		case n < 20:
			return nil, fmt.Errorf("dial redis://user:s3cret@h.test/0: %w", io.ErrUnexpectedEOF)
		case n < 30:
			panic(stormy)
		case n < 40:
			return nil, nil
		case n < 50:
			f.Memory.Do(ctx, ops) // and its answers are lost
			return nil, io.ErrUnexpectedEOF
		case n == 50:
			time.Sleep(2100 * time.Millisecond) // longer than it is waited for
		case n < 1000:
			time.Sleep(time.Duration(rand.IntN(3000)) * time.Microsecond)
		}
	}
	return f.Memory.Do(ctx, ops)
}

// A counted body knows how many are open.
type countedBody struct {
	io.Reader
	open *atomic.Int64
	once sync.Once
}

func (b *countedBody) Close() error {
	b.once.Do(func() { b.open.Add(-1) })
	return nil
}

// stormLength is how many storms there are, and for how long each: short ones, or as
// STORMS=30x4s says.
func stormLength(t *testing.T) (n int, length time.Duration) {
	text := os.Getenv("STORMS")
	if text == "" {
		return 1, 500 * time.Millisecond
	}
	count, d, _ := strings.Cut(text, "x")
	n, err := strconv.Atoi(count)
	if err == nil {
		length, err = time.ParseDuration(d)
	}
	if err != nil {
		t.Fatalf("STORMS=%s: %v; want 30x4s", text, err)
	}
	return n, length
}

// Whatever comes together (a store that flakes, traces, breakers, changes of policies,
// panics, goroutines that end, cancels, Quotas, Snapshots), no request is left in line or
// in flight, no goroutine and no open body. Under the race detector it looks for races:
// a Trace was written to after its request had ended, as in
// cardano-community/koios-go-client 15, and what idle lines share was written to.
func TestStorms(t *testing.T) {
	n, length := stormLength(t)
	for i := range n {
		for _, where := range []string{"memory", "store"} {
			t.Run(fmt.Sprintf("%s/%d", where, i), func(t *testing.T) { storms(t, where == "store", rand.Uint64(), length) })
		}
	}
}

func storms(t *testing.T, overStore bool, seed uint64, length time.Duration) {
	t.Logf("seed %d", seed)
	before := runtime.NumGoroutine()
	policies := func(r *rand.Rand) []headway.Policy {
		list := []headway.Policy{
			{
				Name: "p", Hosts: []string{"*"}, MaxInFlight: 20 + r.IntN(20), MaxWaiting: 60, MaxWait: 5 * time.Millisecond,
				Limits:  []limiter.Limit{{N: 100 + r.Int64N(300), Per: time.Millisecond}},
				Breaker: &breaker.Config{Failures: 2 + r.IntN(2), OpenFor: time.Millisecond, Probes: 1 + r.IntN(2), ProbeTimeout: 50 * time.Millisecond},
				Rules: []headway.Rule{
					{Name: "key", Limit: limiter.Limit{N: 40, Per: time.Millisecond, Strict: true}, Key: func(req *http.Request) (string, error) {
						if rand.IntN(500) == 0 {
							panic(stormy)
						}
						return headway.FromCallKey(req)
					}},
					{Name: "tokens", Limit: limiter.Limit{N: 100_000, Per: time.Second, Law: limiter.Bucket, Burst: 500}, Cost: headway.FromCallCost, Path: "/tokens"},
				},
			},
			{Name: "mixed", Hosts: []string{"mixed.test"}, Shared: true, MaxWait: 2 * time.Millisecond, Breaker: &breaker.Config{OpenFor: time.Millisecond},
				Limits: []limiter.Limit{{N: 50, Per: 500 * time.Microsecond}}, Store: headway.StorePolicy{Down: headway.StoreDownRefuse}},
		}
		if r.IntN(4) == 0 {
			list[0].Breaker = nil
		}
		if r.IntN(4) == 0 {
			list[0].AttemptTimeout = time.Millisecond
		}
		return list
	}
	var open atomic.Int64
	newBody := func() io.ReadCloser {
		open.Add(1)
		return &countedBody{Reader: strings.NewReader("hello"), open: &open}
	}
	var events atomic.Int64
	observer := headway.MultiObserver(headway.LogObserver(slog.New(slog.NewTextHandler(io.Discard, nil)), time.Hour), headway.ObserverFunc(func(_ context.Context, e headway.Event) {
		if e.Err != nil && strings.Contains(e.Err.Error(), "s3cret") {
			t.Errorf("an event shows %v", e.Err)
		}
		switch n := events.Add(1); {
		case n%997 == 0:
			panic(stormy)
		case n%1499 == 0:
			runtime.Goexit()
		case n%101 == 0:
			runtime.Gosched()
		}
	}))
	base := roundTripper(func(req *http.Request) (*http.Response, error) {
		if req.Body != nil {
			req.Body.Close()
		}
		resp := ok(req)
		switch rand.IntN(24) {
		case 0, 1, 2:
			return nil, io.ErrUnexpectedEOF
		case 3:
			panic(stormy)
		case 4:
			runtime.Goexit()
		case 5:
			time.Sleep(time.Duration(rand.IntN(2000)) * time.Microsecond)
		case 6:
			resp.StatusCode = 503
		case 7:
			resp.StatusCode = 429
			resp.Header.Set("Retry-After-Ms", "1")
		case 8:
			resp.Header.Set("X-RateLimit-Remaining", "3")
			resp.Header.Set("X-RateLimit-Reset", "1")
		}
		resp.Body = newBody()
		return resp, nil
	})
	cfg := headway.Config{Policies: policies(rand.New(rand.NewPCG(seed, 0))), MaxHosts: 12, Observer: observer, Secret: []byte("s")}
	disk := new(flaky)
	if overStore {
		cfg.Store = disk
	}
	tr, err := headway.NewTransport(base, cfg)
	if err != nil {
		t.Fatal(err)
	}

	ends := time.Now().Add(length)
	step := func(r *rand.Rand) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var trace headway.Trace
		if r.IntN(2) == 0 {
			ctx = headway.WithTrace(ctx, &trace)
		}
		a := ask{ctx: ctx, url: "https://" + strconv.Itoa(r.IntN(3)) + ".test", call: headway.Call{Key: strconv.Itoa(r.IntN(5)), Cost: r.Int64N(4)}}
		switch r.IntN(5) {
		case 0:
			a.url += "/tokens"
		case 1:
			a.url = "https://mixed.test"
		}
		if r.IntN(3) == 0 {
			a.method, a.body = "POST", newBody()
		}
		switch r.IntN(6) {
		case 0:
			cancel()
		case 1:
			go cancel()
		case 2:
			time.AfterFunc(time.Duration(r.IntN(2000))*time.Microsecond, cancel)
		}
		storm(func() {
			resp, err := tr.RoundTrip(a.request("x"))
			if (resp == nil) == (err == nil) {
				t.Errorf("got %v and %v", resp, err)
			}
			if err != nil {
				if errors.Is(err, headway.ErrOpen) && strings.Contains(err.Error(), "s3cret") {
					t.Errorf("got %v", err)
				}
				return
			}
			defer resp.Body.Close()
			if r.IntN(2) == 0 {
				headway.Settle(resp, "tokens", r.Int64N(9))
			}
			if r.IntN(3) == 0 {
				io.Copy(io.Discard, resp.Body)
			}
		})
		_ = trace.String() // reads all of it
		storm(func() {
			switch r.IntN(200) {
			case 0:
				if q, err := tr.Quota("1.test", "key", "2"); err == nil {
					q.Spend(ctx, r.Int64N(7)-3)
					q.Wait(ctx, 1)
				}
			case 1:
				tr.Snapshot()
			case 2:
				tr.Delay(ask{url: a.url, call: a.call}.request("x"))
			}
		})
	}
	var all sync.WaitGroup
	for i := range uint64(24) {
		r := rand.New(rand.NewPCG(seed, i))
		all.Add(1)
		var again func()
		again = func() { // a goroutine that ends is followed by another
			defer func() {
				if time.Now().Before(ends) {
					go again()
				} else {
					all.Done()
				}
			}()
			for time.Now().Before(ends) {
				step(r)
			}
		}
		go again()
	}
	all.Go(func() {
		r := rand.New(rand.NewPCG(seed, 99))
		for time.Now().Before(ends) {
			time.Sleep(time.Duration(r.IntN(3001)) * time.Microsecond)
			if err := tr.SetPolicies(policies(r)); err != nil {
				t.Error(err)
			}
		}
	})
	all.Wait()
	disk.calm.Store(true)
	idle := func() bool {
		for _, h := range tr.Snapshot() {
			if h.Waiting > 0 || h.InFlight > 0 {
				return false
			}
		}
		return open.Load() == 0 && disk.out.Load() == 0 && runtime.NumGoroutine() <= before
	}
	for end := time.Now().Add(30 * time.Second); !idle(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			stacks := make([]byte, 1<<20)
			stacks = stacks[:runtime.Stack(stacks, true)]
			t.Fatalf("not all have left: %d bodies are open, %d calls of the store are out, %d goroutines, not %d; %+v\n%s",
				open.Load(), disk.out.Load(), runtime.NumGoroutine(), before, tr.Snapshot(), stacks)
		}
	}
}
