package retryafter_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/headway-go/headway/retryafter"
)

// TestResource: what a limit is of, and what a refusal is about.
func TestResource(t *testing.T) {
	github := func(left string, more ...string) http.Header {
		return head(append(more, "X-RateLimit-Limit", "30", "X-RateLimit-Remaining", left, "X-RateLimit-Reset", "1773502800", "X-RateLimit-Resource", "search", "X-RateLimit-Used", "1")...)
	}
	discord := func(left string, more ...string) http.Header {
		return head(append(more, "X-RateLimit-Limit", "5", "X-RateLimit-Remaining", left, "X-RateLimit-Reset-After", "3.5", "X-RateLimit-Bucket", "abcd")...)
	}
	hyphen := func(left string) http.Header {
		return head("X-Rate-Limit-Limit", "25", "X-Rate-Limit-Remaining", left, "X-Rate-Limit-Reset", "1773502800")
	}
	const route = retryafter.PerRoute
	for _, c := range []struct {
		name, host string
		status     int
		h          http.Header
		limit      string // of the limit that binds
		refusal    string // of the response
	}{
		{"github", "", 200, github("29"), "search", ""},
		{"github, spent", "", 200, github("0"), "search", ""},
		{"github, refused", "", 403, github("0"), "search", "search"},
		{"github, refused with Retry-After", "", 429, github("0", "Retry-After", "60"), "search", "search"},
		{"github, a secondary limit", "", 429, github("29", "Retry-After", "60"), "search", ""},
		{"github, no throttle", "", 403, github("29"), "search", ""},
		{"github, no resource", "api.github.com", 200, head("X-RateLimit-Remaining", "5"), "", ""},
		{"a resource of anybody's", "", 200, head("X-RateLimit-Remaining", "5", "X-RateLimit-Resource", "api"), "api", ""},
		{"a resource that cannot be shown", "", 200, head("X-RateLimit-Remaining", "5", "X-RateLimit-Resource", "a\x00"), "", ""},
		{"a resource too long", "", 200, head("X-RateLimit-Remaining", "5", "X-RateLimit-Resource", strings.Repeat("a", 300)), "", ""},
		{"discord", "", 200, discord("4"), "abcd", ""},
		{"discord, refused", "", 429, discord("0", "Retry-After", "3.5", "X-RateLimit-Scope", "user"), "abcd", "abcd"},
		{"discord, a shared limit", "", 429, discord("4", "Retry-After", "3.5", "X-RateLimit-Scope", "shared"), "abcd", "abcd"},
		{"discord, everything", "", 429, head("Retry-After", "64", "X-RateLimit-Global", "true"), "", ""},
		{"discord, everything, with a bucket", "", 429, discord("0", "Retry-After", "64", "X-RateLimit-Scope", "global"), "", ""},
		{"discord before version 8", "", 429, head("Retry-After", "6457", "X-RateLimit-Limit", "10", "X-RateLimit-Remaining", "0", "X-RateLimit-Bucket", "abcd"), "abcd", "abcd"},
		{"x", "api.x.com", 200, hyphen("24"), route, ""},
		{"x, refused", "api.x.com", 429, hyphen("0"), route, route},
		{"x, refused without a limit", "api.x.com", 429, head(), "", route},
		{"the same headers of somebody else", "", 429, hyphen("0"), "", ""},
		{"slack", "slack.com", 429, head("Retry-After", "30"), "", route},
		{"slack, no throttle", "slack.com", 500, head("Retry-After", "30"), "", ""},
		{"okta", "acme.okta.com", 200, hyphen("24"), route, ""},
		{"okta, refused", "acme.okta.com", 429, hyphen("0"), route, route},
		{"okta, refused with something left", "acme.okta.com", 429, hyphen("7"), route, ""},
		{"klaviyo, refused", "a.klaviyo.com", 429, head("Retry-After", "1"), "", route},
		{"bybit", "", 200, head("X-Bapi-Limit", "100", "X-Bapi-Limit-Status", "99", "X-Bapi-Limit-Reset-Timestamp", "1773500966000"), route, ""},
		{"zendesk, the account", "", 200, head("X-Rate-Limit", "700", "X-Rate-Limit-Remaining", "7", "Zendesk-RateLimit-Search", "total=100; remaining=99; resets=41"), "", ""},
		{"zendesk, an endpoint", "", 429, head("X-Rate-Limit", "700", "X-Rate-Limit-Remaining", "7", "Zendesk-RateLimit-Search", "total=100; remaining=0; resets=41"), "search", "search"},
		{"zendesk, both", "", 429, head("X-Rate-Limit", "700", "X-Rate-Limit-Remaining", "0", "Zendesk-RateLimit-Search", "total=100; remaining=0; resets=41"), "search", ""},
		{"stripe, an endpoint", "", 429, head("Stripe-Rate-Limited-Reason", "endpoint-rate"), "", route},
		{"stripe, the account", "", 429, head("Stripe-Rate-Limited-Reason", "global-rate"), "", ""},
		{"stripe, an object", "", 429, head("Stripe-Rate-Limited-Reason", "resource-specific"), "", ""},
		{"jira, a burst", "", 429, head("Retry-After", "2", "RateLimit-Reason", "jira-burst-based"), "", route},
		{"no one's", "", 429, head("Retry-After", "2", "X-RateLimit-Remaining", "0"), "", ""},
		{"a policy only", "", 200, head("RateLimit-Policy", `"a";q=5;w=60`, "X-RateLimit-Resource", "api"), "", ""},
	} {
		s := retryafter.NewReader(nil, c.host).Read(c.status, c.h, pi)
		if l, _ := s.Binding(); l.Resource != c.limit || s.Resource != c.refusal {
			t.Errorf("%s: the limit is of %q, the refusal is of %q, want %q, %q", c.name, l.Resource, s.Resource, c.limit, c.refusal)
		}
	}
}

// TestResourceOfBody: a body may show that a refusal is about more than the headers say.
func TestResourceOfBody(t *testing.T) {
	h := head("X-RateLimit-Limit", "30", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1773502800", "X-RateLimit-Resource", "search", "X-RateLimit-Used", "1")
	r := retryafter.NewReader(nil, "")
	for body, want := range map[string]string{
		`{"message":"API rate limit exceeded for user ID 1."}`:                "search",
		`{"message":"You have exceeded a secondary rate limit. Please wait"}`: "",
	} {
		if s, ok := r.ReadBody(403, h, []byte(body), pi); !ok || s.Resource != want {
			t.Errorf("%s: %q, %v, want %q", body, s.Resource, ok, want)
		}
	}
	if s, ok := retryafter.NewReader(nil, "api.stripe.com").ReadBody(429, head(), []byte(`{"error":{"code":"rate_limit"}}`), pi); !ok || s.Resource != "" || s.Scope != retryafter.ScopeIdentity {
		t.Errorf("stripe: %+v, %v", s, ok)
	}
}

// TestRoute: which requests draw on the same limits.
func TestRoute(t *testing.T) {
	named := byName(t)
	long := "/2/" + strings.Repeat("a", 400)
	for _, c := range []struct{ dialect, method, path, want string }{
		{"github", "GET", "/repos/a/b", "core"},
		{"github", "GET", "/search/issues", "search"},
		{"github", "GET", "/search/code", "code_search"},
		{"github", "POST", "/graphql", "graphql"},
		{"github", "POST", "/api/graphql", "graphql"},
		{"github", "GET", "/api/v3/search/users", "search"},
		{"github", "GET", "/searching", "core"},
		{"github", "POST", "/app-manifests/x/conversions", "integration_manifest"},
		{"github", "GET", "/scim/v2/organizations/o/Users", "scim"},
		{"github", "GET", "/orgs/o/audit-log", "audit_log"},
		{"github", "POST", "/repos/a/b/dependency-graph/snapshots", "dependency_snapshots"},
		{"github", "GET", "/repos/a/b/dependency-graph/sbom", "dependency_sbom"},
		{"github", "POST", "/repos/a/b/code-scanning/sarifs", "code_scanning_upload"},
		{"github", "GET", "/repos/a/b/code-scanning/sarifs", "core"},
		{"github", "POST", "/orgs/o/actions/runners/registration-token", "actions_runner_registration"},
		{"github", "GET", "", "core"},
		{"slack", "POST", "/api/chat.postMessage", "chat.postMessage"},
		{"slack", "POST", "/services/T0/B0/x", ""},
		{"slack", "GET", "/api/" + long, ""},
		{"discord", "PATCH", "/api/v10/channels/123/messages/456", "PATCH /channels/123/messages/*"},
		{"discord", "", "/api/channels/123/messages", "GET /channels/123/messages"},
		{"discord", "GET", "/channels/123", "GET /channels/123"},
		{"discord", "GET", "/api/v9/guilds/1/members/2", "GET /guilds/1/members/*"},
		{"discord", "POST", "/api/v10/webhooks/1/tok3n", "POST /webhooks/1/tok3n"},
		{"discord", "PATCH", "/api/v10/webhooks/1/tok3n/messages/@original", "PATCH /webhooks/1/tok3n/messages/*"},
		{"discord", "PUT", "/api/v10/channels/1/messages/2/reactions/\U0001f980/@me", "PUT /channels/1/messages/*/reactions/*/@me"},
		{"discord", "GET", "/api/v10/users/@me", "GET /users/@me"},
		{"discord", "GET", "/api/v10/channels", "GET /channels"},
		{"discord-v6", "GET", "/api/v6/channels/9/messages", "GET /channels/9/messages"},
		{"twitter", "GET", "/2/users/12/tweets", "GET /2/users/*/tweets"},
		{"twitter", "GET", "/2/users/by/username/jack", "GET /2/users/by/username/*"},
		{"twitter", "POST", "/2/tweets", "POST /2/tweets"},
		{"twitter", "GET", "/2/tweets/search/recent", "GET /2/tweets/search/recent"},
		{"twitter", "GET", "/2/spaces/1DXxyRYNejbKM", "GET /2/spaces/*"},
		{"twitter", "GET", "/1.1/statuses/show/210462857140252672.json", "GET /1.1/statuses/show/*"},
		{"twitter", "GET", long, ""},
		{"okta", "GET", "/api/v1/users/00ub0oNGTSWTBKOLGLNR", "GET /api/v1/users/*"},
		{"okta", "GET", "/api/v1/users/isaac@example.com", "GET /api/v1/users/*"},
		{"okta", "POST", "/oauth2/v1/token", "POST /oauth2/v1/token"},
		{"klaviyo", "GET", "/api/lists/Y6nRLr/profiles/", "GET /api/lists/*/profiles/"},
		{"x-ratelimit", "GET", "/a", ""},
		{"openai", "POST", "/v1/chat/completions", ""},
	} {
		d, ok := named[c.dialect].(retryafter.RouteDialect)
		if !ok {
			t.Fatalf("%s is no RouteDialect", c.dialect)
		}
		if got := d.Route(&http.Request{Method: c.method, URL: &url.URL{Path: c.path}}); got != c.want {
			t.Errorf("%s: %s %.60s: %q, want %q", c.dialect, c.method, c.path, got, c.want)
		}
	}
	if got := retryafter.GitHub.(retryafter.RouteDialect).Route(&http.Request{}); got != "" {
		t.Errorf("a request without a URL: %q", got)
	}
}
