package headwaytest

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
)

// A Vendor is a service that counts arrivals by its own clock, and responds with
// 429 to those above its limits. It is an http.RoundTripper, for use in a synctest
// bubble, and an http.Handler for a real server. The zero Vendor responds to every
// request with 200 immediately. Set its fields before the first request; after that
// it is safe for concurrent use. It starts no goroutine.
type Vendor struct {
	// Limits apply to every request, which costs one unit of each. Every host has
	// budgets of its own. A request that one of its budgets has no room for is
	// refused, and counts in none. Arrivals are counted, so Limit.Strict has no
	// effect. An invalid limit panics. Without limits everything is admitted.
	Limits []limiter.Limit
	// Rules apply to the requests that they match, like those of a headway.Policy:
	// by method and path, with a budget for each host and key, at their cost. A
	// request whose Key or Cost fails does not count; Name and Settle have no
	// effect. FromCallKey and FromCallCost need the request's context, which a real
	// server does not receive.
	Rules []headway.Rule
	// Shared lets all hosts spend the same budgets.
	Shared bool

	// Latency is how long the network takes in each direction. If MaxLatency is
	// longer, each latency is drawn uniformly between the two, in the same sequence
	// for the same Seed. A request whose context ends on the way does not arrive.
	Latency, MaxLatency time.Duration
	// Seed is what the latencies are drawn with.
	Seed uint64
	// NoRetryAfter omits Retry-After from the 429s. Otherwise it says when there
	// will be room, in whole seconds, rounded up; it is always omitted if there
	// never will be.
	NoRetryAfter bool

	// Script, unless nil, is called once for each arrival, with the Reply that the
	// limits give, 200 or 429, for it to change. It may read the request's body. It
	// is called concurrently, in the goroutine of the request, with no lock held.
	Script func(Arrival, *Reply)

	mu      sync.Mutex // guards following fields
	random  *rand.Rand
	budgets map[account]*budget
	log     []entry
	first   time.Time // when the first of log arrived
}

// An Arrival is a request that reached the Vendor.
type Arrival struct {
	// N counts the arrivals at this Vendor, from 0.
	N int
	// At is when it arrived.
	At time.Time
	// Wait is zero for a request within the limits. For a refused request it is the
	// time until there would be room if nothing else arrived, or limiter.Never.
	Wait time.Duration
	// Request is the request that arrived. It is valid until Script returns.
	Request *http.Request
}

// RoundTrip plays the network and the service: it returns what the limits and
// Script decide, or the error of the request's context if that ends first.
func (v *Vendor) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		defer req.Body.Close()
	}
	if req.URL == nil || req.URL.Host == "" {
		return nil, errors.New("headwaytest: the request has no host")
	}
	r, err := v.serve(req, canonical(req.URL.Scheme, req.URL.Host))
	if err != nil {
		return nil, err
	}
	return r.response(req), nil
}

// ServeHTTP plays the service behind a real server; Latency adds to that of the
// network. If there is no response, it cuts the connection.
func (v *Vendor) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	scheme := "http"
	if req.TLS != nil {
		scheme = "https"
	}
	r, err := v.serve(req, canonical(scheme, req.Host))
	if err == nil {
		err = r.write(w, req)
	}
	if err != nil {
		panic(http.ErrAbortHandler)
	}
}

// Count returns how many requests have arrived, and how many of them the limits
// refused, regardless of Script.
func (v *Vendor) Count() (arrived, refused int) {
	log := v.arrivals()
	return len(log), marked(log)
}

// NoRefusals fails the test if the limits have refused a request, and shows those
// requests, with times since the first arrival.
func (v *Vendor) NoRefusals(t testing.TB) {
	t.Helper()
	log := v.arrivals()
	if refused := marked(log); refused > 0 {
		t.Errorf("headwaytest: %d of %d requests were refused by the vendor's limits:\n%s", refused, len(log), timeline(log))
	}
}

// arrivals returns what has arrived; what was refused is marked.
func (v *Vendor) arrivals() []entry {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.log)
}

// serve carries a request to the service and the reply back. An error means that
// there is no response.
func (v *Vendor) serve(req *http.Request, host string) (*Reply, error) {
	ctx := req.Context()
	if err := sleep(ctx, v.latency()); err != nil {
		return nil, err
	}
	a := v.arrive(req, v.costs(req, host))
	r := &Reply{Status: http.StatusOK, Header: make(http.Header)}
	if a.Wait > 0 {
		r.Status = http.StatusTooManyRequests
		if !v.NoRetryAfter && a.Wait < limiter.Never {
			r.Header.Set("Retry-After", strconv.FormatInt(int64((a.Wait-1)/time.Second+1), 10))
		}
	}
	if v.Script != nil {
		v.Script(a, r)
	}
	if req.Body != nil {
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return nil, err
		}
	}
	if err := r.happen(ctx); err != nil {
		return nil, err
	}
	if err := sleep(ctx, v.latency()); err != nil {
		return nil, err
	}
	return r, r.Err
}

// arrive counts a request in all of its budgets, or in none where one has no
// room.
func (v *Vendor) arrive(req *http.Request, costs []cost) Arrival {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	a := Arrival{N: len(v.log), At: now, Request: req}
	for _, c := range costs {
		a.Wait = max(a.Wait, v.budget(c).wait(now, c.units))
	}
	if a.Wait == 0 {
		for _, c := range costs {
			v.budget(c).take(now, c.units)
		}
	}
	if a.N == 0 {
		v.first = now
	}
	start := startOf(req)
	start.At = now.Sub(v.first)
	v.log = append(v.log, entry{start, a.Wait > 0})
	return a
}

// budget returns the budget that a cost is taken from. v.mu is held.
func (v *Vendor) budget(c cost) *budget {
	b := v.budgets[c.account]
	if b == nil {
		if err := c.limit.Validate(); err != nil {
			panic(fmt.Sprintf("headwaytest: a limit of the Vendor: %v", err))
		}
		if v.budgets == nil {
			v.budgets = make(map[account]*budget)
		}
		b = newBudget(c.limit)
		v.budgets[c.account] = b
	}
	return b
}

// latency draws the time that the network takes in one direction.
func (v *Vendor) latency() time.Duration {
	more := v.MaxLatency - v.Latency
	if more <= 0 {
		return v.Latency
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.random == nil {
		v.random = rand.New(rand.NewPCG(v.Seed, 0))
	}
	return v.Latency + time.Duration(v.random.Int64N(int64(more)+1))
}
