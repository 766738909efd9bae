package redis_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headway-go/headway/store"
	"github.com/headway-go/headway/store/redis"
	"github.com/headway-go/headway/store/redis/internal/server"
	"github.com/headway-go/headway/store/storetest"
	"github.com/redis/rueidis"
)

// connect returns a client of servers.
func connect(t testing.TB, addrs ...string) rueidis.Client {
	t.Helper()
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: addrs, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

var prefixes atomic.Int64

// prefix returns the prefix of the store that was opened last.
func prefix() string { return "test" + strconv.FormatInt(prefixes.Load(), 10) + ":" }

// open returns an empty store.
func open(t testing.TB, c rueidis.Client, now func() time.Time) *redis.Store {
	t.Helper()
	prefixes.Add(1)
	s, err := redis.New(context.Background(), redis.Config{Client: c, Prefix: prefix(), Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// topologies are the kinds of servers that the tests run over.
var topologies = map[string]func(testing.TB) []*server.Server{
	"server":  func(t testing.TB) []*server.Server { return []*server.Server{server.Start(t)} },
	"cluster": func(t testing.TB) []*server.Server { return server.Cluster(t, 0) },
}

func TestStore(t *testing.T) {
	for name, start := range topologies {
		t.Run(name, func(t *testing.T) {
			client := connect(t, server.Addrs(start(t))...)
			storetest.Run(t, func(t testing.TB, now func() time.Time) store.Store { return open(t, client, now) })
		})
	}
}
