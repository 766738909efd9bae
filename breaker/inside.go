package breaker

import (
	"math"
	"time"
	_ "unsafe" // for go:linkname
)

// The functions of this file, and report, are what the Transport needs beyond the exported
// methods: it queues requests before a half-open breaker, and lets the load return
// step by step behind one that has closed. They are exported to this module only,
// by internal/inside, which links to them by name and has a test that compares the
// signatures.

// allowance returns how many calls should be in flight at once: none when open,
// Probes when half-open. Take enforces both. After the breaker has closed by its
// probes, it is Probes at first and doubles with each success until it is
// math.MaxInt, which is no bound: this one the caller enforces. It is one atomic
// read.
//
//go:linkname allowance
func allowance(b *Breaker) int { return int(b.allowed.Load()) }

// room returns how many calls of Take would succeed now: math.MaxInt when closed,
// and else the number of further probes. It takes nothing.
//
//go:linkname room
func room(b *Breaker, now time.Time) int {
	if b.Closed() {
		return math.MaxInt
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now = b.clockLocked(now)
	switch {
	case b.state == Closed:
		return math.MaxInt
	case b.state == HalfOpen:
		return b.probes.room(b.placesLocked(), now)
	case b.until.After(now):
		return 0
	}
	return b.config.Probes
}

// well reports whether one more success would change nothing, so that it need not
// be recorded: closed, with no failure that still counts, no allowance that binds,
// and no Rate. It is one atomic read.
//
//go:linkname well
func well(b *Breaker) bool { return b.word.Load()&(stateBits|busyBit) == uint64(Closed) }

// clean reports whether the breaker behaves from now on as a new one would, so
// that it can be dropped and created anew: closed, with no failure and no opening
// that still counts. Results of calls in flight are not considered.
//
//go:linkname clean
func clean(b *Breaker, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now = b.clockLocked(now)
	return b.state == Closed &&
		b.allowed.Load() == math.MaxInt &&
		b.backlog.owed == 0 &&
		(b.config.Rate == 0 || b.recorder == nil || now.Sub(b.last) >= b.config.Within) &&
		!b.asked.After(now) &&
		!b.growsLocked(now)
}

// probeTimeout returns Config.ProbeTimeout, or its default.
//
//go:linkname probeTimeout
func probeTimeout(b *Breaker) time.Duration { return b.config.ProbeTimeout }
