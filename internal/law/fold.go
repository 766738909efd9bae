package law

import "math"

// A fold is what taking a whole chunk of starts does to a bucket: it is full
// again not before the first instant, moved by the second. Instants are whole
// nanoseconds and n-ths of one.
type fold struct {
	of             rate
	from, fromFrac int64
	by, byFrac     int64
}

// foldFor returns c's, made anew where c has changed or was taken at another rate.
func (c *chunk) foldFor(b *bucket) *fold {
	if c.fold != nil && c.fold.of == b.rate {
		return c.fold
	}
	f := &fold{of: b.rate, from: math.MinInt64 / 2}
	for _, e := range c.list {
		// Where it begins a bucket anew, what came before does not count.
		t, frac := b.begin(e.at)
		t, frac = t-f.by, frac-f.byFrac
		if frac < 0 {
			t, frac = t-1, frac+b.n
		}
		if t > f.from || t == f.from && frac > f.fromFrac {
			f.from, f.fromFrac = t, frac
		}
		ns, frac := b.span(e.cost)
		if f.by, f.byFrac = addSat(f.by, ns), f.byFrac+frac; f.byFrac >= b.n {
			f.by, f.byFrac = addSat(f.by, 1), f.byFrac-b.n
		}
	}
	c.fold = f
	return f
}

// pass takes all starts until t from place i on, and returns the place after
// them. What is overdue starts at now.
func (s *sim) pass(now, t Time, todo *schedule, i place) place {
	var b *bucket
	switch {
	case s.kind == simBucket && s.bucket.n > 0:
		b = &s.bucket
	case s.kind == simSpaced && s.spaced.n > 0:
		b = &s.spaced.bucket
	}
	for e := todo.get(i); e != nil && e.at <= t; e = todo.get(i) {
		if c := &todo.chunks[i.chunk]; b != nil && i.i == 0 && e.at >= now && c.list[len(c.list)-1].at <= t {
			if f := c.foldFor(b); f.by < math.MaxInt64/2 {
				if b.full < f.from || b.full == f.from && b.frac < f.fromFrac {
					b.full, b.frac = f.from, f.fromFrac
				}
				b.move(f.by, f.byFrac)
				s.loose = s.loose || s.strict
				i = place{i.chunk + 1, 0}
				continue
			}
		}
		s.take(max(now, e.at), e.cost, todo)
		i = todo.next(i)
	}
	return i
}
