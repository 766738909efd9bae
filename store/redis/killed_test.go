package redis_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/store"
	"github.com/headway-go/headway/store/redis/internal/server"
)

const (
	strictLimit = 10
	strictHeld  = 6

	leasedLimit = 20
	leasedPer   = 6 * time.Second
	leasedSize  = 10
)

var strictHolder = role{
	headway.Policy{
		Store:  headway.StorePolicy{Down: headway.StoreDownRefuse},
		Limits: []limiter.Limit{{N: strictLimit, Per: time.Second, Strict: true}},
	},
	hold(strictHeld),
}

var leasedHolder = role{
	headway.Policy{
		Store: headway.StorePolicy{Down: headway.StoreDownRefuse, Batch: leasedSize},
		Rules: []headway.Rule{{Name: "leased", Limit: limiter.Limit{N: leasedLimit, Per: leasedPer}}},
	},
	hold(1),
}

// hold returns a function that sends n requests and then does nothing.
func hold(n int) func(job, *headway.Transport, <-chan struct{}) (any, error) {
	return func(j job, t *headway.Transport, stop <-chan struct{}) (any, error) {
		for range n {
			go j.send(context.Background(), &http.Client{Transport: t}, "")
		}
		<-stop
		return nil, errors.New("it was not killed")
	}
}

// holder has a process send n requests, which receive no response, and kills it. It
// returns the instants between which the requests were sent.
func holder(t *testing.T, j job, s *service, n int) (from, to time.Time) {
	t.Helper()
	j.Name = "holder"
	p := j.start(t)
	from = time.Now()
	p.begin(t)
	server.Await(t, "the holder's requests do not arrive", func() bool { return len(s.arrivals()) >= n })
	p.kill()
	return from, s.arrivals()[n-1].at
}

// holdsOn leaves the holder's requests without a response.
func holdsOn(_ http.ResponseWriter, req *http.Request) {
	if req.Header.Get("From") == "holder" {
		<-req.Context().Done()
	}
}

// Units that a killed process had in flight or reserved are not given to other processes
// until the documented time has passed; then they are.
func TestKilledWhileHolding(t *testing.T) {
	t.Parallel()
	// Units in flight return one period after the end of their lease.
	t.Run("strict", func(t *testing.T) {
		t.Parallel()
		s := serve(t, holdsOn)
		j := job{Role: "strict", Name: "other", Addrs: []string{server.Start(t).Addr}, Prefix: "strict:", URL: s.URL}
		tr, clean, err := j.open()
		if err != nil {
			t.Fatal(err)
		}
		defer clean()
		from, _ := holder(t, j, s, strictHeld)
		back := store.StrictLease + time.Second
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var all sync.WaitGroup
		for range 2 * strictLimit {
			all.Go(func() {
				for ctx.Err() == nil {
					if err := j.send(ctx, &http.Client{Transport: tr}, ""); err != nil && ctx.Err() == nil {
						t.Error(err)
						return
					}
				}
			})
		}
		others := func() []arrival { return only(s.arrivals(), func(a arrival) bool { return a.from == "other" }) }
		// All units are free again when one second has more starts than are free during the lease.
		free := func(all []arrival) bool {
			const n = strictLimit - 1
			return len(all) > n && all[len(all)-1].at.Sub(all[len(all)-1-n].at) < time.Second
		}
		server.Await(t, "the units in flight do not return", func() bool { return free(others()) })
		cancel()
		all.Wait()
		held := only(others(), func(a arrival) bool { return a.at.Before(from.Add(back)) })
		atMost(t, "while some are held", strictLimit-strictHeld, held)
		if want := 5 * (strictLimit - strictHeld); len(held) < want { // all free units, several times
			t.Errorf("%d arrivals in the lease, want at least %d", len(held), want)
		}
		atMost(t, "all", strictLimit, others())
		t.Logf("%d arrivals in %v", len(held), back)
	})
	// Reserved units count as used at the last instant at which the process may use them.
	t.Run("leased", func(t *testing.T) {
		t.Parallel()
		s := serve(t, holdsOn)
		j := job{Role: "leased", Name: "other", Addrs: []string{server.Start(t).Addr}, Prefix: "leased:", URL: s.URL}
		tr, clean, err := j.open()
		if err != nil {
			t.Fatal(err)
		}
		defer clean()
		from, to := holder(t, j, s, 1)
		q, err := tr.Quota(s.Listener.Addr().String(), "leased", "")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		var refused *headway.ThrottledError
		taken, away := 0, 0 // away: the result of the operation is unknown
		for {
			err := q.Wait(headway.WithCall(ctx, headway.Call{MaxWait: headway.NoWait}), 1)
			if err == nil {
				taken++
			} else if errors.As(err, &refused) && refused.Reason == limiter.ReasonStore {
				away++
				<-time.After(10 * time.Millisecond)
			} else {
				break
			}
		}
		last := time.Now()
		if most := leasedLimit - leasedSize; taken > most || taken < most-away {
			t.Errorf("%d have started beside a lease of %d, of %d", taken, leasedSize, leasedLimit)
		}
		back := store.UseWithin + leasedPer
		latest := to.Add(back)
		if own := last.Add(leasedPer); own.After(latest) {
			latest = own
		}
		// The reported wait is first a lower bound, because reserved units may stay unused,
		// and then exact. It lies between two readings of the clock. On a busy machine, the
		// first report may be that all units are free.
		server.Await(t, "the reserved units do not count as used", func() bool {
			before := time.Now()
			err = q.Wait(headway.WithCall(ctx, headway.Call{MaxWait: headway.NoWait}), leasedLimit)
			after := time.Now()
			if !errors.As(err, &refused) || refused.Reason == limiter.ReasonStore {
				return err == nil
			}
			if reported := before.Add(refused.RetryAfter); reported.After(latest.Add(time.Millisecond)) {
				t.Errorf("all units are reported to return %v after the first start, want %v at most", reported.Sub(from), latest.Sub(from))
			}
			return !after.Add(refused.RetryAfter).Before(from.Add(back))
		})
		if err != nil {
			if err := q.Wait(ctx, leasedLimit); err != nil {
				t.Fatal(err)
			}
		}
		if now := time.Now(); now.Before(from.Add(back)) {
			t.Errorf("all units returned after %v, want %v", now.Sub(from), back)
		}
	})
}
