package retryafter_test

import (
	"strings"
	"testing"
	"time"

	"github.com/headway-go/headway/retryafter"
)

// TestReadAllocs: whatever usual headers a response has, reading it allocates
// nothing.
func TestReadAllocs(t *testing.T) {
	if raceEnabled {
		t.Log("allocations are not counted under the race detector")
		return
	}
	more := readings[:len(readings):len(readings)]
	for name, pairs := range map[string][]string{
		"several":        {"RateLimit", `"a";r=1;t=2, "b";r=3;t=4;pk=:YWJj:`, "RateLimit-Policy", `"a";q=10;w=1, "b";q=500;w=60;qu="content-bytes"`},
		"dictionary":     {"RateLimit", "limit=100, remaining=50, reset=5", "RateLimit-Policy", "100;w=10"},
		"draft 05":       {"RateLimit-Limit", `100, 100;w=60;comment="a, b"`, "RateLimit-Remaining", "5", "RateLimit-Reset", "3"},
		"malformed":      {"RateLimit", `"a";r=x`, "Retry-After", "soon", "X-RateLimit-Reset", "never"},
		"kong":           {"RateLimit-Limit", "100", "RateLimit-Remaining", "95", "RateLimit-Reset", "45", "X-RateLimit-Limit-Minute", "100", "X-RateLimit-Remaining-Minute", "95"},
		"anthropic":      {"anthropic-ratelimit-tokens-limit", "50000", "anthropic-ratelimit-tokens-remaining", "0", "anthropic-ratelimit-tokens-reset", "2026-03-14T15:10:26.5Z"},
		"discord":        {"X-RateLimit-Limit", "5", "X-RateLimit-Remaining", "4", "X-RateLimit-Reset-After", "0.997", "X-RateLimit-Bucket", "abcd"},
		"brave":          {"X-RateLimit-Limit", "1, 15000", "X-RateLimit-Remaining", "0, 14999", "X-RateLimit-Reset", "1, 1419704", "X-RateLimit-Policy", "1;w=1, 15000;w=2592000"},
		"strava":         {"X-RateLimit-Limit", "200,2000", "X-RateLimit-Usage", "128,1034"},
		"shopify":        {"X-Shopify-Shop-Api-Call-Limit", "32/40"},
		"salesforce":     {"Sforce-Limit-Info", "api-usage=25/5000"},
		"azure compute":  {"x-ms-ratelimit-remaining-resource", "Microsoft.Compute/HighCostGet3Min;107"},
		"meta":           {"X-App-Usage", `{"call_count":28,"total_time":25,"total_cputime":25}`},
		"sentry":         {"X-Sentry-Rate-Limits", "60:default;error:organization:reason, 2700::project"},
		"lemlist":        {"X-RateLimit-Reset", "Tue Feb 16 2021 09:02:42 GMT+0100 (Central European Standard Time)"},
		"10 MB":          {"Retry-After", strings.Repeat("9", 10<<20), "RateLimit", strings.Repeat(`"a";r=1, `, 1<<20)},
		"linear":         {"X-RateLimit-Requests-Limit", "5000", "X-RateLimit-Requests-Remaining", "0", "X-RateLimit-Requests-Reset", "1773501027000"},
		"x-rate-limit":   {"X-Rate-Limit-Limit", "900", "X-Rate-Limit-Remaining", "847", "X-Rate-Limit-Reset", "1773501478"},
		"retry-after-ms": {"retry-after-ms", "1500.7", "Retry-After", "2"},
	} {
		r := readings[0]
		r.name, r.status, r.h = name, 429, ordinary(pairs...)
		more = append(more, r)
	}
	github := retryafter.NewReader([]retryafter.Dialect{retryafter.GitHub}, "api.github.com")
	known := retryafter.NewReader(nil, "api.openai.com")
	for _, r := range more {
		for how, read := range map[string]func(){
			"Read":    func() { retryafter.Read(r.status, r.h, pi) },
			"chosen":  func() { github.Read(r.status, r.h, pi) },
			"host":    func() { known.Read(r.status, r.h, pi) },
			"dialect": func() { retryafter.XRateLimit.Read(r.status, r.h, pi) },
		} {
			if n := testing.AllocsPerRun(100, read); n != 0 {
				t.Errorf("%s, %s: %v allocations", r.name, how, n)
			}
		}
	}
}

// TestParseAllocs: so does Parse.
func TestParseAllocs(t *testing.T) {
	if raceEnabled {
		t.Log("allocations are not counted under the race detector")
		return
	}
	for _, v := range []string{"120", "Sat, 14 Mar 2026 15:10:56 GMT", "Saturday, 14-Mar-26 15:10:26 GMT", "Sat Mar 14 15:10:00 2026", "soon", strings.Repeat("9", 1<<20)} {
		if n := testing.AllocsPerRun(100, func() { retryafter.Parse(v, pi) }); n != 0 {
			t.Errorf("%.30q: %v allocations", v, n)
		}
	}
}

// quick is what reading may take. A single pass over 10 MB takes milliseconds.
const quick = 200 * time.Microsecond

// quickest returns the least time that read took in up to 1000 tries, or the first
// that is quick: nothing but read itself makes it slow each time.
func quickest(read func()) (best time.Duration) {
	best = time.Hour
	for tries := 0; best > quick && tries < 1000; tries++ {
		start := time.Now()
		read()
		best = min(best, time.Since(start))
	}
	return best
}

// TestLongValues: 10 MB cost no more than their first bytes.
func TestLongValues(t *testing.T) {
	for _, unit := range []string{"9", " ", "1, ", `"a";r=1;t=1, `, "[", "1:a:b,", "a=1/2;", "a;1,", "1h"} {
		long := strings.Repeat(unit, 10<<20/len(unit))
		for _, name := range []string{
			"Retry-After", "Retry-After-Ms", "RateLimit", "RateLimit-Policy", "RateLimit-Limit", "RateLimit-Reset", "X-RateLimit-Limit", "X-RateLimit-Remaining",
			"X-RateLimit-Reset", "X-RateLimit-Usage", "X-RateLimit-Policy", "X-App-Usage", "X-Sentry-Rate-Limits", "Sforce-Limit-Info", "X-Shopify-Shop-Api-Call-Limit",
			"zendesk-ratelimit-a", "x-ms-ratelimit-remaining-resource", "x-amzn-RateLimit-Limit", "Stripe-Rate-Limited-Reason", "X-RateLimit-Resource", "Date", "Age",
		} {
			h := head(name, long, "RateLimit-Name", "n", "X-RateLimit-Next", "2026-03-14T15:09:29Z")
			if took := quickest(func() { retryafter.Read(429, h, pi) }); took > quick {
				t.Errorf("%s of many %q: %v", name, unit, took)
			}
		}
	}
}

// TestManyLines: nor do very many lines or very many headers.
func TestManyLines(t *testing.T) {
	h := ordinary()
	for range 100_000 {
		for _, name := range []string{"Retry-After", "Ratelimit", "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Sentry-Rate-Limits"} {
			h[name] = append(h[name], "5")
		}
	}
	if took := quickest(func() { retryafter.Read(429, h, pi) }); took > quick {
		t.Errorf("100,000 lines: %v", took)
	}
	h = ordinary()
	for i := range 10_000 {
		h.Set("X-RateLimit-Limit-"+itoa(int64(i)), "5")
	}
	want := retryafter.Read(429, h, pi)
	for range 5 {
		if got := retryafter.Read(429, h, pi); got != want {
			t.Fatalf("10,000 labels: %+v, then %+v", want, got)
		}
	}
}
