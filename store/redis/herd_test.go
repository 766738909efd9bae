package redis_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/store/redis/internal/server"
)

const (
	herdLimit = 40
	herdSize  = 8
)

// In a herd, each process has requests for more than the whole limit in line, and all
// together ten times the limit.
var herd = role{
	headway.Policy{
		Store:  headway.StorePolicy{Down: headway.StoreDownRefuse},
		Limits: []limiter.Limit{{N: herdLimit, Per: time.Second, Strict: true}},
	},
	func(j job, t *headway.Transport, stop <-chan struct{}) (any, error) {
		client := &http.Client{Transport: t}
		ctx, cancel := context.WithCancel(context.Background()) // not a deadline, which would refuse requests early
		time.AfterFunc(j.For, cancel)
		failed := make(chan error, 1)
		var report herdReport
		var mu sync.Mutex // guards report
		var all sync.WaitGroup
		for range herdLimit * 10 / herdSize {
			all.Go(func() {
				for ctx.Err() == nil {
					var r request
					err := j.send(context.WithValue(ctx, requestKey{}, &r), client, "")
					if err != nil && ctx.Err() == nil {
						select {
						case failed <- err:
						default:
						}
						return
					}
					if err == nil {
						mu.Lock()
						report.Requests++
						report.Flights += time.Since(r.started)
						mu.Unlock()
					}
				}
			})
		}
		all.Wait()
		select {
		case err := <-failed:
			return nil, err
		default:
			return report, nil
		}
	},
}

// A herdReport has the total time that a process's requests were in flight.
type herdReport struct {
	Requests int
	Flights  time.Duration
}

// Eight processes on one server request ten times the limit together. By the service's
// own clock, no second has more than the limit, the limit is used, no request that should
// wait is refused, and no process receives less than half its share.
//
// That no second has more holds on any machine. The use of the limit and the shares are
// measured again if the machine was busy with other work.
func TestEightProcesses(t *testing.T) {
	t.Parallel()
	length := 12 * time.Second
	if testing.Short() {
		length = 6 * time.Second
	}
	var err error
	for range 5 {
		if err = eight(t, length); err == nil {
			return
		}
		t.Log(err)
	}
	t.Errorf("%v, each time", err)
}

// eight runs the processes, and returns an error if all of them or one of them used too
// little of the limit.
func eight(t *testing.T, length time.Duration) error {
	s := serve(t, nil)
	addrs := []string{server.Start(t).Addr}
	var all []*process
	for i := range herdSize {
		all = append(all, job{Role: "herd", Name: strconv.Itoa(i), Addrs: addrs, Prefix: "herd:", URL: s.URL, For: length}.start(t))
	}
	for _, p := range all {
		p.begin(t)
	}
	var sum herdReport
	for _, p := range all {
		var r herdReport
		p.end(t, &r)
		sum.Requests += r.Requests
		sum.Flights += r.Flights
	}
	arrivals := s.arrivals()
	atMost(t, "all", herdLimit, arrivals)
	// A unit of a strict limit is in use for its period and for the time that its request
	// is in flight. The round trips to the store that release and take it last as long again.
	cycle := time.Second + 3*sum.Flights/time.Duration(max(1, sum.Requests))
	admits := int(herdLimit * length / cycle)
	// The first period goes to the processes that start first.
	later := only(arrivals, func(a arrival) bool { return a.at.Sub(arrivals[0].at) > 2*time.Second })
	var shares []int
	for i := range herdSize {
		shares = append(shares, len(only(later, func(a arrival) bool { return a.from == strconv.Itoa(i) })))
	}
	got := fmt.Sprintf("%d arrivals of %d, of processes %v", len(arrivals), admits, shares)
	if len(arrivals) < admits*85/100 {
		return fmt.Errorf("%s: want at least 85%%", got)
	}
	if slices.Min(shares) < len(later)/herdSize/2 {
		return fmt.Errorf("%s: want at least half of an eighth each", got)
	}
	t.Log(got)
	return nil
}
