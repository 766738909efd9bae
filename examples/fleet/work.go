package main

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/store/redis"
	"github.com/redis/rueidis"
)

// callers is how many goroutines of each process call the service continuously.
const callers = 10

// work is one process of the fleet: it calls the service at url as often as the
// budgets in the server at addr allow.
func work(addr, url string) error {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}})
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() {
		orphaned()
		cancel(nil)
	}()
	budgets, err := redis.New(ctx, redis.Config{Client: client, Prefix: "fleet:"})
	if err != nil {
		return err
	}
	transport, err := headway.NewTransport(base{&http.Transport{MaxIdleConnsPerHost: callers}}, headway.Config{
		Store:    budgets,
		Secret:   []byte("the same in every process"), // in production, from the environment
		Observer: headway.ObserverFunc(observe),
		Policies: []headway.Policy{{
			Hosts:  []string{"*"},
			Limits: []limiter.Limit{{N: limit, Per: time.Second, Strict: true}},
			Store: headway.StorePolicy{
				Down:  headway.StoreDownLocal, // the default
				Share: 1.0 / processes,
			},
		}},
	})
	if err != nil {
		return err
	}
	if err := call(ctx, http.DefaultClient, url+ready); err != nil {
		return err
	}
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for ctx.Err() == nil {
				if err := call(ctx, &http.Client{Transport: transport}, url); err != nil {
					cancel(err) // no effect after the end
				}
			}
		})
	}
	all.Wait()
	if err := context.Cause(ctx); err != context.Canceled {
		return err
	}
	return nil
}

// call makes one request. The Transport reads the response.
func call(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(context.WithValue(ctx, awayKey{}, new(bool)), http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close() // it is empty
}

// awayKey is the context's key for whether a request was started without the store.
type awayKey struct{}

// observe is the Observer. It is called in the request's goroutine, before base.
func observe(ctx context.Context, e headway.Event) {
	if e.Kind == headway.EventStart {
		*ctx.Value(awayKey{}).(*bool) = e.Away
	}
}

// base marks the requests that were started without the store, for the service's
// statistics.
type base struct{ http.RoundTripper }

func (b base) RoundTrip(req *http.Request) (*http.Response, error) {
	if *req.Context().Value(awayKey{}).(*bool) {
		req = req.Clone(req.Context())
		req.Header.Set("Away", "true")
	}
	return b.RoundTripper.RoundTrip(req)
}
