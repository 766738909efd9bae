package main

import (
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"time"

	"github.com/headway-go/headway/limiter"
)

// idle measures the memory of hosts after one request to each.
func idle(over func(base http.RoundTripper, hosts int) http.RoundTripper) func(*options) func() []float64 {
	return func(o *options) func() []float64 {
		return func() []float64 {
			hosts := make([]string, o.scale(1_000_000)) // their text is not counted for any subject
			for i := range hosts {
				hosts[i] = fmt.Sprintf("h%07d.example.com", i)
			}
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			rt, req := over(newStub(), len(hosts)), newRequest("https://example.com/")
			for _, h := range hosts {
				req.URL.Host = h
				must(rt.RoundTrip(req))
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			var wall, cpu []float64
			for range 5 {
				begin, used := time.Now(), cpuTime()
				runtime.GC()
				wall = append(wall, time.Since(begin).Seconds()*1000)
				cpu = append(cpu, (cpuTime()-used).Seconds()*1000)
			}
			runtime.KeepAlive(rt)
			runtime.KeepAlive(hosts)
			slices.Sort(wall)
			slices.Sort(cpu)
			return []float64{
				float64(after.HeapAlloc-before.HeapAlloc) / float64(len(hosts)),
				quantile(wall, 0.5), quantile(cpu, 0.5),
			}
		}
	}
}

func idleRows() []row {
	const xRate = "sync.Map of x/time/rate"
	const one, window, bounded = "Headway, one Bucket", "Headway, one Window", "Headway, MaxHosts 100,000"
	const hand = "hand-written: x/time/rate and gobreaker"
	return []row{{
		name: "idle/1,000,000 hosts", procs: 2, most: 3, alone: true,
		about: "One request to each of 1,000,000 hosts, then nothing. Bytes of heap per host, without its name; and a full garbage collection: by the clock and in processor time. " +
			"Neither peer ever drops a host. The bounded one has a limit of 10^9 per s, so that hosts can be forgotten at once.",
		metrics: []metric{{name: "bytes per host"}, {name: "GC ms"}, {name: "GC CPU ms", ratio: true}},
		subjects: []subject{
			{xRate, floor, idle(func(base http.RoundTripper, _ int) http.RoundTripper {
				return &perHost{base: base, limit: 50, burst: 50}
			})},
			{hand, peer, idle(func(base http.RoundTripper, _ int) http.RoundTripper {
				return &guarded{base: base, limit: 50, burst: 50}
			})},
			{one, ours, idle(func(base http.RoundTripper, hosts int) http.RoundTripper {
				return headwayOver(base, hosts, limiter.Limit{N: 50, Per: time.Second, Law: limiter.Bucket})
			})},
			{window, ours, idle(func(base http.RoundTripper, hosts int) http.RoundTripper {
				return headwayOver(base, hosts, limiter.PerSecond(50))
			})},
			{bounded, extra, idle(func(base http.RoundTripper, hosts int) http.RoundTripper {
				return headwayOver(base, hosts/10, ampleBucket)
			})},
		},
		goals: []goal{
			{one, "bytes per host", "", 202}, {window, "bytes per host", "", 202},
			{one, "GC ms", xRate, 1}, {window, "GC ms", xRate, 1},
			{bounded, "bytes per host", one, 0.11},
		},
	}}
}
