package main

import (
	"net/http"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/retry"
)

// overRetries sends one request that succeeds at once, again and again, through the
// client that over puts around Headway, net of Headway alone.
func overRetries(over func(*headway.Transport) http.RoundTripper) func(*options) func() []float64 {
	return func(o *options) func() []float64 {
		req := newRequest("https://api.example.com/v1/items")
		loop := func(rt http.RoundTripper) operation {
			return func(n int) {
				for range n {
					rt.RoundTrip(req)
				}
			}
		}
		next := headwayOver(newStub(), 0, ampleBucket).(*headway.Transport)
		alone, whole := loop(next), loop(over(next))
		n := calibrate(whole, o.each/2, cpuTime)
		return func() []float64 {
			ns, allocs, _ := perOperation(whole, n, cpuTime)
			less, _, _ := perOperation(alone, n, cpuTime)
			return []float64{ns, ns - less, allocs}
		}
	}
}

func retryRows() []row {
	us, clock := "Headway retry", clockFloor.name
	return []row{{
		name: "retry/first try", procs: 1, rounds: rounds,
		about:   "RoundTrip of a retrying client, over Headway with one Bucket over a stub that responds with 200: a success at the first attempt. Net of Headway alone, measured beside it.",
		metrics: []metric{{name: "ns", digits: 1}, {name: "net ns", digits: 1, ratio: true}, {name: "allocs", digits: 1}},
		subjects: []subject{
			{clock, floor, func(o *options) func() []float64 {
				measure := ops(clockAndCAS)(o)
				return func() []float64 {
					v := measure()
					return []float64{v[0], v[0], v[1]}
				}
			}},
			{us, ours, overRetries(func(next *headway.Transport) http.RoundTripper {
				return must(retry.New(next, retry.Config{}))
			})},
			{"go-retryablehttp StandardClient", peer, overRetries(func(next *headway.Transport) http.RoundTripper {
				return retryableOver(next).StandardClient().Transport
			})},
		},
		goals: []goal{{us, "net ns", clock, 2.5}, {us, "allocs", "", 2}},
	}}
}
