package line

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/headway-go/headway/internal/awake"
	"github.com/headway-go/headway/internal/law"
)

// A Budget is the units of one limit for one key. It belongs to one line, whose
// lock guards it.
type Budget struct {
	state   law.State
	*demand      // the rarely needed fields; noDemand while they are all zero
	strict  bool // its state is
	retired bool // forgotten: a request that still has it looks for another
	counted bool // demand.inFlight has what few would have
	// few is the units that started and are not done, where that is counted. Those of
	// an idle budget have room here.
	few int32
}

// addInFlight counts n units as started and not done.
func (b *Budget) addInFlight(n int64) {
	if sum := int64(b.few) + n; !b.counted && sum == int64(int32(sum)) {
		b.few = int32(sum)
		return
	}
	*b.countInFlight() += n
}

// countInFlight returns where the units that started and are not done are counted from
// now on, for those that have to look at them later.
func (b *Budget) countInFlight() *int64 {
	if !b.counted {
		b.wanted().inFlight, b.few, b.counted = int64(b.few), 0, true
	}
	return &b.demand.inFlight
}

// A demand is what few budgets know: of the requests that wait for them, and from
// responses.
type demand struct {
	plan  *law.Plan // nil until a start is planned
	users int       // how many in line need it
	// Many classes: those for which this budget is the first need, and when a replan last
	// touched it.
	classes   []*class
	stamp     uint64
	announced announcements // limits of this budget alone
	audience  *audience     // of the identity that it belongs to; see OpenAudience
	origin    *origin       // of a budget that is an announcement
	inFlight  int64         // see Budget.counted
}

// noDemand is the demand of every budget without one; it is shared and never written, as
// noExtra is.
var noDemand demand

// wanted gives b a demand of its own, to write to.
func (b *Budget) wanted() *demand {
	if b.demand == &noDemand {
		b.demand = new(demand)
	}
	return b.demand
}

// planned returns b's plan of starts.
func (b *Budget) planned() *law.Plan {
	if b.plan == nil {
		b.wanted().plan = new(law.Plan)
	}
	return b.plan
}

// forget notes that what b remembers is not what its plan was made from.
func (b *Budget) forget() {
	if b.plan != nil {
		b.plan.Forget()
	}
}

// andAnnounced returns budgets and the announced limits of them.
func andAnnounced(budgets ...*Budget) []*Budget {
	list := slices.Clip(budgets)
	for _, b := range budgets {
		for i := range b.announced {
			list = append(list, b.announced[i].Budget)
		}
	}
	return list
}

// remaining returns how many units of b could start now, by announced limits too.
func (b *Budget) remaining(now law.Time) int64 {
	return b.leastAnnounced(now, b.state.Remaining(now))
}

// leastAnnounced returns left, or what an announced limit of b has left where that is less.
func (b *Budget) leastAnnounced(now law.Time, left int64) int64 {
	for i := range b.announced {
		left = min(left, b.announced[i].Limit.Remaining(now))
	}
	return left
}

// recovered reports whether b makes no other difference to any request than a new
// one.
func (b *Budget) recovered(now law.Time) bool {
	return b.users == 0 && b.few == 0 && b.inFlight == 0 && b.state.Recovered(now) && recovered(b.announced, now) && b.audience.recovered(now)
}

// NewBudget returns an empty budget of the line; nil is no limit.
func (line *Line) NewBudget(s *law.Spec) *Budget {
	l, now := line.lock()
	defer l.unlock()
	return l.newBudget(s, now)
}

func (l *locked) newBudget(s *law.Spec, now law.Time) *Budget {
	b := &Budget{demand: &noDemand}
	l.setLimit(b, s, now)
	return b
}

// NewPause returns a budget that is a pause of the line and the gentle restart after
// it. A request needs one unit of it.
func (line *Line) NewPause(limits ...law.Spec) *Budget {
	return &Budget{state: law.NewPace(limits...), demand: &noDemand}
}

// SetLimits puts the budgets of one request under limits, place by place, as
// one change. What they remember still counts. Budgets without a limit are left
// open, and limits without a budget get a new one, of which every request in line needs
// as much as of the last of budgets. It returns the budgets, one at
// least, for Ask.List. The pause restarts under the new limits.
func (line *Line) SetLimits(budgets []*Budget, limits []law.Spec, pause *Budget) *[]*Budget {
	l, now := line.lock()
	defer l.unlock()
	list := slices.Clone(budgets)
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
			l.attach(b, Scope{Rule: budgets[len(budgets)-1]})
		}
		list = append(list, b)
	}
	pause.state.(*law.Pace).SetLimits(limits...)
	l.quick.Store(nil)
	l.wantExtra()
	if l.lone, l.pause = nil, pause; len(limits) == 1 {
		l.lone = list[0]
		l.quick.Store(law.NewQuick(l.lone.state, now))
	}
	l.changed(now, true, append([]*Budget{pause}, list...)...)
	if len(list) > len(budgets) {
		l.list, l.listed = &list, oneOfEach([]Need{{B: pause, Cost: 1}}, list)
	}
	return l.list
}

// A Change puts a budget under another limit, or under none.
type Change struct {
	B     *Budget
	Limit *law.Spec // nil: none
	Gone  bool      // it is retired, even if requests need it
}

// Reconfigure makes changes, and sets how many may wait and how many may be in
// flight (zero is no cap), as one change. What the budgets remember still
// counts. Requests in flight without a slot are not counted.
func (line *Line) Reconfigure(changes []Change, waiting, inFlight int) {
	l, now := line.lock()
	defer l.unlock()
	l.max, l.slots = int32(min(waiting, math.MaxInt32)), int32(min(inFlight, math.MaxInt32))
	budgets := make([]*Budget, len(changes))
	for i, c := range changes {
		l.setLimit(c.B, c.Limit, now)
		budgets[i] = c.B
		if c.Gone {
			l.retire(c.B)
		}
	}
	for w := l.first; w != nil; w = w.next {
		l.limitWait(w)
	}
	l.changed(now, true, budgets...)
}

// SetCaps is Reconfigure without changes.
func (line *Line) SetCaps(waiting, inFlight int) { line.Reconfigure(nil, waiting, inFlight) }

func (l *locked) setLimit(b *Budget, s *law.Spec, now law.Time) {
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
	// The list of budgets that follow the wall clock.
	calendar := law.IsCalendar(b.state)
	if calendar || len(l.walls) > 0 {
		walls := slices.DeleteFunc(l.walls, func(o *Budget) bool { return o == b })
		if calendar {
			walls = append(walls, b)
		}
		l.wantExtra().walls = walls
	}
}

// wall returns what the wall clock shows at the instant 0.
func (l *locked) wall(now law.Time) time.Time {
	return awake.Wall().Add(-time.Duration(now))
}

// changed tells the line that something other than a planned start has changed
// what budgets remember; worse says that it may have become less.
func (l *locked) changed(now law.Time, worse bool, budgets ...*Budget) {
	for _, b := range budgets {
		b.forget()
	}
	l.replan(now, oneOfEach(nil, budgets), worse)
}

// Retire forgets a budget that is no different from a new one, and reports whether it
// did. A request that enters with it afterwards gets ErrRetired.
func (line *Line) Retire(b *Budget) bool {
	l, now := line.lock()
	defer l.unlock()
	if !b.retired && !b.recovered(now) {
		return false
	}
	l.retire(b)
	return true
}

// retire forgets b, and the identity that it belongs to.
func (l *locked) retire(b *Budget) {
	b.retired = true
	if b.audience != nil {
		delete(l.audiences.ids, b.audience.identity)
		b.audience = nil
	}
}

// InUse reports whether Retire would fail for each of budgets. Of none, it is false.
func (line *Line) InUse(budgets []*Budget) bool {
	l, now := line.lock()
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
func (line *Line) RetireAll(budgets []*Budget, g *Gate) bool {
	l, now := line.lock()
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
		if !h.all.recovered(now) {
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
var ErrNoAudience = errors.New("line: no audience")
