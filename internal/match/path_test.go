package match

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestMatchPath(t *testing.T) {
	for _, tc := range []struct {
		pattern, url string
		want         bool
	}{
		{"", "https://h/any/path", true},
		{"/", "https://h/any/path", true},
		{"/", "https://h", true}, // sent as "/"
		{"/{$}", "https://h", true},
		{"/{$}", "https://h/", true},
		{"/{$}", "https://h/a", false},
		{"/search", "https://h/search?q=a/b", true},
		{"/search", "https://h/search/", false},
		{"/search", "https://h/Search", false},
		{"/search", "https://h/searching", false},
		{"/search", "https://h/a/search", false},
		{"/repos/", "https://h/repos", false}, // no redirect
		{"/repos/", "https://h/repos/", true},
		{"/repos/", "https://h/repos/a/b", true},
		{"/repos/{$}", "https://h/repos/", true},
		{"/repos/{$}", "https://h/repos/a", false},
		{"/repos/{owner}/{name}", "https://h/repos/a/b", true},
		{"/repos/{owner}/{name}", "https://h/repos/a", false},
		{"/repos/{owner}/{name}", "https://h/repos/a/", false},
		{"/repos/{owner}/{name}", "https://h/repos/a/b/c", false},
		{"/repos/{owner}/{name}", "https://h/repos//b", true}, // not cleaned: an empty segment
		{"/a/b", "https://h/a//b", false},
		{"/a//b", "https://h/a//b", true},
		{"/a/b", "https://h/a/./b", false},
		{"/a/./b", "https://h/a/./b", true},
		{"/files/{path...}", "https://h/files/", true},
		{"/files/{path...}", "https://h/files/a/b", true},
		{"/files/{path...}", "https://h/files", false},
		{"/{a}/x", "https://h/a%2Fb/x", true}, // an escaped slash does not split
		{"/{a}/{b}/x", "https://h/a%2Fb/x", false},
		{"/{a}/x", "https://h/%2F/x", true}, // nor does it alone end the path
		{"/a/{$}", "https://h/a/%2F", false},
		{"/a%2Fb", "https://h/a%2fb", true},
		{"/a%20b", "https://h/a%20b", true},
		{"/a%20b", "https://h/a b", true},
		{"/grün", "https://h/gr%C3%BCn", true},
		{"/grün", "https://h/gr%c3%bcn/", false},
		{"/100%", "https://h/100%25", true},
		{"/%2541", "https://h/%2541", true}, // a percent sign, then 41
		{"/A", "https://h/%2541", false},
		{"/A", "https://h/%41", true},
		{"/*", "https://h/*", true},
		{"/v1/models:list", "https://h/v1/models:list", true},
	} {
		u, err := url.Parse(tc.url)
		if err != nil {
			t.Fatal(err)
		}
		m, _ := New(nil, tc.pattern)
		if got := m.Matches(TargetOf(&http.Request{URL: u})); got != tc.want {
			t.Errorf("%q on %s: got %v, want %v", tc.pattern, tc.url, got, tc.want)
		}
	}
}

// What is sent counts, however the URL holds it.
func TestMatchPathOfBuiltURLs(t *testing.T) {
	for _, tc := range []struct {
		pattern string
		url     url.URL
		want    bool
	}{
		{"/a/b", url.URL{Path: "a/b"}, true},
		{"/a/b", url.URL{Path: "/a/b", RawPath: "/a%2Fb"}, false},
		{"/{x}", url.URL{Path: "/a/b", RawPath: "/a%2Fb"}, true},
		{"/a/b", url.URL{Path: "/a/b", RawPath: "/other"}, true},         // RawPath is not of Path: not sent
		{"/a%20b/c", url.URL{Path: "/a b/c", RawPath: "/a b%2Fc"}, true}, // RawPath is invalid: not sent
		{"/%zz/", url.URL{Path: "/%zz/", RawPath: "/%zz%2F"}, true},      // the same
		{"/projects/{id}/jobs", url.URL{Opaque: "/projects/a%2Fb/jobs"}, true},
		{"/projects/{id}/jobs", url.URL{Opaque: "//h/projects/a%2Fb/jobs", Path: "/x"}, true},
		{"/projects/{id}/jobs", url.URL{Opaque: "/projects/a%2Fb/jobs?x=/"}, true},
		{"/{$}", url.URL{Opaque: "//h"}, true},
	} {
		segs := mustParsePath(t, tc.pattern)
		target := TargetOf(&http.Request{URL: &tc.url})
		if got := matchPath(segs, target.path, target.escaped); got != tc.want {
			t.Errorf("%q on %#v: got %v, want %v", tc.pattern, tc.url, got, tc.want)
		}
	}
}

func mustParsePath(t interface {
	Helper()
	Fatal(...any)
}, pattern string) []segment {
	t.Helper()
	segs, err := parsePath(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return segs
}

func TestMatchMethods(t *testing.T) {
	u := &url.URL{Path: "/"}
	for _, tc := range []struct {
		methods []string
		method  string
		want    bool
	}{
		{nil, "GET", true},
		{nil, "BREW", true},
		{[]string{"GET"}, "GET", true},
		{[]string{"GET"}, "", true}, // net/http's way to say GET
		{[]string{"GET"}, "HEAD", false},
		{[]string{"GET"}, "get", false},
		{[]string{"POST", "PUT"}, "PUT", true},
		{[]string{"POST", "PUT"}, "", false},
	} {
		m, _ := New(tc.methods, "")
		if got := m.Matches(TargetOf(&http.Request{Method: tc.method, URL: u})); got != tc.want {
			t.Errorf("%v on %q: got %v, want %v", tc.methods, tc.method, got, tc.want)
		}
	}
}

func TestParsePathErrors(t *testing.T) {
	// What http.ServeMux takes, but does not belong into a path.
	for _, pattern := range []string{"example.com/search", "GET /search"} {
		if segs, err := parsePath(pattern); err == nil {
			t.Errorf("%q: got %v, want an error", pattern, segs)
		}
	}
	for _, pattern := range []string{
		"", "search", "/a b", "/a\tb", "/{", "/}{", "/{}", "/{...}", "/{1a}", "/{a-b}",
		"/x{a}", "/{a}x", "/{$}/", "/{$}/a", "/{a...}/", "/{a...}/b", "/{a}/{a}", "/{a}/{a...}", "/{$...}", "/{a}{b}",
	} {
		if segs, err := parsePath(pattern); err == nil {
			t.Errorf("%q: got %v, want an error", pattern, segs)
		}
		if muxTakes(pattern) {
			t.Errorf("%q: http.ServeMux takes it", pattern)
		}
	}
}

type marked struct{ http.Handler }

// muxTakes reports whether pattern is one of http.ServeMux's.
func muxTakes(pattern string) (ok bool) {
	defer func() { ok = recover() == nil }()
	http.NewServeMux().Handle(pattern, marked{})
	return true
}

// muxMatches reports whether http.ServeMux finds pattern for the path without a
// redirect.
func muxMatches(pattern string, u *url.URL) bool {
	mux := http.NewServeMux()
	mux.Handle(pattern, marked{})
	h, _ := mux.Handler(&http.Request{Method: "GET", Host: "h", URL: u})
	_, ok := h.(marked)
	return ok
}

// On clean paths a pattern means what it means to http.ServeMux. One thing is
// left out: a segment that is "/" when unescaped, which ServeMux takes for a
// slash at the end of the path.
func TestMatchPathAsServeMux(t *testing.T) {
	texts := []string{"a", "b", "a%20b", "a%2Fb", "ü", "%C3%BC", "%61", "a:b", "*", "%25", "x.y"}
	segs := rapid.SampledFrom(append([]string{"{v}", "{w}"}, texts...))
	rapid.Check(t, func(t *rapid.T) {
		pattern := "/" + strings.Join(rapid.SliceOfNDistinct(segs, 0, 4, rapid.ID).Draw(t, "pattern"), "/")
		if last := rapid.SampledFrom([]string{"", "/", "/{$}", "/{rest...}"}).Draw(t, "last"); pattern != "/" {
			pattern += last
		} else if last != "" {
			pattern = last
		}
		path := "/" + strings.Join(rapid.SliceOfN(rapid.SampledFrom(texts), 0, 4).Draw(t, "path"), "/")
		if rapid.Bool().Draw(t, "slash") && path != "/" {
			path += "/"
		}
		u, err := url.Parse("http://h" + path)
		if err != nil {
			t.Fatal(err)
		}
		target := TargetOf(&http.Request{URL: u})
		got := matchPath(mustParsePath(t, pattern), target.path, target.escaped)
		if want := muxMatches(pattern, u); got != want {
			t.Fatalf("%q on %q: got %v, want %v", pattern, path, got, want)
		}
	})
}

func FuzzParsePath(f *testing.F) {
	for _, s := range []string{"/", "/a/{b}/{c...}", "/{$}", "/a/", "//", "/{a}/{a}", "/%2F", "/%", "/{é1}", "/{", "a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, pattern string) {
		_, err := parsePath(pattern)
		// ServeMux takes methods and hosts too, which are not for us.
		want := strings.HasPrefix(pattern, "/") && !strings.ContainsAny(pattern, " \t") && muxTakes(pattern)
		if (err == nil) != want {
			t.Errorf("%q: got %v, want it taken: %v", pattern, err, want)
		}
	})
}

// A target is read as what URL.EscapedPath would send, without making it.
func FuzzTarget(f *testing.F) {
	f.Add("/a/b", "/a%2Fb", "/{x}")
	f.Add("/a b", "/a b", "/{x}/{y}")
	f.Add("/%zz/", "/%zz%2F", "/{x}/")
	f.Add("/ü", "/%C3%BC", "/ü")
	f.Add("", "", "/")
	f.Fuzz(func(t *testing.T, path, raw, pattern string) {
		segs, err := parsePath(pattern)
		if err != nil {
			return
		}
		u := &url.URL{Path: path, RawPath: raw}
		target := TargetOf(&http.Request{URL: u})
		got := matchPath(segs, target.path, target.escaped)
		if want := matchPath(segs, u.EscapedPath(), true); got != want {
			t.Errorf("%q on Path %q, RawPath %q: got %v, want %v as for %q", pattern, path, raw, got, want, u.EscapedPath())
		}
	})
}

func TestMatchZeroAllocs(t *testing.T) {
	if raceEnabled {
		return // the race detector allocates by itself; make test runs this without it too
	}
	m, _ := New([]string{"GET"}, "/a%20b/{x}/ü/{rest...}")
	for _, path := range []string{"/a%20b/x/%C3%BC/d/e", "/a%20b/x%2Fy/%c3%bc/d/e", "/other"} {
		u, err := url.Parse("https://h" + path)
		if err != nil {
			t.Fatal(err)
		}
		req := &http.Request{URL: u}
		if n := testing.AllocsPerRun(100, func() { m.Matches(TargetOf(req)) }); n != 0 {
			t.Errorf("%s: got %v allocations, want 0", path, n)
		}
	}
}

func BenchmarkMatch(b *testing.B) {
	m, _ := New([]string{"GET"}, "/repos/{owner}/{name}/issues")
	for _, path := range []string{"/repos/a/b/issues", "/repos/a%2Fb/c/issues"} {
		b.Run("path="+path, func(b *testing.B) {
			u, err := url.Parse("https://h" + path)
			if err != nil {
				b.Fatal(err)
			}
			req := &http.Request{URL: u}
			b.ReportAllocs()
			for b.Loop() {
				m.Matches(TargetOf(req))
			}
		})
	}
}
