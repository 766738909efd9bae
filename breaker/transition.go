package breaker

import (
	"math"
	"time"
)

// enough is the number of calls in flight from which on the allowance no longer
// binds: more than one address has ports for.
const enough = 1 << 16

// followLocked goes where the recorder went, if it went anywhere.
func (b *Breaker) followLocked(now time.Time) {
	if b.decided == nil {
		return
	}
	to := *b.decided
	b.decided = nil

	change := Change{From: b.state, To: to, At: now}
	switch to {
	case Open:
		b.openLocked(now)
		change.Delay, change.Err = b.until.Sub(now), b.cause
	case HalfOpen:
		b.allowed.Store(int64(b.config.Probes))
	case Closed:
		b.closedAt = now
		b.cause = nil // lets go of it
		b.allowed.Store(int64(b.config.Probes))
	}
	b.state = to
	b.enterLocked()
	b.noteLocked(change)
}

// openLocked computes until when it is open.
func (b *Breaker) openLocked(now time.Time) {
	switch {
	case !b.growsLocked(now):
		b.delay = b.config.OpenFor
	case b.delay > b.config.MaxOpenFor/2:
		b.delay = b.config.MaxOpenFor
	default:
		b.delay *= 2
	}
	b.until = later(now.Add(b.delay), b.asked)
	b.cause = b.failure
	b.allowed.Store(0)
}

// growsLocked reports whether an opening at now would be a repeated one.
func (b *Breaker) growsLocked(now time.Time) bool {
	return b.delay > 0 && (b.state != Closed || now.Sub(b.closedAt) < b.config.MaxOpenFor)
}

// enterLocked begins a generation: whatever was counted, and every call in
// flight, is of an older one.
func (b *Breaker) enterLocked() {
	b.gen++
	b.backlog.clear()
	b.probes.clear()
	b.good = 0
	b.failure = nil // lets go of it
}

// rampsLocked reports whether the allowance binds a closed breaker.
func (b *Breaker) rampsLocked() bool { return b.allowed.Load() != math.MaxInt }

func (b *Breaker) growAllowanceLocked() {
	switch n := b.allowed.Load(); {
	case n < enough/2:
		b.allowed.Store(2 * n)
	default:
		b.allowed.Store(math.MaxInt)
	}
}
