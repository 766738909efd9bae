package line

import (
	"errors"
	"math"
	"time"

	"github.com/headway-go/headway/internal/awake"
	"github.com/headway-go/headway/internal/law"
)

// A Budget is the units of one limit for one key. It belongs to one line, whose
// lock guards it.
type Budget struct {
	state   law.State
	*demand      // none while it has none
	strict  bool // its state is
	retired bool // forgotten: whoever still holds it looks for another
	counted bool // its demand has what few would have
	// few is the units granted and not answered, where that is counted. Those of
	// an idle budget have room here.
	few int32
}

// addInFlight counts n units as granted and not answered.
func (b *Budget) addInFlight(n int64) {
	if sum := int64(b.few) + n; !b.counted && sum == int64(int32(sum)) {
		b.few = int32(sum)
		return
	}
	*b.countInFlight() += n
}

// countInFlight returns where the units granted and not answered are counted from now
// on, for who has to look at them later.
func (b *Budget) countInFlight() *int64 {
	if !b.counted {
		b.wanted().inFlight, b.few, b.counted = int64(b.few), 0, true
	}
	return &b.demand.inFlight
}

// A demand is what few budgets know: of those who wait for them, and from answers.
type demand struct {
	plan  *law.Plan // nil until somebody is planned
	users int       // how many in line need it
	// Mixed lines: the classes for which this budget is the first need, and
	// when a replan last touched it.
	classes   []*class
	stamp     uint64
	announced []announcement // what answers have said about it
	audience  *audience      // of the identity that it belongs to; see OpenAudience
	inFlight  int64          // see Budget.counted
}

// noDemand is the demand of every budget without one. Nobody writes to it.
var noDemand demand

// wanted gives b a demand of its own, to write to.
func (b *Budget) wanted() *demand {
	if b.demand == &noDemand {
		b.demand = new(demand)
	}
	return b.demand
}

// NewBudget returns an empty budget of l; nil is no limit.
func (l *Line) NewBudget(s *law.Spec) *Budget {
	now := l.lock()
	defer l.unlock()
	return l.newBudget(s, now)
}

func (l *Line) newBudget(s *law.Spec, now law.Time) *Budget {
	b := &Budget{demand: &noDemand}
	l.setLimit(b, s, now)
	return b
}

// NewPause returns a budget that is a pause of l and the gentle restart after
// it. A request needs 1 of it.
func (l *Line) NewPause(limits ...law.Spec) *Budget {
	return &Budget{state: law.NewPace(limits...), demand: &noDemand}
}

// SetLimits puts the budgets of one request under limits, place by place, as
// one change. What they remember still counts. Budgets without a limit are left
// open, and limits without a budget get a new one, which everybody in line who
// needs the last of budgets needs as much of. It returns the budgets, one at
// least, for Ask.List. The pause restarts under the new limits.
func (l *Line) SetLimits(budgets []*Budget, limits []law.Spec, pause *Budget) *[]*Budget {
	now := l.lock()
	defer l.unlock()
	list := append([]*Budget(nil), budgets...)
	for i := range max(1, len(budgets), len(limits)) {
		var s *law.Spec
		if i < len(limits) {
			s = &limits[i]
		}
		if i < len(budgets) {
			l.setLimit(list[i], s, now)
			continue
		}
		b := l.newBudget(s, now)
		if len(budgets) > 0 {
			l.holdWaiting(b, Scope{Rule: budgets[len(budgets)-1]}, false)
		}
		list = append(list, b)
	}
	pause.state.(*law.Pace).SetLimits(limits...)
	l.quick.Store(nil)
	l.more()
	if l.lone, l.pause = nil, pause; len(limits) == 1 {
		l.lone = list[0]
		l.quick.Store(law.NewQuick(l.lone.state, now))
	}
	l.changed(now, true, append([]*Budget{pause}, list...)...)
	if len(list) > len(budgets) {
		l.list, l.listed = &list, []Need{{B: pause, Cost: 1}}
		for _, b := range list {
			l.listed = append(l.listed, Need{B: b})
		}
	}
	return l.list
}

// A Change puts a budget under another limit, or under none.
type Change struct {
	B     *Budget
	Limit *law.Spec // nil: none
	Gone  bool      // it is retired, whoever needs it
}

// Reconfigure makes changes, and sets how many may wait and how many may be in
// flight (zero is no cap), as one change. What the budgets remember still
// counts. Those in flight without a slot are not counted.
func (l *Line) Reconfigure(changes []Change, waiting, inFlight int) {
	now := l.lock()
	defer l.unlock()
	l.max, l.slots = int32(min(waiting, math.MaxInt32)), int32(min(inFlight, math.MaxInt32))
	budgets := make([]*Budget, len(changes))
	for i, c := range changes {
		l.setLimit(c.B, c.Limit, now)
		budgets[i] = c.B
		if c.Gone {
			l.part(c.B)
		}
	}
	for w := l.first; w != nil; w = w.next {
		l.limitWait(w)
	}
	l.changed(now, true, budgets...)
}

// part retires b, and forgets the identity that it belongs to.
func (l *Line) part(b *Budget) {
	b.retired = true
	if b.audience != nil {
		delete(l.audiences.ids, b.audience.identity)
		b.audience = nil
	}
}

// SetCaps is Reconfigure without changes.
func (l *Line) SetCaps(waiting, inFlight int) { l.Reconfigure(nil, waiting, inFlight) }

func (l *Line) setLimit(b *Budget, s *law.Spec, now law.Time) {
	before := int64(0)
	if b.state != nil {
		before = b.state.Max()
	}
	if s == nil {
		b.state, b.strict = law.Open(), false
	} else {
		b.state, b.strict = law.Convert(b.state, *s, now, l.wall(now)), s.Strict
	}
	l.strict = l.strict || b.strict
	if l.waiting > 0 && b.state.Max() < before {
		l.lowered = true
	}
	l.watch(b)
}

// wall returns what the wall clock shows at the instant 0.
func (l *Line) wall(now law.Time) time.Time {
	return awake.Wall().Add(-time.Duration(now))
}

// watch keeps the list of budgets that follow the wall clock.
func (l *Line) watch(b *Budget) {
	calendar := law.IsCalendar(b.state)
	if !calendar && len(l.walls) == 0 {
		return
	}
	keep := l.more().walls[:0]
	for _, o := range l.walls {
		if o != b {
			keep = append(keep, o)
		}
	}
	l.walls = keep
	if calendar {
		l.walls = append(l.walls, b)
	}
}

// changed tells the line that something other than a planned start has changed
// what budgets remember; worse says that it may have become less.
func (l *Line) changed(now law.Time, worse bool, budgets ...*Budget) {
	needs := make([]Need, len(budgets))
	for i, b := range budgets {
		b.forget()
		needs[i].B = b
	}
	l.replan(now, needs, worse)
}

// forget notes that what b remembers is not what its plan was made from.
func (b *Budget) forget() {
	if b.plan != nil {
		b.plan.Forget()
	}
}

func (b *Budget) planned() *law.Plan {
	if b.plan == nil {
		b.wanted().plan = new(law.Plan)
	}
	return b.plan
}

// Retire forgets a budget if nobody could tell it from a new one. Who enters
// with it afterwards gets ErrRetired.
func (l *Line) Retire(b *Budget) bool {
	now := l.lock()
	defer l.unlock()
	if !b.retired && !b.recovered(now) {
		return false
	}
	l.part(b)
	return true
}

// recovered reports whether b makes no other difference to any request than a new
// one.
func (b *Budget) recovered(now law.Time) bool {
	return b.users == 0 && b.few == 0 && b.inFlight == 0 && b.state.Recovered(now) && recovered(b.announced, now) && b.audience.recovered(now)
}

// InUse reports whether Retire would fail for each of budgets. Of none, it is false.
func (l *Line) InUse(budgets []*Budget) bool {
	now := l.lock()
	defer l.unlock()
	for _, b := range budgets {
		if b.retired || b.recovered(now) {
			return false
		}
	}
	return len(budgets) > 0
}

// RetireAll is Retire for the whole line, whose budgets and only gate, or nil,
// are given.
func (l *Line) RetireAll(budgets []*Budget, g *Gate) bool {
	now := l.lock()
	defer l.unlock()
	if l.waiting > 0 || l.slotsTaken > 0 || l.inFlight > 0 || l.chain.first != nil {
		return false
	}
	for _, b := range budgets {
		if b != nil && !(b.state.Recovered(now) && recovered(b.announced, now)) {
			return false
		}
	}
	if h := l.audiences; h != nil {
		if !recovered(h.all.list, now) {
			return false
		}
		for _, e := range h.ids {
			if !e.recovered(now) {
				return false
			}
		}
	}
	l.retired = g == nil || l.retireGate(g, now)
	return l.retired
}

// ErrRetired says that the line or a budget has been forgotten meanwhile. The
// caller looks for its successor and enters again.
var ErrRetired = errors.New("line: retired")

// ErrNoAudience says that there is no place for what concerns an identity: OpenAudience
// makes it.
var ErrNoAudience = errors.New("line: no ear")

// gone reports whether needs belong to what is forgotten.
func (l *Line) gone(needs []Need) bool {
	for i := range needs {
		if needs[i].B.retired {
			return true
		}
	}
	return l.retired
}
