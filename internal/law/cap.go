package law

import (
	"math"
	"time"
)

// Cap is one limit that a server has announced: a law of its own beside those that are
// configured. It counts the starts of this client as a law does, and each number that a
// response announces corrects its count; see Update.
//
// How it counts follows from what the server's resets mean, as far as that is known:
//
//	counter   left goes down with each start. All units return at the end of the server's
//	          window; or nothing is known but how many are left, and until when.
//	rolling   each unit returns one period after its start, and a little later; see guard.
//	filling   units return one by one, at a rate.
//
// Numbers are a server's, and may be anything. A limit below 1 is none, lengths of time are
// between shortest and longest, and counts are at most MaxN.
//
// A Cap ends by itself when no number has renewed it for a period, and for a minute at
// least. Starts and waiters do not make it last longer.
type Cap struct {
	common
	Name string // the server's; read-only

	kind  capKind
	gen   uint32 // which count this is: a Mark of an earlier one is of no use; 0: there is none
	since Time   // when this count began
	at    Time   // up to when it is settled
	limit int64  // negative where the server did not say
	per   int64  // the period of the limit; zero where it is not known
	keep  Time   // when it ends: from then on it holds nothing up

	counter         // of a counter
	window  *window // of a rolling limit
	bucket  *bucket // of a filling one

	extra   int64 // by how many units the server counts more than this client, as far as that counts
	over    int64 // the same by its last number alone; see exceed
	unsure  int64 // how many units it may not have counted then
	till    Time  // of a rolling limit: when extra ends
	ceiling bool  // the limit is a rule's too
	given   int64 // the units given back since the count began
	lump    int64 // the units that were in flight when it began, which count as of since
	heard   int64 // of these: the units of requests that have their response

	turns
	meaning
	care

	newest   Time  // the start of the newest request whose number was used
	compared Time  // the same of those with a Mark
	updated  Time  // when the response of the newest came
	low      int64 // the least that was announced to requests without a Mark
	drift    int64 // units that others have spent, as far as it shows

	rule     State  // of the rule that the limit is; nil: none, or its owner does not know it
	inFlight *int64 // units in flight of the requests that it concerns; nil in a store
}

type capKind uint8

const (
	capCounter capKind = iota
	capRolling
	capFilling
)

// shortest and longest bound the lengths of time of a limit.
const (
	shortest = int64(time.Millisecond)
	longest  = int64(366 * 24 * time.Hour)
)

// lasting is the least time for which a limit holds after its reset, or after its last
// number. It also is the period of a limit that has none.
const lasting = 60 * second

// A Mark is what a Cap had counted when a request had started. It makes the number in the
// request's response comparable with the count at a later instant. The zero Mark is of no
// count.
type Mark struct {
	Used     int64  // units that counted, those of this request too, and all that were given back before
	InFlight int32  // units that were in flight before it started
	Gen      uint32 // the count that it is of
}

// NewCap returns a Cap without an announcement, which holds nothing up. inFlight is the
// units in flight of the requests that it will concern, which the caller keeps; nil is
// none.
func NewCap(name string, inFlight *int64) *Cap {
	c := &Cap{Name: name, inFlight: inFlight}
	c.clear()
	return c
}

// Of says which rule's state the limit is of: when the count begins, the starts that it knows
// count from their own instants.
func (c *Cap) Of(rule State) { c.rule = rule }

// clear forgets everything.
func (c *Cap) clear() {
	*c = Cap{
		Name: c.Name, rule: c.rule, inFlight: c.inFlight, limit: -1, since: -Never, at: c.at, keep: -Never, till: -Never, newest: -Never, compared: -Never, updated: -Never,
		counter: noCounter, turns: noTurns, low: Unlimited, drift: c.drift,
	}
}

// settle brings what c knows up to t.
func (c *Cap) settle(t Time) {
	c.at = max(c.at, t)
	switch {
	case c.gen == 0:
	case t >= c.keep:
		c.clear()
	case c.kind == capCounter && t >= c.end:
		c.counter.roll(t, c.limit, c.per)
		c.extra, c.over, c.unsure = 0, 0, 0
	case c.kind == capRolling && t >= c.till:
		c.extra, c.over, c.unsure = 0, 0, 0
	}
}

// Over reports whether c holds nothing up until more is announced.
func (c *Cap) Over(now Time) bool { return now >= c.keep }

func (c *Cap) Recovered(now Time) bool {
	return c.Over(now) && (c.inFlight == nil || *c.inFlight == 0)
}

func (c *Cap) Expires(now Time) Time { return max(now, c.keep) }

// fits returns how many units have to be there for a start that costs so many, of a limit:
// no more than that, since the server decides about what it never admits.
func fits(cost, limit int64) int64 {
	if limit > 0 {
		return min(cost, limit)
	}
	return cost
}

// Earliest returns when cost units fit if no more is announced.
func (c *Cap) Earliest(now, t Time, cost int64) (Time, bool) {
	c.settle(now)
	if c.gen == 0 || cost == 0 {
		return t, false
	}
	at, margin := c.turns.next(t), c.margin(now)
	switch c.kind {
	case capCounter:
		at = c.counter.earliest(at, fits(addSat(cost, margin), c.limit))
	case capRolling:
		at = c.window.earliestWith(at, fits(cost, c.limit), addSat(c.extra, margin), c.surplusTill(margin))
	case capFilling:
		at = c.bucket.earliestWithCare(at, fits(cost, c.limit), margin, c.careTill())
	}
	return max(t, min(at, c.keep)), false
}

// careTill returns until when a bucket's margin may hold a start up: no longer than the longest
// reset that was announced. An inferred period may be thousands of times that.
func (c *Cap) careTill() Time {
	if c.unit > 0 {
		return addSat(c.updated, c.unit)
	}
	return addSat(c.updated, c.per/16)
}

// surplusTill returns when the units end that a rolling limit counts beside the starts.
func (c *Cap) surplusTill(margin int64) Time {
	if margin > 0 {
		return max(c.till, addSat(c.newest, c.period()))
	}
	return c.till
}

func (c *Cap) Take(t Time, cost int64) bool {
	c.settle(t)
	if c.gen == 0 || cost == 0 {
		return false
	}
	c.turns.take(t)
	switch c.kind {
	case capCounter:
		c.counter.take(t, cost)
	case capRolling:
		c.window.push(t, cost)
	case capFilling:
		c.bucket.Take(t, fits(cost, c.limit)) // else a cost above the limit takes several periods
	}
	return false
}

// counts reports whether starts are counted. A counter without a limit counts none after its
// reset.
func (c *Cap) counts() bool {
	return c.gen != 0 && (c.kind != capCounter || c.left != Unlimited)
}

// Spend counts n units as used at now, by traffic that is no request of the line. A negative n
// gives back the oldest units.
func (c *Cap) Spend(now Time, n int64) {
	c.settle(now)
	switch {
	case !c.counts() || n == 0:
	case n > 0 && c.kind == capCounter:
		c.counter.left = subSat(c.left, n)
	case n > 0 && c.kind == capRolling:
		c.window.push(now, n)
	case n > 0:
		c.bucket.Take(now, n)
	case c.kind == capRolling:
		before := c.window.sum
		c.window.Spend(now, n)
		c.given = addSat(c.given, before-c.window.sum)
	default:
		c.give(max(c.since, c.begun), subSat(0, n), false)
	}
}

// Mark returns the Mark of the request whose Take was the last, at t.
func (c *Cap) Mark(t Time) (m Mark) {
	if !c.counts() {
		return m
	}
	m = Mark{Used: addSat(c.used(t), c.given), Gen: c.gen}
	if c.inFlight != nil {
		m.InFlight = int32(min(max(*c.inFlight, 0), math.MaxInt32))
	}
	return m
}

// used returns how many units this client has used, as far as they count at t: without what
// numbers have corrected. Only differences of it have a meaning.
func (c *Cap) used(t Time) int64 {
	switch c.kind {
	case capRolling:
		return c.window.sum
	case capFilling:
		return subSat(c.bucket.usedAt(t), c.extra)
	}
	return subSat(max(0, c.limit), addSat(c.left, c.extra))
}

func (c *Cap) Give(taken Time, cost int64, _ bool) {
	switch {
	case c.gen == 0:
	case taken >= c.since:
		c.give(taken, cost, taken <= c.compared)
	case c.lump > 0:
		given := c.given
		if c.give(taken, min(cost, c.lump), true); c.given == given { // it counts as of since
			c.give(c.since, min(cost, c.lump), true)
		}
	}
}

// give takes back units that were counted at taken, as far as they still count. What is left
// rises by them, unless the server's number is known to tell already that they are free: the
// number of a request that started no earlier.
func (c *Cap) give(taken Time, cost int64, known bool) {
	var back int64
	switch c.kind {
	case capCounter:
		if taken < c.begun || c.left == Unlimited {
			return
		}
		back = cost
		c.left = addSat(c.left, cost)
	case capRolling:
		back = c.window.sum
		c.window.Give(taken, cost, false)
		back -= c.window.sum
	case capFilling:
		full := c.bucket.full
		c.bucket.Give(taken, fits(cost, c.limit), false)
		back = c.bucket.units(max(0, subSat(full.ns, c.bucket.full.ns)))
	}
	if c.given = addSat(c.given, back); known {
		c.exceed(addSat(c.over, back), c.unsure)
	}
}

func (c *Cap) Remaining(now Time) int64 {
	c.settle(now)
	switch {
	case c.gen == 0:
		return Unlimited
	case c.kind == capRolling:
		c.window.expire(now)
		return subSat(c.limit, addSat(c.window.sum, addSat(c.extra, c.margin(now))))
	case c.kind == capFilling:
		return subSat(c.bucket.Remaining(now), c.margin(now))
	case c.left == Unlimited || c.open:
		return Unlimited
	}
	return subSat(c.left, c.margin(now))
}

// Clamp: an instant that stands for never stays.
func (c *Cap) Clamp(now Time) int64 {
	ahead := max(0, subSat(max(c.updated, c.since, c.at), now))
	for _, t := range []*Time{
		&c.since, &c.at, &c.keep, &c.begun, &c.end, &c.till, &c.newest, &c.compared, &c.updated, &c.last, &c.spread, &c.start, &c.alone, &c.until, &c.calm, &c.peakAt, &c.seenAt,
	} {
		*t = earlier(*t, ahead)
	}
	c.newest, c.compared = min(c.newest, now), min(c.compared, now)
	if c.window != nil {
		c.window.Clamp(now)
	}
	if c.bucket != nil {
		c.bucket.Clamp(now)
	}
	return ahead
}

// period returns the period of the limit, or what stands for it.
func (c *Cap) period() int64 {
	if c.per > 0 {
		return c.per
	}
	return lasting
}

// A CapStatus is what a Cap knows.
type CapStatus struct {
	Left, Limit int64         // Limit is negative where the server did not say
	Reset       Time          // when units return next, by what is known; Never: not known
	Window      time.Duration // the period; zero: not known
	Updated     Time          // when it was last announced
	Drift       int64         // units that other programs have spent, as far as it shows
	End         Time          // when c ends
}

// Tightens reports whether starts that were possible by o may not be by s.
func (s CapStatus) Tightens(o CapStatus) bool {
	return s.Left < o.Left || s.Reset > o.Reset || s.Window != o.Window || s.Limit != o.Limit || s.End > o.End
}

// Status returns what c knows at now.
func (c *Cap) Status(now Time) CapStatus {
	left := c.Remaining(now)
	s := CapStatus{Left: left, Limit: c.limit, Reset: Never, Window: time.Duration(c.per), Updated: c.updated, Drift: c.drift, End: c.keep}
	if c.gen == 0 {
		return s
	}
	switch c.kind {
	case capCounter:
		s.Reset = c.end
	case capRolling:
		s.Reset = now
		if c.window.len > 0 {
			s.Reset = addSat(c.window.at(0).At, c.window.per)
		}
		if c.extra > 0 && (c.window.len == 0 || c.till < s.Reset) {
			s.Reset = c.till
		}
	case capFilling:
		s.Reset = c.bucket.earliestWith(now, max(0, c.bucket.Remaining(now))+1)
	}
	return s
}

// Announced returns the limit that the server has announced, if its period is known and it
// holds at now.
func (c *Cap) Announced(now Time) []Spec {
	if c.limit <= 0 || c.per <= 0 || c.Over(now) {
		return nil
	}
	return []Spec{{N: c.limit, Per: time.Duration(c.per)}}
}
