package store

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/headway-go/headway/internal/law"
)

// Rows is what a transaction of a store can read and write.
type Rows interface {
	// Get returns the row of a budget or an audience, nil if there is none. Whether an
	// expired row is returned makes no difference. An error that is ErrDamaged,
	// ErrNewer or a *RowError concerns this row alone; any other ends the transaction.
	Get(group, name string) ([]byte, error)
	// Put writes a row. From expires on it may be forgotten. Put does not keep
	// row itself.
	Put(group, name string, row []byte, expires time.Time) error
}

// Run decides ops at now over rows. Its caller makes sure that no other transaction
// sees or changes these rows meanwhile, and that all rows that Run has put are written,
// or none where it returns an error.
func Run(now time.Time, rows Rows, ops []Op) ([]Result, error) {
	t := &tx{now: now.UnixNano(), rows: rows, seen: map[name]*row{}}
	results := make([]Result, len(ops))
	var refused []uint64 // lines
	for i := range ops {
		op := &ops[i]
		if op.Kind == OpTake && op.Line != 0 && slices.Contains(refused, op.Line) {
			results[i].Skipped = true
			continue
		}
		if bad := t.open(op); bad != nil {
			results[i] = Result{At: t.now, Err: bad}
		} else if results[i] = t.do(op); op.Kind == OpTake && !results[i].OK {
			refused = append(refused, op.Line)
		}
		if t.err != nil {
			return nil, t.err
		}
		results[i].Anew, t.anew = t.anew, nil
		if t.ahead >= int64(time.Second) { // less is what the clocks of two servers differ by
			results[i].Back = time.Duration(t.ahead)
		}
		t.ahead = 0
	}
	return results, t.write()
}

// A tx is one transaction.
type tx struct {
	now   Instant
	rows  Rows
	seen  map[name]*row
	order []name // of seen
	err   error
	anew  []*RowError // rows that were read since the last operation
	ahead int64       // by how much one of them was ahead of the clock
}

type name struct{ group, name string }

// row returns the row of that name; an empty one where there is none.
func (t *tx) row(group, n string) *row {
	key := name{group, n}
	if r := t.seen[key]; r != nil {
		r.prune(t.now)
		return r
	}
	r := new(row)
	if t.err == nil {
		b, err := t.rows.Get(group, n)
		if err == nil {
			r, err = decode(b)
		}
		if err != nil {
			r = t.unread(key, err)
		}
	}
	t.ahead = max(t.ahead, r.clamp(t.now))
	r.prune(t.now)
	t.seen[key] = r
	t.order = append(t.order, key)
	return r
}

// unread returns what stands for a row that could not be read.
func (t *tx) unread(key name, err error) *row {
	e := &RowError{Group: key.group, Name: key.name, Err: err}
	switch {
	case errors.As(err, &e), errors.Is(err, ErrNewer):
		return &row{bad: e}
	case errors.Is(err, ErrDamaged):
		e.Anew = true
		t.anew = append(t.anew, e)
		return &row{dirty: true}
	}
	t.err = err
	return new(row)
}

// open reads the rows that an operation needs. It returns the first that cannot be
// read.
func (t *tx) open(op *Op) error {
	needs, names := op.Needs, op.Audiences
	switch {
	case op.Kind == OpLearn && op.Only != "":
		needs, names = nil, []string{op.Only}
	case op.Kind == OpLearn, op.Kind == OpPause:
		needs, names = nil, []string{op.Audience}
	case op.Kind == OpSuccess:
		needs = nil
	case op.Kind == OpDone, op.Kind == OpRenew:
		names = nil
	}
	var bad *RowError
	look := func(name string) {
		if r := t.row(op.Group, name); bad == nil {
			bad = r.bad
		}
	}
	for i := range needs {
		look(needs[i].Budget)
	}
	for _, name := range names {
		look(name)
	}
	if bad == nil {
		return nil
	}
	return bad
}

// budget is row under a need's limit.
func (t *tx) budget(group string, n *Need) *row {
	r := t.row(group, n.Budget)
	r.under(specOf(n.Limit), t.now)
	if law.IsCalendar(r.state) {
		if ahead := r.state.Clamp(t.now); ahead > 0 {
			t.ahead, r.dirty = max(t.ahead, ahead), true
		}
	}
	return r
}

func (t *tx) write() error {
	var buf []byte
	for _, key := range t.order {
		r := t.seen[key]
		if !r.dirty {
			continue
		}
		buf = r.encode(buf[:0])
		expires := time.Unix(0, r.expires(t.now))
		if err := t.rows.Put(key.group, key.name, buf, expires); err != nil {
			return err
		}
	}
	return nil
}

// A constraint is something that has to have room for a request.
type constraint struct {
	row       *row // or
	announced *law.Announced[string]
	where     string // the name of the row that has announced
	need      int    // the index of the need that it is about; -1: it concerns the whole audience
	cost      int64
}

func (h *constraint) state() law.State {
	if h.row != nil {
		return h.row.state
	}
	return h.announced.State()
}

func (h *constraint) earliest(now, t Instant) (at Instant, atLeast bool) {
	if h.row != nil {
		return h.row.earliest(now, t, h.cost)
	}
	return h.announced.State().Earliest(now, t, h.cost)
}

// constraints returns all that an operation needs room of.
func (t *tx) constraints(op *Op) (all []constraint) {
	for i := range op.Needs {
		n := &op.Needs[i]
		r := t.budget(op.Group, n)
		all = append(all, constraint{row: r, need: i, cost: n.Cost})
		for j := range r.announced {
			all = append(all, constraint{announced: &r.announced[j], where: n.Budget, need: i, cost: n.Cost})
		}
	}
	return t.announcedConstraints(op, all)
}

// announcedConstraints adds what holds for the audiences of an operation.
func (t *tx) announcedConstraints(op *Op, all []constraint) []constraint {
	for _, audience := range op.Audiences {
		r := t.row(op.Group, audience)
		for j := range r.announced {
			h := &r.announced[j]
			if h.Only == "" || slices.ContainsFunc(op.Needs, func(n Need) bool { return n.Budget == h.Only }) {
				all = append(all, constraint{announced: h, where: audience, need: -1, cost: 1})
			}
		}
	}
	return all
}

// touch marks the rows of an operation as changed.
func (t *tx) touch(op *Op) {
	for i := range op.Needs {
		t.row(op.Group, op.Needs[i].Budget).dirty = true
	}
	for _, audience := range op.Audiences {
		if r := t.row(op.Group, audience); len(r.announced) > 0 {
			r.dirty = true
		}
	}
}

// earliest returns when all have room together, from t on, and what decides.
func earliest(all []constraint, now, from Instant) (at Instant, atLeast bool, bind int) {
	at, bind = from, -1
	for again := true; again; {
		again = false
		for i := range all {
			h := &all[i]
			e, loose := h.earliest(now, at)
			if e == law.Never {
				return law.Never, false, i
			}
			if e > at {
				at, atLeast, bind, again = e, loose, i, true
			}
		}
	}
	return at, atLeast, bind
}

// wait returns when an operation could start.
func (t *tx) wait(all []constraint, at Instant, atLeast bool, bind int) Wait {
	w := Wait{At: at, AtLeast: atLeast, Bind: -1}
	if w.For = Never; at != law.Never {
		w.For = time.Duration(max(0, at-t.now))
	}
	if bind < 0 {
		return w
	}
	h := &all[bind]
	w.Bind = h.need
	if h.announced != nil {
		w.Pause, w.Learned = h.announced.Pause != nil, h.announced.Limit != nil
		if w.Learned {
			w.Name = h.announced.Limit.Name
		}
	}
	return w
}

func (t *tx) do(op *Op) (res Result) {
	res.At = t.now
	switch op.Kind {
	case OpTake:
		t.take(op, &res)
	case OpDone, OpRenew:
		for i := range op.Needs {
			r := t.row(op.Group, op.Needs[i].Budget)
			j := r.flight(op.ID)
			switch {
			case j < 0:
				continue
			case op.Kind == OpRenew:
				r.flights[j].until = t.now + int64(StrictLease)
			default:
				r.state.Done(t.now, r.flights[j].cost)
				r.flights = slices.Delete(r.flights, j, j+1)
			}
			r.dirty = true
		}
	case OpGive:
		t.give(op)
	case OpReturn:
		t.returnReserved(op)
	case OpSpend:
		for i := range op.Needs {
			n := &op.Needs[i]
			r := t.budget(op.Group, n)
			r.state.Spend(t.now, n.Cost)
			for j := range r.announced {
				r.announced[j].State().Spend(t.now, n.Cost)
			}
		}
		t.touch(op)
		t.remaining(op, &res)
	case OpRead:
		t.remaining(op, &res)
		res.Announced = t.announcements(op)
	case OpForecast:
		res.Waits = t.forecast(op.Asks)
	case OpPause:
		t.pause(op, &res)
	case OpSuccess:
		for _, audience := range op.Audiences {
			r := t.row(op.Group, audience)
			r.dirty = r.announced.Succeeded(op.Taken) || r.dirty
		}
	case OpLearn:
		t.learn(op, &res)
	default:
		t.err = fmt.Errorf("store: no operation has the kind %d", op.Kind)
	}
	return res
}

// catchUp bounds how late a start may be and still be taken as of its slot.
const catchUp = int64(10 * time.Millisecond)

func (t *tx) take(op *Op, res *Result) {
	all := t.constraints(op)
	at, atLeast, bind := earliest(all, t.now, t.now)
	if at > t.now {
		res.Wait = t.wait(all, at, atLeast, bind)
		t.remaining(op, res)
		if bind >= 0 && all[bind].announced != nil {
			res.Announced = t.announcement(nil, all[bind].where, all[bind].announced)
		}
		return
	}
	slot := t.now
	if op.Due > 0 && op.Due < t.now && t.now-op.Due <= catchUp {
		if at, _, _ := earliest(all, t.now, op.Due); at <= t.now {
			slot = at
		}
	}
	for i := range all {
		h := &all[i]
		if h.announced != nil {
			res.UnderPause = res.UnderPause || h.announced.Pause != nil
			h.announced.State().Take(t.now, h.cost)
			if c := h.announced.Limit; c != nil {
				m := c.Mark(t.now)
				res.Marks = append(res.Marks, Mark{Audience: h.where, Name: c.Name, Window: h.announced.Window, Used: m.Used, Generation: m.Gen})
			}
		} else if law.TakeLate(h.row.state, slot, t.now, h.cost) {
			res.Strict = true
			h.row.flights = append(h.row.flights, flight{op.ID, t.now + int64(StrictLease), h.cost})
		}
	}
	res.Reserved = t.reserve(op, all)
	t.touch(op)
	res.OK, res.Bind = true, -1
	t.remaining(op, res)
}

// reserve reserves what an OpTake wants besides, as far as there is room, and
// returns how many starts that is.
func (t *tx) reserve(op *Op, all []constraint) int64 {
	n := op.Reserve
	if len(op.Needs) == 0 {
		return 0
	}
	for i := range all {
		h := &all[i]
		left := h.state().Remaining(t.now)
		switch {
		case h.announced != nil && h.announced.Pause != nil, h.row != nil && !h.row.spec.Reservable():
			return 0
		case h.row != nil:
			left -= h.row.unitsReserved()
		}
		if h.cost > 0 {
			n = min(n, max(0, left)/h.cost/2)
		}
	}
	if n <= 0 {
		return 0
	}
	for i := range all {
		if h := &all[i]; h.row != nil {
			h.row.reserved = append(h.row.reserved, reservation{op.ID, t.now, n, h.cost})
		} else {
			h.announced.State().Take(t.now, n*h.cost)
		}
	}
	return n
}

// returnReserved takes back what a request has reserved, but for what is used.
func (t *tx) returnReserved(op *Op) {
	rest := int64(0)
	for i := range op.Needs {
		r := t.row(op.Group, op.Needs[i].Budget)
		j := slices.IndexFunc(r.reserved, func(a reservation) bool { return a.id == op.ID })
		if j < 0 {
			continue // it has ended by itself
		}
		a := r.reserved[j]
		used := min(op.Used, a.starts)
		rest = a.starts - used
		r.reserved = slices.Delete(r.reserved, j, j+1)
		r.use(min(op.Due, t.now), used*a.cost)
		for k := range r.announced {
			r.announced[k].State().Give(op.Taken, rest*a.cost, false)
		}
	}
	if rest > 0 {
		for _, h := range t.announcedConstraints(op, nil) {
			if h.announced.Limit != nil {
				h.announced.State().Give(op.Taken, rest, false)
			}
		}
	}
	t.touch(op)
}

func (t *tx) give(op *Op) {
	for i := range op.Needs {
		n := &op.Needs[i]
		r := t.row(op.Group, n.Budget) // under whatever limit it is by now
		if j := r.flight(op.ID); j >= 0 {
			r.state.Give(n.Taken, n.Cost, true)
			r.flights = slices.Delete(r.flights, j, j+1)
		} else if r.state != nil {
			r.state.Give(n.Taken, n.Cost, false)
		}
		for j := range r.announced {
			r.announced[j].State().Give(n.Taken, n.Cost, false)
		}
	}
	for _, h := range t.announcedConstraints(op, nil) {
		h.announced.State().Give(op.Taken, 1, false)
	}
	t.touch(op)
}

// remaining reports what is left under each need: by what was announced of it too, and by its
// limit alone.
func (t *tx) remaining(op *Op, res *Result) {
	res.Remaining = make([]int64, len(op.Needs))
	for i := range op.Needs {
		r := t.budget(op.Group, &op.Needs[i])
		left := r.state.Remaining(t.now)
		if left != law.Unlimited {
			left -= r.unitsReserved()
		}
		if res.LimitRemaining == nil && len(r.announced) > 0 {
			res.LimitRemaining = slices.Clone(res.Remaining) // so far they are the same
		}
		if res.LimitRemaining != nil {
			res.LimitRemaining[i] = left
		}
		for j := range r.announced {
			left = min(left, r.announced[j].State().Remaining(t.now))
		}
		res.Remaining[i] = left
	}
}

func (t *tx) pause(op *Op, res *Result) {
	r, p := t.row(op.Group, op.Audience), op.Pause
	h, _ := r.announced.Pause(op.Only)
	specs := make([]law.Spec, 0, len(p.Limits))
	for _, l := range p.Limits {
		specs = append(specs, specOf(l))
	}
	res.Paused = r.announced.Raise(t.now, h, &law.PauseSignal{
		For: p.For, Grow: p.Grow, Most: p.Most, Started: p.Started, Limits: specs, Open: p.Found > 0 || len(specs) == 0, Found: p.Found, Source: p.Source,
	})
	r.dirty = true
	res.Announced = t.announcement(nil, op.Audience, h)
}

// learn takes in what was announced; see law.Cap.
func (t *tx) learn(op *Op, res *Result) {
	l := op.Learn
	said := law.LimitSignal{
		Left: l.Left, Limit: l.Limit, Reset: int64(l.Reset), Window: int64(l.Period), Resets: law.Resets(l.Resets),
		Whole: l.Whole, Early: l.Early, Refused: l.Refused, Most: int64(l.Most), Pace: l.Pace, Started: min(l.Started, t.now), Own: l.Own, InFlight: l.InFlight,
		Mark:      law.Mark{Used: l.Mark.Used, Gen: l.Mark.Generation, InFlight: int32(min(max(l.Mark.InFlight, 0), math.MaxInt32))},
		RuleLimit: l.RuleLimit, RulePeriod: int64(l.RulePeriod), RuleFills: l.RuleFills,
	}
	if said.Empty() {
		return
	}
	where := op.Audience
	if op.Only != "" {
		where = op.Only
	}
	r := t.row(op.Group, where)
	h, _ := r.announced.Limit(t.now, law.LimitKey{Name: l.Name, Window: l.Window}, nil, nil)
	if h == nil {
		return
	}
	h.Source = l.Source
	if op.Only != "" && r.state != nil && len(r.reserved) == 0 { // which a state does not count
		h.Limit.Of(r.state)
	}
	h.Limit.Update(t.now, said)
	r.dirty = true
	res.Announced = t.announcement(nil, where, h)
}

// announcement appends what holds of h, which was found at a row.
func (t *tx) announcement(all []Announced, where string, h *law.Announced[string]) []Announced {
	s, holds := h.Standing(t.now)
	if !holds {
		return all
	}
	e := Announced{Audience: where, Only: h.Only, Source: h.Source, Window: h.Window, Pause: s.Pause, Left: s.Left, Limit: s.Limit, Reset: s.Reset, Age: s.Age}
	if h.Limit != nil {
		e.Name = h.Limit.Name
	}
	return append(all, e)
}

// announcements returns what holds of what was heard.
func (t *tx) announcements(op *Op) (all []Announced) {
	add := func(where string, list law.Announcements[string]) {
		for i := range list {
			all = t.announcement(all, where, &list[i])
		}
	}
	for i := range op.Needs {
		add(op.Needs[i].Budget, t.row(op.Group, op.Needs[i].Budget).announced)
	}
	for _, audience := range op.Audiences {
		add(audience, t.row(op.Group, audience).announced)
	}
	return all
}
