package limiter_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headway-go/headway/limiter"
)

// TestSwapLawsUnderTraffic: callers race SetLimits, which changes the law back
// and forth; units taken under one law count under the other.
func TestSwapLawsUnderTraffic(t *testing.T) {
	const n = 1000
	window := limiter.Limit{N: n, Per: time.Hour}
	bucket := limiter.Limit{N: n, Per: 100 * time.Hour, Law: limiter.Bucket}
	l := mustNew(t, window)
	var took atomic.Int64
	var all sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if l.Allow(1) {
					took.Add(1)
				}
			}
		})
	}
	for i := range 2000 {
		limit := window
		if i%2 == 0 {
			limit = bucket
		}
		if err := l.SetLimits(limit); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	all.Wait()
	if got := took.Load(); got > n {
		t.Errorf("%d admitted, want %d at most", got, n)
	}
}
