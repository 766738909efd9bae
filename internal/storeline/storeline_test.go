package storeline

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/store"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A start is what one request has taken.
type start struct {
	at    time.Duration
	needs []Need
	seq   int // -1: a spend
	key   string
}

// Requests of mixed needs, costs, wait budgets and cancels, two processes, spends,
// changes of limits and a cap on those in flight: no period holds more than a limit
// admits, requests with the same needs start in order, and none waits that could start.
func TestS4_S6_AnyArrivals(t *testing.T) {
	for seed := range uint64(150) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { anyArrivals(t, rand.New(rand.NewPCG(seed, 1)), seed%3 == 0, seed%2 == 0) })
		})
	}
}

func anyArrivals(t *testing.T, r *rand.Rand, two, changes bool) {
	var budgets store.Memory
	epoch := time.Now()
	const per = 10 * time.Second
	names := []string{"a", "b", "c"}
	limits := make([]int64, len(names))
	for i := range limits {
		limits[i] = 1 + r.Int64N(4)
	}
	slots := 0
	if r.IntN(3) == 0 {
		slots = 1 + r.IntN(3)
	}
	var mu sync.Mutex // guards following variables
	var starts []start
	plan := func() *Plan {
		mu.Lock()
		defer mu.Unlock()
		p := &Plan{Limits: map[string]limiter.Limit{}, Waiting: 30, InFlight: slots}
		for i, n := range names {
			p.Limits[n] = limiter.Limit{N: limits[i], Per: per}
		}
		return p
	}
	var clients [2]Client
	var lines [2]*Line
	for i := range clients {
		clients[i] = Client{Store: &budgets, Max: 100}
		lines[i] = clients[i].Line(nil, "g", plan)
	}
	var all sync.WaitGroup
	for seq := range 60 {
		l := lines[0]
		if two {
			l = lines[r.IntN(2)]
		}
		switch k := r.IntN(20); {
		case k == 0 && changes:
			mu.Lock()
			limits[r.IntN(len(names))] = 1 + r.Int64N(4)
			mu.Unlock()
			for i := range clients {
				clients[i].Reconfigure()
			}
		case k == 1:
			i := r.IntN(len(names))
			limit, _ := plan().limit(names[i])
			if _, err := l.Do(context.Background(), store.Op{Kind: store.OpSpend, Group: "g", Needs: []store.Need{{Budget: names[i], Limit: limit, Cost: 1}}}); err != nil {
				t.Error(err)
			}
			mu.Lock()
			starts = append(starts, start{at: time.Since(epoch), needs: []Need{{names[i], 1}}, seq: -1})
			mu.Unlock()
		default:
			a := &Ask{MaxWait: -1, NoSlot: r.IntN(4) == 0, Audiences: []string{"ear"}}
			key := strconv.FormatBool(a.NoSlot) + strconv.FormatBool(l == lines[0])
			for _, n := range names {
				if r.IntN(2) == 0 {
					a.Needs = append(a.Needs, Need{n, 1})
					key += n
				}
			}
			switch r.IntN(4) {
			case 0:
				a.MaxWait = time.Duration(r.Int64N(int64(30 * time.Second)))
			case 1:
				a.MaxWait = 0
			}
			if r.IntN(4) == 0 {
				for i := range a.Needs {
					a.Needs[i].Cost = 1 + r.Int64N(2)
				}
			}
			ctx, cancel := context.WithCancel(context.Background())
			if r.IntN(4) == 0 {
				time.AfterFunc(time.Duration(r.Int64N(int64(40*time.Second))), cancel)
			}
			unsent, long := r.IntN(8) == 0, time.Duration(r.Int64N(int64(4*time.Second)))
			arrived := time.Now()
			all.Go(func() {
				defer cancel()
				g, refused, err := l.Enter(ctx, a)
				waited := time.Since(arrived)
				switch {
				case err != nil:
					if !errors.Is(err, context.Canceled) {
						t.Errorf("got %v", err)
					}
					return
				case refused != nil:
					if refused.RetryAfter == 0 && !refused.AtLeast {
						t.Errorf("refused what could start now: %+v", refused)
					}
					return
				}
				if a.MaxWait >= 0 && waited > a.MaxWait {
					t.Errorf("started after %v, want at most %v", waited, a.MaxWait)
				}
				if unsent {
					l.Cancel(g)
					return
				}
				mu.Lock()
				starts = append(starts, start{time.Since(epoch), a.Needs, seq, key})
				mu.Unlock()
				l.Sent(g)
				time.Sleep(long)
				l.Responded(context.Background(), g)
				l.Done(g)
				if g.Slot {
					l.Release()
				}
			})
		}
		synctest.Wait()
		if !two { // what another process gives back is known at the next question
			noneCouldStart(t, lines[0], &budgets, slots)
		}
		if r.IntN(2) == 0 {
			time.Sleep(time.Duration(r.Int64N(int64(6 * time.Second))))
		}
	}
	all.Wait()
	for _, l := range lines {
		if waiting, inFlight := l.Waiting(); waiting != 0 || inFlight != 0 {
			t.Errorf("%d waiting and %d in flight are left", waiting, inFlight)
		}
	}
	for i := range clients {
		if err := clients[i].Down(); err != nil {
			t.Errorf("the store is down: %v", err)
		}
	}
	latest := map[string]int{}
	for i, s := range starts {
		if s.seq >= 0 && s.seq < latest[s.key] {
			t.Errorf("number %d starts after number %d, which has the same needs", s.seq, latest[s.key])
		} else if s.seq >= 0 {
			latest[s.key] = s.seq
		}
		for b, name := range names {
			sum := int64(0)
			for _, o := range starts[:i+1] {
				for _, n := range o.needs {
					if n.Budget == name && o.at > s.at-per {
						sum += n.Cost
					}
				}
			}
			needs := slices.ContainsFunc(s.needs, func(n Need) bool { return n.Budget == name })
			most := limits[b]
			if changes {
				most = 4
			}
			if needs && s.seq >= 0 && sum > most {
				t.Errorf("%d units of %s in the period until %v, want at most %d", sum, name, s.at, most)
			}
		}
	}
}

// noneCouldStart checks that the first of every class waits for something.
func noneCouldStart(t *testing.T, l *Line, s store.Store, slots int) {
	t.Helper()
	l.mu.Lock()
	full := slots > 0 && l.slots >= slots
	var asks []store.Op
	for _, c := range l.classes {
		if w := c.first(); w.ask.NoSlot || !full {
			asks = append(asks, l.takeOp(w))
		}
	}
	l.mu.Unlock()
	for _, ask := range asks {
		res, err := s.Do(context.Background(), []store.Op{{Kind: store.OpForecast, Group: "g", Asks: []store.Op{ask}}})
		if err != nil {
			t.Fatal(err)
		}
		if res[0].Waits[0].For == 0 {
			t.Errorf("%+v waits, and could start", ask.Needs)
		}
	}
}

// Requests with different needs that are due at one instant ask in order of arrival.
func TestS6_FirstComeAsksFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Client{Store: new(store.Memory), Max: 100}
		p := &Plan{Limits: map[string]limiter.Limit{}}
		for _, rule := range []string{"shared", "own0", "own1", "own2", "own3", "own4", "own5"} {
			p.Limits[rule] = limiter.Limit{N: 1, Per: time.Second}
		}
		l := c.Line(nil, "g", func() *Plan { return p })
		var all sync.WaitGroup
		var got []string
		for i := range 6 {
			own := strconv.Itoa(i)
			all.Go(func() {
				a := &Ask{MaxWait: -1, Needs: []Need{{"own" + own, 1}, {"shared", 1}}}
				g, refused, err := l.Enter(context.Background(), a)
				if err != nil || refused != nil {
					t.Error(err, refused)
					return
				}
				got = append(got, own)
				l.Sent(g)
				l.Responded(context.Background(), g)
				l.Done(g)
			})
			synctest.Wait()
		}
		begin := time.Now()
		all.Wait()
		if want := []string{"0", "1", "2", "3", "4", "5"}; !slices.Equal(got, want) || time.Since(begin) != 5*time.Second {
			t.Errorf("got %v in %v, want %v in 5s", got, time.Since(begin), want)
		}
	})
}
