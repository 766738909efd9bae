package redis_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/store/redis/internal/server"
)

const (
	loadLimit   = 40
	loadShare   = 0.25
	loadSize    = 2 // processes
	loadCallers = 8 // of each

	clientRoutines = 20 // more than a client needs for all of its connections
)

// A request is a process's record of one request.
type request struct {
	ID      string
	Budget  time.Duration
	Took    time.Duration
	Starts  int
	Away    bool // sent while the store was down, so that the store does not count it
	Refused bool
	Err     string // any other error

	started time.Time
}

// A loadReport is a process's report.
type loadReport struct {
	Requests []request
	Down, Up int64         // how often the store was reported down, and up
	Idle     int           // goroutines before the load,
	Most     int           // under it,
	Left     int           // and after it
	Stall    time.Duration // the longest delay of a goroutine by the machine
}

type requestKey struct{}

var down, up atomic.Int64

// watch is the observer.
func watch(ctx context.Context, e headway.Event) {
	switch e.Kind {
	case headway.EventStart:
		if r, ok := ctx.Value(requestKey{}).(*request); ok { // it belongs to this goroutine
			r.Starts++
			r.Away, r.started = e.Away, time.Now()
		}
	case headway.EventStoreDown:
		down.Add(1)
	case headway.EventStoreUp:
		up.Add(1)
	}
}

// A load exceeds the limit, with callers whose wait budgets differ.
var load = role{
	headway.Policy{Store: headway.StorePolicy{Share: loadShare}, Limits: []limiter.Limit{{N: loadLimit, Per: time.Second, Strict: true}}},
	func(j job, t *headway.Transport, stop <-chan struct{}) (any, error) {
		client := &http.Client{Transport: t}
		report := loadReport{Idle: runtime.NumGoroutine()}
		stalled := stalls(stop)
		var mu sync.Mutex // guards report
		var all sync.WaitGroup
		for i := range loadCallers {
			budget := []time.Duration{100 * time.Millisecond, time.Second, 2 * time.Second}[i%3]
			all.Go(func() {
				for n := 0; ; n++ {
					select {
					case <-stop:
						return
					default:
					}
					r := request{ID: fmt.Sprintf("%s/%d/%d", j.Name, i, n), Budget: budget}
					ctx := headway.WithCall(context.WithValue(context.Background(), requestKey{}, &r), headway.Call{MaxWait: budget})
					began := time.Now()
					err := j.send(ctx, client, r.ID)
					r.Took = time.Since(began)
					if refused := (*headway.ThrottledError)(nil); errors.As(err, &refused) {
						r.Refused = true
					} else if err != nil {
						r.Err = err.Error()
					}
					mu.Lock()
					report.Requests = append(report.Requests, r)
					report.Most = max(report.Most, runtime.NumGoroutine())
					mu.Unlock()
					if err != nil {
						<-time.After(20 * time.Millisecond)
					}
				}
			})
		}
		all.Wait()
		t.CloseIdleConnections()
		for range 1500 { // until goroutines that no request waits for have ended, too
			report.Left = runtime.NumGoroutine()
			if report.Left <= report.Idle+clientRoutines {
				break
			}
			<-time.After(20 * time.Millisecond)
		}
		report.Down, report.Up = down.Load(), up.Load()
		report.Stall = <-stalled
		return report, nil
	},
}

// stalls measures until stop how late a sleeping goroutine runs again, as a measure of
// how late the machine runs all of them.
func stalls(stop <-chan struct{}) <-chan time.Duration {
	longest := make(chan time.Duration, 1)
	go func() {
		const nap = 5 * time.Millisecond
		most := time.Duration(0)
		for {
			begin := time.Now()
			select {
			case <-stop:
				longest <- most
				return
			case <-time.After(nap):
			}
			most = max(most, time.Since(begin)-nap)
		}
	}()
	return longest
}

// A cut is a way in which the store goes down under load.
type cut struct {
	nodes   func(t *testing.T) []*server.Server
	cut     func(t *testing.T, nodes []*server.Server)
	mend    func(t *testing.T, nodes []*server.Server)
	away    time.Duration // the least time between them
	forgets bool          // the store forgets which units were used before
}

// The store goes down under load, and comes back up. Every request ends in time, with a
// response or a refusal. The requests that the store counts stay within the limit; those
// that it does not count stay within each process's share, and are marked. When the
// store is up again, the processes use it again.
func TestCutInTheMiddle(t *testing.T) {
	t.Parallel()
	one := func(t *testing.T) []*server.Server { return []*server.Server{server.Start(t)} }
	for name, c := range map[string]cut{
		"stopped, and started empty": {
			nodes: one,
			cut:   func(t *testing.T, nodes []*server.Server) { nodes[0].CLI(t, "shutdown", "nosave"); nodes[0].Kill() },
			mend:  func(t *testing.T, nodes []*server.Server) { nodes[0].Restart(t) },
			away:  3 * time.Second, forgets: true,
		},
		"frozen": {
			nodes: one,
			cut:   func(t *testing.T, nodes []*server.Server) { nodes[0].Signal(t, syscall.SIGSTOP) },
			mend:  func(t *testing.T, nodes []*server.Server) { nodes[0].Signal(t, syscall.SIGCONT) },
			away:  5 * time.Second,
		},
		"failed over": {
			nodes: func(t *testing.T) []*server.Server { return server.Cluster(t, 1) },
			cut:   func(t *testing.T, nodes []*server.Server) { master(t, nodes, "cut:").Kill() },
			mend:  func(*testing.T, []*server.Server) {},
			away:  2 * time.Second, forgets: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.run(t)
		})
	}
}

// master returns the node that has the keys with a prefix.
func master(t *testing.T, nodes []*server.Server, prefix string) *server.Server {
	for _, n := range nodes {
		if strings.HasPrefix(n.CLI(t, "role"), "master") && n.CLI(t, "keys", prefix+"*") != "" {
			return n
		}
	}
	t.Fatal("no node has the budgets")
	return nil
}

func (c cut) run(t *testing.T) {
	s := serve(t, nil)
	nodes := c.nodes(t)
	var all []*process
	for i := range loadSize {
		all = append(all, job{Role: "load", Name: fmt.Sprint(i), Addrs: server.Addrs(nodes), Prefix: "cut:", URL: s.URL}.start(t))
	}
	for _, p := range all {
		p.begin(t)
	}
	// seen reports whether n requests of each process have arrived since an instant, all
	// of them counted by the store or all of them not.
	seen := func(n int, since time.Time, away bool) bool {
		arrivals := only(s.arrivals(), func(a arrival) bool { return a.at.After(since) && a.away == away })
		for i := range loadSize {
			if len(only(arrivals, func(a arrival) bool { return a.from == fmt.Sprint(i) })) < n {
				return false
			}
		}
		return true
	}
	server.Await(t, "nothing starts", func() bool { return seen(loadLimit/loadSize, time.Time{}, false) })
	gone := time.Now()
	c.cut(t, nodes)
	<-time.After(c.away)
	server.Await(t, "nothing starts without the store", func() bool { return seen(3, gone, true) })
	back := time.Now()
	c.mend(t, nodes)
	// The store is up again when as many requests as two seconds admit start in a row,
	// all counted by the store.
	server.Await(t, "the store does not count as up", func() bool {
		last := back
		for _, a := range s.arrivals() {
			if a.away && a.at.After(last) {
				last = a.at
			}
		}
		return seen(loadLimit/loadSize/2, last, false) && len(only(s.arrivals(), func(a arrival) bool { return a.at.After(last) })) >= 2*loadLimit
	})
	for _, p := range all {
		p.in.Close()
	}
	byID := map[string]request{}
	var stall time.Duration
	for i, p := range all {
		var r loadReport
		p.end(t, &r)
		for _, q := range r.Requests {
			byID[q.ID] = q
		}
		stall = max(stall, r.Stall)
		r.check(t, i)
	}

	arrivals := s.arrivals()
	started := 0
	for _, r := range byID {
		started += r.Starts
	}
	if started != len(arrivals) {
		t.Errorf("%d starts were reported, and %d have arrived", started, len(arrivals))
	}
	away := func(a arrival) bool { return byID[a.id].Away }
	counted := only(arrivals, func(a arrival) bool { return !away(a) })
	most := loadLimit + loadSize*int(loadLimit*loadShare)
	if c.forgets { // like two stores
		border := gone.Add(time.Second)
		atMost(t, "counted before it went", loadLimit, only(counted, func(a arrival) bool { return a.at.Before(border) }))
		atMost(t, "counted once it was back", loadLimit, only(counted, func(a arrival) bool { return !a.at.Before(border) }))
		most += loadLimit
	} else {
		atMost(t, "counted", loadLimit, counted)
	}
	for i := range loadSize {
		atMost(t, fmt.Sprintf("not counted, of process %d", i), loadLimit*loadShare,
			only(arrivals, func(a arrival) bool { return away(a) && a.from == fmt.Sprint(i) }))
	}
	atMost(t, "all", most, arrivals)
	for _, a := range counted {
		if since := a.at.Sub(gone); since > 2500*time.Millisecond+stallsOf*stall && a.at.Before(back) {
			t.Errorf("after %v without a store, a start is reported as counted by it", since)
			break
		}
	}
	t.Logf("%d starts, %d without the store; away for %v; stalls of %v", len(arrivals), len(only(arrivals, away)), back.Sub(gone), stall)
}

// stallsOf is how many stalls of the machine may delay one request.
const stallsOf = 5

// check checks the report of a process.
func (r *loadReport) check(t *testing.T, i int) {
	slack := 500*time.Millisecond + stallsOf*r.Stall // for delays by the machine
	var longest time.Duration
	slow := 0
	for _, q := range r.Requests {
		over := q.Took - q.Budget
		if longest = max(longest, over); over > time.Second+stallsOf*r.Stall {
			slow++
		}
		if q.Err != "" || q.Refused != (q.Starts == 0) || q.Starts > 1 || over > 2*time.Second+slack {
			t.Errorf("a request of at most %v took %v, with %d starts, refused: %v, error: %s", q.Budget, q.Took, q.Starts, q.Refused, q.Err)
		}
	}
	if r.Down == 0 || r.Up == 0 {
		t.Errorf("process %d was notified %d times that the store is down, and %d times that it is up", i, r.Down, r.Up)
	}
	if slow > loadCallers {
		t.Errorf("process %d: %d requests have waited for the store in vain, want one of each caller at most", i, slow)
	}
	// One for each caller, and those that net/http needs for it.
	if most := r.Idle + 3*loadCallers + clientRoutines; r.Most > most || r.Left > r.Idle+clientRoutines {
		t.Errorf("process %d had %d goroutines, %d under load and %d after it", i, r.Idle, r.Most, r.Left)
	}
	t.Logf("process %d: %d requests, the longest %v over its budget; down %d, up %d; goroutines %d, %d, %d",
		i, len(r.Requests), longest, r.Down, r.Up, r.Idle, r.Most, r.Left)
}
