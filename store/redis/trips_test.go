package redis_test

import (
	"context"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/store"
	"github.com/headway-go/headway/store/redis"
	"github.com/headway-go/headway/store/redis/internal/server"
	"github.com/redis/rueidis"
)

// A proxy copies bytes between clients and a server. A round trip begins with bytes of a
// client that follow bytes of the server.
type proxy struct {
	addr  string
	trips atomic.Int64

	mu    sync.Mutex // guards conns
	conns []net.Conn // of clients
}

// cut closes all connections; clients may open new ones.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}

func newProxy(t *testing.T, to string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{addr: l.Addr().String()}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			srv, err := net.Dial("tcp", to)
			if err != nil {
				client.Close()
				return
			}
			p.mu.Lock()
			p.conns = append(p.conns, client)
			p.mu.Unlock()
			responded := new(atomic.Bool)
			responded.Store(true)
			all.Go(func() { p.pass(srv, client, func() { p.count(responded) }) })
			all.Go(func() { p.pass(client, srv, func() { responded.Store(true) }) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		p.cut()
		all.Wait()
	})
	return p
}

func (p *proxy) count(responded *atomic.Bool) {
	if responded.Swap(false) {
		p.trips.Add(1)
	}
}

func (p *proxy) pass(to, from net.Conn, received func()) {
	defer to.Close()
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		received()
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}

func take(limits ...limiter.Limit) store.Op {
	op := store.Op{Kind: store.OpTake, Group: "g", ID: 1, Audiences: []string{"audience"}}
	for i, l := range limits {
		op.Needs = append(op.Needs, store.Need{Budget: strconv.Itoa(i), Limit: l, Cost: 1})
	}
	return op
}

// do does operations, none of which may fail.
func do(t testing.TB, s store.Store, ops ...store.Op) []store.Result {
	t.Helper()
	results, err := s.Do(context.Background(), ops)
	if err != nil {
		t.Fatal(err)
	}
	return results
}

// Any number of limits and operations takes one round trip, by the server's own clock and
// on a real connection.
func TestOneRoundTripForADecision(t *testing.T) {
	srv := server.Start(t)
	p := newProxy(t, srv.Addr)
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{p.addr}, DisableCache: true, PipelineMultiplex: -1}) // one connection
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	s := open(t, client, nil)
	all := []limiter.Limit{
		{N: 10, Per: time.Minute}, {N: 10, Per: time.Minute, Strict: true}, {N: 10, Per: time.Minute, Law: limiter.Bucket},
		{N: 10, Per: time.Minute, Law: limiter.Spaced}, {N: 10, Per: time.Minute, Law: limiter.Sliding}, {N: 10, Law: limiter.Calendar, Unit: limiter.Month},
	}
	other := take(all...)
	other.Group = "h"
	pause := store.Op{Kind: store.OpPause, Group: "g", Audience: "audience", Pause: &store.Pause{For: time.Hour, Started: time.Now().UnixNano()}}
	learn := store.Op{Kind: store.OpLearn, Group: "g", Audience: "audience", Learn: &store.Learn{Left: 9, Limit: 10, Reset: -1, Period: time.Minute, Started: time.Now().UnixNano(), Own: 1}}
	for name, ops := range map[string][]store.Op{
		"granted":  {take(all[0])},
		"six":      {take(all...)},
		"many":     {take(all...), take(all[0]), {Kind: store.OpRead, Group: "g", Needs: take(all...).Needs}, {Kind: store.OpDone, Group: "g", ID: 1, Needs: take(all...).Needs}},
		"groups":   {take(all...), other},
		"pause":    {pause},
		"learn":    {learn, take(all[0]), learn},
		"forecast": {{Kind: store.OpForecast, Group: "g", Asks: []store.Op{take(all...), take(all...)}}},
		"no":       nil,
	} {
		before := p.trips.Load()
		do(t, s, ops...)
		if n := p.trips.Load() - before; n != 1 {
			t.Errorf("%s: %d round trips, want 1", name, n)
		}
	}

	// A restarted server does not know the script, which costs one more round trip, once.
	srv.Kill()
	srv.Restart(t)
	for range 100 { // until the client has noticed
		if _, err = s.Do(context.Background(), nil); err == nil {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int64{2, 1} {
		before := p.trips.Load()
		do(t, s, take(all...))
		if n := p.trips.Load() - before; n != want {
			t.Errorf("number %d after a restart: %d round trips, want %d", i, n, want)
		}
	}
}

// A new calendar period costs a second round trip, once.
func TestANewPeriodCostsARoundTripOnce(t *testing.T) {
	client := &counted{Client: connect(t, server.Start(t).Addr)}
	now := time.Date(2026, 3, 28, 22, 0, 30, 0, time.UTC)
	s := open(t, client, func() time.Time { return now })
	op := take(limiter.Limit{N: 2, Law: limiter.Calendar, Unit: limiter.Minute})
	for i, tc := range []struct {
		later time.Duration
		left  int64
		trips int64
	}{{0, 1, 1}, {0, 0, 1}, {time.Minute, 1, 2}, {time.Second, 0, 1}, {time.Hour, 1, 2}} {
		now = now.Add(tc.later)
		before := client.trips.Load()
		res := do(t, s, op)[0]
		if n := client.trips.Load() - before; !res.OK || res.Remaining[0] != tc.left || n != tc.trips {
			t.Errorf("number %d: got %+v in %d round trips, want it granted, with %d left, in %d", i, res, n, tc.left, tc.trips)
		}
	}
}

// Two clients, like those of two processes, take all units at once: each law admits the
// same number for both as for one, also if limits change meanwhile.
func TestStormOverTwoClients(t *testing.T) {
	for name, start := range topologies {
		t.Run(name, func(t *testing.T) {
			addrs := server.Addrs(start(t))
			now := time.Date(2026, 3, 28, 22, 0, 30, 0, time.UTC)
			one := open(t, connect(t, addrs...), func() time.Time { return now })
			two, err := redis.New(context.Background(), redis.Config{
				Client: connect(t, addrs...), Prefix: prefix(), Now: func() time.Time { return now },
			})
			if err != nil {
				t.Fatal(err)
			}
			for i, tc := range []struct {
				limit limiter.Limit
				want  int64
			}{
				{limiter.Limit{N: 100, Per: time.Minute}, 100}, {limiter.Limit{N: 100, Per: time.Minute, Strict: true}, 100},
				{limiter.Limit{N: 100, Per: time.Minute, Law: limiter.Bucket, Burst: 70}, 70}, {limiter.Every(time.Minute), 1},
				{limiter.Limit{N: 100, Per: time.Minute, Law: limiter.Sliding}, 100}, {limiter.Limit{N: 100, Law: limiter.Calendar, Unit: limiter.Day}, 100},
				{limiter.Limit{N: 100, Per: 365 * 24 * time.Hour}, 100}, // decided by Go, each of them
			} {
				var granted atomic.Int64
				var all sync.WaitGroup
				for _, s := range []store.Store{one, two} {
					for worker := range 4 {
						all.Go(func() {
							for n := range 40 {
								op := take(tc.limit)
								op.Group, op.ID = strconv.Itoa(i), uint64(1000*worker+n+1)
								res, err := s.Do(context.Background(), []store.Op{op})
								if err != nil {
									t.Error(err)
								} else if res[0].OK {
									granted.Add(1)
								}
							}
						})
					}
				}
				all.Wait()
				if granted.Load() != tc.want {
					t.Errorf("%v: %d granted, want %d", tc.limit, granted.Load(), tc.want)
				}
			}
		})
	}
}
