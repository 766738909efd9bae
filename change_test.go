package headway_test

import (
	"errors"
	"math"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
)

func TestS10_RaisedLimit(t *testing.T) {
	play(t, limits(limiter.Limit{N: 1, Per: 10 * time.Second}), func(s *scene) {
		s.send("0", ask{})
		s.sendAll(ask{}, strings.Fields("1 2 3 4 5 6 7 8 9 10")...)
		s.until(3 * time.Second)
		s.set(limits(limiter.Limit{N: 5, Per: 10 * time.Second}))
		// Past starts still count.
		s.wantStarts("0@0s 1@3s 2@3s 3@3s 4@3s 5@10s 6@13s 7@13s 8@13s 9@13s 10@20s")
	})
}

func TestS11_RemovedLimit(t *testing.T) {
	for name, next := range map[string][]headway.Policy{
		"the limit is gone":  limits(),
		"the policy is gone": nil,
		"another host's": {{Hosts: []string{"other.test"}, Name: "*", Rules: []headway.Rule{{
			Name: "other", Limit: limiter.Every(time.Hour),
		}}}},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, limits(limiter.Every(time.Hour)), func(s *scene) {
				s.sendAll(ask{}, "A", "B", "C")
				s.until(time.Second)
				s.set(next)
				s.wantStarts("A@0s B@1s C@1s")
				s.send("D", ask{})
				s.wantStarts("A@0s B@1s C@1s D@1s")
			})
		})
	}
}

// Whoever waits for another reason too keeps that.
func TestS11_OtherReasonsStay(t *testing.T) {
	p := limits(limiter.Every(time.Hour), limiter.PerMinute(2))
	p[0].MaxInFlight = 1
	next := limits(limiter.Limit{N: 1e6, Per: time.Second}, limiter.PerMinute(2))
	next[0].MaxInFlight = 1
	play(t, p, func(s *scene) {
		s.base.latency = 2 * time.Second
		s.sendAll(ask{}, "A", "B", "C")
		s.until(time.Second)
		s.set(next)
		s.wantStarts("A@0s B@2s C@1m0s")
	})
}

func TestC59_RaisedCapsDrainAtOnce(t *testing.T) {
	p := func(n int) []headway.Policy {
		p := limits(limiter.PerMinute(1000))
		p[0].MaxInFlight = n
		return p
	}
	play(t, p(1), func(s *scene) {
		s.base.latency = 10 * time.Second
		names := strings.Fields("A B C D E F G H")
		s.sendAll(ask{}, names...)
		s.until(time.Second)
		s.set(p(3))
		s.until(2 * time.Second)
		s.wantStartsSoFar("A@0s B@1s C@1s")
		s.set(p(2)) // lowered: D starts when two of the three have ended
		s.until(12 * time.Second)
		s.wantStartsSoFar("A@0s B@1s C@1s D@11s E@11s")
		s.set(p(0)) // no cap
		s.wantStarts("A@0s B@1s C@1s D@11s E@11s F@12s G@12s H@12s")
		wantIdle(s, s.Transport)
	})
}

func TestSetPoliciesIsAllOrNothing(t *testing.T) {
	play(t, limits(limiter.Every(time.Minute)), func(s *scene) {
		s.sendAll(ask{}, "A", "B")
		err := s.SetPolicies([]headway.Policy{
			{Hosts: []string{"*"}, Limits: []limiter.Limit{limiter.PerSecond(100)}},
			{Hosts: []string{"x.test"}, MaxWaiting: -1, Rules: []headway.Rule{{Name: "r"}}},
		})
		if err == nil || !strings.Contains(err.Error(), "MaxWaiting") || !strings.Contains(err.Error(), "Per is") {
			s.Errorf("got %v, want all mistakes", err)
		}
		s.wantStarts("A@0s B@1m0s")
	})
}

// Rules keep what they remember by name, Limits by position, under whatever law
// and period; B arrives one minute after A.
func TestSetPoliciesKeepsHistory(t *testing.T) {
	hour := limiter.Every(time.Hour)
	rule := func(name string, l limiter.Limit) []headway.Policy { return rules(headway.Rule{Name: name, Limit: l}) }
	for name, tc := range map[string]struct {
		before, after []headway.Policy
		want          time.Duration // B waits
	}{
		"a rule by name":           {rule("r", limiter.PerHour(1)), rule("r", limiter.Limit{N: 1, Per: 10 * time.Minute}), 9 * time.Minute},
		"a rule of another name":   {rule("r", limiter.PerHour(1)), rule("q", limiter.PerHour(1)), 0},
		"a limit by position":      {limits(limiter.PerHour(1)), limits(limiter.Limit{N: 1, Per: 10 * time.Minute}), 9 * time.Minute},
		"a longer period":          {limits(limiter.PerHour(1)), limits(limiter.PerDay(1)), 24*time.Hour - time.Minute},
		"another position":         {limits(limiter.PerHour(1), limiter.PerHour(5)), limits(limiter.PerHour(2), limiter.PerHour(1)), time.Hour - time.Minute},
		"Window to Bucket":         {limits(limiter.PerHour(1)), limits(limiter.Limit{N: 1, Per: time.Hour, Law: limiter.Bucket}), time.Hour - time.Minute},
		"Bucket to Window":         {limits(limiter.Limit{N: 1, Per: time.Hour, Law: limiter.Bucket}), limits(limiter.PerHour(1)), time.Hour},
		"Spaced to Window":         {limits(hour), limits(limiter.PerHour(1)), time.Hour - time.Minute},
		"Window to Calendar":       {limits(limiter.PerHour(1)), limits(limiter.Limit{N: 1, Law: limiter.Calendar, Unit: limiter.Day}), 24*time.Hour - time.Minute},
		"to Strict":                {limits(limiter.PerHour(1)), limits(limiter.Limit{N: 1, Per: time.Hour, Strict: true}), time.Hour - time.Minute},
		"a policy of another name": {named("p", limits(hour)), named("q", limits(hour)), 0},
		"a policy by name":         {named("p", limits(hour)), named("p", limits(hour)), time.Hour - time.Minute},
		"Shared begins anew":       {limits(hour), shared(limits(hour)), 0},
		"gone and back":            {limits(hour), nil, 0},
		"a rule and a limit":       {rule("1/1h", limiter.PerHour(1)), limits(limiter.PerHour(1)), 0},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, tc.before, func(s *scene) {
				s.send("A", ask{})
				s.until(time.Minute)
				s.set(tc.after)
				d, err := s.Delay(ask{}.request("B"))
				if err != nil || d != tc.want {
					s.Errorf("told %v, %v, want %v", d, err, tc.want)
				}
				b := s.send("B", ask{})
				s.all.Wait()
				if b.after != tc.want || b.err != nil {
					s.Errorf("started after %v, %v, want %v", b.after, b.err, tc.want)
				}
			})
		})
	}
}

func named(name string, p []headway.Policy) []headway.Policy {
	p[0].Name = name
	return p
}

func shared(p []headway.Policy) []headway.Policy {
	p[0].Shared = true
	return p
}

// A lowered limit refuses the requests in line that it makes too late, at once.
func TestSetPoliciesRefusesRequestsThatAreTooLate(t *testing.T) {
	p := limits(limiter.Every(time.Second))
	p[0].MaxWait = 5 * time.Second
	lower := limits(limiter.Every(2 * time.Second)) // D at 6 s
	play(t, p, func(s *scene) {
		four := s.sendAll(ask{}, "A", "B", "C", "D")
		s.until(500 * time.Millisecond)
		s.set(lower)
		if e, isThrottled := four[3].err.(*headway.ThrottledError); !isThrottled || !four[3].done.Load() || e.Reason != limiter.ReasonLimit {
			s.Errorf("D: got %v, want it refused at once", four[3].err)
		}
		for _, p := range four[1:3] {
			if p.done.Load() {
				s.Errorf("got %v, want it to wait", p.err)
			}
		}
		s.all.Wait()
		if got := len(s.base.starts()); got > 3 {
			s.Errorf("got %v", s.base.starts())
		}
	})
}

// Who waits for a rule that vanishes waits for the rest only.
func TestVanishedRuleReleasesItsWaiters(t *testing.T) {
	slow := headway.Rule{Name: "slow", Limit: limiter.Every(time.Hour)}
	all := headway.Rule{Name: "all", Limit: limiter.Every(time.Minute)}
	play(t, rules(slow, all), func(s *scene) {
		s.sendAll(ask{}, "A", "B", "C")
		s.until(30 * time.Minute)
		s.set(rules(all))
		s.wantStarts("A@0s B@30m0s C@31m0s")
	})
}

// A new rule applies to requests that arrive later.
func TestNewRuleAppliesToLaterRequests(t *testing.T) {
	all := headway.Rule{Name: "all", Limit: limiter.Every(time.Minute)}
	slow := headway.Rule{Name: "slow", Limit: limiter.Every(time.Hour)}
	play(t, rules(all), func(s *scene) {
		s.sendAll(ask{}, "A", "B")
		s.set(rules(all, slow))
		s.sendAll(ask{}, "C", "D")
		s.wantStarts("A@0s B@1m0s C@2m0s D@1h2m0s")
	})
}

// A Quota of a vanished rule does nothing, until the rule is back.
func TestQuotaOfAVanishedRule(t *testing.T) {
	play(t, limits(limiter.PerHour(5)), func(s *scene) {
		q, err := s.Quota("api.test", "5/1h", "")
		if err != nil {
			s.Fatal(err)
		}
		spend(s, q, 9)
		for name, next := range map[string][]headway.Policy{
			"no policies": nil, "no rule": limits(), "another host": {{Hosts: []string{"x.test"}, Name: "*"}}, "keyed now": rules(headway.Rule{
				Name: "5/1h", Key: headway.FromCallKey, Limit: limiter.PerHour(5),
			}),
		} {
			s.set(next)
			spend(s, q, 1)
			if err := q.Wait(s.Context(), 100); err != nil {
				s.Errorf("%s: Wait: got %v, want nil", name, err)
			}
			if got := remaining(s, q); got != math.MaxInt64 {
				s.Errorf("%s: Remaining: got %d, want no limit", name, got)
			}
			if got := delay(s, q, 100); got != 0 {
				s.Errorf("%s: Delay: got %v, want 0", name, got)
			}
			ended, cancel := contextEnded(s)
			if err := q.Wait(ended, 1); !errors.Is(err, ended.Err()) {
				s.Errorf("%s: Wait under an ended context: got %v", name, err)
			}
			cancel()
		}
		s.set(limits(limiter.PerHour(5)))
		spend(s, q, 2)
		if got := remaining(s, q); got != 3 {
			s.Errorf("it is back: got %d, want 3", got)
		}
	})
}

// The cap on requests in flight and the limit are kept across changes, under
// traffic: at no time more in flight than the larger of the caps in force.
func TestSetPoliciesRacesWithTraffic(t *testing.T) {
	policies := func(n int) []headway.Policy {
		p := limits(limiter.Limit{N: 1000, Per: time.Hour})
		p[0].MaxInFlight = n
		p[0].Rules = []headway.Rule{{Name: "k", Key: headway.FromCallKey, Limit: limiter.PerHour(300)}}
		if n%2 == 0 {
			p[0].Rules = append(p[0].Rules, headway.Rule{Name: "other", Limit: limiter.PerHour(1_000_000)})
		}
		return p
	}
	var inFlight, most, sent atomic.Int64
	tr := newTransport(t, roundTripper(func(req *http.Request) (*http.Response, error) {
		n := inFlight.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		sent.Add(1)
		inFlight.Add(-1)
		return ok(req), nil
	}), headway.Config{Policies: policies(8), MaxHosts: 3})
	stop := make(chan struct{})
	var setter, all sync.WaitGroup
	setter.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if err := tr.SetPolicies(policies(1 + i%8)); err != nil {
				t.Error(err)
			}
			tr.Snapshot()
		}
	})
	for i := range 16 {
		all.Go(func() {
			for range 150 {
				a := key(string(rune('a' + i%5))) // 5 keys, of which 2 fit; the rest share
				a.call.MaxWait = headway.NoWait
				resp, err := tr.RoundTrip(a.request("x"))
				if err == nil {
					resp.Body.Close()
				} else if !errors.Is(err, headway.ErrThrottled) {
					t.Error(err)
				}
				if d, err := tr.Delay(a.request("x")); d < 0 || err != nil {
					t.Error(d, err)
				}
			}
		})
	}
	all.Wait()
	close(stop)
	setter.Wait()
	if most.Load() > 8 || sent.Load() > 900 {
		t.Errorf("got %d in flight at once and %d sent, want at most 8 and 900", most.Load(), sent.Load())
	}
	wantIdle(t, tr)
}
