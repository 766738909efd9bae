package breaker_test

import (
	"testing"
	"time"

	"github.com/headway-go/headway/breaker"
)

var benchConfigs = []struct {
	name   string
	config breaker.Config
}{
	{"count=row", breaker.Config{}},
	{"count=of", breaker.Config{Failures: 5, Of: 100}},
	{"count=rate", breaker.Config{Rate: 0.5, Within: 10 * time.Second, MinCalls: 100}},
}

// lookAndRecord does the work of one call: the check, the ticket, the result.
func lookAndRecord(b *breaker.Breaker, now time.Time, r breaker.Result) bool {
	if !b.Closed() {
		return false
	}
	ticket, ok := b.Take(now)
	if ok {
		b.Record(ticket, r, now)
	}
	return ok
}

func BenchmarkClosed(b *testing.B) {
	for _, c := range benchConfigs {
		b.Run(c.name+"/result=success", func(b *testing.B) {
			br := newBreaker(b, c.config, nil)
			now := time.Now()
			b.ReportAllocs()
			for b.Loop() {
				if !lookAndRecord(br, now, success) {
					b.Fatal("refused")
				}
			}
		})
	}
	// A failure and a success in turn: what recording costs when it is needed.
	b.Run("count=row/result=both", func(b *testing.B) {
		br := newBreaker(b, breaker.Config{}, nil)
		now := time.Now()
		b.ReportAllocs()
		for b.Loop() {
			lookAndRecord(br, now, failure)
			lookAndRecord(br, now, success)
		}
	})
}

func BenchmarkClosedParallel(b *testing.B) {
	for _, c := range benchConfigs {
		b.Run(c.name+"/result=success", func(b *testing.B) {
			br := newBreaker(b, c.config, nil)
			now := time.Now()
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					lookAndRecord(br, now, success)
				}
			})
		})
	}
}

func BenchmarkOpen(b *testing.B) {
	br := newBreaker(b, breaker.Config{}, nil)
	now := time.Now()
	br.Trip(errDown, time.Hour, now)
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := br.Take(now); ok || br.Delay(now) == 0 || br.Cause() == nil {
			b.Fatal("not refused")
		}
	}
}
