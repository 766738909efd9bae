package line

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway/internal/law"
	"pgregory.net/rapid"
)

// TestHeardWhileInLine lets responses raise pauses and lower what is left, for all, an
// identity, a resource or a budget, while others wait with needs, slots and cancels of all
// kinds, and lets those in line turn out to draw on the resource: no request that one
// concerns starts against it, all start or give up in the end, and nothing is left.
func TestHeardWhileInLine(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		// In the bubble nothing may be drawn: it is another goroutine.
		script := rapid.SliceOfN(rapid.SliceOfN(rapid.IntRange(0, 59), 8, 8), 2, 25).Draw(rt, "script")
		var faults []string
		var mu sync.Mutex // guards what the goroutines share
		fault := func(format string, args ...any) {
			faults = append(faults, fmt.Sprintf(format, args...))
		}
		synctest.Test(t, func(t *testing.T) {
			l := New()
			l.SetCaps(0, []int{0, 0, 1, 3}[script[0][0]%4])
			var budgets []*Budget
			for i := range 3 {
				n := int64(1 + script[0][i+1]%4)
				budgets = append(budgets, l.NewBudget(&law.Spec{N: n, Per: 5 * time.Second}))
			}
			// 3 is a resource of identity 2. Which route draws on it is not known before joined.
			const ids, owner, resource, route = 3, 2, 3, 7
			for id := uint64(1); id <= ids; id++ {
				l.OpenAudience(id, "", "", nil)
			}
			joined := false
			type claim struct {
				who   Who
				needs []Need
			}
			concerns := func(s Scope, c claim) bool {
				drawsOn := s.Identity == resource && c.who.Route == route && joined
				return (s.Identity == 0 || s.Identity == c.who.Identity || drawsOn) && (s.Rule == nil || costOf(c.needs, s.Rule) > 0)
			}
			paused := map[Scope]time.Duration{}
			lasts := map[string]time.Duration{} // the latest start of those with the same needs
			running := 0
			start := func(c claim, wait time.Duration) {
				ctx, cancel := context.WithCancel(context.Background())
				if wait > 0 {
					time.AfterFunc(wait, cancel)
				}
				arrived := l.Now()
				key := fmt.Sprint(c.who)
				for _, n := range c.needs {
					key += fmt.Sprintf(" %p", n.B)
				}
				own := append([]Need(nil), c.needs...)
				mu.Lock()
				running++
				mu.Unlock()
				go func() {
					defer cancel()
					g, all, refusal, err := l.Enter(ctx, &Ask{Needs: own, MaxWait: -1, Who: c.who, InFlight: true}, nil, nil)
					defer func() {
						mu.Lock()
						defer mu.Unlock()
						running--
					}()
					if err != nil {
						return
					}
					mu.Lock()
					if refusal != nil {
						fault("refused: %+v", refusal)
						mu.Unlock()
						return
					}
					now := l.Now()
					for s, end := range paused {
						if concerns(s, c) && now < end {
							fault("a start at %v in a pause until %v", now, end)
						}
					}
					if wait == 0 && arrived < lasts[key] && now < lasts[key] {
						fault("%s: overtaken", key)
					}
					lasts[key] = max(lasts[key], arrived)
					mu.Unlock()
					l.Sent(&g)
					time.Sleep(time.Second)
					l.Done(&g, all)
					if g.Slot {
						l.Release()
					}
				}()
				synctest.Wait()
			}
			for _, d := range script[1:] {
				s := Scope{Identity: uint64(d[1] % (ids + 1))}
				if d[2]%2 == 0 {
					s.Rule = budgets[d[3]%3]
				}
				switch d[0] % 7 {
				case 0:
					p := Pause{Scope: s, For: time.Duration(1+d[4]%20) * time.Second}
					length, err := l.AnnouncePause(&p)
					if err != nil {
						fault("%v", err)
					}
					if length > 0 {
						mu.Lock()
						paused[p.Scope] = l.Now() + length
						mu.Unlock()
					}
				case 1:
					said := law.LimitSignal{Left: int64(d[4] % 4), Limit: int64(1 + d[5]%5), Reset: int64(10 * time.Second), Started: int64(l.Now())}
					if _, err := l.AnnounceLimit(&LimitReport{Scope: s, Key: AnnouncedKey{Name: "x"}, Signal: said}, nil, nil, nil); err != nil {
						fault("%v", err)
					}
				case 2:
					time.Sleep(time.Duration(1+d[4]%4) * time.Second)
				case 3:
					mu.Lock()
					joined = true
					mu.Unlock()
					l.JoinAudience(resource, route)
				default:
					c := claim{who: Who{Identity: min(s.Identity, owner)}}
					if s.Identity == resource {
						if c.who.Route = route; joined {
							c.who.Resource = resource
						}
					}
					for i, b := range budgets {
						if d[2+i]%2 == 0 {
							c.needs = append(c.needs, Need{B: b, Cost: 1})
						}
					}
					wait := time.Duration(0)
					if d[5]%4 == 0 {
						wait = time.Duration(1+d[6]%9) * time.Second
					}
					start(c, wait)
				}
				synctest.Wait() // who is due now starts before the next step
			}
			for range 100 {
				time.Sleep(10 * time.Second)
			}
			mu.Lock()
			defer mu.Unlock()
			if running > 0 {
				fault("%d still wait", running)
			}
			time.Sleep(time.Hour)
			for id := uint64(1); id <= ids; id++ {
				if !l.RetireAudience(id, false) {
					fault("audience %d is not forgotten", id)
				}
			}
			if l.audiences != nil && len(l.audiences.inFlight) > 0 || l.inFlight != 0 || !l.RetireAll(budgets, nil) {
				fault("something is left: %d in flight", l.inFlight)
			}
		})
		if len(faults) > 0 {
			rt.Fatal(strings.Join(faults, "\n"))
		}
	})
}

// TestJoinAudience: requests in line that turn out to draw on a resource are held by the pause and
// the limit that were announced of it before, and what is behind them moves up.
func TestJoinAudience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const resource, route = 3, 7
		l := New()
		b := l.NewBudget(&law.Spec{N: 1, Per: time.Second})
		l.OpenAudience(resource, "", "search", nil)
		var mu sync.Mutex
		starts := map[string]time.Duration{}
		enter := func(name string, who Who) {
			go func() {
				g, needs, _, _ := l.Enter(context.Background(), &Ask{Needs: []Need{{B: b, Cost: 1}}, MaxWait: -1, Who: who, InFlight: true}, nil, nil)
				mu.Lock()
				starts[name] = l.Now()
				mu.Unlock()
				l.Sent(&g)
				l.Done(&g, needs)
			}()
			synctest.Wait()
		}
		enter("first", Who{})
		enter("searches", Who{Route: route})
		enter("another", Who{Route: route + 1})
		enter("last", Who{})
		l.AnnouncePause(&Pause{Scope: Scope{Identity: resource}, For: 10 * time.Second})
		l.JoinAudience(resource, route)
		time.Sleep(time.Minute)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		for name, want := range map[string]time.Duration{"first": 0, "another": 1, "last": 2, "searches": 10} {
			if starts[name] != want*time.Second {
				t.Errorf("%s started at %v, want %v", name, starts[name], want*time.Second)
			}
		}
		if l.inFlight != 0 || len(l.audiences.inFlight) > 0 || !l.RetireAudience(resource, true) {
			t.Error("something is left")
		}
	})
}
