package headway_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/breaker"
	"github.com/headway-go/headway/limiter"
)

// overflows counts the EventOverflow that an observer receives.
type overflows struct{ atomic.Int64 }

func (o *overflows) Observe(_ context.Context, e headway.Event) {
	if e.Kind == headway.EventOverflow {
		o.Add(1)
	}
}

// at is a tenant's request to a host.
func at(host, tenant string) ask {
	a := key(tenant)
	a.url = "https://" + host + "/"
	return a
}

// A server tells each tenant what is left of its own 5 requests an hour. With more
// tenants than half of the default MaxHosts, a tenant that has used up its five
// holds up no other.
func TestWhatOneTenantReceivesHoldsNoOther(t *testing.T) {
	const tenantsInAll = 50_100
	p := tenants()
	p[0].Rules[0].Limit = limiter.PerSecond(1000) // the server's own is narrower
	var told overflows
	playConfig(t, headway.Config{Policies: p, Observer: &told}, func(s *scene) {
		s.base.quiet = true
		left := map[string]int{}
		s.base.answer = func(req *http.Request) (*http.Response, error) {
			k := headway.CallFrom(req.Context()).Key
			if _, ok := left[k]; !ok {
				left[k] = 5
			}
			left[k]--
			return says(200, "", "X-RateLimit-Limit: 5", "X-RateLimit-Remaining: "+strconv.Itoa(left[k]), "X-RateLimit-Reset: 3600")(req)
		}
		send := func(name string) time.Duration {
			begin := time.Now()
			if _, err := s.RoundTrip(key(name).request(name)); err != nil {
				s.Fatal(err)
			}
			return time.Since(begin)
		}
		for i := range tenantsInAll {
			if waited := send(strconv.Itoa(i)); waited != 0 {
				s.Fatalf("tenant %d waits %v for its first, want not at all", i, waited)
			}
		}
		last := strconv.Itoa(tenantsInAll - 1)
		for range 4 {
			send(last)
		}
		a := key(last)
		a.call.MaxWait = headway.NoWait
		if e := s.wantRefused(s.send(last, a), limiter.ReasonLimit, time.Hour+time.Second); e.Rule != "learned" {
			s.Errorf("it waits for %q, want what the server has said", e.Rule)
		}
		for _, name := range []string{"0", "1", strconv.Itoa(tenantsInAll - 2), "new"} {
			if waited := send(name); waited != 0 {
				s.Errorf("tenant %s waits %v, want not at all", name, waited)
			}
		}
		if n := told.Load(); n != 0 {
			s.Errorf("%d overflows, want none: each tenant is one entry", n)
		}
	})
}

// (rynfar/meridian 901 is what widening does: the 429 of one child slows all the
// others of its account.)
//
// Invented tenants that are refused for a day, few enough to be remembered, hold up
// no other; too many hold up those alone that there is no room for, and an event
// says so. When the day is over and there is room, all are as before.
func TestInventedTenantsHoldNoOther(t *testing.T) {
	for _, invented := range []int{995, 1990, 2500} {
		t.Run(strconv.Itoa(invented), func(t *testing.T) {
			p := tenants()
			p[0].Rules[0].Limit = limiter.Limit{N: 5, Per: time.Hour}
			var told overflows
			playConfig(t, headway.Config{Policies: p, MaxHosts: 2000, Observer: &told}, func(s *scene) {
				s.base.quiet = true
				s.base.answer = func(req *http.Request) (*http.Response, error) {
					if k := headway.CallFrom(req.Context()).Key; k[0] == 'i' {
						return says(429, "", "Retry-After: 86400")(req)
					}
					return ok(req), nil
				}
				soon := func(name string) *trip {
					a := key(name)
					a.call.MaxWait = headway.NoWait
					return s.send(name, a)
				}
				for i := range 5 {
					soon("benign" + strconv.Itoa(i))
				}
				for i := range invented {
					soon("i" + strconv.Itoa(i))
				}
				for i := range 5 {
					if e := soon("benign" + strconv.Itoa(i)).err; e != nil {
						s.Errorf("a tenant that is remembered: got %v", e)
					}
				}
				full := invented > 1994 // beside the host and five tenants
				if newcomer := soon("newcomer"); full {
					s.wantRefused(newcomer, limiter.ReasonPause, 24*time.Hour)
				} else if newcomer.err != nil {
					s.Errorf("a new tenant while there is room: got %v", newcomer.err)
				}
				if got := told.Load() > 0; got != full {
					s.Errorf("told of an overflow: %v, want %v", got, full)
				}
				shared := 0
				for _, pause := range s.Snapshot()[0].Pauses {
					if pause.KeyDigest == "" && !pause.Overflow {
						s.Errorf("a pause of everybody: %+v", pause)
					}
					if pause.Overflow {
						shared++
					}
				}
				if full != (shared == 1) {
					s.Errorf("%d pauses of those without room, want one if there are any", shared)
				}
				s.until(25 * time.Hour)
				before := told.Load()
				for i := range 20 {
					if e := soon("later" + strconv.Itoa(i)).err; e != nil {
						s.Errorf("a day later: got %v", e)
					}
				}
				if told.Load() != before {
					s.Error("an overflow, though all has recovered")
				}
			})
		})
	}
}

// The same where a request has two keys: an identity that is remembered is not held
// by what is announced to those without room.
func TestInventedPairsHoldNoOther(t *testing.T) {
	perDay := limiter.PerDay(100)
	p := rules(
		headway.Rule{Name: "tenant", Limit: perDay, Key: headway.FromCallKey},
		headway.Rule{Name: "user", Limit: perDay, Key: headway.ByHeader("User")})
	var told overflows
	playConfig(t, headway.Config{Policies: p, MaxHosts: 30, Observer: &told}, func(s *scene) {
		s.base.quiet = true
		s.base.answer = func(req *http.Request) (*http.Response, error) {
			if req.Header.Get("User")[0] == 'i' {
				return says(429, "", "Retry-After: 86400")(req)
			}
			return ok(req), nil
		}
		soon := func(tenant, user string) *trip {
			a := key(tenant)
			a.header = http.Header{"User": {user}}
			a.call.MaxWait = headway.NoWait
			return s.send(tenant, a)
		}
		soon("a", "1") // the host, two keys, and both together
		for i := range 40 {
			soon("a", "i"+strconv.Itoa(i))
		}
		if told.Load() == 0 {
			s.Error("no event of an overflow")
		}
		if err := soon("a", "1").err; err != nil {
			s.Errorf("an identity that is remembered: got %v", err)
		}
		s.wantRefused(soon("a", "2"), limiter.ReasonPause, 24*time.Hour)
	})
}

// Hosts without room share what is said to them; a host that is remembered is not
// held by it, and neither is its breaker.
func TestInventedHostsHoldNoOther(t *testing.T) {
	for _, shared := range []bool{false, true} {
		t.Run(fmt.Sprint("shared=", shared), func(t *testing.T) {
			p := tenants()
			p[0].Rules[0].Limit = limiter.PerSecond(1000)
			p[0].Shared, p[0].Breaker = shared, &breaker.Config{Failures: 2, OpenFor: time.Hour}
			var told overflows
			playConfig(t, headway.Config{Policies: p, MaxHosts: 20, Observer: &told}, func(s *scene) {
				s.base.quiet = true
				s.base.answer = func(req *http.Request) (*http.Response, error) {
					if fails := req.Header.Get("Name") == "fails"; fails {
						return says(500, "")(req)
					}
					return ok(req), nil
				}
				s.send("fails", at("benign.test", "a")) // so that it is remembered
				for i := range 30 {
					s.send("fails", at(fmt.Sprintf("i%d.test", i), "a"))
					s.send("fails", at(fmt.Sprintf("i%d.test", i), "a"))
				}
				if told.Load() == 0 {
					s.Error("no event of an overflow")
				}
				if err := s.send("", at("benign.test", "a")).err; err != nil {
					s.Errorf("a host that is remembered: got %v", err)
				}
				if _, open := s.send("", at("newcomer.test", "a")).err.(*headway.OpenError); !open {
					s.Error("a host without room does not share the breaker of the others")
				}
			})
		})
	}
}

// An identity without room that has to wait does not get away from that by
// being remembered later, when there is room again. (openclaw/openclaw 77986: a flood
// of keys must not free one that is locked out.)
func TestNewcomersStayNewcomers(t *testing.T) {
	for name, p := range map[string][]headway.Policy{
		"one key": tenants(),
		"two":     tenants(headway.Rule{Name: "again", Limit: limiter.PerSecond(5), Key: headway.FromCallKey}),
	} {
		t.Run(name, func(t *testing.T) {
			playConfig(t, headway.Config{Policies: p, MaxHosts: 10}, func(s *scene) {
				s.base.quiet = true
				soon := func(name string) *trip {
					a := key(name)
					a.call.MaxWait = headway.NoWait
					return s.send(name, a)
				}
				s.base.answer = says(429, "", "Retry-After: 60")
				for i := range 9 / (2*len(p[0].Rules) - 1) { // as many as there is room for
					soon(strconv.Itoa(i))
				}
				s.until(30 * time.Second)
				s.base.answer = says(429, "", "Retry-After: 3600")
				soon("late") // there is no room for it
				s.base.answer = nil
				s.until(10 * time.Minute) // the others have recovered
				s.wantRefused(soon("late"), limiter.ReasonPause, 51*time.Minute-30*time.Second)
				s.until(2 * time.Hour)
				if err := soon("late").err; err != nil {
					s.Errorf("when it is over: got %v", err)
				}
			})
		})
	}
}
