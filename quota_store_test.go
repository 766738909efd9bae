package headway_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/store"
)

// A context that has ended is the only error of a Quota without a store, and then
// nothing is spent.
func TestQuotaOfAnEndedContext(t *testing.T) {
	for name, disk := range map[string]store.Store{"memory": nil, "store": new(store.Memory)} {
		t.Run(name, func(t *testing.T) {
			cfg := headway.Config{Policies: rules(headway.Rule{Name: "r", Limit: limiter.PerMinute(5)})}
			if disk != nil {
				cfg = overStore(disk, nil, cfg.Policies)
			}
			playConfig(t, cfg, func(s *scene) {
				q := s.quota("api.test", "r", "")
				ended, _ := contextEnded(s)
				for range 2 {
					if err := q.Spend(ended, 3); err != context.Canceled {
						s.Errorf("Spend: got %v, want the plain context.Canceled", err)
					}
					if n, err := q.Remaining(ended); n != 0 || err != context.Canceled {
						s.Errorf("Remaining: got %d, %v, want the plain context.Canceled", n, err)
					}
					if d, err := q.Delay(ended, 1); d != 0 || err != context.Canceled {
						s.Errorf("Delay: got %v, %v, want the plain context.Canceled", d, err)
					}
					s.wantRemaining(q, 5)
				}
				if _, err := q.Delay(s.Context(), -1); err == nil {
					s.Error("the delay of a negative cost is no error")
				}
				if err := s.SetPolicies(nil); err != nil {
					s.Fatal(err)
				}
				if n := remaining(s, q); n != math.MaxInt64 {
					s.Errorf("without its rule %d are left", n)
				}
				if d := delay(s, q, 100); d != 0 {
					s.Errorf("without its rule the delay is %v", d)
				}
				spend(s, q, 100)
			})
		})
	}
}

// The context bounds the time that a Quota waits for a store; the store counts all
// the same what was spent.
func TestQuotaWaitsForAStoreNoLongerThanItsContext(t *testing.T) {
	disk := &shaky{}
	playConfig(t, overStore(disk, nil, limits(limiter.PerHour(5))), func(s *scene) {
		disk.free = make(chan struct{})
		q := s.quota("api.test", "5/1h", "")
		s.wantRemaining(q, 5)
		disk.set(func(d *shaky) { d.hangs, d.deaf = true, true })
		began := time.Now()
		ctx, cancel := context.WithTimeout(s.Context(), time.Second)
		defer cancel()
		if err := q.Spend(ctx, 2); err != context.DeadlineExceeded {
			s.Errorf("Spend: got %v, want the plain context.DeadlineExceeded", err)
		}
		if waited := time.Since(began); waited != time.Second {
			s.Errorf("Spend took %v, want 1s", waited)
		}
		if n, err := q.Remaining(ctx); n != 0 || err != context.DeadlineExceeded {
			s.Errorf("Remaining: got %d, %v, want the plain context.DeadlineExceeded", n, err)
		}
		ctx, cancel = context.WithTimeout(s.Context(), 500*time.Millisecond)
		defer cancel()
		if d, err := q.Delay(ctx, 1); d != 0 || err != context.DeadlineExceeded {
			s.Errorf("Delay: got %v, %v, want the plain context.DeadlineExceeded", d, err)
		}
		ctx, cancel = context.WithTimeout(s.Context(), 250*time.Millisecond)
		defer cancel()
		if d, err := s.Delay(ask{ctx: ctx}.request("A")); d != 0 || err != context.DeadlineExceeded {
			s.Errorf("Transport.Delay: got %v, %v, want the plain context.DeadlineExceeded", d, err)
		}
		disk.set(func(d *shaky) { d.hangs = false })
		close(disk.free)
		s.wantRemaining(q, 3)
	})
}

// While a store is away, Store.Down says where units count, and whose remaining and
// delay are reported.
func TestQuotaWithoutItsStore(t *testing.T) {
	for name, tc := range map[string]struct {
		down  headway.StoreDown
		spent bool          // in this process
		left  int64         // -1: an error
		delay time.Duration // of 3
	}{
		"local":  {headway.StoreDownLocal, true, 0, time.Hour},
		"refuse": {headway.StoreDownRefuse, false, -1, 0},
		"admit":  {headway.StoreDownAdmit, false, 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			disk := &shaky{}
			var events []headway.Event
			p := limits(limiter.PerHour(8)) // a quarter is 2
			p[0].Store.Down = tc.down
			playConfig(t, overStore(disk, &events, p), func(s *scene) {
				q := s.quota("api.test", "8/1h", "")
				spend(s, q, 3)
				disk.set(func(d *shaky) { d.err = errGone })
				events = nil
				if err := q.Spend(s.Context(), 2); tc.spent != (err == nil) || !tc.spent && !errors.Is(err, errGone) {
					s.Errorf("Spend: got %v; is it spent: %v", err, tc.spent)
				}
				spends := 0
				for _, e := range events {
					if e.Kind == headway.EventSpend {
						spends++
					}
				}
				if (spends == 1) != tc.spent {
					s.Errorf("%d events of a Spend; is it spent: %v", spends, tc.spent)
				}
				n, err := q.Remaining(s.Context())
				if tc.left < 0 && !errors.Is(err, errGone) || tc.left >= 0 && (n != tc.left || err != nil) {
					s.Errorf("Remaining: got %d, %v, want %d", n, err, tc.left)
				}
				d, err := q.Delay(s.Context(), 1)
				if tc.left < 0 && !errors.Is(err, errGone) || tc.left >= 0 && (d != tc.delay || err != nil) {
					s.Errorf("Delay: got %v, %v, want %v", d, err, tc.delay)
				}
				disk.set(func(d *shaky) { d.err = nil })
				s.until(10 * time.Second)
				s.send("A", ask{}) // finds out that it is back
				s.until(20 * time.Second)
				if n := remaining(s, q); n != 8-3 {
					s.Errorf("the store has %d left, want what was spent there alone", n)
				}
			})
		})
	}
}
