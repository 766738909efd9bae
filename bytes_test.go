package headway_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/breaker"
	"github.com/headway-go/headway/limiter"
)

// kept is an observer that keeps the hosts, rules, headers and digests of all events.
func kept(all *[]string) headway.Observer {
	return headway.ObserverFunc(func(_ context.Context, e headway.Event) {
		*all = append(*all, e.Host, e.Rule, e.KeyDigest, e.Header)
	})
}

// wantBytes checks how much the heap has grown by f, for each of n.
func (s *scene) wantBytes(what string, n, most int, f func()) {
	s.Helper()
	heap() // what is freed late was not there
	before := heap()
	f()
	if each := int(heap()-before) / n; each > most {
		s.Errorf("%s: %d bytes each, want %d at most", what, each, most)
	}
}

// What is remembered of a key is as long for long keys as for short ones: entries,
// pauses, learned limits, events, quotas and what can be settled. (cortexproject/cortex
// 4739 and golang/go 69370 tell how a part keeps the whole alive.)
func TestAllocLongKeysAreNotKept(t *testing.T) {
	const length = 128 << 10
	rule := keyed(limiter.PerDay(100))
	rule.Cost = headway.FromCallCost
	user := headway.Rule{Name: "user", Limit: limiter.PerDay(100), Key: headway.ByHeader("User"), Path: "/two"}
	p := rules(rule, user)
	var events []string
	for n, observer := range map[int]headway.Observer{1000: nil, 100: kept(&events)} {
		playConfig(t, headway.Config{Policies: p, Secret: []byte("s"), Observer: observer}, func(s *scene) {
			s.base.quiet = true
			s.base.answer = func(req *http.Request) (*http.Response, error) {
				resp, err := says(429, "", "Retry-After: 86400", "X-RateLimit-Limit: 9", "X-RateLimit-Remaining: 8", "X-RateLimit-Reset: 86400")(req)
				resp.Request = nil // it would keep the key by itself
				return resp, err
			}
			var responses []*http.Response
			var quotas []*headway.Quota
			s.wantBytes("keys", n, 4096, func() {
				for i := range n {
					k := fmt.Sprint(i, strings.Repeat("k", length))
					a := key(k)
					if i%2 > 0 {
						a.url, a.header = "https://api.test/two", http.Header{"User": {k}}
					}
					resp, err := s.RoundTrip(a.request("x"))
					if err != nil {
						s.Fatal(err)
					}
					responses = append(responses, resp)
					quotas = append(quotas, s.quota("api.test", "key", k))
				}
			})
			if got := len(s.Snapshot()[0].Rules); got != n+n/2 {
				s.Errorf("%d budgets are remembered, want %d", got, n+n/2)
			}
			for i, resp := range responses[:2] {
				if err := headway.Settle(resp, "key", 5); err != nil {
					s.Error(err)
				}
				if got := remaining(s, quotas[i]); got != 95 {
					s.Errorf("%d are left, want 95", got)
				}
			}
		})
	}
}

// Nor does a host keep the URL that it came in: in its entry, its breaker, the
// cache of routes, and events.
func TestAllocURLsAreNotKept(t *testing.T) {
	const n = 10_000
	query := strings.Repeat("q", 8<<10)
	for _, shared := range []bool{false, true} {
		p := limits(limiter.PerDay(100))
		p[0].Hosts, p[0].Shared, p[0].Breaker = []string{"*.test"}, shared, new(breaker.Config)
		var events []string
		playConfig(t, headway.Config{Policies: p, Observer: kept(&events)}, func(s *scene) {
			s.base.quiet = true
			s.base.answer = func(req *http.Request) (*http.Response, error) {
				req.Header = nil
				return says(200, "", "X-RateLimit-Remaining: odd")(req)
			}
			s.wantBytes(fmt.Sprint("hosts, shared=", shared), n, 4096, func() {
				for i := range n {
					for _, format := range []string{"https://%d.test/?%s", "https://%d.None/?%s", "HTTPS://%d.TEST:443/?%s"} {
						if _, err := s.RoundTrip(ask{url: fmt.Sprintf(format, i, query)}.request("x")); err != nil {
							s.Fatal(err)
						}
					}
				}
			})
			time.Sleep(time.Second)
			if len(s.Snapshot()) == 0 {
				s.Error("no host is remembered")
			}
		})
	}
}

// A name may be longer than any that can be looked up, for another base to read it.
func TestAllocLongHostsAreNotKept(t *testing.T) {
	const n = 300
	p := limits(limiter.PerDay(1))
	p[0].Hosts, p[0].MaxWait, p[0].Breaker = []string{"*.test"}, headway.NoWait, new(breaker.Config)
	playConfig(t, headway.Config{Policies: p}, func(s *scene) {
		s.base.quiet = true
		s.base.answer = func(req *http.Request) (*http.Response, error) { return says(200, "")(&http.Request{}) }
		host := func(i int) string { return fmt.Sprint(strings.Repeat("h", 128<<10), i) }
		s.wantBytes("hosts", n, 4096, func() {
			for i := range n {
				for _, domain := range []string{".test", ".TEST:443", ".none"} {
					_, err := s.RoundTrip(ask{url: "https://" + host(i) + domain}.request("x"))
					if refused := domain == ".TEST:443"; errors.Is(err, headway.ErrThrottled) != refused {
						s.Errorf("number %d, %s: got %.80v, want each name to have one budget of its own", i, domain, err)
					}
				}
			}
		})
		if got := len(s.Snapshot()); got != n {
			s.Errorf("%d hosts are remembered, want %d", got, n)
		}
	})
}
