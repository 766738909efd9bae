package line

import (
	"slices"
	"strings"
	"time"

	"github.com/headway-go/headway/internal/law"
)

// A hearing is what a line knows from its server's answers: pauses, and what is
// said to be left. Each is a budget that those whom it concerns need besides
// their own.
type hearing struct {
	host ear             // what concerns everybody; line.flying counts for it
	ids  map[uint64]*ear // what concerns one identity
	// flying is how many requests of an identity without an ear are granted and
	// not answered.
	flying map[uint64]int64
}

// An ear is what was said to one identity, or to all.
type ear struct {
	label  string // of the identity, for Heard
	flying int64  // requests granted and not answered
	list   []held
}

// held is one budget that an answer has made.
type held struct {
	b      *Budget
	only   *Budget    // it holds those of the identity who need this one; nil: all
	source string     // which dialect said so
	key    LearnedKey // of what is left
	status int        // of the answer that raised the pause
}

// A LearnedKey tells the limits that one server announces apart.
type LearnedKey struct {
	Name   string
	Window time.Duration
}

// mostLearned bounds how many limits of one identity or budget are kept: the
// names are the server's.
const mostLearned = 8

// A Scope is whom an answer concerns: an identity, or everybody where that is
// zero; and of it those who need Rule, unless that is nil.
type Scope struct {
	Who  uint64
	Rule *Budget
}

// OpenEar makes the place for what concerns an identity alone. Without it Pause
// and Learn return ErrRetired.
func (l *Line) OpenEar(who uint64, label string) {
	l.lock()
	defer l.unlock()
	h := l.hear()
	if h.ids[who] != nil {
		return
	}
	if h.ids == nil {
		h.ids = map[uint64]*ear{}
	}
	h.ids[who] = &ear{label: label, flying: h.flying[who]}
	delete(h.flying, who)
}

// RetireEar forgets what was said to an identity, if nobody can notice.
func (l *Line) RetireEar(who uint64) bool {
	now := l.lock()
	defer l.unlock()
	e := l.hear().ids[who]
	if e != nil && (e.flying > 0 || !recovered(e.list, now)) {
		return false
	}
	delete(l.heard.ids, who)
	return true
}

func (l *Line) hear() *hearing {
	if l.heard == nil {
		l.more().heard = new(hearing)
	}
	return l.heard
}

func recovered(list []held, now law.Time) bool {
	for i := range list {
		if b := list[i].b; b.users > 0 || !b.state.Recovered(now) {
			return false
		}
	}
	return true
}

// ear returns the ear of an identity; nil if there is none.
func (l *Line) ear(who uint64) *ear {
	h := l.hear()
	if who == 0 {
		return &h.host
	}
	return h.ids[who]
}

// heed adds to the needs of a request what answers have brought.
func (l *Line) heed(all []Need, who uint64) []Need {
	h := l.heard
	if h == nil {
		return all
	}
	own := len(all)
	for i := range own {
		n := all[i]
		for _, h := range n.B.heard {
			all = append(all, Need{B: h.b, Cost: n.Cost})
		}
	}
	if e := h.ids[who]; e != nil {
		all = l.heedEar(all, own, e)
	}
	return l.heedEar(all, own, &h.host)
}

func (l *Line) heedEar(all []Need, own int, e *ear) []Need {
	if l.waiting == 0 {
		e.list = forget(e.list, l.last)
	}
	for i := range e.list {
		if h := &e.list[i]; h.only == nil || needs(all[:own], h.only) {
			all = append(all, Need{B: h.b, Cost: 1})
		}
	}
	return all
}

// heedAll calls f with what answers have brought for a request without an
// identity that takes one unit of each of budgets.
func (l *Line) heedAll(budgets []*Budget, f func(*Budget)) {
	for _, b := range budgets {
		for _, h := range b.heard {
			f(h.b)
		}
	}
	list := l.heard.host.list
	for i := range list {
		if h := &list[i]; h.concerns(budgets) {
			f(h.b)
		}
	}
}

// concerns reports whether it holds those of the identity who need budgets.
func (h *held) concerns(budgets []*Budget) bool {
	return h.only == nil || slices.Contains(budgets, h.only)
}

// forget drops what no longer makes a difference.
func forget(list []held, now law.Time) []held {
	for i := range list {
		if recovered(list[i:i+1], now) {
			return slices.DeleteFunc(list, func(h held) bool { return recovered([]held{h}, now) })
		}
	}
	return list
}

func needs(list []Need, b *Budget) bool {
	for i := range list {
		if list[i].B == b {
			return true
		}
	}
	return false
}

// depart counts a request as granted and not answered; with n of -1 it takes
// that back.
func (l *Line) depart(needs []Need, who uint64, n int64) {
	for i := range needs {
		needs[i].B.fly(n * needs[i].Cost)
	}
	l.flying += n
	if who == 0 {
		return
	}
	h := l.hear()
	if e := h.ids[who]; e != nil {
		e.flying += n
		return
	}
	if h.flying == nil {
		h.flying = map[uint64]int64{}
	}
	if h.flying[who] += n; h.flying[who] <= 0 {
		delete(h.flying, who)
	}
}

// A Pause is what an answer said about coming back.
type Pause struct {
	Scope
	Source  string
	Status  int           // of the answer
	Limits  []law.Spec    // under which those held restart gently
	For     time.Duration // from now
	Grow    bool          // nobody said how long: For, doubled each time, up to Most
	Most    time.Duration
	Started time.Duration // when the request started
}

// Pause makes those concerned wait, those in line among them. It returns for how
// long, from now; zero where nobody waits longer by it.
func (l *Line) Pause(p *Pause) (time.Duration, error) {
	now := l.lock()
	defer l.unlock()
	e := l.ear(p.Who)
	if l.retired || e == nil || p.Rule != nil && p.Rule.retired {
		return 0, ErrRetired
	}
	h := e.find(func(h *held) bool { return h.only == p.Rule && h.isPause() })
	if h == nil {
		e.list = append(e.list, held{b: l.NewPause(p.Limits...), only: p.Rule})
		h = &e.list[len(e.list)-1]
		l.hold(h.b, p.Scope, true)
	}
	pace := h.b.state.(*law.Pace)
	length := p.For
	if p.Grow {
		length = time.Duration(pace.Grow(now, int64(p.Started), int64(p.For), int64(p.Most)))
	} else if !pace.Until(now, satAdd(now, p.For)) {
		length = 0
	}
	if length > 0 {
		h.source = p.Source
		pace.SetLimits(append(p.Limits, announced(e.list)...)...)
		h.status = p.Status
		l.paused(h.b)
		l.changed(now, true, h.b)
	}
	return length, nil
}

// announced returns the limits that a server has announced.
func announced(list []held) (limits []law.Spec) {
	for i := range list {
		if c, ok := list[i].b.state.(*law.Cap); ok {
			limits = append(limits, c.Announced()...)
		}
	}
	return limits
}

func satAdd(t law.Time, d time.Duration) law.Time {
	if int64(d) > law.Never-1-t {
		return law.Never - 1
	}
	return t + int64(d)
}

func (e *ear) find(is func(*held) bool) *held {
	for i := range e.list {
		if is(&e.list[i]) {
			return &e.list[i]
		}
	}
	return nil
}

func (h *held) isPause() bool {
	_, ok := h.b.state.(*law.Pace)
	return ok
}

// Succeeded tells the pauses of an identity that a request which started then
// has succeeded: they no longer grow.
func (l *Line) Succeeded(who uint64, started time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.heard == nil {
		return
	}
	l.heard.host.succeeded(started)
	if e := l.heard.ids[who]; e != nil {
		e.succeeded(started)
	}
}

func (e *ear) succeeded(started time.Duration) {
	for i := range e.list {
		if p, ok := e.list[i].b.state.(*law.Pace); ok {
			p.Succeeded(int64(started))
		}
	}
}

// Learn takes in what an answer said is left of a limit: of the budget
// s.Rule, whoever needs it, or else of those of an identity. It reports how many
// units others have spent; see law.Cap. The oldest of too many limits goes. With
// ended it is Arrived too, before that.
func (l *Line) Learn(s Scope, key LearnedKey, source string, said *law.Said, ended []*Budget) (spent int64, err error) {
	now := l.lock()
	if ended != nil {
		l.count1(ended, -1)
	}
	spent, err = l.learn(s, key, source, said, now)
	l.unlock()
	return spent, err
}

func (l *Line) learn(s Scope, key LearnedKey, source string, said *law.Said, now law.Time) (spent int64, err error) {
	if l.retired || s.Rule != nil && s.Rule.retired {
		return 0, ErrRetired
	}
	var list *[]held
	var flying *int64
	l.hear()
	if s.Rule != nil {
		s.Who = 0
		list, flying = &s.Rule.wanted().heard, s.Rule.flights()
	} else {
		e := l.ear(s.Who)
		if e == nil {
			return 0, ErrRetired
		}
		if list, flying = &e.list, &e.flying; s.Who == 0 {
			flying = &l.flying
		}
	}
	i := slices.IndexFunc(*list, func(h held) bool { return h.key == key && !h.isPause() })
	isNew := i < 0
	if isNew {
		if i = l.makeRoom(list); i < 0 {
			return 0, nil
		}
		key.Name = strings.Clone(key.Name) // it was a part of all headers
		(*list)[i] = held{b: &Budget{state: law.NewCap(key.Name, flying), demand: &none}, key: key}
	}
	h := &(*list)[i]
	h.source = source
	c := h.b.state.(*law.Cap)
	if l.waiting == 0 {
		return c.Hear(now, *said), nil
	}
	before := c.Remaining(now)
	spent = c.Hear(now, *said)
	switch {
	case isNew:
		l.hold(h.b, s, false)
		l.changed(now, true, h.b)
	default:
		l.changed(now, c.Remaining(now) < before, h.b)
	}
	return spent, nil
}

// makeRoom returns the index of a new element, or -1 where the list is full and
// all are in use.
func (l *Line) makeRoom(list *[]held) int {
	n, idle := 0, -1
	for i := range *list {
		if h := &(*list)[i]; !h.isPause() {
			if n++; idle < 0 && h.b.users == 0 {
				idle = i
			}
		}
	}
	if n >= mostLearned {
		return idle
	}
	*list = append(*list, held{})
	return len(*list) - 1
}

// hold makes those in line whom s concerns need b besides: one unit of it, or as
// much as of s.Rule.
func (l *Line) hold(b *Budget, s Scope, one bool) {
	l.attach(b, func(w *waiter) int64 {
		if s.Who != 0 && w.who != s.Who {
			return 0
		}
		if s.Rule == nil {
			return 1
		}
		for i := range w.needs {
			if w.needs[i].B == s.Rule && one {
				return 1
			} else if w.needs[i].B == s.Rule {
				return w.needs[i].Cost
			}
		}
		return 0
	})
}

// attach makes those in line need as much of b besides as cost says.
func (l *Line) attach(b *Budget, cost func(*waiter) int64) {
	some, all := false, true
	for w := l.first; w != nil; w = w.next {
		if cost(w) > 0 {
			some = true
		} else {
			all = false
		}
	}
	if !some {
		return
	}
	if l.mixed || !all {
		l.regroup(b, cost)
		return
	}
	l.dropPlan()
	for w := l.first; w != nil; w = w.next {
		w.need(b, cost(w))
	}
	l.plain.needs = l.first.needs
}

func (w *waiter) need(b *Budget, cost int64) {
	w.needs = append(slices.Clip(w.needs), Need{B: b, Cost: cost})
	b.wanted().users++
}

// regroup is attach where afterwards needs differ. Planned starts stay: the
// caller looks whether they are still possible.
func (l *Line) regroup(b *Budget, cost func(*waiter) int64) {
	if !l.mixed {
		l.mix()
	}
	for w := l.first; w != nil; w = w.next {
		l.unplan(w)
		if w.class.first == w {
			l.drop(w.class)
		}
	}
	for w := l.first; w != nil; w = w.next {
		w.ahead, w.after, w.class = nil, nil, nil
	}
	for w := l.first; w != nil; w = w.next {
		if n := cost(w); n > 0 {
			w.need(b, n)
		}
		c := l.classOf(w.needs, w.noSlot, w.gate)
		if c == nil {
			c = &class{needs: w.needs, noSlot: w.noSlot, gate: w.gate}
			l.file(c)
		}
		c.push(w)
		l.plan(w)
		if c.first == w {
			w.journal.leads()
			l.due.push(c)
		}
	}
}

// Heard is what a line knows from answers, for pages.
type Heard struct {
	Label  string  // of the identity
	Rule   *Budget // which it is about; nil: all
	Source string
	// A pause, or what is left of a limit.
	Pause time.Duration // until its end; zero for a limit
	LearnedKey
	Left, Limit int64         // Limit is negative where nobody said it
	Reset       time.Duration // until units come back; negative where nobody said
	Age         time.Duration
	Drift       int64
}

// Heard returns the pauses that hold and the limits that were learned, those of
// each of budgets among them.
func (l *Line) Heard(budgets []*Budget) (all []Heard) {
	now := l.lock()
	defer l.unlock()
	add := func(label string, rule *Budget, list []held) {
		for i := range list {
			h := Heard{Label: label, Rule: rule, Source: list[i].source, LearnedKey: list[i].key}
			if list[i].only != nil {
				h.Rule = list[i].only
			}
			switch st := list[i].b.state.(type) {
			case *law.Pace:
				end, paused := st.End(now)
				if !paused {
					continue
				}
				h.Pause = time.Duration(end - now)
			case *law.Cap:
				s := st.Status(now)
				h.Left, h.Limit, h.Drift = s.Left, s.Limit, s.Drift
				h.Reset, h.Age = time.Duration(s.Reset-now), time.Duration(now-s.Told)
				if s.Blind {
					h.Reset, h.Limit = -1, -1
				}
			}
			all = append(all, h)
		}
	}
	for _, b := range budgets {
		add("", b, b.heard)
	}
	if h := l.heard; h != nil {
		add("", nil, h.host.list)
		for _, e := range h.ids {
			add(e.label, nil, e.list)
		}
	}
	return all
}

// roomHeard reports whether a request that takes one unit of each of budgets and
// has no identity can start now, for all that answers have brought.
func (l *Line) roomHeard(budgets []*Budget, now law.Time) bool {
	host := &l.heard.host
	for i := range host.list {
		if recovered(host.list[i:i+1], now) {
			host.list = forget(host.list, now)
			break
		}
	}
	for _, b := range budgets {
		if !haveRoom(b.heard, budgets, now) {
			return false
		}
	}
	return haveRoom(host.list, budgets, now)
}

// takeHeard takes what roomHeard has found room for.
func (l *Line) takeHeard(budgets []*Budget, now law.Time) {
	for _, b := range budgets {
		takeAll(b.heard, budgets, now)
	}
	takeAll(l.heard.host.list, budgets, now)
}

// haveRoom reports whether each of list that concerns who needs budgets has a
// unit now. A pause never has: it may have to hear of a success.
func haveRoom(list []held, budgets []*Budget, now law.Time) bool {
	for i := range list {
		c, ok := list[i].b.state.(*law.Cap)
		if !ok {
			return false
		}
		if list[i].concerns(budgets) {
			if at, _ := c.Earliest(now, now, 1); at > now {
				return false
			}
		}
	}
	return true
}

// takeAll takes a unit of each of list, which haveRoom.
func takeAll(list []held, budgets []*Budget, now law.Time) {
	for i := range list {
		if list[i].concerns(budgets) {
			list[i].b.state.(*law.Cap).Take(now, 1)
		}
	}
}

func (l *Line) undoHeard(budgets []*Budget, count bool, at time.Duration) {
	now := l.lock()
	defer l.unlock()
	if count {
		l.count1(budgets, -1)
	}
	if l.heard == nil {
		return
	}
	l.heedAll(budgets, func(b *Budget) {
		b.state.Give(int64(at), 1, false)
		l.changed(now, false, b)
	})
}

// Arrived is Answered for what Start has counted. Learn can do it besides.
func (l *Line) Arrived(budgets []*Budget) {
	l.mu.Lock()
	l.count1(budgets, -1)
	l.mu.Unlock()
}

// count1 is depart for a request that takes one unit of each of budgets and has
// no identity.
func (l *Line) count1(budgets []*Budget, n int64) {
	for _, b := range budgets {
		b.fly(n)
	}
	l.flying += n
}

// remaining is how many units of b could start now, by what was learned too.
func (b *Budget) remaining(now law.Time) int64 {
	left := b.state.Remaining(now)
	for _, h := range b.heard {
		left = min(left, h.b.state.Remaining(now))
	}
	return left
}

// explain says what r.B is, where it is what an answer has brought.
func (r *Refusal) explain(needs []Need) {
	switch st := r.B.state.(type) {
	case *law.Pace:
		r.Pause = true
	case *law.Cap:
		for i := range needs {
			for _, h := range needs[i].B.heard {
				if h.b == r.B {
					r.B = needs[i].B
					return
				}
			}
		}
		if r.Learned = "learned"; st.Name != "" {
			r.Learned += " " + st.Name
		}
	}
}
