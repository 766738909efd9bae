package law

import (
	"math"
	"sync/atomic"
)

// Quick is a bucket in one atomic word, or a window in Starts, for the times when
// no request waits: a start then takes no lock. A caller that needs the state itself
// holds the Quick first, under the lock that guards the state; from then on Try sends
// all callers to that lock, until Release.
//
// Why it is right without a lock. Try computes the next word from the one that it has
// read, and stores it only if the word is still that one: between the two no other start
// has come. Hold puts held in its place in the same way, so that each start is either in
// the word that Hold has read, and thereby in the state, or fails and takes the lock.
//
// The word is the instant at which the bucket is full, in the exact ticks in
// which its interval is whole, since base. A clock reading older than the last
// one only makes Try stricter, so that the clock is not read again when another
// caller was faster.
type Quick struct {
	word atomic.Int64
	_    [56]byte // the rest is only read: it must not share the word's cache line

	Starts *Starts // of a Window, which needs nothing else here; nil for a Bucket

	base  Time
	until Time  // no reading after it fits into the ticks
	scale int64 // ticks per nanosecond
	step  int64 // ticks per unit
	span  int64 // ticks from empty to full
	first int64 // ticks of t's nanosecond before those from which a start at t counts
	burst int64
	grain int64 // n-ths of a nanosecond per tick
}

const held = math.MinInt64

// NewQuick returns a held Quick for st, or nil where st is neither a bucket nor a
// window, or one whose numbers are too large for a word.
func NewQuick(st State, now Time) *Quick {
	if w, ok := st.(*window); ok {
		if s := newStarts(w, now); s != nil {
			return &Quick{Starts: s}
		}
		return nil
	}
	b, ok := st.(*bucket)
	if !ok || b.n == 0 {
		return nil
	}
	g := gcd(b.per, b.n)
	q := &Quick{base: now, scale: b.n / g, step: b.per / g, burst: b.burst, grain: g}
	const most = 1 << 61
	if q.step > most/b.burst {
		return nil
	}
	q.span = q.step * b.burst
	q.until = addSat(now, most/q.scale)
	if most/q.scale < 1_000_000_000 { // not worth it for less than a second
		return nil
	}
	if b.grain > 0 {
		q.first = q.scale - 1
	}
	q.word.Store(held)
	return q
}

// Try takes cost units at now if they fit, and reports whether it did. Where it
// cannot decide, ok is false, and the holder of the lock does. It is for a Bucket:
// Starts has its own.
func (q *Quick) Try(now Time, cost int64) (took, ok bool) {
	for {
		w := q.word.Load()
		if w == held || now > q.until {
			return false, false
		}
		if cost > q.burst {
			return false, true
		}
		t := (now - q.base) * q.scale
		full := max(w, t-q.first) + cost*q.step
		if full-q.span > t {
			return false, true
		}
		if q.word.CompareAndSwap(w, full) {
			return true, true
		}
	}
}

// Hold brings st up to date, and keeps Try away. It returns now, or the latest
// start if that is later.
func (q *Quick) Hold(st State, now Time) Time {
	if q.Starts != nil {
		return q.Starts.hold(st.(*window), now)
	}
	w := q.word.Load()
	for w != held && !q.word.CompareAndSwap(w, held) {
		w = q.word.Load()
	}
	if w == held {
		return now
	}
	b := st.(*bucket)
	t := w / q.scale
	if w%q.scale < 0 {
		t--
	}
	b.full = moment{q.base + t, (w - t*q.scale) * q.grain}
	b.seenFull(now)
	return now
}

// Release lets Try in again, soon at least, and reports whether it could; a new
// Quick can where this one's ticks have run out.
func (q *Quick) Release(st State, now Time) bool {
	if q.Starts != nil {
		return q.Starts.release(st.(*window), now)
	}
	b := st.(*bucket)
	ns := subSat(b.full.ns, q.base)
	if now > q.until || ns > q.until-q.base || ns < q.base-q.until {
		return false
	}
	q.word.Store(ns*q.scale + b.full.frac/q.grain)
	return true
}
