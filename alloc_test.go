package headway_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/breaker"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/retryafter"
)

// left are headers that say that much is left.
func left(limit, remaining, reset string) http.Header {
	return http.Header{limit: {"1000000000"}, remaining: {"999999999"}, reset: {"60"}}
}

// of adds to headers the resource that they are about.
func of(resource string, h http.Header) http.Header {
	h["X-Ratelimit-Resource"] = []string{resource}
	return h
}

// What starts at once allocates nothing.
func TestAllocNothing(t *testing.T) {
	if headway.RaceEnabled {
		return // the race detector allocates by itself; make test runs this without it too
	}
	const much = 1_000_000
	second := func(law limiter.Law) limiter.Limit { return limiter.Limit{N: much, Per: time.Second, Law: law} }
	calendar := limiter.Limit{N: much, Law: limiter.Calendar, Unit: limiter.Day}
	window := limiter.Limit{N: 100, Per: time.Microsecond} // a start is forgotten before the next
	header := headway.Rule{Name: "header", Limit: second(limiter.Bucket), Key: headway.ByHeader("Tenant")}
	callKey := headway.Rule{Name: "call", Limit: second(limiter.Bucket), Key: headway.FromCallKey}
	path := headway.Rule{Name: "path", Limit: second(limiter.Bucket), Methods: []string{"GET"}, Path: "/v1/{kind}/{rest...}"}
	first := headway.Rule{Name: "first", Limit: second(limiter.Bucket), FirstAttemptOnly: true}
	for name, tc := range map[string]struct {
		policy headway.Policy
		ask    ask
		says   http.Header // in the answer
	}{
		"no limit":             {policy: headway.Policy{}},
		"one window":           {policy: headway.Policy{Limits: []limiter.Limit{window}}},
		"one bucket":           {policy: headway.Policy{Limits: []limiter.Limit{second(limiter.Bucket)}}},
		"one sliding":          {policy: headway.Policy{Limits: []limiter.Limit{second(limiter.Sliding)}}},
		"one spaced":           {policy: headway.Policy{Limits: []limiter.Limit{{N: 1, Per: 1, Law: limiter.Spaced}}}},
		"one calendar":         {policy: headway.Policy{Limits: []limiter.Limit{calendar}}},
		"a calendar elsewhere": {policy: headway.Policy{Limits: []limiter.Limit{{N: much, Law: limiter.Calendar, Unit: limiter.Month, Location: time.FixedZone("x", 3600)}}}},
		"one strict":           {policy: headway.Policy{Limits: []limiter.Limit{{N: 100, Per: time.Microsecond, Strict: true}}}},
		"four limits":          {policy: headway.Policy{Limits: []limiter.Limit{window, second(limiter.Bucket), second(limiter.Sliding), calendar}}},
		"a header's key":       {policy: headway.Policy{Rules: []headway.Rule{header}}, ask: ask{header: http.Header{"Tenant": {"a"}}}},
		"a call's key":         {policy: headway.Policy{Rules: []headway.Rule{callKey}}, ask: key("a")},
		"a rule's path":        {policy: headway.Policy{Rules: []headway.Rule{path}}, ask: ask{url: "https://api.test/v1/chat/x/y"}},
		"keys, path and limit": {policy: headway.Policy{Rules: []headway.Rule{header, callKey, path}, Limits: []limiter.Limit{window}}, ask: ask{
			url: "https://api.test/v1/chat/x/y", header: http.Header{"Tenant": {"a"}}, call: headway.Call{Key: "a"},
		}},
		"a first attempt":         {policy: headway.Policy{Rules: []headway.Rule{first}}},
		"a retry":                 {policy: headway.Policy{Rules: []headway.Rule{first}}, ask: attempt(1)},
		"three headers":           {policy: headway.Policy{Limits: []limiter.Limit{window}}, says: left("X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset")},
		"three headers and a key": {policy: headway.Policy{Rules: []headway.Rule{callKey}}, ask: key("a"), says: left("X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset")},
		"a rule's headers":        {policy: headway.Policy{Rules: []headway.Rule{{Name: "calls", Announced: "requests", Limit: window}}}, says: left("X-Ratelimit-Limit-Requests", "X-Ratelimit-Remaining-Requests", "X-Ratelimit-Reset-Requests")},
		"a structured field":      {policy: headway.Policy{Limits: []limiter.Limit{window}}, says: http.Header{"Ratelimit": {`"default";r=999999999;t=60`}, "Ratelimit-Policy": {`"default";q=1000000000;w=60`}}},
		"a resource":              {policy: headway.Policy{Hosts: []string{"*"}, Limits: []limiter.Limit{window}}, ask: get("https://api.github.com/search/code"), says: of("search", left("X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"))},
		"a resource and a key":    {policy: headway.Policy{Rules: []headway.Rule{callKey}}, ask: key("a"), says: of("search", left("X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"))},
		"an endpoint":             {policy: headway.Policy{Hosts: []string{"*"}, Limits: []limiter.Limit{window}}, ask: get("https://api.x.com/2/users/12/tweets"), says: left("X-Rate-Limit-Limit", "X-Rate-Limit-Remaining", "X-Rate-Limit-Reset")},
		"a wait budget":           {policy: headway.Policy{Limits: []limiter.Limit{window}, MaxWait: time.Second}},
		"a shared one":            {policy: headway.Policy{Limits: []limiter.Limit{window}, Shared: true}},
		"a breaker":               {policy: headway.Policy{Limits: []limiter.Limit{window}, Breaker: &breaker.Config{}}},
		"a rate breaker":          {policy: headway.Policy{Limits: []limiter.Limit{window}, Breaker: &breaker.Config{Rate: 0.5}}},
		"breakers, shared":        {policy: headway.Policy{Limits: []limiter.Limit{window}, Shared: true, Breaker: &breaker.Config{}}},
		"a breaker and keys": {policy: headway.Policy{Rules: []headway.Rule{header, callKey, path}, Breaker: &breaker.Config{}}, ask: ask{
			url: "https://api.test/v1/chat/x/y", header: http.Header{"Tenant": {"a"}}, call: headway.Call{Key: "a"},
		}},
		"a breaker and three headers":        {policy: headway.Policy{Limits: []limiter.Limit{window}, Breaker: &breaker.Config{}}, says: left("X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset")},
		"a breaker, three headers and a key": {policy: headway.Policy{Rules: []headway.Rule{callKey}, Breaker: &breaker.Config{}}, ask: key("a"), says: left("X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset")},
		"a breaker, not listening":           {policy: headway.Policy{Limits: []limiter.Limit{window}, Breaker: &breaker.Config{}, Server: headway.Server{Dialects: []retryafter.Dialect{retryafter.None}}}},
		"a table of one's own": {policy: headway.Policy{Breaker: &breaker.Config{}, Classify: func(*http.Request, *http.Response, error) breaker.Outcome {
			return breaker.Success
		}}},
		"another host": {policy: headway.Policy{Hosts: []string{"other.test"}}},
		"a bypass":     {policy: headway.Policy{}, ask: ask{call: headway.Call{Bypass: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.policy.Hosts == nil {
				tc.policy.Hosts = []string{"api.test"}
			}
			req := tc.ask.request("x")
			resp := ok(req)
			if tc.says != nil {
				resp.Header = tc.says
			}
			var tr *headway.Transport
			for what, observer := range map[string]headway.Observer{"an": headway.ObserverFunc(func(context.Context, headway.Event) {}), "no": nil} {
				tr = newTransport(t, roundTripper(func(*http.Request) (*http.Response, error) { return resp, nil }), headway.Config{
					Policies: []headway.Policy{tc.policy}, Observer: observer,
				})
				n := testing.AllocsPerRun(2000, func() {
					if _, err := tr.RoundTrip(req); err != nil {
						t.Error(err)
					}
				})
				if n > 0 {
					t.Errorf("RoundTrip with %s observer: got %v allocations, want none", what, n)
				}
			}
			n := testing.AllocsPerRun(2000, func() {
				if _, err := tr.Delay(req); err != nil {
					t.Error(err)
				}
			})
			if n > 0 {
				t.Errorf("Delay: got %v allocations, want none", n)
			}
		})
	}
}
