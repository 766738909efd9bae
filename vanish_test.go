package headway_test

import (
	"fmt"
	"net/http"
	"runtime"
	"testing"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
)

// allocated returns how much f allocates, and how much the heap has grown by it.
func allocated(f func()) (bytes, grown int64) {
	before := heap()
	var m, n runtime.MemStats
	runtime.ReadMemStats(&m)
	f()
	runtime.ReadMemStats(&n)
	return int64(n.TotalAlloc - m.TotalAlloc), heap() - before
}

// SetPolicies with ever new names of rules, or of policies, neither grows nor takes
// longer: at hosts, with keys, with identities of two keys, and with a request in
// line.
func TestAllocVanishedRulesAreForgotten(t *testing.T) {
	const calls, hosts = 2000, 5
	for _, renamed := range []string{"rules", "policy"} {
		policies := func(i int) []headway.Policy {
			p := rules(
				headway.Rule{Name: fmt.Sprint("wide", i), Limit: limiter.PerDay(1_000_000)},
				headway.Rule{Name: fmt.Sprint("a", i), Limit: limiter.PerDay(100), Key: headway.FromCallKey},
				headway.Rule{Name: fmt.Sprint("b", i), Limit: limiter.PerDay(100), Key: headway.ByHeader("User"), Path: "/two"},
				headway.Rule{Name: "stays", Limit: limiter.PerDay(1_000_000)},
			)
			if p[0].Name = "p"; renamed == "policy" {
				p[0].Name = fmt.Sprint("p", i)
			}
			return p
		}
		t.Run(renamed, func(t *testing.T) {
			play(t, policies(0), func(s *scene) {
				s.base.quiet = true
				s.base.answer = says(200, "", "X-RateLimit-Limit: 100", "X-RateLimit-Remaining: 50", "X-RateLimit-Reset: 86400")
				call := func(i int) {
					for h := range hosts {
						for _, path := range []string{"", "two"} {
							a := at(fmt.Sprintf("h%d.test", h), fmt.Sprint("tenant", i%3))
							a.url += path
							a.header = http.Header{"User": {"u"}}
							if _, err := s.RoundTrip(a.request("x")); err != nil {
								s.Fatal(err)
							}
						}
					}
					s.set(policies(i))
				}
				steps := func(from, to int) func() {
					return func() {
						for i := from; i < to; i++ {
							call(i)
						}
					}
				}
				steps(1, 200)()
				first, _ := allocated(steps(200, 300))
				_, grown := allocated(steps(300, calls-100))
				last, _ := allocated(steps(calls-100, calls))
				if grown > 256<<10 {
					s.Errorf("grown by %d KiB, want it bounded", grown>>10)
				}
				if last > first*3/2 {
					s.Errorf("the last 100 calls allocate %d KiB, the first %d KiB: want no more", last>>10, first>>10)
				}
				entries := 0
				for _, h := range s.Snapshot() {
					entries += 1 + len(h.Rules)
				}
				if entries > hosts*7 {
					s.Errorf("%d hosts and budgets are remembered, want %d at most", entries, hosts*7)
				}
			})
		})
	}
}

// A rule whose name comes later in the place of one that has gone has a budget of its
// own, and those that stay keep theirs, in whatever order; a request that came under
// the one that has gone is held up by neither, and a Quota of it does nothing.
func TestVanishedRulesLeaveNothing(t *testing.T) {
	per := func(name string, n int64) headway.Rule {
		return headway.Rule{Name: name, Limit: limiter.PerHour(n)}
	}
	play(t, rules(per("first", 5), per("gone", 2), per("stays", 3)), func(s *scene) {
		gone := s.quota("api.test", "gone", "")
		s.sendAll(ask{}, "A", "B", "C") // C waits for gone
		s.until(time.Minute)
		s.set(rules(per("new", 2), per("stays", 3)))
		if got := remaining(s, s.quota("api.test", "new", "")); got != 2 {
			s.Errorf("%d are left of the new rule, want 2: nothing has been taken", got)
		}
		spend(s, gone, 10)
		if got := delay(s, gone, 1); got != 0 {
			s.Errorf("a quota of a rule that has gone: got %v, want no wait", got)
		}
		if got := remaining(s, s.quota("api.test", "stays", "")); got != 0 {
			s.Errorf("%d are left of the rule that stays, want 0: A, B and C", got)
		}
		s.send("D", ask{}) // for stays
		s.set(rules(per("gone", 2), per("new", 2), per("stays", 4)))
		if got := remaining(s, s.quota("api.test", "gone", "")); got != 2 {
			s.Errorf("%d are left of the rule that has come back, want 2", got)
		}
		if got := remaining(s, s.quota("api.test", "new", "")); got != 1 {
			s.Errorf("%d are left of the new rule, want 1: D", got)
		}
		s.wantStarts("A@0s B@0s C@1m0s D@1m0s")
	})
}

// A request that is in flight while its rules, or its policy, go and others take their
// indices gives back to none of them, and what is announced to it holds none of them up.
func TestVanishedWhileInFlight(t *testing.T) {
	for name, next := range map[string]string{"rules": "p", "policy": "q"} {
		t.Run(name, func(t *testing.T) {
			with := func(policy, a, b string) []headway.Policy {
				cost := keyed(limiter.PerHour(10))
				cost.Name, cost.Cost = a, headway.FromCallCost
				p := rules(cost, headway.Rule{Name: b, Limit: limiter.PerHour(10), Key: headway.ByHeader("User")})
				p[0].Name = policy
				return p
			}
			play(t, with("p", "a", "b"), func(s *scene) {
				s.base.latency = time.Minute
				s.base.answer = inTurn(says(429, "", "Retry-After: 3600"))
				a := ask{call: headway.Call{Key: "k", Cost: 5}, header: http.Header{"User": {"u"}}}
				first := s.send("A", a)
				s.until(time.Second)
				s.set(with(next, "c", "d"))
				s.until(2 * time.Minute)
				if err := headway.Settle(first.resp, "a", 1); err != nil {
					s.Error(err)
				}
				if got := remaining(s, s.quota("api.test", "c", "k")); got != 10 {
					s.Errorf("%d are left, want 10", got)
				}
				s.send("B", a)
				s.wantStarts("A@0s B@2m0s")
			})
		})
	}
}
