package headway_test

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/headway-go/headway/limiter"
)

// Limits that the request does not draw on teach nothing, and those beside them that it
// does still do.
//
// brekkylab/backlot 273 (GitHub's 401 for a missing credential carries the limits of anonymous
// clients), gerwaric/acquisition 208, cli/cli 12812 and cli/go-gh 216 (cached responses kept gh
// from working for hours), ietf-wg-httpapi/ratelimit-headers 98 and 110.
func TestLimitsOfOthersTeachNothing(t *testing.T) {
	none := []string{"X-RateLimit-Limit: 60", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 3000"}
	with := func(lines ...string) []string { return append(lines, none...) }
	redirected := func(to string, of func(*http.Request) *http.Response) func(*http.Request) (*http.Response, error) {
		return func(req *http.Request) (*http.Response, error) {
			resp, err := says(200, "", none...)(req)
			last := *req
			last.URL, _ = url.Parse(to)
			last.Response = of(req)
			resp.Request = &last
			return resp, err
		}
	}
	same := func(req *http.Request) *http.Response { return req.Response }
	other := func(req *http.Request) *http.Response { return &http.Response{Request: req} }
	const held = "A@0s B@50m1s"
	for _, c := range []struct {
		name   string
		answer func(*http.Request) (*http.Response, error)
		want   string
	}{
		{"200", says(200, "", none...), held},
		{"404", says(404, "", none...), held},
		{"401", says(401, "", none...), "A@0s B@0s"},
		{"403", says(403, "", none...), "A@0s B@0s"},
		{"403 of GitHub's primary limit", says(403, "", with("X-RateLimit-Resource: core", "X-GitHub-Request-Id: 1", "Retry-After: 3000")...), "A@0s B@50m0s"},
		{"407", says(407, "", none...), "A@0s B@0s"},
		{"another host's", redirected("https://cdn.example.net/", other), "A@0s B@0s"},
		{"redirected to its own host", redirected("https://a.test/other", other), held},
		{"sent to another address", redirected("http://127.0.0.1:1/", same), held},
		{"a CDN's hit", says(200, "", with("Age: 17", "X-Cache: HIT, MISS")...), "A@0s B@0s"},
		{"Cloudflare's hit", says(200, "", with("Age: 17", "CF-Cache-Status: HIT")...), "A@0s B@0s"},
		{"a hit by RFC 9211", says(200, "", with("Age: 17", "Cache-Status: ExampleCache; hit; ttl=376")...), "A@0s B@0s"},
		{"a miss", says(200, "", with("Age: 17", "X-Cache: MISS")...), held},
		{"a hit of no age", says(200, "", with("Age: 0", "X-Cache: HIT")...), held},
		{"a cache in this process", says(200, "", with("X-From-Cache: 1")...), "A@0s B@0s"},
		{"trailers", func(req *http.Request) (*http.Response, error) {
			resp := ok(req)
			resp.Trailer = http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"3000"}}
			return resp, nil
		}, "A@0s B@0s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, limits(limiter.PerSecond(100)), func(s *scene) {
				s.base.answer = inTurn(c.answer)
				s.send("A", ask{url: "https://a.test/"})
				s.send("B", ask{url: "https://a.test/"})
				s.until(time.Hour)
				s.wantStarts(c.want)
			})
		})
	}
}
