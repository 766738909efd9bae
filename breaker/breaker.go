package breaker

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// A Breaker is a circuit breaker for one service. Create it with New. It is safe
// for concurrent use.
//
// Most callers need only Take and Record. Record, Fail, Trip and Reset may call
// the callback given to New. The other methods never do, so that a lock may be
// held around them.
type Breaker struct {
	// word is what the fast paths need to know, in one atomic read: see
	// publishLocked. Written with mu held.
	word atomic.Uint64
	// allowed is what allowance returns. Written with mu held.
	allowed atomic.Int64

	config   Config       // with its defaults in; read-only after New
	onChange func(Change) // may be nil; read-only after New

	mu       sync.Mutex // guards following fields; innermost, and never held while user code runs
	recorder recorder   // nil until the first result that matters, and after Reset
	decided  *State     // the state that the recorder went to, until the breaker follows it
	backlog  backlog
	state    State
	gen      uint64    // the number of states so far, this one included
	last     time.Time // the latest time given
	probes   probes    // half-open: those in flight
	good     int       // half-open: their successes so far

	failure  error         // the last one, while closed or half-open
	asked    time.Time     // the latest end of a failure's RetryAfter
	cause    error         // the failure that opened it, until it closes
	until    time.Time     // open: when it may be probed
	delay    time.Duration // how long the last opening was to be by itself; 0: no opening to grow from
	closedAt time.Time     // when it last closed, where delay is not 0

	changes   []Change // not reported yet
	reporting bool     // a goroutine is reporting them
}

// New returns a closed breaker. Its error is that of c.Validate.
//
// onChange, unless nil, is called once for every change of state, in order and
// never concurrently, by the goroutine whose Record, Fail, Trip or Reset finds
// the change unreported. It may call any method of the breaker. If it panics, so
// does the method that called it, after its own work is done and the remaining
// changes have been reported.
func New(c Config, onChange func(Change)) (*Breaker, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	b := &Breaker{config: c, onChange: onChange, backlog: newBacklog(c), gen: 1}
	b.allowed.Store(math.MaxInt)
	b.publishLocked() // no other goroutine has it yet
	return b, nil
}

// Closed reports whether the breaker is closed. It is one atomic read.
func (b *Breaker) Closed() bool { return b.word.Load()&stateBits == uint64(Closed) }

// State returns the state. It is one atomic read. An open breaker stays so
// until the first Take after its time is up.
func (b *Breaker) State() State { return State(b.word.Load() & stateBits) }

// Delay returns how long from now until Take can succeed: zero if it would
// succeed now, the rest of the time when open, and when half-open the time until
// a probe times out, should none have its result before. It takes nothing.
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
		delay = b.probes.wait(b.placesLocked(), now)
	}
	return delay
}

// Cause returns the failure that opened the breaker: the Err of the last failed
// result before it opened. It is nil when the breaker is closed, or that Err was
// nil.
func (b *Breaker) Cause() error {
	if b.Closed() {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.cause
}

// Take reports whether a call may be made now, and returns a ticket for it. A
// closed breaker permits every call, at the cost of one atomic read. An open
// breaker whose time is up becomes half-open. A half-open breaker permits a call as
// a probe while fewer than Probes are in flight.
//
// Pass the ticket to Record when the call has ended, or to Return if it was not
// made. A change to half-open is reported by the next Record.
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
		probe, ok := b.probes.take(b.placesLocked(), now, now.Add(b.config.ProbeTimeout))
		if !ok {
			return Ticket{}, false
		}
		return Ticket{gen: b.gen, probe: probe}, true
	default:
		return Ticket{}, false
	}
}

// unlock publishes what was changed, and unlocks the mutex. A method that changes
// nothing need not call it.
func (b *Breaker) unlock() {
	b.publishLocked()
	b.mu.Unlock()
}

// placesLocked returns how many probes may be in flight: as many successes as
// are still needed.
func (b *Breaker) placesLocked() int { return max(1, b.config.Probes-b.good) }

// Return returns the ticket of a call that was not made. It counts for nothing,
// and makes room for another probe if it was one.
func (b *Breaker) Return(t Ticket) {
	if t.probe == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state == HalfOpen && b.gen == t.gen {
		b.probes.end(t.probe)
	}
}

// Record counts the result of the call that t permitted. A result counts for
// nothing once the breaker has left the state in which t was taken, and a probe
// counts only once.
//
// A success that cannot change anything costs one atomic read.
func (b *Breaker) Record(t Ticket, r Result, now time.Time) {
	if r.Outcome == Success && well(b) {
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
	report(b)
}

// count counts the result if its ticket is of this state.
func (b *Breaker) count(t Ticket, r Result, now time.Time) {
	b.mu.Lock()
	defer b.unlock()
	now = b.advanceLocked(now)
	if t.gen != b.gen || b.state == HalfOpen && !b.probes.end(t.probe) {
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

// recorderLocked returns the recorder, created when it is first needed: most
// services never fail, and there may be very many.
func (b *Breaker) recorderLocked() recorder {
	if b.recorder == nil {
		b.recorder = newRecorder(b.config, func(s State) { b.decided = &s })
	}
	return b.recorder
}

// clockLocked returns now, or the latest time given where that is later.
func (b *Breaker) clockLocked(now time.Time) time.Time { return later(b.last, now) }

// advanceLocked returns the same, and remembers it as the latest.
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
