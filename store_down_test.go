package headway_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/store"
)

// A shaky is a store that can fail or hang.
type shaky struct {
	store.Memory

	mu    sync.Mutex // guards following fields
	err   error
	hangs bool
	loses bool // its answers do not come back
	calls int
	out   int // calls that have not returned
	most  int // of them at one time
	deaf  bool
	free  chan struct{}
}

func (s *shaky) Do(ctx context.Context, ops []store.Op) ([]store.Result, error) {
	s.mu.Lock()
	s.calls++
	s.out++
	s.most = max(s.most, s.out)
	err, hangs, deaf, free, loses := s.err, s.hangs, s.deaf, s.free, s.loses
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.out--
		s.mu.Unlock()
	}()
	switch {
	case err != nil:
		return nil, err
	case loses:
		s.Memory.Do(ctx, ops)
		return nil, errGone
	case hangs && deaf: // it heeds no context
		<-free
		return s.Memory.Do(context.Background(), ops)
	case hangs:
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.Memory.Do(ctx, ops)
}

func (s *shaky) set(f func(*shaky)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
}

var errGone = errors.New("gone")

func overStore(s store.Store, events *[]headway.Event, policies []headway.Policy) headway.Config {
	cfg := headway.Config{Policies: policies, Store: s, Secret: []byte("s")}
	if events != nil {
		cfg.Observer = collect(events)
	}
	return cfg
}

func kindsOf(events []headway.Event, want ...headway.EventKind) (got []headway.EventKind) {
	for _, e := range events {
		for _, k := range want {
			if e.Kind == k {
				got = append(got, k)
			}
		}
	}
	return got
}

// The store hangs: the first request waits for it for 2 s, those that come later
// do not. The local laws decide at the stated share, errors and an event say so,
// and when it is back that is noticed.
func TestC87_StoreHangs(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		t.Run(fmt.Sprintf("deaf=%v", deaf), func(t *testing.T) {
			disk := &shaky{free: make(chan struct{})}
			var events []headway.Event
			p := limits(limiter.PerMinute(8))
			p[0].MaxWait, p[0].Store.Share = headway.NoWait, 0.5
			playConfig(t, overStore(disk, &events, p), func(s *scene) {
				disk.free = make(chan struct{}) // of this bubble
				s.send("A", ask{})
				disk.set(func(d *shaky) { d.hangs, d.deaf = true, deaf })
				b := s.sendAll(ask{}, "B", "C")
				s.until(time.Second)
				s.wantStartsSoFar("A@0s")
				s.until(2 * time.Second)
				s.wantStartsSoFar("A@0s B@2s C@2s")
				if b[0].err != nil {
					s.Errorf("B: got %v", b[0].err)
				}
				for i := range 100 {
					p := s.send(fmt.Sprint(i), ask{})
					if p.after != 0 || !p.done.Load() {
						s.Errorf("number %d took %v, want no time", i, p.after)
					}
					if i < 2 {
						continue
					}
					var e *headway.ThrottledError
					if !errors.As(p.err, &e) || e.Store == nil || !strings.Contains(e.Error(), "without the store") {
						s.Errorf("number %d: got %v, want it refused by half of the limit, and told why", i, p.err)
					}
				}
				s.wantStartsSoFar("A@0s B@2s C@2s 0@2s 1@2s")
				if got := kindsOf(events, headway.EventStoreDown, headway.EventStoreUp); len(got) != 1 || got[0] != headway.EventStoreDown {
					s.Errorf("got events %v, want one store_down", got)
				}
				disk.set(func(d *shaky) { d.hangs = false })
				close(disk.free)
				s.until(10 * time.Second)
				s.send("X", ask{}) // finds out, without waiting for it
				s.until(11 * time.Second)
				s.send("Y", ask{})
				s.wantStartsSoFar("A@0s B@2s C@2s 0@2s 1@2s Y@11s")
				if got := kindsOf(events, headway.EventStoreDown, headway.EventStoreUp); len(got) != 2 || got[1] != headway.EventStoreUp {
					s.Errorf("got events %v, want store_down and store_up", got)
				}
				if disk.most > 2 {
					s.Errorf("%d questions at one time, want at most one of the line and one whether it is back", disk.most)
				}
			})
		})
	}
}

func TestC87_StoreFails(t *testing.T) {
	for name, tc := range map[string]struct {
		down   headway.StoreDown
		starts string
		reason limiter.Reason
	}{
		"local":  {headway.StoreDownLocal, "A@0s B@0s", limiter.ReasonLimit}, // a quarter of 2, at least 1
		"refuse": {headway.StoreDownRefuse, "A@0s", limiter.ReasonStore},
		"admit":  {headway.StoreDownAdmit, "A@0s B@0s C@0s", 0},
	} {
		t.Run(name, func(t *testing.T) {
			disk := &shaky{}
			p := limits(limiter.PerMinute(2))
			p[0].MaxWait, p[0].Store.Down = headway.NoWait, tc.down
			playConfig(t, overStore(disk, nil, p), func(s *scene) {
				s.send("A", ask{})
				disk.set(func(d *shaky) { d.err = errGone })
				body := newBody("x")
				s.send("B", ask{body: body})
				if body.closed.Load() != 1 {
					s.Errorf("the body was closed %d times, want once", body.closed.Load())
				}
				c := s.send("C", ask{})
				s.wantStarts(tc.starts)
				var e *headway.ThrottledError
				if errors.As(c.err, &e); tc.reason == 0 && c.err != nil || tc.reason != 0 && (e == nil || e.Reason != tc.reason || !errors.Is(e.Store, errGone)) {
					s.Errorf("C: got %v, want reason %v and the store's error", c.err, tc.reason)
				}
				q, err := s.Quota("api.test", "2/1m", "")
				if err != nil {
					s.Fatal(err)
				}
				err = q.Wait(s.Context(), 1)
				if (err == nil) != (tc.reason == 0) {
					s.Errorf("Quota.Wait: got %v", err)
				}
				d, err := q.Delay(s.Context(), 1)
				if refuse := tc.down == headway.StoreDownRefuse; errors.Is(err, errGone) != refuse || !refuse && (d == 0) != (tc.reason == 0) {
					s.Errorf("Quota.Delay: got %v, %v", d, err)
				}
			})
		})
	}
}

// A Delay whose own question finds the store down says when that is asked again.
func TestC87_DelayFindsTheStoreDown(t *testing.T) {
	disk := &shaky{err: errGone}
	p := limits(limiter.PerMinute(2))
	p[0].Store.Down = headway.StoreDownRefuse
	playConfig(t, overStore(disk, nil, p), func(s *scene) {
		for range 2 {
			if d, err := s.Delay(ask{}.request("A")); d != 100*time.Millisecond || err != nil {
				s.Errorf("got %v, %v; want the time until the next probe", d, err)
			}
		}
	})
}

// Who stands in line when the store goes does not stay there.
func TestC87_NoRequestIsStuckInLine(t *testing.T) {
	disk := &shaky{}
	playConfig(t, overStore(disk, nil, limits(limiter.Every(time.Hour))), func(s *scene) {
		s.sendAll(ask{}, "A", "B", "C")
		s.until(time.Minute)
		disk.set(func(d *shaky) { d.err = errGone })
		s.until(2 * time.Hour) // B has asked at 1h, and C has gone with it
		s.wantStarts("A@0s B@1h0m0s C@2h0m0s")
	})
}

// Who stands in line while the store is away stays there, at this process's share,
// when it is back; later requests ask it.
func TestC87_TheLineOfTheShareGoesOn(t *testing.T) {
	disk := &shaky{}
	p := limits(limiter.Limit{N: 4, Per: 10 * time.Second})
	p[0].Store.Share = 0.5
	playConfig(t, overStore(disk, nil, p), func(s *scene) {
		disk.set(func(d *shaky) { d.err = errGone })
		s.sendAll(ask{}, "A", "B", "C", "D")
		s.until(time.Second)
		disk.set(func(d *shaky) { d.err = nil })
		s.send("E", ask{}) // finds out
		s.until(2 * time.Second)
		s.sendAll(ask{}, "F", "G", "H", "I", "J")
		s.wantStarts("A@0s B@0s F@2s G@2s H@2s I@2s C@10s D@10s J@12s E@20s")
	})
}

// What a store grants too late goes back.
func TestC87_LateGrantsGoBack(t *testing.T) {
	disk := &shaky{}
	p := limits(limiter.PerMinute(3))
	p[0].Store.Down = headway.StoreDownRefuse
	playConfig(t, overStore(disk, nil, p), func(s *scene) {
		disk.free = make(chan struct{})
		s.send("A", ask{})
		disk.set(func(d *shaky) { d.hangs, d.deaf = true, true })
		b := s.send("B", ask{})
		s.until(3 * time.Second)
		if !errors.Is(b.err, headway.ErrThrottled) {
			s.Errorf("B: got %v, want it refused", b.err)
		}
		disk.set(func(d *shaky) { d.hangs = false })
		close(disk.free)
		s.send("C", ask{})
		s.until(10 * time.Second)
		q, err := s.Quota("api.test", "3/1m", "")
		if err != nil {
			s.Fatal(err)
		}
		if left := remaining(s, q); left != 2 {
			s.Errorf("%d left, want 2: B was not sent", left)
		}
	})
}

func TestStoreNeedsASecret(t *testing.T) {
	_, err := headway.NewTransport(nil, headway.Config{Store: new(store.Memory)})
	if err == nil || !strings.Contains(err.Error(), "Secret") {
		t.Errorf("got %v, want an error about the Secret", err)
	}
}

// Two Transports are two processes, as far as a store can tell.
func TestS13_OneSecretShares(t *testing.T) {
	for name, tc := range map[string]struct {
		secret string
		left   int64
	}{"one": {"s", 3}, "another": {"x", 5}} {
		t.Run(name, func(t *testing.T) {
			var budgets store.Memory
			p := rules(keyed(limiter.PerMinute(5)))
			playConfig(t, overStore(&budgets, nil, p), func(s *scene) {
				s.sendAll(key("a"), "A", "B")
				cfg := headway.Config{Policies: p, Store: &budgets, Secret: []byte(tc.secret)}
				q, err := headway.OpenQuota(cfg, "api.test", "key", "a")
				if err != nil {
					s.Fatal(err)
				}
				if left := remaining(s, q); left != tc.left {
					s.Errorf("with %s secret %d are left, want %d", name, left, tc.left)
				}
			})
		})
	}
}

// A quota in another program spends the same budget: Wait, Spend, give back.
func TestOpenQuotaSharesTheBudget(t *testing.T) {
	var budgets store.Memory
	p := limits(limiter.Limit{N: 3, Per: 10 * time.Second})
	playConfig(t, overStore(&budgets, nil, p), func(s *scene) {
		q, err := headway.OpenQuota(overStore(&budgets, nil, p), "api.test", "3/10s", "")
		if err != nil {
			s.Fatal(err)
		}
		if err := q.Wait(s.Context(), 2); err != nil {
			s.Error(err)
		}
		s.until(time.Second)
		s.sendAll(ask{}, "A", "B")
		if d := delay(s, q, 1); d != 9*time.Second {
			s.Errorf("Delay is %v, want 9s", d)
		}
		s.wantStarts("A@1s B@10s")
		spend(s, q, 4)
		if left := remaining(s, q); left != -3 {
			s.Errorf("%d left, want -3", left)
		}
		d, err := s.Delay(ask{}.request("C"))
		if err != nil || d != 10*time.Second {
			s.Errorf("the transport's Delay is %v, %v; want 10s", d, err)
		}
	})
}

// A process that ends is no reason to begin with a full budget.
func TestC22_OverRestarts(t *testing.T) {
	var budgets store.Memory
	p := []headway.Policy{{Hosts: []string{"*"}, Limits: []limiter.Limit{limiter.Every(time.Hour)}, MaxWait: headway.NoWait}}
	playConfig(t, overStore(&budgets, nil, p), func(s *scene) {
		again := func(name string, want error, after time.Duration) {
			s.Helper()
			s.Transport = newTransport(s, s.base, overStore(&budgets, nil, p))
			trip := s.send(name, ask{})
			var e *headway.ThrottledError
			if errors.As(trip.err, &e); (e != nil) != (want != nil) || e != nil && e.RetryAfter != after {
				s.Errorf("%s: got %v, want %v in %v", name, trip.err, want, after)
			}
		}
		again("A", nil, 0)
		s.until(time.Minute)
		again("B", headway.ErrThrottled, 59*time.Minute)
		s.until(time.Hour)
		s.base.answer = says(429, "", "Retry-After: 7200")
		again("C", nil, 0)
		s.base.answer = nil
		s.until(2 * time.Hour) // one hour of the pause
		again("D", headway.ErrThrottled, time.Hour)
		q, err := headway.OpenQuota(overStore(&budgets, nil, p), "api.test", "spaced 1/1h", "")
		if err != nil {
			s.Fatal(err)
		}
		spend(s, q, 2) // a debt: two intervals from now
		s.until(3 * time.Hour)
		again("E", headway.ErrThrottled, time.Hour)
		s.until(4 * time.Hour)
		again("F", nil, 0)
		s.wantStarts("A@0s C@1h0m0s F@4h0m0s")
	})
}

// What one process receives, all obey.
func TestPausesAreShared(t *testing.T) {
	var budgets store.Memory
	p := limits(limiter.PerSecond(5))
	playConfig(t, overStore(&budgets, nil, p), func(s *scene) {
		other := newTransport(s, s.base, overStore(&budgets, nil, p))
		s.base.answer = says(429, "", "Retry-After: 5")
		s.send("A", ask{})
		s.base.answer = nil
		mine := s.Transport
		s.Transport = other
		s.send("B", ask{})
		s.Transport = mine
		s.wantStarts("A@0s B@5s")
	})
	t.Run("and what is left", func(t *testing.T) {
		var budgets store.Memory
		playConfig(t, overStore(&budgets, nil, limits(limiter.PerMinute(50))), func(s *scene) {
			s.base.answer = says(200, "", "X-RateLimit-Limit: 50", "X-RateLimit-Remaining: 2", "X-RateLimit-Reset: 30")
			s.send("A", ask{})
			s.base.answer = nil
			s.Transport = newTransport(s, s.base, overStore(&budgets, nil, limits(limiter.PerMinute(50))))
			s.sendAll(ask{}, "B", "C", "D")
			s.wantStarts("A@0s B@0s C@0s D@31s")
		})
	})
}

// A unit under a strict limit comes back one period after the answer, in whatever
// process that came.
func TestS17_StrictOverTwoProcesses(t *testing.T) {
	var budgets store.Memory
	p := limits(limiter.Limit{N: 1, Per: 10 * time.Second, Strict: true})
	playConfig(t, overStore(&budgets, nil, p), func(s *scene) {
		s.base.latency = 3 * time.Second
		other := newTransport(s, s.base, overStore(&budgets, nil, p))
		s.send("A", ask{})
		mine := s.Transport
		s.Transport = other
		s.send("B", ask{})
		s.Transport = mine
		s.wantStarts("A@0s B@13s")
	})
	t.Run("longer than the lease", func(t *testing.T) {
		var budgets store.Memory
		playConfig(t, overStore(&budgets, nil, p), func(s *scene) {
			s.base.latency = 3 * store.StrictLease
			s.sendAll(ask{}, "A", "B")
			s.wantStarts("A@0s B@1m40s")
		})
	})
}

// A listening store writes down all that it receives, and all that it keeps.
type listening struct {
	store.Memory
	mu   sync.Mutex // guards text
	text strings.Builder
}

func (l *listening) Do(ctx context.Context, ops []store.Op) ([]store.Result, error) {
	results, err := l.Memory.Do(ctx, ops)
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range ops {
		fmt.Fprintf(&l.text, "%+v %+v %+v %+v\n", ops[i], ops[i].Pause, ops[i].Learn, results)
	}
	return results, err
}

func TestS13_AStoreReceivesNoKeys(t *testing.T) {
	const secretKey = "sk-live-4242"
	var l listening
	p := rules(keyed(limiter.PerMinute(3)))
	playConfig(t, overStore(&l, nil, p), func(s *scene) {
		s.base.answer = says(429, "", "Retry-After: 5", "X-RateLimit-Limit: 9", "X-RateLimit-Remaining: 3", "X-RateLimit-Reset: 30")
		s.sendAll(key(secretKey), "A", "B")
		q, err := s.Quota("api.test", "key", secretKey)
		if err != nil {
			s.Fatal(err)
		}
		spend(s, q, 1)
		s.Snapshot()
		s.wantStarts("A@0s B@5s")
		synctest.Wait() // what a response has announced is sent after it
		l.mu.Lock()
		defer l.mu.Unlock()
		if text := l.text.String(); strings.Contains(text, secretKey) || !strings.Contains(text, "rule%20key/") {
			s.Errorf("the store has heard\n%s", text)
		}
	})
}

func TestStoreDownMistakes(t *testing.T) {
	p := limits(limiter.PerSecond(1))
	p[0].Store.Down, p[0].Store.Share = headway.StoreDownAdmit+1, 1.5
	_, err := headway.NewTransport(nil, headway.Config{Policies: p})
	if err == nil || !strings.Contains(err.Error(), "Store.Down = 3") || !strings.Contains(err.Error(), "Store.Share = 1.5") {
		t.Errorf("got %v, want both mistakes", err)
	}
}

// A store is somebody else's code: its panic is an error, not the program's end.
type panickingStore struct{ store.Memory }

func (*panickingStore) Do(context.Context, []store.Op) ([]store.Result, error) { panic("oops") }

func TestC87_StorePanics(t *testing.T) {
	p := limits(limiter.PerSecond(1))
	p[0].Store.Down = headway.StoreDownRefuse
	playConfig(t, overStore(&panickingStore{}, nil, p), func(s *scene) {
		var e *headway.ThrottledError
		if a := s.send("A", ask{}); !errors.As(a.err, &e) || !strings.Contains(e.Error(), "oops") {
			s.Errorf("got %v, want it refused, and told of the panic", a.err)
		}
	})
}

// A request that is canceled during a round trip does not hold up those that arrive later.
func TestC87_GivesUpWhileItHangs(t *testing.T) {
	disk := &shaky{}
	playConfig(t, overStore(disk, nil, limits(limiter.PerMinute(8))), func(s *scene) {
		disk.set(func(d *shaky) { d.hangs = true })
		a := s.send("A", ask{})
		s.send("B", ask{})
		s.until(time.Second)
		a.cancel()
		s.until(3 * time.Second)
		disk.set(func(d *shaky) { d.hangs = false })
		s.send("C", ask{})
		s.until(4 * time.Second)
		s.sendAll(ask{}, "D", "E")
		s.wantStarts("B@2s C@3s D@4s E@4s")
		if a.err != context.Canceled || a.after != time.Second {
			s.Errorf("A: got %v after %v, want %v after 1s", a.err, a.after, context.Canceled)
		}
	})
}

// What the store could not receive it receives when it is back: responses, so that
// strict units come back one period later, and of starts that it may have granted
// without anybody hearing of it.
func TestC87_WhatTheStoreHasMissed(t *testing.T) {
	for name, tc := range map[string]struct {
		first  string // the request before, and when it starts
		breaks func(*shaky)
		starts string
	}{
		"an answer": {"A/3s", func(d *shaky) { d.err = errGone }, "A/3s@0s C@15s"},
		"a grant":   {"", func(d *shaky) { d.loses = true }, "C@6s"},
	} {
		t.Run(name, func(t *testing.T) {
			disk := &shaky{}
			p := limits(limiter.Limit{N: 1, Per: 10 * time.Second, Strict: true})
			p[0].Store.Down = headway.StoreDownRefuse
			playConfig(t, overStore(disk, nil, p), func(s *scene) {
				s.base.answer = script
				if tc.first != "" {
					s.send(tc.first, ask{})
				}
				s.until(time.Second)
				disk.set(tc.breaks)
				if lost := s.send("lost", ask{}); tc.first == "" && lost.err == nil {
					s.Error("a request has started without the store")
				}
				s.until(4 * time.Second)
				disk.set(func(d *shaky) { d.err, d.loses = nil, false })
				s.until(5 * time.Second)
				s.send("B", ask{}) // finds out that it is back
				s.until(6 * time.Second)
				s.send("C", ask{})
				s.wantStarts(tc.starts)
			})
		})
	}
}
