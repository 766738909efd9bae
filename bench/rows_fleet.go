package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	loop "net"
	"os/exec"
	"sync"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/store/redis"
	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
)

var lifeline io.Closer // the server lives as long as this is open; nil: no server

// stopServer ends the server, if one was started.
func stopServer() {
	if lifeline != nil {
		lifeline.Close()
	}
}

// errNoRedis says what to install.
var errNoRedis = errors.New("redis-server is missing: install it (apt-get install redis-server)")

// redisServer starts one redis-server for all rows, on a free port of the loopback, and
// returns its address. It ends with this process.
var redisServer = sync.OnceValues(func() (string, error) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		return "", errNoRedis
	}
	l := must(loop.Listen("tcp", "127.0.0.1:0"))
	addr := l.Addr().String()
	l.Close()
	_, port, _ := loop.SplitHostPort(addr)
	// The shell reads a pipe of this process, and kills the server when the pipe ends.
	cmd := exec.Command("sh", "-c", `redis-server --bind 127.0.0.1 --port "$0" --save "" --appendonly no >&2 & cat; kill $!`, port)
	lifeline = must(cmd.StdinPipe())
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("redis-server does not start: %w", err)
	}
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if c, err := loop.Dial("tcp", addr); err == nil {
			c.Close()
			return addr, nil
		}
		if time.Now().After(end) {
			return "", errors.New("redis-server does not respond within 30 s")
		}
	}
})

// redisReady is the ready function of rows over Redis.
func redisReady() error {
	_, err := redisServer()
	return err
}

var rueidisClient = sync.OnceValue(func() rueidis.Client {
	return must(rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{must(redisServer())}, DisableCache: true}))
})

// byCallers makes n decisions, by the given number of goroutines at once.
func byCallers(callers int, prepare func() func(context.Context) error) func(*options) func() []float64 {
	return func(o *options) func() []float64 {
		decide, ctx := prepare(), context.Background()
		op := func(n int) {
			var all workers
			for i := range callers {
				all.Go(func() {
					for range (n + callers - 1 - i) / callers {
						if err := decide(ctx); err != nil {
							panic(err)
						}
					}
				})
			}
			all.Wait()
		}
		n := calibrate(op, o.each, sinceStart)
		return func() []float64 {
			ns, allocs, _ := perOperation(op, n, sinceStart)
			return []float64{ns, allocs}
		}
	}
}

// A script that counts is the least work of a limiter in Redis.
func bareScript() func(context.Context) error {
	c := rueidisClient()
	count := rueidis.NewLuaScript(`local n = redis.call('INCR', KEYS[1]) if n == 1 then redis.call('PEXPIRE', KEYS[1], 1000) end return n`)
	return func(ctx context.Context) error { return count.Exec(ctx, c, []string{"bare"}, nil).Error() }
}

func overRedis(name string, lease int) func() func(context.Context) error {
	return func() func(context.Context) error {
		s := must(redis.New(context.Background(), redis.Config{Client: rueidisClient(), Prefix: name + ":"}))
		q := must(headway.OpenQuota(headway.Config{Store: s, Secret: []byte("s"), Policies: []headway.Policy{{
			Hosts: []string{"*"}, Store: headway.StorePolicy{Batch: lease},
			Rules: []headway.Rule{{Name: "r", Limit: limiter.Limit{N: ample, Per: time.Second, Law: limiter.Bucket}}},
		}}}, "api.test", "r", ""))
		return func(ctx context.Context) error { return q.Wait(ctx, 1) }
	}
}

func redisRate() func(context.Context) error {
	l := redis_rate.NewLimiter(goredis.NewClient(&goredis.Options{Addr: must(redisServer()), PoolSize: 64}))
	limit := redis_rate.Limit{Rate: ample, Burst: ample, Period: time.Second}
	return func(ctx context.Context) error {
		_, err := l.Allow(ctx, "rate", limit)
		return err
	}
}

// fleetRows measure decisions in a Redis server.
func fleetRows() (rows []row) {
	for _, callers := range []int{1, 64} {
		rows = append(rows, row{
			name: fmt.Sprintf("fleet/%d callers", callers), procs: 2, metrics: perOp, ready: redisReady,
			about: fmt.Sprintf("Quota.Wait over store/redis, always admitted, by %d goroutines of one process, over a real redis-server on the loopback "+
				"that shares the two processors. The floor is a script that increments a counter, by the same client. Time by the clock.", callers),
			subjects: []subject{
				{"floor: a counting script, rueidis", floor, byCallers(callers, bareScript)},
				{"Headway", ours, byCallers(callers, overRedis(fmt.Sprint("a", callers), 0))},
				{"Headway, Batch 1000", ours, byCallers(callers, overRedis(fmt.Sprint("b", callers), 1000))},
				{"redis_rate Allow", peer, byCallers(callers, redisRate)},
			},
			goals: []goal{
				{"Headway", "ns", "redis_rate Allow", 1},
				{"Headway, Batch 1000", "ns", "redis_rate Allow", 0.1},
			},
		})
	}
	return rows
}
