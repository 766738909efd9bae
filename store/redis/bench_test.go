package redis_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/store/redis/internal/server"
)

// The cost of one decision after another, by the number of starts that a Window remembers.
func BenchmarkTake(b *testing.B) {
	for _, starts := range []int{0, 100, 10_000} {
		b.Run(fmt.Sprintf("law=window/starts=%d", starts), func(b *testing.B) {
			now := time.Unix(1_800_000_000, 0)
			s := open(b, connect(b, server.Start(b).Addr), func() time.Time { return now })
			op := take(limiter.Limit{N: 1_000_000, Per: time.Hour})
			for range starts {
				now = now.Add(1)
				do(b, s, op)
			}
			b.ReportAllocs()
			for b.Loop() {
				now = now.Add(1)
				do(b, s, op)
			}
		})
	}
}
