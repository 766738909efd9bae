package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway/breaker"
)

func TestS70_OpenRefusesWithItsCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reported []breaker.Change
		b := newBreaker(t, breaker.Config{Failures: 2}, func(c breaker.Change) { reported = append(reported, c) })
		call(t, b, time.Now(), failure)
		if b.Cause() != nil {
			t.Errorf("closed because of %v", b.Cause())
		}
		last := errors.New("the last one")
		call(t, b, time.Now(), breaker.Result{Outcome: breaker.Failure, Err: last})

		opened := breaker.Change{From: breaker.Closed, To: breaker.Open, At: time.Now(), Delay: 5 * time.Second, Err: last}
		if len(reported) != 1 || reported[0] != opened {
			t.Errorf("reported %+v, want %+v", reported, opened)
		}
		if b.Cause() != last {
			t.Errorf("opened by %v, want %v", b.Cause(), last)
		}
		want(t, b, time.Now(), breaker.Open, 5*time.Second)
		for range 5 {
			wantRefused(t, b, time.Now())
			time.Sleep(999 * time.Millisecond)
		}
		time.Sleep(5*time.Millisecond - 1)
		want(t, b, time.Now(), breaker.Open, 1)
		wantRefused(t, b, time.Now())
		time.Sleep(time.Nanosecond)
		want(t, b, time.Now(), breaker.Open, 0)
		if probe := take(t, b, time.Now()); !probe.Probe() {
			t.Error("granted, but not as a probe")
		}
		want(t, b, time.Now(), breaker.HalfOpen, 30*time.Second)
		if b.Cause() != last {
			t.Errorf("half-open because of %v, want %v", b.Cause(), last)
		}
	})
}

// tripped returns a breaker that may be probed from now on. It sleeps.
func tripped(t *testing.T, c breaker.Config) *breaker.Breaker {
	b := newBreaker(t, c, nil)
	b.Trip(errDown, 0, time.Now())
	time.Sleep(b.Delay(time.Now()))
	return b
}

// outcomeOf is a transport's classification, as far as these tests need it.
func outcomeOf(status int, err error) breaker.Outcome {
	switch {
	case errors.Is(err, context.Canceled), status == 429:
		return breaker.Ignored
	case err != nil:
		return breaker.Failure
	default:
		return breaker.Success
	}
}

// probe runs send with a ticket, like a transport: whatever send does, the
// ticket is recorded.
func probe(t *testing.T, b *breaker.Breaker, send func() (status int, err error)) {
	ticket := take(t, b, time.Now())
	if !ticket.Probe() {
		t.Error("granted, but not as a probe")
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { recover() }()
		var result breaker.Result
		defer func() { b.Record(ticket, result, time.Now()) }()
		status, err := send()
		result = breaker.Result{Outcome: outcomeOf(status, err), Err: err}
	}()
	<-done
}

func TestS73_AProbeGivesItsPlaceBackHoweverItEnds(t *testing.T) {
	wait := func() { time.Sleep(3 * time.Second) }
	for _, test := range []struct {
		name  string
		send  func() (int, error)
		state breaker.State
		delay time.Duration // until the next Take
	}{
		{"404", func() (int, error) { wait(); return 404, nil }, breaker.Closed, 0},
		{"429", func() (int, error) { wait(); return 429, nil }, breaker.HalfOpen, 0},
		{"transport error", func() (int, error) { wait(); return 0, errDown }, breaker.Open, 10 * time.Second},
		{"panic", func() (int, error) { wait(); panic("probe") }, breaker.HalfOpen, 0},
		{"Goexit", func() (int, error) { wait(); runtime.Goexit(); return 0, nil }, breaker.HalfOpen, 0},
		{"cancel", func() (int, error) { wait(); return 0, context.Canceled }, breaker.HalfOpen, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := tripped(t, breaker.Config{})
				probe(t, b, test.send)
				want(t, b, time.Now(), test.state, test.delay)

				// The next call may probe, and finds the service well.
				time.Sleep(test.delay)
				call(t, b, time.Now(), success)
				want(t, b, time.Now(), breaker.Closed, 0)
			})
		})
	}

	t.Run("never", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := tripped(t, breaker.Config{ProbeTimeout: 7 * time.Second})
			take(t, b, time.Now())
			want(t, b, time.Now(), breaker.HalfOpen, 7*time.Second)
			time.Sleep(7*time.Second - 1)
			want(t, b, time.Now(), breaker.HalfOpen, 1)
			wantRefused(t, b, time.Now())
			time.Sleep(time.Nanosecond)
			call(t, b, time.Now(), success)
			want(t, b, time.Now(), breaker.Closed, 0)
		})
	})

	t.Run("not sent", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := tripped(t, breaker.Config{})
			ticket := take(t, b, time.Now())
			want(t, b, time.Now(), breaker.HalfOpen, 30*time.Second)
			b.Return(ticket)
			want(t, b, time.Now(), breaker.HalfOpen, 0)
			call(t, b, time.Now(), success)
			want(t, b, time.Now(), breaker.Closed, 0)
		})
	})
}

func TestS74_AHangingServerGetsProbesPerProbeTimeout(t *testing.T) {
	for _, probes := range []int{1, 3} {
		t.Run(fmt.Sprint(probes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := tripped(t, breaker.Config{Probes: probes, ProbeTimeout: 20 * time.Second})
				for range 4 {
					// A thousand at each probe timeout, and halfway to it.
					for _, sent := range []int{probes, 0} {
						start := time.Now()
						var granted, refused atomic.Int64
						var group sync.WaitGroup
						for range 1000 {
							group.Go(func() {
								if _, ok := b.Take(time.Now()); ok {
									granted.Add(1)
								} else {
									refused.Add(1)
								}
							})
						}
						group.Wait()
						if g, r := granted.Load(), refused.Load(); g != int64(sent) || g+r != 1000 {
							t.Errorf("%d sent, %d refused; want %d sent of 1000", g, r, sent)
						}
						if waited := time.Since(start); waited != 0 {
							t.Errorf("they waited for %v", waited)
						}
						time.Sleep(10 * time.Second)
					}
				}
			})
		})
	}
}

func TestS75_ResultsOfAnOlderStateCountForNothing(t *testing.T) {
	for _, r := range []breaker.Result{success, failure, ignored} {
		b := newBreaker(t, breaker.Config{Failures: 1, Probes: 2}, nil)
		var old []breaker.Ticket
		for range 10 {
			old = append(old, take(t, b, t0))
		}
		late := func(now time.Time, state breaker.State, delay time.Duration) {
			t.Helper()
			for _, ticket := range old {
				b.Record(ticket, r, now)
			}
			want(t, b, now, state, delay)
		}

		call(t, b, t0, failure)
		late(t0, breaker.Open, 5*time.Second)
		now := t0.Add(5 * time.Second)
		first, second := take(t, b, now), take(t, b, now)
		late(now, breaker.HalfOpen, 30*time.Second) // and frees no place
		b.Record(first, success, now)
		late(now, breaker.HalfOpen, 30*time.Second)
		b.Record(second, success, now)
		late(now, breaker.Closed, 0)

		// Not even of an older closed state.
		if allowed := b.Allowance(); allowed != 2 {
			t.Errorf("%v: %d allowed in flight, want 2", r.Outcome, allowed)
		}
	}
}

func TestC70_TheLastProbeEndsIgnored(t *testing.T) {
	b := newBreaker(t, breaker.Config{Probes: 3}, nil)
	b.Trip(errDown, 0, t0)
	now := t0.Add(5 * time.Second)
	for range 100 {
		first, second, third := take(t, b, now), take(t, b, now), take(t, b, now)
		wantRefused(t, b, now)
		for _, ticket := range []breaker.Ticket{first, second, third} {
			b.Record(ticket, ignored, now)
		}
		want(t, b, now, breaker.HalfOpen, 0)
	}
	call(t, b, now, success, success, ignored, success)
	want(t, b, now, breaker.Closed, 0)
}

func TestC71_CallsOfAnOlderStateAreNoProbes(t *testing.T) {
	b := newBreaker(t, breaker.Config{Failures: 1, Probes: 2}, nil)
	slow := take(t, b, t0)
	call(t, b, t0, failure)
	now := t0.Add(5 * time.Second)

	// The slow one takes no place of the two, frees none, and counts for nothing.
	take(t, b, now)
	b.Record(slow, success, now)
	take(t, b, now)
	b.Return(slow)
	b.Record(slow, failure, now)
	wantRefused(t, b, now)
	want(t, b, now, breaker.HalfOpen, 30*time.Second)
	if slow.Probe() {
		t.Error("a ticket taken while closed says that it is a probe")
	}
}

// TestC71_ProbesOfAnOlderHalfOpen is the same between two half-open states.
func TestC71_ProbesOfAnOlderHalfOpen(t *testing.T) {
	b := newBreaker(t, breaker.Config{Failures: 1, Probes: 2}, nil)
	b.Trip(errDown, 0, t0)
	now := t0.Add(5 * time.Second)
	old := take(t, b, now)
	call(t, b, now, failure)
	now = now.Add(10 * time.Second)
	take(t, b, now)
	take(t, b, now)
	b.Record(old, failure, now)
	want(t, b, now, breaker.HalfOpen, 30*time.Second)
	b.Record(old, success, now)
	b.Return(old)
	want(t, b, now, breaker.HalfOpen, 30*time.Second)
}

func TestC72_AProbeThatEndsOddlyFreesItsPlace(t *testing.T) {
	for name, send := range map[string]func() (int, error){
		"4xx":             func() (int, error) { return 422, nil },
		"unreadable body": func() (int, error) { return 200, nil }, // the status was good; the body is the caller's
		"panic":           func() (int, error) { panic("probe") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := tripped(t, breaker.Config{})
				probe(t, b, send)
				if d := b.Delay(time.Now()); d != 0 {
					t.Errorf("the next call must wait for %v", d)
				}
				call(t, b, time.Now(), success)
				want(t, b, time.Now(), breaker.Closed, 0)
			})
		})
	}
}

// TestLateProbes: a result after the probe timeout still counts, though the
// place has gone to another, so that a service slower than that is found
// well; and one that is found ill is left alone.
func TestLateProbes(t *testing.T) {
	for _, test := range []struct {
		r     breaker.Result
		state breaker.State
		delay time.Duration
	}{
		{success, breaker.Closed, 0},
		{failure, breaker.Open, 10 * time.Second},
		{ignored, breaker.HalfOpen, 28 * time.Second}, // frees nothing: it had no place
	} {
		b := newBreaker(t, breaker.Config{}, nil)
		b.Trip(errDown, 0, t0)
		now := t0.Add(5 * time.Second)
		slow := take(t, b, now)
		now = now.Add(30 * time.Second)
		take(t, b, now)
		now = now.Add(2 * time.Second)
		b.Record(slow, test.r, now)
		want(t, b, now, test.state, test.delay)
	}

	// With two places and one success, one place is left: no further call passes while
	// a probe has that place.
	b := newBreaker(t, breaker.Config{Probes: 2}, nil)
	b.Trip(errDown, 0, t0)
	now := t0.Add(5 * time.Second)
	slow := take(t, b, now)
	now = now.Add(30 * time.Second)
	take(t, b, now)
	now = now.Add(time.Second)
	take(t, b, now)
	b.Record(slow, success, now)
	want(t, b, now, breaker.HalfOpen, 30*time.Second)
}

// TestProbesRecordedTwice: the second time counts for nothing.
func TestProbesRecordedTwice(t *testing.T) {
	b := newBreaker(t, breaker.Config{Probes: 3}, nil)
	b.Trip(errDown, 0, t0)
	now := t0.Add(5 * time.Second)
	ticket := take(t, b, now)
	for range 5 {
		b.Record(ticket, success, now)
		b.Record(ticket, failure, now)
		b.Return(ticket)
	}
	want(t, b, now, breaker.HalfOpen, 0)
	take(t, b, now)
	take(t, b, now)
	wantRefused(t, b, now)
}

// TestZeroTicket: it is of no state.
func TestZeroTicket(t *testing.T) {
	b := newBreaker(t, breaker.Config{Failures: 1}, nil)
	var none breaker.Ticket
	b.Record(none, failure, t0)
	b.Return(none)
	want(t, b, t0, breaker.Closed, 0)
	b.Trip(errDown, 0, t0)
	b.Record(none, success, t0)
	want(t, b, t0, breaker.Open, 5*time.Second)
	now := t0.Add(5 * time.Second)
	take(t, b, now)
	b.Record(none, success, now)
	b.Return(none)
	want(t, b, now, breaker.HalfOpen, 30*time.Second)
}

// TestTimeRunsBackwards: an earlier time counts as the latest one.
func TestTimeRunsBackwards(t *testing.T) {
	b := newBreaker(t, breaker.Config{}, nil)
	b.Trip(errDown, 0, t0)
	b.Trip(errDown, 0, t0.Add(-time.Hour))
	want(t, b, t0.Add(-time.Hour), breaker.Open, 5*time.Second)
	wantRefused(t, b, t0.Add(-time.Hour))
	take(t, b, t0.Add(5*time.Second))
	want(t, b, t0, breaker.HalfOpen, 30*time.Second)
	wantRefused(t, b, t0)
	want(t, b, t0.Add(20*time.Second), breaker.HalfOpen, 15*time.Second)
}
