package law

import (
	"math"
	"math/bits"
)

// rate is one unit per per/n nanoseconds, exactly.
type rate struct{ n, per int64 }

// A moment is an instant or a length of time that need not be whole nanoseconds:
// frac is in n-ths of one, n being that of the rate that it belongs to. With
// 1001 units per millisecond a unit takes 999.000999… ns, and a thousandth of a
// nanosecond lost with each would let one unit too many through each second.
type moment struct{ ns, frac int64 }

func (m moment) after(o moment) bool { return m.ns > o.ns || m.ns == o.ns && m.frac > o.frac }

func (m moment) neg() moment { return moment{-m.ns, -m.frac} }

// ceil returns the first whole nanosecond that is not before m.
func (m moment) ceil() Time {
	if m.frac > 0 {
		return addSat(m.ns, 1)
	}
	return m.ns
}

// add returns m moved by d, saturating.
func (r rate) add(m, d moment) moment {
	m = moment{addSat(m.ns, d.ns), m.frac + d.frac}
	switch {
	case m.frac < 0:
		return moment{addSat(m.ns, -1), m.frac + r.n}
	case m.frac >= r.n:
		return moment{addSat(m.ns, 1), m.frac - r.n}
	}
	return m
}

// span returns the time that c units take, saturating: mulDiv(c, r.per, 0, r.n), which
// would be too long for the compiler to put it in its callers' place.
func (r rate) span(c int64) moment {
	hi, lo := bits.Mul64(uint64(c), uint64(r.per))
	if hi >= uint64(r.n) {
		return moment{Never, 0}
	}
	ns, frac := bits.Div64(hi, lo, uint64(r.n))
	if ns > math.MaxInt64 {
		return moment{Never, 0}
	}
	return moment{int64(ns), int64(frac)}
}

// units returns how many units ns nanoseconds give, rounded down, saturating. ns is
// not negative.
func (r rate) units(ns int64) int64 {
	n, _ := mulDiv(ns, r.n, 0, r.per)
	return n
}

// ceilUnits returns how many units d takes, rounded up, saturating. d is not
// negative.
func (r rate) ceilUnits(d moment) int64 {
	n, rest := mulDiv(d.ns, r.n, d.frac, r.per)
	if rest > 0 {
		return addSat(n, 1)
	}
	return n
}

// before reports whether r's interval is the shorter.
func (r rate) before(o rate) bool {
	h1, l1 := bits.Mul64(uint64(r.per), uint64(o.n))
	h2, l2 := bits.Mul64(uint64(o.per), uint64(r.n))
	return h1 < h2 || h1 == h2 && l1 < l2
}

// mulDiv returns (a*b+more)/c and the rest of it, exactly however large the
// product is, and math.MaxInt64 without a rest where the quotient is larger, or c
// is zero. No argument is negative.
func mulDiv(a, b, more, c int64) (q, rest int64) {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	lo, carry := bits.Add64(lo, uint64(more), 0)
	if hi += carry; hi >= uint64(c) {
		return math.MaxInt64, 0
	}
	quo, rem := bits.Div64(hi, lo, uint64(c))
	if quo > math.MaxInt64 {
		return math.MaxInt64, 0
	}
	return int64(quo), int64(rem)
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func addSat(a, b int64) int64 {
	c := a + b
	switch {
	case a > 0 && b > 0 && c < 0:
		return math.MaxInt64
	case a < 0 && b < 0 && c >= 0:
		return math.MinInt64
	}
	return c
}

func subSat(a, b int64) int64 {
	if b == math.MinInt64 {
		return addSat(addSat(a, math.MaxInt64), 1)
	}
	return addSat(a, -b)
}

// earlier returns the instant that lies d before t. An instant that stands for never,
// or for always, stays.
func earlier(t Time, d int64) Time {
	if t == Never || t <= -Never {
		return t
	}
	return subSat(t, d)
}
