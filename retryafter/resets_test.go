package retryafter_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/headway-go/headway/retryafter"
)

// documentedResets is what vendors document to happen at a reset, in the test's own
// words; see the table for the pages. All others document nothing that could be found.
var documentedResets = map[string]retryafter.ResetKind{
	"github":      retryafter.ResetWindow,
	"gitlab":      retryafter.ResetWindow,
	"discord":     retryafter.ResetWindow,
	"discord-v6":  retryafter.ResetWindow,
	"twitter":     retryafter.ResetWindow,
	"reddit":      retryafter.ResetWindow,
	"mastodon":    retryafter.ResetWindow,
	"bluesky":     retryafter.ResetWindow,
	"bigcommerce": retryafter.ResetWindow,
	"huggingface": retryafter.ResetWindow,
	"okta":        retryafter.ResetWindow,
	"kong":        retryafter.ResetWindow,
	"envoy":       retryafter.ResetWindow,
	"laravel":     retryafter.ResetWindow,
	"zendesk":     retryafter.ResetWindow,
	"sendgrid":    retryafter.ResetWindow,
	"klaviyo":     retryafter.ResetWindow,
	"intercom":    retryafter.ResetWindow,
	"kucoin":      retryafter.ResetWindow,
	"eve-esi":     retryafter.ResetWindow,

	"twitch":    retryafter.ResetFull,
	"openai":    retryafter.ResetFull,
	"groq":      retryafter.ResetFull,
	"anthropic": retryafter.ResetFull,

	"akamai":     retryafter.ResetUnit,
	"contentful": retryafter.ResetUnit,

	"digitalocean": retryafter.ResetRolling,
	"bybit":        retryafter.ResetRolling,
}

// checkReset checks what a limit of the row says of its reset besides when that is. It
// is called by TestDialectsGenerated.
func (row *limitRow) checkReset(t *testing.T, how string, h http.Header, got retryafter.LimitSignal) {
	t.Helper()
	if coarse := row.unit.grain == time.Second; got.Coarse != coarse {
		t.Fatalf("%s: %v: Coarse = %v, want %v", how, h, got.Coarse, coarse)
	}
	if how == "all" { // whose response it is may not show
		return
	}
	want := retryafter.ResetUnknown
	if row.unit.write != nil {
		want = documentedResets[row.dialect]
	}
	if got.Resets != want {
		t.Fatalf("%s: %v: Resets = %v, want %v", how, h, got.Resets, want)
	}
}

// TestResetKinds: what happens at a reset is known where the vendor is, and only there.
func TestResetKinds(t *testing.T) {
	github := head("X-RateLimit-Limit", "60", "X-RateLimit-Remaining", "7", "X-RateLimit-Reset", "1773502800", "X-RateLimit-Resource", "core", "X-RateLimit-Used", "53")
	trio := head("X-RateLimit-Limit", "60", "X-RateLimit-Remaining", "7", "X-RateLimit-Reset", "1773502800")
	for _, c := range []struct {
		name, host string
		h          http.Header
		want       retryafter.ResetKind
		coarse     bool
	}{
		{"shown", "", github, retryafter.ResetWindow, true},
		{"of a host", "mastodon.social", trio, retryafter.ResetWindow, true},
		{"of no one", "", trio, retryafter.ResetUnknown, true},
		{"of a vendor that says nothing", "api.vercel.com", trio, retryafter.ResetUnknown, true},
		{"strava", "", head("X-RateLimit-Limit", "200,2000", "X-RateLimit-Usage", "128,1034"), retryafter.ResetWindow, false},
		{"draft 08", "", head("RateLimit", `"default";r=50;t=30`), retryafter.ResetUnknown, true},
		{"draft 07", "", head("RateLimit", "limit=100, remaining=50, reset=5"), retryafter.ResetUnknown, true},
		{"lists", "", head("X-RateLimit-Limit", "1, 15000", "X-RateLimit-Remaining", "0, 14999", "X-RateLimit-Reset", "1, 1419704"), retryafter.ResetUnknown, true},
		{"lists with a fraction", "", head("X-RateLimit-Limit", "1, 15000", "X-RateLimit-Remaining", "0, 14999", "X-RateLimit-Reset", "1.0, 1419704"), retryafter.ResetUnknown, false},
		{"discord", "", head("X-RateLimit-Limit", "5", "X-RateLimit-Remaining", "4", "X-RateLimit-Reset", "1773500967", "X-RateLimit-Reset-After", "1.0", "X-RateLimit-Bucket", "a"), retryafter.ResetWindow, false},
		{"zendesk", "acme.zendesk.com", head("Zendesk-RateLimit-Search", "total=100; remaining=99; resets=41"), retryafter.ResetWindow, true},
		{"no reset", "api.github.com", head("X-RateLimit-Remaining", "7"), retryafter.ResetUnknown, false},
		{"shopify", "", head("X-Shopify-Shop-Api-Call-Limit", "32/40"), retryafter.ResetFull, false}, // without a reset
		{"malformed", "", head("X-RateLimit-Remaining", "7", "X-RateLimit-Next", "soon"), retryafter.ResetUnknown, false},
		{"a zero behind a point", "", head("X-RateLimit-Remaining", "7", "X-RateLimit-Reset", "60.0"), retryafter.ResetUnknown, false},
		{"twice, of which the later is finer", "", head("RateLimit-Remaining", "7", "RateLimit-Reset", "59", "X-RateLimit-Remaining", "7", "X-RateLimit-Reset", "59.5"), retryafter.ResetUnknown, false},
		{"twice, of which the later is coarser", "", head("RateLimit-Remaining", "7", "RateLimit-Reset", "60", "X-RateLimit-Remaining", "7", "X-RateLimit-Reset", "59.5"), retryafter.ResetUnknown, true},
	} {
		s := retryafter.NewReader(nil, c.host).Read(200, c.h, pi)
		if l, _ := s.Binding(); l.Resets != c.want || l.Coarse != c.coarse {
			t.Errorf("%s: Resets %v, Coarse %v, want %v, %v", c.name, l.Resets, l.Coarse, c.want, c.coarse)
		}
	}
	for k, want := range map[retryafter.ResetKind]string{
		retryafter.ResetUnknown: "unknown", retryafter.ResetWindow: "window", retryafter.ResetFull: "full",
		retryafter.ResetUnit: "unit", retryafter.ResetRolling: "rolling", 99: "unknown",
	} {
		if k.String() != want {
			t.Errorf("%d is %q, want %q", k, k, want)
		}
	}
}

// TestRetryAfterFirst: in every dialect Retry-After comes before a reset; and a reset that
// is past, or now, gives a refusal no time.
func TestRetryAfterFirst(t *testing.T) {
	named := byName(t)
	for _, row := range limitRows {
		if row.unit.write == nil {
			continue
		}
		for how, r := range map[string]*retryafter.Reader{
			"chosen": retryafter.NewReader([]retryafter.Dialect{named[row.dialect]}, ""),
			"host":   retryafter.NewReader(nil, row.host),
		} {
			for _, status := range append([]int{429, 503}, row.refuses...) {
				h := http.Header{}
				if row.limit != "" {
					h.Set(row.limit, "100")
				}
				if row.remaining != "" {
					h.Set(row.remaining, "0")
				}
				h.Set("Retry-After", "7")
				h.Set(row.reset, row.unit.write(1000*time.Second))
				s := r.Read(status, h, pi)
				if d, ok := s.Wait(); how == "chosen" && row.dialect == "discord-v6" {
					// Retry-After has milliseconds
				} else if d != 7*time.Second || !ok || s.Inferred {
					t.Errorf("%s, %s: %d %v: Wait is %v, %v", row.dialect, how, status, h, d, ok)
				}
				h.Del("Retry-After")
				for _, d := range []time.Duration{0, -time.Hour} {
					h.Set(row.reset, row.unit.write(d))
					s := r.Read(status, h, pi)
					if d, ok := s.Wait(); d != 0 || ok {
						t.Errorf("%s, %s: %d %v: Wait is %v, %v", row.dialect, how, status, h, d, ok)
					}
				}
			}
		}
	}
}

// lateDialect says that a refusal lasts so long, as the reset of a limit.
type lateDialect struct{ reset time.Duration }

func (d lateDialect) Name() string { return "late" }

func (d lateDialect) Read(status int, _ http.Header, _ time.Time) (s retryafter.Signal, ok bool) {
	s.RetryAfter, s.HasRetryAfter, s.Inferred = d.reset, true, true
	s.Resource = "jobs"
	return s, true
}

// TestRetryAfterFirstCustom: so it is where a dialect of the caller's has read the reset.
func TestRetryAfterFirstCustom(t *testing.T) {
	past := head("X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "0")
	r := retryafter.NewReader([]retryafter.Dialect{lateDialect{time.Hour}, retryafter.XRateLimit}, "")
	s := r.Read(429, past, pi)
	if d, ok := s.Wait(); d != time.Hour || !ok || s.Resource != "jobs" {
		t.Errorf("behind a reset in the past: Wait is %v, %v of %q", d, ok, s.Resource)
	}
	past.Set("Retry-After", "7")
	s = r.Read(429, past, pi)
	if d, ok := s.Wait(); d != 7*time.Second || !ok || s.Resource != "" {
		t.Errorf("beside Retry-After: Wait is %v, %v of %q", d, ok, s.Resource)
	}
	s = retryafter.NewReader([]retryafter.Dialect{lateDialect{0}}, "").Read(429, nil, pi)
	if d, ok := s.Wait(); ok {
		t.Errorf("a reset of zero: Wait is %v, %v", d, ok)
	}
}
