package law

import (
	"math"
	"sync/atomic"
)

// Starts is a Window for the times when no request waits. Each of its units is a
// slot that has the instant of its last start, and it starts again one period
// later or more: so no period ever holds more than n starts, whichever caller takes
// which slot. Slots are taken in turn, each by one compare-and-swap. So the first that
// is not taken in this lap has the oldest start, and while it has to wait all
// others have to.
//
// Why it is right without a lock. A slot is taken by a compare-and-swap from the very
// value that was found at least a period old: two callers that find the same slot cannot
// both take it, and none takes it by what it was before. A refusal reads next again:
// where that has not moved, the slot that was found too young still has the oldest start,
// so that no other slot has room either; where it has, the caller takes the lock. And
// hold loses no start: it freezes the first slot that is not taken, by a
// compare-and-swap too. All slots before that one have their starts by then, and a caller
// that has found it free fails, since its value is another now.
//
// A clock reading older than the latest start counts as that.
//
// A slot has room for the last bits of its lap alone. A caller so many laps
// behind that they mislead it finds a start later than its own reading of the
// clock, and so takes nothing; and since next has moved on, it refuses nothing.
type Starts struct {
	// next is a lap and a slot in it: all slots before are taken in this lap, and
	// a few after may be. Or it is held.
	next  atomic.Int64
	since atomic.Int64 // the latest reading under the lock
	_     [48]byte     // the rest is only read

	base  Time // what slots count from
	until Time // no reading after it fits into a slot
	per   int64
	slots []atomic.Int64 // start<<lapBits | lap

	lap   int64 // while held: no slot is of this lap, or of the one before
	calls int64 // while held: how often release was called
}

const (
	lapBits  = 8
	lapMask  = 1<<lapBits - 1
	slotBits = 17                       // of next: enough for exact
	farthest = 1<<(63-lapBits) - 1      // of a start
	never    = -farthest                // the start of a unit that has had none
	frozen   = math.MinInt64 >> lapBits // of a slot that no caller takes
	stride   = 4                        // next moves on by so many slots
)

// newStarts returns a held Starts for w, or nil where w does not remember every
// start, or so far back that it does not fit into a slot.
func newStarts(w *window, now Time) *Starts {
	if w.strict || w.n == 0 || w.n > exact || w.per > farthest/2 {
		return nil
	}
	s := &Starts{base: now, until: addSat(now, farthest), per: w.per, lap: 1}
	s.next.Store(held)
	return s
}

// Try is Quick.Try.
func (s *Starts) Try(now Time, cost int64) (took, ok bool) {
	return s.try(s.next.Load(), now, cost)
}

func (s *Starts) try(next int64, now Time, cost int64) (took, ok bool) {
	if next == held || cost != 1 || now > s.until {
		return false, false
	}
	slots, lap, k := s.slots, next>>slotBits, int(next&(1<<slotBits-1))
	before := k - 1
	if k == 0 {
		before = len(slots) - 1
	}
	last := slots[before].Load()
	t := max(now, s.since.Load()) - s.base
	for {
		v := slots[k].Load()
		switch (lap - v) & lapMask {
		case 0: // taken
			last = v
			if k++; k == len(slots) {
				k, lap = 0, lap+1
			}
		case 1:
			t = max(t, last>>lapBits)
			if v>>lapBits == frozen {
				return false, false
			}
			if v>>lapBits > t-s.per {
				return false, s.next.Load() == next
			}
			if !slots[k].CompareAndSwap(v, t<<lapBits|lap&lapMask) {
				continue
			}
			if k++; k == len(slots) {
				s.next.CompareAndSwap(next, (lap+1)<<slotBits)
			} else if k%stride == 0 {
				s.next.CompareAndSwap(next, lap<<slotBits|int64(k))
			}
			return true, true
		default: // others were faster by a lap
			return false, false
		}
	}
}

// hold is Quick.Hold.
func (s *Starts) hold(w *window, now Time) Time {
	if s.next.Load() == held {
		return now
	}
	next := s.next.Swap(held)
	lap, k := next>>slotBits, int(next&(1<<slotBits-1))
	var v int64
	for { // no caller passes a frozen slot
		if v = s.slots[k].Load(); (lap-v)&lapMask != 1 {
			if k++; k == len(s.slots) {
				k, lap = 0, lap+1
			}
		} else if s.slots[k].CompareAndSwap(v, frozen<<lapBits|v&lapMask) {
			break
		}
	}
	w.head, w.len, w.sum = 0, 0, 0
	for range s.slots {
		if at := s.base + v>>lapBits; at > subSat(now, s.per) {
			w.add(at, 1)
		}
		if k++; k == len(s.slots) {
			k = 0
		}
		v = s.slots[k].Load()
	}
	s.lap, s.calls = lap+2, 0
	return max(now, w.last())
}

// release is Quick.Release. A window in debt stays held, and since it takes long
// to fill the slots and to read them again, so does one that is held often.
func (s *Starts) release(w *window, now Time) bool {
	if now > s.until {
		return false
	}
	w.expire(now)
	if s.calls++; s.calls <= w.n/2 || w.sum > w.n || w.last() > s.until {
		return true
	}
	if s.slots == nil {
		s.slots = make([]atomic.Int64, w.n)
	}
	k := 0
	fill := func(at, n int64) {
		for range n {
			s.slots[k].Store(at<<lapBits | (s.lap-1)&lapMask)
			k++
		}
	}
	fill(never, w.n-w.sum)
	for i := range w.len {
		fill(w.at(i).At-s.base, w.at(i).Cost)
	}
	s.since.Store(now)
	s.next.Store(s.lap << slotBits)
	return true
}
