package retryafter

import (
	"encoding/json"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"testing"
	"time"
)

// checkSignal checks the invariants of every Signal.
func checkSignal(t *testing.T, s *Signal) {
	t.Helper()
	length := func(what string, d time.Duration, has bool) {
		if d < 0 || !has && d != 0 || d%time.Millisecond != 0 && d != maxDuration {
			t.Fatalf("%s = %d, %v", what, d, has)
		}
	}
	length("RetryAfter", s.RetryAfter, s.HasRetryAfter)
	length("Hint", s.Hint, true)
	if d, ok := s.Wait(); d < 0 || !ok && d != 0 || ok && d < s.RetryAfter || s.Inferred && !s.HasRetryAfter {
		t.Fatalf("Wait is %v, %v of %+v", d, ok, s)
	}
	for _, l := range s.Limits() {
		length("Reset", l.Reset, l.HasReset)
		bucket := !l.HasReset && l.Resets == ResetFull // whose period is documented
		length("Window", l.Window, l.HasWindow || bucket)
		if l.Limit < 0 || l.Remaining < 0 || !l.HasLimit && l.Limit != 0 || !l.HasRemaining && l.Remaining != 0 {
			t.Fatalf("limit %+v", l)
		}
		if l.Resets > ResetRolling || !l.HasReset && (l.Coarse || l.Resets != ResetUnknown && !bucket) || len(l.Resource) > maxValue {
			t.Fatalf("limit %+v", l)
		}
		if l == (LimitSignal{}) {
			t.Fatal("a limit that says nothing")
		}
		if b, ok := s.Binding(); !ok || bindsBefore(&l, &b) {
			t.Fatalf("%+v binds before %+v", l, b)
		}
	}
	if s.Documented && !s.HasRetryAfter || s.Scope > ScopeRequest || s.Resource != "" && !s.Throttled || len(s.Resource) > maxValue {
		t.Fatalf("%+v", s)
	}
}

// headerText writes a header as lines, and readHeader reads them as net/http
// would, but for values that it would refuse.
func headerText(h http.Header) string {
	var b strings.Builder
	for name, lines := range h {
		for _, v := range lines {
			b.WriteString(name + ":" + v + "\n")
		}
	}
	return b.String()
}

func readHeader(text string) http.Header {
	h := http.Header{}
	for line := range strings.SplitSeq(text, "\n") {
		if name, v, ok := strings.Cut(line, ":"); ok {
			name = textproto.CanonicalMIMEHeaderKey(name)
			h[name] = append(h[name], v)
		}
	}
	return h
}

func FuzzParse(f *testing.F) {
	for _, v := range corpusValues(f) {
		f.Add(v, int64(1773500966), int64(0))
	}
	f.Fuzz(func(t *testing.T, v string, sec, nano int64) {
		now := time.Unix(sec%(1<<40), nano)
		d, ok := Parse(v, now)
		if d < 0 || !ok && d != 0 || d%time.Millisecond != 0 && d != maxDuration {
			t.Fatalf("Parse(%q) = %d, %v", v, d, ok)
		}
		if !ok || isDigit(trim(v)[0]) || strings.Contains(v, ":60") {
			return
		}
		// A date that we accept is one for net/http, and the same one except for the
		// century of two digits.
		at, err := http.ParseTime(trim(v))
		if err != nil {
			t.Fatalf("Parse(%q) = %v, net/http: %v", v, d, err)
		}
		if want := instantOf(now).until(instantOf(at)); len(trim(v)) < 30 && d != want {
			t.Fatalf("Parse(%q) = %v, want %v", v, d, want)
		}
	})
}

func FuzzRead(f *testing.F) {
	for _, h := range corpusHeaders(f) {
		for _, status := range []int{200, 403, 429, 503} {
			f.Add(status, headerText(h), int64(1773500966))
		}
	}
	f.Fuzz(func(t *testing.T, status int, text string, sec int64) {
		h := readHeader(text)
		now := time.Unix(sec%(1<<40), 0)
		s := Read(status, h, now)
		checkSignal(t, &s)
		if again := Read(status, h, now); again != s {
			t.Fatalf("%q: %+v, then %+v", text, s, again)
		}
	})
}

// FuzzDialect reads in one dialect of the table alone.
func FuzzDialect(f *testing.F) {
	for i, h := range corpusHeaders(f) {
		f.Add(i, 429, headerText(h), int64(1773500966))
	}
	f.Fuzz(func(t *testing.T, n, status int, text string, sec int64) {
		h := readHeader(text)
		d := dialects[uint(n)%uint(len(dialects))]
		s, ok := d.Read(status, h, time.Unix(sec%(1<<40), 0))
		checkSignal(t, &s)
		if !ok && (s.HasRetryAfter || len(s.Limits()) > 0) {
			t.Fatalf("%s says nothing, and this: %+v", d.Name(), s)
		}
	})
}

func FuzzDate(f *testing.F) {
	for _, v := range corpusValues(f) {
		f.Add(v)
	}
	f.Add("Tue Feb 16 2021 09:02:42 GMT+0100 (Central European Standard Time)")
	f.Fuzz(func(t *testing.T, v string) {
		if at, ok := rfc3339(v); ok && !strings.Contains(v, ":60") {
			want, err := time.Parse(time.RFC3339Nano, strings.ToUpper(v))
			if err == nil && want.Unix() != at.sec {
				t.Fatalf("rfc3339(%q) = %v, want %v", v, at, want)
			}
		}
		if at, ok := jsDate(v); ok && !strings.Contains(v, ":60") {
			want, err := time.Parse("Mon Jan 02 2006 15:04:05 GMT-0700", v[:33])
			if err != nil || want.Unix() != at.sec {
				t.Fatalf("jsDate(%q) = %v, want %v, %v", v, at, want, err)
			}
		}
		for _, form := range []form{byMagnitude, byMagnitudeF, durationOr, dateOnly} {
			r := reading{clocks: clocks{came: time.Unix(1773500966, 0)}, conv: &unknown, sig: new(Signal)}
			if d, _, ok := r.timeOf(v, form); d < 0 || !ok && d != 0 || d%time.Millisecond != 0 && d != maxDuration {
				t.Fatalf("form %d: %q: %d, %v", form, v, d, ok)
			}
		}
	})
}

func FuzzDuration(f *testing.F) {
	for _, v := range corpusValues(f) {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, v string) {
		d, ok := goDuration(v)
		if d < 0 || !ok && d != 0 {
			t.Fatalf("goDuration(%q) = %v, %v", v, d, ok)
		}
		want, err := time.ParseDuration(v)
		switch {
		case ok && err != nil && d != maxDuration:
			t.Fatalf("goDuration(%q) = %v, package time: %v", v, d, err)
		case ok && err == nil && (d < want || d-want > time.Millisecond+time.Microsecond):
			t.Fatalf("goDuration(%q) = %v, want %v", v, d, want)
		}
	})
}

func FuzzJSON(f *testing.F) {
	for _, v := range corpusValues(f) {
		f.Add(v)
	}
	f.Add(`{"a":[1,-2.5e3,"x\u00e9",{"b":null}],"c":true}`)
	f.Fuzz(func(t *testing.T, v string) {
		if len(v) > maxLong {
			return
		}
		deep, depth := false, 0
		for _, c := range v {
			if c == '[' || c == '{' {
				depth++
				deep = deep || depth > maxDepth // at most too careful: it may stand in a string
			}
		}
		p := jsonScanner{s: v}
		for p.next() {
			if p.depth < 0 || p.depth > maxDepth {
				t.Fatalf("%q: depth %d", v, p.depth)
			}
		}
		if got, want := p.complete(), json.Valid([]byte(v)); got != want && !deep {
			t.Fatalf("%q: complete = %v, want %v", v, got, want)
		}
	})
}

func FuzzReadBody(f *testing.F) {
	for _, body := range []string{
		`{"message":"You have exceeded a secondary rate limit.","documentation_url":"https://docs.github.com/#secondary-rate-limits"}`,
		`{"documentation_url":"#secondary-rate-limits0"}`, // was once found too early, before the last bytes
		`<?xml version="1.0"?><Error><Code>SlowDown</Code></Error>`,
		`{"__type":"a#ThrottlingException"}`,
		`{"error":{"errors":[{"reason":"rateLimitExceeded"}],"details":[{"retryDelay":"34.5s"}],"status":"RESOURCE_EXHAUSTED"}}`,
		`{"error":{"type":"insufficient_quota","code":"insufficient_quota"}}`,
	} {
		for _, status := range []int{403, 429, 503} {
			f.Add(status, body)
		}
	}
	for _, v := range corpusValues(f) {
		f.Add(429, v)
	}
	f.Fuzz(func(t *testing.T, status int, body string) {
		s, found := everything.ReadBody(status, nil, []byte(body), time.Unix(1773500966, 0))
		checkSignal(t, &s)
		if found && !s.Throttled {
			t.Fatalf("%q: found, but no throttle", body)
		}
		// The bytes behind a cut change nothing that came before it.
		if len(body) > 0 {
			if cut, was := everything.ReadBody(status, nil, []byte(body[:len(body)-1]), time.Unix(1773500966, 0)); was && len(body) <= maxBody && !found {
				t.Fatalf("%q: found %+v before its last byte, not after", body, cut)
			}
		}
	})
}

// FuzzRoute: whatever a path looks like, a route is bounded, depends on it alone, and
// leaves the request as it was.
func FuzzRoute(f *testing.F) {
	for _, path := range []string{"", "/", "//", "/search/code", "/api/v10/channels/1/messages/2", "/webhooks/1", "/api/chat.postMessage", "2", "/é/@me/%2F", "/api/vv1/guilds/"} {
		f.Add("GET", path)
	}
	f.Fuzz(func(t *testing.T, method, path string) {
		for _, d := range dialects {
			req := &http.Request{Method: method, URL: &url.URL{Path: path}}
			route := d.(RouteDialect).Route(req)
			if len(route) > maxRoute || req.URL.Path != path || req.Method != method {
				t.Fatalf("%s: %q", d.Name(), route)
			}
			if again := d.(RouteDialect).Route(req); again != route {
				t.Fatalf("%s: %q, then %q", d.Name(), route, again)
			}
		}
		if major := majorPart(path); !strings.HasPrefix(path, major) {
			t.Fatalf("%q: %q", path, major)
		}
	})
}
