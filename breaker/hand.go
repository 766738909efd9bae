package breaker

import (
	"math"
	"time"
)

// Fail counts a failure of which no ticket tells, such as one found in a body
// that had begun well. When closed it counts as any other; when half-open it
// opens the breaker. When open it is not counted, but a retryAfter longer than
// what is left is waited for. Zero or less: the service did not ask to be left
// alone.
func (b *Breaker) Fail(err error, retryAfter time.Duration, now time.Time) {
	b.fail(err, retryAfter, now)
	b.Tell()
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

// Trip opens the breaker for as long as any other opening would, or for
// retryAfter where that is longer. Open already, it is open for that long from
// now at least. Cause returns err, which may be nil.
func (b *Breaker) Trip(err error, retryAfter time.Duration, now time.Time) {
	b.trip(err, retryAfter, now)
	b.Tell()
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

// Close closes the breaker and makes it as a new one: with an empty window, with
// OpenFor as it was at first, and with no bound on what is in flight. The
// results of calls under way count for nothing.
func (b *Breaker) Close(now time.Time) {
	b.close(now)
	b.Tell()
}

func (b *Breaker) close(now time.Time) {
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
