// Package awake is a clock that goes on while the machine sleeps.
//
// Go's monotonic clock stands still while a machine is suspended on Linux and
// macOS: a pause of two hours would last two hours more when a laptop wakes. Where
// the system has a clock that counts that time too, Elapsed and Now add it. Where
// it has none nothing is added: what is relative is late then, and never early.
// The wall clock has no part in it, so that setting it moves nothing.
package awake

import (
	"sync/atomic"
	"time"
)

// origin is what Elapsed counts from. Only differences to it are looked at, since
// in a synctest bubble it lies in the future.
var origin = time.Now()

// often is how much of the monotonic clock may pass between two looks at how
// long the machine has slept. A program is halted for longer than that before a
// machine falls asleep and after it wakes, so that none begins anything between
// waking and the look.
const often = time.Millisecond

// least is the shortest sleep that counts: less may be what reading two clocks
// one after the other takes.
const least = 100 * time.Millisecond

var (
	looked atomic.Int64 // when, by the monotonic clock since origin
	slept  atomic.Int64 // since origin, as far as it is known; it only grows
)

// What tests have the clocks do.
var (
	pretended atomic.Int64 // the time that the machine sleeps
	set       atomic.Int64 // by how much the wall clock is ahead of the system's
)

// Pretend is for tests: it is as if the machine had just slept for d. The wall clock,
// which has gone on, is the system's again when t ends.
func Pretend(t Test, d time.Duration) {
	pretended.Add(int64(d))
	PretendSet(t, d)
	looked.Store(-1 << 62)
}

// PretendSet is for tests: it is as if the wall clock had just been set forward by d.
// It is the system's again when t ends.
func PretendSet(t Test, d time.Duration) {
	t.Cleanup(func() { set.Store(0) })
	set.Add(int64(d))
}

// A Test is a testing.TB.
type Test interface{ Cleanup(func()) }

// Wall is the wall clock, without the monotonic one.
func Wall() time.Time { return time.Now().Round(0).Add(time.Duration(set.Load())) }

// asleep returns for how long the machine has slept since origin; zero where the
// system does not say.
func asleep() time.Duration {
	d := systemAsleep() - before
	if d < least {
		d = 0
	}
	return d + time.Duration(pretended.Load())
}

// before is what systemAsleep returned at origin: the most of several readings,
// since one that is interrupted is too small.
var before = func() (most time.Duration) {
	for range 3 {
		most = max(most, systemAsleep())
	}
	return most
}()

// Elapsed is the time since some instant before anything of this module began.
func Elapsed() time.Duration {
	m := int64(time.Since(origin))
	look(m)
	return time.Duration(m + slept.Load())
}

// Now is the time of day plus the time that the machine has slept: only good to be
// compared with other values of Now.
func Now() time.Time {
	now := time.Now()
	look(int64(now.Sub(origin)))
	return now.Add(time.Duration(slept.Load()))
}

// At is what Now returns when Elapsed returns d.
func At(d time.Duration) time.Time { return origin.Add(d) }

// On is what Now returns at t, a deadline for instance.
func On(t time.Time) time.Time {
	now := Now()
	return now.Add(time.Until(t))
}

// look finds out how long the machine has slept, if it has not just been done. m
// is the monotonic clock.
func look(m int64) {
	last := looked.Load()
	if d := m - last; -int64(often) < d && d < int64(often) || !looked.CompareAndSwap(last, m) {
		return
	}
	d := int64(asleep())
	for old := slept.Load(); d >= old+int64(least) && !slept.CompareAndSwap(old, d); old = slept.Load() {
	}
}

// Timers stop while the machine sleeps. A long wait is therefore taken in
// pieces: so many in a row are at most a minute long, or a day's minute of what is
// left.
const (
	piece = time.Minute
	parts = 24 * 60
)

// Piece returns for how long a timer should sleep that has d to go.
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
