package debug

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// live is true in a page once the script has put an event in its place.
const live = `document.getElementById("state").textContent === "live"`

// TestPageInABrowser opens the page wide, on a phone, in dark mode, and without scripts.
func TestPageInABrowser(t *testing.T) {
	s := newSceneOf(t, "600")
	defer s.leave()
	h := Handler(s.Transport, &s.recent).(*handler)
	pictured(h, time.Now())
	server := httptest.NewServer(h)
	t.Cleanup(server.Close) // after the browser, whose streams it would wait for
	b := newBrowser(t)

	for name, as := range map[string]look{
		"wide":       {width: 1280, height: 900},
		"phone":      {width: 390, height: 844, phone: true},
		"phone-dark": {width: 390, height: 844, phone: true, dark: true},
		"no-scripts": {width: 390, height: 844, phone: true, noScripts: true},
	} {
		tab := b.open(server.URL, as)
		if as.noScripts {
			tab.until(`document.querySelector("footer")`)
		} else {
			tab.until(live)
		}
		tab.screenshot(name)
		text := strings.Join(strings.Fields(tab.eval(`document.body.innerText`).(string)), " ")
		for _, want := range []string{
			"36 in line", "32 in line 8 of 8 in flight", "eu.mail.test responded 429", "1,234 of 5,000 left",
			"ours 597 of 600 left the server's requests binds 38 of 100 left",
			"15,000 more than 1,000,000 spent", "3 times, last", strings.Join(strings.Fields(hostile), " "),
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in:\n%s", name, want, text)
			}
		}
		if got := tab.eval(`document.documentElement.scrollWidth`); got != tab.eval(`document.documentElement.clientWidth`) {
			t.Errorf("%s: the page is %v wide, more than the window", name, got)
		}
		if got := tab.eval(`document.querySelectorAll("main script, main img, main [onerror]").length`); got != 0.0 {
			t.Errorf("%s: %v elements came out of a name", name, got)
		}
		if got := tab.eval(`getComputedStyle(document.querySelector("section")).borderTopLeftRadius`); got != "10px" {
			t.Errorf("%s: corners of %v, want those of the style sheet", name, got)
		}
	}
	b.clean(server.URL)
}

// TestPageLive checks that a visible page shows changes, and that the stream ends when
// the page is hidden.
func TestPageLive(t *testing.T) {
	s := newSceneOf(t, "600")
	defer s.leave()
	h := Handler(s.Transport, &s.recent)
	begun, ended := make(chan bool, 100), make(chan bool, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Query().Get("as") == "events" {
			begun <- true
			defer func() { ended <- true }()
		}
		h.ServeHTTP(w, req)
	}))
	t.Cleanup(server.Close)
	b := newBrowser(t)
	tab := b.open(server.URL+"/debug/?q=MAIL", look{width: 1280, height: 900})
	tab.until(live)
	<-begun
	s.now(t, "GET", "https://us.mail.test/", "tenant-4", 0)
	s.now(t, "GET", "https://news.test/", "tenant-4", 0)
	tab.until(`document.querySelector("main").innerText.includes("us.mail.test")`)
	if text := tab.eval(`document.querySelector("main").innerText`).(string); strings.Contains(text, "payments") {
		t.Errorf("looked for mail, got:\n%s", text)
	}

	// Selected text can be copied.
	tab.eval(`getSelection().selectAllChildren(document.querySelector("h2"))`)
	tab.until(`document.getElementById("state").textContent === "held while text is selected"`)
	if got := tab.eval(`getSelection().toString()`); got != "eu.mail.test" {
		t.Errorf("selected %q, want eu.mail.test", got)
	}
	tab.eval(`getSelection().empty()`)
	tab.until(live)

	// A hidden tab ends its stream.
	hide := `Object.defineProperty(document, "hidden", {value: %, configurable: true}); document.dispatchEvent(new Event("visibilitychange"))`
	tab.eval(strings.Replace(hide, "%", "true", 1))
	<-ended
	tab.eval(strings.Replace(hide, "%", "false", 1))
	<-begun
	tab.until(live)
	tab.do("Page.close", nil, nil)
	<-ended
	b.clean(server.URL)
}

// TestPageWithoutScripts is loaded again by itself.
func TestPageWithoutScripts(t *testing.T) {
	s := newSceneOf(t, "600")
	defer s.leave()
	h := Handler(s.Transport)
	pages := make(chan string, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		pages <- req.URL.String()
		h.ServeHTTP(w, req)
	}))
	t.Cleanup(server.Close)
	b := newBrowser(t)
	b.open(server.URL+"/debug/?q=mail", look{width: 390, height: 844, noScripts: true})
	for range 3 {
		if got := <-pages; got != "/debug/?q=mail" {
			t.Errorf("asked for %s", got)
		}
	}
	b.clean(server.URL)
}
