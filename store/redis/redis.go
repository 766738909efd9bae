// Package redis keeps Headway's budgets in Redis or Valkey, which a fleet shares:
// a single server, one behind Sentinel, or a Cluster.
//
//	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{"redis:6379"}})
//	…
//	budgets, err := redis.New(ctx, redis.Config{Client: client, Prefix: "headway:"})
//	…
//	transport, err := headway.NewTransport(nil, headway.Config{Policies: policies, Secret: secret, Store: budgets})
//
// What belongs to one policy at one host is decided by one script in one round
// trip, whole or not at all, however many limits it has. The script counts as the
// laws do, to the nanosecond, and the clock is the server's, in microseconds. Where
// that is set back, budgets in use come back that much later; where it is set
// forward, earlier.
//
// A second round trip is needed when a budget is put under another limit, when a
// Calendar limit begins a new period, and always for periods of 52 days or more.
// Then the answer comes from Go's laws, and is written only if nothing has changed
// meanwhile. While programs that share a budget differ in its limit, each puts it
// under its own; what is used counts under both.
//
// # The server
//
// It is Redis 6 or later, or any Valkey, with maxmemory-policy noeviction: another
// policy may evict budgets in use, as if nothing had been used of them. An idle
// budget expires by itself. The user needs the commands PING, EVAL, EVALSHA, GET,
// SET, DEL and TIME on the keys that begin with the Prefix; SCAN and ROLE for Len;
// and RENAME and PEXPIRE to set damaged rows aside.
//
// A key that holds another type, or bytes that are no row, is renamed to the Prefix,
// "damaged:" and the rest of its name, where it expires after a week, and the budget
// begins anew: see store.Result.Anew. Where the user lacks RENAME, the key stays, and
// what needs it fails: see store.Result.Err. A row of a newer version stays too. In no
// case does the store count as away.
//
// A budget takes about 140 bytes of its memory under Sliding or Calendar, with a key
// of a few letters, 150 to 220 under Spaced or Bucket, and under Window 130 and 16 for
// each start that counts, 24 where it is in flight; the server rounds that up. A
// Window's starts are written whole with each decision: where there are thousands of
// them, the other laws cost the server less.
//
// What the server forgets, by a restart without persistence or by a failover before
// a replica had heard of it, is as if it had not been used: at most that much again
// is admitted.
package redis

import (
	"context"
	"crypto/sha1"
	_ "embed"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/headway-go/headway/internal/storerow"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/store"
	"github.com/redis/rueidis"
)

// Config is what a Store is made with.
type Config struct {
	// Client is the connection. It stays the caller's, who may use it for other
	// things too, and closes it when the store is not used any more.
	Client rueidis.Client
	// Prefix is what all keys begin with. Stores of one prefix share their budgets.
	// It has no '{', which would tell a Cluster what belongs together.
	Prefix string
	// Now is a clock for tests; budgets then do not expire by themselves, but when
	// Len finds them idle. Nil is the server's clock, which all processes share.
	Now func() time.Time
}

// A Store is a server or a Cluster. Any number of goroutines may use it, and any
// number of Stores, in any number of processes, the same server.
type Store struct {
	cfg Config

	mu      sync.Mutex // guards following fields
	seen    store.Instant
	periods map[limiter.Limit]period
}

// A period is one of a calendar.
type period struct{ from, to store.Instant }

// New returns a Store, once the server has shown within 10 s, or what ctx leaves of
// them, that it is one that works. The error says what is missing.
func New(ctx context.Context, cfg Config) (*Store, error) {
	switch {
	case cfg.Client == nil:
		return nil, errors.New("redis: Client is nil: want one of rueidis.NewClient")
	case strings.Contains(cfg.Prefix, "{"):
		return nil, fmt.Errorf("redis: Prefix %q has a '{'; leave it out, since it tells a Cluster which keys belong together", cfg.Prefix)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	s := &Store{cfg: cfg, periods: map[limiter.Limit]period{}}
	// A budget that does not matter any more as soon as it is written.
	probe := store.Op{Kind: store.OpSpend, Needs: []store.Need{{Budget: "probe", Limit: limiter.Limit{N: 1, Per: 1}, Cost: 1}}}
	back := store.Op{Kind: store.OpSpend, Needs: []store.Need{{Budget: "probe", Limit: limiter.Limit{N: 1, Per: 1}, Cost: -1}}}
	if _, err := s.Do(ctx, []store.Op{probe}); err != nil {
		return nil, err
	}
	if _, err := s.Do(ctx, []store.Op{back}); err != nil {
		return nil, err
	}
	return s, nil
}

//go:embed script.lua
var script string

var scriptSHA = func() string {
	sum := sha1.Sum([]byte(script))
	return hex.EncodeToString(sum[:])
}()

// Do is that of store.Store: one run of the script for each group, all sent at
// once. A line is one of its group.
func (s *Store) Do(ctx context.Context, ops []store.Op) ([]store.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(ops) == 0 {
		return []store.Result{}, explain(s.ask(ctx, s.cfg.Client, s.cfg.Client.B().Ping().Build()).Error())
	}
	for i := range ops {
		if k := ops[i].Kind; k < store.OpTake || k > store.OpLearn {
			return nil, fmt.Errorf("redis: no operation has the kind %d", k)
		}
	}
	calls := s.split(ops)
	runs := make([]run, len(calls))
	for i, c := range calls {
		runs[i] = run{c.keys, c.args(s.clock())}
	}
	results := make([]store.Result, len(ops))
	for i, reply := range s.run(ctx, runs) {
		list, err := s.finish(ctx, calls[i], reply)
		if err != nil {
			return nil, explain(err)
		}
		calls[i].report(list)
		for j, place := range calls[i].place {
			results[place] = list[j]
		}
	}
	return results, nil
}

// clock is the first argument of the script.
func (s *Store) clock() string {
	if s.cfg.Now == nil {
		return ""
	}
	return string(binary.BigEndian.AppendUint64(nil, uint64(s.cfg.Now().UnixNano())))
}

// A run is the keys and arguments of one run of the script.
type run struct{ keys, args []string }

// pipelined is a context whose deadline is an end as any other. The client would
// tear down the connection at it, which others use too, and not look at whether the
// context ends before.
type pipelined struct{ context.Context }

func (pipelined) Deadline() (time.Time, bool) { return time.Time{}, false }

// await returns what do returns, or the context's error as soon as that is over. The
// client does not look at contexts while it makes a connection; do then goes on,
// until the client's Dialer gives up.
func await[T any](ctx context.Context, do func() T) (result T, err error) {
	done := make(chan T, 1)
	go func() { done <- do() }()
	select {
	case result = <-done:
		return result, nil
	case <-ctx.Done():
		return result, ctx.Err()
	}
}

// ask sends one command to a node.
func (s *Store) ask(ctx context.Context, node rueidis.Client, cmd rueidis.Completed) rueidis.RedisResult {
	result, err := await(ctx, func() rueidis.RedisResult { return node.Do(pipelined{ctx}, cmd) })
	if err != nil {
		return rueidis.NewErrorResult(err)
	}
	return result
}

// run runs the script, once for each of runs.
func (s *Store) run(ctx context.Context, runs []run) []rueidis.RedisResult {
	replies, err := await(ctx, func() []rueidis.RedisResult { return s.send(ctx, runs) })
	if err != nil {
		replies = make([]rueidis.RedisResult, len(runs))
		for i := range replies {
			replies[i] = rueidis.NewErrorResult(err)
		}
	}
	return replies
}

// send sends the script's name and arguments. A server that does not know it has done nothing, and gets it
// then. Nothing is ever sent again but that: it would count twice.
func (s *Store) send(ctx context.Context, runs []run) []rueidis.RedisResult {
	c := s.cfg.Client
	var cmds rueidis.Commands
	for _, r := range runs {
		cmds = append(cmds, c.B().Evalsha().Sha1(scriptSHA).Numkeys(int64(len(r.keys))).Key(r.keys...).Arg(r.args...).Build())
	}
	replies := c.DoMulti(pipelined{ctx}, cmds...)
	var unknown []int
	cmds = nil
	for i, reply := range replies {
		if err, ok := rueidis.IsRedisErr(reply.Error()); ok && err.IsNoScript() {
			r := runs[i]
			unknown = append(unknown, i)
			cmds = append(cmds, c.B().Eval().Script(script).Numkeys(int64(len(r.keys))).Key(r.keys...).Arg(r.args...).Build())
		}
	}
	if len(unknown) > 0 {
		for i, reply := range c.DoMulti(pipelined{ctx}, cmds...) {
			replies[unknown[i]] = reply
		}
	}
	return replies
}

// What the script says first.
const (
	isRows    = 0
	isDone    = 1
	isChanged = 2
)

// finish returns the results of a call. Where the script has left the decision to
// us, it is made, and put back; again, where others were faster.
func (s *Store) finish(ctx context.Context, c *call, reply rueidis.RedisResult) ([]store.Result, error) {
	for {
		list, err := reply.ToArray()
		if err != nil {
			return nil, err
		}
		fields := make([]string, len(list))
		var others []int // rows of another type
		for i := 1; i < len(list); i++ {
			if list[i].IsInt64() {
				others = append(others, i-2)
			} else if fields[i], err = list[i].ToString(); err != nil {
				return nil, err
			}
		}
		if len(list) < 2 || len(fields[1]) != 8 {
			return nil, errReply
		}
		now := int64(binary.BigEndian.Uint64([]byte(fields[1])))
		s.saw(now)
		kind, err := list[0].AsInt64()
		switch {
		case err != nil:
			return nil, err
		case kind == isDone && len(list) == 3:
			return c.decode(now, []byte(fields[2]), nil)
		case kind == isDone && len(list) == 4:
			return c.decode(now, []byte(fields[2]), []byte(fields[3]))
		case kind != isRows || len(list) != 2+len(c.keys):
			return nil, errReply
		}
		rows := c.rows()
		var damaged []int
		for i, n := range c.names {
			rows.was[n] = []byte(fields[2+i])
			if c.bad[n] == nil && (slices.Contains(others, i) || errors.Is(storerow.Check(rows.was[n]), ErrDamaged)) {
				damaged = append(damaged, i)
			}
		}
		if len(damaged) > 0 {
			if err := s.setAside(ctx, c, rows, damaged, others); err != nil {
				return nil, err
			}
			reply = s.run(ctx, []run{{c.keys, c.args(s.clock())}})[0]
			continue
		}
		results, err := store.Run(time.Unix(0, now), rows, c.ops)
		if err != nil || len(rows.put) == 0 {
			return results, err
		}
		if changed, err := s.put(ctx, c, rows); err != nil || !changed {
			return results, err
		}
		reply = s.run(ctx, []run{{c.keys, c.args(s.clock())}})[0]
	}
}

// How often a row is set aside within one call, and for how long it is kept.
const (
	mostTries = 3
	keepAside = 7 * 24 * time.Hour
)

// setAside moves damaged rows out of the way, if they are still the same. One that
// cannot be moved, or comes again and again, fails what needs it.
func (s *Store) setAside(ctx context.Context, c *call, rows rows, damaged, others []int) error {
	c.tries++
	var r run
	r.args = []string{s.clock(), "aside"}
	var errs []*store.RowError
	for _, i := range damaged {
		e := &store.RowError{Group: c.ops[0].Group, Name: c.names[i], Err: ErrDamaged}
		was := ""
		if slices.Contains(others, i) {
			e.Err = fmt.Errorf("%w: the key %s is of another type; choose another Prefix", ErrDamaged, c.keys[i])
		} else {
			sum := sha1.Sum(rows.was[c.names[i]])
			was = hex.EncodeToString(sum[:])
		}
		errs = append(errs, e)
		r.keys = append(r.keys, c.keys[i], s.asideKey(c.keys[i]))
		r.args = append(r.args, was)
	}
	fail := func(e *store.RowError) {
		if c.bad == nil {
			c.bad = map[string]*store.RowError{}
		}
		c.bad[e.Name] = e
	}
	if c.tries > mostTries {
		for _, e := range errs {
			fail(e)
		}
		return nil
	}
	r.args = append(r.args, strconv.FormatInt(keepAside.Milliseconds(), 10))
	list, err := s.run(ctx, []run{r})[0].ToArray()
	if err != nil {
		return err
	}
	if len(list) != len(errs) {
		return errReply
	}
	for i, e := range errs {
		if n, err := list[i].AsInt64(); err == nil {
			if e.Anew = n == 1; e.Anew {
				c.anew = append(c.anew, e)
			}
			continue
		}
		why, err := list[i].ToString()
		if err != nil {
			return err
		}
		e.Err = fmt.Errorf("%w; it could not be set aside: %s", e.Err, why)
		fail(e)
	}
	return nil
}

// asideKey is where a damaged row is kept. Its slot is that of the row, and Len does not
// count it.
func (s *Store) asideKey(key string) string {
	return s.cfg.Prefix + "damaged:" + strings.TrimPrefix(key, s.cfg.Prefix)
}

// put writes rows if none of them has changed; else it says so.
func (s *Store) put(ctx context.Context, c *call, rows rows) (changed bool, err error) {
	args := []string{s.clock(), ""}
	for _, n := range c.names {
		was := sha1.Sum(rows.was[n])
		row, expires := "-", int64(0) // not written
		if b, ok := rows.put[n]; ok {
			row, expires = string(b), rows.expires[n].UnixNano()
		}
		args = append(args, hex.EncodeToString(was[:]), string(binary.BigEndian.AppendUint64(nil, uint64(expires))), row)
	}
	list, err := s.run(ctx, []run{{c.keys, args}})[0].ToArray()
	if err != nil {
		return false, err
	}
	if len(list) != 1 {
		return false, errReply
	}
	kind, err := list[0].AsInt64()
	return kind == isChanged, err
}

// saw takes in what the store's clock shows.
func (s *Store) saw(now store.Instant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now > s.seen || now < s.seen-int64(time.Second) { // replies overtake each other; or the clock was set back
		s.seen = now
	}
}

// period returns the period of a Calendar limit that the store's clock was in when
// it was last seen. The script knows no time zones; where its clock is not in that
// period, it says so.
func (s *Store) period(l limiter.Limit) (from, to store.Instant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.N = 0 // whatever it is
	p := s.periods[l]
	if s.seen < p.from || s.seen >= p.to {
		p = period{s.seen, periodEnd(l, s.seen)}
		s.periods[l] = p
	}
	return p.from, p.to
}

// Len is that of store.Store. It looks at all keys of the server.
func (s *Store) Len(ctx context.Context) (int, error) {
	total := 0
	for _, node := range s.cfg.Client.Nodes() {
		n, err := s.lenOf(ctx, node)
		if err != nil {
			return 0, explain(err)
		}
		total += n
	}
	return total, nil
}

func (s *Store) lenOf(ctx context.Context, node rueidis.Client) (n int, err error) {
	role, err := s.ask(ctx, node, node.B().Role().Build()).ToArray()
	if err != nil {
		return 0, err
	}
	if name, err := role[0].ToString(); err != nil || name != "master" {
		return 0, err // a replica has the same keys again
	}
	seen := map[string]bool{} // a scan may show a key twice
	for cursor := uint64(0); ; {
		e, err := s.ask(ctx, node, node.B().Scan().Cursor(cursor).Match(glob.Replace(s.cfg.Prefix)+"{*").Count(1000).Build()).AsScanEntry()
		if err != nil {
			return 0, err
		}
		for _, key := range e.Elements {
			if seen[key] {
				continue
			}
			idle, err := s.forget(ctx, node, key)
			if err != nil {
				return 0, err
			}
			if !idle {
				seen[key] = true
			}
		}
		if cursor = e.Cursor; cursor == 0 {
			return len(seen), nil
		}
	}
}

// glob makes a prefix a pattern that matches just it.
var glob = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

// forget deletes a row that is idle by the clock of a test, and reports whether it
// was. The server knows only its own.
func (s *Store) forget(ctx context.Context, node rueidis.Client, key string) (idle bool, err error) {
	if s.cfg.Now == nil {
		return false, nil
	}
	row, err := s.ask(ctx, node, node.B().Get().Key(key).Build()).AsBytes()
	if refused, ok := rueidis.IsRedisErr(err); ok && strings.HasPrefix(refused.Error(), "WRONGTYPE") {
		return false, nil
	}
	if err != nil {
		return rueidis.IsRedisNil(err), ignoreNil(err)
	}
	expires, err := storerow.Expires(row)
	if err != nil || expires.After(s.cfg.Now()) {
		return false, nil // nobody knows when a row is idle that cannot be read
	}
	return true, s.ask(ctx, node, node.B().Del().Key(key).Build()).Error()
}

func ignoreNil(err error) error {
	if rueidis.IsRedisNil(err) {
		return nil
	}
	return err
}

var _ store.Store = (*Store)(nil)
