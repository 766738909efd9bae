package redis_test

import (
	"context"
	"net/http"
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

// A herd wants all that it can get: each process has requests for more than the
// whole limit in line, ten times the limit together.
var herd = role{
	headway.Policy{
		StoreDown: headway.StoreDownRefuse,
		Limits:    []limiter.Limit{{N: herdLimit, Per: time.Second, Strict: true}},
	},
	func(j job, t *headway.Transport, stop <-chan struct{}) (any, error) {
		client := &http.Client{Transport: t}
		ctx, cancel := context.WithCancel(context.Background()) // not a deadline: nobody waits for one in vain
		time.AfterFunc(j.For, cancel)
		failed := make(chan error, 1)
		var all sync.WaitGroup
		for range herdLimit * 10 / herdSize {
			all.Go(func() {
				for ctx.Err() == nil {
					if err := j.send(ctx, client, ""); err != nil && ctx.Err() == nil {
						select {
						case failed <- err:
						default:
						}
						return
					}
				}
			})
		}
		all.Wait()
		select {
		case err := <-failed:
			return nil, err
		default:
			return nil, nil
		}
	},
}

// Eight processes on one server, which want ten times the limit together: by the
// service's own clock no second has more than the limit, the limit is used, nobody
// who should wait is refused, and no process gets less than half its share.
func TestEightProcesses(t *testing.T) {
	t.Parallel()
	length := 30 * time.Second
	if testing.Short() {
		length = 6 * time.Second
	}
	s := serve(t, nil)
	addrs := []string{server.Start(t).Addr}
	var all []*process
	for i := range herdSize {
		all = append(all, job{Role: "herd", Name: strconv.Itoa(i), Addrs: addrs, Prefix: "herd:", URL: s.URL, For: length}.start(t))
	}
	for _, p := range all {
		p.begin(t)
	}
	for _, p := range all {
		var none any
		p.end(t, &none)
	}
	arrivals := s.arrivals()
	atMost(t, "all", herdLimit, arrivals)
	admits := herdLimit * int(length/time.Second)
	if len(arrivals) < admits*85/100 {
		t.Errorf("%d arrivals, want at least 85%% of the %d that the limit admits", len(arrivals), admits)
	}
	var shares []int
	for i := range herdSize {
		n := len(only(arrivals, func(a arrival) bool { return a.from == strconv.Itoa(i) }))
		if shares = append(shares, n); n < len(arrivals)/herdSize/2 {
			t.Errorf("process %d has had %d of %d, want at least half of an eighth", i, n, len(arrivals))
		}
	}
	t.Logf("%d arrivals of %d: %v", len(arrivals), admits, shares)
}
