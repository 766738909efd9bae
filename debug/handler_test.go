package debug

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/breaker"
	"github.com/headway-go/headway/limiter"
)

// get sends a request to a handler, and returns its response and the text of its body.
func get(h http.Handler, method, url string) (*http.Response, string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, local(httptest.NewRequest(method, url, nil)))
	resp := w.Result()
	text, _ := io.ReadAll(resp.Body) // from memory
	return resp, string(text)
}

// local returns the request as a browser on this machine would send it.
func local(req *http.Request) *http.Request {
	req.Host = "localhost:6060"
	return req
}

// newPage returns a Transport over base, and its page.
func newPage(t *testing.T, policies ...headway.Policy) (http.Handler, *headway.Transport) {
	t.Helper()
	var recent Recent
	tr, err := headway.NewTransport(base{}, headway.Config{Policies: policies, Observer: &recent, Secret: []byte("secret")})
	if err != nil {
		t.Fatal(err)
	}
	return Handler(tr, &recent), tr
}

// TestPageIsReadOnly: GET and HEAD alone.
func TestPageIsReadOnly(t *testing.T) {
	h, _ := newPage(t)
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "X"} {
		for _, as := range []string{"", "json", "events"} {
			resp, _ := get(h, method, "/?as="+as)
			if resp.StatusCode != http.StatusMethodNotAllowed || resp.Header.Get("Allow") != "GET, HEAD" {
				t.Errorf("%s as=%s: got %s, Allow %q", method, as, resp.Status, resp.Header.Get("Allow"))
			}
		}
	}
	if resp, _ := get(h, "GET", "/?as=xml"); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("as=xml: got %s, want 400", resp.Status)
	}
	// Over a real server, HEAD is GET without the body.
	server := httptest.NewServer(h)
	defer server.Close()
	for as, want := range map[string]string{
		"html": "text/html; charset=utf-8", "json": "application/json", "events": "text/event-stream",
	} {
		resp, err := http.Head(server.URL + "/?as=" + as)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != want {
			t.Errorf("HEAD as=%s: got %s, %q", as, resp.Status, resp.Header.Get("Content-Type"))
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestPageHeaders: nothing is stored, and the policy lets the page's own style and
// script run alone.
func TestPageHeaders(t *testing.T) {
	h, _ := newPage(t)
	for _, url := range []string{"/", "/?as=json", "/?as=xml"} {
		resp, _ := get(h, "GET", url)
		for name, want := range map[string]string{
			"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
		} {
			if got := resp.Header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", url, name, got, want)
			}
		}
	}
	resp, text := get(h, "GET", "/")
	csp := resp.Header.Get("Content-Security-Policy")
	for _, want := range []string{
		"default-src 'none'", "script-src " + hashOf(t, text, "script"), "style-src " + hashOf(t, text, "style"),
		"connect-src 'self'", "form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'",
	} {
		if !strings.Contains("; "+csp+";", "; "+want+";") {
			t.Errorf("no %q in %q", want, csp)
		}
	}
	if strings.Contains(csp, "unsafe") || regexp.MustCompile(`(?i)<[^>]* (on\w+|style)=`).MatchString(text) {
		t.Errorf("the page needs what is unsafe: %q\n%s", csp, text)
	}
}

// hashOf returns the source of a content security policy for the only element of
// this name.
func hashOf(t *testing.T, html, name string) string {
	t.Helper()
	all := regexp.MustCompile("(?s)<"+name+">(.*?)</"+name+">").FindAllStringSubmatch(html, -1)
	if len(all) != 1 {
		t.Fatalf("%d elements %s, want one", len(all), name)
	}
	sum := sha256.Sum256([]byte(all[0][1]))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// inBubble calls f with a scene's handler.
func inBubble(t *testing.T, f func(*testing.T, http.Handler)) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		defer s.leave()
		f(t, Handler(s.Transport, &s.recent))
	})
}

// TestS13_ThePageShowsDigestsOnly checks every response of the handler.
func TestS13_ThePageShowsDigestsOnly(t *testing.T) {
	inBubble(t, func(t *testing.T, h http.Handler) {
		var pages []string
		for _, as := range []string{"html", "json"} {
			_, text := get(h, "GET", "/?as="+as)
			pages = append(pages, text)
		}
		pages = append(pages, events(t, h, "/?as=events", time.Second/2)...)
		if len(pages) != 3 {
			t.Fatalf("got %d pages, want 3", len(pages))
		}
		for _, text := range pages {
			if strings.Contains(text, secret) || strings.Contains(text, "tenant-3") {
				t.Errorf("a key is shown in the clear:\n%s", text)
			}
			if got := len(regexp.MustCompile(`\b[0-9a-f]{24}\b`).FindAllString(text, -1)); got != 3 {
				t.Errorf("%d digests are shown, want those of two budgets and a pause", got)
			}
		}
	})
}

// TestPageEscapes: a name does no harm, however it was chosen.
func TestPageEscapes(t *testing.T) {
	inBubble(t, func(t *testing.T, h http.Handler) {
		_, text := get(h, "GET", "/?q=%3Cscript%3E%22%27")
		if strings.Contains(text, `<script>"'`) || !strings.Contains(text, "&lt;script&gt;&#34;&#39;") {
			t.Errorf("the query is not escaped:\n%s", text)
		}
		_, text = get(h, "GET", "/?q=HOSTILE")
		if strings.Contains(text, "<script>alert") || strings.Contains(text, "<img") || !strings.Contains(text, "&lt;script&gt;alert") {
			t.Errorf("a name is not escaped:\n%s", text)
		}
		for _, e := range events(t, h, "/?as=events&q=hostile", time.Second/2) {
			if strings.Contains(e, "<script") || strings.Contains(e, "\r") || !strings.Contains(e, "&#13;\n") {
				t.Errorf("a name is not escaped:\n%s", e)
			}
		}
		var v struct{ Hosts []struct{ Policy string } }
		_, text = get(h, "GET", "/?as=json&q=hostile")
		if err := json.Unmarshal([]byte(text), &v); err != nil || len(v.Hosts) != 1 || v.Hosts[0].Policy != hostile {
			t.Errorf("%v: got %+v, want the name as it is", err, v)
		}
		if strings.Contains(text, "<") {
			t.Errorf("a browser could take it for HTML:\n%s", text)
		}
	})
}

// TestPageJSON reads one host of each kind.
func TestPageJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, tr := newPage(t,
			headway.Policy{Name: "fails", Hosts: []string{"fails.test", "works.test"}, Breaker: &breaker.Config{Failures: 1, OpenFor: 9 * time.Second}},
			headway.Policy{Hosts: []string{"api.test"}, MaxInFlight: 3, MaxWait: headway.NoWait, Limits: []limiter.Limit{
				{N: 100, Per: time.Minute, Law: limiter.Bucket, Burst: 20}, {N: 1, Per: time.Minute},
			}},
			headway.Policy{Name: "all", Hosts: []string{"*.shared.test"}, Shared: true, Server: headway.Server{MaxPause: 30 * time.Second}})
		s := &scene{Transport: tr}
		s.now(t, "GET", "https://api.test/learn", "", 1)
		s.now(t, "GET", "https://api.test/", "", 1)
		time.Sleep(1500 * time.Millisecond)
		s.now(t, "GET", "https://api.test/", "", 1)
		s.now(t, "GET", "https://a.shared.test/429", "", 1)
		s.now(t, "GET", "https://fails.test/reset", "", 1)
		s.now(t, "GET", "https://works.test/", "", 1)
		time.Sleep(2 * time.Second)
		resp, got := get(h, "GET", "/any/path?as=json")
		if resp.Header.Get("Content-Type") != "application/json" {
			t.Errorf("it is %s", resp.Header.Get("Content-Type"))
		}
		want := `{
  "at": "2000-01-01T00:00:03.5Z",
  "total": {
    "hosts": 4,
    "waiting": 0,
    "in_flight": 0,
    "paused": 1,
    "open": 1
  },
  "offset": 0,
  "hosts": [
    {
      "policy": "all",
      "host": "",
      "waiting": 0,
      "in_flight": 0,
      "pauses": [
        {
          "left_seconds": 28,
          "source": "rfc9110",
          "status": 429,
          "from": "a.shared.test",
          "ago_seconds": 2,
          "cut": true
        }
      ]
    },
    {
      "policy": "fails",
      "host": "fails.test",
      "waiting": 0,
      "in_flight": 0,
      "breakers": [
        {
          "host": "fails.test",
          "state": "open",
          "retry_after_seconds": 7,
          "error": "connection \u003creset\u003e by peer"
        }
      ]
    },
    {
      "policy": "api.test",
      "host": "api.test",
      "waiting": 0,
      "in_flight": 0,
      "max_in_flight": 3,
      "budgets": [
        {
          "rule": "1/1m",
          "ours": {
            "limit": "1/1m",
            "most": 1,
            "remaining": 0
          },
          "binds": "ours"
        },
        {
          "rule": "bucket 100/1m burst 20",
          "ours": {
            "limit": "bucket 100/1m burst 20",
            "most": 20,
            "remaining": 20
          },
          "binds": "ours"
        },
        {
          "rule": "learned core",
          "theirs": [
            {
              "name": "core",
              "source": "x-ratelimit",
              "limit": 5000,
              "remaining": 1234,
              "reset_seconds": 1857.5,
              "age_seconds": 3.5,
              "drift": 0
            }
          ],
          "binds": "theirs"
        }
      ]
    },
    {
      "policy": "fails",
      "host": "works.test",
      "waiting": 0,
      "in_flight": 0,
      "breakers": [
        {
          "host": "works.test",
          "state": "closed",
          "retry_after_seconds": 0
        }
      ]
    }
  ],
  "refusals": [
    {
      "policy": "api.test",
      "host": "api.test",
      "rule": "1/1m",
      "reason": "limit",
      "retry_after_seconds": 58.5,
      "at_least": true,
      "count": 2,
      "first_seconds_ago": 3.5,
      "last_seconds_ago": 2
    }
  ]
}
`
		if got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
	})
}

// TestPageShowsWhatHolds reads the page of the scene.
func TestPageShowsWhatHolds(t *testing.T) {
	inBubble(t, func(t *testing.T, h http.Handler) {
		time.Sleep(10 * time.Second)
		_, html := get(h, "GET", "/")
		got := textOf(html)
		for _, want := range []string{
			"7 hosts 36 in line 8 in flight 1 paused 1 down 3 kinds of refusal lately at 2000-01-01 00:00:10 UTC",
			"api.payments.test policy payments 32 in line 8 of 8 in flight 5 min ago at most 32 in line now",
			"25/1s 25 of 25 left",
			"all hosts of search breaker open 0 in line 0 in flight Breaker eu.search.test open, probed in 20 s connection &lt;reset&gt; by peer hostile",
			"eu.search.test breaker 3 times, last 10 s ago the last could have started after 30 s",
			"eu.mail.test policy mail paused 4 in line 0 in flight",
			"30 s to go eu.mail.test responded 429 10 s ago, read as rfc9110",
			"learned core ours none the server's 1,234 of 5,000 left more in 30 min 51 s; read as x-ratelimit 10 s ago",
			"calls 600/1m ours 597 of 600 left the server's requests binds 38 of 100 left per 60 s; more in 21 s; read as ratelimit 10 s ago",
			"learned day ours none the server's 1,498 of 2,000 left per 24 h; more in 13 h 54 min; read as ratelimit 10 s ago",
			"tokens per day 1000000/day 15,000 more than 1,000,000 spent",
			"hostile.test limit rule 2/1m 2 times, last 10 s ago the last could have started after 60 s",
			"api.model.test limit rule tokens per day 3 times, last 10 s ago the last could have started after 24 h",
		} {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in:\n%s", want, got)
			}
		}
		// Those where something is going on come first.
		var order []string
		for _, m := range regexp.MustCompile(`<h2>(.*?)</h2>`).FindAllStringSubmatch(html, -1) {
			order = append(order, m[1])
		}
		if got, want := fmt.Sprint(order), "[eu.mail.test api.payments.test all hosts of search hostile.test api.forge.test api.chat.test api.model.test Refused lately]"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

// textOf returns the text of an HTML page, its white space as in one line.
func textOf(html string) string {
	_, html, _ = strings.Cut(html, "<main")
	return strings.Join(strings.Fields(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(html, " ")), " ")
}

// TestPageWithoutRecent says nothing of refusals, rather than that there are none.
func TestPageWithoutRecent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		defer s.leave()
		_, html := get(Handler(s.Transport), "GET", "/")
		if text := textOf(html); strings.Contains(text, "efus") || !strings.Contains(text, "40 s to go read as rfc9110") {
			t.Errorf("got %s", text)
		}
	})
}

// TestPageOfNothing says so.
func TestPageOfNothing(t *testing.T) {
	h, _ := newPage(t, headway.Policy{Hosts: []string{"*"}})
	if _, html := get(h, "GET", "/"); !strings.Contains(textOf(html), "No host has that name") || !strings.Contains(textOf(html), "None.") {
		t.Errorf("got %s", textOf(html))
	}
	if _, text := get(h, "GET", "/?as=json"); !strings.Contains(text, `"hosts": [],`) || !strings.Contains(text, `"refusals": []`) {
		t.Errorf("got %s", text)
	}
}

// TestPageLeavesOut: the page shows what matters most and says what it leaves
// out, a query finds that, and JSON has all.
func TestPageLeavesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, tr := newPage(t, headway.Policy{
			Name: "many", Hosts: []string{"*"},
			Rules: []headway.Rule{{Name: "tenant", Limit: limiter.PerMinute(50), Key: headway.ByHeader("X-Tenant")}},
		})
		s := &scene{Transport: tr}
		for i := range 130 {
			s.now(t, "GET", fmt.Sprintf("https://h%03d.test/", i), "t", 1)
		}
		for i := range 30 {
			for range i + 1 {
				s.now(t, "GET", "https://h129.test/", fmt.Sprint(i), 1)
			}
		}
		s.now(t, "GET", "https://h128.test/429", "t", 1)
		_, html := get(h, "GET", "/")
		text := textOf(html)
		if got := strings.Count(html, "<section"); got != 101 || !strings.Contains(text, "hosts 1 to 100 of 130") {
			t.Errorf("%d sections, want 100 hosts and the refusals", got)
		}
		if !strings.Contains(text, "h128.test policy many paused") {
			t.Error("the paused host is left out")
		}
		if _, html = get(h, "GET", "/?q=h129"); strings.Count(html, "<section") != 2 {
			t.Errorf("the query finds %s", textOf(html))
		}
		text = textOf(html)
		if got := strings.Count(text, " of 50 left"); got != 20 || !strings.Contains(text, "and 11 more, with more left") {
			t.Errorf("%d budgets, want 20 of 31", got)
		}
		if !strings.Contains(text, " 20 of 50 left") || !strings.Contains(text, " 39 of 50 left") || strings.Contains(text, " 40 of 50 left") {
			t.Errorf("want those with least left: %s", text)
		}
		// What is left out stands on the next page, and nothing twice.
		_, html = get(h, "GET", "/?offset=100")
		if got := strings.Count(html, "<section"); got != 31 || !strings.Contains(textOf(html), "hosts 101 to 130 of 130") {
			t.Errorf("%d sections, want 30 hosts and the refusals", got)
		}
		if !strings.Contains(html, `<a rel="prev" href="?q=&amp;offset=0">`) || strings.Contains(html, `rel="next"`) {
			t.Errorf("the last page leads elsewhere:\n%s", html)
		}
		if _, html = get(h, "GET", "/?q=h&offset=0"); !strings.Contains(html, `<a rel="next" href="?q=h&amp;offset=100">`) || strings.Contains(html, `rel="prev"`) {
			t.Errorf("the first page leads elsewhere:\n%s", html)
		}
		if _, html = get(h, "GET", "/?offset=500"); !strings.Contains(textOf(html), "There are only 130 hosts") {
			t.Errorf("beyond the end: %s", textOf(html))
		}
	})
}

// TestJSONIsPaged: it shows 100 hosts, what matters most first, and 100 rows of each
// table, unless it is asked for more; the totals are of all.
func TestJSONIsPaged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, tr := newPage(t, headway.Policy{
			Name: "many", Hosts: []string{"*"},
			Rules: []headway.Rule{{Name: "tenant", Limit: limiter.PerMinute(5), Key: headway.ByHeader("X-Tenant")}},
		})
		s := &scene{Transport: tr}
		for i := range 1130 {
			s.now(t, "GET", fmt.Sprintf("https://h%04d.test/", i), "t", 1)
		}
		for i := range 250 {
			s.now(t, "GET", "https://h0007.test/", fmt.Sprint(i), 1)
		}
		s.now(t, "GET", "https://h0500.test/429", "t", 1)
		type page struct {
			Total  struct{ Hosts, Paused int }
			Offset int
			Hosts  []struct {
				Host        string
				Budgets     []struct{}
				MoreBudgets int `json:"more_budgets"`
			}
		}
		read := func(query string) (p page) {
			t.Helper()
			resp, text := get(h, "GET", "/?as=json"+query)
			if err := json.Unmarshal([]byte(text), &p); err != nil {
				t.Fatalf("%s: %s, %v", query, resp.Status, err)
			}
			if p.Total.Paused > 0 && p.Total.Hosts != 1130 && !strings.Contains(query, "q=") {
				t.Errorf("%s: %d hosts in all, want 1130", query, p.Total.Hosts)
			}
			return p
		}
		for query, want := range map[string]struct {
			hosts, offset int
			first         string
		}{
			"": {100, 0, "h0500.test"}, "&limit=1": {1, 0, "h0500.test"}, "&limit=5000": {1000, 0, "h0500.test"},
			"&offset=1": {100, 1, "h0000.test"}, "&offset=1100": {30, 1100, "h1100.test"}, "&offset=1130": {0, 1130, ""},
			"&offset=99999": {0, 1130, ""}, "&limit=0": {0, 0, ""}, "&q=h011": {10, 0, "h0110.test"}, "&q=h011&offset=3&limit=2": {2, 3, "h0113.test"},
			"&limit=99999999999999999999": {-1, 0, ""}, "&limit=-1": {-1, 0, ""}, "&offset=x": {-1, 0, ""},
		} {
			if want.hosts < 0 {
				if resp, text := get(h, "GET", "/?as=json"+query); resp.StatusCode != http.StatusBadRequest || !strings.Contains(text, "must be a number") {
					t.Errorf("%s: got %s, want 400", query, resp.Status)
				}
				continue
			}
			p := read(query)
			if len(p.Hosts) != want.hosts || p.Offset != want.offset || want.hosts > 0 && p.Hosts[0].Host != want.first {
				t.Errorf("%s: got %d hosts from %d on, %+v, want %+v", query, len(p.Hosts), p.Offset, p.Hosts[:min(1, len(p.Hosts))], want)
			}
		}
		for rows, want := range map[string]int{"": 100, "&rows=7": 7, "&rows=99999": 251} {
			p := read("&q=h0007" + rows)
			if h := p.Hosts[0]; len(h.Budgets) != want || h.MoreBudgets != 251-want {
				t.Errorf("rows%s: %d budgets and %d more, want %d of 251", rows, len(h.Budgets), h.MoreBudgets, want)
			}
		}
		seen := map[string]bool{}
		for offset := 0; ; offset += 100 {
			p := read(fmt.Sprint("&offset=", offset))
			for _, h := range p.Hosts {
				if seen[h.Host] {
					t.Errorf("%s is on two pages", h.Host)
				}
				seen[h.Host] = true
			}
			if len(p.Hosts) == 0 {
				break
			}
		}
		if len(seen) != 1130 {
			t.Errorf("%d hosts on all pages, want 1130", len(seen))
		}
	})
}

// TestPageServesItsNames: a page of another site whose name leads here cannot read
// anything. As reported: quick-lint/quick-lint-js 951, spec-kitty/spec-kitty
// 4769 (all of the read API, by a name that was bound anew), and headroomlabs-ai/headroom
// 605 (the check of the caller's address passes).
func TestPageServesItsNames(t *testing.T) {
	tr, err := headway.NewTransport(base{}, headway.Config{})
	if err != nil {
		t.Fatal(err)
	}
	always := []string{
		"localhost", "localhost:6060", "LOCALHOST:1", "localhost.", "localhost.:80", "127.0.0.1", "127.0.0.1:6060", "127.8.9.10:6060",
		"[::1]", "[::1]:6060", "[0:0:0:0:0:0:0:1]:80", "[::ffff:127.0.0.1]:80",
	}
	never := []string{
		"", "evil.example", "evil.example:6060", "localhost.evil.example", "evil-localhost", "127.0.0.1.evil.example", "127.0.0.1.nip.io:6060",
		"10.0.0.1:6060", "0.0.0.0:6060", "[::]:6060", "[fe80::1]", "128.0.0.1", "127.1", "2130706433", "0x7f.1", "localhost@evil.example",
		"[::1].evil.example", ":6060", ".", "[]",
	}
	own := []string{"ops.example.com", "OPS.example.com:8443", "ops.example.com.", "10.1.2.3:6060", "[fd00::7]", "[fd00::8]:80", "[fd00::9]:80", "xn--bcher-kva.example:80"}
	plain := Handler(tr)
	named := NewHandler(tr, Config{Hosts: []string{"Ops.Example.com:443", "10.1.2.3", "fd00::7", "FD00:0:0::8", "[fd00:0::9]:80", "Bücher.example"}})
	any := NewHandler(tr, Config{Hosts: []string{"*"}})
	check := func(h http.Handler, hosts []string, want int) {
		t.Helper()
		for _, host := range hosts {
			for _, as := range []string{"", "html", "json", "events", "xml"} {
				for _, method := range []string{"GET", "HEAD"} {
					req := httptest.NewRequest(method, "/?as="+as, nil)
					ctx, cancel := context.WithCancel(t.Context())
					cancel() // a stream ends at once
					req = req.WithContext(ctx)
					req.Host = host
					w := httptest.NewRecorder()
					h.ServeHTTP(w, req)
					if as == "xml" && want == http.StatusOK {
						continue
					}
					if w.Code != want || want != http.StatusOK && strings.Contains(w.Body.String(), "hosts\"") {
						t.Errorf("%s as=%s to %q: got %d, want %d", method, as, host, w.Code, want)
					}
				}
			}
		}
	}
	check(plain, always, http.StatusOK)
	check(plain, append(never, own...), http.StatusForbidden)
	check(named, append(always, own...), http.StatusOK)
	check(named, append(never, "ops.example.com.evil.example", "xops.example.com"), http.StatusForbidden)
	check(any, append(always, "evil.example", "10.0.0.1:1"), http.StatusOK)
}

// TestPageShowsUnreadRows checks the rows of a store that could not be read.
func TestPageShowsUnreadRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var recent Recent
		tr, err := headway.NewTransport(base{}, headway.Config{Observer: &recent})
		if err != nil {
			t.Fatal(err)
		}
		for _, away := range []bool{false, true, true} {
			recent.Observe(t.Context(), headway.Event{
				Kind: headway.EventStoreRow, Policy: "p", Host: "api.test", Rule: "r", KeyDigest: "d1", Away: away, Err: errors.New("<damaged>"),
			})
		}
		_, html := get(Handler(tr, &recent), "GET", "/")
		text := textOf(html)
		for _, want := range []string{
			"A row of the store could not be read, just now: api.test, rule r d1 . It was reset. &lt;damaged&gt;",
			"A row of the store could not be read, 2 times, last just now: api.test, rule r d1 . The store does not decide for its requests.",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in %s", want, text)
			}
		}
	})
}
