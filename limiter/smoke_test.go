package limiter_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway/limiter"
)

func starts(t *testing.T, l *limiter.Limiter, n int, cost int64) func() []time.Duration {
	t0 := time.Now()
	var mu sync.Mutex
	var out []time.Duration
	for range n {
		go func() {
			if err := l.Wait(context.Background(), cost); err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			out = append(out, time.Since(t0))
			mu.Unlock()
		}()
		synctest.Wait()
	}
	return func() []time.Duration { mu.Lock(); defer mu.Unlock(); return out }
}

func TestSmoke(t *testing.T) {
	for _, c := range []struct {
		lims []limiter.Limit
		n    int
		cost int64
	}{
		{[]limiter.Limit{{N: 2, Per: 10 * time.Second}}, 5, 1},
		{[]limiter.Limit{limiter.Every(time.Second)}, 10, 1},
		{[]limiter.Limit{{N: 100, Per: time.Second, Law: limiter.Bucket}}, 199, 1},
		{[]limiter.Limit{{N: 10, Per: time.Second, Law: limiter.Sliding}}, 35, 1},
		{[]limiter.Limit{{N: 3, Law: limiter.Calendar, Unit: limiter.Minute}}, 8, 1},
		{[]limiter.Limit{limiter.Every(time.Second), limiter.PerMinute(5)}, 12, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			l, err := limiter.New(c.lims...)
			if err != nil {
				t.Fatal(err)
			}
			s := starts(t, l, c.n, c.cost)
			fmt.Println(l.Delay(1), l.Remaining(), l.Waiting())
			time.Sleep(time.Hour)
			out := s()
			fmt.Println(c.lims[0], out[max(0, len(out)-12):])
		})
	}
}
