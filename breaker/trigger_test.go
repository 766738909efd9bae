package breaker_test

import (
	"errors"
	"fmt"
	"math"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/headway-go/headway/breaker"
)

func TestS71_ThrottlingCountsForNothing(t *testing.T) {
	b := newBreaker(t, breaker.Config{Failures: 5, Of: 10}, nil)
	call(t, b, t0, repeat(100, ignored)...)
	want(t, b, t0, breaker.Closed, 0)
	if !b.Clean(t0) {
		t.Error("not clean after ignored results only")
	}

	// Ignored results before, between and after do not count among the ten.
	call(t, b, t0, repeat(50, ignored)...)
	for range 4 {
		call(t, b, t0, failure, success)
		call(t, b, t0, repeat(50, ignored)...)
	}
	call(t, b, t0, success)
	want(t, b, t0, breaker.Closed, 0)
	call(t, b, t0, failure) // the fifth of the last ten
	want(t, b, t0, breaker.Open, 5*time.Second)
}

func TestS72_IgnoredChangesNothingInAnyState(t *testing.T) {
	var changes int
	b := newBreaker(t, breaker.Config{Failures: 2}, func(breaker.Change) { changes++ })
	check := func(now time.Time, state breaker.State, delay time.Duration, r breaker.Result) {
		t.Helper()
		before := changes
		ticket, ok := b.Take(now)
		if ok {
			b.Record(ticket, r, now)
		}
		b.Record(ticket, r, now)
		b.Return(ticket)
		want(t, b, now, state, delay)
		if changes != before {
			t.Errorf("%v: %d changes", state, changes-before)
		}
	}

	// A local refusal, a caller's cancel and deadline; an outcome of no name, which
	// a Classify could give, harms no more.
	now := t0
	for _, r := range []breaker.Result{{}, ignored, {Outcome: 77, Err: errDown, RetryAfter: time.Hour}} {
		b.Reset(now)
		call(t, b, now, failure)
		check(now, breaker.Closed, 0, r)
		call(t, b, now, failure)
		check(now, breaker.Open, 5*time.Second, r)
		now = now.Add(5 * time.Second)
		call(t, b, now, r)
		check(now, breaker.HalfOpen, 0, r)
	}

	// A timeout of the server's is a failure as any other.
	b.Reset(now)
	call(t, b, now, failure, breaker.Result{Outcome: breaker.Failure, Err: syscall.ETIMEDOUT})
	want(t, b, now, breaker.Open, 5*time.Second)
	if !errors.Is(b.Cause(), syscall.ETIMEDOUT) {
		t.Errorf("opened by %v", b.Cause())
	}
}

func TestS76_FiveInARowHoweverSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker(t, breaker.Config{Failures: 5}, nil)
		start := time.Now()
		for n := range 5 {
			want(t, b, time.Now(), breaker.Closed, 0)
			if got := time.Since(start); got != time.Duration(n)*19*time.Second {
				t.Fatalf("call %d at %v", n, got)
			}
			ticket := take(t, b, time.Now())
			time.Sleep(18 * time.Second) // so slow was each failure
			b.Record(ticket, failure, time.Now())
			if n < 4 {
				time.Sleep(time.Second)
			}
		}
		want(t, b, time.Now(), breaker.Open, 5*time.Second)
		if got := time.Since(start); got != 4*19*time.Second+18*time.Second {
			t.Errorf("opened at %v", got)
		}
	})
}

func TestC73_OneCallAMinuteOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker(t, breaker.Config{Failures: 20}, nil)
		for range 20 {
			want(t, b, time.Now(), breaker.Closed, 0)
			time.Sleep(time.Minute)
			call(t, b, time.Now(), failure)
		}
		want(t, b, time.Now(), breaker.Open, 5*time.Second)
	})
}

func TestC74_RefusedConnectionsAreFailures(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	b := newBreaker(t, breaker.Config{Failures: 3}, nil)
	call(t, b, t0, repeat(3, breaker.Result{Outcome: breaker.Failure, Err: refused})...)
	want(t, b, t0, breaker.Open, 5*time.Second)
	if !errors.Is(b.Cause(), syscall.ECONNREFUSED) {
		t.Errorf("opened by %v", b.Cause())
	}
}

func TestC75_NoForgettingAtAWindowsBorder(t *testing.T) {
	// 10,000 successes, then failures in the slices after: 900 are 8.26 % of all.
	// The 811th is the first to make 7.5 %, which rounds to 8.
	for _, test := range []struct {
		rate float64
		want int // failures until it opens; 0: does not
	}{
		{0.08, 811}, {0.09, 0}, {0.10, 0}, {0.90, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBreaker(t, breaker.Config{Rate: test.rate, Within: 10 * time.Second, MinCalls: 100}, nil)
			// The bubble begins on a border of every slicing; so does second 10 here.
			time.Sleep(5 * time.Second)
			for range 10_000 {
				call(t, b, time.Now(), success)
				time.Sleep(499 * time.Microsecond)
			}
			opened := 0
			for n := 1; n <= 900 && opened == 0; n++ {
				time.Sleep(time.Millisecond)
				call(t, b, time.Now(), failure)
				if !b.Closed() {
					opened = n
				}
			}
			if opened != test.want {
				t.Errorf("rate %v: opened at failure %d, want %d", test.rate, opened, test.want)
			}
		})
	}
}

// TestRateNeedsMinCalls checks that a rate alone opens nothing, and that a
// success can be the result that makes up the number.
func TestRateNeedsMinCalls(t *testing.T) {
	for _, last := range []breaker.Result{success, failure} {
		b := newBreaker(t, breaker.Config{Rate: 0.5, Within: time.Minute, MinCalls: 20}, nil)
		call(t, b, t0, repeat(19, failure)...)
		want(t, b, t0, breaker.Closed, 0)
		call(t, b, t0, last)
		want(t, b, t0, breaker.Open, 5*time.Second)
		if b.Cause() != errDown {
			t.Errorf("opened by %v", b.Cause())
		}
	}
}

// TestRateForgets: what is older than Within by slices of a tenth is not looked
// at, to the nanosecond of the clock that failsafe-go reads.
func TestRateForgets(t *testing.T) {
	for _, test := range []struct {
		first, second time.Duration // a failure at each
		open          bool
	}{
		{0, 10*time.Second - 1, true},
		{0, 10 * time.Second, false},
		{time.Second - 1, 10*time.Second - 1, true},
		{time.Second - 1, 10 * time.Second, false}, // nine tenths later: as short as it gets
		{time.Second, 10 * time.Second, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBreaker(t, breaker.Config{Rate: 1, Within: 10 * time.Second, MinCalls: 2}, nil)
			time.Sleep(test.first) // from the border of a slice, where every bubble begins
			call(t, b, time.Now(), failure)
			time.Sleep(test.second - test.first)
			call(t, b, time.Now(), failure)
			if open := b.State() == breaker.Open; open != test.open {
				t.Errorf("failures at %v and %v: open is %v", test.first, test.second, open)
			}
		})
	}
}

// TestCountsAgainstModel compares n of the last m, where successes that cannot
// matter are kept from the recorder, with a list of all results.
func TestCountsAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		of := rapid.IntRange(1, 12).Draw(t, "of")
		n := rapid.IntRange(1, of).Draw(t, "failures")
		b, err := breaker.New(breaker.Config{Failures: n, Of: of}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var results []bool // failed
		for range rapid.IntRange(1, 200).Draw(t, "calls") {
			ticket, _ := b.Take(t0)
			switch rapid.IntRange(0, 5).Draw(t, "outcome") {
			case 0:
				b.Record(ticket, ignored, t0)
				continue
			case 1, 2:
				b.Record(ticket, failure, t0)
				results = append(results, true)
			default:
				b.Record(ticket, success, t0)
				results = append(results, false)
			}
			failed, successes := 0, 0
			for _, f := range results[max(0, len(results)-of):] {
				if f {
					failed++
				} else {
					successes++
				}
			}
			if open := failed >= n; open == b.Closed() {
				t.Fatalf("%d of %d: closed is %v after %d failures in the last %d", n, of, b.Closed(), failed, of)
			} else if open {
				return
			}
			if clean := b.Clean(t0); clean && failed > 0 && n != of {
				t.Fatalf("%d of %d: clean with %d failures", n, of, failed)
			} else if !clean && failed == 0 {
				t.Fatalf("%d of %d: not clean without a failure", n, of)
			}
		}
	})
}

// TestRateAgainstModel compares the rate within a time with a list of all
// results and their times: failsafe-go's clock is that of the bubble.
func TestRateAgainstModel(t *testing.T) {
	type step struct {
		pause  time.Duration
		failed bool
	}
	run := func(t testing.TB, c breaker.Config, steps []step) (mistake string) {
		slice := int64(c.Within / 10)
		b := newBreaker(t, c, nil)
		type result struct {
			slice  int64
			failed bool
		}
		var results []result
		for _, s := range steps {
			time.Sleep(s.pause)
			r := success
			if s.failed {
				r = failure
			}
			ticket, _ := b.Take(time.Now())
			b.Record(ticket, r, time.Now())
			current := time.Now().UnixNano() / slice
			results = append(results, result{current, s.failed})

			calls, failures := 0, 0
			for _, r := range results {
				if r.slice > current-10 {
					calls++
					if r.failed {
						failures++
					}
				}
			}
			// Whole per cents, rounded half up, in integers.
			perCent := (200*failures + calls) / (2 * calls)
			open := calls >= c.MinCalls && float64(perCent)/100 >= c.Rate
			if open == b.Closed() {
				return fmt.Sprintf("%+v: closed is %v at %d of %d", c, b.Closed(), failures, calls)
			}
			if open {
				return ""
			}
		}
		return ""
	}

	rapid.Check(t, func(r *rapid.T) {
		c := breaker.Config{
			Rate:     float64(rapid.IntRange(5, 100).Draw(r, "per cent")) / 100,
			Within:   time.Duration(rapid.IntRange(10, 1000).Draw(r, "slice")) * 10 * time.Millisecond,
			MinCalls: rapid.IntRange(1, 20).Draw(r, "min calls"),
		}
		often := rapid.IntRange(1, 5).Draw(r, "failures in ten")
		steps := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) step {
			return step{time.Duration(rapid.Int64Range(0, int64(c.Within)/4).Draw(r, "pause")), rapid.IntRange(0, 9).Draw(r, "failed") < often}
		}), 1, 100).Draw(r, "steps")
		var mistake string
		synctest.Test(t, func(t *testing.T) { mistake = run(t, c, steps) })
		if mistake != "" {
			r.Fatal(mistake)
		}
	})
}

// Well says when a success need not be recorded: it must never say so while one
// changes something.
func TestWellWhileSuccessesChangeNothing(t *testing.T) {
	b := newBreaker(t, breaker.Config{Failures: 2, Of: 3, Probes: 2}, nil)
	check := func(when string, want bool) {
		t.Helper()
		if got := b.Well(); got != want {
			t.Errorf("%s: Well is %t, want %t", when, got, want)
		}
	}
	check("new", true)
	call(t, b, t0, failure)
	for i := range 3 { // one failure among the last three results
		check(fmt.Sprintf("%d successes after a failure", i), false)
		call(t, b, t0, success)
	}
	check("the failure is among the last three no more", true)
	call(t, b, t0, failure, failure)
	check("open", false)
	later := t0.Add(b.Delay(t0))
	probe := take(t, b, later)
	check("half-open", false)
	b.Record(probe, success, later)
	call(t, b, later, success)
	for n := 2; b.Closed() && b.Allowance() != math.MaxInt; n *= 2 {
		check(fmt.Sprintf("%d allowed in flight", n), false)
		call(t, b, later, success)
	}
	check("closed again", true)
	if b.ProbeTimeout() != 30*time.Second || b.Room(later) != math.MaxInt {
		t.Errorf("probe timeout %v, room for %d; want the default, and no bound", b.ProbeTimeout(), b.Room(later))
	}

	rate := newBreaker(t, breaker.Config{Rate: 0.5}, nil)
	if rate.Well() {
		t.Error("with a Rate: Well is true, though every success counts")
	}
}
