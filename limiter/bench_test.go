package limiter_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/headway-go/headway/limiter"
)

// benchmarkLaws runs f under each law, as one limit and as several, none of which
// is ever reached.
func benchmarkLaws(b *testing.B, f func(*testing.B, *limiter.Limiter)) {
	for _, l := range []limiter.Limit{
		{N: 1e9, Per: time.Second},
		{N: 1e9, Per: time.Second, Law: limiter.Bucket},
		{N: 1e9, Per: time.Nanosecond, Law: limiter.Spaced},
		{N: 1e9, Per: time.Second, Law: limiter.Sliding},
		{N: 1e9, Law: limiter.Calendar, Unit: limiter.Hour},
	} {
		for _, n := range []int{1, 2, 4} {
			b.Run("law="+l.Law.String()+"/limits="+strconv.Itoa(n), func(b *testing.B) {
				limits := make([]limiter.Limit, n)
				for i := range limits {
					limits[i] = l
				}
				lim, err := limiter.New(limits...)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				f(b, lim)
			})
		}
	}
}

func BenchmarkLimiterAllow(b *testing.B) {
	benchmarkLaws(b, func(b *testing.B, l *limiter.Limiter) {
		for b.Loop() {
			l.Allow(1)
		}
	})
}

func BenchmarkLimiterWait(b *testing.B) {
	benchmarkLaws(b, func(b *testing.B, l *limiter.Limiter) {
		ctx := context.Background()
		for b.Loop() {
			if err := l.Wait(ctx, 1); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkLimiterAllowParallel(b *testing.B) {
	benchmarkLaws(b, func(b *testing.B, l *limiter.Limiter) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				l.Allow(1)
			}
		})
	})
}
