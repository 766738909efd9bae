package headway_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/store"
)

// A scenario is a service that says what is left, and callers who use as much of it as
// they get.
type scenario struct {
	name string

	// The service.
	meters  []meter
	says    func(http.Header, *meter, state)
	refuse  func(http.Header, time.Duration)
	there   [2]time.Duration            // the least and the most until a request is counted
	takes   [2]time.Duration            // the least and the most until its response from then on
	slow    float64                     // of so many requests the response takes a minute
	others  float64                     // share of the first meter that others use, evenly
	lumps   float64                     // units that others use at once, each period
	used    float64                     // share of the first meter that is used already
	replica float64                     // share of the responses of a replica that has seen none
	policy  headway.Policy              // of the callers
	callers int                         //
	every   time.Duration               // one more caller begins; zero: all at once
	tokens  [2]int64                    // the least and the most that a request costs; zero: 1
	over    float64                     // what is estimated for one token
	idle    time.Duration               // callers rest so long after working so long
	settle  func(*http.Response, int64) // called with the response and what it cost
	lasts   time.Duration               //
	allowed func(m *meter) float64      // nil: what the service allows
	want    figure                      // used at least, and refused at most
	where   map[place]figure            // where it is something else
}

// A figure is what came of it.
type figure struct {
	used    float64 // percent of what was allowed
	refused float64 // of 1,000 requests
	served  int     // requests
	refusal int     // responses of 429
}

func (f figure) String() string { return fmt.Sprintf("%6.1f %6.1f", f.used, f.refused) }

// A place is where the budgets of a scenario are, and who shares them.
type place uint8

const (
	inMemory place = iota
	inStore
	ofTwo     // two processes share a store
	inBatches // and reserve starts in batches
	places
)

func (p place) String() string {
	return [...]string{"memory", "store", "two processes", "in batches"}[p]
}

// inStores is scenario.where for one figure over all stores.
func inStores(f figure) map[place]figure {
	return map[place]figure{inStore: f, ofTwo: f, inBatches: f}
}

// A remoteStore is as far away as a server in the same network.
type remoteStore struct{ store.Store }

func (d remoteStore) Do(ctx context.Context, ops []store.Op) ([]store.Result, error) {
	time.Sleep(500 * time.Microsecond)
	defer time.Sleep(500 * time.Microsecond)
	return d.Store.Do(ctx, ops)
}

// play plays a scenario, once.
func (s *scenario) play(t *testing.T, seed uint64, in place) (f figure) {
	t.Helper()
	bubble(t, func() {
		srv := &service{says: s.says, refuse: s.refuse, begin: time.Now(), end: s.lasts}
		for _, m := range s.meters {
			srv.meters = append(srv.meters, &m)
		}
		if s.used > 0 {
			first := srv.meters[0]
			first.use(0, s.used*float64(first.n))
		}
		via := s.transports(t, srv, in)
		var all sync.WaitGroup
		if s.others > 0 || s.lumps > 0 {
			all.Go(func() { s.useOthers(srv, rand.New(rand.NewPCG(seed, math.MaxUint64))) })
		}
		over, end := context.WithCancel(context.Background())
		time.AfterFunc(s.lasts, end)
		for i := range s.callers {
			if time.Sleep(s.every); time.Since(srv.begin) >= s.lasts {
				break
			}
			all.Go(func() {
				c := caller{s, srv, via[i%len(via)], rand.New(rand.NewPCG(seed, uint64(i)))}
				c.work(t, over)
			})
			synctest.Wait() // in order
		}
		all.Wait()
		time.Sleep(10 * time.Second) // what is still to be told to a store is told
		for _, tr := range via {
			wantIdle(t, tr)
		}
		f = s.figure(srv)
	})
	return f
}

// transports returns the Transports of the processes.
func (s *scenario) transports(t *testing.T, srv http.RoundTripper, in place) (list []*headway.Transport) {
	s.policy.Hosts = []string{"*"}
	cfg := headway.Config{Policies: []headway.Policy{s.policy}}
	n := 1
	if in >= inStore {
		cfg.Store, cfg.Secret = remoteStore{new(store.Memory)}, []byte("of the scenarios")
	}
	if in >= ofTwo {
		n = 2
	}
	if in == inBatches {
		cfg.Policies[0].Store.Batch = 8
	}
	for range n {
		tr, err := headway.NewTransport(srv, cfg)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, tr)
	}
	return list
}

// useOthers lets others use their part of the first meter.
func (s *scenario) useOthers(srv *service, r *rand.Rand) {
	m := srv.meters[0]
	time.Sleep(100 * time.Millisecond)
	for time.Since(srv.begin) < s.lasts {
		units, wait := float64(1), 0.0
		if m.tokens {
			units = float64(between(r, s.tokens[0], s.tokens[1]))
		}
		if s.lumps > 0 {
			units, wait = s.lumps, m.per.Seconds()*(.5+r.Float64())
		} else {
			wait = units / (float64(m.n) / m.per.Seconds() * s.others) * r.ExpFloat64()
		}
		srv.take(m, units, m.tokens || s.lumps > 0)
		time.Sleep(time.Duration(wait * float64(time.Second)))
	}
}

// figure returns what came of it: of several meters the one that was used most counts.
func (s *scenario) figure(srv *service) (f figure) {
	for _, m := range srv.meters {
		allowed := m.allowed(s.lasts)
		if s.allowed != nil {
			allowed = s.allowed(m)
		}
		if s.idle > 0 {
			allowed /= 2
		}
		f.used = max(f.used, 100*m.ours/allowed)
	}
	f.served, f.refusal = srv.arrived-srv.refused, srv.refused
	f.refused = 1000 * float64(srv.refused) / float64(max(1, srv.arrived))
	return f
}

// A caller makes one request after the other, and makes a refused one again.
type caller struct {
	*scenario
	srv *service
	via *headway.Transport
	r   *rand.Rand
}

func (c *caller) work(t *testing.T, over context.Context) {
	tokens := c.draw()
	for over.Err() == nil {
		ctx, end := over, context.CancelFunc(func() {})
		if c.idle > 0 {
			now := time.Since(c.srv.begin)
			part := now / c.idle
			if part%2 == 1 {
				time.Sleep((part+1)*c.idle - now)
				continue
			}
			// Requests in line when the rest begins are left for later.
			ctx, end = context.WithCancel(over)
			time.AfterFunc((part+1)*c.idle-now, end)
		}
		resp, err := c.via.RoundTrip(c.request(ctx, tokens))
		if end(); err != nil {
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
				return
			}
			continue
		}
		resp.Body.Close()
		cost := tokens
		if resp.StatusCode != http.StatusOK {
			cost = 0
		}
		if c.settle != nil {
			c.settle(resp, cost)
		}
		if cost > 0 {
			tokens = c.draw()
		}
	}
}

func (c *caller) draw() int64 {
	if c.tokens[1] == 0 {
		return 1
	}
	return between(c.r, c.tokens[0], c.tokens[1])
}

func (c *caller) request(ctx context.Context, tokens int64) *http.Request {
	e := &errand{
		tokens: tokens, there: between(c.r, c.there[0], c.there[1]), takes: between(c.r, c.takes[0], c.takes[1]),
		elsewhere: c.replica > 0 && c.r.Float64() < c.replica,
	}
	if c.slow > 0 && c.r.Float64() < c.slow {
		e.takes = time.Minute
	}
	a := ask{ctx: e.on(ctx)}
	if c.over > 0 {
		a.call.Cost = int64(math.Ceil(float64(tokens) * c.over))
	}
	return a.request("")
}

// between draws from a to b.
func between[T ~int64](r *rand.Rand, a, b T) T { return a + T(r.Int64N(int64(b-a)+1)) }

// mean plays a scenario with several seeds.
func (s *scenario) mean(t *testing.T, in place, seeds int) (f figure) {
	t.Helper()
	for seed := range seeds {
		g := s.play(t, uint64(seed), in)
		f.used += g.used / float64(seeds)
		f.refused += g.refused / float64(seeds)
		f.served += g.served
		f.refusal += g.refusal
	}
	return f
}

// places are where it is played: fewer where each request takes long, since a row of
// the store holds a thousand starts.
func (s *scenario) places() []place {
	heavy, less := s.meters[0].n >= 1000 && !s.meters[0].tokens, headway.RaceEnabled || testing.Short()
	switch {
	case heavy && less:
		return []place{inMemory}
	case heavy || less:
		return []place{inMemory, ofTwo}
	}
	return []place{inMemory, inStore, ofTwo, inBatches}
}

// playEverywhere plays scenarios in all their places, and compares what came of them with
// what is wanted. In memory it does so with several seeds. It logs a table.
func playEverywhere(t *testing.T, seeds int, list []scenario) {
	t.Helper()
	table := fmt.Sprintf("%% used, refused of 1000\n%-66s", "")
	for in := range places {
		table += fmt.Sprintf(" | %13s", in)
	}
	for _, s := range list {
		t.Run(s.name, func(t *testing.T) {
			table += fmt.Sprintf("\n%-66s", s.name)
			played := s.places()
			for in := range places {
				if !slices.Contains(played, in) {
					table += fmt.Sprintf(" | %13s", "")
					continue
				}
				n := 1
				if in == inMemory {
					n = seeds
				}
				got := s.mean(t, in, n)
				table += " | " + got.String()
				want, isOther := s.where[in]
				if !isOther {
					want = s.want
				}
				if got.used < want.used || got.refused > want.refused {
					t.Errorf("%v: %.1f %% of what is allowed was used, and %.1f of 1,000 requests were refused; want %.1f at least, and %.1f at most",
						in, got.used, got.refused, want.used, want.refused)
				}
			}
		})
	}
	t.Log(table)
}
