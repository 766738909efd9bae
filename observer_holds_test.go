package headway_test

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/breaker"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/store"
)

// endsWhenDue is a context that has ended when it is asked after its instant, and
// whose Done shows nothing: it ends between the start and the send.
type endsWhenDue struct {
	context.Context
	at time.Time
}

func (c endsWhenDue) Err() error {
	if time.Now().Before(c.at) {
		return nil
	}
	return context.Canceled
}

// A meddler is an observer that does something at the first event of a kind that
// is about A.
type meddler struct {
	kind headway.EventKind
	do   func()
	done atomic.Bool
}

func (m *meddler) Observe(ctx context.Context, e headway.Event) {
	if e.Kind == m.kind && (ctx.Value(isA{}) != nil || ctx == context.Background() || e.Policy == "") && !m.done.Swap(true) {
		m.do()
	}
}

// isA marks the context of A. Events of a breaker and of a store are not about one
// request.
type isA struct{}

// ofA is an ask for A.
func (s *scene) ofA(call headway.Call) ask {
	return ask{ctx: context.WithValue(s.Context(), isA{}, true), call: call}
}

// others returns the starts but those of A and of what the observer sends.
func (s *scene) others() string {
	list := slices.DeleteFunc(s.base.starts(), func(start string) bool {
		return strings.HasPrefix(start, "A@") || strings.HasPrefix(start, "N@")
	})
	return strings.Join(list, " ")
}

// Whatever an observer does with an event about A, those due at the same instant
// start at it, nothing deadlocks and nothing is left: reports of callbacks under a
// lock or in a turn are sony/gobreaker 37 and thomhurst/Kevlar 24.
func TestObserversDelayNoRequest(t *testing.T) {
	three := limiter.Limit{N: 3, Per: 10 * time.Second}
	// Three use the limit up; then A, B, C and D wait for it.
	queue := func(s *scene) {
		s.sendAll(ask{}, "x", "y", "z")
		s.send("A", s.ofA(headway.Call{}))
		s.sendAll(ask{}, "B", "C", "D")
	}
	const queued = "x@0s y@0s z@0s B@10s C@10s D@20s"
	answers := func(s *scene, name string, f func(*http.Request) (*http.Response, error)) {
		s.base.answer = func(req *http.Request) (*http.Response, error) {
			if req.Header.Get("Name") == name {
				return f(req)
			}
			return ok(req), nil
		}
	}
	for kind, tc := range map[headway.EventKind]struct {
		policies []headway.Policy
		play     func(s *scene)
		want     string
		undone   string // when A is not sent in the end
	}{
		headway.EventStart: {limits(three), func(s *scene) { queue(s) }, queued, "x@0s y@0s z@0s B@10s C@10s D@10s"},
		headway.EventTake: {limits(three, limiter.PerSecond(50)), func(s *scene) {
			queue(s)
		}, queued, "x@0s y@0s z@0s B@10s C@10s D@10s"},
		headway.EventCanceled: {limits(three), func(s *scene) {
			s.sendAll(ask{}, "x", "y", "z")
			a := s.ofA(headway.Call{})
			a.ctx = endsWhenDue{a.ctx, time.Now().Add(10 * time.Second)}
			s.send("A", a)
			s.sendAll(ask{}, "B", "C", "D")
		}, "x@0s y@0s z@0s B@10s C@10s D@10s", ""},
		headway.EventHalfOpen: {broken(breaker.Config{Probes: 3}, three), func(s *scene) {
			s.sendAll(ask{}, "x", "y", "z")
			s.breaker().Trip(errReset, 0)
			s.until(5 * time.Second)
			s.send("A", s.ofA(headway.Call{}))
			s.sendAll(ask{}, "B", "C")
		}, "x@0s y@0s z@0s B@10s C@10s", ""},
		headway.EventOpen: {broken(breaker.Config{Failures: 1}), func(s *scene) {
			answers(s, "A", func(*http.Request) (*http.Response, error) { return nil, errReset })
			s.send("A", s.ofA(headway.Call{}))
			s.until(5 * time.Second)
			s.send("B", ask{})
		}, "B@5s", ""},
		headway.EventClosed: {broken(breaker.Config{Failures: 1}), func(s *scene) {
			s.breaker().Trip(errReset, 0)
			s.until(5 * time.Second)
			s.send("A", s.ofA(headway.Call{}))
			s.send("B", ask{})
		}, "B@5s", ""},
		headway.EventPause: {limits(limiter.PerSecond(1)), func(s *scene) {
			answers(s, "A", says(429, "", "Retry-After: 3"))
			s.send("A", s.ofA(headway.Call{}))
			s.sendAll(ask{}, "B", "C")
		}, "B@3s C@4s", ""},
		headway.EventLearned: {limits(limiter.PerSecond(9)), func(s *scene) {
			answers(s, "A", says(200, "", "X-RateLimit-Limit: 9", "X-RateLimit-Remaining: 1", "X-RateLimit-Reset: 7"))
			s.send("A", s.ofA(headway.Call{}))
			s.sendAll(ask{}, "B", "C")
		}, "B@0s C@8s", ""},
		headway.EventMalformed: {limits(limiter.PerSecond(9)), func(s *scene) {
			answers(s, "A", says(200, "", "Retry-After: x", "X-RateLimit-Remaining: 1", "X-RateLimit-Reset: 7"))
			s.send("A", s.ofA(headway.Call{}))
			s.sendAll(ask{}, "B", "C")
		}, "B@0s C@8s", ""},
		headway.EventRefused: {limits(three), func(s *scene) {
			s.sendAll(ask{}, "x", "y", "z")
			s.send("A", s.ofA(headway.Call{MaxWait: headway.NoWait}))
			s.send("B", ask{})
		}, "x@0s y@0s z@0s B@10s", ""},
		headway.EventSettle: {[]headway.Policy{{Hosts: []string{"*"}, Rules: []headway.Rule{{
			Name: "tokens", Limit: three, Cost: headway.FromCallCost, Settle: func(*http.Response) (int64, bool) { return 1, true },
		}}}}, func(s *scene) {
			s.send("A", s.ofA(headway.Call{Cost: 3}))
			s.sendAll(cost(1), "B", "C", "D")
		}, "B@0s C@0s D@10s", ""},
		headway.EventSpend: {limits(three), func(s *scene) {
			s.sendAll(ask{}, "x", "y", "z", "B", "C", "D")
			q := s.quota("api.test", "3/10s", "")
			s.until(time.Second)
			s.all.Go(func() { storm(func() { spend(s, q, -2) }) })
			s.until(9 * time.Second)
		}, "x@0s y@0s z@0s B@1s C@1s D@10s", ""},
		headway.EventNoKey: {rules(keyed(three)), func(s *scene) {
			s.send("A", s.ofA(headway.Call{}))
			s.sendAll(key("k"), "B", "C")
		}, "B@0s C@0s", ""},
		headway.EventOpenRefused: {broken(breaker.Config{Failures: 1}, three), func(s *scene) {
			s.breaker().Trip(errReset, 0)
			s.until(4500 * time.Millisecond)
			s.send("A", s.ofA(headway.Call{}))
			s.until(5 * time.Second)
			s.sendAll(ask{}, "B", "C")
		}, "B@5s C@5s", ""},
	} {
		for _, slots := range []int{0, 8} { // the short way, and the long one
			for _, what := range []string{"blocks", "sends", "panics", "exits"} {
				t.Run(fmt.Sprintf("%v/slots=%d/%s", kind, slots, what), func(t *testing.T) {
					m := &meddler{kind: kind}
					policies := slices.Clone(tc.policies)
					policies[0].MaxInFlight = slots
					playConfig(t, headway.Config{Policies: policies, Observer: m}, func(s *scene) {
						m.do = func() {
							switch what {
							case "blocks":
								time.Sleep(time.Second)
							case "sends":
								s.RoundTrip(ask{call: headway.Call{Cost: 1}}.request("N"))
							case "panics":
								panic(stormy)
							case "exits":
								runtime.Goexit()
							}
						}
						s.stormy = true
						tc.play(s)
						s.all.Wait()
						want := tc.want
						if tc.undone != "" && (what == "panics" || what == "exits") {
							want = tc.undone
						}
						// What the observer sends takes a unit of requests that arrive later.
						free := what == "sends" && (kind == headway.EventLearned || kind == headway.EventMalformed || kind == headway.EventSettle || kind == headway.EventPause)
						if got := s.others(); got != want && !free || !m.done.Load() {
							t.Errorf("the observer was called: %v; got\n%s\nwant\n%s", m.done.Load(), got, want)
						}
						wantIdle(t, s.Transport)
					})
				})
			}
		}
	}
}

// A store that goes away while another question is out is reported by the request
// that comes back next; those that start with it do not wait for that.
func TestObserverOfAStoreDelaysNoRequest(t *testing.T) {
	disk := &late{}
	m := &meddler{kind: headway.EventStoreDown, do: func() { time.Sleep(time.Second) }}
	cfg := overStore(disk, nil, limits(limiter.Limit{N: 3, Per: 10 * time.Second}))
	cfg.Observer = m
	playConfig(t, cfg, func(s *scene) {
		other, err := s.Quota("other.test", "3/10s", "")
		if err != nil {
			t.Fatal(err)
		}
		s.sendAll(ask{}, "x", "y", "z", "A", "B", "C")
		s.until(9500 * time.Millisecond)
		disk.delay.Store(int64(time.Second))
		s.until(10500 * time.Millisecond)
		disk.fail.Store(true)
		spend(s, other, 1)
		s.wantStarts("x@0s y@0s z@0s B@11s C@11s A@12s")
		if !m.done.Load() {
			t.Error("nobody was told of the store")
		}
	})
}

// So it is with the events that a request brings about before it stands in line, or
// while the store answers: those after it do not wait for its observer.
func TestObserversOfWhatComesFirstDelayNoRequest(t *testing.T) {
	one := func(s *scene, url string) {
		a := s.ofA(headway.Call{})
		a.url = url
		s.send("A", a)
		s.sendAll(ask{url: url}, "B", "C")
	}
	three := limits(limiter.Limit{N: 3, Per: 10 * time.Second})
	for kind, tc := range map[headway.EventKind]struct {
		cfg  func() headway.Config
		play func(*scene, headway.Config)
		want string
	}{
		headway.EventOverflow: {func() headway.Config { return headway.Config{MaxHosts: 1, Policies: three} }, func(s *scene, _ headway.Config) {
			s.send("x", ask{})
			one(s, "https://other.test/")
		}, "x@0s B@0s C@0s"},
		headway.EventStoreUp: {func() headway.Config { return overStore(&shaky{err: errGone}, nil, three) }, func(s *scene, cfg headway.Config) {
			s.send("x", ask{})
			s.until(2500 * time.Millisecond)
			disk := cfg.Store.(*shaky)
			disk.mu.Lock()
			disk.err = nil
			disk.mu.Unlock()
			s.until(4 * time.Second)
			s.send("A", s.ofA(headway.Call{})) // asks, and the next one reports
			one(s, "")
		}, "x@0s B@4s C@4s"},
		headway.EventStoreRow: {func() headway.Config { return overStore(new(rowStore), nil, three) }, func(s *scene, cfg headway.Config) {
			s.send("x", ask{})
			cfg.Store.(*rowStore).spoil("", []byte("hello"))
			one(s, "")
		}, "x@0s B@0s C@0s"},
	} {
		for _, what := range []string{"blocks", "panics", "exits"} {
			t.Run(fmt.Sprintf("%v/%s", kind, what), func(t *testing.T) {
				m := &meddler{kind: kind, do: map[string]func(){
					"blocks": func() { time.Sleep(time.Second) }, "panics": func() { panic(stormy) }, "exits": runtime.Goexit,
				}[what]}
				cfg := tc.cfg()
				cfg.Observer = m
				playConfig(t, cfg, func(s *scene) {
					s.stormy = true
					tc.play(s, cfg)
					s.all.Wait()
					if got := s.others(); got != tc.want || !m.done.Load() {
						t.Errorf("the observer was called: %v; got\n%s\nwant\n%s", m.done.Load(), got, tc.want)
					}
					wantIdle(t, s.Transport)
				})
			})
		}
	}
}

// late is a store whose answers take a while, or fail.
type late struct {
	store.Memory
	delay atomic.Int64
	fail  atomic.Bool
}

func (l *late) Do(ctx context.Context, ops []store.Op) ([]store.Result, error) {
	if l.fail.Load() {
		return nil, errGone
	}
	res, err := l.Memory.Do(ctx, ops)
	time.Sleep(time.Duration(l.delay.Load()))
	return res, err
}
