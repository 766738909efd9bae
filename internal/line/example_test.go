package line

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway/internal/law"
)

// TestTheExample plays the example of the package's documentation.
func TestTheExample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New()
		host := l.NewBudget(&law.Spec{N: 2, Per: 10 * time.Second})
		key := l.NewBudget(&law.Spec{N: 1, Per: 30 * time.Second})
		l.Spend(1, host, key)
		l.Spend(1, host)
		begin := time.Now()
		var mu sync.Mutex // guards starts
		starts := map[string]time.Duration{}
		ask := func(name string, cost int64, needsKey bool) context.CancelFunc {
			time.Sleep(time.Second)
			ctx, cancel := context.WithCancel(context.Background())
			needs := []Need{{B: host, Cost: cost}}
			if needsKey {
				needs = []Need{{B: key, Cost: 1}, {B: host, Cost: cost}}
			}
			go func() {
				if g, _, _, err := l.Enter(ctx, &Ask{Needs: needs, MaxWait: -1}, nil, nil); err == nil {
					mu.Lock()
					starts[name] = time.Since(begin)
					mu.Unlock()
					l.Sent(&g)
				}
			}()
			synctest.Wait()
			return cancel
		}
		cancel := ask("a", 1, false)
		ask("b", 1, true)
		ask("c", 1, false)
		ask("d", 1, false)
		ask("e", 1, true)
		time.Sleep(time.Second)
		cancel() // at 6 s
		ask("f", 2, false)
		ask("g", 2, false)
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		for name, want := range map[string]time.Duration{"b": 30, "c": 10, "d": 10, "e": 60, "f": 20, "g": 40} {
			if got := starts[name]; got != want*time.Second {
				t.Errorf("%s started at %v, want %v", name, got, want*time.Second)
			}
		}
		if _, ok := starts["a"]; ok {
			t.Error("a started, though it was canceled")
		}
	})
}
