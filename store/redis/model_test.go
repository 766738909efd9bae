package redis_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/store"
	"github.com/headway-go/headway/store/redis/internal/server"
	"github.com/redis/rueidis"
)

// counted counts round trips.
type counted struct {
	rueidis.Client
	trips atomic.Int64
}

func (c *counted) DoMulti(ctx context.Context, multi ...rueidis.Completed) []rueidis.RedisResult {
	c.trips.Add(1)
	return c.Client.DoMulti(ctx, multi...)
}

// A model draws operations at random.
type model struct {
	*rand.Rand
	now     time.Time
	in      []limiter.Limit // the limit of each budget
	cost    int64           // the largest cost
	granted []grant
	due     store.Instant
	groups  int
	back    bool // sometimes the clock is set back
	wild    bool // servers announce anything
	rows    bool // the rows are compared too
	servers []*announcer
}

// newModel returns a model of one seed. It draws a few of limits for its budgets.
func newModel(seed uint64, groups int, limits []limiter.Limit) *model {
	m := &model{Rand: rand.New(rand.NewPCG(seed, 1)), now: time.Date(2026, 3, 28, 22, 0, 0, 0, time.UTC), groups: groups}
	for range 4 {
		m.in = append(m.in, limits[m.IntN(len(limits))])
	}
	return m
}

// A grant is an operation that has taken its needs, and its result.
type grant struct {
	store.Op
	store.Result
}

func (m *model) needs() (list []store.Need) {
	for i, l := range m.in {
		if m.IntN(len(m.in)) <= 1 {
			list = append(list, store.Need{Budget: strconv.Itoa(i), Limit: l, Cost: m.Int64N(m.cost + 1)})
		}
	}
	return list
}

func (m *model) audiences() []string {
	return []string{"audience/" + strconv.Itoa(m.IntN(2)), "audience"}
}

// before returns an instant shortly before now, when a request started.
func (m *model) before() store.Instant { return m.now.UnixNano() - m.Int64N(int64(2*time.Second)) }

func (m *model) some(d time.Duration) time.Duration { return time.Duration(m.Int64N(int64(d) + 1)) }

func (m *model) op() store.Op {
	op := store.Op{Group: "g" + strconv.Itoa(m.IntN(m.groups)), ID: m.Uint64() | 1, Audiences: m.audiences(), Needs: m.needs()}
	// an earlier request, or this one if there is none
	earlier := func() grant {
		if len(m.granted) == 0 {
			return grant{op, store.Result{At: m.before()}}
		}
		return m.granted[len(m.granted)-1-m.IntN(min(len(m.granted), 30))]
	}
	k := m.IntN(26)
	if m.servers != nil && m.IntN(3) == 0 {
		k = 18
	}
	switch {
	case k < 11:
		op.Kind = store.OpTake
		if line := m.IntN(3); line > 0 {
			op.Line = uint64(line) + uint64(op.Group[1])<<8 // a line is of one group
		}
		if m.IntN(2) == 0 {
			op.Due = m.due
		}
		if m.IntN(3) == 0 {
			op.Reserve = m.Int64N(8)
		}
	case k < 13:
		op = earlier().Op
		op.Kind = store.OpDone
	case k < 14:
		op = earlier().Op
		op.Kind = store.OpRenew
	case k < 16:
		g := earlier()
		op = g.Op
		if op.Kind, op.Taken = store.OpGive, g.At; m.now.UnixNano()-g.At > int64(50*24*time.Hour) {
			op.Kind = store.OpRead // nothing is in flight that long
		}
		op.Needs = append([]store.Need(nil), op.Needs...)
		for j := range op.Needs {
			op.Needs[j].Taken = g.At
		}
	case k < 17:
		op.Kind = store.OpSpend
		for j := range op.Needs {
			op.Needs[j].Cost = m.Int64N(4*m.cost) - 2*m.cost
		}
	case k < 18:
		op.Kind, op.Audience = store.OpPause, op.Audiences[m.IntN(2)]
		if m.IntN(3) == 0 {
			op.Only = strconv.Itoa(m.IntN(len(m.in)))
		}
		op.Pause = &store.Pause{
			For: m.some(2 * time.Second), Grow: m.IntN(2) == 0, Most: time.Minute, Started: m.before(), Limits: m.in[:m.IntN(len(m.in))], Found: m.Int64N(30), Source: "test",
		}
	case k < 19:
		op.Kind, op.Audience = store.OpLearn, "audience"
		if m.IntN(2) == 0 {
			op.Only = strconv.Itoa(m.IntN(len(m.in)))
		}
		if m.servers != nil {
			m.announce(&op, earlier())
			break
		}
		op.Learn = &store.Learn{
			Name: strconv.Itoa(m.IntN(12)), Left: m.Int64N(5), Limit: m.Int64N(7) - 1, Reset: m.some(2*time.Second) - time.Second/4,
			Window: m.some(1) * time.Minute, Period: m.some(1) * m.some(time.Minute), Started: m.before(), InFlight: m.Int64N(3), Pace: m.IntN(2) == 0, Source: "test",
		}
	case k < 20:
		op.Kind, op.Taken = store.OpSuccess, m.before()
	case k < 21:
		op.Kind, op.Needs, op.Audiences = store.OpForecast, nil, nil
		for range m.IntN(5) {
			op.Asks = append(op.Asks, store.Op{Kind: store.OpTake, Group: op.Group, ID: 1, Audiences: m.audiences(), Needs: m.needs(), Line: uint64(m.IntN(3))})
		}
	case k < 23:
		g := earlier()
		op = g.Op
		op.Kind, op.Used, op.Taken = store.OpReturn, m.Int64N(g.Reserved+1), g.At
		if op.Due = g.At + m.Int64N(int64(store.UseWithin)); m.now.UnixNano()-g.At > int64(50*24*time.Hour) {
			op.Kind = store.OpRead
		}
	default:
		op.Kind = store.OpRead
	}
	return op
}

// play runs steps over s and over a store.Memory, and compares all results. pass is the
// longest time between two steps.
func (m *model) play(t *testing.T, client rueidis.Client, steps int, pass time.Duration) {
	t.Helper()
	clock := func() time.Time { return m.now }
	s, mem := open(t, client, clock), rowsOf{}
	for step := range steps {
		switch m.IntN(8) {
		case 0, 1:
			m.now = m.now.Add(m.some(pass))
		case 2:
			if d := m.due - m.now.UnixNano(); d > 0 && d < int64(pass) {
				m.now = m.now.Add(time.Duration(d) + m.some(12*time.Millisecond))
			}
		case 3:
			if m.back && m.IntN(4) == 0 {
				m.now = m.now.Add(-m.some([]time.Duration{time.Millisecond, pass, 40 * 24 * time.Hour, 87_600 * time.Hour}[m.IntN(4)]))
			}
		}
		var ops []store.Op
		for range 1 + m.IntN(4) {
			ops = append(ops, m.op())
		}
		got, err := s.Do(context.Background(), ops)
		if err != nil {
			t.Fatalf("step %d: %v\n%+v", step, err, ops)
		}
		want, err := store.Run(m.now, mem, ops)
		if err != nil {
			t.Fatal(err)
		}
		for i := range got {
			if !reflect.DeepEqual(got[i], want[i]) {
				t.Fatalf("step %d, number %d of\n%s\nat %d: got\n%+v\nwant\n%+v", step, i, describe(ops), m.now.UnixNano(), got[i], want[i])
			}
			if got[i].OK {
				m.granted = append(m.granted, grant{ops[i], got[i]})
			} else if ops[i].Kind == store.OpTake && got[i].For != store.Never && !got[i].Skipped {
				m.due = got[i].Wait.At
			}
		}
		if m.rows {
			m.compare(t, client, mem)
		}
	}
}

// compare compares the rows of the store that was opened last with those of package store.
func (m *model) compare(t *testing.T, client rueidis.Client, rows rowsOf) {
	t.Helper()
	if len(rows) == 0 {
		return
	}
	var keys []string
	for key := range rows {
		keys = append(keys, prefix()+key)
	}
	list, err := client.Do(context.Background(), client.B().Mget().Key(keys...).Build()).AsStrSlice()
	if err != nil {
		t.Fatal(err)
	}
	for i, key := range keys {
		got, want := m.pruned(t, []byte(list[i])), m.pruned(t, rows[strings.TrimPrefix(key, prefix())])
		if !bytes.Equal(got, want) {
			t.Fatalf("at %d %s is\n%x\nwant\n%x", m.now.UnixNano(), key, got, want)
		}
	}
}

// rowsOf implements store.Rows by the keys that the server has, without a prefix.
type rowsOf map[string][]byte

func (r rowsOf) Get(group, name string) ([]byte, error) { return r["{"+group+"}"+name], nil }

func (r rowsOf) Put(group, name string, row []byte, _ time.Time) error {
	r["{"+group+"}"+name] = append([]byte(nil), row...)
	return nil
}

// pruned returns a row without what has no effect any more: the script writes none of it.
func (m *model) pruned(t *testing.T, row []byte) []byte {
	one := &oneRow{row}
	if _, err := store.Run(m.now, one, []store.Op{{Kind: store.OpReturn, Needs: make([]store.Need, 1)}}); err != nil {
		t.Fatal(err)
	}
	return one.row
}

func describe(ops []store.Op) (text string) {
	for i := range ops {
		text += fmt.Sprintf("%+v", ops[i])
		if l := ops[i].Learn; l != nil {
			text += fmt.Sprintf(" %+v", *l)
		}
		if p := ops[i].Pause; p != nil {
			text += fmt.Sprintf(" %+v", *p)
		}
		text += "\n"
	}
	return text
}

// The script decides like package store, in every law, at every step. If the limits stay
// the same and are not among the rare ones, it decides by itself, in one round trip.
func TestScriptDecidesAsTheLawsDo(t *testing.T) {
	client := &counted{Client: connect(t, server.Start(t).Addr)}
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	short := []limiter.Limit{
		{N: 3, Per: time.Second}, {N: 1001, Per: time.Millisecond}, {N: 5, Per: 7 * time.Nanosecond}, {N: 40, Per: time.Minute},
		{N: 3, Per: time.Second, Strict: true}, {N: 20, Per: time.Minute, Strict: true},
		{N: 10, Per: time.Second, Law: limiter.Bucket, Burst: 4}, {N: 7, Per: time.Second, Law: limiter.Bucket}, {N: 1001, Per: time.Millisecond, Law: limiter.Bucket},
		{N: 999_999_937, Per: time.Hour + 1, Law: limiter.Bucket, Burst: 1000},
		limiter.Every(time.Second), {N: 7, Per: time.Second, Law: limiter.Spaced}, {N: 7, Per: time.Second, Law: limiter.Spaced, Strict: true},
		{N: 6, Per: time.Second, Law: limiter.Sliding}, {N: 1_000_003, Per: time.Hour, Law: limiter.Sliding},
		limiter.Blocked(), {N: 0, Per: time.Second, Law: limiter.Bucket}, {N: 0, Per: time.Second, Law: limiter.Spaced},
	}
	calendars := []limiter.Limit{
		{N: 5, Law: limiter.Calendar, Unit: limiter.Minute}, {N: 5, Law: limiter.Calendar, Unit: limiter.Hour, Location: berlin},
		{N: 5, Law: limiter.Calendar, Unit: limiter.Day, Location: berlin}, {N: 9, Law: limiter.Calendar, Unit: limiter.Week, Location: time.UTC},
		{N: 9, Law: limiter.Calendar, Unit: limiter.Month, Location: berlin}, {N: 2, Per: time.Minute},
	}
	const day = 24 * time.Hour
	long := []limiter.Limit{
		{N: 50_000, Per: 30 * day}, {N: 3_000_000, Per: 40 * day, Law: limiter.Bucket}, {N: 300, Per: 365 * day}, {N: 300, Per: 3650 * day, Law: limiter.Sliding},
		{N: 5, Per: 51 * day, Law: limiter.Sliding}, {N: 100, Per: 365 * day, Law: limiter.Spaced, Strict: true}, {N: 1_000_000_000, Per: 1},
		{N: 1_000_000_000, Per: 3650 * day}, {N: 1_000_000_000, Per: 3650 * day, Law: limiter.Bucket}, {N: 9, Law: limiter.Calendar, Unit: limiter.Month, Location: berlin},
	}
	slow := append(calendars[:len(calendars):len(calendars)], []limiter.Limit{
		{N: 40, Per: time.Minute}, {N: 100_000, Per: time.Hour}, {N: 20, Per: time.Minute, Strict: true}, {N: 7, Per: time.Minute, Law: limiter.Bucket},
		{N: 1001, Per: time.Hour, Law: limiter.Bucket, Burst: 30}, limiter.Every(time.Minute), {N: 7, Per: time.Hour, Law: limiter.Spaced, Strict: true},
		{N: 6, Per: time.Minute, Law: limiter.Sliding},
	}...)
	open(t, client, nil) // the server knows the script from now on
	for name, tc := range map[string]struct {
		limits []limiter.Limit
		cost   int64
		pass   time.Duration
		change bool // limits change
		groups int
		once   bool // one round trip
		back   bool
	}{
		"short":     {short, 3, 700 * time.Millisecond, false, 1, true, false},
		"costly":    {short, 20_000, time.Minute, false, 1, true, false},
		"calendars": {calendars, 2, 10 * time.Hour, false, 1, false, false},
		"months":    {calendars, 2, 10 * day, false, 1, false, false},
		"long":      {long, 1_000_000, 30 * day, false, 1, false, false},
		"changes":   {append(append(long, short...), calendars...), 5, time.Minute, true, 1, false, false},
		"groups":    {short, 3, 700 * time.Millisecond, false, 3, true, false},
		// A row that only one store has forgotten in time would be ahead in the other.
		"set back": {slow, 5, 3 * time.Millisecond, false, 1, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range seeds(25) {
				m := newModel(seed, tc.groups, tc.limits)
				m.cost, m.back = tc.cost, tc.back
				rounds := 1
				if tc.change {
					rounds = 5
				}
				for range rounds {
					before := client.trips.Load()
					const steps = 100
					m.play(t, client, steps, tc.pass)
					if n := client.trips.Load() - before; tc.once && n != steps+2 {
						t.Fatalf("seed %d: %d round trips for %d steps and New's two", seed, n, steps)
					}
					m.in[m.IntN(len(m.in))] = tc.limits[m.IntN(len(tc.limits))]
				}
			}
		})
	}
}

// If a product does not fit a double, a rounded one would be a nanosecond off.
func TestLargeProductsAreExact(t *testing.T) {
	now := time.Date(2026, 3, 28, 22, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	s, mem := open(t, connect(t, server.Start(t).Addr), clock), &store.Memory{Now: clock}
	r := rand.New(rand.NewPCG(1, 1))
	for i := range 200 {
		l := limiter.Limit{N: 1 + r.Int64N(1_000_000_000), Per: time.Hour + time.Duration(r.Int64N(int64(time.Hour))), Law: limiter.Bucket}
		if i%2 == 1 {
			l.Law = limiter.Sliding
		}
		op := take(l)
		op.Group, op.Needs[0].Cost = strconv.Itoa(i), l.N
		for range 3 {
			got := do(t, s, op)[0]
			want, err := mem.Do(context.Background(), []store.Op{op})
			if err != nil || !reflect.DeepEqual(got, want[0]) {
				t.Fatalf("%v: got\n%+v\nwant\n%+v, %v", l, got, want, err)
			}
			op.Needs[0].Cost = 1 + r.Int64N(l.N)
			now = now.Add(time.Duration(r.Int64N(int64(l.Per))))
		}
	}
}
