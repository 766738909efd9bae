package redis_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/store"
	"github.com/headway-go/headway/store/redis"
	"github.com/headway-go/headway/store/redis/internal/server"
	"github.com/headway-go/headway/store/storetest"
	"github.com/redis/rueidis"
)

// New returns what is wrong with a server, with advice.
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
	if res := do(t, s, take(limiter.PerMinute(1)))[0]; !res.OK || len(res.Anew) != 1 || !strings.Contains(res.Anew[0].Error(), "choose another Prefix") {
		t.Errorf("a key of another type: got %+v", res)
	}
}

// Rows that cannot be read are handled as by every store, on a server and on a Cluster.
func TestRows(t *testing.T) {
	for name, start := range topologies {
		t.Run(name, func(t *testing.T) {
			c := connect(t, server.Addrs(start(t))...)
			storetest.RunUnreadable(t, func(t testing.TB, now func() time.Time) (store.Store, func(string, string, []byte), func(string, string) []byte) {
				prefix := "rows" + strconv.FormatInt(prefixes.Add(1), 10) + ":"
				s, err := redis.New(t.Context(), redis.Config{Client: c, Prefix: prefix, Now: now})
				if err != nil {
					t.Fatal(err)
				}
				key := func(group, name string) string { return prefix + "{" + group + "}" + name }
				put := func(group, name string, row []byte) {
					cmd := c.B().Del().Key(key(group, name)).Build()
					if row != nil {
						cmd = c.B().Set().Key(key(group, name)).Value(string(row)).Build()
					}
					if err := c.Do(t.Context(), cmd).Error(); err != nil {
						t.Fatal(err)
					}
				}
				get := func(group, name string) []byte {
					row, _ := c.Do(t.Context(), c.B().Get().Key(key(group, name)).Build()).AsBytes()
					return row
				}
				return s, put, get
			})
		})
	}
}

// Damaged rows of any type are kept elsewhere, and do not count as budgets.
func TestDamagedRowsAreMoved(t *testing.T) {
	srv := server.Start(t)
	s, err := redis.New(t.Context(), redis.Config{Client: connect(t, srv.Addr), Prefix: "x:"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ make, look, want string }{
		{"set x:{g}0 hello", "get x:damaged:{g}0", "hello"},
		{"lpush x:{g}0 a", "lrange x:damaged:{g}0 0 -1", "a"},
		{"hset x:{g}0 f v", "hget x:damaged:{g}0 f", "v"},
		{"xadd x:{g}0 1-1 f v", "type x:damaged:{g}0", "stream"},
		{"setrange x:{g}0 9 z", "getrange x:damaged:{g}0 9 9", "z"},
	} {
		srv.CLI(t, "del", "x:{g}0")
		srv.CLI(t, append([]string{"--raw"}, strings.Fields(tc.make)...)...)
		other := take(limiter.PerMinute(5))
		other.Group = "h"
		res := do(t, s, other, take(limiter.PerMinute(5)), other)
		if !res[1].OK || res[1].Remaining[0] != 4 || len(res[1].Anew) != 1 || res[0].Anew != nil || res[2].Anew != nil {
			t.Errorf("%s: got %+v, want the second granted and anew", tc.make, res)
		}
		if got := srv.CLI(t, append([]string{"--raw"}, strings.Fields(tc.look)...)...); got != tc.want {
			t.Errorf("%s: %q is kept, want %q", tc.make, got, tc.want)
		}
		if ttl := srv.CLI(t, "--raw", "ttl", "x:damaged:{g}0"); ttl != "604800" && ttl != "604799" {
			t.Errorf("%s: it is kept for %s s, want a week", tc.make, ttl)
		}
		if n, err := s.Len(t.Context()); n != 2 || err != nil {
			t.Errorf("%s: %d budgets, %v; want 2", tc.make, n, err)
		}
		srv.CLI(t, "del", "x:{h}0")
	}
}

// If the user may not rename, the row stays, and operations that need it fail. All other
// operations work.
func TestRowThatCannotBeMoved(t *testing.T) {
	srv := server.Start(t)
	srv.CLI(t, "acl", "setuser", "poor", "on", ">p", "~*", "+hello", "+client", "+ping", "+get", "+set", "+del", "+time", "+eval", "+evalsha")
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{srv.Addr}, DisableCache: true, Username: "poor", Password: "p"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	s, err := redis.New(t.Context(), redis.Config{Client: c, Prefix: "x:"})
	if err != nil {
		t.Fatal(err)
	}
	good := take(limiter.PerMinute(50))
	good.Needs[0].Budget = "good"
	far := take(limiter.PerHour(1_000_000)) // the script leaves the decision to Go
	far.Needs[0].Limit.Per = 365 * 24 * time.Hour
	far.Needs[0].Budget = "far"
	for _, make := range []string{"set x:{g}0 hello", "rpush x:{g}0 a"} {
		srv.CLI(t, "del", "x:{g}0")
		srv.CLI(t, strings.Fields(make)...)
		for _, beside := range []store.Op{good, far} {
			res := do(t, s, beside, take(limiter.PerMinute(5)), beside)
			if e := res[1].Err; !res[0].OK || !res[2].OK || !errors.Is(e, redis.ErrDamaged) || !strings.Contains(e.Error(), "could not be moved") {
				t.Errorf("%s: got %+v, want the second alone to fail", make, res)
			}
		}
		if n := srv.CLI(t, "--raw", "exists", "x:{g}0"); n != "1" {
			t.Errorf("%s: the key is gone", make)
		}
	}
}

// Rows of a newer version are errors, and stay as they are.
func TestRowsOfOthers(t *testing.T) {
	srv := server.Start(t)
	s := open(t, connect(t, srv.Addr), nil)
	do(t, s, take(limiter.PerMinute(5)))
	key := srv.CLI(t, "keys", "*")
	for _, text := range []string{"\x02abc", "\x1f"} {
		srv.CLI(t, "set", key, text)
		if res := do(t, s, take(limiter.PerMinute(5)))[0]; !errors.Is(res.Err, redis.ErrNewer) || res.OK {
			t.Errorf("%q: got %+v, want %v", text, res, redis.ErrNewer)
		}
		if got := srv.CLI(t, "--raw", "get", key); got != text {
			t.Errorf("%q is %q now", text, got)
		}
	}
}

// Do ends when its context does, even if the server is silent and the deadline is far:
// on an open connection, and while connecting.
func TestContextEndsWhileTheServerHangs(t *testing.T) {
	srv := server.Start(t)
	p := newProxy(t, srv.Addr)
	s := open(t, connect(t, p.addr), nil)
	srv.Signal(t, syscall.SIGSTOP)
	for range 5 {
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		time.AfterFunc(50*time.Millisecond, cancel)
		_, err := s.Do(ctx, []store.Op{take(limiter.PerMinute(1))})
		// Either the end of the context or the cut connection ends Do; the client's own
		// timeouts would end it much later.
		var timeout interface{ Timeout() bool }
		if err == nil || errors.As(err, &timeout) && timeout.Timeout() {
			t.Errorf("got %v, want that the context is over", err)
		}
		p.cut()
	}
	srv.Signal(t, syscall.SIGCONT)
	var res []store.Result
	server.Await(t, "the server is not reached again", func() (ok bool) {
		var err error
		res, err = s.Do(context.Background(), []store.Op{take(limiter.PerMinute(50))})
		return err == nil
	})
	if !res[0].OK {
		t.Errorf("afterwards: got %+v, want it granted", res[0])
	}
}
