package retryafter_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/headway-go/headway/retryafter"
)

// A unit is how a vendor writes a reset. write renders the instant d from now.
type unit struct {
	name  string
	write func(d time.Duration) string
	grain time.Duration // what it can express
}

var (
	deltaS  = unit{"delta s", func(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) }, time.Second}
	deltaF  = unit{"delta s with a fraction", func(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }, time.Millisecond}
	deltaMS = unit{"delta ms", func(d time.Duration) string { return strconv.Itoa(int(d / time.Millisecond)) }, time.Millisecond}
	epochS  = unit{"epoch s", func(d time.Duration) string { return strconv.FormatInt(pi.Add(d).Unix(), 10) }, time.Second}
	epochF  = unit{"epoch s with a fraction", func(d time.Duration) string {
		ms := pi.Add(d).UnixMilli()
		return fmt.Sprintf("%d.%03d", ms/1000, ms%1000)
	}, time.Millisecond}
	epochMS = unit{"epoch ms", func(d time.Duration) string { return strconv.FormatInt(pi.Add(d).UnixMilli(), 10) }, time.Millisecond}
	iso     = unit{"RFC 3339", func(d time.Duration) string { return pi.Add(d).Format(time.RFC3339) }, time.Second}
	iso6    = unit{"RFC 3339 with microseconds", func(d time.Duration) string { return pi.Add(d).Format("2006-01-02T15:04:05.000000Z07:00") }, time.Millisecond}
	imf     = unit{"HTTP-date", func(d time.Duration) string { return pi.Add(d).Format(http.TimeFormat) }, time.Second}
	jsDate  = unit{"JavaScript", func(d time.Duration) string {
		return pi.Add(d).In(time.FixedZone("", 3600)).Format("Mon Jan 02 2006 15:04:05 GMT-0700 (Central European Standard Time)")
	}, time.Second}
	goDur = unit{"Go", func(d time.Duration) string { return d.String() }, time.Millisecond}
	none  = unit{}
)

// A limitRow is one limit that a dialect announces: its headers, its unit, its
// label. These rows say in the test's own words what the vendors document, so that
// a slip in the package's table shows.
type limitRow struct {
	dialect                 string
	limit, remaining, reset string // the headers
	unit                    unit
	label                   string
	window                  time.Duration // stated by the headers' names
	windowHeader            string        // or by this one,
	windowValue             string        // with this value
	tokens                  bool          // other units than requests
	host                    string        // a host that the dialect is known for
	refuses                 []int         // statuses besides 429 and 503
	// asks to be read only where the dialect is chosen or the host known
	hinted bool
}

func xTrio(dialect string, u unit, host string, refuses ...int) limitRow {
	return limitRow{dialect: dialect, limit: "X-RateLimit-Limit", remaining: "X-RateLimit-Remaining", reset: "X-RateLimit-Reset", unit: u, host: host, refuses: refuses}
}

func ietfTrio(dialect string, u unit, host string) limitRow {
	return limitRow{dialect: dialect, limit: "RateLimit-Limit", remaining: "RateLimit-Remaining", reset: "RateLimit-Reset", unit: u, host: host}
}

func hyphenTrio(dialect string, u unit, host string) limitRow {
	return limitRow{dialect: dialect, limit: "X-Rate-Limit-Limit", remaining: "X-Rate-Limit-Remaining", reset: "X-Rate-Limit-Reset", unit: u, host: host}
}

func suffix(dialect, label string, u unit) limitRow {
	r := limitRow{dialect: dialect, limit: "x-ratelimit-limit-" + label, remaining: "x-ratelimit-remaining-" + label, unit: u, label: label}
	if u.write != nil {
		r.reset = "x-ratelimit-reset-" + label
	}
	return r
}

func infix(dialect, prefix, label string, u unit) limitRow {
	return limitRow{dialect: dialect, limit: prefix + label + "-Limit", remaining: prefix + label + "-Remaining", reset: prefix + label + "-Reset", unit: u, label: label}
}

func with(r limitRow, change func(*limitRow)) limitRow { change(&r); return r }

func tokens(r *limitRow)                       { r.tokens = true }
func window(d time.Duration) func(r *limitRow) { return func(r *limitRow) { r.window = d } }
func refuses(status int) func(r *limitRow)     { return func(r *limitRow) { r.refuses = []int{status} } }

var limitRows = []limitRow{
	ietfTrio("ratelimit", deltaS, ""),
	ietfTrio("ratelimit", epochS, ""),
	ietfTrio("ratelimit", imf, ""),
	xTrio("x-ratelimit", deltaS, ""),
	xTrio("x-ratelimit", deltaF, ""),
	xTrio("x-ratelimit", epochS, ""),
	xTrio("x-ratelimit", epochF, ""),
	xTrio("x-ratelimit", epochMS, ""),
	xTrio("x-ratelimit", iso, ""),
	xTrio("x-ratelimit", imf, ""),
	hyphenTrio("x-rate-limit", deltaS, ""),
	hyphenTrio("x-rate-limit", epochS, ""),
	hyphenTrio("x-rate-limit", epochMS, ""),

	with(xTrio("github", epochS, "api.github.com", 403), func(r *limitRow) { r.hinted = true }),
	ietfTrio("gitlab", epochS, "gitlab.com"),
	xTrio("jira", iso, "acme.atlassian.net"),
	xTrio("hipchat", epochS, "api.hipchat.com"),
	{dialect: "hipchat", limit: "X-FloodControl-Limit", remaining: "X-FloodControl-Remaining", reset: "X-FloodControl-Reset", unit: epochS, label: "floodcontrol"},

	{dialect: "discord", limit: "X-RateLimit-Limit", remaining: "X-RateLimit-Remaining", reset: "X-RateLimit-Reset-After", unit: deltaF, host: "discord.com"},
	xTrio("discord", epochF, "discord.com"),
	hyphenTrio("twitter", epochS, "api.twitter.com"),
	with(hyphenTrio("twitter", epochS, "api.x.com:443"), refuses(420)),
	xTrio("mastodon", iso6, "mastodon.social"),
	ietfTrio("bluesky", epochS, "bsky.social"),
	xTrio("vimeo", epochS, "api.vimeo.com"),
	xTrio("vimeo", iso, "api.vimeo.com"),
	xTrio("vimeo", imf, "api.vimeo.com"),
	ietfTrio("twitch", epochS, "api.twitch.tv"),

	{dialect: "xero", remaining: "X-MinLimit-Remaining", label: "minute", window: time.Minute},
	{dialect: "xero", remaining: "X-DayLimit-Remaining", label: "day", window: 24 * time.Hour},
	{dialect: "xero", remaining: "X-AppMinLimit-Remaining", label: "app-minute", window: time.Minute},
	{dialect: "etsy", limit: "x-limit-per-second", remaining: "x-remaining-this-second", label: "second", window: time.Second},
	{dialect: "etsy", limit: "x-limit-per-day", remaining: "x-remaining-today", label: "day", window: 24 * time.Hour},

	suffix("openai", "requests", goDur),
	with(suffix("openai", "tokens", goDur), tokens),
	with(suffix("openai", "project-tokens", goDur), tokens),
	with(suffix("openai", "tokens_usage_based", goDur), tokens),
	suffix("groq", "requests", goDur),
	with(suffix("groq", "tokens", goDur), tokens),
	suffix("azure-openai", "requests", deltaS),
	with(suffix("azure-openai", "tokens", deltaS), tokens),
	infix("anthropic", "anthropic-ratelimit-", "requests", iso),
	with(infix("anthropic", "anthropic-ratelimit-", "tokens", iso), tokens),
	with(infix("anthropic", "anthropic-ratelimit-", "input-tokens", iso), tokens),
	with(infix("anthropic", "anthropic-ratelimit-", "output-tokens", iso), tokens),
	xTrio("together", deltaS, "api.together.xyz"),

	{dialect: "azure-arm", remaining: "x-ms-ratelimit-remaining-subscription-reads", label: "subscription-reads", host: "management.azure.com"},
	{dialect: "azure-arm", remaining: "x-ms-ratelimit-remaining-tenant-resource-requests", label: "tenant-resource-requests"},
	ietfTrio("sharepoint", deltaS, "acme.sharepoint.com"),
	ietfTrio("ms-graph", deltaS, "graph.microsoft.com"),
	hyphenTrio("okta", epochS, "acme.okta.com"),
	xTrio("auth0", epochS, "acme.auth0.com"),
	ietfTrio("digitalocean", epochS, "api.digitalocean.com"),
	{dialect: "heroku", remaining: "RateLimit-Remaining", host: "api.heroku.com"},
	xTrio("vercel", epochS, "api.vercel.com"),
	ietfTrio("kong", deltaS, ""),
	with(suffix("kong", "second", none), window(time.Second)),
	with(suffix("kong", "minute", none), window(time.Minute)),
	with(suffix("kong", "hour", none), window(time.Hour)),
	with(suffix("kong", "day", none), window(24*time.Hour)),
	suffix("kong", "month", none),
	suffix("kong", "year", none),
	xTrio("envoy", deltaS, ""),
	xTrio("laravel", epochS, ""),
	ietfTrio("express-draft-6", deltaS, ""),
	xTrio("express-legacy", epochS, ""),
	{dialect: "spring-cloud-gateway", limit: "X-RateLimit-Burst-Capacity", remaining: "X-RateLimit-Remaining"},
	{dialect: "akamai", limit: "X-RateLimit-Limit", remaining: "X-RateLimit-Remaining", reset: "X-RateLimit-Next", unit: iso},

	{dialect: "zendesk", limit: "X-Rate-Limit", remaining: "X-Rate-Limit-Remaining", host: "acme.zendesk.com"},
	ietfTrio("zendesk", deltaS, "acme.zendesk.com"),
	{dialect: "hubspot", limit: "X-HubSpot-RateLimit-Max", remaining: "X-HubSpot-RateLimit-Remaining", windowHeader: "X-HubSpot-RateLimit-Interval-Milliseconds", windowValue: "10000", window: 10 * time.Second, host: "api.hubapi.com"},
	{dialect: "hubspot", limit: "X-HubSpot-RateLimit-Daily", remaining: "X-HubSpot-RateLimit-Daily-Remaining", label: "daily", window: 24 * time.Hour},
	{dialect: "gohighlevel", limit: "X-RateLimit-Max", remaining: "X-RateLimit-Remaining", windowHeader: "X-RateLimit-Interval-Milliseconds", windowValue: "10000", window: 10 * time.Second},
	{dialect: "gohighlevel", limit: "X-RateLimit-Limit-Daily", remaining: "X-RateLimit-Daily-Remaining", label: "daily", window: 24 * time.Hour},
	with(infix("linear", "X-RateLimit-", "requests", epochMS), refuses(400)),
	with(with(infix("linear", "X-RateLimit-", "complexity", epochMS), refuses(400)), tokens),
	with(infix("linear", "X-RateLimit-", "endpoint-requests", epochMS), refuses(400)),
	xTrio("sendgrid", epochS, "api.sendgrid.com"),
	xTrio("mailgun", epochMS, "api.mailgun.net"),
	ietfTrio("resend", deltaS, "api.resend.com"),
	{dialect: "brevo", limit: "x-sib-ratelimit-limit", remaining: "x-sib-ratelimit-remaining", reset: "x-sib-ratelimit-reset", unit: deltaS, host: "api.brevo.com"},
	{dialect: "trello", limit: "x-rate-limit-api-token-max", remaining: "x-rate-limit-api-token-remaining", windowHeader: "x-rate-limit-api-token-interval-ms", windowValue: "10000", window: 10 * time.Second, label: "api-token"},
	{dialect: "trello", limit: "x-rate-limit-api-key-max", remaining: "x-rate-limit-api-key-remaining", windowHeader: "x-rate-limit-api-key-interval-ms", windowValue: "10000", window: 10 * time.Second, label: "api-key"},
	{dialect: "contentful", limit: "X-Contentful-RateLimit-Second-Limit", remaining: "X-Contentful-RateLimit-Second-Remaining", reset: "X-Contentful-RateLimit-Reset", unit: deltaS, label: "second", window: time.Second},
	{dialect: "contentful", limit: "X-Contentful-RateLimit-Hour-Limit", remaining: "X-Contentful-RateLimit-Hour-Remaining", reset: "X-Contentful-RateLimit-Reset", unit: deltaS, label: "hour", window: time.Hour},
	ietfTrio("klaviyo", deltaS, "a.klaviyo.com"),
	xTrio("pipedrive", deltaS, "acme.pipedrive.com"),
	{dialect: "pipedrive", remaining: "x-daily-requests-left", label: "daily", window: 24 * time.Hour},
	xTrio("intercom", epochS, "api.intercom.io"),
	xTrio("clickup", epochS, "api.clickup.com"),
	xTrio("smartsheet", epochS, "api.smartsheet.com"),
	xTrio("lemlist", jsDate, "api.lemlist.com"),
	{dialect: "composio", limit: "X-RateLimit", remaining: "X-RateLimit-Remaining", windowHeader: "X-RateLimit-Window-Size", windowValue: "600s", window: 10 * time.Minute},
	ietfTrio("asaas", deltaS, "api.asaas.com"),
	ietfTrio("airweave", epochS, "api.airweave.ai"),
	ietfTrio("pluggy", deltaS, "api.pluggy.ai"),
	ietfTrio("persona", deltaS, "api.withpersona.com"),
	xTrio("perforce", deltaS, ""),
	xTrio("mailerlite", imf, ""),
	xTrio("braze", epochS, ""),
	xTrio("supabase", deltaS, ""),

	{dialect: "crossref", limit: "X-Rate-Limit-Limit", windowHeader: "X-Rate-Limit-Interval", windowValue: "60s", window: time.Minute},
	{dialect: "pdnd", limit: "x-rate-limit-limit", remaining: "x-rate-limit-remaining", reset: "x-rate-limit-reset", unit: epochMS, windowHeader: "x-rate-limit-interval", windowValue: "1000", window: time.Second},
	infix("rapidapi", "x-ratelimit-", "requests", deltaS),
	infix("rapidapi", "x-ratelimit-", "rapid-free-plans-hard-limit", deltaS),
	xTrio("brave", deltaS, "api.search.brave.com"),
	with(suffix("guardian", "day", none), window(24*time.Hour)),
	with(suffix("guardian", "minute", none), window(time.Minute)),
	with(suffix("suffix-fractional", "hour", none), window(time.Hour)),
	{dialect: "bybit", limit: "X-Bapi-Limit", remaining: "X-Bapi-Limit-Status", reset: "X-Bapi-Limit-Reset-Timestamp", unit: epochMS},
	{dialect: "kucoin", limit: "gw-ratelimit-limit", remaining: "gw-ratelimit-remaining", reset: "gw-ratelimit-reset", unit: deltaMS},
	{dialect: "lark", limit: "x-ogw-ratelimit-limit", reset: "x-ogw-ratelimit-reset", unit: deltaF, refuses: []int{400}},
	{dialect: "oracle-access-governance", remaining: "RequestLimit-Default-Remaining", reset: "RequestLimit-Default-RetryAfter", unit: deltaMS, label: "default"},
	{dialect: "oracle-access-governance", remaining: "RequestLimit-Write-Remaining", reset: "RequestLimit-Write-RetryAfter", unit: deltaMS, label: "write"},
	with(hyphenTrio("prisjakt", deltaMS, "api.prisjakt.nu"), func(r *limitRow) { r.hinted = true }),
	hyphenTrio("alegra", deltaS, "api.alegra.com"),
	{dialect: "eve-esi", reset: "X-ESI-Error-Limit-Reset", unit: deltaS, tokens: true, host: "esi.evetech.net", refuses: []int{420}},
	{dialect: "bigcommerce", limit: "X-Rate-Limit-Requests-Quota", remaining: "X-Rate-Limit-Requests-Left", reset: "X-Rate-Limit-Time-Reset-Ms", unit: deltaMS, windowHeader: "X-Rate-Limit-Time-Window-Ms", windowValue: "30000", window: 30 * time.Second, host: "api.bigcommerce.com"},
	{dialect: "azure-openai", limit: "x-rate-limit-limit-tokens", remaining: "x-rate-limit-remaining-tokens", reset: "x-rate-limit-reset-tokens", unit: deltaS, label: "tokens", tokens: true},
}

// TestDialectsGenerated reads responses that are generated from every row: in all
// dialects at once, in the row's alone, and knowing its host.
func TestDialectsGenerated(t *testing.T) {
	named := byName(t)
	rnd := rand.New(rand.NewPCG(9, 9))
	for i, row := range limitRows {
		t.Run(fmt.Sprintf("%s/%s/%d", row.dialect, row.unit.name, i), func(t *testing.T) {
			d := named[row.dialect]
			if d == nil {
				t.Fatal("no such dialect")
			}
			readers := map[string]*retryafter.Reader{
				"chosen": retryafter.NewReader([]retryafter.Dialect{d}, ""),
			}
			if !row.hinted {
				readers["all"] = retryafter.NewReader(nil, "")
			}
			if row.host != "" {
				readers["host"] = retryafter.NewReader(nil, row.host)
			}
			for range 60 {
				row.check(t, rnd, readers)
			}
		})
	}
}

func (row *limitRow) check(t *testing.T, rnd *rand.Rand, readers map[string]*retryafter.Reader) {
	t.Helper()
	want := retryafter.LimitSignal{Name: row.label, OtherUnit: row.tokens, Window: row.window, HasWindow: row.window > 0}
	h := http.Header{"Content-Type": {"application/json"}}
	if rnd.IntN(2) == 0 {
		h.Set("Date", pi.Format(http.TimeFormat))
	}
	if row.limit != "" {
		want.Limit, want.HasLimit = 1+rnd.Int64N(1_000_000), true
		h.Add(row.limit, fmt.Sprint(want.Limit))
	}
	if row.remaining != "" {
		want.Remaining, want.HasRemaining = max(0, rnd.Int64N(1_000_000)-500_000), true
		h.Add(row.remaining, fmt.Sprint(want.Remaining))
	}
	if row.unit.write != nil {
		want.Reset, want.HasReset = time.Duration(rnd.Int64N(int64(30*24*time.Hour))).Truncate(row.unit.grain), true
		h.Add(row.reset, row.unit.write(want.Reset))
	}
	if row.windowHeader != "" {
		h.Add(row.windowHeader, row.windowValue)
	}
	status := []int{200, 404, 429, 503}[rnd.IntN(4)]
	if len(row.refuses) > 0 && rnd.IntN(2) == 0 {
		status = row.refuses[rnd.IntN(len(row.refuses))]
	}
	refusal := status == 429 || status == 503 || slices.Contains(row.refuses, status)
	exhausted := want.HasRemaining && want.Remaining == 0
	asks := refusal && want.HasReset && (exhausted || !want.HasRemaining)
	for how, r := range readers {
		s := r.Read(status, h, pi)
		got, ok := s.Binding()
		if !ok || bare(got) != want {
			t.Fatalf("%s: %d %v:\n got %+v\nwant %+v", how, status, h, got, want)
		}
		row.checkReset(t, how, h, got)
		if s.Documented {
			continue // GitHub's minute after a 429 with budget left
		}
		if s.HasRetryAfter != asks || asks && s.RetryAfter != want.Reset {
			t.Fatalf("%s: %d %v: RetryAfter %v, %v, want %v, %v", how, status, h, s.RetryAfter, s.HasRetryAfter, want.Reset, asks)
		}
		throttled := status == 429 || status == 503 && asks || refusal && status != 503 && (exhausted || asks)
		if s.Throttled != throttled {
			t.Fatalf("%s: %d %v: Throttled = %v, want %v", how, status, h, s.Throttled, throttled)
		}
		if s.Malformed != "" {
			t.Fatalf("%s: %v: %s malformed", how, h, s.Malformed)
		}
	}
}

// TestDialectsMalformed breaks one header of every row: its value is unknown, the
// others stand, and the header is named.
func TestDialectsMalformed(t *testing.T) {
	named := byName(t)
	junk := []string{"", "  ", "abc", "0x10", "1e3", "+5", "--5", "NaN", "Infinity", "1_000", "5;", "５", "5\u00a0", "1.2.3", "99999999999999999999", "{}", "never"}
	for i, row := range limitRows {
		t.Run(fmt.Sprintf("%s/%d", row.dialect, i), func(t *testing.T) {
			full := map[string]string{}
			want := retryafter.LimitSignal{Name: row.label, OtherUnit: row.tokens, Window: row.window, HasWindow: row.window > 0}
			if row.limit != "" {
				full[row.limit] = "700"
				want.Limit, want.HasLimit = 700, true
			}
			if row.remaining != "" {
				full[row.remaining] = "3"
				want.Remaining, want.HasRemaining = 3, true
			}
			if row.unit.write != nil {
				full[row.reset] = row.unit.write(90 * time.Second)
				want.Reset, want.HasReset = 90*time.Second, true
			}
			if row.windowHeader != "" {
				full[row.windowHeader] = row.windowValue
			}
			for broken := range full {
				for _, v := range junk {
					if v == "99999999999999999999" && (broken == row.windowHeader ||
						broken == row.reset && (row.unit.name == "delta ms" || row.unit.name == "delta s with a fraction")) {
						continue // a length of time saturates
					}
					h := http.Header{}
					for name, value := range full {
						if name == broken {
							value = v
						}
						h.Add(name, value)
					}
					want := want
					switch broken {
					case row.limit:
						want.Limit, want.HasLimit = 0, false
					case row.remaining:
						want.Remaining, want.HasRemaining = 0, false
					case row.reset:
						want.Reset, want.HasReset = 0, false
					case row.windowHeader:
						want.Window, want.HasWindow = 0, false
					}
					if !want.HasLimit && !want.HasRemaining && !want.HasReset && row.windowHeader == "" {
						want = retryafter.LimitSignal{}
					}
					s := retryafter.NewReader([]retryafter.Dialect{named[row.dialect]}, "").Read(200, h, pi)
					if got, _ := s.Binding(); bare(got) != want {
						t.Fatalf("%s = %q:\n got %+v\nwant %+v", broken, v, got, want)
					}
					if s.HasRetryAfter {
						t.Fatalf("%s = %q: asked for %v", broken, v, s.RetryAfter)
					}
					if name := http.CanonicalHeaderKey(broken); s.Malformed != name {
						t.Fatalf("%s = %q: Malformed = %q", broken, v, s.Malformed)
					}
				}
			}
		})
	}
}

// askRows are the headers that ask for a wait in so many words.
var askRows = []struct {
	dialect, header string
	unit            unit
	hinted          bool
}{
	{"rfc9110", "Retry-After", deltaS, false},
	{"rfc9110", "Retry-After", imf, false},
	{"retry-after-ms", "retry-after-ms", deltaMS, false},
	{"openai", "retry-after-ms", deltaMS, false},
	{"groq", "Retry-After", deltaS, false},
	{"azure-openai", "retry-after-ms", deltaMS, false},
	{"anthropic", "retry-after", deltaS, false},
	{"azure-arm", "x-ms-retry-after-ms", deltaMS, false},
	{"cosmosdb", "x-ms-retry-after-ms", deltaMS, false},
	{"aws", "x-amz-retry-after", deltaMS, false},
	{"aws", "Retry-After", deltaS, false},
	{"traefik", "X-Retry-In", goDur, false},
	{"traefik", "Retry-After", deltaS, false},
	{"shopify", "Retry-After", deltaF, true},
	{"discord", "Retry-After", deltaF, true},
	{"discord", "Retry-After", deltaS, false},
	{"discord-v6", "Retry-After", deltaMS, true},
	{"perforce", "X-RateLimit-Retry-After", deltaS, false},
	{"mailerlite", "X-RateLimit-Retry-After", deltaS, false},
	{"braze", "X-RateLimit-Retry-After", deltaS, false},
	{"rfc9110", "Retry-After", deltaF, false},
	{"rfc9110", "Retry-After", epochS, false},
	{"bigcommerce", "X-Retry-After", deltaS, false},
	{"slack", "Retry-After", deltaS, false},
	{"spotify", "Retry-After", deltaS, false},
	{"notion", "Retry-After", deltaS, false},
	{"dropbox", "Retry-After", deltaS, false},
	{"box", "Retry-After", deltaS, false},
	{"asana", "Retry-After", deltaS, false},
	{"google", "Retry-After", deltaS, false},
	{"mediawiki", "Retry-After", deltaS, false},
	{"binance", "Retry-After", deltaS, false},
	{"klaviyo", "Retry-After", deltaS, false},
	{"stripe", "Retry-After", deltaS, false},
	{"bitbucket", "Retry-After", deltaS, false},
	{"twilio", "Retry-After", deltaS, false},
	{"cloudflare", "Retry-After", deltaS, false},
	{"nginx", "Retry-After", deltaS, false},
	{"square", "Retry-After", deltaS, false},
	{"adyen", "Retry-After", deltaS, false},
	{"ebay", "Retry-After", deltaS, false},
	{"plaid", "Retry-After", deltaS, false},
	{"nominatim", "Retry-After", deltaS, false},
	{"virustotal", "Retry-After", deltaS, false},
	{"coinbase", "Retry-After", deltaS, false},
	{"kraken", "Retry-After", deltaS, false},
	{"shodan", "Retry-After", deltaS, false},
	{"censys", "Retry-After", deltaS, false},
	{"newsapi", "Retry-After", deltaS, false},
	{"fly", "Retry-After", deltaS, false},
	{"npm", "Retry-After", deltaS, false},
	{"pypi", "Retry-After", deltaS, false},
	{"docker-hub", "Retry-After", deltaS, false},
}

// TestDialectsAsk reads the explicit instructions, on any status.
func TestDialectsAsk(t *testing.T) {
	named := byName(t)
	rnd := rand.New(rand.NewPCG(10, 10))
	for _, row := range askRows {
		t.Run(row.dialect+"/"+row.header+"/"+row.unit.name, func(t *testing.T) {
			readers := []*retryafter.Reader{retryafter.NewReader([]retryafter.Dialect{named[row.dialect]}, "")}
			if !row.hinted {
				readers = append(readers, retryafter.NewReader(nil, ""))
			}
			for range 60 {
				want := time.Duration(rnd.Int64N(int64(48 * time.Hour))).Truncate(row.unit.grain)
				h := http.Header{}
				h.Set(row.header, row.unit.write(want))
				status := []int{200, 301, 413, 429, 500, 503}[rnd.IntN(6)]
				for _, r := range readers {
					s := r.Read(status, h, pi)
					if !s.HasRetryAfter || s.RetryAfter != want || s.Documented || s.Malformed != "" {
						t.Fatalf("%d %v: %v, %v, malformed %q, want %v", status, h, s.RetryAfter, s.HasRetryAfter, s.Malformed, want)
					}
				}
			}
		})
	}
}

// TestDialectsComplete: every dialect of the package has a row here or, for the
// odd ones, a test of its own; and each that the corpus names is there.
func TestDialectsComplete(t *testing.T) {
	odd := []string{
		"reddit", "strava", "meta", "shopify", "amazon-sp-api", "quickbooks", "azure-compute", "huggingface",
		"express-draft-7", "express-draft-8", "sentry", "salesforce", "airtable", "x-readratelimit",
	}
	tested := map[string]bool{}
	for _, r := range limitRows {
		tested[r.dialect] = true
	}
	for _, r := range askRows {
		tested[r.dialect] = true
	}
	for _, name := range odd {
		tested[name] = true
	}
	for name := range byName(t) {
		if !tested[name] {
			t.Errorf("%s has no test", name)
		}
	}
	standard := map[string]string{
		"ietf-ratelimit-08plus": "ratelimit", "ietf-ratelimit-07": "ratelimit", "ietf-ratelimit-03-06": "ratelimit",
		"x-ratelimit-generic": "x-ratelimit",
	}
	for _, c := range loadCorpus(t) {
		name := c.Dialect
		if s := standard[name]; s != "" {
			name = s
		}
		if byName(t)[name] == nil {
			t.Errorf("%s: no dialect %s", c.ID, name)
		}
	}
}

func byName(t *testing.T) map[string]retryafter.Dialect {
	t.Helper()
	named := map[string]retryafter.Dialect{}
	for _, d := range retryafter.Dialects() {
		if named[d.Name()] != nil {
			t.Fatalf("two dialects are called %s", d.Name())
		}
		named[d.Name()] = d
	}
	return named
}
