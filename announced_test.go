package headway_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
)

// A limit of none with none left says nothing: requests go as if it were not there.
// The refusal "slow down" is that of ioggstream/draft-polli-ratelimit-headers 73.
func TestNoneOfNoneIsIgnored(t *testing.T) {
	type answer = func(*http.Request) (*http.Response, error)
	zeros := says(200, "", "X-RateLimit-Limit: 0", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 0")
	for _, c := range []struct {
		name    string
		answers []answer
		want    string
	}{
		{"all zeros", []answer{zeros, zeros, zeros, zeros, zeros, zeros}, "A@0s B@1s C@1s D@1s E@1s"},
		{"slow down", []answer{says(429, "", "RateLimit-Limit: 0, 15;w=20", "RateLimit-Remaining: 0", "RateLimit-Reset: 20")}, "A@0s B@21s C@21.02s D@21.04s E@21.06s"},
		{"on a refusal", []answer{says(429, "", "RateLimit-Limit: 0, 15;w=20", "RateLimit-Remaining: 0", "RateLimit-Reset: 0", "Retry-After: 3")}, "A@0s B@3s C@3.02s D@3.04s E@3.06s"},
		{"with a time", []answer{says(429, "", "Retry-After: 45", "X-RateLimit-Limit: 0", "X-RateLimit-Remaining: 0")}, "A@0s B@45s C@45.02s D@45.04s E@45.06s"},
		{"for an hour", []answer{says(200, "", "X-RateLimit-Limit: 0", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 3600")}, "A@0s B@1s C@1s D@1s E@1s"},
		{"with a period", []answer{says(200, "", `RateLimit-Policy: "q";q=0;w=60`, `RateLimit: "q";r=0;t=30`)}, "A@0s B@1s C@1s D@1s E@1s"},
		// Some are left of a limit of none: so many until the reset, when one asks first.
		{"two of none", []answer{says(200, "", "X-RateLimit-Limit: 0", "X-RateLimit-Remaining: 2", "X-RateLimit-Reset: 5")}, "A@0s B@1s C@1s D@6s E@6.001s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, limits(limiter.PerSecond(50)), func(s *scene) {
				s.base.answer = inTurn(c.answers...)
				s.send("A", ask{})
				s.until(time.Second)
				s.sendAll(ask{}, "B", "C", "D", "E")
				s.wantStarts(c.want)
				if got := s.Snapshot()[0].Learned; c.name != "two of none" && len(got) > 0 {
					s.Errorf("%+v was learned", got)
				}
			})
		})
	}
}

// hostile returns headers as a broken or hostile server might send them.
func hostile(r *rand.Rand) (lines []string) {
	values := []string{"0", "-1", "1", "2", "5", "60", "3600", "86400", "99999999999999999999", "9223372036854775807", "-9223372036854775808", "NaN", "1e309", "0.001", "", "x", "0, 15;w=20", "1;w=1"}
	value := func() string {
		if r.IntN(4) == 0 {
			return strconv.FormatInt(time.Now().Unix()+r.Int64N(20)-5, 10)
		}
		return values[r.IntN(len(values))]
	}
	for _, name := range []string{
		"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset",
		"X-RateLimit-Limit-Minute", "X-RateLimit-Remaining-Minute", "Retry-After", "X-RateLimit-Reset-After", "X-RateLimit-Window",
	} {
		if r.IntN(3) > 0 {
			lines = append(lines, name+": "+value())
		}
	}
	if r.IntN(3) == 0 {
		lines = append(lines, fmt.Sprintf(`RateLimit-Policy: "a";q=%s;w=%s`, value(), value()), fmt.Sprintf(`RateLimit: "a";r=%s;t=%s`, value(), value()))
	}
	return lines
}

// Whatever a server announces, each request is back by its deadline, and out of the
// line by its MaxWait.
func TestHostileNumbersHoldNoRequestPastItsBound(t *testing.T) {
	runs := uint64(60)
	if testing.Short() {
		runs = 10
	}
	for seed := range runs {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 14))
			p := headway.Policy{Hosts: []string{"*"}}
			if r.IntN(3) > 0 {
				p.Limits = append(p.Limits, limiter.PerSecond(1+r.Int64N(50)))
			}
			if r.IntN(3) > 0 {
				p.Rules = append(p.Rules, headway.Rule{Name: "a", Limit: limiter.PerMinute(1 + r.Int64N(100)), Key: headway.FromCallKey})
			}
			if r.IntN(3) == 0 {
				p.Rules = append(p.Rules, headway.Rule{Name: "b", Limit: limiter.Limit{N: 1 + r.Int64N(5), Per: time.Second, Strict: true}, Methods: []string{"PUT"}})
			}
			if r.IntN(3) == 0 {
				p.MaxInFlight = 1 + r.IntN(3)
			}
			if r.IntN(3) == 0 {
				p.Server.Learn = headway.LearnPace
			}
			play(t, []headway.Policy{p}, func(s *scene) {
				s.base.quiet = true
				alternating := [][]string{hostile(r), hostile(r)}
				n, server := 0, rand.New(rand.NewPCG(seed, 41))
				s.base.answer = oneByOne(func(req *http.Request) (*http.Response, error) {
					status := 200
					if server.IntN(6) == 0 {
						status = []int{429, 503, 403, 529}[server.IntN(4)]
					}
					lines := hostile(server)
					if n++; seed%3 == 0 {
						lines = alternating[n%2]
					}
					return says(status, "", lines...)(req)
				})
				s.base.latency = time.Duration(r.IntN(3)) * 100 * time.Millisecond
				type sent struct {
					*trip
					wait, deadline time.Duration
				}
				var all []sent
				for range 60 {
					s.until(time.Since(s.base.epoch) + time.Duration(r.Int64N(int64(200*time.Millisecond))))
					for range 1 + r.IntN(4) {
						wait, deadline := time.Duration(r.Int64N(int64(4*time.Second))), time.Duration(1+r.Int64N(int64(9*time.Second)))
						ctx, cancel := context.WithTimeout(s.Context(), deadline)
						defer cancel()
						a := ask{method: []string{"GET", "PUT"}[r.IntN(2)], ctx: ctx, call: headway.Call{Key: strconv.Itoa(r.IntN(3)), MaxWait: wait}}
						all = append(all, sent{s.send("", a), wait, deadline})
					}
				}
				s.all.Wait()
				for i, p := range all {
					if e := new(headway.ThrottledError); p.after > p.deadline || errors.As(p.err, &e) && p.after > p.wait {
						s.Errorf("number %d: back after %v with %v, want it by %v and its refusal by %v", i, p.after, p.err, p.deadline, p.wait)
					}
					if p.err == nil && p.after > p.wait+s.base.latency {
						s.Errorf("number %d started after %v, later than its MaxWait of %v", i, p.after-s.base.latency, p.wait)
					}
				}
				wantIdle(s.T, s.Transport)
			})
		})
	}
}

// Each request's own bound ends it, whatever it waits for: here a limit that the
// server moves with every response.
func TestMaxWaitUnderALimitThatMoves(t *testing.T) {
	for _, c := range []struct {
		name  string
		rules []headway.Rule
		other ask // stands in line too: then the needs differ
	}{
		{"alike", nil, ask{}},
		{"mixed", []headway.Rule{{Name: "put", Limit: limiter.PerSecond(1000), Methods: []string{"PUT"}}}, ask{method: "PUT"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			policy := limits(limiter.PerSecond(1000))
			policy[0].Rules = c.rules
			play(t, policy, func(s *scene) {
				slow := map[string]time.Duration{"B": 900 * time.Millisecond, "C": 1900 * time.Millisecond, "D": 2900 * time.Millisecond}
				s.base.answer = func(req *http.Request) (*http.Response, error) {
					time.Sleep(slow[req.Header.Get("Name")])
					return says(200, "", "X-RateLimit-Limit: 3", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 2")(req)
				}
				s.sendAll(ask{}, "B", "C", "D") // in flight: each moves the reset by 2 s
				s.send("A", ask{})
				s.send("O", c.other)
				wait := 3 * time.Second
				p := s.send("W", ask{call: headway.Call{MaxWait: wait}})
				quota, err := s.Quota("api.test", "1000/1s", "")
				if err != nil {
					s.Fatal(err)
				}
				s.all.Go(func() {
					err := quota.Wait(headway.WithCall(context.Background(), headway.Call{MaxWait: wait}), 1)
					if at := time.Since(s.base.epoch); err == nil || at > wait {
						s.Errorf("Quota.Wait returned %v at %v, want a refusal by %v", err, at, wait)
					}
				})
				s.until(wait)
				if e, isThrottled := p.err.(*headway.ThrottledError); !p.done.Load() || !isThrottled || p.after > wait || e.Timeout() {
					s.Errorf("after %v: %v, want it refused by then", p.after, p.err)
				}
			})
		})
	}
}

// What a server has said once ends at its reset, however many wait for it, and over a
// store alike: one request asks, and the others follow. Interhyp/git-hubby 89 never resumed: what was
// known held up the very requests that would have brought news.
func TestAnAnnouncedLimitEnds(t *testing.T) {
	day := 24 * time.Hour
	for _, c := range []struct {
		name   string
		policy headway.Policy
		other  ask
	}{
		{"alike", headway.Policy{Limits: []limiter.Limit{limiter.PerSecond(3)}}, ask{}},
		{"mixed", headway.Policy{
			Limits: []limiter.Limit{limiter.PerSecond(3)},
			Rules:  []headway.Rule{{Name: "put", Limit: limiter.PerSecond(1000), Methods: []string{"PUT"}}},
		}, ask{method: "PUT"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.policy.Hosts = []string{"*"}
			play(t, []headway.Policy{c.policy}, func(s *scene) {
				s.base.answer = inTurn(says(200, "", "X-RateLimit-Limit: 1", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 43200"))
				s.send("A", ask{})
				for i := range 4 {
					s.send("B"+strconv.Itoa(i), ask{})
					s.send("C"+strconv.Itoa(i), c.other)
				}
				s.until(90 * day)
				s.sendAll(ask{}, "D", "E", "F")
				s.wantStarts("A@0s B0@12h0m1s C0@12h0m1.001s B1@12h0m1.001s C1@12h0m2s B2@12h0m2.001s C2@12h0m2.001s B3@12h0m3s C3@12h0m3.001s " +
					"D@2160h0m0s E@2160h0m0s F@2160h0m0s")
			})
		})
	}
	// Callers come all the time, so that the line is never empty.
	play(t, limits(limiter.PerSecond(3)), func(s *scene) {
		s.base.answer = inTurn(says(200, "", "X-RateLimit-Limit: 1", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 3600"))
		s.send("A", ask{})
		for range 3 {
			s.all.Go(func() {
				for time.Since(s.base.epoch) < 90*day {
					resp, err := s.RoundTrip(ask{}.request("B"))
					if err != nil {
						s.Error(err)
						return
					}
					resp.Body.Close()
					time.Sleep(time.Hour)
				}
			})
		}
		s.all.Wait()
		// A second after 1 h, when units come back, and then once an hour.
		if got, want := len(s.base.starts()), 1+3*(90*24-1); got != want {
			s.Errorf("%d starts in 90 days, want %d", got, want)
		}
	})
}

// A number that a server says to one identity never binds another, whatever rule
// has its name or its period. Tenants of digitalocean/api-v2 118 and
// tomasbasham/ratelimit 59 have limits by token under one account.
func TestWhatIsAnnouncedToOneIdentityBindsNoOther(t *testing.T) {
	byUser := func(req *http.Request) (string, error) { return req.Header.Get("User"), nil }
	tenant := headway.Rule{Name: "tenant", Limit: limiter.PerSecond(100), Key: headway.ByHeader("Tenant")}
	minute := headway.Rule{Name: "tenant-minute", Limit: limiter.PerMinute(100), Key: headway.ByHeader("Tenant")}
	user := headway.Rule{Name: "user", Limit: limiter.PerMinute(1000), Key: byUser}
	named := headway.Rule{Name: "requests", Limit: limiter.PerMinute(1000)}
	spent := []string{`RateLimit-Policy: "requests";q=100;w=60`, `RateLimit: "requests";r=0;t=50`}
	for _, c := range []struct {
		name  string
		rules []headway.Rule
		rule  string // whose the limit is thought to be
		held  bool   // those of another user of the same tenant are held too
	}{
		{"by name", []headway.Rule{tenant, named}, "learned requests", true},
		{"by period", []headway.Rule{tenant, {Name: "all", Limit: limiter.PerMinute(1000)}}, "learned requests", true},
		{"by both", []headway.Rule{tenant, {Name: "requests", Limit: limiter.PerMinute(1000)}}, "learned requests", true},
		{"the tenant's own", []headway.Rule{minute, named}, "tenant-minute", true},
		{"two rules of one key", []headway.Rule{minute, tenant, named}, "tenant-minute", true},
		{"two keys", []headway.Rule{minute, user}, "learned requests", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var events []headway.Event
			cfg := headway.Config{Policies: []headway.Policy{{Hosts: []string{"*"}, Rules: c.rules}}, Observer: collect(&events)}
			playConfig(t, cfg, func(s *scene) {
				of := func(tenant, user string) ask {
					return ask{header: http.Header{"Tenant": {tenant}, "User": {user}}}
				}
				s.base.answer = inTurn(says(200, "", spent...))
				s.send("A", of("a", "1"))
				s.send("B", of("b", "1")) // another tenant, and the same user's name
				s.send("C", of("a", "1"))
				s.send("D", of("a", "2"))
				s.send("E", of("b", "2"))
				want := "A@0s B@0s D@0s E@0s C@51s"
				if c.held {
					want = "A@0s B@0s E@0s C@51s D@51.001s"
				}
				if s.wantStarts(want); len(s.Snapshot()[0].Learned) != 1 {
					s.Errorf("learned: %+v", s.Snapshot()[0].Learned)
				}
				if e := only(s.T, events, headway.EventLearned); e.Rule != c.rule || e.KeyDigest == "" {
					s.Errorf("got the rule %q for %q, want %q", e.Rule, e.KeyDigest, c.rule)
				}
			})
		})
	}
	// Without keys it is the rule's, as ever.
	play(t, []headway.Policy{{Hosts: []string{"*"}, Rules: []headway.Rule{named}}}, func(s *scene) {
		s.base.answer = inTurn(says(200, "", spent...))
		s.sendAll(ask{}, "A", "B")
		if s.wantStarts("A@0s B@51s"); s.Snapshot()[0].Learned[0].Rule != "requests" {
			s.Errorf("learned: %+v", s.Snapshot()[0].Learned)
		}
	})
}

// Without a limit a restart begins with what succeeded in the second before the
// refused request, and grows from its tenth second on until it bounds nothing: no
// herd, neither at the end of the pause nor later. hivecommons/hive 4640 was refused
// anew three times, each time by all requests that had waited for the end; KarpelesLab/teamclaude
// 89 lets requests in one by one for 30 s.
func TestRestartWithoutALimit(t *testing.T) {
	at := func(first time.Duration, name string, n int, of func(i int) time.Duration) (want string) {
		for i := range n {
			want += fmt.Sprintf(" %s%d@%v", name, i, first+of(i))
		}
		return want
	}
	// Nothing has succeeded: one a second, then 2, 4, 8, …
	play(t, limits(), func(s *scene) {
		s.base.answer = inTurn(says(429, ""))
		s.send("A", ask{})
		s.sendAll(ask{}, names("B", 100)...)
		want := "A@0s" + at(time.Second, "B", 100, func(i int) time.Duration {
			if i <= 10 {
				return time.Duration(i) * time.Second
			}
			rate, due := time.Duration(2), 10*time.Second
			for left := i - 10; left > 0; left-- {
				due += time.Second / rate
				if due%time.Second == 0 {
					rate *= 2
				}
			}
			return due
		})
		s.wantStarts(want)
		// What comes after the restart is not held.
		s.until(time.Minute)
		s.sendAll(ask{}, names("C", 20)...)
		s.wantStarts(want + at(time.Minute, "C", 20, func(int) time.Duration { return 0 }))
	})
	// 100 callers made 1000 requests a second, one of which is refused.
	play(t, limits(), func(s *scene) {
		s.base.answer = func(req *http.Request) (*http.Response, error) {
			if s := req.Header.Get("Name"); s == "caller7@5s" {
				time.Sleep(150 * time.Millisecond)
				return says(429, "", "Retry-After: 1")(req)
			}
			time.Sleep(100 * time.Millisecond)
			return ok(req), nil
		}
		s.base.quiet = true
		var starts []time.Duration
		var mu sync.Mutex
		for i := range 100 {
			s.all.Go(func() {
				for time.Since(s.base.epoch) < 40*time.Second {
					name := fmt.Sprintf("caller%d@%v", i, time.Since(s.base.epoch))
					resp, err := s.RoundTrip(ask{}.request(name))
					if err != nil {
						s.Error(err)
						return
					}
					resp.Body.Close()
					mu.Lock()
					latency := 100 * time.Millisecond
					if resp.StatusCode == 429 {
						latency = 150 * time.Millisecond
					}
					starts = append(starts, time.Since(s.base.epoch)-latency)
					mu.Unlock()
				}
			})
		}
		s.all.Wait()
		slices.Sort(starts)
		const end = 6150 * time.Millisecond
		i, _ := slices.BinarySearch(starts, 5150*time.Millisecond)
		after := starts[i:]
		for k, at := range after[:100] {
			if want := end + (time.Duration(k)*time.Second+998)/999; at != want {
				s.Fatalf("number %d after the pause started at %v, want %v", k, at, want)
			}
		}
		for k := 999; k < 9990; k++ { // no more than that in any second
			if after[k]-after[k-999] < time.Second-1 {
				s.Fatalf("%d starts from %v to %v", 1000, after[k-999], after[k])
			}
		}
		for k := range after[1:] {
			if after[k] == after[k+1] {
				s.Fatalf("two starts at %v", after[k])
			}
		}
	})
	if openStore != nil {
		return // where a process's own successes count, as far as they are known at the refusal
	}
	// Each successful response of those in flight with the refused one counts, in
	// whatever order they come.
	play(t, limits(), func(s *scene) {
		s.base.answer = func(req *http.Request) (*http.Response, error) {
			if time.Since(s.base.epoch) > 0 {
				return ok(req), nil
			}
			if req.Header.Get("Name") == "A0" {
				time.Sleep(100 * time.Millisecond)
				return says(429, "", "Retry-After: 10")(req)
			}
			time.Sleep(time.Second)
			return ok(req), nil
		}
		for _, name := range names("A", 50) {
			go func() { s.RoundTrip(ask{}.request(name)) }()
		}
		s.until(time.Second)
		s.sendAll(ask{}, names("B", 10)...)
		s.all.Wait()
		got := s.base.starts()[50:]
		for i := range got {
			if want := fmt.Sprintf("B%d@%v", i, 10100*time.Millisecond+(time.Duration(i)*time.Second+48)/49); got[i] != want {
				s.Errorf("got %s, want %s", got[i], want)
			}
		}
	})
}

// So it is where the server announces a limit with each response, where the refused
// request has a limit and others that its pause holds have none, and where the restart
// is refused at once: then at half the rate.
func TestRestartOfThoseWithoutALimit(t *testing.T) {
	put := headway.Rule{Name: "put", Limit: limiter.PerMinute(60), Methods: []string{"PUT"}}
	for _, c := range []struct {
		name    string
		rules   []headway.Rule
		refused ask
		lines   []string
		again   bool
	}{
		{"announced", nil, ask{}, []string{"X-RateLimit-Limit: 100000", "X-RateLimit-Remaining: 90000", "X-RateLimit-Reset: 86400"}, false},
		{"another has a limit", []headway.Rule{put}, ask{method: "PUT"}, nil, false},
		{"announced to another", []headway.Rule{put}, ask{method: "PUT"}, []string{"X-RateLimit-Limit: 100000", "X-RateLimit-Remaining: 90000", "X-RateLimit-Reset: 86400"}, false},
		{"twice", nil, ask{}, nil, true},
		{"twice, announced", []headway.Rule{put}, ask{}, []string{"X-RateLimit-Limit: 100000", "X-RateLimit-Remaining: 90000", "X-RateLimit-Reset: 86400"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, rules(c.rules...), func(s *scene) {
				s.base.answer = func(req *http.Request) (*http.Response, error) {
					if name := req.Header.Get("Name"); name == "R" || name == "B0" && c.again {
						return says(429, "", append(c.lines, "Retry-After: 1")...)(req)
					}
					return says(200, "", c.lines...)(req)
				}
				want, every := "", 100*time.Millisecond
				for i := range 10 {
					due := 50*time.Millisecond + time.Duration(i)*every
					s.until(due)
					s.send("A", ask{})
					want += fmt.Sprintf("A@%v ", due)
				}
				s.until(time.Second)
				s.send("R", c.refused)
				want += "R@1s"
				n, end, from := 125, 2*time.Second, 0
				if c.again {
					want += " B0@2s"
					n, end, from, every = 70, 3*time.Second, 1, 200*time.Millisecond
				}
				s.sendAll(ask{}, names("B", n)...)
				for i := from; i < n; i++ {
					due := time.Duration(i-from) * every
					if due > 10*time.Second { // 1 s with twice the rate, then it doubles again
						due = 10*time.Second + (due-10*time.Second)/2
						if due > 11*time.Second {
							due = 11*time.Second + (due-11*time.Second)/2
						}
					}
					want += fmt.Sprintf(" B%d@%v", i, end+due)
				}
				s.wantStarts(want)
			})
		})
	}
}
