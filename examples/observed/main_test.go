package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// direct is a base transport that calls the service.
type direct struct{ *service }

func (d direct) RoundTrip(req *http.Request) (*http.Response, error) {
	header := make(http.Header)
	status := d.respond(header)
	if status == 0 {
		return nil, errors.New("connection reset")
	}
	return &http.Response{StatusCode: status, Header: header, Body: http.NoBody, Request: req}, nil
}

// afterStory runs the story in virtual time and without a network, and calls f.
func afterStory(t *testing.T, f func(*observed, string)) {
	synctest.Test(t, func(t *testing.T) {
		s := new(service)
		var out strings.Builder
		o, err := observe(direct{s}, &out)
		if err != nil {
			t.Fatal(err)
		}
		if err := runStory(o, s, "http://api.example.com", &out); err != nil {
			t.Error(err)
		}
		f(o, out.String())
	})
}

func get(h http.Handler, url string) string {
	w, req := httptest.NewRecorder(), httptest.NewRequest("GET", url, nil)
	req.Host = "localhost" // the page requires it
	h.ServeHTTP(w, req)
	return w.Body.String()
}

// TestStory runs the story, and checks the page.
func TestStory(t *testing.T) {
	afterStory(t, func(o *observed, out string) {
		for _, want := range []string{
			`"burst": api.example.com: waited 2s: `, "a 429 pauses all requests for 2 s", "the breaker is open", "the breaker is closed",
			`refused at once; headway: policy "service" throttled`, `└ headway wait  2s`, `held: cause=pause`,
			"the store is down: no route to the store", "decided without the store", "the store is up",
		} {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in:\n%s", want, out)
			}
		}
		if page := get(o.handler(), "/debug/headway"); !strings.Contains(page, "api.example.com") || !strings.Contains(page, "Refused lately") {
			t.Errorf("the page is\n%s", page)
		}
	})
}

// TestGrafana checks that every metric and label of the dashboard and the alerts is in a
// real scrape.
func TestGrafana(t *testing.T) {
	afterStory(t, func(o *observed, _ string) {
		scrape := get(o.handler(), "/metrics")
		labels := map[string][]string{"headway_": nil} // by metric
		for line := range strings.Lines(scrape) {
			if m := regexp.MustCompile(`^(headway_\w+)(?:\{(.*)\})? `).FindStringSubmatch(line); m != nil {
				labels[m[1]] = append([]string{}, labels[m[1]]...) // there, though it may have none
				for _, l := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(m[2], -1) {
					labels[m[1]] = append(labels[m[1]], l[1])
				}
			}
		}
		for _, file := range []string{"dashboard.json", "alerts.yaml"} {
			text, err := os.ReadFile("../../otel/grafana/" + file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(file, ".json") && !json.Valid(text) {
				t.Errorf("%s is no JSON", file)
			}
			named := regexp.MustCompile(`(headway_\w+)(\{[^}]*\})?`).FindAllStringSubmatch(string(text), -1)
			known := 0
			for _, m := range named {
				if isLabel(labels, m[1]) {
					continue // it stands behind by, or between braces
				}
				known++
				if labels[m[1]] == nil {
					t.Errorf("%s names the metric %s, which is not scraped", file, m[1])
				}
				for _, l := range regexp.MustCompile(`(\w+)\s*(?:=~|!=|!~|=)`).FindAllStringSubmatch(m[2], -1) {
					if !slices.Contains(labels[m[1]], l[1]) {
						t.Errorf("%s names the label %s of %s, which has none", file, l[1], m[1])
					}
				}
			}
			if known < 5 {
				t.Errorf("%s names %d metrics", file, known)
			}
			for _, m := range regexp.MustCompile(`by \(([^)]*)\)`).FindAllStringSubmatch(string(text), -1) {
				for _, l := range strings.Split(m[1], ", ") {
					if l != "le" && !isLabel(labels, l) {
						t.Errorf("%s groups by %s, which no metric has", file, l)
					}
				}
			}
		}
	})
}

func isLabel(labels map[string][]string, name string) bool {
	for _, list := range labels {
		if slices.Contains(list, name) {
			return true
		}
	}
	return false
}
