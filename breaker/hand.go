package breaker

import (
	"math"
	"time"
)

// Fail counts a failure that belongs to no ticket, such as one found late in a
// response body. It counts like any other when the breaker is closed, and opens
// it when half-open. When open it is not counted, but the breaker stays open for
// retryAfter from now where that is longer than what is left. A retryAfter of zero
// or less means none.
func (b *Breaker) Fail(err error, retryAfter time.Duration, now time.Time) {
	b.fail(err, retryAfter, now)
	report(b)
}

func (b *Breaker) fail(err error, retryAfter time.Duration, now time.Time) {
	b.mu.Lock()
	defer b.unlock()
	now = b.advanceLocked(now)
	if b.state == Open {
		b.until = later(b.until, now.Add(retryAfter))
		return
	}
	b.failLocked(err, retryAfter, now)
}

// Trip opens the breaker for as long as a failure would, or for retryAfter where
// that is longer. If it is open already, it stays open for at least that long
// from now. Cause returns err, which may be nil.
func (b *Breaker) Trip(err error, retryAfter time.Duration, now time.Time) {
	b.trip(err, retryAfter, now)
	report(b)
}

func (b *Breaker) trip(err error, retryAfter time.Duration, now time.Time) {
	b.mu.Lock()
	defer b.unlock()
	now = b.advanceLocked(now)
	if b.state == Open {
		b.cause = err
		b.until = later(b.until, now.Add(max(b.delay, retryAfter)))
		return
	}
	b.failure = err
	b.asked = later(b.asked, now.Add(retryAfter))
	b.recorderLocked().Open()
	b.followLocked(now)
}

// Reset closes the breaker and makes it like a new one: without results, and with
// OpenFor as configured. The results of calls in flight count for nothing.
func (b *Breaker) Reset(now time.Time) {
	b.reset(now)
	report(b)
}

func (b *Breaker) reset(now time.Time) {
	b.mu.Lock()
	defer b.unlock()
	now = b.advanceLocked(now)
	from := b.state
	b.state = Closed
	b.enterLocked()
	b.recorder = nil
	b.asked, b.cause, b.delay = time.Time{}, nil, 0
	b.allowed.Store(math.MaxInt)
	if from != Closed {
		b.noteLocked(Change{From: from, To: Closed, At: now})
	}
}
