package law

import "math"

// bucket is a token bucket, kept as the instant at which it will be full again
// (GCRA's theoretical arrival time): level = burst - (full-now)/interval. That
// instant is exact, so that 1001 per millisecond stays 1001 per millisecond.
type bucket struct {
	*shape
	full moment // when it is full again
	// since is when it was last seen full: units taken before are forgotten,
	// so giving them back must not count.
	since Time
	gaps  *gaps // its own; nil until it has one
}

// A shape is what buckets under the same limit have in common. It is read-only.
type shape struct {
	common // below all that the laws of this shape have of their own
	rate
	burst  int64
	grain  int64 // n-ths in which fractions come; 0 where there are none, or units are shorter than a nanosecond
	whole  bool  // a start needs a full bucket, whatever its cost; see spaced
	slices int64 // of windows: how many starts are remembered one by one; see exact
	slot   int64 // beyond that, how long the time is whose starts are remembered together
}

func newShape(r rate, burst int64) *shape {
	s := &shape{rate: r, burst: burst, slices: exact, slot: max(1, r.per/exact)}
	if r.n > 0 && r.per >= r.n && r.per%r.n != 0 {
		s.grain = gcd(r.per, r.n)
	}
	return s
}

// begin returns the beginning of t's nanosecond, from which on a start at t
// counts: instants are whole nanoseconds rounded up, and none of the fractions
// may add up.
func (s *shape) begin(t Time) moment {
	if s.grain == 0 {
		return moment{t, 0}
	}
	return moment{t - 1, s.grain}
}

// room returns how many units have to be there for a start that costs so many.
func (s *shape) room(cost int64) int64 {
	if s.whole && cost <= MaxN {
		return s.burst
	}
	return cost
}

// newBucket returns a full bucket.
func newBucket(s *shape) *bucket { return &bucket{shape: s, full: moment{-1, 0}} }

func (b *bucket) Earliest(_, t Time, cost int64) (Time, bool) {
	if b.n == 0 || cost > b.burst {
		return Never, false
	}
	rest := b.span(b.burst - cost)
	return max(t, moment{subSat(b.full.ns, rest.ns), b.full.frac - rest.frac}.ceil()), false
}

func (b *bucket) Take(t Time, cost int64) bool {
	if b.Recovered(t) {
		b.full = b.begin(t)
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
		b.full = b.add(b.full, b.span(-n).neg())
	default:
		b.full = b.add(b.full, b.span(n))
	}
}

func (b *bucket) Give(taken Time, cost int64, _ bool) {
	if taken < b.since || b.n == 0 {
		return
	}
	back := b.span(cost)
	if b.gaps != nil {
		back = b.gaps.give(taken, back)
	}
	b.full = b.add(b.full, back.neg())
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
	return b.burst - b.used(now)
}

// used returns how many units count at now. The bucket is not full.
func (b *bucket) used(now Time) int64 {
	return b.ceilUnits(moment{subSat(b.full.ns, now), b.full.frac})
}

func (b *bucket) Recovered(now Time) bool { return !b.full.after(b.begin(now)) }

func (b *bucket) isFull(t Time) bool { return !b.full.after(moment{t, 0}) }

func (b *bucket) Expires(now Time) Time { return max(now, addSat(b.full.ns, 2)) }

func (b *bucket) Max() int64 {
	switch {
	case b.n == 0:
		return 0
	case b.whole:
		return MaxN
	}
	return b.burst
}

// Clamp moves all by as much as the latest start is ahead: a debt may be full far
// ahead by right.
func (b *bucket) Clamp(now Time) int64 {
	latest := b.since
	list := b.gaps.all()
	if len(list) > 0 {
		latest = max(latest, list[len(list)-1].at)
	}
	ahead := subSat(latest, now)
	if ahead <= 0 {
		return 0
	}
	b.full.ns, b.since = earlier(b.full.ns, ahead), earlier(b.since, ahead)
	for i := range list {
		list[i].at = earlier(list[i].at, ahead)
	}
	return ahead
}

func (b *bucket) due(slot, _ Time) Time { return slot }

func (b *bucket) reach(t Time) Time { return subSat(t, b.span(b.burst).ns) }

func (b *bucket) inherit(old State, now Time) bool {
	o, ok := old.(*bucket)
	if !ok {
		return false
	}
	for _, e := range o.history(now) {
		b.Take(now, e.Cost)
	}
	if b.rate == o.rate {
		b.full, b.since, b.gaps = o.full, o.since, o.gaps
	}
	return true
}

func (b *bucket) history(now Time) []Entry {
	if b.n == 0 || b.isFull(now) {
		return nil
	}
	return []Entry{{At: now, Cost: b.used(now)}}
}

func (b *bucket) code(c *Codec) {
	list := b.gaps.all()
	n := len(list)
	c.Ints(&b.full.ns, &b.full.frac, &b.since)
	c.Size(&n)
	if n > len(gaps{}.list) || b.full.frac < 0 || b.full.frac > 0 && b.full.frac >= b.n {
		c.fail()
		return
	}
	if c.reading && n > 0 {
		b.gaps = &gaps{len: n}
		list = b.gaps.all()
	}
	for i := range list {
		c.Ints(&list[i].at, &list[i].ns)
	}
}

// copy returns a copy of b to plan with.
func (b *bucket) copy() bucket {
	c := *b
	c.gaps = &untracked
	return c
}

func (b *bucket) simulate(Time) sim { return sim{kind: simBucket, bucket: b.copy()} }

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

func (g *gaps) all() []gap {
	if g == nil {
		return nil
	}
	return g.list[:g.len]
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
	b.gaps.add(t, max(0, subSat(b.full.ns, t)))
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
func (g *gaps) give(taken Time, back moment) moment {
	for i := range g.len {
		if e := &g.list[i]; e.at > taken {
			if e.ns <= back.ns { // so for the first only, if any
				back = moment{e.ns, 0}
			}
			if e.ns -= back.ns; back.frac > 0 {
				e.ns--
			}
		}
	}
	for i := g.len - 2; i >= 0; i-- {
		g.list[i].ns = min(g.list[i].ns, g.list[i+1].ns)
	}
	return back
}

// A fold is what taking a whole chunk of starts does to a bucket: it is full
// again not before the first moment, moved by the second.
type fold struct {
	of       rate
	from, by moment
}

// foldFor returns c's, made anew where c has changed or was taken at another rate.
func (c *chunk) foldFor(b *bucket) *fold {
	if c.fold != nil && c.fold.of == b.rate {
		return c.fold
	}
	f := &fold{of: b.rate, from: moment{math.MinInt64 / 2, 0}}
	for _, e := range c.list {
		// Where it begins a bucket anew, what came before does not count.
		if from := b.add(b.begin(e.at), f.by.neg()); from.after(f.from) {
			f.from = from
		}
		f.by = b.add(f.by, b.span(e.cost))
	}
	c.fold = f
	return f
}

// passChunk takes all starts of a chunk at once, and reports whether it could.
func (b *bucket) passChunk(c *chunk) bool {
	if b.n == 0 {
		return false
	}
	f := c.foldFor(b)
	if f.by.ns >= math.MaxInt64/2 {
		return false
	}
	if f.from.after(b.full) {
		b.full = f.from
	}
	b.full = b.add(b.full, f.by)
	return true
}
