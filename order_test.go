package headway_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
)

var twoPerTen = limiter.Limit{N: 2, Per: 10 * time.Second}

func TestS1_WindowIsExact(t *testing.T) {
	play(t, limits(twoPerTen), func(s *scene) {
		s.sendAll(ask{}, "A", "B", "C", "D", "E")
		s.wantStarts("A@0s B@0s C@10s D@10s E@20s")
	})
}

func TestS2_WindowRolls(t *testing.T) {
	play(t, limits(twoPerTen), func(s *scene) {
		s.send("A", ask{})
		s.until(6 * time.Second)
		s.send("B", ask{})
		s.until(7 * time.Second)
		s.sendAll(ask{}, "C", "D")
		s.wantStarts("A@0s B@6s C@10s D@16s")
	})
}

func TestS3_IdleBurst(t *testing.T) {
	play(t, limits(limiter.PerMinute(3)), func(s *scene) {
		s.until(time.Hour)
		s.sendAll(ask{}, "A", "B")
		s.until(time.Hour + time.Second)
		s.sendAll(ask{}, "C", "D")
		s.wantStarts("A@1h0m0s B@1h0m0s C@1h0m1s D@1h1m0s")
	})
}

// keyed is a policy with one rule for each Call.Key.
func keyed(l limiter.Limit) headway.Rule {
	return headway.Rule{Name: "key", Limit: l, Key: headway.FromCallKey}
}

func rules(list ...headway.Rule) []headway.Policy {
	return []headway.Policy{{Hosts: []string{"*"}, Rules: list}}
}

func TestS5_KeysDoNotTouch(t *testing.T) {
	play(t, rules(keyed(limiter.Every(10*time.Second))), func(s *scene) {
		s.sendAll(key("a"), "A1", "A2")
		s.sendAll(key("b"), "B1")
		s.wantStarts("A1@0s B1@0s A2@10s")
	})
	t.Run("without a key all share one budget", func(t *testing.T) {
		play(t, limits(limiter.Every(10*time.Second)), func(s *scene) {
			s.sendAll(key("a"), "A1")
			s.sendAll(key("b"), "B1")
			s.wantStarts("A1@0s B1@10s")
		})
	})
}

func TestS6_OrderOfArrival(t *testing.T) {
	play(t, limits(twoPerTen), func(s *scene) {
		s.sendAll(ask{}, "A", "B", "X")
		time.Sleep(10 * time.Second) // and no synctest.Wait: room appears, and Y arrives
		s.sendAll(ask{}, "Y")
		s.wantStarts("A@0s B@0s X@10s Y@10s")
	})
}

// Hundreds due at one instant reach the base one after the other, though each
// is a goroutine of its own.
func TestS6_OrderOfBaseCallsWithinOneInstant(t *testing.T) {
	for name, other := range map[string]ask{"plain": {}, "mixed": cost(2)} {
		t.Run(name, func(t *testing.T) {
			play(t, limits(limiter.PerMinute(400)), func(s *scene) {
				s.send("first", cost(400))
				var want strings.Builder
				want.WriteString("first@0s")
				for i := range 200 {
					a := ask{}
					if i%2 > 0 {
						a = other
					}
					s.send(strconv.Itoa(i), a)
					fmt.Fprintf(&want, " %d@1m0s", i)
				}
				s.wantStarts(want.String())
			})
		})
	}
}

func TestC38_ReleasedInOrderOfArrival(t *testing.T) {
	play(t, limits(limiter.PerMinute(50)), func(s *scene) {
		s.send("first", cost(50))
		want := []string{"first@0s"}
		for i := range 50 {
			s.send(strconv.Itoa(i), ask{})
			want = append(want, strconv.Itoa(i)+"@1m0s")
		}
		s.wantStarts(strings.Join(want, " "))
	})
}

func TestS7_CancelImprovesThoseBehind(t *testing.T) {
	play(t, limits(limiter.Every(time.Second)), func(s *scene) {
		s.send("first", ask{})
		three := s.sendAll(ask{}, "A", "B", "C")
		three[0].cancel()
		s.wantStarts("first@0s B@1s C@2s")
		if three[0].after != 0 {
			s.Errorf("cancelled: back after %v, want at once", three[0].after)
		}
	})
}

// A request that is granted and then cancelled before it is sent gives its units
// to the oldest waiter, ahead of later arrivals.
func TestS8_CanceledBetweenGrantAndSend(t *testing.T) {
	for name, tc := range map[string]struct{ arrivals, want string }{
		"granted at once":    {"A B C D", "B@0s C@0s D@10s"},
		"granted with units": {"B A C D", "B@0s C@0s D@10s"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, limits(twoPerTen), func(s *scene) {
				for name := range strings.FieldsSeq(tc.arrivals) {
					a := ask{}
					if name == "A" {
						// A Call with something in it: without, there is no second look.
						a.ctx, a.call.Cost = &endsOnSecondLook{Context: s.Context()}, 1
					}
					if p := s.send(name, a); name == "A" && p.err != context.Canceled {
						s.Errorf("A: got %v, want %v", p.err, context.Canceled)
					}
				}
				s.wantStarts(tc.want)
			})
		})
	}
	t.Run("granted in line", func(t *testing.T) {
		var a *trip
		observer := func(_ context.Context, e headway.Event) {
			if e.Kind == headway.EventStart && e.Wait > 0 && !a.done.Load() {
				a.cancel() // X is about to be sent, and A has started too
			}
		}
		playConfig(t, headway.Config{Policies: limits(twoPerTen), Observer: headway.ObserverFunc(observer)}, func(s *scene) {
			s.sendAll(ask{}, "first", "first", "X")
			a = s.send("A", ask{})
			s.sendAll(ask{}, "B", "C")
			s.until(10 * time.Second)
			if a.err != context.Canceled || a.after != 10*time.Second {
				s.Errorf("A: got %v after %v, want %v", a.err, a.after, context.Canceled)
			}
			s.sendAll(ask{}, "D")
			s.wantStarts("first@0s first@0s X@10s B@10s C@20s D@20s")
		})
	})
}

// An endsOnSecondLook is a context that ends between two looks at it.
type endsOnSecondLook struct {
	context.Context
	looks atomic.Int32
}

func (c *endsOnSecondLook) Err() error {
	if c.looks.Add(1) > 1 {
		return context.Canceled
	}
	return nil
}

func TestS9_ManyWaiting(t *testing.T) {
	const n, perSecond = 2500, 50
	play(t, limits(limiter.PerSecond(perSecond)), func(s *scene) {
		var want []string
		for i := range n {
			s.send(strconv.Itoa(i), ask{})
			want = append(want, fmt.Sprintf("%d@%v", i, time.Duration(i/perSecond)*time.Second))
		}
		s.wantStarts(strings.Join(want, " "))
	})
}

func TestS15_LawAndSlot(t *testing.T) {
	policy := func(l limiter.Limit) []headway.Policy {
		p := limits(l)
		p[0].MaxInFlight = 1
		return p
	}
	t.Run("room in the law, no slot", func(t *testing.T) {
		play(t, policy(limiter.PerMinute(2)), func(s *scene) {
			s.base.latency = 5 * time.Second
			s.sendAll(ask{}, "A", "B")
			s.until(time.Second)
			if got := s.remaining("api.test", "2/1m"); got != 1 {
				s.Errorf("remaining: got %d, want 1: who waits for a slot has no unit", got)
			}
			s.sendAll(ask{}, "C")
			s.wantStarts("A@0s B@5s C@1m0s")
		})
	})
	t.Run("a slot, no room in the law", func(t *testing.T) {
		play(t, policy(limiter.Every(10*time.Second)), func(s *scene) {
			s.base.latency = time.Second
			s.sendAll(ask{}, "A", "B")
			s.until(2 * time.Second)
			if h := s.Snapshot()[0]; h.InFlight != 0 || h.Waiting != 1 {
				s.Errorf("got %d in flight, %d waiting, want 0 and 1: who waits for a unit has no slot", h.InFlight, h.Waiting)
			}
			s.wantStarts("A@0s B@10s")
		})
	})
}

// remaining returns what Snapshot tells of a rule.
func (s *scene) remaining(host, rule string) int64 {
	s.Helper()
	for _, h := range s.Snapshot() {
		for _, r := range h.Rules {
			if h.Host == host && r.Rule == rule {
				return r.Remaining
			}
		}
	}
	s.Errorf("no rule %q of %q in %+v", rule, host, s.Snapshot())
	return 0
}

// shared and tenant: 4 per s for all, 1 per 10 s for each.
func sharedAndTenant() []headway.Policy {
	return []headway.Policy{{
		Hosts:  []string{"*"},
		Limits: []limiter.Limit{limiter.PerSecond(4)},
		Rules:  []headway.Rule{keyed(limiter.Every(10 * time.Second))},
	}}
}

func TestS18_OthersPassARequestThatWaitsForItsOwnRule(t *testing.T) {
	play(t, sharedAndTenant(), func(s *scene) {
		s.sendAll(key("a"), "A1", "A2")
		for _, k := range []string{"B", "C", "D", "E"} {
			s.send(k+"1", key(k))
		}
		s.wantStarts("A1@0s B1@0s C1@0s D1@0s E1@1s A2@10s")
	})
}

func TestS18_EndlessOtherTenants(t *testing.T) {
	play(t, sharedAndTenant(), func(s *scene) {
		s.sendAll(key("a"), "A1", "A2")
		for i := range 1200 { // 100 a second, of which 4 can start
			s.all.Go(func() { s.RoundTrip(key(strconv.Itoa(i)).request("x")) })
			time.Sleep(10 * time.Millisecond)
		}
		s.all.Wait()
		if starts := s.base.starts(); !slices.Contains(starts, "A2@10s") {
			s.Errorf("A2 did not start at 10 s: got %v", startsOf(starts, "A2"))
		}
	})
}

func startsOf(starts []string, name string) (list []string) {
	for _, s := range starts {
		if strings.HasPrefix(s, name+"@") {
			list = append(list, s)
		}
	}
	return list
}

func TestS19_EndlessStreamsOfOneRuleEach(t *testing.T) {
	l := limiter.PerSecond(5)
	// What is for both paths has the budgets of both, and the cost says so.
	by := func(name string, paths string) headway.Rule {
		return headway.Rule{Name: name, Limit: l, Path: "/{kind}", Cost: costOf(paths)}
	}
	policies := rules(by("x", "/x /both"), by("y", "/y /both"))
	play(t, policies, func(s *scene) {
		stream := func(path string) {
			for range 500 { // 50 a second, of which 5 can start
				s.all.Go(func() { s.RoundTrip(ask{url: "https://api.test" + path}.request(path)) })
				time.Sleep(20 * time.Millisecond)
			}
		}
		s.all.Go(func() { stream("/x") })
		s.all.Go(func() { stream("/y") })
		s.until(time.Second + 999*time.Millisecond)
		req := ask{url: "https://api.test/both"}
		planned, err := s.Delay(req.request("A"))
		if err != nil {
			s.Error(err)
		}
		a := s.send("A", req)
		s.all.Wait()
		if starts := s.base.starts(); len(startsOf(starts, "A")) != 1 || a.after > planned || planned == 0 || planned > 30*time.Second {
			s.Errorf("A: told %v, started after %v: %v", planned, a.after, startsOf(starts, "A"))
		}
	})
}

// costOf returns a Cost of 1 for some paths and 0 for others.
func costOf(paths string) func(*http.Request) (int64, error) {
	list := strings.Fields(paths)
	return func(req *http.Request) (int64, error) {
		if slices.Contains(list, req.URL.Path) {
			return 1, nil
		}
		return 0, nil
	}
}

func TestS37_CostlyIsNotOvertaken(t *testing.T) {
	play(t, limits(limiter.Limit{N: 10, Per: 10 * time.Second, Law: limiter.Bucket}), func(s *scene) {
		s.send("first", cost(10))
		s.send("A", cost(10)) // 10 s
		for range 40 {
			s.until(time.Since(s.base.epoch) + 500*time.Millisecond)
			s.send("x", ask{})
		}
		s.all.Wait()
		starts := s.base.starts()
		if starts[1] != "A@10s" || starts[2] != "x@11s" {
			s.Errorf("got %v, want A as the second, at 10 s", starts[:3])
		}
	})
}

func TestS41_ServicesAreApart(t *testing.T) {
	policies := []headway.Policy{
		{Name: "slow", Hosts: []string{"slow.test", "*.slow.test"}, Limits: []limiter.Limit{limiter.Every(time.Hour)}, MaxInFlight: 1},
		{Name: "fast", Hosts: []string{"fast.test"}, Limits: []limiter.Limit{limiter.PerSecond(2)}},
	}
	play(t, policies, func(s *scene) {
		s.base.latency = time.Minute
		for _, host := range []string{"slow.test", "slow.test", "a.slow.test", "fast.test", "fast.test", "none.test", "fast.test"} {
			s.send(host, ask{url: "https://" + host})
		}
		s.wantStarts(`slow.test@0s a.slow.test@0s fast.test@0s fast.test@0s none.test@0s
			fast.test@1s slow.test@1h0m0s`)
	})
}

func TestC50_FirstRuleUntouchedWhenTheSecondRefuses(t *testing.T) {
	p := limits(limiter.Limit{N: 350, Per: 10 * time.Second}, limiter.PerHour(3))
	p[0].MaxWait = headway.NoWait
	play(t, p, func(s *scene) {
		s.sendAll(ask{}, "A", "B", "C")
		for range 5 {
			s.wantRefused(s.send("D", ask{}), limiter.ReasonLimit, time.Hour)
		}
		if got := s.remaining("api.test", "350/10s"); got != 347 {
			s.Errorf("got %d left of the first, want 347", got)
		}
	})
}

// S53: requests and tokens. Who waits for tokens holds no request unit.
func TestC51_NothingHeldWhileWaitingForTheOther(t *testing.T) {
	policies := []headway.Policy{{
		Hosts: []string{"*"},
		Rules: []headway.Rule{
			{Name: "requests", Limit: limiter.PerMinute(2)},
			{Name: "tokens", Limit: limiter.PerMinute(100), Path: "/chat", Cost: headway.FromCallCost},
		},
	}}
	play(t, policies, func(s *scene) {
		chat := func(tokens int64) ask { return ask{url: "https://api.test/chat", call: headway.Call{Cost: tokens}} }
		s.send("A", chat(90))
		s.until(time.Second)
		s.send("B", chat(50)) // at 1m
		if got := s.remaining("api.test", "requests"); got != 1 {
			s.Errorf("got %d requests left, want 1", got)
		}
		s.send("C", ask{}) // needs no tokens, and delays nobody
		s.until(2 * time.Second)
		s.send("D", ask{})
		// At 1m0s the unit of A comes back for B, at 1m1s that of C for D.
		s.wantStarts("A@0s C@1s B@1m0s D@1m1s")
	})
}

func TestC58_AllInOrder(t *testing.T) {
	play(t, limits(limiter.PerSecond(3)), func(s *scene) {
		var want []string
		for i := range 100 {
			p := s.send(strconv.Itoa(i), ask{})
			want = append(want, fmt.Sprintf("%d@%v", i, time.Duration(i/3)*time.Second))
			defer func() {
				if p.err != nil {
					s.Errorf("%d: %v", i, p.err)
				}
			}()
		}
		s.wantStarts(strings.Join(want, " "))
	})
}

func TestC53_NotAligned(t *testing.T) {
	play(t, limits(limiter.PerSecond(5)), func(s *scene) {
		s.until(999 * time.Millisecond)
		s.sendAll(ask{}, strings.Fields("a b c d e f g h i j")...)
		s.wantStarts("a@999ms b@999ms c@999ms d@999ms e@999ms f@1.999s g@1.999s h@1.999s i@1.999s j@1.999s")
	})
}

// S29, through a policy: local midnight on both sides of a clock change.
func TestS29_CalendarResetsAtLocalMidnight(t *testing.T) {
	la, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		t.Fatal(err)
	}
	l := limiter.Limit{N: 1, Law: limiter.Calendar, Unit: limiter.Day, Location: la}
	for name, days := range map[string][]time.Time{
		"spring": {time.Date(2000, 4, 1, 12, 0, 0, 0, la), time.Date(2000, 4, 2, 0, 0, 0, 0, la), time.Date(2000, 4, 3, 0, 0, 0, 0, la)},
		"autumn": {time.Date(2000, 10, 28, 12, 0, 0, 0, la), time.Date(2000, 10, 29, 0, 0, 0, 0, la), time.Date(2000, 10, 30, 0, 0, 0, 0, la)},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, limits(l), func(s *scene) {
				time.Sleep(time.Until(days[0]))
				s.sendAll(ask{}, "A", "B", "C")
				s.all.Wait()
				want := make([]string, 3)
				for i, d := range days {
					want[i] = fmt.Sprintf("%c@%v", 'A'+i, d.Sub(s.base.epoch))
				}
				s.wantStarts(strings.Join(want, " "))
			})
		})
	}
}

func TestS27_ThreeLimitsOnOneService(t *testing.T) {
	p := limits(limiter.Every(time.Second), limiter.PerMinute(30))
	p[0].MaxWaiting = 3
	play(t, p, func(s *scene) {
		for i := range 40 {
			p := s.send(strconv.Itoa(i), ask{})
			if i > 3 {
				s.wantRefused(p, limiter.ReasonLineFull, 4*time.Second)
			}
		}
		s.wantStarts("0@0s 1@1s 2@2s 3@3s")
		// At most 30 in any minute, for requests that come one by one.
		for i := range 40 {
			s.send(strconv.Itoa(40+i), ask{})
			time.Sleep(time.Second)
		}
		s.all.Wait()
		var times []time.Duration
		for _, start := range s.base.starts() {
			_, at, _ := strings.Cut(start, "@")
			d, _ := time.ParseDuration(at)
			times = append(times, d)
		}
		for i := range times {
			if i > 0 && times[i]-times[i-1] < time.Second {
				s.Errorf("starts %v and %v are less than 1 s apart", times[i-1], times[i])
			}
			if i >= 30 && times[i]-times[i-30] < time.Minute {
				s.Errorf("31 starts from %v to %v", times[i-30], times[i])
			}
		}
	})
}

func TestS39_DelayConsumesNothing(t *testing.T) {
	play(t, limits(limiter.Every(time.Second)), func(s *scene) {
		for range 100 {
			if d, err := s.Delay(ask{}.request("x")); d != 0 || err != nil {
				s.Fatalf("idle: got %v, %v, want 0", d, err)
			}
		}
		s.sendAll(ask{}, "A", "B", "C", "D")
		for range 100 {
			// The whole wait, not one step of it.
			if d, err := s.Delay(ask{}.request("x")); d != 4*time.Second || err != nil {
				s.Fatalf("in line: got %v, %v, want 4s", d, err)
			}
			if d, err := s.Delay(cost(3).request("x")); d != 4*time.Second || err != nil {
				s.Fatalf("cost 3: got %v, %v, want 4s", d, err)
			}
		}
		s.wantStarts("A@0s B@1s C@2s D@3s")
		synctest.Wait()
	})
}
