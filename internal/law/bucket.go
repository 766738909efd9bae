package law

// bucket is a token bucket, kept as the instant at which it will be full again
// (GCRA's theoretical arrival time): level = burst - (full-now)/interval. That
// instant is exact, in whole nanoseconds and n-ths of one, so that 1001 per
// millisecond stays 1001 per millisecond.
type bucket struct {
	rate
	burst      int64
	full, frac int64 // when it is full again
	// since is when it was last seen full: units taken before are forgotten,
	// so giving them back must not count.
	since Time
}

func (b *bucket) Earliest(t Time, cost int64) (Time, bool) {
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
	if b.full < t || b.full == t && b.frac == 0 {
		b.full, b.frac, b.since = t, 0, t
	}
	b.push(cost)
	return false
}

// push moves the instant of fullness by n units.
func (b *bucket) push(n int64) {
	if n < 0 {
		ns, frac := b.span(-n)
		b.full, b.frac = subSat(b.full, ns), b.frac-frac
		if b.frac < 0 {
			b.full, b.frac = b.full-1, b.frac+b.n
		}
		return
	}
	if b.n == 0 {
		return
	}
	ns, frac := b.span(n)
	b.full, b.frac = addSat(b.full, ns), b.frac+frac
	if b.frac >= b.n {
		b.full, b.frac = addSat(b.full, 1), b.frac-b.n
	}
}

func (b *bucket) Answered(Time, int64) {}

func (b *bucket) Give(taken Time, cost int64, _ bool) {
	if taken >= b.since && b.n > 0 {
		b.push(-cost)
	}
}

func (b *bucket) Spend(now Time, n int64) {
	switch {
	case n > 0:
		b.Take(now, n)
	case n < 0 && b.n > 0 && !b.Recovered(now):
		b.push(n)
	}
}

func (b *bucket) Remaining(now Time) int64 {
	switch {
	case b.n == 0:
		return 0
	case b.Recovered(now):
		return b.burst
	}
	return b.burst - b.ceilUnits(subSat(b.full, now), b.frac)
}

func (b *bucket) Recovered(now Time) bool { return b.full < now || b.full == now && b.frac == 0 }

func (b *bucket) inherit(o *bucket, now Time) {
	used := o.history(now)
	if len(used) > 0 {
		b.Take(now, used[0].Cost)
	}
	if b.rate == o.rate {
		b.full, b.frac, b.since = o.full, o.frac, o.since
	}
}

func (b *bucket) history(now Time) []Entry {
	if b.n == 0 || b.Recovered(now) {
		return nil
	}
	return []Entry{{At: now, Cost: b.ceilUnits(subSat(b.full, now), b.frac)}}
}

func (b *bucket) simulate(Time) sim { return sim{kind: simBucket, bucket: *b} }
