package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/headway-go/headway/limiter"
)

// A looker is a stub that reads the host, so that the cost of fetching the request from
// memory is not charged to the subject above it.
type looker struct {
	stub
	seen int
}

func (s *looker) RoundTrip(req *http.Request) (*http.Response, error) {
	s.seen += int(req.URL.Host[len(req.URL.Host)-1])
	return s.stub.RoundTrip(req)
}

// net are the metrics of netOps.
var net = []metric{{name: "ns", digits: 1}, {name: "net ns", digits: 1, ratio: true}, {name: "allocs", digits: 1}}

// netOps measures trips to a number of hosts in random order, and the same trips over the
// bare base: the difference is the cost of the decision.
func netOps(hosts int, over func(base http.RoundTripper) http.RoundTripper) func(*options) func() []float64 {
	return func(o *options) func() []float64 {
		requests := make([]*http.Request, hosts)
		for i := range requests {
			requests[i] = newRequest(fmt.Sprintf("https://h%06d.example.com/v1/items", i))
		}
		rand.New(rand.NewPCG(1, 2)).Shuffle(hosts, func(i, j int) { requests[i], requests[j] = requests[j], requests[i] })
		trip := func(rt http.RoundTripper) operation {
			next := 0
			return func(n int) {
				for range n {
					rt.RoundTrip(requests[next])
					if next++; next == hosts {
						next = 0
					}
				}
			}
		}
		base := &looker{stub: stub{okResponse()}}
		bare, with := trip(base), trip(over(base))
		with(2 * hosts) // so that every host is known
		n := calibrate(with, o.each, cpuTime)
		return func() []float64 {
			floor, _, _ := perOperation(bare, n, cpuTime)
			ns, allocs, _ := perOperation(with, n, cpuTime)
			return []float64{ns, ns - floor, allocs}
		}
	}
}

// scaleRows show how the cost of a decision grows.
func scaleRows() []row {
	return []row{hostsRow(), limitsRow("bucket", bucketOf), limitsRow("window", windowOf)}
}

func hostsRow() row {
	r := row{
		name: "scale/hosts", procs: 1, rounds: rounds, metrics: net,
		about: "RoundTrip over a stub, the hosts in disorder, one Bucket for each. Net of the bare stub with the same requests; the ratio is to that of ours with one host.",
	}
	for _, hosts := range []int{1, 10, 1000, 100_000} {
		kind := ours
		if hosts == 1 {
			kind = floor
		}
		r.subjects = append(r.subjects, subject{fmt.Sprintf("Headway, hosts: %s", number(float64(hosts), 0)), kind,
			netOps(hosts, func(base http.RoundTripper) http.RoundTripper { return headwayOver(base, 2*hosts, ampleBucket) })})
	}
	for _, hosts := range []int{1, 10, 1000, 100_000} {
		r.subjects = append(r.subjects, subject{fmt.Sprintf("hand-written (x/time/rate, gobreaker), hosts: %s", number(float64(hosts), 0)), extra,
			netOps(hosts, func(base http.RoundTripper) http.RoundTripper {
				return &guarded{base: base, limit: ample, burst: ample}
			})})
	}
	r.goals = []goal{{"Headway, hosts: 1,000", "net ns", "Headway, hosts: 1", 2}}
	return r
}

// bucketOf and windowOf are the k-th of several limits that admit everything.
func bucketOf(k int) limiter.Limit {
	return limiter.Limit{N: ample, Per: time.Duration(k) * time.Second, Burst: ample, Law: limiter.Bucket}
}

func windowOf(k int) limiter.Limit {
	return limiter.Limit{N: int64(k) * 1000, Per: time.Duration(k) * 10 * time.Microsecond}
}

func limitsRow(law string, of func(k int) limiter.Limit) row {
	r := row{
		name: "scale/limits/" + law, procs: 1, rounds: rounds, metrics: net,
		about: "RoundTrip over a stub, one host, a request under several limits of one law. Net of the bare stub; the ratio is to one limit. " +
			"The peer asks as many limiters one after another, without taking from all or none.",
	}
	var last string
	for _, k := range []int{1, 2, 3, 4, 6, 8} {
		var limits []limiter.Limit
		for i := range k {
			limits = append(limits, of(i+1))
		}
		kind := ours
		if k == 1 {
			kind = floor
		}
		last = fmt.Sprintf("Headway, limits: %d", k)
		r.subjects = append(r.subjects, subject{last, kind,
			netOps(1, func(base http.RoundTripper) http.RoundTripper { return headwayOver(base, 0, limits...) })})
		r.goals = append(r.goals, goal{last, "net ns", "Headway, limits: 1", float64(k)})
	}
	r.goals = append(r.goals[1:], goal{last, "allocs", "", 0})
	for _, k := range []int{1, 8} {
		r.subjects = append(r.subjects, subject{fmt.Sprintf("hand-written (x/time/rate alone), limits: %d", k), extra,
			netOps(1, func(base http.RoundTripper) http.RoundTripper {
				for range k {
					base = &perHost{base: base, limit: ample, burst: ample}
				}
				return base
			})})
	}
	return r
}
