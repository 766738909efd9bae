package retryafter_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headway-go/headway/retryafter"
)

const (
	secondary = `{"documentation_url":"https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api#about-secondary-rate-limits",` +
		`"message":"You have exceeded a secondary rate limit. Please wait a few minutes before you try again. If you reach out to GitHub Support for help, please include the request ID C0:1."}`
	abuse     = `{"message":"You have triggered an abuse detection mechanism. Please wait a few minutes before you try again.","documentation_url":"https://developer.github.com/v3/#abuse-rate-limits"}`
	primary   = `{"message":"API rate limit exceeded for user ID 1.","documentation_url":"https://docs.github.com/rest/overview/rate-limits-for-the-rest-api"}`
	forbidden = `{"message":"Resource not accessible by integration","documentation_url":"https://docs.github.com/rest/issues/issues#create-an-issue","status":"403"}`

	slowDown = `<?xml version="1.0" encoding="UTF-8"?>` + "\n" + `<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message><RequestId>1</RequestId></Error>`
	internal = `<?xml version="1.0" encoding="UTF-8"?>` + "\n" + `<Error><Code>InternalError</Code><Message>SlowDown</Message></Error>`
	dynamo   = `{"__type":"com.amazonaws.dynamodb.v20120810#ThrottlingException","message":"Rate exceeded"}`

	googleOld  = `{"error":{"errors":[{"domain":"usageLimits","reason":"rateLimitExceeded","message":"Rate Limit Exceeded"}],"code":403,"message":"Rate Limit Exceeded"}}`
	googleNew  = `{"error":{"code":429,"message":"Quota exceeded","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"RATE_LIMIT_EXCEEDED","domain":"googleapis.com"},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.074824224s"}]}}`
	googleList = `[{"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}]`
	googleNo   = `{"error":{"errors":[{"domain":"global","reason":"insufficientPermissions","message":"rateLimitExceeded"}],"code":403,"message":"Insufficient Permission"}}`

	openAIQuota = `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`
	openAIRate  = `{"error":{"message":"Rate limit reached for requests","type":"requests","param":null,"code":"rate_limit_exceeded"}}`
)

func TestReadBody(t *testing.T) {
	plenty := head("X-RateLimit-Limit", "5000", "X-RateLimit-Remaining", "4114", "X-RateLimit-Reset", fmt.Sprint(pi.Add(55*time.Minute).Unix()))
	exhausted := head("X-RateLimit-Limit", "60", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", fmt.Sprint(pi.Add(10*time.Minute).Unix()), "X-GitHub-Request-Id", "1")
	github := []retryafter.Dialect{retryafter.GitHub}
	for _, c := range []struct {
		name       string
		dialects   []retryafter.Dialect
		host       string
		status     int
		h          http.Header
		body       string
		found      bool
		throttled  bool
		noRetry    bool
		ask        time.Duration
		documented bool
	}{
		// S67 and C7: a minute, growing, not 55 minutes.
		{"secondary", github, "", 403, plenty, secondary, true, true, false, time.Minute, true},
		{"secondary, GitHub not known", nil, "", 403, plenty, secondary, true, true, false, time.Minute, true},
		{"secondary, known host", nil, "api.github.com", 403, plenty, secondary, true, true, false, time.Minute, true},
		{"secondary, 429", nil, "api.github.com", 429, plenty, secondary, true, true, false, time.Minute, true},
		{"secondary with a time", github, "", 403, head("Retry-After", "90"), secondary, true, true, false, 90 * time.Second, false},
		{"abuse", github, "", 403, plenty, abuse, true, true, false, time.Minute, true},
		{"primary", github, "", 403, exhausted, primary, true, true, false, 10 * time.Minute, false},
		{"secondary while exhausted", github, "", 403, exhausted, secondary, true, true, false, 10 * time.Minute, false},
		{"forbidden", github, "", 403, plenty, forbidden, false, false, false, unknown, false},
		{"secondary, not chosen", []retryafter.Dialect{retryafter.AWS}, "", 403, plenty, secondary, false, false, false, unknown, false},
		{"secondary, another host", nil, "s3.amazonaws.com", 403, nil, secondary, false, false, false, unknown, false},
		{"secondary on a success", github, "", 200, plenty, secondary, false, false, false, unknown, false},
		{"secondary on a 500", github, "", 500, plenty, secondary, false, false, false, unknown, false},
		{"secondary deeper", github, "", 403, plenty, `{"error":` + secondary + `}`, false, false, false, unknown, false},
		{"secondary under another key", github, "", 403, plenty, `{"text":"You have exceeded a secondary rate limit"}`, false, false, false, unknown, false},

		{"SlowDown", nil, "", 503, nil, slowDown, true, true, false, unknown, false},
		{"SlowDown of S3", nil, "bucket.s3.amazonaws.com", 503, nil, slowDown, true, true, false, unknown, false},
		{"SlowDown without declaration", []retryafter.Dialect{retryafter.AWS}, "", 503, nil, "\ufeff <Error><Code>SlowDown</Code></Error>", true, true, false, unknown, false},
		{"query protocol", []retryafter.Dialect{retryafter.AWS}, "", 400, nil, `<ErrorResponse xmlns="https://iam.amazonaws.com/doc/2010-05-08/"><Error><Type>Sender</Type><Code>Throttling</Code></Error></ErrorResponse>`, true, true, false, unknown, false},
		{"EC2", []retryafter.Dialect{retryafter.AWS}, "", 503, nil, `<Response><Errors><Error><Code>RequestLimitExceeded</Code></Error></Errors></Response>`, true, true, false, unknown, false},
		{"another error", nil, "", 503, nil, internal, false, false, false, unknown, false},
		{"in a comment", nil, "", 503, nil, `<Error><!-- <Code>SlowDown</Code> --></Error>`, false, false, false, unknown, false},
		{"in a page", nil, "", 503, nil, `<html><Code>SlowDown</Code></html>`, false, false, false, unknown, false},
		{"dynamo", []retryafter.Dialect{retryafter.AWS}, "", 400, nil, dynamo, true, true, false, unknown, false},
		{"dynamo, another error", []retryafter.Dialect{retryafter.AWS}, "", 400, nil, `{"__type":"a#ValidationException"}`, false, false, false, unknown, false},

		{"google", nil, "www.googleapis.com", 403, nil, googleOld, true, true, false, unknown, false},
		{"google by user", []retryafter.Dialect{retryafter.Google}, "", 403, nil, strings.ReplaceAll(googleOld, "rateLimit", "userRateLimit"), true, true, false, unknown, false},
		{"google with RetryInfo", []retryafter.Dialect{retryafter.Google}, "", 429, nil, googleNew, true, true, false, 34075 * time.Millisecond, false},
		{"google in a list", []retryafter.Dialect{retryafter.Google}, "", 429, nil, googleList, true, true, false, unknown, false},
		{"google, Retry-After is explicit", []retryafter.Dialect{retryafter.Google}, "", 429, head("Retry-After", "7"), googleNew, true, true, false, 7 * time.Second, false},
		{"google, a permission", []retryafter.Dialect{retryafter.Google}, "", 403, nil, googleNo, false, false, false, unknown, false},
		{"google, malformed delay", []retryafter.Dialect{retryafter.Google}, "", 429, nil, `{"error":{"details":[{"retryDelay":"-5s"}]}}`, false, true, false, unknown, false},
		{"google, endless delay", []retryafter.Dialect{retryafter.Google}, "", 429, nil, `{"error":{"details":[{"retryDelay":"99999999999999999999s"}]}}`, true, true, false, forever, false},

		// C11: one attempt.
		{"openai quota", nil, "api.openai.com", 429, nil, openAIQuota, true, true, true, unknown, false},
		{"openai quota, OpenAI not known", nil, "", 429, nil, openAIQuota, true, true, true, unknown, false},
		{"openai rate", nil, "api.openai.com", 429, nil, openAIRate, false, true, false, unknown, false},
		{"openai quota in a message", nil, "", 429, nil, `{"error":{"message":"insufficient_quota"}}`, false, true, false, unknown, false},
		{"openai quota on a 403", nil, "", 403, nil, openAIQuota, false, false, false, unknown, false},

		{"empty", nil, "", 429, nil, "", false, true, false, unknown, false},
		{"no JSON", nil, "", 429, nil, "slow down", false, true, false, unknown, false},
		{"none", []retryafter.Dialect{retryafter.None}, "", 403, plenty, secondary, false, false, false, unknown, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, found := retryafter.NewReader(c.dialects, c.host).ReadBody(c.status, c.h, []byte(c.body), pi)
			if found != c.found || s.Throttled != c.throttled || s.NoRetry != c.noRetry || s.Documented != c.documented {
				t.Errorf("found %v, Throttled %v, NoRetry %v, Documented %v", found, s.Throttled, s.NoRetry, s.Documented)
			}
			if s.HasRetryAfter != (c.ask >= 0) || c.ask >= 0 && s.RetryAfter != c.ask {
				t.Errorf("RetryAfter = %v, %v, want %v", s.RetryAfter, s.HasRetryAfter, c.ask)
			}
			if found && s.Dialect == "" {
				t.Error("no dialect")
			}
		})
	}
}

// TestReadBodyCut: a body may end anywhere. Whatever is left of it, it tells the
// whole truth, a part of it, or nothing; and once found it stays so.
func TestReadBodyCut(t *testing.T) {
	all := retryafter.NewReader(nil, "")
	padding := `"padding":"` + strings.Repeat("x", 5000) + `",`
	for _, c := range []struct {
		status int
		body   string
		found  bool
	}{
		{403, secondary, true}, {403, abuse, true}, {403, primary, true}, {403, forbidden, false},
		{503, slowDown, true}, {503, internal, false},
		{403, googleOld, true}, {429, googleNew, true}, {403, googleNo, false},
		{429, openAIQuota, true}, {429, openAIRate, false},
		{403, `{` + padding + secondary[1:], false}, // behind the first 4 KiB
		{403, secondary[:len(secondary)-1] + `,` + padding + `"a":1}`, true},
	} {
		found := false
		for i := range len(c.body) + 1 {
			s, ok := all.ReadBody(c.status, nil, []byte(c.body[:i]), pi)
			if found && !ok || ok && !c.found {
				t.Fatalf("%d bytes of %.60q: found %v after %v", i, c.body, ok, found)
			}
			if ok && !s.Throttled {
				t.Fatalf("%d bytes of %.60q: no throttle", i, c.body)
			}
			found = ok
		}
		if found != c.found {
			t.Errorf("%.60q: found %v, want %v", c.body, found, c.found)
		}
	}
}

// TestReadBodyHostile: no bytes make it panic, wait for less than nothing or work
// for long.
func TestReadBodyHostile(t *testing.T) {
	all := retryafter.NewReader(nil, "")
	pieces := []string{
		"{", "}", "[", "]", ",", ":", `"`, `\`, `\u12`, `\u`, "\x00", "\xff", "<", ">", "<!--", "<Error>", "<Code>", "</Code>", "SlowDown",
		`"message"`, `"error"`, `"code"`, `"type"`, `"insufficient_quota"`, `"errors"`, `"reason"`, `"rateLimitExceeded"`, `"details"`, `"retryDelay"`, `"-1s"`, `"1e9s"`,
		"null", "true", "-", "1.", "1e", "0", "<?xml", "?>", " ", "\n",
	}
	rnd := rand.New(rand.NewPCG(6, 6))
	for range 50_000 {
		var b strings.Builder
		for range rnd.IntN(30) {
			b.WriteString(pieces[rnd.IntN(len(pieces))])
		}
		s, _ := all.ReadBody([]int{403, 429, 503}[rnd.IntN(3)], nil, []byte(b.String()), pi)
		if s.RetryAfter < 0 {
			t.Fatalf("%q: %v", b.String(), s.RetryAfter)
		}
	}
	for _, unit := range []string{"[", `{"a":`, `"`, "<Error>", `{"error":{"errors":[`, " ", "<"} {
		if _, found := all.ReadBody(429, nil, []byte(strings.Repeat(unit, 10<<20/len(unit))), pi); found {
			t.Errorf("%q many times: found", unit)
		}
	}
}

func TestNeedsBody(t *testing.T) {
	json := head("Content-Type", "application/json; charset=utf-8")
	for _, c := range []struct {
		name     string
		dialects []retryafter.Dialect
		host     string
		status   int
		h        http.Header
		want     bool
	}{
		{"success", nil, "", 200, json, false},
		{"redirect", nil, "", 301, json, false},
		{"not found", nil, "", 404, json, false},
		{"server error", nil, "", 500, json, false},
		{"403", nil, "", 403, json, true},
		{"429", nil, "", 429, json, true},
		{"503", nil, "", 503, head("Content-Type", "application/xml"), true},
		{"400 of anybody", nil, "", 400, json, false},
		{"400 of GitHub", nil, "api.github.com", 400, json, false},
		{"400 of AWS", nil, "dynamodb.us-east-1.amazonaws.com", 400, head("Content-Type", "application/x-amz-json-1.0"), true},
		{"400 of AWS, chosen", []retryafter.Dialect{retryafter.AWS}, "", 400, json, true},
		{"no type", nil, "", 429, nil, true},
		{"vendor type", nil, "", 429, head("Content-Type", "application/vnd.github+json"), true},
		{"text/xml", nil, "", 503, head("Content-Type", "text/XML"), true},
		{"text", nil, "", 429, head("Content-Type", "text/plain"), true},
		{"page", nil, "", 429, head("Content-Type", "text/html"), false},
		{"events", nil, "", 429, head("Content-Type", "text/event-stream"), false},
		{"stream of JSON", nil, "", 429, head("Content-Type", "application/x-ndjson"), false},
		{"sequence of JSON", nil, "", 429, head("Content-Type", "application/json-seq"), false},
		{"stream+json", nil, "", 429, head("Content-Type", "application/stream+json"), false},
		{"binary", nil, "", 429, head("Content-Type", "application/octet-stream"), false},
		{"a type without end", nil, "", 429, head("Content-Type", "json"+strings.Repeat("x", 1000)), false},
		{"none", []retryafter.Dialect{retryafter.None}, "", 429, json, false},
		{"a dialect without bodies", []retryafter.Dialect{retryafter.Slack}, "", 429, json, false},
		{"a dialect from outside without bodies", []retryafter.Dialect{custom{"a"}}, "", 429, json, false},
		{"a dialect from outside", []retryafter.Dialect{customBody{custom{"a"}}}, "", 418, json, true},
		{"a dialect from outside, 400", append(retryafter.Dialects(), customBody{custom{"a"}}), "", 400, nil, true},
		{"a dialect from outside, page", []retryafter.Dialect{customBody{custom{"a"}}}, "", 429, head("Content-Type", "text/html"), true},
		{"a dialect from outside, events", []retryafter.Dialect{customBody{custom{"a"}}}, "", 429, head("Content-Type", "text/event-stream"), false},
		{"a dialect from outside, binary", []retryafter.Dialect{customBody{custom{"a"}}}, "", 429, head("Content-Type", "image/png"), false},
		{"a dialect from outside, coded", []retryafter.Dialect{customBody{custom{"a"}}}, "", 429, head("Content-Type", "text/html", "Content-Encoding", "br"), false},
		{"a dialect from outside, success", []retryafter.Dialect{customBody{custom{"a"}}}, "", 200, json, false},
	} {
		if got := retryafter.NeedsBody(retryafter.NewReader(c.dialects, c.host), c.status, c.h); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestBodyDialects: the six that read bodies have the method, by themselves.
func TestBodyDialects(t *testing.T) {
	n := 0
	for _, d := range retryafter.Dialects() {
		if _, ok := d.(retryafter.BodyDialect); ok {
			n++
		}
	}
	if n != 6 {
		t.Errorf("%d dialects read bodies, want 6", n)
	}
	for d, body := range map[retryafter.Dialect]string{
		retryafter.GitHub: secondary, retryafter.AWS: slowDown, retryafter.Google: googleNew, retryafter.OpenAI: openAIQuota,
	} {
		status := 429
		if d == retryafter.AWS {
			status = 503
		}
		s, ok := d.(retryafter.BodyDialect).ReadBody(status, nil, []byte(body), pi)
		if !ok || !s.Throttled || s.Dialect != d.Name() {
			t.Errorf("%s: %+v, %v", d.Name(), s, ok)
		}
		if s, ok := d.(retryafter.BodyDialect).ReadBody(status, nil, []byte(`{}`), pi); ok {
			t.Errorf("%s of an empty object: %+v", d.Name(), s)
		}
	}
}
