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

// A Vendor is a service that counts what arrives, by its own clock, and answers
// 429 to what is too much. It is an http.RoundTripper, the one to use in a
// synctest bubble, and an http.Handler for a real server. The zero Vendor
// answers every request with 200 at once. Set its fields before the first
// request; then any number of goroutines may use it. It has no goroutine of its
// own.
type Vendor struct {
	// Limits apply to every request, which costs one unit of each. Every host
	// has budgets of its own. A request that one budget has no room for is
	// refused, and counts nowhere. What counts is the arrival, so that
	// Limit.Strict makes no difference here. An invalid limit panics. None:
	// everything is let in.
	Limits []limiter.Limit
	// Rules apply to the requests that they match, as those of a headway.Policy:
	// by method and path, with a budget for each host and key, at their cost. A
	// request whose Key or Cost fails does not count there; Name and Settle mean
	// nothing. FromCallKey and FromCallCost work without a real server only.
	Rules []headway.Rule
	// Shared makes all hosts spend the same budgets.
	Shared bool

	// Latency is how long the network takes, in each direction; zero is no time.
	// Where MaxLatency is longer, every time is drawn evenly from between both,
	// the same times for the same Seed. A request whose context ends on the way
	// does not arrive.
	Latency, MaxLatency time.Duration
	// Seed is what the latencies are drawn with.
	Seed uint64
	// NoRetryAfter leaves Retry-After out of the 429s. Otherwise it says when
	// there will be room, in whole seconds, rounded up; there is none where
	// there never will be.
	NoRetryAfter bool

	// Script decides the answers, one call for each arrival. The Reply is what
	// the limits say, 200 or 429, for Script to change. It may read the request's
	// body. It runs in the request's goroutine, several at once, and no lock is
	// held. Nil leaves the answers as they are.
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
	// Wait is zero for a request within the limits. For one that they refuse it
	// is the time until they had room if nothing else arrived, and limiter.Never
	// where that is no matter of time.
	Wait time.Duration
	// Request is what arrived. It may be kept until Script returns.
	Request *http.Request
}

// RoundTrip plays the network and the service. It answers as the limits and
// Script say; it returns the context's error where that ends first.
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

// ServeHTTP plays the service behind a real server; latencies come on top of the
// network's. Where there is to be no answer it cuts the connection.
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
// refused, whatever Script made of it.
func (v *Vendor) Count() (arrived, refused int) {
	log := v.arrivals()
	return len(log), marked(log)
}

// NoRefusals fails the test if the limits have refused a request, and shows
// which, in time since the first arrival.
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

// serve takes a request there and its answer back. An error is that there is no
// answer.
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
