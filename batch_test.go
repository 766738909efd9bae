package headway_test

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/store"
)

func (s *shaky) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

func leased(disk store.Store, n int, limits ...limiter.Limit) headway.Config {
	return overStore(disk, nil, []headway.Policy{{Hosts: []string{"api.test"}, Limits: limits, Store: headway.StorePolicy{Batch: n}}})
}

// With a batch most starts cost no round trip, what is not used goes back, and the
// store knows when what was used began to count.
func TestStoreBatch(t *testing.T) {
	disk := &shaky{}
	playConfig(t, leased(disk, 20, limiter.PerSecond(1000)), func(s *scene) {
		left := func() int64 {
			q, err := newTransport(s, s.base, leased(disk, 1, limiter.PerSecond(1000))).Quota("api.test", "1000/1s", "")
			if err != nil {
				s.Fatal(err)
			}
			return remaining(s, q)
		}
		for i := range 200 {
			s.wantOK(s.send(strconv.Itoa(i), ask{}))
		}
		if got := disk.asked(); got != 10 {
			s.Errorf("%d questions for 200 starts, want 10", got)
		}
		s.until(200 * time.Millisecond)
		s.wantOK(s.send("last", ask{}))
		if got := left(); got != 1000-220 {
			s.Errorf("%d are left with 19 set aside, want %d", got, 1000-220)
		}
		s.until(1200 * time.Millisecond) // the lease's end; the first 200 have come back
		if got := left(); got != 1000 {
			s.Errorf("%d are left after the lease, want 1000", got)
		}
	})
}

// One more than a limit leaves waits until the first unit comes back, though units
// were reserved; those are given to no other request.
func TestStoreBatchIsKeptForItsRequests(t *testing.T) {
	disk := &shaky{}
	playConfig(t, leased(disk, 4, limiter.Limit{N: 10, Per: 10 * time.Second}), func(s *scene) {
		other := newTransport(s, s.base, leased(disk, 1, limiter.Limit{N: 10, Per: 10 * time.Second}))
		s.send("A", ask{}) // and three aside
		for range 6 {
			if _, err := other.RoundTrip(ask{call: headway.Call{MaxWait: headway.NoWait}}.request("x")); err != nil {
				s.Errorf("one of 6: %v", err)
			}
		}
		if _, err := other.RoundTrip(ask{call: headway.Call{MaxWait: headway.NoWait}}.request("x")); err == nil {
			s.Error("a unit was taken that was set aside")
		}
		for range 3 {
			s.wantOK(s.send("own", ask{}))
		}
		b := s.send("B", ask{})
		if b.done.Load() {
			s.Error("the eleventh has started")
		}
		s.until(10 * time.Second)
		s.wantOK(b)
	})
}

// A pause holds what is reserved, and gives it back.
func TestStoreBatchObeysAPause(t *testing.T) {
	disk := &shaky{}
	playConfig(t, leased(disk, 10, limiter.PerSecond(100)), func(s *scene) {
		s.base.answer = func(req *http.Request) (*http.Response, error) {
			resp := ok(req)
			if req.Header.Get("Name") == "B" {
				resp.StatusCode = http.StatusTooManyRequests
				resp.Header.Set("Retry-After", "3")
			}
			return resp, nil
		}
		s.send("A", ask{})
		s.send("B", ask{})
		s.send("C", ask{})
		s.until(4 * time.Second)
		s.wantStarts("A@0s B@0s C@3s")
	})
}

// S1 over several processes with batches, at random.
func TestS1_OverBatches(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		n, per := 5+r.Int64N(40), time.Duration(1+r.Int64N(3000))*time.Millisecond
		disk := &shaky{}
		bubble(t, func() {
			var mu sync.Mutex // guards starts
			var starts []time.Time
			base := roundTripper(func(req *http.Request) (*http.Response, error) {
				mu.Lock()
				defer mu.Unlock()
				starts = append(starts, time.Now())
				return ok(req), nil
			})
			var processes []*headway.Transport
			for range 3 {
				tr, err := headway.NewTransport(base, leased(disk, 1+r.IntN(12), limiter.Limit{N: n, Per: per}))
				if err != nil {
					t.Fatal(err)
				}
				processes = append(processes, tr)
			}
			var all sync.WaitGroup
			for range 6 * n {
				tr := processes[r.IntN(3)]
				all.Go(func() {
					if _, err := tr.RoundTrip(ask{}.request("x")); err != nil {
						t.Error(err)
					}
				})
				if r.IntN(3) == 0 {
					time.Sleep(time.Duration(r.Int64N(int64(per)/int64(n) + 1)))
				}
			}
			all.Wait()
			for i := int(n); i < len(starts); i++ {
				if d := starts[i].Sub(starts[i-int(n)]); d < per {
					t.Fatalf("seed %d: %d starts within %v, of %d in %v", seed, n+1, d, n, per)
				}
			}
		})
	}
}

// What was reserved for one unit each is no start of a request that costs more, and
// nothing that may be corrected.
func TestStoreBatchIsForItsCost(t *testing.T) {
	disk := &shaky{}
	playConfig(t, leased(disk, 5, limiter.PerMinute(100)), func(s *scene) {
		q, err := s.Quota("api.test", "100/1m", "")
		if err != nil {
			s.Fatal(err)
		}
		for _, n := range []int64{1, 7, 1} {
			if err := q.Wait(s.Context(), n); err != nil {
				s.Error(err)
			}
		}
		s.wantOK(s.send("A", cost(9)))
		s.until(2 * time.Second) // what is aside has gone back
		if got := remaining(s, q); got != 100-18 {
			s.Errorf("%d are left, want %d", got, 100-18)
		}
	})
}
