// Package match decides which requests a rule applies to: by method, and by
// path as it goes over the wire.
package match

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"
)

// A Target is what rules look at in a request. It is taken once per request.
type Target struct {
	method string
	path   string
	// escaped says that path holds percent escapes. Without it, path is plain
	// and a percent sign in it means itself.
	escaped bool
}

// TargetOf returns the target of a request: its path as it goes over the wire.
// It does not allocate.
func TargetOf(req *http.Request) Target {
	t := Target{method: req.Method}
	if t.method == "" {
		t.method = http.MethodGet
	}
	u := req.URL
	switch {
	case u.Opaque != "":
		t.path, t.escaped = u.Opaque, true
		if rest, ok := strings.CutPrefix(t.path, "//"); ok { // with a host in front
			t.path = ""
			if i := strings.IndexByte(rest, '/'); i >= 0 {
				t.path = rest[i:]
			}
		}
		t.path, _, _ = strings.Cut(t.path, "?")
	case u.RawPath != "" && validRawPath(u.RawPath) && unescapesTo(u.RawPath, u.Path):
		t.path, t.escaped = u.RawPath, true
	default:
		// URL.EscapedPath escapes Path here, slashes excepted. That keeps its
		// segments apart, so there is no need to do it and undo it again.
		t.path = u.Path
	}
	return t
}

// A Matcher says which requests a rule applies to. Its zero value is every one.
type Matcher struct {
	methods []string
	path    []segment // nil: every path
}

// Matches reports whether the rule applies. It does not allocate.
func (m *Matcher) Matches(t Target) bool {
	if len(m.methods) > 0 && !slices.Contains(m.methods, t.method) {
		return false
	}
	return m.path == nil || matchPath(m.path, t.path, t.escaped)
}

// New returns the Matcher of these methods and of a path pattern; empty ones
// match every request. The error says what is wrong with the pattern and what
// would be right.
func New(methods []string, path string) (m Matcher, err error) {
	m.methods = slices.Clone(methods)
	if path != "" {
		m.path, err = parsePath(path)
	}
	return m, err
}

// Narrow reports whether m matches only some requests.
func (m *Matcher) Narrow() bool { return len(m.methods) > 0 || m.path != nil }

// A segment is what stands between two slashes of a path pattern.
type segment struct {
	kind segmentKind
	text string // of a literal, unescaped
}

type segmentKind uint8

const (
	literal segmentKind = iota
	wildcard
	multi // all that is left; always last
	end   // nothing, after a slash: {$}; always last
)

// matchPath reports whether the segments are those of path. A path that ends in
// a slash has an empty last segment, which no wildcard stands for.
func matchPath(pattern []segment, path string, escaped bool) bool {
	path = strings.TrimPrefix(path, "/")
	for i, p := range pattern {
		if p.kind == multi {
			return true
		}
		seg, rest, more := strings.Cut(path, "/")
		if seg == "" && !more {
			return p.kind == end
		}
		switch {
		case p.kind == end:
			return false
		case p.kind == wildcard:
		case escaped && !unescapesTo(seg, p.text), !escaped && seg != p.text:
			return false
		}
		if !more {
			return i == len(pattern)-1
		}
		path = rest
	}
	return false
}

// parsePath returns the segments of a path pattern. The error says what is wrong
// and what would be right.
func parsePath(pattern string) ([]segment, error) {
	if strings.ContainsAny(pattern, " \t") {
		return nil, errors.New("want a path alone, a space in it written as %20; methods go into Methods")
	}
	if !strings.HasPrefix(pattern, "/") {
		return nil, errors.New(`want a path that begins with "/"; hosts go into Policy.Hosts`)
	}
	var segs []segment
	var names []string
	for rest, more := pattern[1:], true; more; {
		var text string
		text, rest, more = strings.Cut(rest, "/")
		if text == "" && !more {
			return append(segs, segment{kind: multi}), nil // a trailing slash
		}
		if !strings.Contains(text, "{") {
			if plain, err := url.PathUnescape(text); err == nil {
				text = plain
			}
			segs = append(segs, segment{kind: literal, text: text})
			continue
		}
		if text[0] != '{' || text[len(text)-1] != '}' {
			return nil, fmt.Errorf("segment %q: want a wildcard to fill it, such as {name}", text)
		}
		name := text[1 : len(text)-1]
		seg := segment{kind: wildcard}
		if name == "$" {
			seg.kind = end
		} else if s, ok := strings.CutSuffix(name, "..."); ok {
			seg.kind, name = multi, s
		}
		if more && seg.kind != wildcard {
			return nil, fmt.Errorf("segment %q: want it at the end", text)
		}
		if seg.kind != end {
			if !isIdentifier(name) {
				return nil, fmt.Errorf("segment %q: want a Go identifier in the braces", text)
			}
			if slices.Contains(names, name) {
				return nil, fmt.Errorf("segment %q: want each name once", text)
			}
			names = append(names, name)
		}
		segs = append(segs, seg)
	}
	return segs, nil
}

func isIdentifier(s string) bool {
	for i, c := range s {
		if !unicode.IsLetter(c) && c != '_' && (i == 0 || !unicode.IsDigit(c)) {
			return false
		}
	}
	return s != ""
}

// validRawPath reports whether URL.EscapedPath could take raw: whether every
// byte of it may stand in an escaped path, and every escape is one.
func validRawPath(raw string) bool {
	for i := range len(raw) {
		switch c := raw[i]; {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9':
		case strings.IndexByte("-_.~!$&'()*+,;=:@[]/", c) >= 0:
		case c == '%':
			if _, ok := escapedByte(raw[i:]); !ok {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// unescapesTo reports whether s with its percent escapes resolved is plain. An
// invalid escape means itself.
func unescapesTo(s, plain string) bool {
	for i := range len(plain) {
		if s == "" {
			return false
		}
		c, n := s[0], 1
		if b, ok := escapedByte(s); ok {
			c, n = b, 3
		}
		if c != plain[i] {
			return false
		}
		s = s[n:]
	}
	return s == ""
}

// escapedByte returns the byte that the percent escape at the start of s stands
// for, if there is one.
func escapedByte(s string) (byte, bool) {
	if len(s) < 3 || s[0] != '%' {
		return 0, false
	}
	hi, ok1 := unhex(s[1])
	lo, ok2 := unhex(s[2])
	return hi<<4 | lo, ok1 && ok2
}

func unhex(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}
