package law

import "slices"

// Recent is when the latest requests started that have succeeded, for the restart
// after a pause where no limit says how fast that may be. The zero Recent has none.
type Recent struct {
	ring []Entry // the oldest to be added first, from next on
	next int
}

// mostRecent bounds how many instants are remembered. Where requests start at more of
// them in a second, those within a slice of it count as of one instant.
const mostRecent = 1024

// rare is after what time the place of a start is used again, so that little is
// remembered where little happens.
const rare = 60 * second

// Add has one that started at t, which may be before those that were added earlier.
func (r *Recent) Add(t Time) {
	n := len(r.ring)
	if n > 0 {
		last := &r.ring[(r.next+n-1)%n]
		if d := t - last.At; d == 0 || n == mostRecent && d > 0 && d < second/mostRecent {
			last.Cost++
			return
		}
	}
	if n == mostRecent || n > 0 && r.ring[r.next].At < subSat(t, rare) {
		r.ring[r.next] = Entry{t, 1}
		r.next = (r.next + 1) % n
		return
	}
	r.ring = slices.Insert(r.ring, r.next, Entry{t, 1})
	if n > 0 {
		r.next = (r.next + 1) % (n + 1)
	}
}

// Before returns how many started in the second that ends at t; where that is
// forgotten, in the first second that is not.
func (r *Recent) Before(t Time) (n int64) {
	if len(r.ring) == mostRecent {
		oldest := slices.MinFunc(r.ring, func(a, b Entry) int { return int(max(-1, min(1, a.At-b.At))) })
		if oldest.At > t {
			t = addSat(oldest.At, second-1)
		}
	}
	for _, e := range r.ring {
		if e.At > subSat(t, second) && e.At <= t {
			n = addSat(n, e.Cost)
		}
	}
	return n
}
