package retryafter_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headway-go/headway/retryafter"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// custom is a dialect of another package.
type custom struct{ name string }

func (c custom) Name() string { return c.name }

func (c custom) Read(status int, h http.Header, now time.Time) (s retryafter.Signal, ok bool) {
	v := h.Get("X-Custom-Wait")
	if v == "" {
		return s, false
	}
	s.RetryAfter, s.HasRetryAfter = retryafter.Parse(v, now)
	s.Scope = retryafter.ScopeHost
	if !s.HasRetryAfter {
		s.Malformed = "X-Custom-Wait"
	}
	s.Add(retryafter.LimitSignal{Name: c.name, Remaining: 1, HasRemaining: true})
	return s, true
}

// customBody reads bodies, too.
type customBody struct{ custom }

func (c customBody) ReadBody(status int, h http.Header, prefix []byte, now time.Time) (s retryafter.Signal, ok bool) {
	s, _ = c.Read(status, h, now)
	s.Throttled = strings.Contains(string(prefix), "slow down")
	return s, s.Throttled
}

// TestReaderDialects: what is chosen is read, the rest is not.
func TestReaderDialects(t *testing.T) {
	h := head("Retry-After", "7", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "60", "RateLimit", `"a";r=3;t=9`)
	for _, c := range []struct {
		name     string
		dialects []retryafter.Dialect
		ask      time.Duration
		limits   int
	}{
		{"nil", nil, 7 * time.Second, 2},
		{"empty", []retryafter.Dialect{}, 7 * time.Second, 2},
		{"all", retryafter.Dialects(), 7 * time.Second, 2},
		{"none", []retryafter.Dialect{retryafter.None}, unknown, 0},
		{"none among others", []retryafter.Dialect{retryafter.GitHub, retryafter.None, custom{"a"}}, unknown, 0},
		{"Retry-After", []retryafter.Dialect{retryafter.RFC9110}, 7 * time.Second, 0},
		{"RateLimit", []retryafter.Dialect{retryafter.RateLimit}, 7 * time.Second, 1},
		{"X-RateLimit", []retryafter.Dialect{retryafter.XRateLimit}, 7 * time.Second, 1},
		{"both", []retryafter.Dialect{retryafter.XRateLimit, retryafter.RateLimit}, 7 * time.Second, 2},
		{"Slack", []retryafter.Dialect{retryafter.Slack}, 7 * time.Second, 0},
		{"nil element", []retryafter.Dialect{nil, retryafter.Slack}, 7 * time.Second, 0},
		{"only custom", []retryafter.Dialect{custom{"a"}}, unknown, 0},
	} {
		s := retryafter.NewReader(c.dialects, "").Read(429, h, pi)
		if s.HasRetryAfter != (c.ask >= 0) || c.ask >= 0 && s.RetryAfter != c.ask || len(s.Limits()) != c.limits {
			t.Errorf("%s: RetryAfter %v, %v, %d limits; want %v, %d", c.name, s.RetryAfter, s.HasRetryAfter, len(s.Limits()), c.ask, c.limits)
		}
	}
	if s := retryafter.NewReader([]retryafter.Dialect{retryafter.None}, "api.github.com").Read(429, h, pi); s != (retryafter.Signal{}) {
		t.Errorf("none: %+v", s)
	}
	if s, ok := retryafter.None.Read(429, h, pi); ok || s != (retryafter.Signal{}) || retryafter.None.Name() != "none" {
		t.Errorf("None.Read: %+v, %v", s, ok)
	}
}

// TestReaderChooses: what the response shows, then the host, then the order of the
// dialects, and the size of the number last.
func TestReaderChooses(t *testing.T) {
	trio := func(more ...string) http.Header {
		return head(append(more, "X-RateLimit-Limit", "60", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "60")...)
	}
	hyphens := head("X-Rate-Limit-Limit", "60", "X-Rate-Limit-Remaining", "0", "X-Rate-Limit-Reset", "600000")
	github, prisjakt, twitter := retryafter.GitHub, retryafter.Prisjakt, retryafter.Twitter
	for _, c := range []struct {
		name     string
		dialects []retryafter.Dialect
		host     string
		status   int
		h        http.Header
		want     time.Duration
		dialect  string
	}{
		{"by size", nil, "", 429, trio(), time.Minute, "x-ratelimit"},
		{"shown", nil, "", 429, trio("X-RateLimit-Used", "60", "X-RateLimit-Resource", "core"), 0, "github"},
		{"shown by another header", nil, "", 429, trio("X-GitHub-Request-Id", "1"), 0, "github"},
		{"known host", nil, "api.github.com", 429, trio(), 0, "github"},
		{"known host with port and dot", nil, "API.GitHub.com.:443", 429, trio(), 0, "github"},
		{"chosen", []retryafter.Dialect{github}, "", 429, trio(), 0, "github"},
		{"chosen, in order", []retryafter.Dialect{retryafter.XRateLimit, github}, "", 429, trio(), time.Minute, "x-ratelimit"},
		{"chosen, the host decides", []retryafter.Dialect{retryafter.XRateLimit, github}, "api.github.com", 429, trio(), 0, "github"},
		{"not chosen, though shown", []retryafter.Dialect{retryafter.XRateLimit}, "", 429, trio("X-GitHub-Request-Id", "1"), time.Minute, "x-ratelimit"},
		{"not chosen, though of the host", []retryafter.Dialect{retryafter.XRateLimit}, "api.github.com", 429, trio(), time.Minute, "x-ratelimit"},
		{"all chosen", retryafter.Dialects(), "", 429, trio(), time.Minute, "x-ratelimit"},
		{"all chosen, the host decides", retryafter.Dialects(), "api.github.com", 429, trio(), 0, "github"},
		{"hyphens by size", nil, "", 429, hyphens, 600000 * time.Second, "x-rate-limit"},
		{"hyphens chosen", []retryafter.Dialect{prisjakt}, "", 429, hyphens, 10 * time.Minute, "prisjakt"},
		{"hyphens of the host", nil, "api.prisjakt.nu", 429, hyphens, 10 * time.Minute, "prisjakt"},
		{"hyphens, first of two", []retryafter.Dialect{prisjakt, twitter}, "", 429, hyphens, 10 * time.Minute, "prisjakt"},
		{"hyphens, the other first", []retryafter.Dialect{twitter, prisjakt}, "", 429, hyphens, 600000 * time.Second, "twitter"},
		{"below a known domain", nil, "acme.myshopify.com", 429, head("Retry-After", "2.0"), 2 * time.Second, "shopify"},
		{"the known domain itself", nil, "myshopify.com", 429, head("Retry-After", "2.0"), 2 * time.Second, "rfc9110"},
		{"Airtable", nil, "api.airtable.com", 429, nil, 30 * time.Second, "airtable"},
		{"Airtable chosen", []retryafter.Dialect{retryafter.Airtable}, "", 429, nil, 30 * time.Second, "airtable"},
		{"Airtable says so", nil, "api.airtable.com", 429, head("Retry-After", "5"), 5 * time.Second, "airtable"},
		{"Airtable, no limit", nil, "api.airtable.com", 503, nil, unknown, ""},
		{"QuickBooks", []retryafter.Dialect{retryafter.QuickBooks}, "", 429, nil, time.Minute, "quickbooks"},
		{"IPv6", nil, "[::1]:8080", 429, trio(), time.Minute, "x-ratelimit"},
	} {
		s := retryafter.NewReader(c.dialects, c.host).Read(c.status, c.h, pi)
		if s.HasRetryAfter != (c.want >= 0) || c.want >= 0 && s.RetryAfter != c.want || s.Dialect != c.dialect {
			t.Errorf("%s: RetryAfter %v, %v, dialect %q; want %v, %q", c.name, s.RetryAfter, s.HasRetryAfter, s.Dialect, c.want, c.dialect)
		}
		if documented := c.h == nil && c.want > 0; s.Documented != documented {
			t.Errorf("%s: Documented = %v", c.name, s.Documented)
		}
	}
}

// TestReaderCustom: a dialect from outside adds to what was read.
func TestReaderCustom(t *testing.T) {
	mine := custom{"mine"}
	h := head("X-Custom-Wait", "9", "X-RateLimit-Remaining", "5")
	s := retryafter.NewReader([]retryafter.Dialect{mine}, "").Read(429, h, pi)
	if s.RetryAfter != 9*time.Second || s.Dialect != "mine" || s.Scope != retryafter.ScopeHost || len(s.Limits()) != 1 {
		t.Errorf("alone: %+v", s)
	}
	s = retryafter.NewReader(append(retryafter.Dialects(), mine), "").Read(429, h, pi)
	if s.RetryAfter != 9*time.Second || s.Dialect != "x-ratelimit" || len(s.Limits()) != 2 {
		t.Errorf("with all others: %+v", s)
	}
	h.Set("Retry-After", "3")
	s = retryafter.NewReader(append(retryafter.Dialects(), mine), "").Read(429, h, pi)
	if s.RetryAfter != 3*time.Second || s.Scope != retryafter.ScopeIdentity {
		t.Errorf("beside Retry-After: %+v", s)
	}
	s = retryafter.NewReader([]retryafter.Dialect{mine}, "").Read(429, head("X-Custom-Wait", "soon"), pi)
	if s.HasRetryAfter || s.Malformed != "X-Custom-Wait" {
		t.Errorf("malformed: %+v", s)
	}
	r := retryafter.NewReader([]retryafter.Dialect{customBody{mine}}, "")
	if !retryafter.NeedsBody(r, 429, nil) {
		t.Error("the body is not asked for")
	}
	s, ok := r.ReadBody(429, head("X-Custom-Wait", "9"), []byte("please slow down"), pi)
	if !ok || !s.Throttled || s.RetryAfter != 9*time.Second || len(s.Limits()) != 1 {
		t.Errorf("body: %+v, %v", s, ok)
	}
	s, ok = r.ReadBody(429, head("X-Custom-Wait", "9"), []byte("no"), pi)
	if ok || s.RetryAfter != 9*time.Second || len(s.Limits()) != 1 {
		t.Errorf("body without: %+v, %v", s, ok)
	}
}

// TestThrottled: which responses refuse for coming too fast.
func TestThrottled(t *testing.T) {
	for _, c := range []struct {
		name   string
		host   string
		status int
		h      http.Header
		want   bool
		scope  retryafter.Scope
	}{
		{"429", "", 429, nil, true, retryafter.ScopeIdentity},
		{"503", "", 503, nil, false, retryafter.ScopeIdentity},
		{"503 with a time", "", 503, head("Retry-After", "0"), true, retryafter.ScopeIdentity},
		{"503 with a malformed time", "", 503, head("Retry-After", "soon"), false, retryafter.ScopeIdentity},
		{"503 with nothing left", "", 503, head("RateLimit", `"a";r=0;t=3`), true, retryafter.ScopeIdentity},
		{"200 with a time", "", 200, head("Retry-After", "5"), false, retryafter.ScopeIdentity},
		{"403", "", 403, head("X-RateLimit-Remaining", "0"), false, retryafter.ScopeIdentity},
		{"403 of GitHub", "api.github.com", 403, head("X-RateLimit-Remaining", "0"), true, retryafter.ScopeIdentity},
		{"403 of GitHub with a time", "api.github.com", 403, head("Retry-After", "60"), true, retryafter.ScopeIdentity},
		{"403 of GitHub, a permission", "api.github.com", 403, head("X-RateLimit-Remaining", "9"), false, retryafter.ScopeIdentity},
		{"403 of Salesforce", "", 403, head("Sforce-Limit-Info", "api-usage=5000/5000"), true, retryafter.ScopeIdentity},
		{"403 of Salesforce, a permission", "", 403, head("Sforce-Limit-Info", "api-usage=50/5000"), false, retryafter.ScopeIdentity},
		{"420", "", 420, head("X-Rate-Limit-Remaining", "0"), true, retryafter.ScopeIdentity},
		{"429 of Twitter", "api.x.com", 429, head("X-Rate-Limit-Remaining", "0"), true, retryafter.ScopeRule},
		{"429 of Slack", "slack.com", 429, head("Retry-After", "3"), true, retryafter.ScopeRule},
		{"429 of Discord", "", 429, head("Retry-After", "3", "X-RateLimit-Bucket", "a", "X-RateLimit-Reset-After", "3"), true, retryafter.ScopeRule},
		{"429 of Discord, global", "", 429, head("Retry-After", "3", "X-RateLimit-Global", "true"), true, retryafter.ScopeIdentity},
		{"418 of Binance", "api.binance.com", 418, head("Retry-After", "120"), true, retryafter.ScopeHost},
		{"Envoy's marker", "", 503, head("X-Envoy-Ratelimited", "true"), true, retryafter.ScopeIdentity},
		{"Envoy's marker on a success", "", 200, head("X-Envoy-Ratelimited", "true"), false, retryafter.ScopeIdentity},
	} {
		s := retryafter.NewReader(nil, c.host).Read(c.status, c.h, pi)
		if s.Throttled != c.want || s.Scope != c.scope {
			t.Errorf("%s: Throttled = %v, Scope %v, want %v, %v", c.name, s.Throttled, s.Scope, c.want, c.scope)
		}
	}
	if s := retryafter.Read(429, head("x-should-retry", "false"), pi); !s.NoRetry || !s.Throttled {
		t.Errorf("x-should-retry: %+v", s)
	}
	if s := retryafter.Read(429, head("X-Should-Retry", "False"), pi); !s.NoRetry {
		t.Errorf("X-Should-Retry: False: %+v", s)
	}
	if s := retryafter.Read(409, head("X-Should-Retry", "True"), pi); s.NoRetry || !s.ShouldRetry {
		t.Errorf("X-Should-Retry: True: %+v", s)
	}
	for code, want := range map[string]bool{
		"ThrottlingException": true, "ThrottlingException:http://internal.amazon.com/coral/": true,
		"aws.api#TooManyRequestsException": true, "ValidationException": false, "": false,
	} {
		if s := retryafter.Read(400, head("X-Amzn-Errortype", code), pi); s.Throttled != want {
			t.Errorf("X-Amzn-Errortype: %s: %+v", code, s)
		}
		if s := retryafter.Read(200, head("X-Amzn-Errortype", code), pi); s.Throttled {
			t.Errorf("X-Amzn-Errortype: %s, a success: %+v", code, s)
		}
	}
	if s := retryafter.Read(409, head("Stripe-Should-Retry", "true"), pi); s.NoRetry || !s.ShouldRetry || s.Throttled {
		t.Errorf("Stripe-Should-Retry: %+v", s)
	}
}

// TestReadNothing: nil and empty headers, and invalid statuses.
func TestReadNothing(t *testing.T) {
	for _, h := range []http.Header{nil, {}, {"Retry-After": nil}, {"Retry-After": {}}, {"": {"1"}}, {"X": {"1"}}, {"Ratelimit": {""}}} {
		for _, status := range []int{-1, 0, 200, 304, 999} {
			if s := retryafter.Read(status, h, pi); s != (retryafter.Signal{}) && s.Dialect == "" {
				t.Errorf("%d %v: %+v", status, h, s)
			}
		}
	}
}
