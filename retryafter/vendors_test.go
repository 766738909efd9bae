package retryafter_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headway-go/headway/retryafter"
)

// head makes a header from name, value, name, value ...
func head(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i+1 < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

// bare is l without what other tests are about: resets_test.go and resource_test.go.
func bare(l retryafter.LimitSignal) retryafter.LimitSignal {
	l.Resource, l.Coarse, l.Resets = "", false, retryafter.ResetUnknown
	return l
}

// limit is a LimitSignal in few words: negative numbers are unknown.
func limit(name string, n, left int64, reset, window time.Duration) retryafter.LimitSignal {
	l := retryafter.LimitSignal{Name: name}
	if n >= 0 {
		l.Limit, l.HasLimit = n, true
	}
	if left >= 0 {
		l.Remaining, l.HasRemaining = left, true
	}
	if reset >= 0 {
		l.Reset, l.HasReset = reset, true
	}
	if window >= 0 {
		l.Window, l.HasWindow = window, true
	}
	return l
}

const unknown = -1

func inTokens(l retryafter.LimitSignal) retryafter.LimitSignal {
	l.OtherUnit = true
	return l
}

// TestOddities reads values that are not plain numbers, with every announced limit.
func TestOddities(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		h      http.Header
		want   []retryafter.LimitSignal
		ask    time.Duration // -1: nothing
	}{
		{"reddit", 200, head("X-Ratelimit-Used", "2", "X-Ratelimit-Remaining", "98.0", "X-Ratelimit-Reset", "598"),
			[]retryafter.LimitSignal{limit("", 100, 98, 598*time.Second, unknown)}, unknown},
		{"reddit half", 429, head("X-Ratelimit-Used", "996", "X-Ratelimit-Remaining", "0.5", "X-Ratelimit-Reset", "12"),
			[]retryafter.LimitSignal{limit("", 996, 0, 12*time.Second, unknown)}, 12 * time.Second},
		{"strava", 200, head("X-RateLimit-Limit", "200,2000", "X-RateLimit-Usage", "128,1034", "X-ReadRateLimit-Limit", "100, 1000", "X-ReadRateLimit-Usage", "40,2000"),
			[]retryafter.LimitSignal{
				limit("15min", 200, 72, 334*time.Second, 15*time.Minute),
				limit("day", 2000, 966, 31834*time.Second, 24*time.Hour),
				limit("read-15min", 100, 60, 334*time.Second, 15*time.Minute),
				limit("read-day", 1000, 0, 31834*time.Second, 24*time.Hour),
			}, unknown},
		{"strava refuses", 429, head("X-RateLimit-Limit", "200,2000", "X-RateLimit-Usage", "205,1034"),
			[]retryafter.LimitSignal{
				limit("15min", 200, 0, 334*time.Second, 15*time.Minute),
				limit("day", 2000, 966, 31834*time.Second, 24*time.Hour),
			}, 334 * time.Second},
		{"shopify", 429, head("X-Shopify-Shop-Api-Call-Limit", "41/40", "Retry-After", "2.5"),
			[]retryafter.LimitSignal{{Limit: 40, HasLimit: true, HasRemaining: true, Window: 20 * time.Second}}, 2500 * time.Millisecond},
		{"salesforce", 200, head("Sforce-Limit-Info", "api-usage=25/5000; per-app-api-usage=17/250(appName=sample-app)"),
			[]retryafter.LimitSignal{limit("api-usage", 5000, 4975, unknown, unknown), limit("per-app-api-usage", 250, 233, unknown, unknown)}, unknown},
		{"amazon", 200, head("x-amzn-RateLimit-Limit", "0.5"),
			[]retryafter.LimitSignal{limit("", 1, unknown, unknown, 2*time.Second)}, unknown},
		{"amazon slow", 200, head("x-amzn-RateLimit-Limit", "0.04512"),
			[]retryafter.LimitSignal{limit("", 1, unknown, unknown, 22164*time.Millisecond)}, unknown},
		{"amazon whole", 200, head("x-amzn-RateLimit-Limit", "15.0"),
			[]retryafter.LimitSignal{limit("", 15, unknown, unknown, time.Second)}, unknown},
		{"amazon more than one", 200, head("x-amzn-RateLimit-Limit", "1.5"),
			[]retryafter.LimitSignal{limit("", 3, unknown, unknown, 2*time.Second)}, unknown},
		{"azure compute", 429, head("x-ms-ratelimit-remaining-resource", "Microsoft.Compute/HighCostGet3Min;46, Microsoft.Compute/HighCostGet30Min;0", "x-ms-ratelimit-remaining-resource", "Microsoft.Compute/Other;7"),
			[]retryafter.LimitSignal{
				limit("Microsoft.Compute/HighCostGet3Min", unknown, 46, unknown, 3*time.Minute),
				limit("Microsoft.Compute/HighCostGet30Min", unknown, 0, unknown, 30*time.Minute),
				limit("Microsoft.Compute/Other", unknown, 7, unknown, unknown),
			}, unknown},
		{"brave", 429, head("X-RateLimit-Limit", "1, 15000", "X-RateLimit-Policy", "1;w=1, 15000;w=2592000", "X-RateLimit-Remaining", "0, 14999", "X-RateLimit-Reset", "1, 1419704"),
			[]retryafter.LimitSignal{limit("", 1, 0, time.Second, time.Second), limit("", 15000, 14999, 1419704*time.Second, 2592000*time.Second)}, time.Second},
		{"brave without policy", 200, head("X-RateLimit-Limit", "1, 15000", "X-RateLimit-Remaining", "1, 0", "X-RateLimit-Reset", "1, x"),
			[]retryafter.LimitSignal{limit("", 1, 1, time.Second, unknown), limit("", 15000, 0, unknown, unknown)}, unknown},
		{"brave, half readable", 429, head("X-RateLimit-Limit", "x, 15000", "X-RateLimit-Remaining", "-2, y", "X-RateLimit-Reset", "1, 2, 3"),
			[]retryafter.LimitSignal{limit("", unknown, 0, unknown, unknown), limit("", 15000, unknown, unknown, unknown)}, unknown},
		{"too many columns", 200, head("X-RateLimit-Limit", "1, 2, 3, 4, 5, 6, 7", "X-RateLimit-Remaining", "1, 2, 3, 4, 5, 6, 7"),
			[]retryafter.LimitSignal{limit("", 1, unknown, unknown, unknown)}, unknown},
		{"strava, half readable", 200, head("X-RateLimit-Limit", "200,2000", "X-RateLimit-Usage", "x,1034", "X-RateLimit-Retry-After", "3"),
			[]retryafter.LimitSignal{limit("day", 2000, 966, 31834*time.Second, 24*time.Hour)}, 3 * time.Second},
		{"the same twice", 200, head("X-RateLimit-Limit", "100", "X-RateLimit-Limit", "100", "X-RateLimit-Remaining", "5", "X-RateLimit-Remaining", "5"),
			[]retryafter.LimitSignal{limit("", 100, 5, unknown, unknown)}, unknown},
		{"not the same", 200, head("X-RateLimit-Limit", "100", "X-RateLimit-Remaining", "5", "X-RateLimit-Remaining", "6"),
			[]retryafter.LimitSignal{limit("", 100, unknown, unknown, unknown)}, unknown},
		{"not global", 429, head("Retry-After", "1", "X-RateLimit-Global", "false"), nil, time.Second},
		{"a label with a control character", 200, head("RateLimit-Remaining", "5", "RateLimit-Name", "a\x01b"),
			[]retryafter.LimitSignal{limit("", unknown, 5, unknown, unknown)}, unknown},
		{"an interval of nothing", 200, head("X-RateLimit-Max", "100", "X-RateLimit-Interval-Milliseconds", "0"),
			[]retryafter.LimitSignal{limit("", 100, unknown, unknown, unknown)}, unknown},
		{"both names of etsy", 200, head("x-limit-per-second", "150", "x-remaining-this-second", "140", "x-remaining-this-secon", "139"),
			[]retryafter.LimitSignal{limit("second", 150, 140, unknown, time.Second)}, unknown},
		{"binance's other windows", 200, head("X-MBX-USED-WEIGHT", "1", "X-MBX-USED-WEIGHT-1H", "1", "X-MBX-ORDER-COUNT-1D", "1", "X-MBX-ORDER-COUNT-0S", "1", "X-MBX-ORDER-COUNT-1Y", "1"),
			[]retryafter.LimitSignal{limit("", unknown, unknown, unknown, 24*time.Hour), limit("", unknown, unknown, unknown, time.Hour)}, unknown},
		{"azure compute, overdrawn", 429, head("x-ms-ratelimit-remaining-resource", "a2Hour;-3"),
			[]retryafter.LimitSignal{limit("a2Hour", unknown, 0, unknown, 2*time.Hour)}, unknown},
		{"azure compute, a name without a number", 200, head("x-ms-ratelimit-remaining-resource", "a/GetDay;3, b/Get0Sec;4"),
			[]retryafter.LimitSignal{limit("a/GetDay", unknown, 3, unknown, unknown), limit("b/Get0Sec", unknown, 4, unknown, unknown)}, unknown},
		{"azure arm", 200, head("x-ms-ratelimit-remaining-tenant-reads", "5", "x-ms-ratelimit-remaining-subscription-deletes", "6", "x-ms-ratelimit-remaining-", "7"),
			[]retryafter.LimitSignal{limit("subscription-deletes", unknown, 6, unknown, unknown), limit("tenant-reads", unknown, 5, unknown, unknown)}, unknown},
		{"zendesk, another key", 429, head("zendesk-ratelimit-a", "total=5; remaining=-1; color=red; resets=3"),
			[]retryafter.LimitSignal{limit("a", 5, 0, 3*time.Second, unknown)}, 3 * time.Second},
		{"a named limit completed", 200, head("RateLimit", `"default";r=50;t=30`, "RateLimit-Limit", "100", "RateLimit-Remaining", "50", "RateLimit-Reset", "31"),
			[]retryafter.LimitSignal{limit("default", 100, 50, 31*time.Second, unknown)}, unknown},
		{"policies twice", 200, head("RateLimit-Limit", "10, 10;w=1, 100;w=60", "RateLimit-Remaining", "2", "RateLimit-Policy", "10;w=1, 100;w=60"),
			[]retryafter.LimitSignal{limit("", 10, 2, unknown, time.Second), limit("", 100, unknown, unknown, time.Minute), limit("", 100, unknown, unknown, time.Minute)}, unknown},
		{"other units by their label", 200, head("x-ratelimit-limit-audio-seconds", "7200", "x-ratelimit-limit-compute_credits", "5"),
			[]retryafter.LimitSignal{inTokens(limit("audio-seconds", 7200, unknown, unknown, unknown)), inTokens(limit("compute_credits", 5, unknown, unknown, unknown))}, unknown},
		{"rapidapi's 400 is no refusal", 400, head("x-ratelimit-requests-limit", "500", "x-ratelimit-requests-remaining", "0", "x-ratelimit-requests-reset", "84211"),
			[]retryafter.LimitSignal{limit("requests", 500, 0, 84211*time.Second, unknown)}, unknown},
		{"linear's 400 is one", 400, head("x-ratelimit-endpoint-limit", "500", "x-ratelimit-endpoint-remaining", "0", "x-ratelimit-endpoint-reset", fmt.Sprint(pi.UnixMilli()+1500)),
			[]retryafter.LimitSignal{limit("endpoint", 500, 0, 1500*time.Millisecond, unknown)}, 1500 * time.Millisecond},
		{"stored", 200, head("Age", "60", "RateLimit", `"a";r=0;t=5`, "RateLimit-Policy", `"a";q=10;w=60`),
			[]retryafter.LimitSignal{limit("a", 10, unknown, unknown, time.Minute)}, unknown},
		{"an escaped name", 200, head("RateLimit", `"a\"b\\";r=1`, "RateLimit-Policy", `"a\"b\\";q=5`),
			[]retryafter.LimitSignal{limit(`a"b\`, 5, 1, unknown, unknown)}, unknown},
		{"another unit", 200, head("RateLimit", `"a";r=1`, "RateLimit-Policy", `"a";q=5;qu="content-bytes"`),
			[]retryafter.LimitSignal{inTokens(limit("a", 5, 1, unknown, unknown))}, unknown},
		{"a dictionary without its limit", 200, head("RateLimit", `remaining=50, reset=5`, "RateLimit-Policy", `100;w=10`),
			[]retryafter.LimitSignal{limit("", 100, 50, 5*time.Second, 10*time.Second)}, unknown},
		{"a dictionary with named policies", 200, head("RateLimit", `limit=100, remaining=50, reset=5`, "RateLimit-Policy", `"a";q=100;w=10, "b";q=9;w=1`),
			[]retryafter.LimitSignal{limit("a", 100, 50, 5*time.Second, 10*time.Second), limit("b", 9, unknown, unknown, time.Second)}, unknown},
		{"thousands", 200, head("X-RateLimit-Limit", "5,000", "X-RateLimit-Remaining", "2,400"), nil, unknown},
		{"lark, another 400", 400, head("x-ogw-ratelimit-limit", "50", "x-ogw-ratelimit-reset", "0"),
			[]retryafter.LimitSignal{limit("", 50, unknown, 0, unknown)}, unknown},
		{"lark refuses", 400, head("x-ogw-ratelimit-limit", "50", "x-ogw-ratelimit-reset", "12.3"),
			[]retryafter.LimitSignal{limit("", 50, unknown, 12300*time.Millisecond, unknown)}, 12300 * time.Millisecond},
		{"envoy", 200, head("x-ratelimit-limit", `10, 10;w=1;name="foo", 100;w=60`, "x-ratelimit-remaining", "2", "x-ratelimit-reset", "1"),
			[]retryafter.LimitSignal{limit("foo", 10, 2, time.Second, time.Second), limit("", 100, unknown, unknown, time.Minute)}, unknown},
		{"docker", 200, head("ratelimit-limit", "100;w=21600", "ratelimit-remaining", "20;w=21600", "docker-ratelimit-source", "192.0.2.1"),
			[]retryafter.LimitSignal{limit("", 100, 20, unknown, 6*time.Hour)}, unknown},
		{"kong", 429, head("RateLimit-Limit", "5000", "RateLimit-Remaining", "0", "RateLimit-Reset", "1800",
			"X-RateLimit-Limit-Minute", "100", "X-RateLimit-Remaining-Minute", "60", "X-RateLimit-Limit-Hour", "5000", "X-RateLimit-Remaining-Hour", "0"),
			[]retryafter.LimitSignal{limit("hour", 5000, 0, 1800*time.Second, time.Hour), limit("minute", 100, 60, unknown, time.Minute)}, 1800 * time.Second},
		{"twice under two names", 200, head("RateLimit-Limit", "60", "RateLimit-Remaining", "59", "RateLimit-Reset", "30",
			"X-RateLimit-Limit", "60", "X-RateLimit-Remaining", "59", "X-RateLimit-Reset", fmt.Sprint(pi.Unix()+31)),
			[]retryafter.LimitSignal{limit("", 60, 59, 31*time.Second, unknown)}, unknown},
		{"two limits under two names", 200, head("RateLimit-Limit", "60", "RateLimit-Remaining", "59", "RateLimit-Reset", "30",
			"X-RateLimit-Limit", "60", "X-RateLimit-Remaining", "59", "X-RateLimit-Reset", "3000"),
			[]retryafter.LimitSignal{limit("", 60, 59, 30*time.Second, unknown), limit("", 60, 59, 3000*time.Second, unknown)}, unknown},
		{"named and unnamed", 200, head("RateLimit", `"default";r=50;t=30`, "RateLimit-Policy", `"default";q=100;w=60`,
			"X-RateLimit-Limit", "100", "X-RateLimit-Remaining", "50", "X-RateLimit-Reset", fmt.Sprint(pi.Unix()+30)),
			[]retryafter.LimitSignal{limit("default", 100, 50, 30*time.Second, time.Minute)}, unknown},
		{"zendesk", 200, head("x-rate-limit", "400", "ratelimit-remaining", "384", "ratelimit-reset", "50",
			"zendesk-ratelimit-tickets-index", "total=20000; remaining=19999; resets=42", "zendesk-ratelimit-incremental-exports", "total=10;    remaining=9;     resets=2"),
			[]retryafter.LimitSignal{
				limit("", 400, 384, 50*time.Second, unknown),
				limit("incremental-exports", 10, 9, 2*time.Second, unknown),
				limit("tickets-index", 20000, 19999, 42*time.Second, unknown),
			}, unknown},
		{"hubspot", 200, head("X-HubSpot-RateLimit-Max", "100", "X-HubSpot-RateLimit-Remaining", "97", "X-HubSpot-RateLimit-Interval-Milliseconds", "10000",
			"X-HubSpot-RateLimit-Secondly", "10", "X-HubSpot-RateLimit-Secondly-Remaining", "0"),
			[]retryafter.LimitSignal{limit("", 100, 97, unknown, 10*time.Second)}, unknown},
		{"contentful", 429, head("X-Contentful-RateLimit-Reset", "1200", "X-Contentful-RateLimit-Second-Limit", "7", "X-Contentful-RateLimit-Second-Remaining", "6",
			"X-Contentful-RateLimit-Hour-Limit", "36000", "X-Contentful-RateLimit-Hour-Remaining", "0"),
			[]retryafter.LimitSignal{limit("hour", 36000, 0, 1200*time.Second, time.Hour), limit("second", 7, 6, unknown, time.Second)}, 1200 * time.Second},
		{"xero", 429, head("X-MinLimit-Remaining", "58", "X-DayLimit-Remaining", "0", "X-Rate-Limit-Problem", "day", "Retry-After", "40000"),
			[]retryafter.LimitSignal{limit("day", unknown, 0, unknown, 24*time.Hour), limit("minute", unknown, 58, unknown, time.Minute)}, 40000 * time.Second},
		{"xero concurrent", 429, head("X-Rate-Limit-Problem", "concurrent"),
			[]retryafter.LimitSignal{limit("concurrent", unknown, unknown, unknown, unknown)}, unknown},
		{"sentry", 429, head("X-Sentry-Rate-Limits", "60:transaction:key, 2700:default;error;security:organization:quota:ns", "Retry-After", "60"),
			[]retryafter.LimitSignal{limit("key", unknown, unknown, 60*time.Second, unknown), limit("organization", unknown, unknown, 2700*time.Second, unknown)}, 2700 * time.Second},
		{"meta", 200, head("X-App-Usage", `{"call_count":28,"total_time":25.5,"total_cputime":3}`),
			[]retryafter.LimitSignal{inTokens(limit("app", 100, 72, unknown, unknown))}, unknown},
		{"meta business", 400, head("X-Business-Use-Case-Usage", `{"17841":[{"type":"ads_insights","call_count":100,"total_cputime":20,"total_time":20,"estimated_time_to_regain_access":19}]}`),
			[]retryafter.LimitSignal{inTokens(limit("business-use-case", 100, 0, 19*time.Minute, unknown))}, 19 * time.Minute},
		{"binance", 429, head("X-MBX-USED-WEIGHT-1M", "6001", "X-MBX-ORDER-COUNT-10S", "51", "Retry-After", "21"),
			[]retryafter.LimitSignal{limit("", unknown, unknown, unknown, 10*time.Second), limit("", unknown, unknown, unknown, time.Minute)}, 21 * time.Second},
		{"discord", 200, head("X-RateLimit-Limit", "5", "X-RateLimit-Remaining", "4", "X-RateLimit-Reset", "1773500966.997", "X-RateLimit-Reset-After", "0.996", "X-RateLimit-Bucket", "abcd"),
			[]retryafter.LimitSignal{limit("", 5, 4, 996*time.Millisecond, unknown)}, unknown},
		{"discord global", 429, head("Retry-After", "64.57", "X-RateLimit-Global", "true"),
			[]retryafter.LimitSignal{limit("global", unknown, unknown, unknown, unknown)}, 64570 * time.Millisecond},
		{"discord v6", 429, head("Retry-After", "6457", "X-RateLimit-Limit", "10", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1773500973", "X-RateLimit-Bucket", "abcd"),
			[]retryafter.LimitSignal{limit("", 10, 0, 7*time.Second, unknown)}, 6457 * time.Millisecond},
		{"gitlab falls back", 429, head("RateLimit-Limit", "500", "RateLimit-Remaining", "0", "RateLimit-Reset", "soon", "RateLimit-ResetTime", "Sat, 14 Mar 2026 15:09:56 GMT", "RateLimit-Name", "throttle", "RateLimit-Observed", "501"),
			[]retryafter.LimitSignal{limit("throttle", 500, 0, 30*time.Second, unknown)}, 30 * time.Second},
		{"openai", 429, head("x-ratelimit-limit-requests", "3000", "x-ratelimit-remaining-requests", "2990", "x-ratelimit-reset-requests", "200ms",
			"x-ratelimit-limit-tokens", "250000", "x-ratelimit-remaining-tokens", "0", "x-ratelimit-reset-tokens", "6m0s", "retry-after-ms", "4210.5", "retry-after", "5"),
			[]retryafter.LimitSignal{limit("requests", 3000, 2990, 200*time.Millisecond, unknown), inTokens(limit("tokens", 250000, 0, 6*time.Minute, unknown))}, 4211 * time.Millisecond},
		{"huggingface", 200, head("RateLimit", `"api";r=0;t=120`, "RateLimit-Policy", `"fixed window";"api";q=500;w=300`),
			[]retryafter.LimitSignal{limit("api", unknown, 0, 120*time.Second, unknown)}, unknown},
		{"stripe", 429, head("Stripe-Rate-Limited-Reason", "endpoint-rate"),
			[]retryafter.LimitSignal{limit("endpoint-rate", unknown, unknown, unknown, unknown)}, unknown},
		{"graph", 429, head("x-ms-throttle-scope", "Tenant_Application/ReadWrite/a/b", "Retry-After", "17"),
			[]retryafter.LimitSignal{limit("Tenant_Application/ReadWrite/a/b", unknown, unknown, unknown, unknown)}, 17 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := retryafter.Read(c.status, c.h, pi)
			limits := slices.Clone(s.Limits())
			for i := range limits {
				limits[i] = bare(limits[i])
			}
			if got := fmt.Sprintf("%+v", limits); got != fmt.Sprintf("%+v", c.want) {
				t.Errorf("limits\n got %s\nwant %+v", got, c.want)
			}
			if s.HasRetryAfter != (c.ask >= 0) || c.ask >= 0 && s.RetryAfter != c.ask {
				t.Errorf("RetryAfter = %v, %v, want %v", s.RetryAfter, s.HasRetryAfter, c.ask)
			}
		})
	}
}

// TestOdditiesMalformed: a value that cannot be read is ignored, and reported.
func TestOdditiesMalformed(t *testing.T) {
	for _, c := range []struct{ name, value string }{
		{"Sforce-Limit-Info", "a\x01b=1/2"},
		{"x-ms-ratelimit-remaining-resource", "a\x7f;5"},
		{"X-Sentry-Rate-Limits", "60:error:a\x00b"},
		{"Stripe-Rate-Limited-Reason", "a\x00b"},
		{"X-Shopify-Shop-Api-Call-Limit", "40"},
		{"X-Shopify-Shop-Api-Call-Limit", "1/2/3"},
		{"X-Shopify-Shop-Api-Call-Limit", "-1/40"},
		{"X-Shopify-Shop-Api-Call-Limit", "1/99999999999999999999"},
		{"Sforce-Limit-Info", "api-usage"},
		{"Sforce-Limit-Info", "=1/2"},
		{"Sforce-Limit-Info", strings.Repeat("x", 5000)},
		{"x-amzn-RateLimit-Limit", "0"},
		{"x-amzn-RateLimit-Limit", "0.0"},
		{"x-amzn-RateLimit-Limit", "-1"},
		{"x-amzn-RateLimit-Limit", "1e3"},
		{"x-ms-ratelimit-remaining-resource", "Microsoft.Compute/HighCostGet3Min"},
		{"x-ms-ratelimit-remaining-resource", ";5"},
		{"x-ms-ratelimit-remaining-resource", "a;x"},
		{"X-ReadRateLimit-Limit", "100,1000"},
		{"X-RateLimit-Usage", "5"},
		{"zendesk-ratelimit-tickets-index", "total=; remaining=x; resets=-1"},
		{"X-Sentry-Rate-Limits", "60"},
		{"X-Sentry-Rate-Limits", "soon:error:organization"},
		{"X-Sentry-Rate-Limits", "-5:error:organization"},
		{"X-App-Usage", `{"call_count":28`},
		{"X-App-Usage", `{"call_count":"28"}x`},
		{"X-App-Usage", `{"call_count":-1}`},
		{"X-App-Usage", `28`},
		{"X-App-Usage", strings.Repeat("[", 1<<20)},
		{"X-App-Usage", strings.Repeat("[", 40)},
		{"X-Business-Use-Case-Usage", `{"1":[{"call_count":5,"estimated_time_to_regain_access":-5}]}`},
		{"RateLimit", `"a";r=x`},
		{"RateLimit", `limit=100 remaining=50`},
		{"RateLimit-Policy", `"a";w=10`},
		{"RateLimit-Policy", `"a";q=10;w=0`},
		{"RateLimit-Policy", `a;q=10`},
		{"RateLimit-Policy", `"fixed window";"api";q=500`},
		{"RateLimit-Limit", "1,000"},
		{"RateLimit-Limit", "9999999999999999"},
		{"RateLimit-Remaining", "2,400"},
		{"X-RateLimit-Reset", "10, 20"},
		{"X-RateLimit-Limit", "1,000"},
		{"X-RateLimit-Remaining", "2,400"},
	} {
		h := head(c.name, c.value)
		s := retryafter.Read(200, h, pi)
		if l, ok := s.Binding(); ok || s.HasRetryAfter {
			t.Errorf("%s: %.50q: read as %+v, RetryAfter %v", c.name, c.value, l, s.RetryAfter)
		}
		if s.Malformed != http.CanonicalHeaderKey(c.name) && c.name != "X-ReadRateLimit-Limit" && c.name != "X-RateLimit-Usage" {
			t.Errorf("%s: %.50q: Malformed = %q", c.name, c.value, s.Malformed)
		}
	}
}

// TestMalformedNames: of several the first by name, whatever the map's order.
func TestMalformedNames(t *testing.T) {
	h := head("Retry-After", "soon", "X-RateLimit-Limit", "many", "RateLimit", "?", "X-RateLimit-Remaining", "5")
	for range 50 {
		if s := retryafter.Read(429, h, pi); s.Malformed != "Ratelimit" {
			t.Fatalf("Malformed = %q, want Ratelimit", s.Malformed)
		}
	}
	if s := retryafter.Read(429, head("Retry-After", "5", "X-RateLimit-Remaining", "-1"), pi); s.Malformed != "" {
		t.Errorf("a sentinel counts as malformed: %q", s.Malformed)
	}
}

// TestReadIsDeterministic: a map has no order, a Signal has one.
func TestReadIsDeterministic(t *testing.T) {
	h := head("Retry-After", "7")
	for _, w := range []string{"Second", "Minute", "Hour", "Day", "Month", "Year", "Week", "Other", "Tokens"} {
		h.Set("X-RateLimit-Limit-"+w, "100")
		h.Set("X-RateLimit-Remaining-"+w, "50")
	}
	want := retryafter.Read(429, h, pi)
	for range 200 {
		if got := retryafter.Read(429, h, pi); got != want {
			t.Fatalf("got %+v, then %+v", want, got)
		}
	}
}

// TestRateLimitCombined: C9. One combined line and several lines read the same.
func TestRateLimitCombined(t *testing.T) {
	members := []string{`"burst";r=8;t=1`, `"daily";r=3;t=69076`, `"hour";r=90;t=9`}
	policies := []string{`"burst";q=10;w=10`, `"daily";q=5000;w=86400`, `"hour";q=1000;w=3600`}
	combined := head("RateLimit", strings.Join(members, ", "), "RateLimit-Policy", strings.Join(policies, ","))
	want := retryafter.Read(200, combined, pi)
	if l, _ := want.Binding(); bare(l) != limit("daily", 5000, 3, 69076*time.Second, 24*time.Hour) {
		t.Errorf("binding %+v", l)
	}
	rnd := rand.New(rand.NewPCG(1, 9))
	for range 50 {
		h := http.Header{}
		for name, list := range map[string][]string{"RateLimit": members, "RateLimit-Policy": policies} {
			for from := 0; from < len(list); {
				to := from + 1 + rnd.IntN(len(list)-from)
				h.Add(name, strings.Join(list[from:to], " , "))
				from = to
			}
		}
		if got := retryafter.Read(200, h, pi); got != want {
			t.Fatalf("%v:\n got %+v\nwant %+v", h, got, want)
		}
	}
}

// TestRetryAfterLines: two lines and one list say the same; the longest valid one
// counts (RFC 9110, section 5.3).
func TestRetryAfterLines(t *testing.T) {
	const date, later = "Sat, 14 Mar 2026 15:09:56 GMT", "Saturday, 14-Mar-26 15:10:26 GMT"
	for _, c := range []struct {
		lines []string
		want  time.Duration // -1: nothing
		bad   bool
	}{
		{[]string{"5", "120"}, 120 * time.Second, false},
		{[]string{"5, 120"}, 120 * time.Second, false},
		{[]string{"120", "5"}, 120 * time.Second, false},
		{[]string{"", "15"}, 15 * time.Second, false},
		{[]string{", 15"}, 15 * time.Second, false},
		{[]string{"15,"}, 15 * time.Second, false},
		{[]string{"60", "60s"}, 60 * time.Second, true},
		{[]string{"60, 60s"}, 60 * time.Second, true},
		{[]string{"60", date}, 60 * time.Second, false},
		{[]string{"10, " + date}, 30 * time.Second, false},
		{[]string{date + ", 10"}, 30 * time.Second, false},
		{[]string{date + ", " + later}, 60 * time.Second, false},
		{[]string{later, date}, 60 * time.Second, false},
		{[]string{"Sat, 14"}, unknown, true},
		{[]string{"Sat, 30, 5"}, 5 * time.Second, true},
		{[]string{"7,5"}, unknown, true},
		{[]string{"4,4"}, unknown, true},
		{[]string{"1,000"}, unknown, true},
		{[]string{""}, unknown, true},
		{[]string{" , "}, unknown, true},
		{[]string{"soon"}, unknown, true},
		{[]string{strings.Repeat(" ", 1000)}, unknown, true},
	} {
		s := retryafter.Read(429, http.Header{"Retry-After": c.lines}, pi)
		if s.HasRetryAfter != (c.want >= 0) || c.want >= 0 && s.RetryAfter != c.want || (s.Malformed != "") != c.bad {
			t.Errorf("%q: %v, %v, malformed %q, want %v, %v", c.lines, s.RetryAfter, s.HasRetryAfter, s.Malformed, c.want, c.bad)
		}
	}
}

// TestServerClock: an instant is measured against Date and Age, a delay is not.
func TestServerClock(t *testing.T) {
	behind := pi.Add(-5 * time.Minute)
	for _, c := range []struct {
		name string
		h    http.Header
		want time.Duration
	}{
		{"date", head("Date", behind.Format(http.TimeFormat), "Retry-After", behind.Add(time.Minute).Format(http.TimeFormat)), time.Minute},
		{"epoch", head("Date", behind.Format(http.TimeFormat), "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", fmt.Sprint(behind.Unix()+60)), time.Minute},
		{"RFC 3339", head("Date", behind.Format(http.TimeFormat), "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", behind.Add(time.Minute).Format(time.RFC3339)), time.Minute},
		{"seconds", head("Date", behind.Format(http.TimeFormat), "Retry-After", "60"), time.Minute},
		{"stored", head("Date", behind.Format(http.TimeFormat), "Age", "20", "Retry-After", behind.Add(time.Minute).Format(http.TimeFormat)), 40 * time.Second},
		{"stored too long", head("Date", behind.Format(http.TimeFormat), "Age", "99999999999999999999", "Retry-After", behind.Add(time.Minute).Format(http.TimeFormat)), 0},
		{"unreadable Age", head("Date", behind.Format(http.TimeFormat), "Age", "-20", "Retry-After", behind.Add(time.Minute).Format(http.TimeFormat)), time.Minute},
		{"unreadable Date", head("Date", "yesterday", "Retry-After", pi.Add(time.Minute).Format(http.TimeFormat)), time.Minute},
		{"RFC 850 Date", head("Date", behind.Format("Monday, 02-Jan-06 15:04:05 GMT"), "Retry-After", behind.Add(time.Minute).Format(http.TimeFormat)), time.Minute},
	} {
		if s := retryafter.Read(429, c.h, pi); !s.HasRetryAfter || s.RetryAfter != c.want {
			t.Errorf("%s: %v, %v, want %v", c.name, s.RetryAfter, s.HasRetryAfter, c.want)
		}
	}
}
