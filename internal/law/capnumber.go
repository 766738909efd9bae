package law

// Resets is what the reset of an announced limit means. The values are those of
// retryafter.ResetKind.
type Resets uint8

const (
	ResetsUnknown Resets = iota
	ResetsWindow         // the window ends, and all units return
	ResetsFull           // all units will have returned, one by one
	ResetsUnit           // the next unit returns
	ResetsRolling        // a rolling window: units return one by one
)

// LimitSignal is what one response announced of a limit.
type LimitSignal struct {
	Left    int64
	Limit   int64  // negative: the server did not say
	Reset   int64  // until units return; negative: the server did not say
	Window  int64  // the period; zero: the server did not say
	Resets  Resets // what Reset means by the server's documentation
	Whole   bool   // Reset is in whole seconds, so that it may be a second late
	Early   bool   // Reset is when the server wants the next request, and may be before units return
	Refused bool   // the response has refused the request
	Pace    bool   // spread what is left

	Most     int64 // for how long a limit holds after its last number; zero: as long as it may matter
	Started  Time  // when its request did
	Mark     Mark  // of its request
	Own      int64 // units of its request that still count as in flight; zero: it does not
	InFlight int64 // units of others in flight, where the Cap does not know of them

	// Of the rule that the limit is, for what the server did not say; zero where it is none.
	RuleLimit  int64
	RulePeriod int64
	RuleFills  bool // the rule is a Bucket
}

// Empty reports that s announces no limit: none is left of none. Servers that
// do not limit a request send that with every response.
func (s *LimitSignal) Empty() bool { return s.Limit == 0 && s.Left <= 0 }

// bounded returns s with its numbers in the bounds of a Cap.
func (s LimitSignal) bounded() LimitSignal {
	if s.Limit <= 0 {
		s.Limit = -1
		if s.RuleLimit > 0 {
			s.Limit = s.RuleLimit
		}
	}
	s.Limit, s.Left = min(s.Limit, MaxN), min(max(s.Left, -MaxN), MaxN)
	if s.Reset >= 0 {
		s.Reset = min(s.Reset, longest)
	}
	if s.Window <= 0 {
		s.Window = s.RulePeriod
	}
	if s.Window > 0 {
		s.Window = min(max(s.Window, shortest), longest)
	}
	return s
}

// Update takes in what a response that came at now has announced, and returns how many
// units others have spent since the last number, as far as it shows.
//
// A number corrects the count, and does not replace it. The server's count when it
// answered is compared with this client's when the request had started, of which
// the Mark tells: what started later the server has not counted yet, and this client has. So
//
//	extra = the server's count - ours when the request had started, less what was given
//	        back since
//
// is by how much the server counts more, for others use the limit too, and stays right as
// more requests start. Only a number of a request that started no earlier than the last one
// used sets it, up or down.
//
// Below 0 the server counts less. Then what was in flight when the request started is
// subtracted, since the server may not have known of it.
func (c *Cap) Update(now Time, s LimitSignal) (spent int64) {
	if s.Empty() {
		return 0
	}
	s = s.bounded()
	if s.Started = min(s.Started, now); s.Limit < 0 {
		s.Limit = c.limit // this response does not repeat it
	}
	c.ceiling = s.RuleLimit > 0
	if c.settle(now); c.gen != 0 && c.stale(now, &s) {
		return 0
	}
	took := subSat(now, s.Started)
	c.care.took(took)
	c.learn(now, &s)
	kind, per := c.countFor(&s)
	if kind == capFilling {
		s.Left = max(s.Left, 0) // a debt could take for ever
	}
	first := !c.counts() || kind != c.kind || kind == capRolling && per != c.per
	switch {
	case first || (s.Limit < 0) != (c.limit < 0):
		first = true
		c.begin(now, kind, per, &s)
	case s.Limit != c.limit || per != c.per:
		c.setLimit(now, s.Limit, per)
	}
	if c.kind == capRolling {
		c.window.per = c.per + guard(c.shortestResponse, c.per)
	}
	older := s.Started < c.newest
	marked := !first && s.Mark.Gen == c.gen && (c.kind != capCounter || s.Started >= c.begun)
	if s.Refused && marked && !older {
		c.refused(now, c.period())
	}
	switch {
	case marked && older:
		return 0
	case marked:
		spent = c.correct(now, &s)
		c.compared = s.Started
	default:
		spent = c.lower(now, &s)
	}
	if s.Started >= c.newest {
		c.nextUnit(now, &s)
		newest := c.newest
		c.newest, c.updated = s.Started, now
		c.renew(now, newest, &s)
	}
	return spent
}

// stale reports whether a response is about the window before this one.
func (c *Cap) stale(now Time, s *LimitSignal) bool {
	if c.kind != capCounter || !c.rolled || s.Reset < 0 {
		return false
	}
	return s.Started < c.begun && addSat(now, s.Reset) <= addSat(c.begun, min(second, c.period()/2))
}

// begin begins a count with a first number. What is in flight counts as of now. The server may
// have counted it or not: see lower.
func (c *Cap) begin(now Time, kind capKind, per int64, s *LimitSignal) {
	lump := addSat(s.Own, s.InFlight)
	if c.inFlight != nil {
		lump = max(lump, *c.inFlight)
	}
	if took := subSat(now, s.Started); kind == capRolling && took > per {
		// Of those in flight only some are so young that they still count: as many as start in
		// a period, if they start evenly.
		lump, _ = mulDiv(lump, per, 0, took)
	}
	known := c.rule != nil && kind == capRolling && s.RulePeriod >= per
	if w := windowOf(c.rule); known && w != nil && !w.strict { // the rule knows when they started
		w.expire(now)
		lump = w.sum
	} else {
		known = false
	}
	gen := uint32(now>>20) | 1
	if gen == c.gen {
		gen += 2
	}
	c.kind, c.gen, c.since, c.limit, c.per = kind, gen, now, s.Limit, per
	c.extra, c.over, c.unsure, c.given, c.lump, c.heard, c.low, c.till = 0, 0, 0, 0, lump, 0, Unlimited, -Never
	c.newest, c.compared, c.turns = -Never, -Never, noTurns
	c.window, c.bucket = nil, nil
	c.counter = noCounter
	switch kind {
	case capCounter:
		c.left, c.begun = subSat(max(0, s.Limit), lump), now
	case capRolling:
		c.window = newRolling(s.Limit, per)
		if !known {
			c.window.push(now, lump)
			break
		}
		for _, e := range c.rule.history(now) {
			c.window.push(e.At, e.Cost)
		}
	case capFilling:
		c.bucket = newFilling(s.Limit, per, now, lump)
	}
}

// setLimit changes the limit or its period. What was counted stays.
func (c *Cap) setLimit(now Time, limit, per int64) {
	c.per = per
	if c.kind == capCounter {
		c.left = addSat(c.left, limit-c.limit)
	}
	switch c.limit = limit; c.kind {
	case capRolling:
		c.window.shape = newRolling(limit, c.per).shape
	case capFilling:
		c.bucket = newFilling(limit, c.per, now, c.bucket.usedAt(now))
	}
}

// correct compares the number of a request with a Mark.
func (c *Cap) correct(now Time, s *LimitSignal) (spent int64) {
	x := c.difference(s.Left, subSat(s.Mark.Used, c.given))
	if s.Started == c.compared && min(x, c.over) > 0 {
		x = max(x, c.over) // they may have arrived in any order: what knows of the most counts
	}
	if c.kind != capCounter || c.newest >= c.begun { // else it would be compared with another window
		c.note(now, s.Started, c.newest, c.period(), c.over, x)
	}
	// More units have returned than one each longest reset: they return one by one, but each
	// by itself.
	if c.resets == ResetsUnit && s.Resets == ResetsUnknown && x < subSat(c.over, addSat(1, int64(s.Mark.InFlight))) {
		c.resets = ResetsRolling
	}
	return c.learnOver(x, int64(s.Mark.InFlight))
}

// lower takes in the number of a request without a Mark: it started before the count began,
// or in the window before this one.
//
// Of those in flight when the count began, the server may have counted any. As long as there
// is no better number, the least that any of them was told counts, as if it knew of none
// that has no response yet.
func (c *Cap) lower(now Time, s *LimitSignal) (spent int64) {
	if s.Started > c.since {
		if c.kind == capCounter && s.Left < c.left {
			return c.learnOver(addSat(c.over, subSat(c.left, s.Left)), c.unsure)
		}
		return 0
	}
	c.heard = min(c.lump, addSat(c.heard, s.Own))
	if c.kind == capCounter && c.named && s.Reset >= 0 && s.Started < c.newest && addSat(now, addSat(s.Reset, 2*second)) < c.end {
		return 0 // it is about the window before this one
	}
	if c.low = min(c.low, s.Left); c.compared >= c.since {
		return 0
	}
	return c.learnOver(c.difference(c.low, max(0, subSat(c.heard, c.given))), c.lump-c.heard)
}

// difference returns by how much more the server counts, which has left units, than ours.
func (c *Cap) difference(left, ours int64) int64 {
	return subSat(subSat(max(0, c.limit), left), ours)
}

// learnOver is exceed for a number, and returns how many units others have spent by it.
func (c *Cap) learnOver(over, unsure int64) (spent int64) {
	before := c.extra
	c.exceed(over, unsure)
	if spent = max(0, subSat(c.extra, before)); c.newest == -Never {
		spent = 0 // what had been spent before the first number is not known
	}
	c.drift = addSat(c.drift, spent)
	return spent
}

// exceed notes that the server counts over units more than this client, and that it may not
// have counted unsure of this client's yet. That matters where it counts less, which a counter
// without a limit does not know. Where the limit is one of this client's rules too, less
// never counts: a rule is a ceiling.
func (c *Cap) exceed(over, unsure int64) {
	c.over, c.unsure = over, unsure
	switch {
	case over >= 0 || c.limit <= 0:
	case c.ceiling:
		over = 0
	default:
		over = min(0, addSat(over, unsure))
	}
	n := subSat(over, c.extra)
	switch c.extra = over; c.kind {
	case capCounter:
		c.left = subSat(c.left, n)
	case capFilling:
		c.bucket.correct(c.at, n)
	}
}

// nextUnit bounds when the next unit of a bucket returns: when the server says so, or else no
// later than the longest reset that was announced, or a period.
func (c *Cap) nextUnit(now Time, s *LimitSignal) {
	if c.kind != capFilling {
		return
	}
	by := addSat(now, max(c.unit, s.Window))
	if c.resets == ResetsUnit && s.Reset >= 0 && s.Left <= 0 {
		by = addSat(now, s.Reset)
	}
	if at := c.bucket.earliestWith(now, 1); at > by {
		c.bucket.full.ns = subSat(c.bucket.full.ns, subSat(at, by))
	}
}

// renew makes c last: its correction one period from the request's start, a window to its
// end. The last number was of a request that started at newest.
func (c *Cap) renew(now, newest Time, s *LimitSignal) {
	end := Never
	if s.Reset >= 0 {
		if end = addSat(now, s.Reset); s.Whole {
			end = addSat(end, second) // believed late, never early
		}
	}
	c.until, c.grace = -Never, c.graceFor(c.period())
	if c.kind == capCounter && s.Reset < 0 && c.named && c.end > now {
		return // this response does not repeat it
	}
	c.alone = Never
	switch c.kind {
	case capCounter:
		c.open, c.early = false, s.Early
		if s.Most > 0 {
			end = min(end, addSat(now, s.Most)) // and one request asks then
		}
		if c.named = s.Reset >= 0; !c.named {
			end = addSat(s.Started, lasting)
			c.alone, c.end = end, Never
		} else if s.Early || c.resets != ResetsWindow || c.per <= 0 {
			c.alone = end
		}
		// Of two requests of one instant, the one that arrived last knows more. An end that is
		// less than a second earlier is the same, rounded otherwise.
		if near := subSat(c.end, end); c.end == Never || near <= 0 || near > second && (s.Started > newest || s.Early) {
			c.end = max(end, now)
		}
		if c.spread = -Never; s.Pace {
			c.spread = addSat(now, s.Reset)
		}
		c.keep = addSat(c.end, max(c.per, lasting))
		if c.limit <= 0 && c.alone == Never {
			c.keep = c.end
		}
	case capRolling:
		c.till = addSat(s.Started, c.window.per)
		if s.Early || c.resets == ResetsWindow || c.resets == ResetsUnknown {
			c.till = min(c.till, max(end, now))
		}
		if s.Early || c.extra > c.limit/8 && c.meanResponse < c.per/4 {
			c.alone = c.till
		}
		c.keep = addSat(now, addSat(2*c.per, max(c.per, lasting)))
	case capFilling:
		c.keep = addSat(now, addSat(2*c.per, max(c.per, lasting)))
	}
	if c.every = 0; s.Pace && c.kind != capCounter {
		if c.every = (c.per-1)/c.limit + 1; c.kind == capRolling && s.Reset >= 0 {
			c.every = (s.Reset-1)/(max(0, s.Left)+1) + 1
		}
	}
	if s.Most > 0 && c.kind != capCounter {
		c.keep = min(c.keep, addSat(now, s.Most))
	}
}
