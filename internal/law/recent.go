package law

import "slices"

// Recent is when the latest requests started that have succeeded, for the restart
// after a pause where no limit says how fast that may be. The zero Recent has none.
//
// While they are few, each instant is remembered, in the order in which they were
// added. Beyond that the starts of one slice of time count as of one instant, and each
// slice has its place, in whatever order responses come.
type Recent struct {
	ring   []Entry // the oldest to be added first, from next on; or sliced
	next   int
	newest Time
}

const (
	// mostRecent bounds how many instants are remembered one by one.
	mostRecent = 1024
	// recentSlices is how many slices are remembered, which is for 2 s.
	recentSlices = 2 * mostRecent
	// sliceBits makes a slice about 1 ms.
	sliceBits = 20
	// rare is after what time the place of a start is used again, so that little is
	// remembered where little happens.
	rare = 60 * second
)

func (r *Recent) sliced() bool { return len(r.ring) == recentSlices }

// Add has one that started at t, which may be before those that were added earlier.
func (r *Recent) Add(t Time) {
	n := len(r.ring)
	switch {
	case r.sliced():
		r.count(Entry{t, 1})
	case n > 0 && r.ring[(r.next+n-1)%n].At == t:
		r.ring[(r.next+n-1)%n].Cost++
	case n > 0 && r.ring[r.next].At < subSat(t, rare):
		r.ring[r.next] = Entry{t, 1}
		r.next = (r.next + 1) % n
	case n < mostRecent:
		r.ring = slices.Insert(r.ring, r.next, Entry{t, 1})
		if n > 0 {
			r.next = (r.next + 1) % (n + 1)
		}
	default:
		all := r.ring
		r.ring, r.next, r.newest = make([]Entry, recentSlices), 0, -Never
		for i := range r.ring {
			r.ring[i].At = -Never
		}
		for _, e := range all {
			r.count(e)
		}
		r.count(Entry{t, 1})
	}
}

// count adds e to its slice, unless that is forgotten.
func (r *Recent) count(e Entry) {
	s := &r.ring[e.At>>sliceBits&(recentSlices-1)]
	switch was, is := s.At>>sliceBits, e.At>>sliceBits; {
	case was == is:
		s.Cost = addSat(s.Cost, e.Cost)
	case was < is:
		*s = e
	}
	r.newest = max(r.newest, e.At)
}

// Before returns how many started in the second that ends at t; where that is
// forgotten, in the first second that is not.
func (r *Recent) Before(t Time) (n int64) {
	if r.sliced() {
		t = max(t, r.newest-(recentSlices-1)<<sliceBits+second)
	}
	for _, e := range r.ring {
		if e.At > subSat(t, second) && e.At <= t {
			n = addSat(n, e.Cost)
		}
	}
	return n
}
