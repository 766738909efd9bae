// Package redis keeps Headway's budgets in Redis or Valkey, which a fleet shares:
// a single server, one behind Sentinel, or a Cluster.
//
//	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{"redis:6379"}})
//	…
//	budgets, err := redis.New(ctx, redis.Config{Client: client, Prefix: "headway:"})
//	…
//	transport, err := headway.NewTransport(nil, headway.Config{Policies: policies, Secret: secret, Store: budgets})
//
// All limits of a policy at a host are checked by one script in one round trip, and are
// charged together or not at all. The script counts like the in-memory limiters, to
// the nanosecond. Its clock is the server's, in microseconds. If that clock is set
// back, budgets in use recover later by as much; if it is set forward, earlier.
//
// A limit that a server announces is counted and corrected in the same round trips as
// the others, of whatever kind it is.
//
// A second round trip is needed when the limit of a budget changes, when a Calendar
// limit begins a new period, and always for periods of 52 days or more, announced ones
// and their resets included. The decision is then made in Go, and is written only if
// nothing has changed meanwhile. If programs that share a budget configure different
// limits, each request changes the budget's limit to its own, and units in use count
// under both.
//
// # The server
//
// The server is Redis 6 or later, or any Valkey, with maxmemory-policy noeviction: any
// other policy may evict a budget in use, which then begins again unused. An idle
// budget expires by itself. The user needs the commands PING, EVAL, EVALSHA, GET, SET,
// DEL and TIME on the keys that begin with the Prefix; SCAN and ROLE for Len; and
// RENAME and PEXPIRE to move damaged rows.
//
// A key of another type, or whose value is damaged, is renamed to the Prefix,
// "damaged:" and the rest of its name, where it expires after a week. The budget begins
// anew: see store.Result.Anew. If the user may not RENAME, the key stays, and
// operations that need it fail: see store.Result.Err. The same holds for a row that a
// newer version has written. In none of these cases does the store count as down.
//
// With a key of a few letters, a budget takes about 140 bytes of the server's memory
// under Sliding or Calendar, and 150 to 220 under Spaced or Bucket. Under Window it
// takes 130 bytes, 16 for each start that counts, and 24 for each in flight. A limit that
// is announced takes 500 bytes; a rolling one 16 more for each start that counts, up to
// 512 starts. The server rounds these up. Each decision under a Window writes all of its
// starts: if there are thousands, the other algorithms cost the server less.
//
// If the server loses writes, by a restart without persistence or by a failover before
// they reached the replica, at most as many units as were lost are admitted again.
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

// Config configures a Store.
type Config struct {
	// Client is the connection. It may be used for other purposes, too. The caller
	// closes it when the store is no longer used.
	Client rueidis.Client
	// Prefix begins all keys. Stores with the same prefix share their budgets. It must
	// not contain '{', by which a Cluster groups keys.
	Prefix string
	// Now is a clock for tests. With it, budgets do not expire by themselves: Len
	// deletes idle ones. Nil means the server's clock, which all processes share.
	Now func() time.Time
}

// A Store keeps budgets in a server or a Cluster. It is safe for concurrent use. Any
// number of Stores, in any number of processes, may use the same server.
type Store struct {
	cfg Config

	mu      sync.Mutex    // guards following fields
	seen    store.Instant // the latest time of the server's clock
	periods map[limiter.Limit]period
}

// A period is a period of a Calendar limit.
type period struct{ from, to store.Instant }

// New returns a Store after it has run the script on the server, within 10 s or until
// ctx ends. If that fails, the error says what the server lacks.
func New(ctx context.Context, cfg Config) (*Store, error) {
	switch {
	case cfg.Client == nil:
		return nil, errors.New("redis: Client is nil: want a client of rueidis.NewClient")
	case strings.Contains(cfg.Prefix, "{"):
		return nil, fmt.Errorf("redis: Prefix %q contains '{': leave it out, because a Cluster groups keys by it", cfg.Prefix)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	s := &Store{cfg: cfg, periods: map[limiter.Limit]period{}}
	// This budget has recovered as soon as it is written.
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

// Do implements store.Store: the script runs once for each group, and all runs are
// sent at once.
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

// clock returns the first argument of the script.
func (s *Store) clock() string {
	if s.cfg.Now == nil {
		return ""
	}
	return string(binary.BigEndian.AppendUint64(nil, uint64(s.cfg.Now().UnixNano())))
}

// A run is the keys and arguments of one run of the script.
type run struct{ keys, args []string }

// pipelined hides the deadline of a context, but not its end. At a deadline the client
// would close the connection, which other requests share, and it would ignore an
// earlier end of the context.
type pipelined struct{ context.Context }

func (pipelined) Deadline() (time.Time, bool) { return time.Time{}, false }

// await returns the result of do, or the context's error as soon as the context ends.
// The client ignores contexts while it connects: do then goes on in its goroutine,
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

// run executes runs of the script, and returns a reply for each.
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

// send sends the script's hash and its arguments. A server that does not know the
// script has done nothing, and receives the whole script then. In any other case a
// second request would count twice.
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

// The first element of a reply.
const (
	isRows    = 0
	isDone    = 1
	isChanged = 2
)

// finish returns the results of a call. If the script has raised RAW, finish decides
// by the rows and writes them, and starts over if they have changed meanwhile.
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
			if err := s.moveDamaged(ctx, c, rows, damaged, others); err != nil {
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

// How often damaged rows are moved within one call, and for how long they are kept.
const (
	mostTries   = 3
	keepDamaged = 7 * 24 * time.Hour
)

// moveDamaged renames damaged rows, if they have not changed. If a row cannot be moved,
// or is damaged again each time, the operations that need it fail.
func (s *Store) moveDamaged(ctx context.Context, c *call, rows rows, damaged, others []int) error {
	c.tries++
	var r run
	r.args = []string{s.clock(), "move"}
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
		r.keys = append(r.keys, c.keys[i], s.damagedKey(c.keys[i]))
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
	r.args = append(r.args, strconv.FormatInt(keepDamaged.Milliseconds(), 10))
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
		e.Err = fmt.Errorf("%w; it could not be moved: %s", e.Err, why)
		fail(e)
	}
	return nil
}

// damagedKey returns the key where a damaged row is kept, in the same slot. Len does not
// count it.
func (s *Store) damagedKey(key string) string {
	return s.cfg.Prefix + "damaged:" + strings.TrimPrefix(key, s.cfg.Prefix)
}

// put writes rows if none of them has changed, and reports whether one has.
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

// saw records the time of the server's clock.
func (s *Store) saw(now store.Instant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now > s.seen || now < s.seen-int64(time.Second) { // replies overtake each other; or the clock was set back
		s.seen = now
	}
}

// period returns the period of a Calendar limit that contains the latest time that was
// seen of the server's clock. The script knows no time zones: it raises RAW if its clock
// is not in that period.
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

// Len implements store.Store. It scans all keys of the server.
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

// glob escapes a prefix, for a pattern that matches it literally.
var glob = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

// forget deletes a row if it is idle by a test's clock, which the server does not know.
// It reports whether it was.
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
		return false, nil // a row that cannot be read counts as in use
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
