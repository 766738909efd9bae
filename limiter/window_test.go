package limiter_test

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway/limiter"
)

// TestS4_AllowAmongOthers: however Allow of one unit alternates with operations that
// lock the whole budget, each start counts once, for one period.
func TestS4_AllowAmongOthers(t *testing.T) {
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 4))
			n, per := 1+r.Int64N(12), 100*time.Millisecond
			l := mustNew(t, limiter.Limit{N: n, Per: per})
			var starts []time.Time // that count, oldest first
			left := func() int64 { return n - int64(len(starts)) }
			for i := range 1000 {
				for len(starts) > 0 && time.Since(starts[0]) >= per {
					starts = starts[1:]
				}
				cost := int64(1)
				switch op := r.IntN(100); {
				case op < 40:
					time.Sleep(time.Duration(r.Int64N(int64(4*per) / n)))
					continue
				case op < 44:
					if got := l.Remaining(); got != left() {
						t.Fatalf("seed %d, step %d: %d left, want %d", seed, i, got, left())
					}
					continue
				case op < 46:
					l.Spend(-1)
					starts = starts[min(1, len(starts)):]
					continue
				case op < 47:
					n = 1 + r.Int64N(12)
					if err := l.SetLimits(limiter.Limit{N: n, Per: per}); err != nil {
						t.Fatal(err)
					}
					continue
				case op < 50:
					cost = 2
				}
				want := cost <= left()
				if got := l.Allow(cost); got != want {
					t.Fatalf("seed %d, step %d: Allow(%d) with %d left: %v", seed, i, cost, left(), got)
				}
				for range cost {
					if want {
						starts = append(starts, time.Now())
					}
				}
			}
		})
	}
}
