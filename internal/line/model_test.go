package line

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway/internal/law"
	"pgregory.net/rapid"
)

// The model is the line by its definition, slow and obviously right: a list of
// those who wait, with their planned starts. Every search looks at all of them
// anew.
type model struct {
	now     law.Time
	states  []law.State
	specs   []law.Spec
	line    []*request // in order of arrival
	granted []*request // in order of start: those to be cancelled at once
	all     []*request
}

// A request is one of a script, as the model and the line see it.
type request struct {
	seq    uint64
	needs  []need
	by     law.Time
	cancel bool     // it gives its start back at once
	at     law.Time // the planned start; then the start
	end    string   // how it ended: "started at …"
}

type need struct {
	b    int
	cost int64
}

func (r *request) like(o *request) bool {
	return slices.EqualFunc(r.needs, o.needs, func(a, b need) bool { return a.b == b.b })
}

func (r *request) needsAny(budgets map[int]bool) bool {
	return slices.ContainsFunc(r.needs, func(n need) bool { return budgets[n.b] })
}

// plan returns the starts planned in a budget, of all but those left out.
func (m *model) plan(b int, out map[*request]bool) *law.Plan {
	p := new(law.Plan)
	for _, r := range m.line {
		for _, n := range r.needs {
			if n.b == b && !out[r] {
				p.Insert(r.at, r.seq, n.cost)
			}
		}
	}
	return p
}

// search returns the earliest start of r that delays nobody, after those of its
// kind who came before.
func (m *model) search(r *request, out map[*request]bool) law.Time {
	t := m.now
	for _, o := range m.line {
		if o == r {
			break
		}
		if o.like(r) {
			t = max(t, o.at)
		}
	}
	for again := true; again && t < law.Never; {
		again = false
		for _, n := range r.needs {
			at, _ := m.plan(n.b, out).Earliest(m.states[n.b], m.now, t, n.cost, false)
			again = again || at > t
			t = at
		}
	}
	return t
}

func (m *model) leave(r *request, end string, args ...any) {
	r.end = fmt.Sprintf(end, args...)
	m.line = slices.DeleteFunc(m.line, func(o *request) bool { return o == r })
}

func (m *model) refuse(r *request, at law.Time) {
	after := "never"
	if at < law.Never {
		after = fmt.Sprint(at - m.now)
	}
	m.leave(r, "refused at %d: %s", m.now, after)
}

func (m *model) arrive(r *request) {
	m.all = append(m.all, r)
	m.line = append(m.line, r)
	r.at = m.search(r, map[*request]bool{r: true})
	if r.at > r.by || r.at == law.Never {
		m.refuse(r, r.at)
	}
	m.settle()
}

// settle starts those who are due, and cancels those who give it back.
func (m *model) settle() {
	for {
		due := slices.Clone(m.line)
		due = slices.DeleteFunc(due, func(r *request) bool { return r.at > m.now })
		slices.SortStableFunc(due, func(a, b *request) int { return cmp.Compare(a.at, b.at) })
		for _, r := range due {
			for _, n := range r.needs {
				m.states[n.b].Take(m.now, n.cost)
			}
			m.leave(r, "started at %d", m.now)
			if r.at = m.now; r.cancel {
				m.granted = append(m.granted, r)
			}
		}
		if len(m.granted) == 0 {
			return
		}
		r := m.granted[0]
		m.granted = m.granted[1:]
		touched := map[int]bool{}
		for _, n := range r.needs {
			m.states[n.b].Give(r.at, n.cost, false)
			touched[n.b] = true
		}
		m.improve(touched)
	}
}

// advance lets time pass.
func (m *model) advance(d law.Time) {
	end := m.now + d
	for {
		next := end
		for _, r := range m.line {
			next = min(next, r.at)
		}
		m.now = max(m.now, next)
		if m.settle(); m.now == end {
			return
		}
	}
}

// improve: in order of arrival, each whom it may help moves to the earliest
// start that delays nobody.
func (m *model) improve(touched map[int]bool) {
	for _, r := range m.line {
		if r.at <= m.now || !r.needsAny(touched) {
			continue
		}
		if at := m.search(r, map[*request]bool{r: true}); at < r.at {
			r.at = at
			for _, n := range r.needs {
				touched[n.b] = true
			}
		}
	}
}

// worse: something has been taken. If what was planned is no longer possible,
// those who need those budgets are planned anew.
func (m *model) worse(touched map[int]bool) {
	feasible := true
	for b := range touched {
		feasible = feasible && m.plan(b, nil).Feasible(m.states[b], m.now)
	}
	if feasible {
		m.improve(touched)
		m.settle()
		return
	}
	out := map[*request]bool{}
	for _, r := range m.line {
		if r.needsAny(touched) {
			out[r] = true
		}
	}
	for _, r := range slices.Clone(m.line) {
		if !out[r] {
			continue
		}
		if r.at = m.search(r, out); r.at > r.by || r.at == law.Never {
			m.refuse(r, r.at)
		}
		delete(out, r)
	}
	m.settle()
}

// An op is one step of a script.
type op struct {
	kind    string
	by      law.Time  // advance, pause: how long
	budgets []int     // spend, limit
	n       int64     // spend
	spec    law.Spec  // limit
	which   int       // cancel, give: which request
	cost    int64     // give
	req     *request  // arrive
	wait    *law.Time // arrive: its budget
}

func (o op) String() string {
	switch o.kind {
	case "arrive":
		s := fmt.Sprintf("arrive %v", o.req.needs)
		if o.wait != nil {
			s += fmt.Sprintf(" within %d", *o.wait)
		}
		if o.req.cancel {
			s += " and give back"
		}
		return s
	case "advance", "pause":
		return fmt.Sprintf("%s %d", o.kind, o.by)
	case "spend":
		return fmt.Sprintf("spend %d of %v", o.n, o.budgets)
	case "limit":
		return fmt.Sprintf("limit %v to %v", o.budgets, o.spec)
	case "give":
		return fmt.Sprintf("give %d of request %d, budget %v", o.cost, o.which, o.budgets)
	}
	return fmt.Sprintf("%s %d", o.kind, o.which)
}

// A script is a line's budgets and what happens to it. Budget 0 is a pause.
type script struct {
	specs []law.Spec
	ops   []op
}

func drawLimit(rt *rapid.T, kinds []law.Kind) law.Spec {
	s := law.Spec{
		N:    rapid.Int64Range(1, 4).Draw(rt, "n"),
		Per:  time.Duration(16 - rapid.Int64Range(0, 15).Draw(rt, "per")), // rapid likes small numbers, and long periods tell more
		Kind: rapid.SampledFrom(kinds).Draw(rt, "kind"),
	}
	if s.Kind == law.Bucket {
		s.Burst = rapid.Int64Range(0, 4).Draw(rt, "burst")
	}
	return s
}

func drawScript(rt *rapid.T, kinds []law.Kind, plain bool, steps int) script {
	var s script
	for range 4 - rapid.IntRange(1, 3).Draw(rt, "budgets") {
		s.specs = append(s.specs, drawLimit(rt, kinds))
	}
	arrivals := 0
	for range rapid.IntRange(20, steps).Draw(rt, "steps") {
		o := op{kind: rapid.SampledFrom([]string{
			"arrive", "arrive", "arrive", "arrive", "arrive", "arrive", "advance", "advance", "cancel", "cancel", "spend", "pause", "limit", "give", "look", "peek",
		}).Draw(rt, "op")}
		some := func() {
			for b := range s.specs {
				if plain || rapid.Bool().Draw(rt, "needs it") {
					o.budgets = append(o.budgets, b+1)
				}
			}
		}
		switch o.kind {
		case "arrive", "look":
			some()
			o.req = &request{needs: []need{{0, 1}}, by: law.Never - 1, cancel: rapid.IntRange(0, 9).Draw(rt, "give back") == 0}
			cost := rapid.Int64Range(1, 3).Draw(rt, "cost")
			for _, b := range o.budgets {
				o.req.needs = append(o.req.needs, need{b, cost})
			}
			if rapid.IntRange(0, 3).Draw(rt, "bounded") == 0 {
				d := rapid.Int64Range(0, 30).Draw(rt, "wait")
				o.wait = &d
			}
			if o.kind == "arrive" {
				arrivals++
			}
		case "advance":
			o.by = rapid.Int64Range(0, 12).Draw(rt, "by")
		case "pause":
			o.by = rapid.Int64Range(0, 20).Draw(rt, "by")
			o.kind = rapid.SampledFrom([]string{"pause", "advance"}).Draw(rt, "really")
		case "spend":
			some()
			o.n = rapid.Int64Range(-3, 4).Draw(rt, "units")
		case "limit":
			o.budgets = []int{rapid.IntRange(1, len(s.specs)).Draw(rt, "budget")}
			o.spec = drawLimit(rt, kinds)
		case "cancel", "give":
			if arrivals == 0 {
				continue
			}
			o.which = rapid.IntRange(max(0, arrivals-8), arrivals-1).Draw(rt, "which")
			o.cost = rapid.Int64Range(0, 2).Draw(rt, "units")
			o.budgets = []int{rapid.IntRange(1, len(s.specs)).Draw(rt, "budget")}
		}
		s.ops = append(s.ops, o)
	}
	return s
}

// A player runs a script on a line, as callers do.
type player struct {
	l       *Line
	budgets []*Budget
	all     []*played
}

// played is one request: all but cancel is set by its goroutine.
type played struct {
	cancel  context.CancelFunc
	end     string
	at      law.Time
	started bool
	told    law.Time // by Delay when it came; Never once that does not bind
}

func (p *player) needs(r *request) (needs []Need) {
	for _, n := range r.needs {
		needs = append(needs, Need{B: p.budgets[n.b], Cost: n.cost})
	}
	return needs
}

func (p *player) arrive(r *request, wait time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	q := &played{cancel: cancel}
	p.all = append(p.all, q)
	if refusal := p.l.Delay(&Ask{Needs: p.needs(r)}, nil); refusal != nil {
		q.told = int64(refusal.RetryAfter)
	}
	q.told += int64(p.l.Now())
	ask := &Ask{Needs: p.needs(r), MaxWait: wait}
	go func() {
		defer cancel()
		g, needs, refusal, err := p.l.Enter(ctx, ask, nil, nil)
		now := int64(p.l.Now())
		switch {
		case err != nil:
			q.end = fmt.Sprintf("cancelled at %d", now)
		case refusal != nil && refusal.RetryAfter == Never:
			q.end = fmt.Sprintf("refused at %d: never", now)
		case refusal != nil:
			q.end = fmt.Sprintf("refused at %d: %d", now, refusal.RetryAfter)
		default:
			q.end = fmt.Sprintf("started at %d", now)
			q.at, q.started = int64(g.At), true
			if r.cancel {
				p.l.Cancel(&g, needs)
				return
			}
			p.l.Sent(&g)
		}
	}()
	synctest.Wait()
}

// play runs the script on both, and returns the first difference.
func play(s script, exact bool) (diff string) {
	l := New()
	m := &model{specs: s.specs, states: []law.State{law.NewPace()}}
	p := &player{l: l, budgets: []*Budget{l.NewPause()}}
	for _, spec := range s.specs {
		p.budgets = append(p.budgets, l.NewBudget(&spec))
		m.states = append(m.states, law.New(spec, time.Time{}))
	}
	var seq uint64
	var log []string
	check := func(what string) bool {
		synctest.Wait()
		for i, r := range m.all {
			q := p.all[i]
			if exact && q.end != r.end {
				diff = fmt.Sprintf("after %s at %d: request %d: the line says %q, the model %q (planned for %d)", what, m.now, i, q.end, r.end, r.at)
				break
			}
			if q.started && q.at > q.told && q.told < law.Never {
				diff = fmt.Sprintf("after %s: request %d started at %d, later than the %d that it was told", what, i, q.at, q.told)
				break
			}
		}
		if waiting, _ := l.Waiting(); diff == "" && waiting == 0 && (l.timerAt != law.Never || l.chain.first != nil || l.many) {
			diff = fmt.Sprintf("after %s: nobody waits, and the timer is set for %d, mixed %v", what, l.timerAt, l.many)
		}
		if diff != "" {
			diff = fmt.Sprintf("%v\n%s\n%s", s.specs, strings.Join(log, "\n"), diff)
		}
		return diff == ""
	}
	defer func() {
		for _, q := range p.all {
			q.cancel()
		}
		synctest.Wait()
	}()
	for _, o := range s.ops {
		log = append(log, fmt.Sprintf("%4d %v", m.now, o))
		touched := map[int]bool{}
		var budgets []*Budget
		for _, b := range o.budgets {
			touched[b] = true
			budgets = append(budgets, p.budgets[b])
		}
		if o.kind == "pause" || o.kind == "limit" || o.kind == "spend" && o.n > 0 {
			for _, q := range p.all {
				if q.end == "" {
					q.told = law.Never
				}
			}
		}
		switch o.kind {
		case "arrive", "look":
			r := *o.req
			seq++
			r.seq = seq
			wait := time.Duration(-1)
			if o.wait != nil {
				r.by, wait = m.now+*o.wait, time.Duration(*o.wait)
			}
			if o.kind == "arrive" {
				m.arrive(&r)
				p.arrive(&r, wait)
				break
			}
			r.at = m.search(&r, nil)
			want := time.Duration(0)
			if r.at == law.Never {
				want = Never
			} else {
				want = time.Duration(r.at - m.now)
			}
			got := time.Duration(0)
			if refusal := l.Delay(&Ask{Needs: p.needs(&r)}, nil); refusal != nil {
				got = refusal.RetryAfter
			}
			if exact && got != want {
				diff = fmt.Sprintf("%v\n%s\nit would wait %d, want %d", s.specs, strings.Join(log, "\n"), got, want)
				return diff
			}
		case "advance":
			time.Sleep(time.Duration(o.by))
			synctest.Wait()
			m.advance(o.by)
		case "cancel":
			p.all[o.which].cancel()
			synctest.Wait()
			if r := m.all[o.which]; r.end == "" {
				m.leave(r, "cancelled at %d", m.now)
				for _, n := range r.needs {
					touched[n.b] = true
				}
				m.improve(touched)
				m.settle()
			}
		case "spend":
			l.Spend(o.n, budgets...)
			for _, b := range o.budgets {
				m.states[b].Spend(m.now, o.n)
			}
			if o.n > 0 {
				m.worse(touched)
			} else {
				m.improve(touched)
				m.settle()
			}
		case "pause":
			l.PauseUntil(p.budgets[0], time.Now().Add(time.Duration(o.by)))
			if o.by > 0 && m.states[0].(*law.Pace).Until(m.now, m.now+o.by) {
				m.worse(map[int]bool{0: true})
			}
		case "limit":
			b := o.budgets[0]
			l.Reconfigure([]Change{{B: p.budgets[b], Limit: &o.spec}}, 0, 0)
			m.states[b] = law.Convert(m.states[b], o.spec, m.now, time.Time{})
			m.worse(touched)
		case "give":
			r := m.all[o.which]
			i := slices.IndexFunc(r.needs, func(n need) bool { return n.b == o.budgets[0] })
			if !strings.HasPrefix(r.end, "started") || r.cancel || i < 0 {
				break
			}
			cost := min(o.cost, r.needs[i].cost)
			r.needs = slices.Clone(r.needs)
			r.needs[i].cost -= cost
			l.Give(budgets[0], time.Duration(p.all[o.which].at), cost)
			m.states[o.budgets[0]].Give(r.at, cost, false)
			m.improve(touched)
			m.settle()
		case "peek":
			l := l.lockOnly()
			l.planAll(l.last, false)
			for w, i := l.first, 0; w != nil; w, i = w.next, i+1 {
				if exact && (i >= len(m.line) || w.at != m.line[i].at) {
					diff = fmt.Sprintf("%v\n%s\nrequest %d in line is planned for %d, want %v", s.specs, strings.Join(log, "\n"), i, w.at, m.line[i].at)
				}
			}
			l.mu.Unlock()
			if diff != "" {
				return diff
			}
		}
		if !check(o.String()) {
			return diff
		}
	}
	for range m.line {
		if len(m.line) == 0 {
			break
		}
		d := m.line[0].at - m.now
		time.Sleep(time.Duration(d))
		synctest.Wait()
		m.advance(d)
		if !check("waiting on") {
			return diff
		}
	}
	time.Sleep(time.Minute)
	if !check("all") {
		return diff
	}
	if w, f := l.Waiting(); w != 0 || f != 0 {
		return fmt.Sprintf("%v\n%s\nin the end %d wait and %d are in flight", s.specs, strings.Join(log, "\n"), w, f)
	}
	return ""
}

func testModel(t *testing.T, kinds []law.Kind, plain, exact bool) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawScript(rt, kinds, plain, 60)
		if !exact {
			// Nothing that would free the line from what it told.
			s.ops = slices.DeleteFunc(s.ops, func(o op) bool {
				return o.kind == "pause" || o.kind == "limit" || o.kind == "spend" && o.n > 0
			})
		}
		var diff string
		synctest.Test(t, func(*testing.T) { diff = play(s, exact) })
		if diff != "" {
			rt.Fatal(diff)
		}
	})
}

// TestS42_NobodyLaterThanTold: without a pause, a lowered limit or a spend,
// nobody starts later than Delay told when it came.
func TestS42_NobodyLaterThanTold(t *testing.T) {
	for _, kind := range []law.Kind{law.Window, law.Bucket, law.Spaced, law.Sliding} {
		for _, plain := range []bool{true, false} {
			t.Run(fmt.Sprintf("%v/plain=%v", kind, plain), func(t *testing.T) { testModel(t, []law.Kind{kind}, plain, false) })
		}
	}
}

// TestModel compares the line with the model, step by step.
func TestModel(t *testing.T) {
	monotone := []law.Kind{law.Window, law.Bucket, law.Spaced}
	for _, c := range []struct {
		name  string
		kinds []law.Kind
		plain bool
	}{
		{"window", []law.Kind{law.Window}, false},
		{"bucket", []law.Kind{law.Bucket}, false},
		{"mixed", monotone, false},
		{"plain", monotone, true},
	} {
		t.Run(c.name, func(t *testing.T) { testModel(t, c.kinds, c.plain, true) })
	}
}
