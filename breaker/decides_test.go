package breaker

import (
	"errors"
	"testing"
	"time"
)

// ignoring is a recorder that ignores all results.
type ignoring struct{ recorder }

func (ignoring) RecordSuccess() {}
func (ignoring) RecordFailure() {}

// TestFailsafeDecides runs the calls of S76, and the probe that closes the
// breaker again, with failsafe-go's recording and without: it alone decides.
func TestFailsafeDecides(t *testing.T) {
	for _, test := range []struct {
		name    string
		without bool
		config  Config
	}{
		{"in a row", false, Config{Failures: 5}},
		{"in a row", true, Config{Failures: 5}},
		{"of the last", false, Config{Failures: 5, Of: 10}},
		{"of the last", true, Config{Failures: 5, Of: 10}},
		{"rate", false, Config{Rate: 0.5, MinCalls: 5}},
		{"rate", true, Config{Rate: 0.5, MinCalls: 5}},
	} {
		name := test.name + " with its recording"
		if test.without {
			name = test.name + " without its recording"
		}
		t.Run(name, func(t *testing.T) {
			b, err := New(test.config, nil)
			if err != nil {
				t.Fatal(err)
			}
			if test.without {
				b.mu.Lock()
				b.recorder = ignoring{b.recorderLocked()}
				b.mu.Unlock()
			}
			now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
			for range 5 {
				ticket, ok := b.Take(now)
				if !ok {
					t.Fatal("refused before the fifth failure")
				}
				now = now.Add(19 * time.Second)
				b.Record(ticket, Result{Outcome: Failure, Err: errors.New("down")}, now)
			}
			if opened := b.State() == Open; opened == test.without {
				t.Fatalf("opened is %v", opened)
			}

			if test.without {
				b.Trip(nil, 0, now)
			}
			now = now.Add(b.Delay(now))
			probe, ok := b.Take(now)
			if !ok {
				t.Fatal("no probe")
			}
			b.Record(probe, Result{Outcome: Success}, now)
			if closed := b.Closed(); closed == test.without {
				t.Fatalf("closed is %v", closed)
			}
		})
	}
}

// TestRecorderIsNotMadeForTheWell: memory for a window is taken with the first
// failure only, and after one a success in a row is soon no matter any more.
func TestRecorderIsNotMadeForTheWell(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []Config{{}, {Failures: 5, Of: 1000}} {
		b, err := New(c, nil)
		if err != nil {
			t.Fatal(err)
		}
		record := func(o Outcome) {
			ticket, _ := b.Take(now)
			b.Record(ticket, Result{Outcome: o}, now)
		}
		record(Success)
		record(Ignored)
		if b.recorder != nil {
			t.Errorf("%+v: made", c)
		}
		record(Failure)
		for n := range max(1, c.Of) {
			if b.word.Load()&busyBit == 0 {
				t.Errorf("%+v: success %d after a failure would not be recorded", c, n+1)
			}
			record(Success)
		}
		if b.word.Load()&busyBit != 0 {
			t.Errorf("%+v: one success too many is recorded", c)
		}
	}
}

// TestFewLateProbesAreRemembered: the memory for probes that have timed out
// does not grow.
func TestFewLateProbesAreRemembered(t *testing.T) {
	const places = 3
	var p probes
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	for range 1000 {
		for range places {
			if _, ok := p.take(places, now, now.Add(time.Second)); !ok {
				t.Fatal("no place")
			}
		}
		if _, ok := p.take(places, now, now.Add(time.Second)); ok {
			t.Fatal("a place too many")
		}
		now = now.Add(time.Second)
		if len(p.list) > places+remembered {
			t.Fatalf("%d probes are kept", len(p.list))
		}
	}
	for n := range uint32(3000) {
		if got, want := p.end(n+1), n >= 3000-places-remembered; got != want {
			t.Fatalf("probe %d: ended is %v, want %v", n+1, got, want)
		}
	}
}
