package law

// bucket is a token bucket, kept as the instant at which it will be full again
// (GCRA's theoretical arrival time): level = burst - (full-now)/interval. That
// instant is exact, in whole nanoseconds and n-ths of one, so that 1001 per
// millisecond stays 1001 per millisecond.
type bucket struct {
	*shape
	full, frac int64 // when it is full again
	// since is when it was last seen full: units taken before are forgotten,
	// so giving them back must not count.
	since Time
	gaps  *gaps // its own; nil until it has one
}

// A shape is what buckets under the same limit have in common. It is read-only.
type shape struct {
	rate
	burst int64
	grain int64 // n-ths in which fractions come; 0 where there are none, or units are shorter than a nanosecond
}

func newShape(r rate, burst int64) *shape {
	s := &shape{rate: r, burst: burst}
	if r.n > 0 && r.per >= r.n && r.per%r.n != 0 {
		s.grain = gcd(r.per, r.n)
	}
	return s
}

// A gap is what a start at an instant found missing to a full bucket. Of the
// units taken before it no more can be given back than that: had they never
// been taken, the bucket would have been full then, and would have overflowed.
type gap struct {
	at Time
	ns int64
}

// gaps holds the gaps since the bucket was last full that bind: each is smaller
// than all later ones. Where there are more than have a place, the oldest are
// merged, so that less may be given back than could be.
type gaps struct {
	list [4]gap
	len  int
}

// untracked are the gaps of a copy to plan with, to which nothing is given back.
var untracked gaps

// copy returns a copy of b to plan with.
func (b *bucket) copy() bucket {
	c := *b
	c.gaps = &untracked
	return c
}

// seenFull notes that b was full at t.
func (b *bucket) seenFull(t Time) {
	if b.since = t; b.gaps != nil && b.gaps != &untracked {
		b.gaps.len = 0
	}
}

// missing notes what is missing to a full bucket at t.
func (b *bucket) missing(t Time) {
	switch b.gaps {
	case &untracked:
		return
	case nil:
		b.gaps = new(gaps)
	}
	b.gaps.add(t, max(0, subSat(b.full, t)))
}

func (g *gaps) add(at Time, ns int64) {
	for g.len > 0 && g.list[g.len-1].ns >= ns {
		g.len--
	}
	if g.len == len(g.list) {
		g.list[1].ns = g.list[0].ns
		copy(g.list[:], g.list[1:])
		g.len--
	}
	g.list[g.len] = gap{at, ns}
	g.len++
}

// give returns how much of the time of units taken at the instant taken can be
// given back, and makes the gaps smaller by it.
func (g *gaps) give(taken Time, ns, frac int64) (int64, int64) {
	for i := range g.len {
		if e := &g.list[i]; e.at > taken {
			if e.ns <= ns { // so for the first only, if any
				ns, frac = e.ns, 0
			}
			if e.ns -= ns; frac > 0 {
				e.ns--
			}
		}
	}
	for i := g.len - 2; i >= 0; i-- {
		g.list[i].ns = min(g.list[i].ns, g.list[i+1].ns)
	}
	return ns, frac
}

func (b *bucket) Earliest(_, t Time, cost int64) (Time, bool) {
	if b.n == 0 || cost > b.burst {
		return Never, false
	}
	ns, frac := b.span(b.burst - cost)
	at := subSat(b.full, ns)
	if frac -= b.frac; frac < 0 { // b.frac was the larger: round up
		at = addSat(at, 1)
	}
	return max(t, at), false
}

func (b *bucket) Take(t Time, cost int64) bool {
	if b.Recovered(t) {
		b.full, b.frac = b.begin(t)
		b.seenFull(t)
	} else if t > b.since {
		b.missing(t)
	}
	b.push(cost)
	return false
}

// push moves the instant of fullness by n units.
func (b *bucket) push(n int64) {
	switch {
	case b.n == 0:
	case n < 0:
		ns, frac := b.span(-n)
		b.move(-ns, -frac)
	default:
		b.move(b.span(n))
	}
}

func (b *bucket) move(ns, frac int64) {
	b.full, b.frac = addSat(b.full, ns), b.frac+frac
	switch {
	case b.frac < 0:
		b.full, b.frac = b.full-1, b.frac+b.n
	case b.frac >= b.n:
		b.full, b.frac = addSat(b.full, 1), b.frac-b.n
	}
}

func (b *bucket) Answered(Time, int64) {}

func (b *bucket) Give(taken Time, cost int64, _ bool) {
	if taken < b.since || b.n == 0 {
		return
	}
	ns, frac := b.span(cost)
	if b.gaps != nil {
		ns, frac = b.gaps.give(taken, ns, frac)
	}
	b.move(-ns, -frac)
}

func (b *bucket) Spend(now Time, n int64) {
	switch {
	case n > 0:
		b.Take(now, n)
	case n < 0 && !b.isFull(now):
		b.push(n)
	}
}

func (b *bucket) Remaining(now Time) int64 {
	switch {
	case b.n == 0:
		return 0
	case b.isFull(now):
		return b.burst
	}
	return b.burst - b.ceilUnits(subSat(b.full, now), b.frac)
}

func (b *bucket) Recovered(now Time) bool {
	t, frac := b.begin(now)
	return b.full < t || b.full == t && b.frac <= frac
}

func (b *bucket) isFull(t Time) bool { return b.full < t || b.full == t && b.frac == 0 }

// newBucket returns a full bucket.
func newBucket(s *shape) *bucket { return &bucket{shape: s, full: -1} }

// begin returns the beginning of t's nanosecond, from which on a start at t
// counts: instants are whole nanoseconds rounded up, and none of the fractions
// may add up.
func (b *bucket) begin(t Time) (Time, int64) {
	if b.grain == 0 {
		return t, 0
	}
	return t - 1, b.grain
}

func (b *bucket) inherit(o *bucket, now Time) {
	used := o.history(now)
	if len(used) > 0 {
		b.Take(now, used[0].Cost)
	}
	if b.rate == o.rate {
		b.full, b.frac, b.since, b.gaps = o.full, o.frac, o.since, o.gaps
	}
}

func (b *bucket) history(now Time) []Entry {
	if b.n == 0 || b.isFull(now) {
		return nil
	}
	return []Entry{{At: now, Cost: b.ceilUnits(subSat(b.full, now), b.frac)}}
}

func (b *bucket) simulate(Time) sim { return sim{kind: simBucket, bucket: b.copy()} }
