package headway_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/store"
)

// announce answers with what is left of the tenant's own limit.
func announce(req *http.Request) (*http.Response, error) {
	resp := ok(req)
	resp.Header.Set("X-RateLimit-Limit", "5000")
	resp.Header.Set("X-RateLimit-Remaining", "4000")
	resp.Header.Set("X-RateLimit-Reset", "60")
	return resp, nil
}

// A host of more tenants than are read under one lock is shown whole, and right.
func TestSnapshotOfManyTenants(t *testing.T) {
	const n = 1500
	p := rules(keyed(limiter.PerMinute(10)), headway.Rule{Name: "all", Limit: limiter.PerMinute(100_000)})
	play(t, p, func(s *scene) {
		s.base.answer = announce
		for i := range n {
			for range 1 + i%3 {
				s.send("A", key(fmt.Sprint("tenant", i)))
			}
		}
		s.all.Wait()
		h := s.Snapshot()
		if len(h) != 1 || len(h[0].Rules) != n+1 || len(h[0].Learned) != n {
			s.Fatalf("%d hosts, %d rules, %d learned, want 1, %d and %d", len(h), len(h[0].Rules), len(h[0].Learned), n+1, n)
		}
		left := map[string]int64{}
		for _, r := range h[0].Rules {
			left[r.KeyDigest] = r.Remaining
		}
		for i := range n {
			if got := left[digestOf(t, s, fmt.Sprint("tenant", i))]; got != int64(9-i%3) {
				s.Fatalf("tenant %d has %d left, want %d", i, got, 9-i%3)
			}
		}
		if left[""] != 100_000-2*n {
			s.Errorf("all have %d left, want %d", left[""], 100_000-2*n)
		}
		if !slices.IsSortedFunc(h[0].Learned, func(a, b headway.LearnedStatus) int { return strings.Compare(a.KeyDigest, b.KeyDigest) }) {
			s.Error("what was learned is out of order")
		}
		for _, l := range h[0].Learned {
			if _, ok := left[l.KeyDigest]; !ok || l.KeyDigest == "" || l.Limit != 5000 {
				s.Fatalf("learned %+v of nobody", l)
			}
		}
	})
}

// A look asks the store nothing, however many tenants there are, whatever it does, and
// says what the process knows. As reported: lightninglabs/taproot-assets 1242 (each
// scrape ran queries until it timed out), prometheus-net/prometheus-net 499 (collecting
// blocked the threads that work), lodgvideon/poseidon-http-server 109 (a scrape held the
// lock that a request with a new label waits for).
func TestSnapshotMakesNoRoundTrip(t *testing.T) {
	const n = 1000
	disk := new(shaky)
	var events []headway.Event
	playConfig(t, overStore(disk, &events, rules(keyed(limiter.PerMinute(10)))), func(s *scene) {
		for i := range n {
			s.send("A", key(fmt.Sprint("tenant", i)))
		}
		s.until(5 * time.Second)
		for _, state := range []string{"there", "hanging", "failing"} {
			disk.set(func(d *shaky) {
				if d.hangs = state == "hanging"; state == "failing" {
					d.err = errGone
				}
			})
			calls := disk.calls
			begin := time.Now()
			h := s.Snapshot()
			if len(h) != 1 || len(h[0].Rules) != n {
				s.Fatalf("%s: got %d hosts, %d rules", state, len(h), len(h[0].Rules))
			}
			for _, r := range h[0].Rules {
				if r.Remaining != 9 || r.Age != 5*time.Second {
					s.Fatalf("%s: got %+v, want 9 left, 5 s ago", state, r)
				}
			}
			if synctest.Wait(); disk.calls != calls || time.Since(begin) != 0 {
				s.Errorf("%s: the store was asked %d times, for %v", state, disk.calls-calls, time.Since(begin))
			}
		}
		if got := kindsOf(events, headway.EventStoreDown); len(got) != 0 {
			s.Errorf("told %v", got)
		}
	})
}

// What a process knows of a store is what it received last: of refusals, of batches, of
// spends, of what is given back, and of what other processes' servers have said.
func TestSnapshotOverAStoreReturnsWhatIsKnown(t *testing.T) {
	play(t, nil, func(s *scene) {
		budgets := new(store.Memory)
		p := limits(limiter.PerMinute(5))
		p[0].MaxWait = headway.NoWait
		a := newTransport(s, s.base, overStore(budgets, nil, p))
		b := newTransport(s, s.base, overStore(budgets, nil, p))
		left := func(tr *headway.Transport, remaining int64, age time.Duration) {
			s.Helper()
			if r := tr.Snapshot()[0].Rules; len(r) != 1 || r[0].Remaining != remaining || r[0].Age != age {
				s.Errorf("got %+v, want %d left, %v ago", r, remaining, age)
			}
		}
		s.Transport = a
		s.send("A", ask{})
		left(a, 4, 0)
		s.Transport = b
		s.sendAll(ask{}, "B", "C")
		left(b, 2, 0)
		s.until(time.Second)
		left(a, 4, time.Second) // it has not heard since
		s.Transport = a
		s.send("dear", cost(3))
		left(a, 2, 0) // a refusal tells too
		q, err := a.Quota("api.test", "5/1m", "")
		if err != nil {
			s.Fatal(err)
		}
		spend(s, q, 4)
		left(a, -2, 0)
		spend(s, q, -1)
		left(a, -1, 0)
	})
}

func TestSnapshotOverAStoreOfABatch(t *testing.T) {
	p := limits(limiter.PerMinute(100))
	p[0].Store.Batch = 10
	playConfig(t, overStore(new(store.Memory), nil, p), func(s *scene) {
		for i := range 4 {
			s.send("A", ask{})
			if r := s.Snapshot()[0].Rules[0]; r.Remaining != int64(99-i) {
				s.Errorf("after %d: %+v, want %d left", i+1, r, 99-i)
			}
		}
	})
}

// A pause that another process has received is known here once it has held a request up.
func TestSnapshotOverAStoreOfAnothersPause(t *testing.T) {
	play(t, nil, func(s *scene) {
		budgets := new(store.Memory)
		a := newTransport(s, s.base, overStore(budgets, nil, limits(limiter.PerMinute(50))))
		b := newTransport(s, s.base, overStore(budgets, nil, limits(limiter.PerMinute(50))))
		s.base.answer = inTurn(asks5)
		s.Transport = a
		s.send("A", ask{})
		pauses := func(tr *headway.Transport, want string) {
			s.Helper()
			got := ""
			for _, h := range tr.Snapshot() {
				for _, p := range h.Pauses {
					got += fmt.Sprintf("%s by %s;", p.Left, p.Source)
				}
			}
			if got != want {
				s.Errorf("got %q, want %q", got, want)
			}
		}
		pauses(a, "5s by rfc9110;")
		s.until(time.Second)
		pauses(a, "4s by rfc9110;")
		s.Transport = b
		s.send("B", ask{})
		pauses(b, "4s by rfc9110;")
		s.until(3 * time.Second)
		pauses(b, "2s by rfc9110;")
		s.until(5 * time.Second)
		pauses(a, "")
		pauses(b, "")
	})
}

// What a server has announced is known as of the last answer, less what has started
// since; when its window is over units are back.
func TestSnapshotOverAStoreOfWhatWasLearned(t *testing.T) {
	playConfig(t, overStore(new(store.Memory), nil, limits(limiter.PerMinute(5000))), func(s *scene) {
		s.base.answer = announce
		s.send("A", ask{})
		learned := func(want headway.LearnedStatus) {
			s.Helper()
			got := s.Snapshot()[0].Learned
			if len(got) != 1 || got[0] != want {
				s.Errorf("got %+v, want %+v", got, want)
			}
		}
		want := s.Snapshot()[0].Learned[0]
		if want.Limit != 5000 || want.Remaining != 4000 || want.Reset != 61*time.Second || want.Age != 0 {
			s.Errorf("got %+v", want)
		}
		s.base.answer = nil
		s.until(10 * time.Second)
		s.sendAll(ask{}, "B", "C")
		want.Remaining, want.Reset, want.Age = 3998, 51*time.Second, 10*time.Second
		learned(want)
		s.until(61 * time.Second)
		want.Remaining, want.Reset, want.Age = 5000, -1, 61*time.Second
		learned(want)
		s.until(time.Hour)
		if got := s.Snapshot()[0].Learned; len(got) != 0 {
			s.Errorf("an hour later: %+v", got)
		}
	})
}

// budgetsOf shows the first host's budgets as "remaining/by the limit alone", and then what was
// announced: "name remaining", with "!" where it is no rule's.
func budgetsOf(tr *headway.Transport) string {
	var list []string
	h := tr.Snapshot()[0]
	for _, r := range h.Rules {
		list = append(list, fmt.Sprintf("%d/%d", r.Remaining, r.LimitRemaining))
	}
	for _, l := range h.Learned {
		mark := ""
		if !l.OfRule {
			mark = "!"
		}
		list = append(list, fmt.Sprintf("%s%s %d", mark, l.Name, l.Remaining))
	}
	return strings.Join(list, ", ")
}

func wantBudgets(s *scene, tr *headway.Transport, want string) {
	s.Helper()
	if got := budgetsOf(tr); got != want {
		s.Errorf("got %q, want %q", got, want)
	}
}

// announcedRule is a rule whose limit the server announces too, and its 59 of 100 that are left.
// The 4000 of a day are no rule's.
func announcedRule() ([]headway.Policy, func(*http.Request) (*http.Response, error)) {
	p := rules(headway.Rule{Name: "r", Limit: limiter.PerMinute(1000), Announced: "requests"})
	return p, says(200, "", `RateLimit-Policy: "requests";q=100;w=60, "day";q=5000;w=86400`, `RateLimit: "requests";r=59;t=30, "day";r=4000;t=9000`)
}

// What the limit of a rule has left and what the server has announced of it are two numbers, in
// memory and over a store.
func TestSnapshotOfOursAndTheirs(t *testing.T) {
	for _, over := range []store.Store{nil, new(store.Memory)} {
		name := "memory"
		if over != nil {
			name = "store"
		}
		t.Run(name, func(t *testing.T) {
			p, announces := announcedRule()
			cfg := headway.Config{Policies: p, Store: over, Secret: []byte("s")}
			playConfig(t, cfg, func(s *scene) {
				s.base.answer = inTurn(announces)
				least := "59"
				if over != nil { // it has reported before the response came
					least = "999"
				}
				for _, want := range []string{least + "/999, !day 4000, requests 59", "58/998, !day 3999, requests 58", "57/997, !day 3998, requests 57"} {
					s.send("A", ask{})
					s.until(time.Since(s.base.epoch) + 10*time.Millisecond)
					wantBudgets(s, s.Transport, want)
				}
				q, err := s.Quota("api.test", "r", "")
				if err != nil {
					s.Fatal(err)
				}
				spend(s, q, 1000)
				wantBudgets(s, s.Transport, "-943/-3, !day 3998, requests -943")
			})
		})
	}
}

// What a batch has reserved is this process's, by both numbers.
func TestSnapshotOfOursAndTheirsOfABatch(t *testing.T) {
	p, announces := announcedRule()
	playConfig(t, overStore(new(store.Memory), nil, p), func(s *scene) {
		s.base.answer = inTurn(announces, says(200, "", `RateLimit-Policy: "requests";q=100;w=60, "day";q=5000;w=86400`, `RateLimit: "requests";r=58;t=28, "day";r=3999;t=8998`))
		s.send("A", ask{})
		s.until(2 * time.Second)
		p[0].Store.Batch = 10
		s.set(p)
		for _, want := range []string{"58/998, !day 3999, requests 58", "57/997, !day 3998, requests 57", "56/996, !day 3997, requests 56"} {
			s.send("B", ask{})
			s.until(time.Since(s.base.epoch) + 10*time.Millisecond)
			wantBudgets(s, s.Transport, want)
		}
	})
}

// What a server has announced to one process shows to another by what the store has left, and
// what that has counted of others by what it reports of the announced limit.
func TestSnapshotOfTheirsFromAnotherProcess(t *testing.T) {
	play(t, nil, func(s *scene) {
		budgets := new(store.Memory)
		p, announces := announcedRule()
		a := newTransport(s, s.base, overStore(budgets, nil, p))
		b := newTransport(s, s.base, overStore(budgets, nil, p))
		s.base.answer = inTurn(announces)
		send := func(tr *headway.Transport) {
			s.Transport = tr
			s.send("A", ask{})
			s.until(time.Since(s.base.epoch) + 10*time.Millisecond)
		}
		send(a)
		wantBudgets(s, a, "999/999, !day 4000, requests 59")
		send(b)
		wantBudgets(s, b, "58/998")
		wantBudgets(s, a, "999/999, !day 4000, requests 59")
		send(b)
		send(a)
		wantBudgets(s, a, "56/996, !day 3999, requests 56")
		// What others give back is known as late.
		q, err := b.Quota("api.test", "r", "")
		if err != nil {
			s.Fatal(err)
		}
		spend(s, q, -2)
		wantBudgets(s, b, "58/998")
		send(a)
		wantBudgets(s, a, "57/997, !day 3998, requests 57")
		// At the reset units return, which no report is needed for, and the next has the number.
		s.until(31500 * time.Millisecond)
		wantBudgets(s, a, "57/997, !day 3998, requests 100")
		send(b)
		send(a)
		wantBudgets(s, a, "95/995, !day 3997, requests 95")
	})
}

// Looks, and requests to hosts that come and go, at once: for the race detector.
func TestSnapshotStorm(t *testing.T) {
	for _, over := range []store.Store{nil, new(store.Memory)} {
		cfg := headway.Config{Policies: rules(keyed(limiter.PerSecond(100_000))), MaxHosts: 300, Store: over, Secret: []byte("s")}
		b := &base{epoch: time.Now()}
		tr := newTransport(t, b, cfg)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var all sync.WaitGroup
		for g := range 3 {
			all.Go(func() {
				for i := range 400 {
					req := ask{url: fmt.Sprintf("https://h%d.test/", i%40), call: headway.Call{Key: fmt.Sprint(g, i)}}.request("A")
					if resp, err := tr.RoundTrip(req); err == nil {
						resp.Body.Close()
					}
				}
				cancel()
			})
		}
		all.Go(func() {
			for ctx.Err() == nil {
				tr.Snapshot()
			}
		})
		all.Wait()
		wantIdle(t, tr)
	}
}

// An identity of two rules that share one key has one digest, in events, in Snapshot, and
// over a store.
func TestDigestOfOneKeyUnderTwoRules(t *testing.T) {
	for _, over := range []store.Store{nil, new(store.Memory)} {
		var events []headway.Event
		p := rules(keyed(limiter.PerMinute(10)), headway.Rule{Name: "day", Limit: limiter.PerDay(100), Key: headway.FromCallKey},
			headway.Rule{Name: "user", Limit: limiter.PerDay(100), Key: headway.ByHeader("User")})
		cfg := overStore(over, &events, p)
		if over == nil {
			cfg.Store = nil
		}
		playConfig(t, cfg, func(s *scene) {
			s.base.answer = inTurn(asks5)
			a := key("a")
			a.header = http.Header{"User": {"u"}}
			s.send("A", a)
			one := digestOf(t, s, "a")
			pauses := s.Snapshot()[0].Pauses
			if len(pauses) != 1 || strings.Count(pauses[0].KeyDigest, one) != 1 || strings.Count(pauses[0].KeyDigest, "+") != 1 {
				s.Errorf("got %+v, want the digest %s once, and another", pauses, one)
			}
			if e := only(s.T, events, headway.EventPause); e.KeyDigest != pauses[0].KeyDigest {
				s.Errorf("told %q, want %q", e.KeyDigest, pauses[0].KeyDigest)
			}
		})
	}
}
