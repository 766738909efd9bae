package law

import (
	"container/heap"
	"math"
	"math/rand"
	"testing"
	"time"
)

// A market is a server with a limit, others who use it too, and a client that counts by a
// Cap beside a limit of its own. It shows how much of what the server allows the client
// uses, and how often it is refused.
type market struct {
	name       string
	n, per     float64 // the server's limit and its period in seconds
	ourN       float64 // the client's; 0: the same
	ourPer     float64
	refill     bool // the server's is a bucket
	ourRefill  bool // the client's rule is
	fixed      bool // the server's windows are fixed
	silent     bool // the server does not state its period
	learned    bool // the client has no limit of its own
	noReset    bool
	resets     Resets // what the server's documentation says
	others     float64
	lumps      float64
	used       float64
	weigh      float64 // what the server counts for one of our units; 0: one
	replica    float64 // share of the numbers that are of a replica which has seen nothing
	idle       float64
	workers    int
	fwd, proc  func(*rand.Rand) float64
	over       float64
	cost       func(*rand.Rand) float64
	T          float64
	want, most float64 // least used in percent, most refused of 1000
}

// serverCount is how the server counts.
type serverCount struct {
	n, per float64
	refill bool
	level  float64
	at     float64
	log    [][2]float64
}

func (c *serverCount) left(t float64) float64 {
	if c.refill {
		c.level = math.Min(c.n, c.level+c.n/c.per*(t-c.at))
		c.at = t
		return c.level
	}
	for len(c.log) > 0 && t-c.log[0][0] >= c.per-1e-9 {
		c.log = c.log[1:]
	}
	l := c.n
	for _, e := range c.log {
		l -= e[1]
	}
	return l
}

func (c *serverCount) use(t, u float64) {
	c.left(t)
	c.level -= u
	c.log = append(c.log, [2]float64{t, u})
}

type marketEvent struct {
	t       float64
	kind    int
	cost    int64
	real    float64
	started Time
	mark    Mark
	said    float64
	reset   float64
	ok      bool
}

type marketEvents []marketEvent

func (e marketEvents) Len() int           { return len(e) }
func (e marketEvents) Less(i, j int) bool { return e[i].t < e[j].t }
func (e marketEvents) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *marketEvents) Push(x any)        { *e = append(*e, x.(marketEvent)) }
func (e *marketEvents) Pop() any          { o := *e; x := o[len(o)-1]; *e = o[:len(o)-1]; return x }

const (
	lookAgain = iota
	atServer
	answered
	othersUse
	idleEnds
)

// run returns how much of what was allowed was used, in percent, and the refused of 1000.
func (s *market) run(seed int64) (used, refused float64) {
	rng := rand.New(rand.NewSource(seed))
	ns := func(t float64) Time { return Time(math.Round(t * 1e9)) }
	srv := &serverCount{n: s.n, per: s.per, refill: s.refill, level: s.n}
	if s.used > 0 {
		srv.use(0, s.used*s.n)
	}
	ourN, ourPer, weigh := s.ourN, s.ourPer, s.weigh
	if ourN == 0 {
		ourN = s.n
	}
	if ourPer == 0 {
		ourPer = s.per
	}
	if weigh == 0 {
		weigh = 1
	}
	spec := Spec{N: int64(ourN), Per: time.Duration(ns(ourPer))}
	if s.ourRefill {
		spec.Kind = Bucket
	}
	own := New(spec, time.Time{})
	if s.learned {
		own = Open()
	}
	var inFlight int64
	c := NewCap("", &inFlight)
	var q marketEvents
	type job struct {
		cost int64
		real float64
	}
	var waiting []job
	newJob := func() job {
		r := s.cost(rng)
		return job{int64(math.Ceil(r * s.over)), r}
	}
	for range s.workers {
		waiting = append(waiting, newJob())
	}
	armed := math.Inf(1)
	mine, otherUsed := 0.0, 0.0
	bad, all := 0, 0
	var paused float64
	idle := func(t float64) bool { return s.idle > 0 && int(t/s.idle)%2 == 1 }
	pump := func(t float64) {
		now := ns(t)
		for len(waiting) > 0 && !idle(t) {
			x := waiting[0]
			at := max(now, ns(paused))
			for again := true; again; {
				again = false
				for _, st := range []State{own, c} {
					if e, _ := st.Earliest(now, at, x.cost); e > at {
						at, again = e, true
					}
				}
			}
			if at > now {
				if f := float64(at) / 1e9; f < armed-1e-9 || armed <= t {
					armed = f + 1e-9
					heap.Push(&q, marketEvent{t: armed, kind: lookAgain})
				}
				return
			}
			waiting = waiting[1:]
			own.Take(now, x.cost)
			c.Take(now, x.cost)
			e := marketEvent{t: t + s.fwd(rng), kind: atServer, cost: x.cost, real: x.real, started: now, mark: c.Mark(now)}
			inFlight += x.cost
			heap.Push(&q, e)
		}
	}
	pump(0)
	if s.others > 0 || s.lumps > 0 {
		heap.Push(&q, marketEvent{t: 0.1, kind: othersUse})
	}
	if s.idle > 0 {
		for t := s.idle; t < s.T; t += s.idle {
			heap.Push(&q, marketEvent{t: t, kind: idleEnds})
		}
	}
	window := 0.0
	turn := func(t float64) {
		if w := math.Floor(t / s.per); s.fixed && w != window {
			window, srv.log = w, nil
		}
	}
	for len(q) > 0 {
		e := heap.Pop(&q).(marketEvent)
		if e.t > s.T {
			break
		}
		now := ns(e.t)
		switch e.kind {
		case lookAgain:
			armed = math.Inf(1)
		case atServer:
			all++
			turn(e.t)
			if srv.left(e.t) >= e.real*weigh {
				srv.use(e.t, e.real*weigh)
				mine += e.real * weigh
				e.ok = true
			} else {
				bad++
			}
			e.said = math.Floor(srv.left(e.t))
			if rng.Float64() < s.replica {
				e.said = s.n
			}
			end := e.t
			switch {
			case s.refill:
				end += (srv.n - srv.left(e.t)) / (srv.n / srv.per)
			case s.fixed:
				end = (window + 1) * s.per
			case len(srv.log) > 0:
				end = srv.log[len(srv.log)-1][0] + srv.per
			}
			e.kind, e.reset = answered, max(0, end-e.t)
			e.t += s.proc(rng)
			heap.Push(&q, e)
			continue
		case answered:
			own1 := e.cost
			if e.ok {
				give := e.cost - int64(e.real)
				if give > 0 {
					own.Give(e.started, give, false)
					c.Give(e.started, give, false)
				}
				waiting = append(waiting, newJob())
			} else {
				own.Give(e.started, e.cost, false)
				c.Give(e.started, e.cost, false)
				paused = max(paused, e.t+1)
				waiting = append(waiting, job{e.cost, e.real})
			}
			sig := LimitSignal{Left: int64(e.said), Limit: int64(s.n), Reset: ns(e.reset), Window: ns(s.per), Resets: s.resets, Refused: !e.ok, Started: e.started, Mark: e.mark, Own: own1}
			if s.silent {
				sig.Window = 0
			}
			if s.noReset {
				sig.Reset = -1
			}
			if !s.learned {
				sig.RuleLimit, sig.RulePeriod, sig.RuleFills = int64(ourN), ns(ourPer), s.ourRefill
			}
			c.Update(now, sig)
			inFlight -= e.cost
		case othersUse:
			turn(e.t)
			u, wait := s.cost(rng), 0.0
			if s.lumps > 0 {
				u, wait = s.lumps, s.per*(.5+rng.Float64())
			} else {
				wait = u / (s.n / s.per * s.others) * rng.ExpFloat64()
			}
			if u = math.Min(u, math.Floor(srv.left(e.t))); u > 0 {
				srv.use(e.t, u)
				otherUsed += u
			}
			heap.Push(&q, marketEvent{t: e.t + wait, kind: othersUse})
		}
		pump(e.t)
	}
	able := s.n*s.T/s.per - otherUsed
	if s.idle > 0 {
		able /= 2
	}
	if s.refill {
		able += s.n
	}
	return 100 * mine / able, 1000 * float64(bad) / float64(max(1, all))
}

func uniform(a, b float64) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 { return a + (b-a)*r.Float64() }
}

func whole(a, b float64) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 { return math.Floor(a + (b-a)*r.Float64()) }
}

func markets() []market {
	one := whole(1, 1)
	short, quick := uniform(.01, .02), uniform(.1, .3)
	llm := market{n: 40000, per: 60, workers: 30, fwd: uniform(.005, .065), proc: uniform(.3, 2.8), over: 1.25, cost: whole(100, 1000), T: 600}
	with := func(name string, want, most float64, f func(*market)) market {
		s := llm
		s.name, s.want, s.most = name, want, most
		f(&s)
		return s
	}
	simple := market{n: 1000, per: 60, workers: 20, fwd: short, proc: quick, over: 1, cost: one, T: 600}
	also := func(name string, want, most float64, f func(*market)) market {
		s := simple
		s.name, s.want, s.most = name, want, most
		f(&s)
		return s
	}
	return []market{
		with("LLM, sliding", 97, 2, func(s *market) {}),
		with("LLM, bucket", 97, 2, func(s *market) { s.refill, s.ourRefill = true, true }),
		with("LLM, bucket, documented, no window", 97, 2, func(s *market) { s.refill, s.ourRefill, s.resets, s.silent = true, true, ResetsFull, true }),
		with("LLM, sliding, others use 30 %", 97, 15, func(s *market) { s.others = .3 }),
		with("LLM, bucket, others use 30 %", 96, 60, func(s *market) { s.refill, s.ourRefill, s.others = true, true, .3 }),
		with("LLM, sliding, ours is twice the server's", 97, 2, func(s *market) { s.ourN = 80000 }),
		with("LLM, bucket, ours is a window", 88, 0, func(s *market) { s.refill = true }),
		with("LLM, learned, sliding", 96, 6, func(s *market) { s.learned = true }),
		with("LLM, learned, bucket documented", 98, 2, func(s *market) { s.learned, s.refill, s.resets, s.silent = true, true, ResetsFull, true }),
		with("LLM, learned, bucket undocumented, no window", 98, 2, func(s *market) { s.learned, s.refill, s.silent = true, true, true }),
		{name: "10/s, responses take 5 s", want: 95, most: 9, n: 10, per: 1, workers: 100, fwd: short, proc: uniform(5, 5), over: 1, cost: one, T: 120},
		{name: "bucket 20/s burst 40", want: 99, most: 1, n: 40, per: 2, refill: true, ourRefill: true, workers: 40, fwd: uniform(.01, .05), proc: quick, over: 1, cost: one, T: 300},
		{name: "learned bucket 20/s burst 40, documented", want: 98, most: 2, n: 40, per: 2, refill: true, learned: true, silent: true, resets: ResetsFull, workers: 40, fwd: uniform(.01, .05), proc: quick, over: 1, cost: one, T: 300},
		{name: "ours 10/s, the server's 60/min", want: 99, most: 1, n: 60, per: 60, ourN: 10, ourPer: 1, workers: 20, fwd: short, proc: quick, over: 1, cost: one, T: 1800},
		also("the server counts 5 for each", 98, 40, func(s *market) { s.weigh = 5 }),
		also("the server counts 1 for 4", 24, 0, func(s *market) { s.weigh = .25 }),
		also("the server counts 1 for 4, learned", 97, 1, func(s *market) { s.weigh, s.learned = .25, true }),
		also("others take 300 at once", 98, 4, func(s *market) { s.lumps = 300 }),
		also("fixed windows, others use 30 %", 98, 6, func(s *market) { s.fixed, s.others = true, .3 }),
		also("fixed windows, documented, others use 30 %", 98, 2, func(s *market) { s.fixed, s.others, s.resets = true, .3, ResetsWindow }),
		also("fixed windows, learned, no window, others use 30 %", 98, 2, func(s *market) { s.fixed, s.others, s.learned, s.silent = true, .3, true, true }),
		also("fixed windows, learned, documented, no window", 98, 1, func(s *market) { s.fixed, s.learned, s.silent, s.resets = true, true, true, ResetsWindow }),
		also("fixed windows, no window, no reset", 90, 1, func(s *market) { s.fixed, s.learned, s.silent, s.noReset = true, true, true, true }),
		{name: "idle every other 2 min, others 60 %", want: 98, most: 125, n: 100, per: 60, others: .6, idle: 120, workers: 40, fwd: short, proc: quick, over: 1, cost: one, T: 2400},
		also("3 of 10 numbers of another replica, others 30 %", 95, 10, func(s *market) { s.others, s.replica = .3, .3 }),
		also("restart with a tenth left", 90, 1, func(s *market) { s.used = .9 }),
		also("up to 2 s on the way there", 96, 50, func(s *market) { s.others, s.workers, s.fwd = .3, 60, uniform(0, 2) }),
		{name: "10/s in 5 s, estimates twice the cost", want: 48, most: 0, n: 10, per: 1, workers: 100, fwd: short, proc: uniform(5, 5), over: 2, cost: one, T: 120},
		{name: "bucket 20/s, one slow request of 60 s", want: 98, most: 1, n: 40, per: 2, refill: true, ourRefill: true, workers: 40, fwd: uniform(.01, .05), proc: func(r *rand.Rand) float64 {
			if r.Intn(200) == 0 {
				return 60
			}
			return .1
		}, over: 1, cost: one, T: 300},
	}
}

// TestMarkets plays each market with several seeds; -v shows the figures.
func TestMarkets(t *testing.T) {
	for _, s := range markets() {
		used, refused := 0.0, 0.0
		const seeds = 4
		for seed := range int64(seeds) {
			u, r := s.run(seed)
			used, refused = used+u/seeds, refused+r/seeds
		}
		t.Logf("%-52s %6.1f %% used, %5.1f of 1000 refused", s.name, used, refused)
		if used < s.want || refused > s.most {
			t.Errorf("%s: %.1f %% used, %.1f of 1000 refused", s.name, used, refused)
		}
	}
}
