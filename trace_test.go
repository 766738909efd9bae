package headway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/breaker"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/store"
	"pgregory.net/rapid"
)

// traced asks with a Trace.
func traced(a ask) (ask, *headway.Trace) {
	tr := new(headway.Trace)
	if a.ctx == nil {
		a.ctx = context.Background()
	}
	a.ctx = headway.WithTrace(a.ctx, tr)
	return a, tr
}

// one returns the only record, whose causes must add up to its wait.
func one(t *testing.T, tr *headway.Trace) headway.TracedRequest {
	t.Helper()
	list := tr.Requests()
	if len(list) != 1 {
		t.Fatalf("got %d records, want one", len(list))
	}
	r := list[0]
	var sum time.Duration
	for _, c := range r.Causes {
		if sum += c.For; c.For <= 0 {
			t.Errorf("a cause of %v: %v", c.For, c)
		}
	}
	if sum != r.Wait {
		t.Errorf("the causes add up to %v, and the wait is %v", sum, r.Wait)
	}
	return r
}

// Why did this request take 820 ms? The sentence says it.
func TestTraceShowsWhy(t *testing.T) {
	rule := headway.Rule{Name: "tenant", Limit: limiter.Every(20 * time.Millisecond), Key: headway.FromCallKey}
	play(t, rules(rule), func(s *scene) {
		s.base.answer = func(req *http.Request) (*http.Response, error) {
			if req.Header.Get("Name") == "A5" { // at 100 ms
				return says(429, "", "Retry-After-Ms: 200")(req)
			}
			return ok(req), nil
		}
		s.sendAll(key("a"), names("A", 32)...)
		a, tr := traced(key("a"))
		s.send("T", a)
		s.all.Wait()
		r := one(s.T, tr)
		digest := r.Causes[0].KeyDigest
		want := fmt.Sprintf(`api.test: waited 820ms: 600ms behind 31 others of rule "tenant" for key %s, `+
			`200ms because the server requested a pause with a 429 (retry-after-ms), `+
			`20ms for its own turn under rule "tenant" for key %[1]s; response 200 after 0s.`, digest)
		if got := tr.String(); got != want || digest == "" {
			s.Errorf("got  %s\nwant %s", got, want)
		}
		if r.Place != 31 || !r.Started.Equal(r.Arrived.Add(820*time.Millisecond)) || !r.Answered.Equal(r.Started) {
			s.Errorf("got %+v", r)
		}
	})
}

// Each kind of cause, and each end.
func TestTraceKinds(t *testing.T) {
	for name, tt := range map[string]struct {
		policy headway.Policy
		answer func(*http.Request) (*http.Response, error)
		before []string
		call   headway.Call
		want   string
	}{
		"at once": {want: "api.test: started at once; response 200 after 1s."},
		"limit": {
			policy: headway.Policy{Limits: []limiter.Limit{limiter.Every(5 * time.Second)}}, before: []string{"A"},
			want: `api.test: waited 5s: 5s for its own turn under rule "spaced 1/5s"; response 200 after 1s.`,
		},
		"slot": {
			policy: headway.Policy{MaxInFlight: 1}, before: []string{"A"},
			want: "api.test: waited 1s: 1s for a slot in flight; response 200 after 1s.",
		},
		"behind, then a slot": {
			policy: headway.Policy{MaxInFlight: 1}, before: []string{"A", "B"},
			want: "api.test: waited 2s: 1s behind 1 other, 1s for a slot in flight; response 200 after 1s.",
		},
		"learned": {
			answer: says(200, "", "X-RateLimit-Limit: 9", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 30"), before: []string{"A"},
			want: `api.test: waited 31s: 1s behind 1 other`,
		},
		"refused": {
			policy: headway.Policy{Limits: []limiter.Limit{limiter.Every(5 * time.Second)}, MaxWait: headway.NoWait}, before: []string{"A"},
			want: `api.test: refused at once; headway: policy "*" throttled a request to api.test by rule "spaced 1/5s": the limit has no room yet, could start in 5s.`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			tt.policy.Hosts = []string{"*"}
			play(t, []headway.Policy{tt.policy}, func(s *scene) {
				s.base.latency = time.Second
				s.base.answer = tt.answer
				s.sendAll(ask{}, tt.before...)
				if name == "learned" {
					s.until(time.Second)
				}
				a, tr := traced(ask{call: tt.call})
				s.send("T", a)
				s.all.Wait()
				r := one(s.T, tr)
				if name == "learned" {
					tt.want = `api.test: waited 31s: 31s until the server has units left, rule "learned"; response 200 after 1s.`
				}
				if got := tr.String(); got != tt.want {
					s.Errorf("got  %s\nwant %s", got, tt.want)
				}
				if text, err := json.Marshal(tr); err != nil || !strings.Contains(string(text), fmt.Sprintf(`"wait_seconds":%v`, r.Wait.Seconds())) {
					s.Errorf("got %s, %v", text, err)
				}
			})
		})
	}
}

// An open breaker, an ended context and a retry are recorded.
func TestTraceEnds(t *testing.T) {
	play(t, []headway.Policy{{Hosts: []string{"*"}, Breaker: &breaker.Config{Failures: 1}, Limits: []limiter.Limit{limiter.Every(time.Second)}}}, func(s *scene) {
		a, tr := traced(attempt(1))
		s.send("A", a)
		ctx, cancel := context.WithCancel(context.Background())
		b, canceled := traced(ask{ctx: ctx})
		s.send("B", b)
		s.until(400 * time.Millisecond)
		cancel()
		synctest.Wait()
		s.breaker().Trip(errReset, 0)
		c, open := traced(ask{})
		s.send("C", c)
		s.all.Wait()
		if r := one(s.T, tr); r.Attempt != 1 || r.Status != 200 {
			s.Errorf("got %+v", r)
		}
		if r := one(s.T, canceled); r.Err != context.Canceled || r.Wait != 400*time.Millisecond || !r.Started.IsZero() {
			s.Errorf("got %+v", r)
		}
		if r := one(s.T, open); r.Wait != 0 || !strings.Contains(r.String(), "refused a request to api.test") {
			s.Errorf("got %v", r)
		}
	})
}

// In whatever happens, the causes add up to the wait exactly.
func TestTraceAddsUp(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		script := rapid.SliceOfN(rapid.SliceOfN(rapid.IntRange(0, 59), 4, 4), 2, 20).Draw(rt, "script")
		var traces []*headway.Trace
		policy := headway.Policy{Hosts: []string{"*"}, MaxInFlight: []int{0, 1, 3}[script[0][0]%3], Rules: []headway.Rule{
			{Name: "tenant", Limit: limiter.PerMinute(int64(1 + script[0][1]%4)), Key: headway.FromCallKey},
			{Name: "all", Limit: limiter.Limit{N: int64(1 + script[0][2]%5), Per: 10 * time.Second}},
		}}
		play(t, []headway.Policy{policy}, func(s *scene) {
			s.base.latency = 700 * time.Millisecond
			n := 0
			s.base.answer = oneByOne(func(req *http.Request) (*http.Response, error) {
				n++
				if d := script[n%len(script)]; d[3]%5 == 0 {
					return says(429, "", fmt.Sprintf("Retry-After: %d", d[2]%20))(req)
				}
				return ok(req), nil
			})
			for _, d := range script[1:] {
				a, tr := traced(key(fmt.Sprint(d[0] % 3)))
				if traces = append(traces, tr); d[1]%4 == 0 {
					ctx, cancel := context.WithCancel(a.ctx)
					defer cancel()
					time.AfterFunc(time.Duration(d[2])*time.Second/3, cancel)
					a.ctx = ctx
				}
				s.send("A", a)
				s.until(time.Since(s.base.epoch) + time.Duration(d[3]%7)*300*time.Millisecond)
			}
			s.all.Wait()
		})
		for _, tr := range traces {
			one(t, tr)
		}
		if t.Failed() {
			rt.Fatal("see above")
		}
	})
}

// A far store answers after its latency.
type farAway struct {
	store.Memory
	latency time.Duration
}

func (f *farAway) Do(ctx context.Context, ops []store.Op) ([]store.Result, error) {
	time.Sleep(f.latency)
	return f.Memory.Do(ctx, ops)
}

// The first word of a store is a cause of its own, before what it says.
func TestS80_C87_CausesOverASlowStore(t *testing.T) {
	slow := &farAway{latency: 30 * time.Millisecond}
	playConfig(t, overStore(slow, nil, limits(limiter.Every(5*time.Second))), func(s *scene) {
		a, first := traced(ask{})
		s.send("A", a)
		s.until(time.Second)
		b, second := traced(ask{})
		s.send("B", b)
		c, third := traced(ask{})
		s.send("C", c)
		s.wantStarts("A@30ms B@5.06s C@10.09s")
		for _, tt := range []struct {
			tr   *headway.Trace
			want string
		}{
			{first, "api.test: waited 30ms: 30ms for the store; response 200 after 0s."},
			{second, `api.test: waited 4.06s: 30ms for the store, 4.03s for its own turn under rule "spaced 1/5s"; response 200 after 0s.`},
			{third, `api.test: waited 9.09s: 4.06s behind 1 other of rule "spaced 1/5s", 5.03s for its own turn under rule "spaced 1/5s"; response 200 after 0s.`},
		} {
			if r := one(s.T, tt.tr); r.String() != tt.want || r.Away {
				s.Errorf("got  %s\nwant %s, not away", r, tt.want)
			}
		}
	})
}

// A request that leaves the line of a store, and is the first that shares an overflow
// host in memory, has waited for one time only.
func TestCausesOverAStoreThatGoesWithoutRoom(t *testing.T) {
	disk := &shaky{}
	cfg := overStore(disk, nil, limits(limiter.Every(5*time.Second)))
	cfg.MaxHosts = 1
	playConfig(t, cfg, func(s *scene) {
		var traces [3]*headway.Trace
		for i := range traces {
			a := ask{url: fmt.Sprintf("https://h%d.test/", i)}
			s.send("first", a)
			a, traces[i] = traced(a)
			s.send("second", a)
		}
		s.until(time.Second)
		disk.set(func(d *shaky) { d.err = errGone })
		s.all.Wait()
		for i, tr := range traces {
			r := one(s.T, tr)
			var sum time.Duration
			for _, c := range r.Causes {
				sum += c.For
			}
			if !r.Away || r.Wait < 5*time.Second || sum != r.Wait {
				s.Errorf("%d: %s; away is %v, and the causes add up to %v", i, r, r.Away, sum)
			}
		}
	})
}

// A store that goes away: what held a request up in its line, the question that
// was not answered, and what held it up in memory.
func TestS80_C87_CausesOverAStoreThatGoes(t *testing.T) {
	for name, tt := range map[string]struct {
		down headway.StoreDown
		late time.Duration // the store hangs from now on
		want [3]string     // of three that arrive at once, at 1 s
	}{
		"before it is asked": {headway.StoreDownLocal, time.Second, [3]string{
			`api.test: waited 2s: 2s for the store; decided without the store; response 200 after 0s.`,
			`api.test: waited 7s: 2s behind 1 other, 5s for its own turn under rule "spaced 1/5s"; decided without the store; response 200 after 0s.`,
			`api.test: waited 12s: 2s behind 2 others, 5s behind 1 other of rule "spaced 1/5s", 5s for its own turn under rule "spaced 1/5s"; decided without the store; response 200 after 0s.`,
		}},
		"in line": {headway.StoreDownLocal, 2 * time.Second, [3]string{
			`api.test: waited 6s: 6s for its own turn under rule "spaced 1/5s"; decided without the store; response 200 after 0s.`,
			`api.test: waited 11s: 6s behind 1 other, 5s for its own turn under rule "spaced 1/5s"; decided without the store; response 200 after 0s.`,
			`api.test: waited 16s: 6s behind 2 others, 5s behind 1 other of rule "spaced 1/5s", 5s for its own turn under rule "spaced 1/5s"; decided without the store; response 200 after 0s.`,
		}},
		"refused": {headway.StoreDownRefuse, time.Second, [3]string{
			`api.test: refused after 2s: 2s for the store; decided without the store; headway: policy "*" throttled a request to api.test: the store of the budgets is down, could start in 100ms at the earliest (without the store: the store did not answer in time).`,
			`api.test: refused after 2s: 2s behind 1 other; decided without the store; headway: policy "*" throttled a request to api.test: the store of the budgets is down, could start in 100ms at the earliest (without the store: the store did not answer in time).`,
			`api.test: refused after 2s: 2s behind 2 others; decided without the store; headway: policy "*" throttled a request to api.test: the store of the budgets is down, could start in 100ms at the earliest (without the store: the store did not answer in time).`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			disk := &shaky{}
			p := limits(limiter.Every(5 * time.Second))
			p[0].Store.Down = tt.down
			playConfig(t, overStore(disk, nil, p), func(s *scene) {
				disk.free = make(chan struct{})
				defer close(disk.free)
				s.send("A", ask{})
				time.AfterFunc(tt.late, func() { disk.set(func(d *shaky) { d.hangs, d.deaf = true, true }) })
				s.until(time.Second)
				var traces [3]*headway.Trace
				for i := range traces {
					var a ask
					a, traces[i] = traced(ask{})
					s.send(fmt.Sprint(i), a)
				}
				s.all.Wait()
				for i, tr := range traces {
					r := one(s.T, tr)
					if got := r.String(); got != tt.want[i] {
						s.Errorf("got  %s\nwant %s", got, tt.want[i])
					}
					text, err := json.Marshal(r)
					if err != nil || !r.Away || !strings.Contains(string(text), `"away":true`) {
						s.Errorf("Away is %v; got %s, %v", r.Away, text, err)
					}
				}
			})
		})
	}
}
