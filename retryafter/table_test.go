package retryafter

import (
	"math/bits"
	"net/http"
	"strings"
	"testing"
)

// TestTable: the rules that rows must follow so that their headers are found.
func TestTable(t *testing.T) {
	rows, headers, hosts := map[string]bool{}, map[string]string{}, map[string]string{}
	withHeaders := 0
	for _, row := range table {
		if row.name == "" || row.name != strings.ToLower(row.name) || rows[row.name] {
			t.Errorf("%q: a row's name is in lower case and its own", row.name)
		}
		rows[row.name] = true
		for host := range strings.FieldsSeq(row.hosts) {
			if hosts[host] != "" || host != strings.ToLower(host) || strings.ContainsAny(host, ":*/") {
				t.Errorf("%s: host %q is written wrong, or known for %s already", row.name, host, hosts[host])
			}
			hosts[host] = row.name
		}
		header := func(name string) {
			if name != http.CanonicalHeaderKey(name) || len(name) < minName || len(name) > maxName {
				t.Errorf("%s: header %q is not canonical, too short or too long", row.name, name)
			}
			if headers[name] != "" {
				t.Errorf("%s: header %s belongs to %s already", row.name, name, headers[name])
			}
			headers[name] = row.name
		}
		for i := range row.fields {
			f := &row.fields[i]
			header(f.name)
			if names.exact(f.name) != f || names.starts[start(f.name)] == nil {
				t.Errorf("%s: header %s is not found", row.name, f.name)
			}
			if f.role == isAsk && f.rank == 0 {
				t.Errorf("%s: header %s has no rank", row.name, f.name)
			}
		}
		for _, p := range row.patterns {
			header(p.prefix)
			if !strings.HasSuffix(p.prefix, "-") || p.rest == nil && len(p.before)+len(p.after) == 0 {
				t.Errorf("%s: pattern %s names nothing", row.name, p.prefix)
			}
			for _, f := range p.before {
				if !strings.HasSuffix(f.name, "-") {
					t.Errorf("%s: %s%s has no hyphen before the label", row.name, p.prefix, f.name)
				}
			}
			for _, f := range p.after {
				if !strings.HasPrefix(f.name, "-") {
					t.Errorf("%s: %s...%s has no hyphen behind the label", row.name, p.prefix, f.name)
				}
			}
		}
		if len(row.fields)+len(row.patterns) > 0 {
			withHeaders++
		} else if row.odd != plain {
			t.Errorf("%s: an oddity without headers", row.name)
		}
		for _, sign := range row.shows {
			if sign&signs == 0 {
				t.Errorf("%s: the sign %b is not looked for", row.name, sign)
			}
		}
		for _, used := range row.uses {
			if used.own == 0 {
				t.Errorf("%s uses %s, which has no headers", row.name, used.name)
			}
		}
		for _, status := range row.refuses {
			if status < 400 || status == 429 || status == 503 {
				t.Errorf("%s: %d always refuses, or never", row.name, status)
			}
		}
	}
	if free := bits.LeadingZeros64(uint64(firstRow)) + 1 - withHeaders; free < 0 {
		t.Errorf("%d rows too many have headers: widen bitset", -free)
	}
	if unknown.standard() != true || retryAfterRow.standard() != true || gitHubRow.standard() {
		t.Error("the standards are not the first rows")
	}
}

// TestLabels: where the label of a pattern begins and ends.
func TestLabels(t *testing.T) {
	for key, want := range map[string]string{
		"X-Ratelimit-Limit-Requests":               "Requests",
		"X-Ratelimit-Remaining-Tokens_usage_based": "Tokens_usage_based",
		"X-Ratelimit-Requests-Limit":               "Requests",
		"X-Ratelimit-Limit-Limit":                  "Limit",
		"X-Ratelimit-Endpoint-Requests-Reset":      "Endpoint-Requests",
		"X-Ratelimit-Limit-":                       "",
		"X-Ratelimit--Limit":                       "",
		"X-Ratelimit-Other":                        "",
		"X-Ratelimit-":                             "",
		"Anthropic-Ratelimit-Input-Tokens-Reset":   "Input-Tokens",
		"Anthropic-Ratelimit-Limit":                "",
		"X-Ms-Ratelimit-Remaining-Tenant-Reads":    "Tenant-Reads",
		"X-Ms-Ratelimit-Remaining-":                "",
		"Zendesk-Ratelimit-Tickets-Index":          "Tickets-Index",
		"X-Rate-Limit-Api-Key-Interval-Ms":         "Api-Key",
		"Requestlimit-Write-Retryafter":            "Write",
	} {
		got := ""
		if p := names.starts[start(key)]; p != nil {
			if f, lo, hi := p.label(key); f != nil {
				got = key[lo:hi]
			}
		}
		if got != want {
			t.Errorf("%s: label %q, want %q", key, got, want)
		}
	}
}
