package retryafter

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
)

// corpusValues are the values of all headers in the corpus, to start fuzzing
// from.
func corpusValues(tb testing.TB) []string {
	tb.Helper()
	var values []string
	for _, h := range corpusHeaders(tb) {
		for _, lines := range h {
			values = append(values, lines...)
		}
	}
	return values
}

// corpusHeaders are the headers of all responses in the corpus.
func corpusHeaders(tb testing.TB) []http.Header {
	tb.Helper()
	data, err := os.ReadFile("testdata/corpus.jsonl")
	if err != nil {
		tb.Fatal(err)
	}
	var all []http.Header
	for line := range strings.Lines(string(data)) {
		var c struct {
			Headers map[string][]string `json:"headers"`
		}
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			tb.Fatal(err)
		}
		h := http.Header{}
		for name, lines := range c.Headers {
			for _, v := range lines {
				h.Add(name, v)
			}
		}
		all = append(all, h)
	}
	return all
}
