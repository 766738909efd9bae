package redis_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/headway-go/headway"
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

// The time from the return of the base to the return of RoundTrip, which a response pays for what
// it announces: in memory, and over a server.
func BenchmarkResponse(b *testing.B) {
	for name, lines := range map[string][]string{
		"nothing":    nil,
		"two-limits": {"X-Ratelimit-Limit-Requests", "5000", "X-Ratelimit-Remaining-Requests", "4000", "X-Ratelimit-Reset-Requests", "1m0s", "X-Ratelimit-Limit-Tokens", "500000", "X-Ratelimit-Remaining-Tokens", "400000", "X-Ratelimit-Reset-Tokens", "1m0s"},
	} {
		for _, kind := range []string{"memory", "redis"} {
			b.Run("announces="+name+"/over="+kind, func(b *testing.B) {
				header := http.Header{}
				for i := 0; i < len(lines); i += 2 {
					header.Set(lines[i], lines[i+1])
				}
				var back time.Time
				base := roundTripper(func(req *http.Request) (*http.Response, error) {
					resp := &http.Response{StatusCode: 200, Header: header, Body: http.NoBody, Request: req}
					back = time.Now()
					return resp, nil
				})
				cfg := headway.Config{Policies: []headway.Policy{{Hosts: []string{"*"}, Limits: []limiter.Limit{limiter.PerSecond(100_000)}}}}
				if kind == "redis" {
					cfg.Store, cfg.Secret = open(b, connect(b, server.Start(b).Addr), nil), []byte("secret")
				}
				t, err := headway.NewTransport(base, cfg)
				if err != nil {
					b.Fatal(err)
				}
				req, err := http.NewRequest("GET", "http://api.test/", nil)
				if err != nil {
					b.Fatal(err)
				}
				ways := make([]time.Duration, 0, 1000)
				for b.Loop() {
					if _, err := t.RoundTrip(req); err != nil {
						b.Fatal(err)
					}
					ways = append(ways, time.Since(back))
				}
				slices.Sort(ways)
				b.ReportMetric(float64(ways[len(ways)/2].Nanoseconds()), "ns/response")
				b.ReportMetric(float64(ways[len(ways)*99/100].Nanoseconds()), "p99-ns/response")
			})
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
