//go:build !race

package breaker_test

import (
	"testing"
	"time"

	"github.com/headway-go/headway/breaker"
)

// TestZeroAllocs: a call through a closed breaker allocates nothing, whatever
// its result, and nor does a refusal. Under the race detector allocations are
// not those of the program, so it is not built there.
func TestZeroAllocs(t *testing.T) {
	zero := func(name string, f func()) {
		t.Helper()
		if n := testing.AllocsPerRun(1000, f); n != 0 {
			t.Errorf("%s: %v allocations, want none", name, n)
		}
	}
	now := time.Now()
	for _, c := range benchConfigs {
		b := newBreaker(t, c.config, nil)
		zero(c.name+", success", func() { lookAndRecord(b, now, success) })
		zero(c.name+", ignored", func() { lookAndRecord(b, now, ignored) })
		lookAndRecord(b, now, failure)
		zero(c.name+", success after failure", func() { lookAndRecord(b, now, success) })
	}

	b := newBreaker(t, breaker.Config{}, nil)
	zero("failure and success", func() { lookAndRecord(b, now, failure); lookAndRecord(b, now, success) })
	b.Trip(errDown, 0, now)
	zero("refused while open", func() { b.Take(now); b.Delay(now); b.Cause() })
	later := now.Add(5 * time.Second)
	take(t, b, later)
	zero("refused while half-open", func() { b.Take(later); b.Delay(later); b.Cause() })
}
