//go:build !race

package limiter_test

import (
	"context"
	"testing"
	"time"

	"github.com/headway-go/headway/limiter"
)

// TestAllocFree: nothing allocates where nothing waits.
func TestAllocFree(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	const n = 1e9
	for name, limits := range map[string][]limiter.Limit{
		"none":    nil,
		"window":  {limiter.PerSecond(n)},
		"few":     {{N: 100, Per: 1}},
		"bucket":  {{N: n, Per: time.Second, Law: limiter.Bucket}},
		"spaced":  {{N: n, Per: 1, Law: limiter.Spaced}},
		"sliding": {{N: n, Per: time.Second, Law: limiter.Sliding}},
		"day":     {{N: n, Law: limiter.Calendar, Unit: limiter.Day}},
		"four":    {limiter.PerSecond(n), limiter.PerMinute(n), limiter.PerHour(n), limiter.PerDay(n)},
	} {
		l := mustNew(t, limits...)
		for range 10_000 { // a window's memory grows to what it needs
			l.Allow(1)
		}
		for what, f := range map[string]func(){
			"Allow":     func() { l.Allow(1) },
			"Wait":      func() { _ = l.Wait(ctx, 1) },
			"Delay":     func() { l.Delay(1) },
			"Remaining": func() { l.Remaining() },
		} {
			if got := testing.AllocsPerRun(500, f); got != 0 {
				t.Errorf("%s: %s: %v allocations", name, what, got)
			}
		}
	}
}

// TestAllocFreeRefusal: nor where Allow refuses.
func TestAllocFreeRefusal(t *testing.T) {
	for _, law := range []limiter.Law{limiter.Window, limiter.Bucket, limiter.Sliding} {
		l := mustNew(t, limiter.Limit{N: 100, Per: time.Hour, Law: law})
		for l.Allow(1) {
		}
		if got := testing.AllocsPerRun(500, func() { l.Allow(1) }); got != 0 {
			t.Errorf("%v: %v allocations", law, got)
		}
	}
}
