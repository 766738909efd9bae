package breaker_test

import (
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway/breaker"
)

func TestS77_ACallbackMayUseTheBreaker(t *testing.T) {
	var b *breaker.Breaker
	var reported []breaker.State
	depth := 0
	b = newBreaker(t, breaker.Config{Failures: 1}, func(c breaker.Change) {
		depth++
		if depth > 1 {
			t.Error("reported during another report")
		}
		reported = append(reported, c.To)
		b.State()
		b.Closed()
		b.Delay(c.At)
		b.Cause()
		b.Allowance()
		b.Clean(c.At)
		b.Report()
		if len(reported) < 6 {
			// The callback changes it on: reported when it has returned, in order.
			switch c.To {
			case breaker.Open:
				b.Reset(c.At)
			case breaker.Closed:
				b.Trip(nil, 0, c.At)
			}
		}
		depth--
	})
	call(t, b, t0, failure)
	open, closed := breaker.Open, breaker.Closed
	if want := []breaker.State{open, closed, open, closed, open, closed}; !slices.Equal(reported, want) {
		t.Errorf("reported %v, want %v", reported, want)
	}
}

func TestS77_CallbacksComeInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// A slow callback, and changes by many goroutines meanwhile.
		var reported []breaker.Change
		b := newBreaker(t, breaker.Config{Failures: 1}, func(c breaker.Change) {
			time.Sleep(time.Second)
			reported = append(reported, c) // one goroutine reports at a time
		})
		var group sync.WaitGroup
		for n := range 100 {
			group.Go(func() {
				time.Sleep(time.Duration(n) * time.Millisecond)
				if n%2 == 0 {
					b.Trip(nil, 0, time.Now())
				} else {
					b.Reset(time.Now())
				}
			})
		}
		start := time.Now()
		group.Wait()
		if len(reported) != 100 {
			t.Fatalf("%d changes reported, want 100", len(reported))
		}
		for n, c := range reported {
			to := breaker.State(1 - n%2)
			if c.From != 1-to || c.To != to || c.At.Sub(start) != time.Duration(n)*time.Millisecond {
				t.Errorf("%d: reported %+v", n, c)
			}
		}
	})
}

func TestS77_ACallbackThatPanicsWedgesNothing(t *testing.T) {
	for name, end := range map[string]func(){
		"panic":  func() { panic("callback") },
		"Goexit": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			var reported []breaker.State
			b := newBreaker(t, breaker.Config{Failures: 1}, func(c breaker.Change) {
				reported = append(reported, c.To)
				end()
			})
			// in runs f, and reports whether it came to its end.
			in := func(f func()) (returned bool) {
				done := make(chan struct{})
				go func() {
					defer close(done)
					defer func() { recover() }()
					f()
					returned = true
				}()
				<-done
				return returned
			}

			ticket := take(t, b, t0)
			if in(func() { b.Record(ticket, failure, t0) }) {
				t.Error("the callback's panic or Goexit did not reach the caller")
			}
			want(t, b, t0, breaker.Open, 5*time.Second)

			// Take does not call back, whatever the callback does.
			now := t0.Add(5 * time.Second)
			probe := take(t, b, now)
			want(t, b, now, breaker.HalfOpen, 30*time.Second)

			// Two are reported here; each ends the goroutine, both are reported.
			if in(func() { b.Record(probe, success, now) }) {
				t.Error("the callback's panic or Goexit did not reach the caller")
			}
			want(t, b, now, breaker.Closed, 0)
			if want := []breaker.State{breaker.Open, breaker.HalfOpen, breaker.Closed}; !slices.Equal(reported, want) {
				t.Errorf("reported %v, want %v", reported, want)
			}
			if !in(func() { b.Report() }) {
				t.Error("a change was left unreported")
			}
		})
	}
}

// TestTakeNeverCallsBack: a lock may be held around it that the callback wants.
func TestTakeNeverCallsBack(t *testing.T) {
	var line sync.Mutex
	var reported []breaker.State
	b := newBreaker(t, breaker.Config{Failures: 1}, func(c breaker.Change) {
		line.Lock()
		defer line.Unlock()
		reported = append(reported, c.To)
	})
	call(t, b, t0, failure)

	now := t0.Add(5 * time.Second)
	line.Lock()
	ticket := take(t, b, now)
	b.Return(ticket)
	ticket = take(t, b, now)
	b.State()
	b.Delay(now)
	b.Cause()
	b.Clean(now)
	line.Unlock()
	if len(reported) != 1 {
		t.Errorf("reported %v under the lock", reported[1:])
	}
	b.Report()
	if len(reported) != 2 || reported[1] != breaker.HalfOpen {
		t.Errorf("reported %v, want half-open too", reported)
	}
	b.Record(ticket, success, now)
	if len(reported) != 3 || reported[2] != breaker.Closed {
		t.Errorf("reported %v, want closed too", reported)
	}
}
