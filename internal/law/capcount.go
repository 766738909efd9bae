package law

// counter counts down what is left of a server's window.
type counter struct {
	left   int64 // Unlimited: it is not counted
	begun  Time  // from when on starts have lowered left
	last   Time  // the latest start of a paced limit, in this window
	spread Time  // until when what is left is spread; -Never: it is not
	end    Time  // when all units return; Never: not known
	rolled bool  // then they have
	named  bool  // the server has said when end is
	early  bool  // the last end was when the server wanted the next request: units may return later
	open   bool  // units have returned, and nothing is known of the window since
}

var noCounter = counter{left: Unlimited, end: Never, begun: -Never, last: -Never, spread: -Never}

func (c *counter) take(t Time, cost int64) {
	if c.left != Unlimited {
		c.left = subSat(c.left, cost)
		c.last = t
	}
}

// roll returns the units that are due at t, of a limit per period; a period of zero is
// not known, and then nothing is held up until more is announced. Without a limit nothing is
// counted either.
func (c *counter) roll(t Time, limit, per int64) {
	c.left, c.rolled, c.named, c.open = Unlimited, true, false, per <= 0
	if limit > 0 {
		c.left = limit
	}
	c.begun, c.end, c.last, c.spread = c.end, Never, -Never, -Never
	if per > 0 && limit > 0 {
		c.begun = addSat(c.begun, subSat(t, c.begun)/per*per)
		c.end = addSat(c.begun, per)
	}
}

// earliest returns when cost units fit at or after t.
func (c *counter) earliest(t Time, cost int64) Time {
	if c.open {
		return t
	}
	if t < c.end && c.left < cost {
		return c.end
	}
	if t < c.spread && c.last > -Never {
		return max(t, addSat(c.last, (subSat(c.spread, c.last)-1)/(max(0, c.left)+1)+1))
	}
	return t
}

// coarse is how many starts a rolling limit remembers one by one; see exact. Beyond that a
// unit returns up to 1/256 of the period late.
const coarse = 256

// guard is by how much later than one period after its start a unit of a rolling limit
// returns: a server counts arrivals, which jitter, and an arrival comes after the start. The
// next one may be on its way for as short as the shortest response took.
func guard(shortestResponse, per int64) int64 { return min(shortestResponse, per/64) }

// newRolling returns the window of a rolling limit.
func newRolling(limit, per int64) *window {
	s := newShape(rate{limit, per}, limit)
	s.slices, s.slot = coarse, max(1, per/coarse)
	return newWindow(s, false)
}

// earliestWith returns when cost units fit at or after t, where more units count until
// till; fewer, if more is negative.
func (w *window) earliestWith(t Time, cost, more int64, till Time) Time {
	room, sum := w.n-cost, addSat(w.sum, more)
	for i := 0; ; { // each turn passes an entry or till, or is the last
		next := Never
		if i < w.len {
			next = addSat(w.at(i).At, w.per)
		}
		switch {
		case more != 0 && till <= t:
			sum, more = subSat(sum, more), 0
			continue
		case next <= t:
			sum = subSat(sum, w.at(i).Cost)
			i++
			continue
		case sum <= room:
			return t
		case more > 0:
			next = min(next, till)
		}
		if next == Never {
			return t // more is negative, and ends
		}
		t = next
	}
}

// newFilling returns the bucket of a filling limit, of which used units are used at now.
func newFilling(limit, per int64, now Time, used int64) *bucket {
	b := newBucket(newShape(rate{limit, per}, limit))
	b.full = b.begin(now)
	b.since = now
	if used > 0 {
		b.push(used)
	}
	return b
}

// earliestWith returns when cost units, which are no more than the burst, fit at or after t.
func (b *bucket) earliestWith(t Time, cost int64) Time {
	at, _ := b.Earliest(t, t, min(cost, b.burst))
	return at
}

// earliestWithCare returns when cost units fit and leave margin, or, from till on, when they fit.
func (b *bucket) earliestWithCare(t Time, cost, margin int64, till Time) Time {
	at := b.earliestWith(t, cost)
	if margin <= 0 || at >= till {
		return at
	}
	return min(b.earliestWith(t, addSat(cost, margin)), till)
}

// usedAt returns how many units count at t.
func (b *bucket) usedAt(t Time) int64 {
	if b.isFull(t) {
		return 0
	}
	return b.used(t)
}

// correct moves the level: n more units are used, or fewer. It is called at the instant of
// the latest start, or later.
func (b *bucket) correct(now Time, n int64) {
	if b.isFull(now) {
		b.full = b.begin(now)
	}
	b.push(max(n, -b.usedAt(now)))
}

// turns are what keeps starts under an announced limit apart, whatever is left of it.
//
// After the instant alone, the next request goes alone, and the others wait for what its
// response announces: until then, or until, if no response comes.
//
// A paced limit spreads its units evenly, one each interval every. A counter spreads what is
// left over what remains of its window; see counter.earliest.
type turns struct {
	alone Time // Never: no request goes alone
	until Time // others wait until then
	grace int64
	every int64 // zero: it is not paced
	start Time  // the latest of a paced limit
}

var noTurns = turns{alone: Never, until: -Never, start: -Never}

func (a *turns) take(t Time) {
	if t >= a.alone {
		a.alone, a.until = Never, addSat(t, a.grace)
	}
	a.start = t
}

// next returns the first instant at or after t at which it is a start's turn.
func (a *turns) next(t Time) Time {
	t = max(t, a.until)
	if a.every > 0 && a.start > -Never {
		t = max(t, addSat(a.start, a.every))
	}
	return t
}
