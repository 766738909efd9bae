package redis_test

import (
	"math"
	"os"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/store"
	"github.com/headway-go/headway/store/redis/internal/server"
)

// seeds is how many runs of a model there are, times RUNS if that is set.
func seeds(n uint64) uint64 {
	if times, err := strconv.ParseUint(os.Getenv("RUNS"), 10, 32); err == nil {
		n *= times
	}
	return n
}

// An announcer is one limit of a server, as its responses announce it.
type announcer struct {
	name   string
	window time.Duration
	limit  int64 // negative: it is not announced
	per    int64
	period bool  // per is announced
	meant  uint8 // what its resets mean; see retryafter.ResetKind
	resets uint8 // the same as far as it is documented
	none   bool  // there are no resets
	whole  bool  // they are in whole seconds
	rule   limiter.Limit
}

// announcers draws the limits of a server, of periods up to longest.
func (m *model) announcers(longest time.Duration) {
	for i := range 3 {
		a := &announcer{
			name: strconv.Itoa(i % 2), window: time.Duration(i) * time.Minute, limit: m.Int64N(20) + 1, per: 1 + m.Int64N(int64(longest)),
			period: m.IntN(2) == 0, meant: uint8(1 + m.IntN(4)), none: m.IntN(6) == 0, whole: m.IntN(3) == 0,
		}
		if m.IntN(2) == 0 {
			a.per = 1 + m.Int64N(min(a.per, int64(10*time.Second)))
		}
		switch m.IntN(8) {
		case 0:
			a.limit = -1
		case 1:
			a.limit *= 100
		case 2:
			if m.wild {
				a.limit = 1_000_000_000 - m.Int64N(2)
			}
		}
		if m.IntN(2) == 0 {
			a.resets = a.meant
		}
		if m.IntN(4) == 0 {
			a.rule = limiter.Limit{N: m.Int64N(30) + 1, Per: time.Duration(a.per), Law: []limiter.Law{limiter.Window, limiter.Bucket}[m.IntN(2)]}
		}
		m.servers = append(m.servers, a)
	}
}

// announce makes op what the response to a request announces: of one of the limits, mostly
// something that makes sense.
func (m *model) announce(op *store.Op, g grant) {
	a, now := m.servers[m.IntN(len(m.servers))], m.now.UnixNano()
	if m.IntN(100) == 0 { // the server is configured anew
		a.per = 1 + m.Int64N(2*a.per)
		if a.limit > 0 {
			a.limit = a.limit/2 + 1 + m.Int64N(a.limit)
		}
	}
	limit := max(a.limit, 10)
	used := m.Int64N(limit + 1)
	if m.IntN(3) > 0 {
		used = m.Int64N(limit/4 + 1)
	}
	l := &store.Learn{
		Name: a.name, Window: a.window, Left: limit - used, Limit: a.limit, Reset: -1, Resets: a.resets, Whole: a.whole, Source: "test",
		Started: min(g.At+m.Int64N(3), now), Own: 1, InFlight: m.Int64N(3), Pace: m.IntN(30) == 0, Refused: m.IntN(10) == 0, Early: m.IntN(30) == 0,
		RuleLimit: a.rule.N, RulePeriod: a.rule.Per, RuleFills: a.rule.Law == limiter.Bucket,
	}
	if a.period {
		l.Period = time.Duration(a.per)
	}
	if !a.none && m.IntN(20) > 0 {
		switch a.meant {
		case 1:
			l.Reset = time.Duration(a.per - now%a.per)
		case 2:
			l.Reset = time.Duration(float64(a.per) / float64(limit) * float64(used))
		case 3:
			l.Reset = time.Duration(a.per / limit)
		case 4:
			l.Reset = m.some(time.Duration(a.per))
		}
	}
	if m.IntN(10) == 0 {
		l.Most = m.some(2 * time.Duration(a.per))
	}
	if a.whole && l.Reset >= 0 {
		l.Reset = l.Reset.Truncate(time.Second)
	}
	where := op.Audience
	if op.Only != "" {
		where = op.Only
	}
	for _, k := range g.Marks {
		if k.Audience == where && k.Name == l.Name && k.Window == l.Window {
			l.Mark = k
			l.Mark.InFlight = m.Int64N(3)
		}
	}
	for _, n := range g.Needs {
		if n.Budget == where {
			l.Own = n.Cost
		}
	}
	switch m.IntN(30) {
	case 0:
		l.Mark = store.Mark{}
	case 1:
		l.Left = []int64{0, -1, -3}[m.IntN(3)]
	case 2:
		l.Reset = []time.Duration{0, -1, -7, 1, time.Second}[m.IntN(5)]
	case 3:
		l.Period = []time.Duration{0, -1, 1, time.Millisecond, time.Second, time.Minute}[m.IntN(6)]
	case 4:
		l.Started = m.before()
	}
	if m.wild {
		switch m.IntN(10) {
		case 0:
			l.Mark.Used += m.Int64N(100) - 50
		case 1:
			l.Left = []int64{math.MaxInt64, math.MinInt64, 1 << 60, 1 << 40, -1_000_000}[m.IntN(5)]
		case 2:
			l.Limit = []int64{0, -1, math.MaxInt64, math.MinInt64, 1 << 60, 1, 2}[m.IntN(7)]
		case 3:
			l.Reset = []time.Duration{time.Hour, 1000 * time.Hour, math.MaxInt64}[m.IntN(3)]
		case 4:
			l.Period = []time.Duration{1000 * time.Hour, 10_000 * time.Hour, math.MaxInt64}[m.IntN(3)]
		case 5:
			l.Resets = uint8(m.IntN(5))
		case 6:
			l.Own, l.InFlight = m.Int64N(1000), m.Int64N(1000)
		case 7:
			l.Most = []time.Duration{-1, 1, 1 << 52, 1 << 53, 3 << 52, math.MaxInt64}[m.IntN(6)]
		}
	}
	op.Learn = l
}

// The script learns like package law, in one round trip: of limits of every kind, with
// numbers that make sense and others, renewed, corrected, given back and forgotten.
func TestScriptLearnsAsTheLawsDo(t *testing.T) {
	client := &counted{Client: connect(t, server.Start(t).Addr)}
	open(t, client, nil) // the server knows the script from now on
	wide := []limiter.Limit{
		{N: 1_000_000, Per: time.Second}, {N: 1_000_000, Per: time.Minute, Law: limiter.Bucket}, {N: 30, Per: time.Second}, {N: 30, Per: time.Second, Strict: true},
		{N: 1_000_000, Per: time.Minute}, {N: 1_000_000, Per: time.Hour, Law: limiter.Sliding},
	}
	const (
		once = iota // each step takes one round trip
		wild
		rare // instants too long ago are written in another form, which has the same effect
		back
	)
	const day = 24 * time.Hour
	for name, tc := range map[string]struct {
		runs    uint64
		longest time.Duration // of the limits' periods
		pass    time.Duration
		cost    int64
		kind    int
	}{
		"steady":   {60, 20 * time.Second, 200 * time.Millisecond, 2, once},
		"fast":     {40, time.Second, 20 * time.Millisecond, 1, once},
		"minutes":  {40, 5 * time.Minute, 10 * time.Second, 3, once},
		"hours":    {20, 10 * time.Hour, time.Hour, 3, once},
		"wild":     {40, 10 * time.Minute, time.Second, 2, wild},
		"costly":   {20, 5 * time.Minute, 10 * time.Second, 1_000_000_000, rare},
		"days":     {20, 15 * day, 2 * day, 3, rare},
		"months":   {20, 60 * day, 20 * day, 3, rare},
		"set back": {20, time.Minute, 200 * time.Millisecond, 2, back},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range seeds(tc.runs) {
				m := newModel(seed, 1, wide)
				m.cost, m.wild, m.back, m.rows = tc.cost, tc.kind == wild || tc.kind == rare, tc.kind == back, tc.kind != rare
				m.announcers(tc.longest)
				before := client.trips.Load()
				const steps = 100
				m.play(t, client, steps, tc.pass)
				if n := client.trips.Load() - before; tc.kind == once && n != steps+2 {
					t.Fatalf("seed %d: %d round trips for %d steps and New's two", seed, n, steps)
				}
			}
		})
	}
}

// A pair does each operation over Redis and, by package law alone, over its own rows, and
// compares the results, the rows and the round trips.
type pair struct {
	t      *testing.T
	client *counted
	s      store.Store
	rows   rowsOf
	m      *model
}

func newPair(t *testing.T, seed uint64) *pair {
	p := &pair{t: t, client: &counted{Client: connect(t, server.Start(t).Addr)}, rows: rowsOf{}, m: newModel(seed, 1, []limiter.Limit{{N: 1, Per: 1}})}
	p.s = open(t, p.client, func() time.Time { return p.m.now })
	return p
}

func (p *pair) do(op store.Op) store.Result {
	p.t.Helper()
	op.Group = "g"
	before := p.client.trips.Load()
	got := do(p.t, p.s, op)[0]
	if n := p.client.trips.Load() - before; n != 1 {
		p.t.Fatalf("%d round trips for %s", n, describe([]store.Op{op}))
	}
	want, err := store.Run(p.m.now, p.rows, []store.Op{op})
	if err != nil || !reflect.DeepEqual(got, want[0]) {
		p.t.Fatalf("%sat %d: got\n%+v\nwant\n%+v, %v", describe([]store.Op{op}), p.m.now.UnixNano(), got, want[0], err)
	}
	p.m.compare(p.t, p.client, p.rows)
	return got
}

// take starts a request under what was announced to the audience.
func (p *pair) take() store.Result {
	return p.do(store.Op{Kind: store.OpTake, ID: 1, Audiences: []string{"a"}})
}

// learn takes in a response to the request that g has started.
func (p *pair) learn(g store.Result, l store.Learn) {
	l.Started, l.Own, l.Mark = g.At, 1, store.Mark{}
	if len(g.Marks) > 0 {
		l.Mark = g.Marks[0]
	}
	p.do(store.Op{Kind: store.OpLearn, Audience: "a", Learn: &l})
}

// A rolling limit of which more starts count than are remembered one by one remembers
// slices, whose ends may still be to come, also in the script.
func TestManyStartsUnderAnAnnouncedLimit(t *testing.T) {
	p := newPair(t, 1)
	var granted []store.Result
	earlier := func() store.Result { return granted[len(granted)-1-p.m.IntN(min(len(granted), 100))] }
	for len(granted) < 1500 {
		pass := 20 * time.Millisecond
		if p.m.IntN(20) == 0 {
			pass = time.Second
		}
		p.m.now = p.m.now.Add(p.m.some(pass))
		switch n := p.m.IntN(10); {
		case n < 7 || len(granted) == 0:
			if g := p.take(); g.OK {
				granted = append(granted, g)
			}
		case n == 7:
			g := earlier()
			p.do(store.Op{Kind: store.OpGive, Taken: g.At, Audiences: []string{"a"}})
		default:
			g := earlier()
			left := int64(1000)
			if len(g.Marks) > 0 {
				left -= g.Marks[0].Used - p.m.Int64N(3)
			}
			p.learn(g, store.Learn{Left: left, Limit: 1000, Reset: -1, Period: 20 * time.Second})
		}
	}
}

// A limit that is in use for long is decided in one round trip, too: its count has begun,
// and its care too, before the instants that the script's numbers hold.
func TestAnAnnouncedLimitInUseForLong(t *testing.T) {
	const day = 24 * time.Hour
	for name, l := range map[string]store.Learn{
		"window":          {Limit: 1000, Period: 30 * day, Resets: 1, Reset: 1},
		"rolling":         {Limit: 1000, Period: 30 * day, Resets: 4, Reset: -1},
		"rolling, daily":  {Limit: 1000, Period: day, Resets: 4, Reset: -1},
		"without a limit": {Limit: -1, Resets: 2, Reset: 3},
		"unknown":         {Limit: 1000, Reset: 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, 1)
			for range 400 {
				p.m.now = p.m.now.Add(p.m.some(day))
				g := p.take()
				if !g.OK {
					continue
				}
				p.m.now = p.m.now.Add(time.Second)
				l := l
				l.Left = 900 - p.m.Int64N(20)
				switch now := p.m.now.UnixNano(); l.Reset {
				case 1:
					l.Reset = 30*day - time.Duration(now%int64(30*day))
				case 3:
					l.Reset = 3 * day
				}
				l.Refused = p.m.IntN(100) == 0
				p.learn(g, l)
			}
		})
	}
}
