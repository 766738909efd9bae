package breaker_test

import (
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/headway-go/headway/breaker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// t0 is any time: tests that do not wait pass times relative to it.
var t0 = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

var errDown = errors.New("down")

var (
	success = breaker.Result{Outcome: breaker.Success}
	failure = breaker.Result{Outcome: breaker.Failure, Err: errDown}
	ignored = breaker.Result{Outcome: breaker.Ignored}
)

func newBreaker(t testing.TB, c breaker.Config, onChange func(breaker.Change)) *breaker.Breaker {
	t.Helper()
	b, err := breaker.New(c, onChange)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// take takes a ticket that must be granted.
func take(t testing.TB, b *breaker.Breaker, now time.Time) breaker.Ticket {
	t.Helper()
	ticket, ok := b.Take(now)
	if !ok {
		t.Fatalf("Take at %v: refused while %v, next in %v", now, b.State(), b.Delay(now))
	}
	return ticket
}

// call takes a ticket that must be granted, and records r with it at once.
func call(t testing.TB, b *breaker.Breaker, now time.Time, r ...breaker.Result) {
	t.Helper()
	for _, r := range r {
		b.Record(take(t, b, now), r, now)
	}
}

func repeat(n int, r breaker.Result) []breaker.Result {
	s := make([]breaker.Result, n)
	for i := range s {
		s[i] = r
	}
	return s
}

// want checks the state, and when the next Take can be granted.
func want(t testing.TB, b *breaker.Breaker, now time.Time, state breaker.State, delay time.Duration) {
	t.Helper()
	if got := b.State(); got != state {
		t.Fatalf("at %v: state %v, want %v", now, got, state)
	}
	if got := b.Delay(now); got != delay {
		t.Fatalf("at %v: %v until the next Take, want %v", now, got, delay)
	}
	if got := b.Closed(); got != (state == breaker.Closed) {
		t.Fatalf("at %v: Closed is %v while %v", now, got, state)
	}
}

// wantRefused checks that Take refuses.
func wantRefused(t testing.TB, b *breaker.Breaker, now time.Time) {
	t.Helper()
	if _, ok := b.Take(now); ok {
		t.Fatalf("Take at %v: granted while %v", now, b.State())
	}
}
