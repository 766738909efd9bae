package main

import (
	"net/http"
	"sync"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/failsafe-go/failsafe-go/ratelimiter"
	githubrate "github.com/gofri/go-github-ratelimit/v2/github_ratelimit"
	"github.com/hashicorp/go-retryablehttp"
	"github.com/sony/gobreaker/v2"
	"golang.org/x/time/rate"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/breaker"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/retryafter"
)

// A stub returns the same response to every request at once.
type stub struct{ resp *http.Response }

func newStub() http.RoundTripper { return &stub{okResponse()} }

func okResponse() *http.Response {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody}
}

func (s *stub) RoundTrip(*http.Request) (*http.Response, error) { return s.resp, nil }

// headwayOver returns Headway over base, with limits for every host.
func headwayOver(base http.RoundTripper, maxHosts int, limits ...limiter.Limit) http.RoundTripper {
	return must(headway.NewTransport(base, headway.Config{
		MaxHosts: maxHosts,
		Policies: []headway.Policy{{Hosts: []string{"*"}, Limits: limits}},
	}))
}

// guardedHeadway is headwayOver with a breaker for each host. Only the breaker reads
// responses, as with its peer.
func guardedHeadway(base http.RoundTripper) http.RoundTripper {
	return must(headway.NewTransport(base, headway.Config{Policies: []headway.Policy{{
		Hosts: []string{"*"}, Limits: []limiter.Limit{ampleBucket}, Breaker: &breaker.Config{},
		Server: headway.Server{Dialects: []retryafter.Dialect{retryafter.None}},
	}}}))
}

// notListening is headwayOver without reading responses.
func notListening(base http.RoundTripper, limits ...limiter.Limit) http.RoundTripper {
	return must(headway.NewTransport(base, headway.Config{Policies: []headway.Policy{{
		Hosts: []string{"*"}, Limits: limits, Server: headway.Server{Dialects: []retryafter.Dialect{retryafter.None}},
	}}}))
}

// threeHeaders are the headers that most servers send to announce what is left.
func threeHeaders() http.Header {
	h := http.Header{}
	h.Set("X-RateLimit-Limit", "1000000000")
	h.Set("X-RateLimit-Remaining", "999999999")
	h.Set("X-RateLimit-Reset", "60")
	return h
}

// perHost is the usual hand-written transport: a limiter for each host.
type perHost struct {
	base  http.RoundTripper
	limit rate.Limit
	burst int
	hosts sync.Map // of *rate.Limiter by host
}

func (t *perHost) RoundTrip(req *http.Request) (*http.Response, error) {
	l, ok := t.hosts.Load(req.URL.Host)
	if !ok {
		l, _ = t.hosts.LoadOrStore(req.URL.Host, rate.NewLimiter(t.limit, t.burst))
	}
	if err := l.(*rate.Limiter).Wait(req.Context()); err != nil {
		return nil, err
	}
	return t.base.RoundTrip(req)
}

// guarded is perHost with a breaker for each host.
type guarded struct {
	base  http.RoundTripper
	limit rate.Limit
	burst int
	hosts sync.Map // of *guardedHost by host
}

type guardedHost struct {
	limiter *rate.Limiter
	breaker *gobreaker.CircuitBreaker[*http.Response]
}

func (t *guarded) RoundTrip(req *http.Request) (*http.Response, error) {
	loaded, ok := t.hosts.Load(req.URL.Host)
	if !ok {
		loaded, _ = t.hosts.LoadOrStore(req.URL.Host, &guardedHost{
			rate.NewLimiter(t.limit, t.burst),
			gobreaker.NewCircuitBreaker[*http.Response](gobreaker.Settings{Name: req.URL.Host}),
		})
	}
	h := loaded.(*guardedHost)
	if err := h.limiter.Wait(req.Context()); err != nil {
		return nil, err
	}
	return h.breaker.Execute(func() (*http.Response, error) { return t.base.RoundTrip(req) })
}

// failsafeOver is failsafehttp with a retry policy, a breaker and a limiter, in
// the order that its documentation gives. All hosts share them.
func failsafeOver(base http.RoundTripper) http.RoundTripper {
	return failsafehttp.NewRoundTripper(base,
		failsafehttp.NewRetryPolicyBuilder().Build(),
		circuitbreaker.NewWithDefaults[*http.Response](),
		failsafe.Policy[*http.Response](ratelimiter.NewSmooth[*http.Response](ample, time.Second)),
	)
}

func retryableOver(base http.RoundTripper) *retryablehttp.Client {
	c := retryablehttp.NewClient()
	c.HTTPClient = &http.Client{Transport: base}
	c.Logger = nil
	return c
}

func newRequest(url string) *http.Request { return must(http.NewRequest(http.MethodGet, url, nil)) }

// trips sends one request again and again.
func trips(over func(base http.RoundTripper) http.RoundTripper) func() operation {
	return func() operation {
		rt, req := over(newStub()), newRequest("https://api.example.com/v1/items")
		return func(n int) {
			for range n {
				rt.RoundTrip(req)
			}
		}
	}
}

var ampleBucket = limiter.Limit{N: ample, Per: time.Second, Law: limiter.Bucket}

var ampleForAll = []headway.Policy{{Hosts: []string{"*"}, Limits: []limiter.Limit{ampleBucket}}}

func transportRows() []row {
	const hand = "hand-written: x/time/rate and gobreaker per host"
	const guardedName = "Headway, one Bucket and a breaker, not listening"
	return []row{{
		name: "transport/stub", procs: 1, rounds: rounds, metrics: perOp,
		about: "RoundTrip over a stub, one host, a policy for each host with one limit, always granted at once. " +
			"go-github-ratelimit and go-retryablehttp have no limit to ask; they are what stands in such a place otherwise.",
		subjects: []subject{
			{"floor: the bare stub", floor, ops(trips(func(base http.RoundTripper) http.RoundTripper { return base }))},
			{"Headway, one Bucket", ours, ops(trips(func(base http.RoundTripper) http.RoundTripper {
				return headwayOver(base, 0, ampleBucket)
			}))},
			{guardedName, ours, ops(trips(guardedHeadway))},
			{"Headway, one Window", extra, ops(trips(func(base http.RoundTripper) http.RoundTripper {
				return headwayOver(base, 0, limiter.Limit{N: 10_000, Per: 100 * time.Microsecond})
			}))},
			{"Headway, one Bucket, not listening", extra, ops(trips(func(base http.RoundTripper) http.RoundTripper {
				return notListening(base, ampleBucket)
			}))},
			{"Headway, one Bucket, three headers in the response", extra, ops(trips(func(base http.RoundTripper) http.RoundTripper {
				base.(*stub).resp.Header = threeHeaders()
				return headwayOver(base, 0, ampleBucket)
			}))},
			{hand, peer, ops(trips(func(base http.RoundTripper) http.RoundTripper {
				return &guarded{base: base, limit: ample, burst: ample}
			}))},
			{"hand-written: x/time/rate per host, no breaker", peer, ops(trips(func(base http.RoundTripper) http.RoundTripper {
				return &perHost{base: base, limit: ample, burst: ample}
			}))},
			{"failsafehttp: retry, breaker, limiter", peer, ops(trips(failsafeOver))},
			{"go-retryablehttp", extra, ops(trips(func(base http.RoundTripper) http.RoundTripper {
				return &retryablehttp.RoundTripper{Client: retryableOver(base)}
			}))},
			{"go-github-ratelimit", extra, ops(trips(func(base http.RoundTripper) http.RoundTripper {
				return githubrate.New(base)
			}))},
		},
		goals: []goal{
			{"Headway, one Bucket", "ns", hand, 0.32},
			{"Headway, one Bucket", "allocs", "", 0},
			{guardedName, "ns", hand, 0.35},
			{guardedName, "allocs", "", 0},
			{"Headway, one Bucket, three headers in the response", "ns", hand, 0.85},
			{"Headway, one Bucket, three headers in the response", "allocs", "", 0},
		},
	}}
}
