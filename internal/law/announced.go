package law

import (
	"slices"
	"strings"
	"time"
)

// Announcements are what a server has announced to one audience, or of one budget:
// pauses, and limits. B is how their owner names its budgets. They are no safer for
// concurrent use than a State.
type Announcements[B comparable] []Announced[B]

// Announced is one of them: Pause or Limit, the other is nil.
type Announced[B comparable] struct {
	Pause  *Pace
	Limit  *Cap
	Only   B             // the budget that a pause is restricted to; the zero B: none
	Window time.Duration // of a limit, as the server gives it; zero where it does not
	Source string        // the dialect that has announced it last

	// The rest is the owner's, where requests wait in a line.
	Budget   B    // what stands for it among the budgets that a request needs
	Status   int  // of the response that has raised the pause
	Reported Time // the end of the pause that was last reported
}

// State is the pause, or the limit.
func (a *Announced[B]) State() State {
	if a.Pause != nil {
		return a.Pause
	}
	return a.Limit
}

// A LimitKey tells the limits that one server announces apart.
type LimitKey struct {
	Name   string
	Window time.Duration
}

// A PauseSignal is what a response has announced about the time before which no request
// is welcome.
type PauseSignal struct {
	For     time.Duration // from now; of several pauses the longest wins
	Grow    bool          // the server did not say how long: For, doubled each time, up to Most
	Most    time.Duration
	Started Time    // when the request started
	Limits  []Spec  // under which the requests restart gently
	Open    bool    // some of them are under no limit: these restart at the rate that succeeded before
	Found   int64   // how many succeeded in the second before Started
	Recent  *Recent // where not nil it knows that, in place of Found
	Source  string
}

// Pause returns the pause for the requests that need only, or for all; a new one where
// there is none.
func (l *Announcements[B]) Pause(only B) (a *Announced[B], isNew bool) {
	i := slices.IndexFunc(*l, func(a Announced[B]) bool { return a.Pause != nil && a.Only == only })
	if isNew = i < 0; isNew {
		i = len(*l)
		*l = append(*l, Announced[B]{Pause: NewPace(), Only: only})
	}
	return &(*l)[i], isNew
}

// Raise makes a, a pause of l, as long as s has it, and chooses the restart after it: under
// the limits that s has and those that are announced. It returns how long the pause is
// from now; zero where that is not longer than before.
func (l Announcements[B]) Raise(now Time, a *Announced[B], s *PauseSignal) (length time.Duration) {
	old := *a.Pause
	if s.Grow {
		length = time.Duration(a.Pause.Grow(now, s.Started, int64(s.For), int64(s.Most)))
	} else if a.Pause.Until(now, Later(now, s.For)) {
		length = s.For
	}
	if length <= 0 {
		return 0
	}
	a.Source = s.Source
	limits := s.Limits
	if len(limits) > 0 {
		limits = slices.Clip(limits)
		for i := range l {
			if c := l[i].Limit; c != nil {
				limits = append(limits, c.Announced(now)...)
			}
		}
	}
	if a.Pause.SetLimits(limits...); s.Open {
		found := s.Found
		if s.Recent != nil {
			found = s.Recent.Before(s.Started)
		}
		a.Pause.Found(found, s.Started, &old)
	}
	return length
}

// Later returns the instant that lies d after t, before Never.
func Later(t Time, d time.Duration) Time { return min(addSat(t, int64(d)), Never-1) }

// Succeeded ends the growing of the pauses, for a request that started then. It reports
// whether there are any.
func (l Announcements[B]) Succeeded(started Time) (any bool) {
	for i := range l {
		if p := l[i].Pause; p != nil {
			p.Succeeded(started)
			any = true
		}
	}
	return any
}

// mostLimits bounds how many limits there are: their names are the server's.
const mostLimits = 8

// Limit returns the limit with that key, and a new one where there is none; see NewCap
// for inFlight. Where there are too many already, the new one takes the place of the
// first that has ended, or that unused, if it is not nil, reports to be so; else it is
// nil.
func (l *Announcements[B]) Limit(now Time, key LimitKey, inFlight *int64, unused func(*Announced[B]) bool) (a *Announced[B], isNew bool) {
	n, idle := 0, -1
	for i := range *l {
		a := &(*l)[i]
		if a.Limit == nil {
			continue
		}
		if a.Limit.Name == key.Name && a.Window == key.Window {
			return a, false
		}
		if n++; idle < 0 && (a.Limit.Over(now) || unused != nil && unused(a)) {
			idle = i
		}
	}
	switch {
	case n < mostLimits:
		idle = len(*l)
		*l = append(*l, Announced[B]{})
	case idle < 0:
		return nil, false
	}
	a = &(*l)[idle]
	*a = Announced[B]{Limit: NewCap(strings.Clone(key.Name), inFlight), Window: key.Window} // the name was a part of all headers
	return a, true
}

// A Standing is how an announcement stands at an instant.
type Standing struct {
	Pause       time.Duration // until its end; zero for a limit
	Left, Limit int64         // Limit is negative where the server did not say
	Reset       time.Duration // until units return; negative where the server did not say
	Age         time.Duration // since the response
	Drift       int64         // see CapStatus
}

// Standing returns how a stands at now; false where it is a pause that has ended.
func (a *Announced[B]) Standing(now Time) (s Standing, holds bool) {
	if a.Pause != nil {
		end, paused := a.Pause.End(now)
		return Standing{Pause: time.Duration(end - now)}, paused
	}
	c := a.Limit.Status(now)
	s = Standing{Left: c.Left, Limit: c.Limit, Reset: time.Duration(c.Reset - now), Age: time.Duration(now - c.Updated), Drift: c.Drift}
	if c.Blind {
		s.Reset, s.Limit = -1, -1
	}
	return s, true
}

// Cap is what a server has announced to be left of one of its limits: so many units
// until they return, and what it announced in each window after that. It ends
// with the first window after the reset, a minute after it at the earliest, unless
// the server announces more by then. Starts and waiters do not make it last longer.
//
// Numbers are a server's, and may be anything. A limit below 1 is no limit, and a
// window is no shorter than shortest, so that each window makes room.
//
// Left is what was announced less what is in flight: whether the server has counted
// that yet is not known. So only a response with nothing else in flight raises it,
// and then to the least that any response announced whose request may have been in
// flight at the same time: the server has served them in any order.
type Cap struct {
	common
	Name     string // the server's; read-only
	left     int64
	limit    int64  // what returns at end; negative where the server did not say
	end      Time   // when it returns
	window   int64  // how long windows are from then on
	blind    bool   // the server did not say when: one unit a second tries
	inFlight *int64 // units in flight of the requests that it concerns; nil in a plan
	begun    Time   // from when on takes have lowered left
	rolled   bool   // then units returned
	keep     Time   // when it ends: from then on it holds nothing up

	pace    bool // left is spread over the time until end
	started bool // a request has in this window
	last    Time // when the latest did

	newest  Time // the start of the newest request whose response counts
	updated Time // when that response came
	current bool // there is one, and nothing has returned since
	drift   int64

	// low is the least that was announced since since, and lower the least that was
	// announced before it, as far back as a request may have been in flight at the same
	// time as one whose response comes now: since moves on to each response to a request
	// that started after it.
	low, lower int64
	since      Time
}

// NewCap returns a Cap without an announcement, which holds nothing up. inFlight
// is the units in flight of the requests that it will concern; the caller
// keeps it.
func NewCap(name string, inFlight *int64) *Cap {
	return &Cap{
		Name: name, left: Unlimited, limit: -1, window: second, end: -Never, keep: -Never,
		newest: -Never, since: -Never, low: Unlimited, lower: Unlimited, inFlight: inFlight,
	}
}

// shortest is the least length of a window.
const shortest = int64(time.Millisecond)

// lasting is the least time for which a limit holds after its reset.
const lasting = 60 * second

// LimitSignal is what one response announced of a limit.
type LimitSignal struct {
	Left    int64
	Limit   int64 // negative: the server did not say
	Reset   int64 // until units return; negative: the server did not say
	Window  int64 // zero: the server did not say
	Started Time  // when its request did
	Own     int64 // the request's units among those in flight
	Pace    bool  // spread what is left
}

// Empty reports that s announces no limit: none is left of none. Servers that
// do not limit a request send that with every response.
func (s *LimitSignal) Empty() bool { return s.Limit == 0 && s.Left <= 0 }

// Update takes in what a response that came at now has announced. It returns how much
// the cap fell below what starts have used of it: what other programs have spent.
func (c *Cap) Update(now Time, s LimitSignal) (spent int64) {
	c.roll(now)
	if s.Empty() {
		return 0
	}
	end, blind := addSat(now, s.Reset), s.Reset < 0
	if blind {
		end = addSat(now, second)
	}
	inFlight := *c.inFlight - s.Own
	older := s.Started < c.newest
	if c.stale(end) || older && (c.Over(now) || addSat(end, second) < c.end) {
		return 0
	}
	if s.Started >= c.since {
		c.low, c.lower, c.since = Unlimited, c.low, now
	}
	c.low = min(c.low, s.Left)
	if older { // it can only lower what a newer one announced
		c.left = min(c.left, subSat(s.Left, inFlight))
		return 0
	}
	if c.current && s.Left < c.left {
		spent = subSat(c.left, s.Left)
		c.drift = addSat(c.drift, spent)
	}
	if left := subSat(min(c.low, c.lower), inFlight); inFlight == 0 || left < c.left {
		c.left, c.begun = left, now
	}
	if inFlight == 0 {
		c.low, c.lower = Unlimited, Unlimited
	}
	if near := c.end - end; !blind && c.end > now && near > 0 && near < second {
		end = c.end // the same instant, rounded otherwise
	}
	c.end, c.blind = end, blind
	switch c.limit = s.Limit; {
	case blind:
		c.limit = 1
	case s.Limit <= 0:
		c.limit = -1
	}
	switch {
	case blind:
		c.window = second
	case s.Window > 0:
		c.window = max(s.Window, shortest)
	default:
		c.window = max(c.window, s.Reset)
	}
	c.pace = s.Pace && !blind
	c.newest, c.updated, c.current, c.rolled = s.Started, now, true, false
	if c.keep = end; c.limit > 0 {
		c.keep = addSat(end, addSat(c.window, (max(c.window, lasting)-1)/c.window*c.window))
	}
	return spent
}

// stale reports whether a response that gives end as its reset was about the
// window before this one.
func (c *Cap) stale(end Time) bool {
	return c.rolled && end <= addSat(c.begun, min(second, c.window/2))
}

// roll returns the units that have returned by t.
func (c *Cap) roll(t Time) {
	if t < c.end {
		return
	}
	if t >= c.keep {
		c.left, c.limit, c.end, c.window = Unlimited, -1, Never, second
		c.current, c.blind, c.pace, c.rolled = false, false, false, false
		c.low, c.lower = Unlimited, Unlimited
		return
	}
	c.left = c.fresh()
	if c.inFlight != nil && !c.blind {
		c.left = subSat(c.left, *c.inFlight)
	}
	c.current = false
	c.rolled, c.low, c.lower = !c.blind, Unlimited, Unlimited
	c.begun = addSat(c.end, subSat(t, c.end)/c.window*c.window)
	c.end = min(addSat(c.begun, c.window), c.keep)
	c.started = false
}

// fresh returns what is left when units return: one at least.
func (c *Cap) fresh() int64 {
	if c.blind {
		return max(c.left, 1)
	}
	return c.limit
}

func (c *Cap) Earliest(now, t Time, cost int64) (Time, bool) {
	c.roll(now)
	if c.limit >= 0 {
		cost = min(cost, max(1, c.limit)) // the server decides about more than it ever admits
	}
	if c.left < cost {
		t = max(t, c.end)
	}
	if t >= c.end || !c.pace || !c.started {
		return t, false
	}
	return max(t, c.next()), false
}

// next returns when the next unit is due of those that are spread evenly.
func (c *Cap) next() Time {
	if c.left == Unlimited {
		return c.last
	}
	return addSat(c.last, (subSat(c.end, c.last)-1)/(max(0, c.left)+1)+1)
}

func (c *Cap) Take(t Time, cost int64) bool {
	c.roll(t)
	if c.left != Unlimited {
		c.left = subSat(c.left, cost)
		c.started, c.last = true, t
	}
	return false
}

func (c *Cap) Give(taken Time, cost int64, _ bool) {
	if taken >= c.begun && c.left != Unlimited {
		c.left = addSat(c.left, cost)
	}
}

func (c *Cap) Remaining(now Time) int64 {
	c.roll(now)
	return c.left
}

func (c *Cap) Recovered(now Time) bool { return c.Over(now) && *c.inFlight == 0 }

// Over reports whether c holds nothing up until more is announced.
func (c *Cap) Over(now Time) bool { return now >= c.keep }

func (c *Cap) Expires(now Time) Time { return max(now, c.keep) }

func (c *Cap) Clamp(now Time) int64 {
	ahead := subSat(max(c.updated, c.last, c.begun, c.since), now)
	if ahead > 0 {
		for _, t := range []*Time{&c.end, &c.begun, &c.keep, &c.last, &c.updated, &c.since, &c.newest} {
			*t = earlier(*t, ahead)
		}
	}
	c.newest = min(c.newest, now)
	return max(0, ahead)
}

func (c *Cap) code(d *Codec) {
	v := byte(version)
	d.Version(&v, version)
	d.Text(&c.Name)
	d.Ints(&c.left, &c.limit, &c.end, &c.window, &c.begun, &c.keep, &c.last, &c.newest, &c.updated, &c.low, &c.lower, &c.since, &c.drift)
	for _, v := range []*bool{&c.blind, &c.rolled, &c.pace, &c.started, &c.current} {
		d.Bool(v)
	}
	if !d.reading {
		return
	}
	if c.window <= 0 {
		d.fail()
	}
	if c.limit == 0 {
		c.limit = -1
	}
}

func (c *Cap) simulate(now Time) sim {
	c.roll(now)
	s := sim{kind: simCap, learned: *c}
	s.learned.inFlight = nil
	return s
}

// A CapStatus is what a Cap knows.
type CapStatus struct {
	Left, Limit int64         // Limit is negative where the server did not say
	Reset       Time          // when units return
	Window      time.Duration // how long windows are from then on
	Updated     Time          // when it was last announced
	Drift       int64         // units that other programs have spent, as far as it shows
	Blind       bool          // the server did not say when units return
	End         Time          // when c ends
}

// Tightens reports whether starts that were possible by o may not be by s.
func (s CapStatus) Tightens(o CapStatus) bool {
	return s.Left < o.Left || s.Reset > o.Reset || s.Window != o.Window || s.Limit != o.Limit || s.Blind != o.Blind || s.End > o.End
}

// Status returns what c knows at now.
func (c *Cap) Status(now Time) CapStatus {
	c.roll(now)
	return CapStatus{c.left, c.limit, c.end, time.Duration(c.window), c.updated, c.drift, c.blind, c.keep}
}

// Announced returns the limit that the server has announced, if it has and that
// holds at now.
func (c *Cap) Announced(now Time) []Spec {
	if c.limit <= 0 || c.blind || c.Over(now) {
		return nil
	}
	return []Spec{{N: c.limit, Per: time.Duration(c.window)}}
}

// UpdatePartly is Update for a process that knows of some in flight only: it lowers what
// is left, by those too, but never raises it before units return.
func (c *Cap) UpdatePartly(now Time, s LimitSignal, inFlight int64) {
	c.roll(now)
	// One more in flight, and one more left, are the same again; but with one
	// in flight Update raises nothing.
	if s.Empty() {
		return
	}
	inFlight++
	c.inFlight, s.Left = &inFlight, addSat(s.Left, 1)
	c.Update(now, s)
	var none int64
	c.inFlight = &none
}
