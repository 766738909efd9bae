package retryafter_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headway-go/headway/retryafter"
)

// TestLenient: in every spelling, the intended time is read, never less: in RetryAfter, or
// in Hint if the value is malformed.
// The values are those of opensearch-project/data-prepper 6927 (299.997),
// getsentry/sentry 7919 (292.052427053), SpaceTradersAPI/api-docs 24 (0.493) and
// openclaw/clawhub 407 (an epoch), among others.
func TestLenient(t *testing.T) {
	for _, c := range []struct {
		value string
		want  time.Duration // of Wait; unknown: none
		read  bool          // it is in RetryAfter
	}{
		{"299.997", 299997 * time.Millisecond, true},
		{"292.052427053", 292053 * time.Millisecond, true},
		{"0.493", 493 * time.Millisecond, true},
		{"2.0", 2 * time.Second, true},
		{".5", 500 * time.Millisecond, true},
		{"5.", 5 * time.Second, true},
		{"0.0", 0, true},
		{"60s", time.Minute, false},
		{"60 s", time.Minute, false},
		{"60 seconds", time.Minute, false},
		{"60 Seconds", time.Minute, false},
		{"1 second", time.Second, false},
		{"30.000s", 30 * time.Second, false},
		{"1.5 min", 90 * time.Second, false},
		{"2 minutes", 2 * time.Minute, false},
		{"1m30s", 90 * time.Second, false},
		{"1m 30s", 90 * time.Second, false},
		{"1 minute 30 seconds", 90 * time.Second, false},
		{"1 minute 30 apples", unknown, false},
		{"9999999999999 days 9999999999999 days", 1<<63 - 1, false},
		{"500ms", 500 * time.Millisecond, false},
		{"1h", time.Hour, false},
		{"2 days", 48 * time.Hour, false},
		{`"30"`, 30 * time.Second, false},
		{"'30'", 30 * time.Second, false},
		{"60;", time.Minute, false},
		{"60;foo=bar", time.Minute, false},
		{"300\u00a0", 300 * time.Second, false},
		{"7,5", 7500 * time.Millisecond, false},
		{"1,000", 1000 * time.Second, false},
		{"5,120", 5120 * time.Second, false},
		{"2026-03-14T15:10:26Z", time.Minute, false},
		{"2026-03-14 15:10:26", time.Minute, false},
		{"Sat, 14 Mar 2026 15:10:26 UTC", time.Minute, false},
		{"Sat, 14 Mar 2026 16:10:26 +0100", time.Minute, false},
		{"sat, 14 mar 2026 15:10:26 gmt", time.Minute, false},
		{"Sat,  14 Mar 2026 15:10:26 GMT", time.Minute, false},
		{"Sat, 14-Mar-2026 15:10:26 GMT", time.Minute, false},
		{"1773501011", 45 * time.Second, true},            // an epoch
		{"1773501011.25", 45250 * time.Millisecond, true}, // Python's time() and some seconds
		{"1773500956", 0, true},                           // one that is past
		{"1805123366", 31622400 * time.Second, true},      // 366 days ahead
		{"1805123367", 1805123367 * time.Second, true},    // no longer
		{"1741878565", 1741878565 * time.Second, true},    // more than a year ago
		{"1773501011000", 1<<63 - 1, true},                // milliseconds since 1970: by the letter, seconds
		{"86401", 86401 * time.Second, true},
		{"99999999999999999999", 1<<63 - 1, true},

		{"soon", unknown, false},
		{"-5", unknown, false},
		{"+5", unknown, false},
		{"1e3", unknown, false},
		{"0x1F", unknown, false},
		{"1 20", unknown, false},
		{"5x", unknown, false},
		{"Sat, 14 Mar 2026 11:10:26 EST", unknown, false},
		{"99:99:99", unknown, false},
		{"tomorrow", unknown, false},
		{"", unknown, false},
	} {
		s := retryafter.Read(429, http.Header{"Retry-After": {c.value}}, pi)
		d, ok := s.Wait()
		if ok != (c.want >= 0) || ok && d != c.want {
			t.Errorf("%q: Wait = %v, %v, want %v", c.value, d, ok, c.want)
		}
		if s.HasRetryAfter != c.read || c.read && s.RetryAfter != c.want {
			t.Errorf("%q: RetryAfter = %v, %v", c.value, s.RetryAfter, s.HasRetryAfter)
		}
		if malformed := s.Malformed != ""; malformed == c.read {
			t.Errorf("%q: Malformed = %q", c.value, s.Malformed)
		}
		// Parse reads by the letter.
		if d, ok := retryafter.Parse(c.value, pi); ok && strings.Trim(c.value, "0123456789") != "" {
			t.Errorf("%q: Parse = %v", c.value, d)
		}
	}
}

// TestEpochByTheServersClock: an epoch in Retry-After is near the server's Date, not
// our clock.
func TestEpochByTheServersClock(t *testing.T) {
	server := time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC)
	h := head("Date", server.Format(http.TimeFormat), "Retry-After", "1924992030") // 2031-01-01 00:00:30
	if s := retryafter.Read(429, h, pi); s.RetryAfter != 30*time.Second {
		t.Errorf("got %v", s.RetryAfter)
	}
}

// TestStatuses: not every throttle is a 429.
func TestStatuses(t *testing.T) {
	for _, c := range []struct {
		status    int
		h         http.Header
		throttled bool
		want      time.Duration // of Wait
	}{
		{529, nil, true, unknown},
		{529, head("Retry-After", "300"), true, 300 * time.Second},
		{529, head("x-ratelimit-reset", "9"), true, 9 * time.Second},
		{529, head("Retry-After", "60s"), true, time.Minute},
		{420, nil, false, unknown},
		{420, head("Retry-After", "7"), true, 7 * time.Second},
		{420, head("x-ratelimit-remaining", "0", "x-ratelimit-reset", "9"), true, 9 * time.Second},
		{420, head("x-ratelimit-reset", "9"), false, unknown},
		{420, head("X-ESI-Error-Limit-Remain", "0", "X-ESI-Error-Limit-Reset", "42"), true, 42 * time.Second},
		{509, nil, false, unknown},
		{509, head("X-Retry-After", "11"), true, 11 * time.Second},
		{509, head("Retry-After", "11"), true, 11 * time.Second},
		{503, head("Retry-After", "60 seconds"), true, time.Minute},
		{503, head("Retry-After", "soon"), false, unknown},
		// apache/apisix 9964: the reset is 0 once nothing is left.
		{503, head("X-RateLimit-Limit", "2", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "0"), true, unknown},
		// openai/openai-dotnet 838: Azure's sentinels.
		{429, head("x-ratelimit-limit-tokens", "-1", "x-ratelimit-remaining-tokens", "-1", "x-ratelimit-reset-tokens", "0"), true, unknown},
		// openai/openai-python 937: requests are left, and the tokens say when alone.
		{429, head("x-rate-limit-reset-tokens", "55"), true, 55 * time.Second},
		{429, head("x-rate-limit-reset-tokens", "55", "x-ratelimit-remaining-requests", "59"), true, 55 * time.Second},
		{429, head("x-ratelimit-reset-tokens", "55"), true, 55 * time.Second},
		{413, head("Retry-After", "300"), false, 300 * time.Second},
		{500, head("Retry-After", "3"), false, 3 * time.Second},
		{403, head("Retry-After", "3"), false, 3 * time.Second},
	} {
		s := retryafter.Read(c.status, c.h, pi)
		if s.Throttled != c.throttled {
			t.Errorf("%d %v: Throttled = %v", c.status, c.h, s.Throttled)
		}
		if d, ok := s.Wait(); ok != (c.want >= 0) || ok && d != c.want {
			t.Errorf("%d %v: Wait = %v, %v, want %v", c.status, c.h, d, ok, c.want)
		}
	}
}

// TestNarrowScopes: where a vendor says that an object or an endpoint was refused,
// the others go on.
func TestNarrowScopes(t *testing.T) {
	const (
		lock  = `{"error":{"code":"lock_timeout","message":"This object cannot be accessed right now because another API request or Stripe process is currently accessing it.","type":"invalid_request_error"}}`
		limit = `{"error":{"code":"rate_limit","message":"Request rate limit exceeded.","type":"invalid_request_error"}}`
		gcs   = `{"error":{"code":429,"message":"The object b/o exceeded the rate limit for object mutation operations (create, update, and delete). Please reduce your request rate.","errors":[{"message":"The object","domain":"usageLimits","reason":"rateLimitExceeded"}]}}`
	)
	for _, c := range []struct {
		host string
		h    http.Header
		body string
		want retryafter.Scope
	}{
		{"", nil, "", retryafter.ScopeIdentity},
		{"", head("Stripe-Rate-Limited-Reason", "global-rate"), "", retryafter.ScopeIdentity},
		{"", head("Stripe-Rate-Limited-Reason", "global-concurrency"), limit, retryafter.ScopeIdentity},
		{"", head("Stripe-Rate-Limited-Reason", "endpoint-rate"), "", retryafter.ScopeRule},
		{"", head("Stripe-Rate-Limited-Reason", "endpoint-concurrency"), limit, retryafter.ScopeRule},
		{"", head("Stripe-Rate-Limited-Reason", "resource-specific"), "", retryafter.ScopeRequest},
		{"", head("Stripe-Rate-Limited-Reason", "resource-specific"), limit, retryafter.ScopeRequest},
		{"", head("Stripe-Rate-Limited-Reason", "something-new"), "", retryafter.ScopeIdentity},
		{"", head("Stripe-Should-Retry", "true"), "", retryafter.ScopeRequest},
		{"", head("Stripe-Should-Retry", "true"), lock, retryafter.ScopeRequest},
		{"", head("Stripe-Should-Retry", "true"), limit, retryafter.ScopeIdentity},
		{"", nil, lock, retryafter.ScopeRequest},
		{"", nil, limit, retryafter.ScopeIdentity},
		{"api.stripe.com", nil, "", retryafter.ScopeRequest},
		{"api.stripe.com", nil, limit, retryafter.ScopeIdentity},
		{"api.stripe.com", head("Retry-After", "5"), "", retryafter.ScopeIdentity},
		{"", head("RateLimit-Reason", "jira-per-issue-on-write", "Retry-After", "2"), "", retryafter.ScopeRequest},
		{"", head("RateLimit-Reason", "jira-burst-based", "Retry-After", "2"), "", retryafter.ScopeRule},
		{"", head("RateLimit-Reason", "jira-quota-tenant-based", "Retry-After", "2"), "", retryafter.ScopeIdentity},
		// nozzlegear/ShopifySharp 350: 1 of 40 used, and a 429 for a resource.
		{"", head("X-Shopify-Shop-Api-Call-Limit", "1/40"), "", retryafter.ScopeRule},
		{"", head("X-Shopify-Shop-Api-Call-Limit", "40/40"), "", retryafter.ScopeIdentity},
		{"", nil, gcs, retryafter.ScopeRequest},
		{"storage.googleapis.com", nil, gcs, retryafter.ScopeRequest},
		{"api.github.com", nil, lock, retryafter.ScopeIdentity},
	} {
		r := retryafter.NewReader(nil, c.host)
		s := r.Read(429, c.h, pi)
		if c.body != "" {
			s, _ = r.ReadBody(429, c.h, []byte(c.body), pi)
		}
		if s.Scope != c.want || !s.Throttled {
			t.Errorf("%s %v %.40s: %v, %v, want %v", c.host, c.h, c.body, s.Scope, s.Throttled, c.want)
		}
	}
	// Only a 429 is so, and no success.
	for _, status := range []int{200, 503, 409} {
		if s := retryafter.Read(status, head("Stripe-Should-Retry", "true"), pi); s.Scope != retryafter.ScopeIdentity {
			t.Errorf("%d: %v", status, s.Scope)
		}
	}
	if s, found := retryafter.NewReader(nil, "").ReadBody(429, nil, []byte(`{"type":"error","error":{"type":"rate_limit_error","message":"...","details":{"error_code":"enforced_spend_limit_reached"}}}`), pi); !found || !s.NoRetry {
		t.Errorf("a spend limit: %+v", s)
	}
}
