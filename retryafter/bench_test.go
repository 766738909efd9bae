package retryafter_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headway-go/headway/retryafter"
)

// ordinary is a response of ten headers that say nothing of limits.
func ordinary(more ...string) http.Header {
	h := http.Header{}
	for _, name := range []string{
		"Content-Type", "Content-Length", "Date", "Server", "Cache-Control",
		"Etag", "X-Request-Id", "Strict-Transport-Security", "Vary", "X-Content-Type-Options",
	} {
		h.Set(name, "ordinary")
	}
	h.Set("Date", "Sat, 14 Mar 2026 15:09:26 GMT")
	for i := 0; i+1 < len(more); i += 2 {
		h.Add(more[i], more[i+1])
	}
	return h
}

var readings = []struct {
	name   string
	status int
	h      http.Header
}{
	{"headers=none", 200, ordinary()},
	{"headers=x-ratelimit", 200, ordinary("X-RateLimit-Limit", "5000", "X-RateLimit-Remaining", "4987", "X-RateLimit-Reset", "1773502800")},
	{"headers=x-ratelimit-delta", 200, ordinary("X-RateLimit-Limit", "5000", "X-RateLimit-Remaining", "4987", "X-RateLimit-Reset", "60")},
	{"headers=github", 200, ordinary("X-RateLimit-Limit", "5000", "X-RateLimit-Remaining", "4987", "X-RateLimit-Reset", "1773502800",
		"X-RateLimit-Used", "13", "X-RateLimit-Resource", "core", "X-GitHub-Request-Id", "C0:1")},
	{"headers=structured", 200, ordinary("RateLimit", `"default";r=50;t=30`, "RateLimit-Policy", `"default";q=100;w=60`)},
	{"headers=retry-after", 429, ordinary("Retry-After", "120")},
	{"headers=retry-date", 503, ordinary("Retry-After", "Sat, 14 Mar 2026 15:10:56 GMT")},
	{"headers=openai", 200, ordinary(
		"x-ratelimit-limit-requests", "3000", "x-ratelimit-remaining-requests", "2999", "x-ratelimit-reset-requests", "20ms",
		"x-ratelimit-limit-tokens", "250000", "x-ratelimit-remaining-tokens", "249989", "x-ratelimit-reset-tokens", "2ms")},
}

// BenchmarkFloor is the floor for the other benchmarks: one reading of the clock and one
// compare-and-swap.
func BenchmarkFloor(b *testing.B) {
	var last atomic.Int64
	for b.Loop() {
		n := time.Now().UnixNano()
		last.CompareAndSwap(last.Load(), n)
	}
}

func BenchmarkRead(b *testing.B) {
	now := time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
	for _, r := range readings {
		b.Run(r.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s := retryafter.Read(r.status, r.h, now)
				if s.NoRetry {
					b.Fatal("never")
				}
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	now := time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
	for _, v := range []string{"120", "Sat, 14 Mar 2026 15:10:56 GMT"} {
		b.Run(v, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				retryafter.Parse(v, now)
			}
		})
	}
}
