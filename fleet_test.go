package headway_test

import (
	"cmp"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/store"
)

// A process is one, as far as a store can tell, under one limit.
type process struct {
	*headway.Transport
	limit limiter.Limit
}

// A pair are two processes that share a store.
type pair struct {
	*scene
	a, b process
}

// playPair runs f in a bubble with two processes under a limit.
func playPair(t *testing.T, l limiter.Limit, f func(p *pair)) {
	t.Helper()
	play(t, nil, func(s *scene) {
		var budgets store.Store = new(store.Memory)
		if openStore != nil {
			budgets = openStore(s)
		}
		cfg := overStore(budgets, nil, limits(l))
		f(&pair{s, process{newTransport(s, s.base, cfg), l}, process{newTransport(s, s.base, cfg), l}})
	})
}

// sendBy sends requests by one of the two.
func (p *pair) sendBy(by process, names ...string) {
	p.Transport = by.Transport
	p.sendAll(ask{}, names...)
}

// setBy gives one of the two another limit.
func (p *pair) setBy(by *process, l limiter.Limit) {
	p.Helper()
	by.limit, p.Transport = l, by.Transport
	p.set(limits(l))
}

// wantLeft compares what each of the two sees left.
func (p *pair) wantLeft(a, b int64) {
	p.Helper()
	for i, want := range []int64{a, b} {
		by := []process{p.a, p.b}[i]
		q, err := by.Quota("api.test", by.limit.String(), "")
		if err != nil {
			p.Fatal(err)
		}
		if got := remaining(p, q); got != want {
			p.Errorf("after %v %c sees %d left, want %d", time.Since(p.base.epoch), "AB"[i], got, want)
		}
	}
}

// While two processes differ in a limit, each puts the budget under its own, and
// what both have started counts under both.
func TestS10_Fleet(t *testing.T) {
	per := func(n int64) limiter.Limit { return limiter.Limit{N: n, Per: 10 * time.Second} }
	t.Run("lowered in one", func(t *testing.T) {
		playPair(t, per(4), func(p *pair) {
			p.sendBy(p.a, "A1", "A2")
			p.until(1 * time.Second)
			p.sendBy(p.b, "B1", "B2")
			p.until(2 * time.Second)
			p.sendBy(p.a, "A3") // would start at 10 s
			p.setBy(&p.a, per(2))
			p.wantLeft(-2, 0)
			p.sendBy(p.b, "B3", "B4")
			p.until(11 * time.Second)
			p.wantLeft(0, 2) // B3 and B4 have taken what A3 waited for
			p.wantStarts("A1@0s A2@0s B1@1s B2@1s B3@10s B4@10s A3@20s")
			p.wantLeft(1, 3)
			p.setBy(&p.b, per(2))
			p.wantLeft(1, 1)
			p.sendBy(p.b, "B5", "B6")
			p.wantStartsSoFar("A1@0s A2@0s B1@1s B2@1s B3@10s B4@10s A3@20s B5@20s")
			p.wantStarts("A1@0s A2@0s B1@1s B2@1s B3@10s B4@10s A3@20s B5@20s B6@30s")
		})
	})
	t.Run("raised in one", func(t *testing.T) {
		playPair(t, per(4), func(p *pair) {
			p.sendBy(p.a, "A1", "A2")
			p.until(1 * time.Second)
			p.sendBy(p.b, "B1", "B2")
			p.until(2 * time.Second)
			p.sendBy(p.b, "B3")
			p.sendBy(p.a, "A3", "A4", "A5")
			p.setBy(&p.a, per(6))
			p.wantStartsSoFar("A1@0s A2@0s B1@1s B2@1s A3@2s A4@2s")
			p.wantLeft(0, -2)
			p.wantStarts("A1@0s A2@0s B1@1s B2@1s A3@2s A4@2s A5@10s B3@11s")
		})
	})
	t.Run("another period in one", func(t *testing.T) {
		playPair(t, per(4), func(p *pair) {
			p.sendBy(p.a, "A1", "A2", "A3", "A4")
			p.setBy(&p.b, limiter.PerSecond(2))
			p.until(5 * time.Second)
			p.wantLeft(0, 2)
			p.sendBy(p.b, "B1") // of its start on A does not know those either that B does not count
			p.sendBy(p.a, "A5", "A6", "A7", "A8")
			p.wantStarts("A1@0s A2@0s A3@0s A4@0s B1@5s A5@5s A6@5s A7@5s A8@15s")
		})
	})
}

// S4 over processes whose limits change at any time, each by itself: each start fits
// under the limit of its own process, with all that others have started. With batches
// it fits under the highest that any process has had since what it uses was reserved.
func TestS4_Fleet(t *testing.T) {
	for seed := range uint64(20) {
		mixed(t, seed, false)
		mixed(t, seed, true)
	}
}

func mixed(t *testing.T, seed uint64, leases bool) {
	const per = time.Second
	type entry struct {
		at time.Time
		n  int64 // a limit
	}
	r := rand.New(rand.NewPCG(seed, 4))
	var starts []entry
	bubble(t, func() {
		var mu sync.Mutex // guards starts, n and highest
		n := make([]int64, 3)
		var highest []entry // until when which was
		policies := func(i int) []headway.Policy {
			mu.Lock()
			defer mu.Unlock()
			highest = append(highest, entry{time.Now(), slices.Max(n)})
			n[i] = 1 + r.Int64N(12)
			p := limits(limiter.Limit{N: n[i], Per: per})
			if leases {
				p[0].Store.Batch = r.IntN(6)
			}
			return p
		}
		budgets := new(store.Memory)
		var fleet []*headway.Transport
		for i := range n {
			base := roundTripper(func(req *http.Request) (*http.Response, error) {
				mu.Lock()
				defer mu.Unlock()
				s := entry{time.Now(), n[i]}
				if leases {
					s.n = slices.Max(n)
					for _, h := range highest {
						if s.at.Sub(h.at) < store.UseWithin {
							s.n = max(s.n, h.n)
						}
					}
				}
				starts = append(starts, s)
				return ok(req), nil
			})
			fleet = append(fleet, newTransport(t, base, overStore(budgets, nil, policies(i))))
		}
		var all sync.WaitGroup
		for i := range 200 {
			all.Go(func() {
				if _, err := fleet[i%3].RoundTrip(ask{}.request("x")); err != nil {
					t.Error(err)
				}
			})
			time.Sleep(time.Duration(r.IntN(100)) * time.Millisecond)
			if r.IntN(8) == 0 {
				// At an instant at which nothing else happens.
				moment := time.Millisecond/2 + time.Duration(i)
				time.Sleep(moment)
				changed := r.IntN(len(fleet))
				if err := fleet[changed].SetPolicies(policies(changed)); err != nil {
					t.Error(err)
				}
				synctest.Wait()
				time.Sleep(time.Millisecond - moment)
			}
		}
		all.Wait()
	})
	// In what order processes start at one instant the bases do not see.
	slices.SortFunc(starts, func(a, b entry) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.n, b.n)) })
	first := 0
	for i, s := range starts {
		for s.at.Sub(starts[first].at) >= per {
			first++
		}
		if count := int64(i - first + 1); count > s.n {
			t.Fatalf("seed %d, leases %v: number %d is one of %d within %v, under a limit of %d", seed, leases, i, count, per, s.n)
		}
	}
}
