package law

import (
	"math"
	"slices"
	"sort"
)

// exact is how many starts a window remembers one by one, if it is of a configured limit.
// Beyond that, starts within one slice of per/exact are remembered together, as if all had been at
// the end of the slice: a unit may come back up to one slice late, never early.
const exact = 65_536

// window admits at most n units in any half-open period: a unit comes back one
// period after its start or, where strict, after its response.
type window struct {
	*shape
	*responses         // notStrict where it is not
	sum        int64   // of log, from head on; with what is in flight it fits into an int64
	log        []Entry // a ring of starts by time; its length is a power of two
	head       int     // index of the oldest entry, not masked
	len        int
}

// notStrict is the responses of every window that is not strict. It is only read.
var notStrict responses

func newWindow(s *shape, strict bool) *window {
	w := &window{shape: s, responses: &notStrict}
	if strict {
		w.responses = &responses{strict: true}
	}
	return w
}

func (w *window) at(i int) *Entry { return &w.log[(w.head+i)&(len(w.log)-1)] }

// expire forgets what no longer counts at t.
func (w *window) expire(t Time) {
	for old := subSat(t, w.per); w.len > 0 && w.at(0).At <= old; {
		w.sum -= w.at(0).Cost
		w.head++
		w.len--
	}
	if w.len == 0 {
		w.sum = 0
		if len(w.log) > 16 {
			w.log = nil // an idle budget is small
		}
	}
}

func (w *window) Earliest(now, t Time, cost int64) (Time, bool) {
	if cost > w.n {
		return Never, false
	}
	// Nothing is forgotten here, since t may be still to come.
	room, left, old := w.n-cost, w.sum+w.inFlight, subSat(t, w.per)
	for i := 0; ; i++ {
		if left <= room && (i == w.len || w.at(i).At > old) {
			return t, false
		}
		if i == w.len {
			return max(t, addSat(max(now, w.last()), w.per)), true // if all responses come now
		}
		e := w.at(i)
		left -= e.Cost
		if left <= room && e.At > old {
			return addSat(e.At, w.per), false
		}
	}
}

func (w *window) last() Time {
	if w.len == 0 {
		return 0
	}
	return w.at(w.len - 1).At
}

func (w *window) Take(t Time, cost int64) bool {
	if w.strict {
		w.inFlight += w.fit(cost)
		return true
	}
	w.push(t, cost)
	return false
}

// fit returns as many of cost more units as can be counted together with the others.
// Where an int64 would not hold all of them, the oldest go: they are in debt beyond
// any limit, and those that come after them still count once the oldest do not.
func (w *window) fit(cost int64) int64 {
	over := cost - (math.MaxInt64 - w.sum - w.inFlight)
	if over <= 0 {
		return cost
	}
	return cost - w.dropOldest(over)
}

func (w *window) push(t Time, cost int64) {
	if cost == 0 {
		return
	}
	w.expire(t)
	w.add(t, cost)
}

func (w *window) add(t Time, cost int64) {
	cost = w.fit(cost)
	w.sum += cost
	if w.len > 0 {
		e := w.at(w.len - 1)
		t = max(t, e.At)
		if int64(w.len) >= w.slices {
			t = w.slice(t)
		}
		if e.At >= t {
			e.Cost += cost
			return
		}
	}
	if w.len == len(w.log) {
		w.grow()
	}
	w.len++
	*w.at(w.len - 1) = Entry{t, cost}
}

// slice returns the end of t's slice.
func (w *window) slice(t Time) Time {
	return addSat(t, w.slot-1) / w.slot * w.slot
}

func (w *window) grow() {
	log := make([]Entry, max(1, 2*len(w.log)))
	for i := range w.len {
		log[(w.head+i)&(len(log)-1)] = *w.at(i)
	}
	w.log = log
}

func (w *window) Done(t Time, cost int64) {
	if w.strict {
		w.done(cost)
		w.push(t, cost)
	}
}

func (w *window) Give(taken Time, cost int64, inFlight bool) {
	if inFlight {
		if w.strict {
			w.done(cost)
		}
		return
	}
	// The first entry at or after taken has it: an entry's time is that of its
	// starts or, in a slice, a little later.
	i := sort.Search(w.len, func(i int) bool { return w.at(i).At >= taken })
	if i == w.len {
		return
	}
	if e := w.at(i); e.At == taken || e.At == w.slice(taken) {
		w.drop(e, cost)
		w.trim()
	}
}

// trim forgets entries at both ends that were given back whole.
func (w *window) trim() {
	for w.len > 0 && w.at(0).Cost == 0 {
		w.head++
		w.len--
	}
	for w.len > 0 && w.at(w.len-1).Cost == 0 {
		w.len--
	}
}

// dropOldest takes back the n oldest units, and returns how many are missing.
func (w *window) dropOldest(n int64) (missing int64) {
	for i := 0; i < w.len && n > 0; i++ {
		n -= w.drop(w.at(i), n)
	}
	w.trim()
	return n
}

func (w *window) drop(e *Entry, cost int64) int64 {
	cost = min(cost, e.Cost)
	e.Cost -= cost
	w.sum -= cost
	return cost
}

func (w *window) Spend(now Time, n int64) {
	w.expire(now)
	if n > 0 {
		w.push(now, n)
		return
	}
	w.dropOldest(subSat(0, n))
}

func (w *window) Remaining(now Time) int64 {
	w.expire(now)
	return subSat(w.n, w.sum+w.inFlight)
}

func (w *window) Recovered(now Time) bool {
	w.expire(now)
	return w.sum == 0 && w.inFlight == 0
}

func (w *window) Expires(now Time) Time {
	switch {
	case w.inFlight > 0:
		return Never
	case w.len > 0:
		return max(now, addSat(w.last(), w.per))
	}
	return now
}

func (w *window) Max() int64 { return w.n }

func (w *window) Clamp(now Time) int64 {
	latest := now
	if int64(w.len) >= w.slices {
		latest = w.slice(now)
	}
	if w.len == 0 || w.last() <= latest {
		return 0
	}
	ahead, cost := subSat(w.last(), now), int64(0)
	for w.len > 0 && w.last() > latest {
		cost += w.at(w.len - 1).Cost
		w.len--
	}
	w.sum -= cost
	w.add(now, cost)
	return ahead
}

func (w *window) reach(t Time) Time { return subSat(t, w.per) }

func (w *window) inherit(old State, now Time) bool {
	o, ok := old.(*window)
	if !ok {
		return false
	}
	o.expire(now)
	w.log, w.head, w.len, w.sum = slices.Clone(o.log), o.head, o.len, o.sum
	if w.strict {
		w.inFlight = o.inFlight
	} else if o.inFlight > 0 {
		w.push(now, o.inFlight)
	}
	return true
}

func (w *window) history(now Time) []Entry {
	w.expire(now)
	h := make([]Entry, 0, w.len+1)
	for i := range w.len {
		h = append(h, *w.at(i))
	}
	if w.inFlight > 0 {
		h = append(h, Entry{now, w.inFlight})
	}
	return h
}

// saturates is a sum from which on earlier versions may have written another than that
// of the costs.
const saturates = Unlimited / 2

func (w *window) code(c *Codec) {
	flying, sum, n := w.inFlight, w.sum, w.len
	c.Ints(&flying, &sum)
	c.Size(&n)
	if c.reading && w.strict && flying >= 0 {
		w.inFlight = flying
	} else if flying != w.inFlight {
		c.fail()
	}
	for i := 0; i < n && c.err == nil; i++ {
		var e Entry
		if !c.reading {
			e = *w.at(i)
		}
		c.Ints(&e.At, &e.Cost)
		switch {
		case !c.reading || c.err != nil:
		case e.Cost < 0:
			c.fail()
		default:
			w.add(e.At, e.Cost)
		}
	}
	if sum != w.sum && max(sum, w.sum) < saturates {
		c.fail()
	}
}

// windowSim plans with a window without copying its log: what it has taken in
// the plan is a run of the plan's own entries, and both are read by their place.
type windowSim struct {
	*window
	now       Time
	log       int   // the first entry of the log that still counts
	at, end   place // the plan's entries from at on and before end are taken, and count
	responded bool  // what is in flight has been taken as returned
	sum       int64
	guessed   int64 // units that came back by a response assumed to come at once
	more      int64 // of an announced limit: units in sum that count until till
	till      Time
}

func (w *window) simulate(now Time) sim {
	w.expire(now)
	return sim{kind: simWindow, slack: w.latency, window: windowSim{window: w, now: now, log: w.head, sum: w.sum + w.inFlight, responded: w.inFlight == 0}}
}

func (w *window) jumps() bool { return !w.strict }

// simulateAt also forgets what no longer counts at t.
func (w *window) simulateAt(now, t Time, plan *schedule) (sim, place) {
	s := w.simulate(now)
	old := subSat(t, w.per)
	for i := 0; i < w.len && w.at(i).At <= old; i++ {
		s.window.log++
		s.window.sum -= w.at(i).Cost
	}
	s.window.end = plan.find(after(t))
	if old >= now { // else all count, for those overdue start at now
		s.window.at = plan.find(after(old))
	}
	_, cost := plan.between(s.window.at, s.window.end)
	s.window.sum = addSat(s.window.sum, cost)
	return s, s.window.end
}

// oldest returns the first unit that still counts. The plan comes after the
// log, and between them what is in flight, as if its responses came now.
func (s *windowSim) oldest(plan *schedule) (e Entry, ok bool) {
	switch {
	case s.log < s.window.head+s.window.len:
		return *s.window.at(s.log - s.window.head), true
	case !s.responded:
		return Entry{s.now, s.inFlight}, true
	case s.at.before(s.end):
		e := plan.get(s.at)
		return Entry{e.at, e.cost}, true
	}
	return Entry{}, false
}

func (s *windowSim) forget(plan *schedule) {
	switch {
	case s.log < s.window.head+s.window.len:
		s.log++
	case !s.responded:
		s.responded, s.guessed = true, s.inFlight
	default:
		if s.strict {
			s.guessed = addSat(s.guessed, plan.get(s.at).cost)
		}
		s.at = plan.next(s.at)
	}
}

// earliest is window.Earliest over the log and the plan.
func (s *windowSim) earliest(t Time, cost int64, plan *schedule) (Time, bool) {
	if cost > s.n {
		return Never, false
	}
	s.log = max(s.log, s.window.head)
	for {
		if s.more != 0 && s.till <= t {
			s.sum, s.more = subSat(s.sum, s.more), 0
		}
		e, ok := s.oldest(plan)
		switch {
		case ok && e.At <= subSat(t, s.per):
		case s.sum <= s.n-cost:
			return t, addSat(s.sum, s.guessed) > s.n-cost
		case s.more > 0 && (!ok || s.till < addSat(e.At, s.per)):
			t = s.till
			continue
		case !ok:
			return Never, false // what is left in sum is spoils' own
		default:
			t = addSat(e.At, s.per)
		}
		s.sum = subSat(s.sum, e.Cost)
		s.forget(plan)
	}
}
