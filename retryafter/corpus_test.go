package retryafter_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/headway-go/headway/retryafter"
)

// A corpusCase is one line of testdata/corpus.jsonl: a response, and what a
// careful client reads from it.
type corpusCase struct {
	ID        string              `json:"id"`
	Dialect   string              `json:"dialect"`
	Now       time.Time           `json:"now"`
	Status    int                 `json:"status"`
	Headers   map[string][]string `json:"headers"`
	Want      map[string]any      `json:"want"`
	Judgement bool                `json:"judgement"`
	Alt       []map[string]any    `json:"alt"`
	Repeat    *struct {
		Header string `json:"header"`
		Index  int    `json:"index"`
		Prefix string `json:"prefix"`
		Unit   string `json:"unit"`
		Count  int    `json:"count"`
		Suffix string `json:"suffix"`
	} `json:"repeat"`
}

func loadCorpus(tb testing.TB) []corpusCase {
	tb.Helper()
	f, err := os.Open("testdata/corpus.jsonl")
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	var cases []corpusCase
	for sc := bufio.NewScanner(f); sc.Scan(); {
		var c corpusCase
		if err := json.Unmarshal(sc.Bytes(), &c); err != nil {
			tb.Fatal(err)
		}
		cases = append(cases, c)
	}
	return cases
}

// header is the response's header as net/http would have read it.
func (c *corpusCase) header() http.Header {
	h := http.Header{}
	for name, lines := range c.Headers {
		for i, line := range lines {
			if r := c.Repeat; r != nil && r.Header == name && r.Index == i {
				line = r.Prefix + strings.Repeat(r.Unit, r.Count) + r.Suffix
			}
			h.Add(name, line)
		}
	}
	return h
}

// read flattens a Signal to the fields of want.
func flatten(s retryafter.Signal) map[string]any {
	got := map[string]any{
		"retry_after_ms": nil, "limit": nil, "remaining": nil, "reset_ms": nil, "window_ms": nil, "scope": nil,
	}
	ms := func(d time.Duration) float64 { return float64(d.Milliseconds()) }
	if s.HasRetryAfter {
		got["retry_after_ms"] = ms(s.RetryAfter)
	}
	l, ok := s.Binding()
	if !ok {
		return got
	}
	if l.HasLimit {
		got["limit"] = float64(l.Limit)
	}
	if l.HasRemaining {
		got["remaining"] = float64(l.Remaining)
	}
	if l.HasReset {
		got["reset_ms"] = ms(l.Reset)
	}
	if l.HasWindow {
		got["window_ms"] = ms(l.Window)
	}
	if l.Name != "" {
		got["scope"] = l.Name
	}
	return got
}

// mismatch returns the first field in which got differs from want, with the
// fields of alt in its place.
func mismatch(got, want, alt map[string]any) string {
	if l, ok := want["limit"].(float64); ok && l != math.Trunc(l) {
		got, want = rate(got), rate(want)
	}
	for field, w := range want {
		if a, ok := alt[field]; ok {
			w = a
		}
		if fmt.Sprint(got[field]) != fmt.Sprint(w) {
			return fmt.Sprintf("%s = %v, want %v", field, got[field], w)
		}
	}
	return ""
}

// rate turns limit and window into one rate in thousandths per second: a Limit is
// whole, so that 0.5 per second is reported as 1 in 2 s.
func rate(v map[string]any) map[string]any {
	r := map[string]any{}
	for field, x := range v {
		r[field] = x
	}
	limit, ok := v["limit"].(float64)
	window, ok2 := v["window_ms"].(float64)
	if ok && ok2 {
		r["limit"], r["window_ms"] = math.Round(limit/window*1e6), "rate"
	}
	return r
}

func TestCorpus(t *testing.T) {
	named := map[string]retryafter.Dialect{}
	for _, d := range retryafter.Dialects() {
		named[d.Name()] = d
	}
	for _, c := range loadCorpus(t) {
		t.Run(c.ID, func(t *testing.T) {
			h := c.header()
			check := func(how string, s retryafter.Signal) {
				got := flatten(s)
				bad := mismatch(got, c.Want, nil)
				for _, alt := range c.Alt {
					if bad != "" && c.Judgement && mismatch(got, c.Want, alt) == "" {
						t.Logf("%s: read as an alternative: %v", how, alt)
						return
					}
				}
				if bad != "" {
					t.Errorf("%s: %s\nheaders %.200v", how, bad, h)
				}
			}
			check("Read", retryafter.Read(c.Status, h, c.Now))
			if d := named[c.Dialect]; d != nil {
				check("chosen", retryafter.NewReader([]retryafter.Dialect{d}, "").Read(c.Status, h, c.Now))
			}
		})
	}
}
