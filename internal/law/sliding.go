package law

import (
	"math"
	"math/bits"
)

// sliding keeps two counters: cur since start, prev in the period before. What
// counts at t is cur plus prev weighted by the part of the previous window that
// lies within the last period. Windows begin with the first use and keep their
// rhythm from then on: units given back may then free others, but never make
// one wait longer.
type sliding struct {
	n, per    int64
	used      bool
	start     Time
	cur, prev int64
}

// begin makes t the first use, if it is.
func (s *sliding) begin(t Time) {
	if !s.used {
		s.used, s.start = true, t
	}
}

// roll moves on to the window that holds t.
func (s *sliding) roll(t Time) {
	switch d := subSat(t, s.start); {
	case d < s.per:
		return
	case subSat(d, s.per) < s.per:
		s.start, s.prev, s.cur = s.start+s.per, s.cur, 0
	default:
		s.start, s.prev, s.cur = t-d%s.per, 0, 0
	}
}

func (s *sliding) Earliest(_, t Time, cost int64) (Time, bool) {
	if cost > s.n {
		return Never, false
	}
	for c := *s; ; t = c.start + c.per {
		c.roll(t)
		t = max(t, c.start)
		room := subSat(c.n-cost, c.cur)
		if room < 0 {
			continue
		}
		if c.prev <= room {
			return t, false
		}
		// prev x (per-elapsed) <= room x per holds from here on.
		hi, lo := bits.Mul64(uint64(room), uint64(c.per))
		q, _ := bits.Div64(hi, lo, uint64(c.prev)) // room < prev, so that it fits
		if at := c.start + c.per - int64(q); at < c.start+c.per {
			return max(t, at), false
		}
	}
}

func (s *sliding) Take(t Time, cost int64) bool {
	s.begin(t)
	s.roll(t)
	s.cur = addSat(s.cur, cost)
	return false
}

func (s *sliding) Answered(Time, int64) {}

func (s *sliding) Give(taken Time, cost int64, _ bool) {
	switch {
	case taken >= s.start:
		s.cur = max(0, s.cur-cost)
	case taken >= subSat(s.start, s.per):
		s.prev = max(0, s.prev-cost)
	}
}

func (s *sliding) Spend(now Time, n int64) {
	if n >= 0 {
		s.Take(now, n)
		return
	}
	s.roll(now)
	back := -max(n, -math.MaxInt64)
	old := min(s.prev, back)
	s.prev -= old
	s.cur = max(0, s.cur-(back-old))
}

func (s *sliding) Remaining(now Time) int64 {
	s.roll(now)
	past := uint64(s.per - min(s.per, max(0, subSat(now, s.start))))
	hi, lo := bits.Mul64(uint64(s.prev), past)
	lo, carry := bits.Add64(lo, uint64(s.per)-1, 0)
	weighted, _ := bits.Div64(hi+carry, lo, uint64(s.per))
	return subSat(subSat(s.n, s.cur), int64(weighted))
}

func (s *sliding) Recovered(now Time) bool {
	s.roll(now)
	return s.cur == 0 && s.prev == 0
}

func (s *sliding) history(now Time) []Entry {
	s.roll(now)
	var h []Entry
	if left := s.n - s.cur - s.Remaining(now); left > 0 {
		h = append(h, Entry{s.start, left})
	}
	if s.cur > 0 {
		h = append(h, Entry{max(s.start, now), s.cur})
	}
	return h
}

// simulate is a use: the windows must not move with whoever starts first.
func (s *sliding) simulate(now Time) sim {
	s.begin(now)
	return sim{kind: simSliding, sliding: *s}
}
