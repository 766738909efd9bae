package line

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway/internal/law"
)

// Wake-ups are counted: the timer fires at most once for each start, cancel or
// change of who is first, and a waiter is woken once, to start or to leave. A
// wait that returned has had its start, its refusal or its context's end, so
// nobody is woken to find that it must wait on.
func TestWakeUpsAreCounted(t *testing.T) {
	for name, tenants := range map[string]int{"plain": 1, "mixed": 5} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := New()
				shared := l.NewBudget(&law.Spec{N: 50, Per: time.Second, Kind: law.Bucket, Burst: 1})
				own := make([]*Budget, tenants)
				for i := range own {
					own[i] = l.NewBudget(&law.Spec{N: 40, Per: time.Second})
				}
				l.Spend(1000, shared) // 20 s
				var starts, cancels atomic.Int64
				wait := func(ctx context.Context, i int) {
					needs := []Need{{B: own[i%tenants], Cost: 1}, {B: shared, Cost: 1}}
					g, _, refusal, err := l.Enter(ctx, &Ask{Needs: needs, MaxWait: -1}, nil, nil)
					switch {
					case err != nil:
						cancels.Add(1)
					case refusal != nil:
						t.Errorf("refused: %+v", refusal)
					default:
						starts.Add(1)
						l.Sent(&g)
					}
				}
				ctx, cancel := context.WithCancel(t.Context())
				for i := range 300 {
					c := t.Context()
					if i%3 == 0 {
						c = ctx
					}
					go wait(c, i)
					synctest.Wait()
				}
				q := l.queue // it goes when nobody waits
				time.Sleep(20*time.Second + 500*time.Millisecond)
				cancel() // those left of every third, whoever is first among them
				time.Sleep(time.Minute)
				synctest.Wait()
				if starts.Load()+cancels.Load() != 300 || cancels.Load() == 0 {
					t.Fatalf("%d started and %d cancelled, of 300", starts.Load(), cancels.Load())
				}
				if int64(q.fired) > starts.Load() {
					t.Errorf("the timer fired %d times for %d starts and %d cancels", q.fired, starts.Load(), cancels.Load())
				}
			})
		})
	}
}

// S33: one caller against a herd of 25 that loop without end at 50 per s: it
// starts within 26 slots, and the timer fires once for each of these starts.
func TestS33_OneWakeUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New()
		b := l.NewBudget(&law.Spec{N: 50, Per: time.Second, Kind: law.Bucket})
		l.Spend(50, b)
		ctx, stop := context.WithCancel(t.Context())
		var starts atomic.Int64
		enter := func() error {
			g, _, _, err := l.Enter(ctx, &Ask{Needs: []Need{{B: b, Cost: 1}}, MaxWait: -1}, nil, nil)
			if err == nil {
				starts.Add(1)
				l.Sent(&g)
			}
			return err
		}
		for range 25 {
			go func() {
				for enter() == nil {
				}
			}()
			synctest.Wait()
		}
		q, t0 := l.queue, time.Now()
		if err := enter(); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(t0); d != 520*time.Millisecond {
			t.Errorf("it started after %v, want 520ms", d)
		}
		l.mu.Lock()
		if int64(q.fired) != starts.Load() {
			t.Errorf("the timer fired %d times for %d starts", q.fired, starts.Load())
		}
		l.mu.Unlock()
		stop()
		synctest.Wait()
	})
}
