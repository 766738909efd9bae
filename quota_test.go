package headway_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
)

func contextEnded(s *scene) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	return ctx, cancel
}

// quota returns a Quota that exists.
func (s *scene) quota(host, rule, key string) *headway.Quota {
	s.Helper()
	q, err := s.Quota(host, rule, key)
	if err != nil {
		s.Fatal(err)
	}
	return q
}

func spend(tb testing.TB, q *headway.Quota, n int64) {
	tb.Helper()
	if err := q.Spend(context.Background(), n); err != nil {
		tb.Error(err)
	}
}

func remaining(tb testing.TB, q *headway.Quota) int64 {
	tb.Helper()
	left, err := q.Remaining(context.Background())
	if err != nil {
		tb.Error(err)
	}
	return left
}

func delay(tb testing.TB, q *headway.Quota, n int64) time.Duration {
	tb.Helper()
	d, err := q.Delay(context.Background(), n)
	if err != nil {
		tb.Error(err)
	}
	return d
}

func (s *scene) wantRemaining(q *headway.Quota, want int64) {
	s.Helper()
	if got := remaining(s, q); got != want {
		s.Errorf("remaining: got %d, want %d", got, want)
	}
}

func TestS50_Spend(t *testing.T) {
	var events []headway.Event
	cfg := headway.Config{Policies: limits(limiter.PerMinute(10)), Observer: collect(&events)}
	playConfig(t, cfg, func(s *scene) {
		q := s.quota("api.test", "10/1m", "")
		s.wantRemaining(q, 10)
		spend(s, q, 3)
		s.wantRemaining(q, 7)
		if got := s.remaining("api.test", "10/1m"); got != 7 {
			s.Errorf("the transport has %d left, want 7", got)
		}
		s.until(30 * time.Second)
		spend(s, q, 12)
		s.wantRemaining(q, -5)
		// 15 are spent: at 1m0s 3 come back and leave 12 of 10.
		if d := delay(s, q, 1); d != time.Minute {
			s.Errorf("Delay: got %v, want 1m", d)
		}
		s.send("A", ask{})
		s.wantStarts("A@1m30s")
		spend(s, q, -100)
		s.wantRemaining(q, 10)
		spend(s, q, 0)
		var spends []string
		for _, e := range events {
			if e.Kind == headway.EventSpend {
				spends = append(spends, strconv.FormatInt(e.Cost, 10)+" left "+strconv.FormatInt(e.Remaining, 10))
				if e.Policy != "*" || e.Host != "api.test" || e.Rule != "10/1m" {
					s.Errorf("got %+v", e)
				}
			}
		}
		if got := strings.Join(spends, ", "); got != "3 left 7, 12 left -5, -100 left 10" {
			s.Errorf("events: got %s", got)
		}
	})
}

// A spend moves those in line back, and what is given back moves them up.
func TestS50_SpendMovesTheLine(t *testing.T) {
	play(t, limits(limiter.Limit{N: 1, Per: 10 * time.Second, Law: limiter.Bucket, Burst: 3}), func(s *scene) {
		q := s.quota("api.test", "bucket 1/10s burst 3", "")
		spend(s, q, 3)
		s.sendAll(ask{}, "A", "B")
		s.until(time.Second)
		spend(s, q, 2) // A at 30 s
		s.until(2 * time.Second)
		spend(s, q, -1) // A at 20 s
		s.wantStarts("A@20s B@30s")
	})
}

func TestS51_WaitInLine(t *testing.T) {
	p := limits(limiter.Every(time.Second))
	p[0].MaxWait = 3 * time.Second
	p[0].MaxInFlight = 1
	play(t, p, func(s *scene) {
		s.base.latency = 100 * time.Millisecond
		q := s.quota("api.test", p[0].Limits[0].String(), "")
		wait := func(ctx context.Context) *trip {
			p := new(trip)
			begin := time.Now()
			s.all.Go(func() {
				p.err = q.Wait(ctx, 1)
				p.after = time.Since(begin)
				p.done.Store(true)
			})
			synctest.Wait()
			return p
		}
		s.send("A", ask{})
		w := wait(s.Context())
		b := s.send("B", ask{})
		last := wait(s.Context())
		tooLate := wait(s.Context())
		s.wantRefused(tooLate, limiter.ReasonLimit, 4*time.Second)
		e := s.wantRefused(wait(s.within(time.Second)), limiter.ReasonLimit, 4*time.Second)
		if !e.Timeout() || e.Rule == "" || e.Host != "api.test" {
			s.Errorf("got %+v, want the deadline to blame", e)
		}
		longer := wait(headway.WithCall(s.Context(), headway.Call{MaxWait: headway.WaitForever}))
		s.all.Wait()
		s.wantStarts("A@0s B@2s")
		for i, p := range []*trip{w, b, last, longer} {
			want := time.Duration(i+1) * time.Second
			if p == b {
				want += s.base.latency
			}
			if p.err != nil || p.after != want {
				s.Errorf("number %d: got %v after %v, want %v", i, p.err, p.after, want)
			}
		}
		if err := q.Wait(s.Context(), -1); err == nil || errors.Is(err, headway.ErrThrottled) {
			s.Errorf("a negative cost: got %v, want an error", err)
		}
		if d, err := q.Delay(s.Context(), -1); d != 0 || err == nil {
			s.Errorf("a negative cost: got %v, %v, want an error", d, err)
		}
		ended, _ := contextEnded(s)
		if err := q.Wait(ended, 1); err != context.Canceled {
			s.Errorf("got %v, want the plain context.Canceled", err)
		}
		wantIdle(s, s.Transport)
	})
}

// A Quota needs no slot, and a strict one is answered at once.
func TestQuotaTakesNoSlot(t *testing.T) {
	p := limits(limiter.Limit{N: 2, Per: time.Minute, Strict: true})
	p[0].MaxInFlight = 1
	play(t, p, func(s *scene) {
		s.base.latency = time.Hour
		s.send("A", ask{})
		q := s.quota("api.test", "strict 2/1m", "")
		if err := q.Wait(s.Context(), 1); err != nil || time.Since(s.base.epoch) != 0 {
			s.Errorf("got %v after %v, want it at once", err, time.Since(s.base.epoch))
		}
		if err := q.Wait(s.Context(), 1); err != nil || time.Since(s.base.epoch) != time.Minute {
			s.Errorf("got %v after %v, want it at 1m", err, time.Since(s.base.epoch))
		}
		if h := s.Snapshot()[0]; h.InFlight != 1 {
			s.Errorf("got %d in flight, want 1", h.InFlight)
		}
	})
}

func TestQuotaThatDoesNotExist(t *testing.T) {
	tr := newTransport(t, nil, headway.Config{Policies: []headway.Policy{{
		Hosts: []string{"api.test", "plain.test:80"}, Limits: []limiter.Limit{limiter.PerSecond(1)}, Rules: []headway.Rule{keyed(limiter.PerSecond(1))},
	}}})
	for _, tc := range []struct{ host, rule, key, want string }{
		{"other.test", "1/1s", "", `no policy has the host "other.test"`},
		{"", "1/1s", "", `no policy has the host ""`},
		{"api.test", "2/1s", "", `has no rule "2/1s"`},
		{"api.test", "1/1s", "k", "want an empty key"},
		{"api.test", "key", "", "want a key"},
		{"api.test", "1/1s", "", ""},
		{"API.test.:443", "key", "k", ""},
		{"plain.test:80", "1/1s", "", ""},
	} {
		q, err := tr.Quota(tc.host, tc.rule, tc.key)
		if (tc.want == "") != (err == nil) || (q == nil) == (err == nil) || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q %q %q: got %v, %v, want … %s …", tc.host, tc.rule, tc.key, q, err, tc.want)
		}
	}
}

// It is one budget for the spellings of one host, and of http and https as far
// as requests have one.
func TestQuotaIsTheTransports(t *testing.T) {
	p := []headway.Policy{{Hosts: []string{"*"}, Limits: []limiter.Limit{limiter.PerHour(9)}, Rules: []headway.Rule{keyed(limiter.PerHour(5))}}}
	play(t, p, func(s *scene) {
		for _, u := range []string{"https://api.test", "http://api.test", "http://API.test:80", "https://api.test.:443"} {
			s.send("A", ask{url: u, call: headway.Call{Key: "k"}})
		}
		s.wantRemaining(s.quota("api.test", "key", "k"), 1)
		s.wantRemaining(s.quota("API.test.:443", "key", "k"), 1)
		s.wantRemaining(s.quota("api.test:80", "9/1h", ""), 5)
		s.wantRemaining(s.quota("api.test", "key", "other"), 5)
		s.wantRemaining(s.quota("api.test:8080", "9/1h", ""), 9)
	})
}

func tokens(l limiter.Limit, r headway.Rule) []headway.Policy {
	r.Name, r.Limit = "tokens", l
	if r.Cost == nil {
		r.Cost = headway.FromCallCost
	}
	return rules(r)
}

// costHeader reads the true cost from a header.
func costHeader(resp *http.Response) (int64, bool) {
	n, err := strconv.ParseInt(resp.Header.Get("Cost"), 10, 64)
	return n, err == nil
}

func TestS52_SettleFromHeaders(t *testing.T) {
	for name, tc := range map[string]struct {
		actual string
		left   int64
		want   string // B, of 60
	}{
		"less":        {"40", 60, "A@0s B@1s"},
		"more":        {"130", -30, "A@0s B@1m0s"}, // the 40 of debt count until 1m1s
		"as it was":   {"90", 10, "A@0s B@1m0s"},
		"nothing":     {"0", 100, "A@0s B@1s"},
		"no header":   {"", 10, "A@0s B@1m0s"},
		"negative":    {"-5", 10, "A@0s B@1m0s"},
		"out of this": {strconv.FormatInt(math.MaxInt64, 10), 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, tokens(limiter.PerMinute(100), headway.Rule{Settle: costHeader}), func(s *scene) {
				s.base.answer = func(req *http.Request) (*http.Response, error) {
					resp := ok(req)
					if req.Header.Get("Name") == "A" {
						resp.Header.Set("Cost", tc.actual)
					}
					return resp, nil
				}
				s.base.latency = time.Second
				s.send("A", cost(90))
				b := s.send("B", cost(60)) // in line, gets what comes back at once
				s.until(time.Second)
				if tc.want == "" {
					b.cancel()
					if got := s.remaining("api.test", "tokens"); got > -1_000_000 {
						s.Errorf("got %d left, want a debt without end", got)
					}
					return
				}
				if got := s.remaining("api.test", "tokens"); got != tc.left && !(got == tc.left-60 && strings.Contains(tc.want, "B@1s")) {
					s.Errorf("got %d left, want %d", got, tc.left)
				}
				s.wantStarts(tc.want)
			})
		})
	}
}

func TestS52_SettleFromTheBody(t *testing.T) {
	for name, l := range map[string]limiter.Limit{
		"window": limiter.PerMinute(100),
		"strict": {N: 100, Per: time.Minute, Strict: true},
		"bucket": {N: 100, Per: time.Minute, Law: limiter.Bucket},
		"capped": limiter.PerMinute(100),
	} {
		t.Run(name, func(t *testing.T) {
			p := tokens(l, headway.Rule{})
			if name == "capped" {
				p[0].MaxInFlight = 9
			}
			// Another law beside it, whose units count from another instant.
			p[0].Rules = append(p[0].Rules, headway.Rule{Name: "strict", Limit: limiter.Limit{N: 1000, Per: time.Hour, Strict: true}})
			play(t, p, func(s *scene) {
				s.base.latency = time.Second
				s.base.answer = func(req *http.Request) (*http.Response, error) {
					return &http.Response{StatusCode: 200, Body: newBody("hello"), Request: req}, nil
				}
				c := &http.Client{Transport: s.Transport, Timeout: time.Hour}
				resp, err := c.Do(cost(90).request("A"))
				if err != nil {
					s.Fatal(err)
				}
				q := s.quota("api.test", "tokens", "")
				left := remaining(s, q)
				for i, n := range []int64{40, 130, 40, 90, 40, 40, 0, 7, 90} { // the last one counts
					if l.Law == limiter.Bucket && i > 4 {
						break // it gives back a little less when it is almost full
					}
					if err := headway.Settle(resp, "tokens", n); err != nil {
						s.Error(err)
					}
					if got := remaining(s, q); got != left+90-n {
						s.Errorf("settled %d: got %d left, want %d", n, got, left+90-n)
					}
				}
				if err := headway.Settle(resp, "tokens", 40); err != nil {
					s.Error(err)
				}
				s.send("B", cost(60))
				s.wantStartsSoFar("A@0s B@1s")
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				for _, p := range []struct {
					resp *http.Response
					rule string
					cost int64
				}{{nil, "tokens", 1}, {new(http.Response), "tokens", 1}, {resp, "none", 1}, {resp, "strict", 1}, {resp, "tokens", -1}} {
					if err := headway.Settle(p.resp, p.rule, p.cost); err == nil {
						s.Errorf("%q %d: settled, want an error", p.rule, p.cost)
					}
				}
			})
		})
	}
}

// What no longer counts is not given back a second time, and a debt that comes
// late is a debt.
func TestS52_SettleLate(t *testing.T) {
	for name, l := range map[string]limiter.Limit{
		"window": limiter.PerMinute(100), "bucket": {N: 100, Per: time.Minute, Law: limiter.Bucket}, "sliding": {N: 100, Per: time.Minute, Law: limiter.Sliding},
		"calendar": {N: 100, Law: limiter.Calendar, Unit: limiter.Minute},
	} {
		for _, forgotten := range []bool{false, true} {
			t.Run(name+"/"+strconv.FormatBool(forgotten), func(t *testing.T) {
				cfg := headway.Config{Policies: tokens(l, headway.Rule{}), MaxHosts: 1}
				playConfig(t, cfg, func(s *scene) {
					a := s.send("A", cost(90))
					s.until(10 * time.Minute)
					if forgotten {
						s.send("x", ask{url: "https://other.test"})
						s.until(20 * time.Minute)
					}
					s.send("B", cost(50))
					q := s.quota("api.test", "tokens", "")
					s.wantRemaining(q, 50)
					settle := func(n, want int64) {
						if err := headway.Settle(a.resp, "tokens", n); err != nil {
							s.Error(err)
						}
						s.wantRemaining(q, want)
					}
					settle(40, 50)   // nothing of it counts any more
					settle(130, -40) // 90 more than said before
					settle(40, 50)   // those come back
					s.until(40 * time.Minute)
					s.send("C", cost(50))
					settle(0, 50) // nor does this
				})
			})
		}
	}
}

// What is given back goes to requests in line, and not to the next one that arrives.
func TestS52_RefundGoesToTheLine(t *testing.T) {
	play(t, tokens(limiter.PerMinute(100), headway.Rule{}), func(s *scene) {
		a := s.send("A", cost(90))
		s.sendAll(cost(30), "B", "C")
		s.until(time.Second)
		if err := headway.Settle(a.resp, "tokens", 60); err != nil {
			s.Error(err)
		}
		s.send("D", cost(10))
		s.wantStarts("A@0s B@1s C@1m0s D@1m0s")
	})
}

// A Limit can be settled where a Call gave its cost.
func TestSettleALimit(t *testing.T) {
	play(t, limits(limiter.PerMinute(100)), func(s *scene) {
		a, b := s.send("A", cost(90)), s.send("B", ask{})
		if err := headway.Settle(a.resp, "100/1m", 40); err != nil {
			s.Error(err)
		}
		if err := headway.Settle(b.resp, "100/1m", 40); err == nil {
			s.Error("settled without a cost, want an error")
		}
		s.wantRemaining(s.quota("api.test", "100/1m", ""), 59)
	})
}

// Settling after SetPolicies finds the rule by its name.
func TestSettleAfterSetPolicies(t *testing.T) {
	play(t, tokens(limiter.PerMinute(100), headway.Rule{}), func(s *scene) {
		a := s.send("A", cost(90))
		b := s.send("B", cost(5))
		s.set(tokens(limiter.PerHour(200), headway.Rule{}))
		q := s.quota("api.test", "tokens", "")
		s.wantRemaining(q, 105)
		if err := headway.Settle(a.resp, "tokens", 40); err != nil {
			s.Error(err)
		}
		s.wantRemaining(q, 155)
		if err := headway.Settle(a.resp, "tokens", 140); err != nil {
			s.Error(err)
		}
		s.wantRemaining(q, 55)
		s.set(nil)
		for _, n := range []int64{40, 140} {
			if err := headway.Settle(b.resp, "tokens", n); err != nil {
				s.Error(err)
			}
		}
		s.set(tokens(limiter.PerHour(200), headway.Rule{}))
		s.wantRemaining(q, 200)
	})
}

// S53
func TestS53_RequestsAndTokens(t *testing.T) {
	p := []headway.Policy{{Hosts: []string{"*"}, Rules: []headway.Rule{
		{Name: "requests", Limit: limiter.PerMinute(2)},
		{Name: "tokens", Limit: limiter.PerMinute(100), Cost: headway.FromCallCost},
	}}}
	play(t, p, func(s *scene) {
		s.send("A", cost(90))
		s.until(10 * time.Second)
		s.send("B", cost(50)) // waits for tokens
		s.wantRemaining(s.quota("api.test", "requests", ""), 1)
		s.wantRemaining(s.quota("api.test", "tokens", ""), 10)
		s.wantStarts("A@0s B@1m0s")
	})
}

// S13: a quota shows its key's digest only, however it is printed.
func TestS13_QuotaPrintsNoKey(t *testing.T) {
	rt, err := headway.NewTransport(nil, headway.Config{Policies: []headway.Policy{{
		Hosts: []string{"api.test"},
		Rules: []headway.Rule{{Name: "tenant", Limit: limiter.PerSecond(1), Key: headway.FromCallKey}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	q, err := rt.Quota("api.test", "tenant", "open sesame")
	if err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{"%v", "%+v", "%#v", "%s"} {
		if got := fmt.Sprintf(form, q); strings.Contains(got, "sesame") || !strings.Contains(got, "tenant") {
			t.Errorf("%s: got %q", form, got)
		}
	}
}

// However large a Spend is, giving back more than was used leaves the limit; and once
// the debt is over, what was spent after it still counts.
func TestSpendsAsLargeAsTheyCome(t *testing.T) {
	for _, tc := range []struct {
		limit limiter.Limit
		after int64 // what is left after 1 min; 0: there is a debt still
	}{
		{limiter.Limit{N: 10, Per: time.Minute}, 3},
		{limiter.Limit{N: 10, Per: time.Minute, Strict: true}, 3},
		{limiter.Limit{N: 10, Law: limiter.Calendar, Unit: limiter.Minute}, 10},
		{limiter.Limit{N: 10, Per: time.Minute, Law: limiter.Sliding}, 0},
		{limiter.Limit{N: 10, Per: time.Minute, Law: limiter.Bucket}, 0},
	} {
		t.Run(tc.limit.String(), func(t *testing.T) {
			play(t, rules(headway.Rule{Name: "r", Limit: tc.limit}), func(s *scene) {
				q := s.quota("api.test", "r", "")
				for _, list := range [][]int64{{3, math.MinInt64}, {3, 4, -math.MaxInt64}, {math.MaxInt64, math.MinInt64}} {
					for _, n := range list {
						spend(s, q, n)
					}
					if got := remaining(s, q); got != 10 {
						s.Errorf("after %d: %d are left, want 10", list, got)
					}
				}
				spend(s, q, math.MaxInt64)
				s.until(30 * time.Second)
				spend(s, q, 4)
				spend(s, q, 3)
				if got := remaining(s, q); got > -1_000_000 {
					s.Errorf("%d are left, want the debt", got)
				}
				s.until(60 * time.Second)
				if got := max(0, remaining(s, q)); got != tc.after {
					s.Errorf("%d are left after the debt, want %d", got, tc.after)
				}
			})
		})
	}
}
