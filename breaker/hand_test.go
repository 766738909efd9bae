package breaker_test

import (
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway/breaker"
)

// TestOpenForGrows: twice as long with each opening that follows on a failed
// probe or comes soon after closing, up to MaxOpenFor.
func TestOpenForGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker(t, breaker.Config{Failures: 1, OpenFor: 3 * time.Second, MaxOpenFor: 20 * time.Second}, nil)
		opens := func(d time.Duration) {
			t.Helper()
			call(t, b, time.Now(), failure)
			want(t, b, time.Now(), breaker.Open, d)
			time.Sleep(d)
		}
		opens(3 * time.Second)
		opens(6 * time.Second)
		opens(12 * time.Second)
		opens(20 * time.Second)
		opens(20 * time.Second)

		// Well, for a shorter time than MaxOpenFor.
		call(t, b, time.Now(), success)
		time.Sleep(20*time.Second - 1)
		opens(20 * time.Second)

		// Well, for MaxOpenFor.
		call(t, b, time.Now(), success)
		time.Sleep(20 * time.Second)
		opens(3 * time.Second)

		// Well soon, and the growth goes on.
		call(t, b, time.Now(), success)
		opens(6 * time.Second)
	})
}

// TestOpenForSaturates: no length of OpenFor or Retry-After overflows.
func TestOpenForSaturates(t *testing.T) {
	b := newBreaker(t, breaker.Config{Failures: 1, OpenFor: math.MaxInt64/2 + 1, MaxOpenFor: math.MaxInt64}, nil)
	call(t, b, t0, failure)
	want(t, b, t0, breaker.Open, math.MaxInt64/2+1)
	now := t0.Add(math.MaxInt64/2 + 1)
	call(t, b, now, failure)
	want(t, b, now, breaker.Open, math.MaxInt64)

	for _, asked := range []time.Duration{math.MaxInt64, math.MinInt64} {
		b := newBreaker(t, breaker.Config{Failures: 1}, nil)
		call(t, b, t0, breaker.Result{Outcome: breaker.Failure, RetryAfter: asked})
		want(t, b, t0, breaker.Open, max(5*time.Second, asked))
	}
}

// TestRetryAfter: an opening lasts until the service let itself be asked again,
// where that is later, and the growth does not come from it.
func TestRetryAfter(t *testing.T) {
	asks := func(d time.Duration) breaker.Result {
		return breaker.Result{Outcome: breaker.Failure, Err: errDown, RetryAfter: d}
	}
	b := newBreaker(t, breaker.Config{Failures: 3}, nil)
	call(t, b, t0, asks(2*time.Minute)) // the longest; past MaxOpenFor too
	call(t, b, t0.Add(time.Second), asks(time.Second), asks(0))
	want(t, b, t0.Add(time.Second), breaker.Open, 2*time.Minute-time.Second)

	// A probe whose Retry-After is shorter than the opening, and one whose is longer.
	now := t0.Add(2 * time.Minute)
	call(t, b, now, asks(9*time.Second))
	want(t, b, now, breaker.Open, 10*time.Second)
	now = now.Add(10 * time.Second)
	call(t, b, now, asks(21*time.Second))
	want(t, b, now, breaker.Open, 21*time.Second)

	// A Retry-After from an older state does not affect the newer one.
	now = now.Add(21 * time.Second)
	call(t, b, now, failure)
	want(t, b, now, breaker.Open, 40*time.Second)

	// Not clean before the time is over, though no failure is left to count.
	b = newBreaker(t, breaker.Config{Failures: 2}, nil)
	call(t, b, t0, asks(time.Minute), success)
	if b.Clean(t0.Add(time.Minute - 1)) {
		t.Error("clean while a Retry-After runs")
	}
	if !b.Clean(t0.Add(time.Minute)) {
		t.Error("not clean after a Retry-After")
	}
}

func TestTrip(t *testing.T) {
	byHand := errors.New("by hand")
	var reported []breaker.Change
	b := newBreaker(t, breaker.Config{}, func(c breaker.Change) { reported = append(reported, c) })
	b.Trip(byHand, 0, t0)
	want(t, b, t0, breaker.Open, 5*time.Second)
	if b.Cause() != byHand {
		t.Errorf("opened by %v, want %v", b.Cause(), byHand)
	}

	// Open already: for as long from now, or longer; never shorter.
	now := t0.Add(3 * time.Second)
	b.Trip(nil, 0, now)
	want(t, b, now, breaker.Open, 5*time.Second)
	if b.Cause() != nil {
		t.Errorf("opened by %v, want nil", b.Cause())
	}
	b.Trip(byHand, time.Hour, now)
	want(t, b, now, breaker.Open, time.Hour)
	b.Trip(byHand, 0, now)
	want(t, b, now, breaker.Open, time.Hour)

	// Half-open: an opening as by a failed probe, whose result comes too late.
	now = now.Add(time.Hour)
	probe := take(t, b, now)
	b.Trip(byHand, time.Minute, now)
	b.Record(probe, success, now)
	want(t, b, now, breaker.Open, time.Minute)

	var got []breaker.State
	for _, c := range reported {
		got = append(got, c.To)
	}
	if len(got) != 3 || got[0] != breaker.Open || got[1] != breaker.HalfOpen || got[2] != breaker.Open {
		t.Errorf("reported %v, want open, half-open, open", got)
	}
	if last := reported[2]; last.Delay != time.Minute || last.Err != byHand {
		t.Errorf("reported %+v", last)
	}
}

func TestClose(t *testing.T) {
	var reported []breaker.Change
	b := newBreaker(t, breaker.Config{Failures: 2}, func(c breaker.Change) { reported = append(reported, c) })
	now := t0
	for _, state := range []breaker.State{breaker.Open, breaker.HalfOpen} {
		call(t, b, now, failure, breaker.Result{Outcome: breaker.Failure, RetryAfter: time.Minute})
		now = now.Add(time.Minute)
		var probe breaker.Ticket
		if state == breaker.HalfOpen {
			probe = take(t, b, now)
		}
		want(t, b, now, state, b.Delay(now))
		b.Reset(now)
		b.Record(probe, failure, now)
		b.Record(probe, failure, now)
		want(t, b, now, breaker.Closed, 0)
		if last := reported[len(reported)-1]; last != (breaker.Change{From: state, To: breaker.Closed, At: now}) {
			t.Errorf("reported %+v", last)
		}
		if b.Cause() != nil || b.Allowance() != math.MaxInt || !b.Clean(now) {
			t.Errorf("not as new: cause %v, allowance %d, clean %v", b.Cause(), b.Allowance(), b.Clean(now))
		}
	}

	// When closed already, it forgets the counted results, and reports nothing.
	before := len(reported)
	slow := take(t, b, now)
	call(t, b, now, failure)
	b.Reset(now)
	call(t, b, now, failure)
	b.Record(slow, failure, now)
	want(t, b, now, breaker.Closed, 0)
	if len(reported) != before {
		t.Errorf("reported %+v", reported[before:])
	}
	call(t, b, now, failure)
	want(t, b, now, breaker.Open, 5*time.Second)

	// Forgotten are how often it opened, and until when it was to be left alone.
	now = now.Add(5 * time.Second)
	call(t, b, now, success, failure, failure)
	want(t, b, now, breaker.Open, 10*time.Second)
	b.Reset(now)
	call(t, b, now, breaker.Result{Outcome: breaker.Failure, RetryAfter: time.Hour})
	b.Reset(now)
	call(t, b, now, failure, failure)
	want(t, b, now, breaker.Open, 5*time.Second)
}

func TestFail(t *testing.T) {
	found := errors.New("found in the body")
	b := newBreaker(t, breaker.Config{Failures: 3}, nil)
	call(t, b, t0, failure, failure)
	b.Fail(found, 0, t0)
	want(t, b, t0, breaker.Open, 5*time.Second)
	if b.Cause() != found {
		t.Errorf("opened by %v, want %v", b.Cause(), found)
	}

	// When open, the failure is not counted, but its Retry-After is obeyed.
	b.Fail(errDown, time.Second, t0)
	want(t, b, t0, breaker.Open, 5*time.Second)
	b.Fail(errDown, 6*time.Second, t0)
	want(t, b, t0, breaker.Open, 6*time.Second)
	if b.Cause() != found {
		t.Errorf("opened by %v, want %v", b.Cause(), found)
	}

	now := t0.Add(6 * time.Second)
	take(t, b, now)
	b.Fail(found, 0, now)
	want(t, b, now, breaker.Open, 10*time.Second)
}

// TestAllowance: after closing by probes what is allowed in flight starts at
// Probes and doubles with each success until it no longer binds.
func TestAllowance(t *testing.T) {
	allows := func(b *breaker.Breaker, n int) {
		t.Helper()
		if got := b.Allowance(); got != n {
			t.Fatalf("%v: %d allowed in flight, want %d", b.State(), got, n)
		}
	}
	b := newBreaker(t, breaker.Config{Failures: 2, Probes: 3}, nil)
	allows(b, math.MaxInt)
	b.Trip(errDown, 0, t0)
	allows(b, 0)
	now := t0.Add(5 * time.Second)
	call(t, b, now, success)
	allows(b, 3)
	call(t, b, now, success, success)
	allows(b, 3)
	call(t, b, now, ignored)
	allows(b, 3)
	call(t, b, now, success)
	allows(b, 6)
	call(t, b, now, failure)
	allows(b, 6)
	call(t, b, now, success)
	allows(b, 12)
	now = now.Add(time.Hour)
	if b.Clean(now) {
		t.Error("clean while the allowance binds")
	}
	for n := 24; n < 1<<16; n *= 2 {
		call(t, b, now, success)
		allows(b, n)
	}
	call(t, b, now, success)
	allows(b, math.MaxInt)
	call(t, b, now, success)
	allows(b, math.MaxInt)
	if !b.Clean(now) {
		t.Error("not clean though all is well")
	}

	// The next time it starts anew.
	call(t, b, now, failure, failure)
	allows(b, 0)
	now = now.Add(5 * time.Second)
	call(t, b, now, success, success, success, success)
	allows(b, 6)
}

// TestClean: a breaker with results that still count is not clean.
func TestClean(t *testing.T) {
	clean := func(b *breaker.Breaker, now time.Time, want bool) {
		t.Helper()
		if got := b.Clean(now); got != want {
			t.Errorf("%v at %v: clean is %v, want %v", b.State(), now.Sub(t0), got, want)
		}
	}
	b := newBreaker(t, breaker.Config{Failures: 2, Of: 3, Probes: 1}, nil)
	clean(b, t0, true)
	call(t, b, t0, failure)
	clean(b, t0.Add(time.Hour), false)
	call(t, b, t0, success, success)
	clean(b, t0, false)
	call(t, b, t0, success)
	clean(b, t0, true)

	b.Trip(nil, 0, t0)
	clean(b, t0.Add(time.Hour), false)
	now := t0.Add(5 * time.Second)
	take(t, b, now)
	clean(b, t0.Add(time.Hour), false)
	b.Fail(nil, 0, now)
	now = now.Add(10 * time.Second)
	call(t, b, now, success)
	call(t, b, now, repeat(16, success)...)
	clean(b, now.Add(time.Minute-1), false) // the growth of OpenFor is remembered
	clean(b, now.Add(time.Minute), true)
}
