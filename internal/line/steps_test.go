package line

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway/internal/law"
)

// No loop makes more than 4 * (waiters + rules) + 64 steps, in any test of this
// package.
func init() {
	watchSteps = func(l *locked, steps, waiting int) {
		if most := 4*(waiting+8+len(l.single.needs)) + 64; steps > most {
			panic(fmt.Sprintf("%d steps with %d waiting, want %d at most", steps, waiting, most))
		}
	}
}

// Whatever numbers a server announces, no loop depends on them, and those with a
// bound are out of the line by it.
func TestHostileNumbersAreNoLoopsBound(t *testing.T) {
	numbers := []int64{math.MinInt64, -1, 0, 1, 2, 3, 1000, int64(time.Second), math.MaxInt64 - 1, math.MaxInt64}
	for seed := range uint64(40) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			number := func() int64 {
				if r.IntN(2) == 0 {
					return r.Int64N(int64(3 * time.Second))
				}
				return numbers[r.IntN(len(numbers))]
			}
			l := New()
			budgets := []*Budget{
				l.NewBudget(&law.Spec{N: 20, Per: time.Second}),
				l.NewBudget(&law.Spec{N: 7, Per: time.Second, Kind: law.Spaced}),
			}
			var all sync.WaitGroup
			for range 200 {
				if r.IntN(3) == 0 {
					s := Scope{Rule: budgets[r.IntN(2)]}
					if r.IntN(2) == 0 {
						s.Rule = nil
					}
					said := law.LimitSignal{Left: number(), Limit: number(), Reset: number(), Window: number(), Started: int64(l.Now()) - r.Int64N(1000), Pace: r.IntN(3) == 0}
					l.AnnounceLimit(&LimitReport{Scope: s, Key: AnnouncedKey{Name: fmt.Sprint(r.IntN(3))}, Signal: said}, nil, nil, nil)
				}
				a := Ask{Needs: []Need{{B: budgets[0], Cost: 1}}, MaxWait: time.Duration(r.Int64N(int64(5 * time.Second)))}
				if r.IntN(2) == 0 {
					a.Needs = append(a.Needs, Need{B: budgets[1], Cost: 1})
				}
				begin := time.Now()
				all.Go(func() {
					g, needs, _, err := l.Enter(context.Background(), &a, nil, nil)
					if waited := time.Since(begin); waited > a.MaxWait {
						t.Errorf("seed %d: out of the line after %v, want %v at most", seed, waited, a.MaxWait)
					}
					if err == nil && needs != nil {
						l.Sent(&g)
					}
				})
				synctest.Wait()
				if r.IntN(2) == 0 {
					time.Sleep(time.Duration(r.Int64N(int64(100 * time.Millisecond))))
				}
			}
			all.Wait()
		})
	}
}
