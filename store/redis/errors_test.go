package redis_test

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/store"
	"github.com/headway-go/headway/store/redis"
	"github.com/headway-go/headway/store/redis/internal/server"
	"github.com/redis/rueidis"
)

// What is wrong with a server is told when the store is made, with what to do.
func TestErrorsSayWhatToDo(t *testing.T) {
	plain := server.Start(t)
	full := server.Start(t, "--maxmemory", "1")
	primary := server.Start(t)
	_, port, _ := strings.Cut(primary.Addr, ":")
	replica := server.Start(t, "--replicaof", "127.0.0.1", port)
	secret := server.Start(t)
	secret.CLI(t, "acl", "setuser", "poor", "on", ">p", "~*", "+hello", "+client", "+ping", "+get")
	cluster := server.Cluster(t, 0)
	for name, tc := range map[string]struct {
		option rueidis.ClientOption
		says   string
	}{
		"full":       {rueidis.ClientOption{InitAddress: []string{full.Addr}}, "give it more maxmemory"},
		"replica":    {rueidis.ClientOption{InitAddress: []string{replica.Addr}}, "connect to the primary"},
		"permission": {rueidis.ClientOption{InitAddress: []string{secret.Addr}, Username: "poor", Password: "p"}, "let the user run PING, EVAL"},
		"cluster":    {rueidis.ClientOption{InitAddress: []string{cluster[0].Addr}, ForceSingleClient: true}, "without ForceSingleClient"},
	} {
		tc.option.DisableCache = true
		client, err := rueidis.NewClient(tc.option)
		if err != nil {
			t.Fatal(err)
		}
		// one of the groups is elsewhere
		_, err = redis.New(context.Background(), redis.Config{Client: client, Prefix: "a"})
		for _, group := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
			if err == nil {
				var s *redis.Store
				s, err = redis.New(context.Background(), redis.Config{Client: client, Prefix: "a"})
				if err == nil {
					op := take(limiter.PerMinute(1))
					op.Group = group
					_, err = s.Do(context.Background(), []store.Op{op})
				}
			}
		}
		if err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: got %v, want an error that says %q", name, err, tc.says)
		}
		client.Close()
	}

	client := connect(t, plain.Addr)
	for _, cfg := range []redis.Config{{}, {Client: client, Prefix: "a{"}} {
		if _, err := redis.New(context.Background(), cfg); err == nil {
			t.Errorf("%+v: got no error", cfg)
		}
	}
	s, err := redis.New(context.Background(), redis.Config{Client: client, Prefix: "x:"})
	if err != nil {
		t.Fatal(err)
	}
	plain.CLI(t, "lpush", "x:{g}0", "1")
	if _, err := s.Do(context.Background(), []store.Op{take(limiter.PerMinute(1))}); err == nil || !strings.Contains(err.Error(), "choose another Prefix") {
		t.Errorf("a key of another type: got %v", err)
	}
}

// Rows that are newer or damaged are errors, and stay as they are.
func TestRowsOfOthers(t *testing.T) {
	srv := server.Start(t)
	s := open(t, connect(t, srv.Addr), nil)
	do(t, s, take(limiter.PerMinute(5)))
	key := srv.CLI(t, "keys", "*")
	for text, want := range map[string]error{"\x02abc": redis.ErrNewer, "\x01abc": redis.ErrDamaged, "hello": redis.ErrNewer} {
		srv.CLI(t, "set", key, text)
		if _, err := s.Do(context.Background(), []store.Op{take(limiter.PerMinute(5))}); !errors.Is(err, want) {
			t.Errorf("%q: got %v, want %v", text, err, want)
		}
		if got := srv.CLI(t, "--raw", "get", key); got != text {
			t.Errorf("%q is %q now", text, got)
		}
	}
}

// Do ends when its context does, though the server says nothing and the deadline is
// far: on a connection that there is, and on one that has to be made.
func TestContextEndsWhileTheServerHangs(t *testing.T) {
	srv := server.Start(t)
	p := newProxy(t, srv.Addr)
	s := open(t, connect(t, p.addr), nil)
	srv.Signal(t, syscall.SIGSTOP)
	for range 5 {
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		time.AfterFunc(50*time.Millisecond, cancel)
		_, err := s.Do(ctx, []store.Op{take(limiter.PerMinute(1))})
		// The context ends it, or that the connection was cut; the client's own timeouts
		// would too, but much later.
		var timeout interface{ Timeout() bool }
		if err == nil || errors.As(err, &timeout) && timeout.Timeout() {
			t.Errorf("got %v, want that the context is over", err)
		}
		p.cut()
	}
	srv.Signal(t, syscall.SIGCONT)
	var res []store.Result
	server.Await(t, "the server is not found again", func() (ok bool) {
		var err error
		res, err = s.Do(context.Background(), []store.Op{take(limiter.PerMinute(50))})
		return err == nil
	})
	if !res[0].OK {
		t.Errorf("afterwards: got %+v, want it granted", res[0])
	}
}
