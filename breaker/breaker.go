package breaker

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// A Breaker is a circuit breaker for one service. Make it with New. Goroutines
// may share it.
//
// Take and Record are what most need. Take, Return and everything that only
// asks never call back, so that a lock may be held around them; Record, Fail,
// Trip, Close and Tell may call the callback given to New.
type Breaker struct {
	// word is what the fast paths need to know, in one atomic read: see
	// publishLocked. Written with mu held.
	word atomic.Uint64
	// allowed is what Allowance returns. Written with mu held.
	allowed atomic.Int64

	config   Config       // with its defaults in; read-only after New
	onChange func(Change) // may be nil; read-only after New

	mu       sync.Mutex // guards following fields; innermost, held while nothing of the user's runs
	recorder recorder   // nil until the first result that matters, and as after Close
	decided  *State     // the state that the recorder went to, until we have followed it
	backlog  backlog
	state    State
	gen      uint64    // the number of states so far, this one included
	last     time.Time // the latest time given
	gate     gate      // half-open: the probes
	good     int       // half-open: their successes so far

	failure  error         // the last one, while closed or half-open
	asked    time.Time     // until when failures asked to be left alone
	cause    error         // the failure that opened it, until it closes
	until    time.Time     // open: when it may be probed
	delay    time.Duration // how long the last opening was to be by itself; 0: no opening to grow from
	closedAt time.Time     // when it last closed, where delay is not 0

	changes []Change // not told yet
	telling bool     // somebody tells them
}

// New returns a closed breaker. Its error is that of c.Validate.
//
// onChange, unless nil, is told of every change of state: one after the other
// in their order, by the goroutine whose Record, Fail, Trip, Close or Tell found
// it untold, with no lock of the breaker held. It may use the breaker as it
// likes. When it panics, so does the call that told it, after its own work is
// done and after the rest has been told.
func New(c Config, onChange func(Change)) (*Breaker, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	b := &Breaker{config: c, onChange: onChange, backlog: newBacklog(c), gen: 1}
	b.allowed.Store(math.MaxInt)
	b.publishLocked() // nobody else has it yet
	return b, nil
}

// Closed reports whether the breaker is closed. It is one atomic read.
func (b *Breaker) Closed() bool { return b.word.Load()&stateBits == uint64(Closed) }

// State returns the state. It is one atomic read. An open breaker stays so
// until the first Take after its time is up.
func (b *Breaker) State() State { return State(b.word.Load() & stateBits) }

// Delay returns how long from now the next Take can be granted: zero when it
// would be granted now, the rest of the time when open, and when half-open the
// time until a lease ends, should no probe have its result before. It takes
// nothing.
func (b *Breaker) Delay(now time.Time) time.Duration {
	if b.Closed() {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now = b.clockLocked(now)
	var delay time.Duration
	switch b.state {
	case Open:
		delay = max(0, b.until.Sub(now))
	case HalfOpen:
		delay = b.gate.wait(b.placesLocked(), now)
	}
	return delay
}

// Room returns how many calls of Take would be granted now: math.MaxInt when
// closed, and else the free places for probes. It takes nothing.
func (b *Breaker) Room(now time.Time) int {
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
		return b.gate.room(b.placesLocked(), now)
	case b.until.After(now):
		return 0
	}
	return b.config.Probes
}

// Lease returns Config.Lease, or the default in its place.
func (b *Breaker) Lease() time.Duration { return b.config.Lease }

// Cause returns the failure that opened the breaker: the Err of the last result
// that failed before. It is nil when closed, and where that Err was nil.
func (b *Breaker) Cause() error {
	if b.Closed() {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.cause
}

// Allowance returns how many calls should be in flight at once: none when open
// and Probes when half-open, both of which Take sees to. After it has closed by
// its probes it is Probes at first and doubles with each success until it is
// math.MaxInt, for it no longer binds; that is for the caller to see to. It is
// one atomic read.
func (b *Breaker) Allowance() int { return int(b.allowed.Load()) }

// Well reports whether one more success would change nothing, so that recording
// it can be left out: closed, with no failure that still counts, no Allowance
// that binds, and no Rate. It is one atomic read.
func (b *Breaker) Well() bool { return b.word.Load()&(stateBits|busyBit) == uint64(Closed) }

// Clean reports whether the breaker behaves from now on as a new one would, so
// that it can be dropped and made anew: closed, with no failure and no opening
// that still counts. Results of calls in flight are not considered.
func (b *Breaker) Clean(now time.Time) bool {
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

// Take asks whether a call may pass now. When closed it may, at the cost of one
// atomic read. When half-open it may as a probe, if there is a place for one. An
// open breaker whose time is up becomes half-open by it.
//
// The ticket is for Record, or for Return should the call not be made. Take
// never calls back: a caller who got a probe calls Tell once it holds no lock,
// or Record will tell.
func (b *Breaker) Take(now time.Time) (Ticket, bool) {
	if w := b.word.Load(); w&stateBits == uint64(Closed) {
		return Ticket{gen: w >> genShift}, true
	}
	return b.takeProbe(now)
}

func (b *Breaker) takeProbe(now time.Time) (Ticket, bool) {
	b.mu.Lock()
	defer b.unlock()
	now = b.advanceLocked(now)
	if b.state == Open && !b.until.After(now) {
		b.recorder.HalfOpen()
		b.followLocked(now)
	}
	switch b.state {
	case Closed:
		return Ticket{gen: b.gen}, true
	case HalfOpen:
		probe, ok := b.gate.take(b.placesLocked(), now, now.Add(b.config.Lease))
		if !ok {
			return Ticket{}, false
		}
		return Ticket{gen: b.gen, probe: probe}, true
	default:
		return Ticket{}, false
	}
}

// unlock publishes what was changed, and frees the mutex. Who changes nothing
// need not call it.
func (b *Breaker) unlock() {
	b.publishLocked()
	b.mu.Unlock()
}

// placesLocked returns how many probes may be in flight: as many successes as
// are still needed.
func (b *Breaker) placesLocked() int { return max(1, b.config.Probes-b.good) }

// Return gives a ticket back whose call was not made. It counts for nothing, and
// the place of a probe is free again. It never calls back.
func (b *Breaker) Return(t Ticket) {
	if t.probe == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state == HalfOpen && b.gen == t.gen {
		b.gate.giveBack(t.probe)
	}
}

// Record counts the result of the call that t let pass. A result that comes
// after the state of t has passed counts for nothing. Recorded a second time, a
// probe counts for nothing.
//
// A success that cannot change anything costs one atomic read.
func (b *Breaker) Record(t Ticket, r Result, now time.Time) {
	if r.Outcome == Success && b.Well() {
		return
	}
	b.record(t, r, now)
}

func (b *Breaker) record(t Ticket, r Result, now time.Time) {
	switch r.Outcome {
	case Success, Failure:
		b.count(t, r, now)
	default:
		b.Return(t)
	}
	b.Tell()
}

// count lets the result reach the recorder if its ticket is of this state.
func (b *Breaker) count(t Ticket, r Result, now time.Time) {
	b.mu.Lock()
	defer b.unlock()
	now = b.advanceLocked(now)
	if t.gen != b.gen || b.state == HalfOpen && !b.gate.giveBack(t.probe) {
		return
	}
	if r.Outcome == Success {
		b.succeedLocked(now)
	} else {
		b.failLocked(r.Err, r.RetryAfter, now)
	}
}

func (b *Breaker) succeedLocked(now time.Time) {
	if b.state == HalfOpen {
		b.good++
		b.recorderLocked().RecordSuccess()
	} else {
		b.growAllowanceLocked()
		if b.backlog.matters() {
			b.recorderLocked().RecordSuccess()
			b.backlog.succeeded()
		}
	}
	b.followLocked(now)
}

func (b *Breaker) failLocked(err error, retryAfter time.Duration, now time.Time) {
	b.failure = err
	b.asked = later(b.asked, now.Add(retryAfter))
	b.backlog.failed()
	b.recorderLocked().RecordFailure()
	b.followLocked(now)
}

// recorderLocked returns the recorder, made when it is first needed: most
// services never fail, and there may be very many.
func (b *Breaker) recorderLocked() recorder {
	if b.recorder == nil {
		b.recorder = newRecorder(b.config, func(s State) { b.decided = &s })
	}
	return b.recorder
}

// clockLocked returns the time that now counts as: never one before another.
func (b *Breaker) clockLocked(now time.Time) time.Time { return later(b.last, now) }

// advanceLocked returns the same, and keeps it as the latest.
func (b *Breaker) advanceLocked(now time.Time) time.Time {
	b.last = b.clockLocked(now)
	return b.last
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
