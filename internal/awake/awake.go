// Package awake is a clock that goes on while the machine sleeps.
//
// Go's monotonic clock stands still while a machine is suspended on Linux and
// macOS: a pause of two hours would last two hours more when a laptop wakes. Where
// the system has a clock that counts that time too, Elapsed and Now add it. On other
// systems nothing is added: relative times are then late, but never early. The wall
// clock is not used, so that setting it changes nothing.
package awake

import (
	"sync/atomic"
	"time"
)

// origin is the instant that Elapsed counts from. Only differences to it are used, because
// in a synctest bubble it lies in the future.
var origin = time.Now()

// often is how much time of the monotonic clock may pass between two readings of how long
// the machine has slept. A program is halted for longer than that before a machine falls
// asleep and after it wakes, so that it begins nothing between waking and a reading.
const often = time.Millisecond

// least is the shortest sleep that counts. A shorter one may be the time between the
// readings of two clocks.
const least = 100 * time.Millisecond

var (
	looked atomic.Int64 // the latest reading, by the monotonic clock since origin
	slept  atomic.Int64 // the known sleep since origin; it only grows
)

// The pretended state of the clocks, for tests.
var (
	pretended atomic.Int64 // the time that the machine sleeps
	set       atomic.Int64 // by how much the wall clock is ahead of the system's
)

// Pretend is for tests: from now on it seems as if the machine had just slept for d, and
// the wall clock had gone on. The wall clock is the system's again when t ends.
func Pretend(t Test, d time.Duration) {
	pretended.Add(int64(d))
	PretendSet(t, d)
	looked.Store(-1 << 62)
}

// PretendSet is for tests: from now on it seems as if the wall clock had just been set
// forward by d. It is the system's again when t ends.
func PretendSet(t Test, d time.Duration) {
	t.Cleanup(func() { set.Store(0) })
	set.Add(int64(d))
}

// A Test is a testing.TB.
type Test interface{ Cleanup(func()) }

// Wall is the wall clock, without the monotonic one.
func Wall() time.Time { return time.Now().Round(0).Add(time.Duration(set.Load())) }

// asleep returns how long the machine has slept since origin, or zero if the system does
// not report it.
func asleep() time.Duration {
	d := systemAsleep() - before
	if d < least {
		d = 0
	}
	return d + time.Duration(pretended.Load())
}

// before is the sleep at origin by systemAsleep: the largest of several readings, because
// an interrupted reading is too small.
var before = func() (most time.Duration) {
	for range 3 {
		most = max(most, systemAsleep())
	}
	return most
}()

// Elapsed returns the time since an instant before any first use of this module.
func Elapsed() time.Duration {
	m := int64(time.Since(origin))
	look(m)
	return time.Duration(m + slept.Load())
}

// Now returns the time of day plus the time that the machine has slept. Compare it only
// with other values of Now.
func Now() time.Time {
	now := time.Now()
	look(int64(now.Sub(origin)))
	return now.Add(time.Duration(slept.Load()))
}

// At returns the value of Now when Elapsed returns d.
func At(d time.Duration) time.Time { return origin.Add(d) }

// On returns the value of Now at t, for example a deadline.
func On(t time.Time) time.Time {
	now := Now()
	return now.Add(time.Until(t))
}

// look updates slept, unless that was done recently. m is the monotonic clock.
func look(m int64) {
	last := looked.Load()
	if d := m - last; -int64(often) < d && d < int64(often) || !looked.CompareAndSwap(last, m) {
		return
	}
	d := int64(asleep())
	for old := slept.Load(); d >= old+int64(least) && !slept.CompareAndSwap(old, d); old = slept.Load() {
	}
}

// Timers stop while the machine sleeps. A long wait is therefore split into pieces: each is
// at most a minute, or 1/1,440 of what is left if that is longer.
const (
	piece = time.Minute
	parts = 24 * 60
)

// Piece returns how long a timer with d left should sleep.
func Piece(d time.Duration) time.Duration { return min(d, max(piece, d/parts)) }

// Sleep waits for d, in pieces, or until done is closed.
func Sleep(d time.Duration, done <-chan struct{}) {
	end := Elapsed() + d
	timer := time.NewTimer(Piece(d))
	defer timer.Stop()
	for {
		select {
		case <-done:
			return
		case <-timer.C:
		}
		left := end - Elapsed()
		if left <= 0 {
			return
		}
		timer.Reset(Piece(left))
	}
}
