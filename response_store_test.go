package headway_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/store"
)

// A distant is a store that decides 25 ms after it is asked, and whose results arrive 25 ms
// later.
type distant struct{ shaky }

func (s *distant) Do(ctx context.Context, ops []store.Op) ([]store.Result, error) {
	time.Sleep(25 * time.Millisecond)
	results, err := s.shaky.Do(ctx, ops)
	time.Sleep(25 * time.Millisecond)
	return results, err
}

// playDistant plays a scene over a distant store, with another process that shares it. Requests
// take 1 s.
func playDistant(t *testing.T, policies []headway.Policy, f func(s *scene, disk *distant, other *scene)) {
	t.Helper()
	disk := new(distant)
	playConfig(t, overStore(disk, nil, policies), func(s *scene) {
		s.base.latency = time.Second
		other := &scene{T: s.T, base: s.base, Transport: newTransport(s, s.base, overStore(disk, nil, policies))}
		f(s, disk, other)
		s.all.Wait()
		other.all.Wait()
		time.Sleep(time.Second) // until the store has received all
	})
}

// A response is back at the instant at which the base returns it, whatever it announces, however
// slow the store is that receives it. The store receives it all the same, also where the
// Transport is not used any more.
func TestResponsesDoNotWaitForTheStore(t *testing.T) {
	strict := limiter.Limit{N: 1, Per: time.Minute, Strict: true}
	for _, c := range []struct {
		name   string
		limit  limiter.Limit
		status int
		text   string
		lines  []string
		wait   time.Duration // of another process at 10 s: the store has known for 7 s what was announced
	}{
		{"a pause", limiter.PerSecond(10), 429, "", []string{"Retry-After: 60"}, 53 * time.Second},
		{"a pause that grows", limiter.PerSecond(10), 429, "", nil, 0},
		{"a pause that the body asks for", limiter.PerSecond(10), 403, `{"message": "You have exceeded a secondary rate limit"}`, []string{"X-GitHub-Request-Id: 1", "Content-Type: application/json", "Retry-After: 60"}, 53 * time.Second},
		{"what is left", limiter.PerSecond(10), 200, "", []string{"X-RateLimit-Limit: 5", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 60"}, 54 * time.Second},
		{"a strict unit", strict, 200, "", nil, 53 * time.Second},
		{"all of it", strict, 429, "", []string{"Retry-After: 90", "X-RateLimit-Limit: 5", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 60"}, 83 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			st := new(slowStore)
			cfg := headway.Config{Policies: limits(c.limit), Store: st, Secret: []byte("x")}
			playConfig(t, cfg, func(s *scene) {
				st.delay, st.from = 1500*time.Millisecond, s.base.epoch.Add(time.Second)
				s.base.latency = 1500 * time.Millisecond
				s.base.answer = inTurn(says(c.status, c.text, c.lines...))
				a := s.send("A", ask{})
				s.until(1500 * time.Millisecond)
				if !a.done.Load() || a.after != 1500*time.Millisecond || a.err != nil {
					s.Fatalf("got %v after %v, want the response after 1.5 s", a.err, a.after)
				}
				s.CloseIdleConnections()
				s.Transport = newTransport(s, s.base, cfg)
				s.until(10 * time.Second)
				st.delay = 0
				if d, err := s.Delay(ask{}.request("B")); err != nil || d != c.wait {
					s.Errorf("another process would wait for %v, %v; want %v", d, err, c.wait)
				}
			})
		})
	}
}

// This process obeys a pause before the store has received it: a request that the store has
// granted already, but that has not started, waits, and so does one that is reserved.
func TestAnUnsentPauseHolds(t *testing.T) {
	for name, batch := range map[string]int{"one by one": 0, "in batches": 20} {
		t.Run(name, func(t *testing.T) {
			p := limits(limiter.PerSecond(100))
			p[0].Store.Batch = batch
			playDistant(t, p, func(s *scene, _ *distant, _ *scene) {
				s.base.answer = inTurn(asks5)
				s.send("A", ask{}) // its response comes at 1.05 s
				s.until(1030 * time.Millisecond)
				s.send("B", ask{}) // the store grants it at 1.055 s
				s.until(1050 * time.Millisecond)
				s.send("C", ask{})
				s.until(1060 * time.Millisecond)
				s.send("D", ask{})
				s.until(6 * time.Second)
				s.wantStartsSoFar("A@50ms")
				s.all.Wait()
				if got := s.base.starts(); len(got) != 4 || got[1] != "B@6.15s" {
					s.Errorf("got %v, want B to start at 6.15s", got)
				}
			})
		})
	}
}

// Another process obeys it after the way to the store.
func TestAnUnsentPauseReachesOthers(t *testing.T) {
	playDistant(t, limits(limiter.PerSecond(100)), func(s *scene, _ *distant, other *scene) {
		s.base.answer = inTurn(asks5)
		s.send("A", ask{})
		s.until(1045 * time.Millisecond)
		other.send("B", ask{}) // decided 5 ms before the pause
		s.until(1055 * time.Millisecond)
		other.send("C", ask{}) // and 5 ms after it: at 1.08 s, until 6.075 s
		other.all.Wait()
		s.wantStarts("A@50ms B@1.095s C@6.15s")
	})
}

// A question that comes after a response is decided after what the response has announced.
func TestNoQuestionOvertakesAResponse(t *testing.T) {
	playDistant(t, limits(limiter.PerSecond(100)), func(s *scene, _ *distant, _ *scene) {
		s.base.answer = inTurn(says(200, "", "X-RateLimit-Limit: 50", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 30"))
		s.send("A", ask{})
		s.until(1020 * time.Millisecond)
		s.send("B", ask{}) // on its way when the response comes, at 1.05 s
		s.until(1060 * time.Millisecond)
		s.sendAll(ask{}, "C", "D") // with what was announced, at 1.07 s
		s.until(10 * time.Second)
		s.wantStartsSoFar("A@50ms B@1.07s")
		s.all.Wait()
	})
}

// A store that goes down, or hangs, with a pause on its way: this process obeys it in memory,
// and when the store is up it receives the rest of it.
func TestAPauseOutlastsItsStore(t *testing.T) {
	for name, hangs := range map[string]bool{"fails": false, "hangs": true} {
		t.Run(name, func(t *testing.T) {
			playDistant(t, limits(limiter.PerSecond(100)), func(s *scene, disk *distant, other *scene) {
				s.base.answer = inTurn(says(429, "", "Retry-After: 60"))
				a := s.send("A", ask{})
				s.until(time.Second)
				disk.set(func(d *shaky) {
					if d.hangs = hangs; !hangs {
						d.err = errGone
					}
				})
				s.until(1050 * time.Millisecond)
				if !a.done.Load() {
					s.Error("the response waits for the store")
				}
				s.send("B", ask{})
				s.until(10 * time.Second)
				s.send("C", ask{})
				disk.set(func(d *shaky) { d.err, d.hangs = nil, false })
				s.until(20 * time.Second)
				s.send("D", ask{}) // finds out
				s.until(30 * time.Second)
				other.send("E", ask{})
				other.all.Wait()
				s.all.Wait()
				for _, start := range s.base.starts()[1:] {
					if name, at, _ := strings.Cut(start, "@"); at < "1m1.05s" || at > "1m1.3s" {
						s.Errorf("%s starts at %s, want the end of the pause", name, at)
					}
				}
				if n := len(s.base.starts()); n != 5 {
					s.Errorf("%d starts, want 5", n)
				}
			})
		})
	}
}

// An observer hears of a pause when the response comes, with what this process knows. Where
// other processes have made it grow, the next request reports how long it is.
func TestAPauseIsReportedAtOnce(t *testing.T) {
	disk := new(distant)
	var events []headway.Event
	p := limits(limiter.PerSecond(100))
	playConfig(t, overStore(disk, &events, p), func(s *scene) {
		s.base.answer = oneByOne(says(429, ""))
		other := &scene{T: s.T, base: s.base, Transport: newTransport(s, s.base, overStore(disk, nil, p))}
		pauses := func(want string) {
			s.Helper()
			synctest.Wait()
			var got []string
			for _, e := range events {
				if e.Kind == headway.EventPause {
					got = append(got, fmt.Sprintf("%v %d %s", e.Pause, e.Status, e.Host))
				}
			}
			if fmt.Sprint(got) != want {
				s.Errorf("got %v, want %s", got, want)
			}
		}
		s.send("A", ask{})
		s.until(50 * time.Millisecond)
		pauses("[1s 429 api.test]")
		s.until(10 * time.Second)
		s.send("B", ask{})
		s.until(11 * time.Second)
		pauses("[1s 429 api.test 2s 429 api.test]")
		for i := range 2 { // 4 s and 8 s
			s.until(time.Duration(20+20*i) * time.Second)
			other.send(fmt.Sprint(i), ask{})
		}
		s.until(60 * time.Second)
		s.send("C", ask{})
		s.until(60*time.Second + 50*time.Millisecond)
		pauses("[1s 429 api.test 2s 429 api.test 4s 429 api.test]")
		s.until(61 * time.Second) // the store has said 16 s at 60.1 s
		s.base.answer = nil
		s.send("D", ask{})
		pauses("[1s 429 api.test 2s 429 api.test 4s 429 api.test 15.1s 429 api.test]")
		s.until(70 * time.Second)
		s.send("E", ask{})
		s.all.Wait()
		other.all.Wait()
		time.Sleep(time.Second)
		pauses("[1s 429 api.test 2s 429 api.test 4s 429 api.test 15.1s 429 api.test]")
		if got := strings.Join(s.base.starts()[4:], " "); !strings.HasPrefix(got, "C@1m0.05s D@1m16.1") {
			s.Errorf("started %s, want D after 16 s", got)
		}
	})
}

// A correction of strict units waits until the store knows since when they count.
func TestSettleWithAStrictUnitUnsent(t *testing.T) {
	l := limiter.Limit{N: 100, Per: 10 * time.Second, Strict: true}
	playDistant(t, tokens(l, headway.Rule{}), func(s *scene, _ *distant, _ *scene) {
		a := s.send("A", cost(100))
		s.until(1050 * time.Millisecond)
		if !a.done.Load() {
			s.Fatal("the response waits for the store")
		}
		if err := headway.Settle(a.resp, "tokens", 40); err != nil { // asked at 1.1 s, done at 1.15 s
			s.Fatal(err)
		}
		if now := time.Since(s.base.epoch); now != 1150*time.Millisecond {
			s.Errorf("settled at %v, want 1.15s", now)
		}
		s.send("B", cost(60))
		s.until(1200 * time.Millisecond)
		s.send("C", cost(40)) // the store has the response at 1.075 s
		s.wantStarts("A@50ms B@1.2s C@11.15s")
	})
}

// What Rule.Settle reads is corrected at once here, and in the store afterwards. What the store
// has not received can be settled again.
func TestSettleFromHeadersDoesNotWaitForTheStore(t *testing.T) {
	for name, tc := range map[string]struct {
		actual, event string
		left          int64
	}{
		"less": {"40", "-50, 60 left", 60},
		"more": {"120", "30, -20 left", -20},
	} {
		for _, fails := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/fails=%v", name, fails), func(t *testing.T) {
				disk := new(distant)
				var events []headway.Event
				cfg := overStore(disk, &events, tokens(limiter.PerHour(100), headway.Rule{Settle: costHeader}))
				playConfig(t, cfg, func(s *scene) {
					s.base.latency = time.Second
					s.base.answer = says(200, "", "Cost: "+tc.actual)
					a := s.send("A", cost(90))
					s.until(time.Second)
					if fails {
						disk.set(func(d *shaky) { d.err = errGone })
					}
					s.until(1050 * time.Millisecond)
					if !a.done.Load() || a.err != nil {
						s.Fatalf("%v: the response waits for the store", a.err)
					}
					settled := ""
					for _, e := range events {
						if e.Kind == headway.EventSettle {
							settled += fmt.Sprintf("%d, %d left", e.Cost, e.Remaining)
						}
					}
					if settled != tc.event {
						s.Errorf("reported %q, want %q", settled, tc.event)
					}
					s.until(5 * time.Second)
					disk.set(func(d *shaky) { d.err = nil })
					s.Delay(ask{}.request("B")) // finds out that the store is up
					s.until(6 * time.Second)
					q := s.quota("api.test", "tokens", "")
					if fails {
						s.wantRemaining(q, 10)
						n, _ := strconv.ParseInt(tc.actual, 10, 64)
						if err := headway.Settle(a.resp, "tokens", n); err != nil {
							s.Error(err)
						}
					}
					s.wantRemaining(q, tc.left)
					if err := headway.Settle(a.resp, "tokens", 90); err != nil {
						s.Error(err)
					}
					s.wantRemaining(q, 10)
				})
			})
		}
	}
}

// What cannot be sent does not keep the goroutine that sends it; see TestMain.
func TestNoGoroutineWaitsForAStoreThatIsDown(t *testing.T) {
	playDistant(t, limits(limiter.PerSecond(100)), func(s *scene, disk *distant, _ *scene) {
		s.base.answer = inTurn(says(429, "", "Retry-After: 3600"))
		s.send("A", ask{})
		s.until(time.Second)
		disk.set(func(d *shaky) { d.hangs = true })
		s.until(1050*time.Millisecond + 2*time.Second + 25*time.Millisecond)
		if n := disk.asked(); n != 2 {
			s.Errorf("%d round trips, want 2", n)
		}
		s.until(time.Hour)
		if n := disk.asked(); n != 2 {
			s.Errorf("%d round trips without a request, want 2", n)
		}
	})
}
