// Package show says how errors and times appear to others than the caller they
// belong to: in logs, events, pages, and errors of other requests.
package show

import (
	"errors"
	"fmt"
	"net"
	"reflect"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"
)

// Duration rounds d to what a reader cares for: to milliseconds, and below 10 ms
// to microseconds. What is shorter than one stays.
func Duration(d time.Duration) time.Duration {
	switch {
	case d > -time.Microsecond && d < time.Microsecond:
		return d
	case d < 10*time.Millisecond:
		return d.Round(time.Microsecond)
	}
	return d.Round(time.Millisecond)
}

// MostText is the length in bytes that Text and the text of an Error do not exceed.
const MostText = 500

// Error returns what may be kept of err: err itself where nothing in it can hold a
// secret. Else that is its text as Text returns it, those errors within it that hold no
// secret, for errors.Is and errors.As, and whether it is a net.Error and a timeout; it
// does not lead to err. What Error has returned stays as it is.
func Error(err error) (kept error) {
	switch err.(type) {
	case nil, *kind, *netKind:
		return err
	}
	defer func() {
		if recover() != nil { // a method of the error's, such as Error of a nil pointer
			kept = &kind{text: fmt.Sprintf("%T", err)}
		}
	}()
	k := kind{text: Text(err.Error())}
	nodes := 0
	if k.collect(err, &nodes) {
		return err // there is nothing to hide
	}
	var n net.Error
	if errors.As(err, &n) {
		return &netKind{kind: k, timeout: n.Timeout()}
	}
	return &k
}

// A kind is what is kept of an error.
type kind struct {
	text   string
	values []error // within it, that are given away
	same   []error // within it, that are compared with and no more
}

// A netKind is the kind of a net.Error.
type netKind struct {
	kind
	timeout bool
}

func (k *kind) Error() string { return k.text }

// GoString is the text too: no form of printing shows more.
func (k *kind) GoString() string { return k.text }

// Unwrap returns the errors within that are given away.
func (k *kind) Unwrap() []error { return k.values }

// Is reports whether target was within the error itself.
func (k *kind) Is(target error) bool {
	for _, e := range k.same {
		if reflect.TypeOf(e) == reflect.TypeOf(target) && e == target {
			return true
		}
	}
	return false
}

// Timeout and Temporary make it a net.Error.
func (k *netKind) Timeout() bool { return k.timeout }

func (k *netKind) Temporary() bool { return k.timeout }

// mostNodes bounds how many errors within one are looked at.
const mostNodes = 64

// collect keeps what may be kept of err and of all within it. It reports whether all
// of it is given away.
func (k *kind) collect(err error, nodes *int) (all bool) {
	if *nodes++; err == nil || *nodes > mostNodes {
		return false
	}
	all = true
	leaf := true
	before := len(k.values)
	switch w := err.(type) {
	case interface{ Unwrap() error }:
		if in := w.Unwrap(); in != nil {
			leaf, all = false, k.collect(in, nodes)
		}
	case interface{ Unwrap() []error }:
		for _, in := range w.Unwrap() {
			leaf = false
			all = k.collect(in, nodes) && all
		}
	}
	text := err.Error()
	clean := Text(text) == text
	switch t := reflect.TypeOf(err); {
	case all && clean && (plain(t) || known[packageOf(t)]):
		k.values = append(k.values[:before], err) // it leads to those within it
		return true
	case leaf && clean && t.Comparable():
		k.same = append(k.same, err)
	}
	return false
}

// known are the packages whose errors hold nothing but what their text shows. Those
// of net/url hold a URL, and a tls.RecordHeaderError its connection.
var known = map[string]bool{
	"context": true, "errors": true, "internal/poll": true, "io": true, "io/fs": true, "net": true, "os": true, "syscall": true,
}

func packageOf(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.PkgPath()
}

// plain reports whether values of a type are numbers, or structs of numbers.
func plain(t reflect.Type) bool {
	switch k := t.Kind(); {
	case k >= reflect.Bool && k <= reflect.Complex128 && k != reflect.Uintptr:
		return true
	case k == reflect.Struct:
		for i := range t.NumField() {
			if !plain(t.Field(i).Type) {
				return false
			}
		}
		return true
	}
	return false
}

// Text returns a text without the secrets of the URLs in it: of each the user
// information, the query and the fragment go. So do those of what looks like a URL
// without a scheme, and the values of what is named like a secret, as in
// "host=h password=p", {"token":"t"} or "Authorization: Bearer t". It is cut to
// MostText bytes.
func Text(s string) string {
	if strings.ContainsAny(s, "?@") || strings.Contains(s, "://") {
		s = scrub(s)
	}
	if strings.ContainsAny(s, "=:%") {
		s = named.ReplaceAllString(s, "$1…")
	}
	if len(s) > MostText {
		const more = "…"
		n := MostText - len(more)
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n] + more
	}
	return s
}

// named is a value with its name before it, which says that it is a secret.
var named = regexp.MustCompile(`(?i)` +
	`((?:[\w.-]*(?:passw|pwd|secret|token|api[-_]?key|access[-_]?key|credential|session|signature)[\w.-]*(?:\s*=\s*|%3d|\\?"\s*:\s*)` +
	`|authorization\\?"?\s*[:=]\s*\\?"?(?:\w+ )?))` +
	`(?:"(?:[^"\\]|\\.)*"|'[^']*'|[^\s&;,)}\]"']+)`)

// scrub is Text without the cut. It goes from one word to the next: what stands
// between spaces, or between two quotes of one kind when a URL follows the first.
func scrub(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		i := strings.IndexFunc(s, func(r rune) bool { return !isSpace(r) })
		if i < 0 {
			i = len(s)
		}
		b.WriteString(s[:i])
		if s = s[i:]; s == "" {
			break
		}
		n := wordLen(s)
		scrubWord(&b, s[:n])
		s = s[n:]
	}
	return b.String()
}

func isSpace(r rune) bool { return r == ' ' || r == '\n' || r == '\t' || r == '\r' }

func isQuote(c byte) bool { return c == '"' || c == '\'' || c == '`' }

// wordLen returns the length of the word that s begins with. A quoted one ends with
// its quote, which a backslash may escape; spaces do not end it.
func wordLen(s string) int {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case isSpace(rune(c)):
			return i
		case isQuote(c) && c != '\'':
			for j := i + 1; j < len(s); j++ {
				if s[j] == '\\' {
					j++
				} else if s[j] == c {
					return j + 1
				}
			}
		}
	}
	return len(s)
}

// scrubWord writes a word without its secrets.
func scrubWord(b *strings.Builder, w string) {
	// The quote that encloses a URL, and what follows it, stay.
	if i := strings.IndexAny(w, "\"`"); i >= 0 {
		q := w[i]
		if j := strings.LastIndexByte(w, q); j > i {
			scrubWord(b, w[:i])
			b.WriteByte(q)
			inner := w[i+1 : j]
			u := strings.Index(inner, "://")
			if first := strings.IndexAny(inner, "\"`"); first >= 0 && (u < 0 || first < u) {
				inner = strings.ReplaceAll(inner, `\"`, " ")
				inner = strings.ReplaceAll(inner, `"`, " ")
				inner = strings.ReplaceAll(inner, "`", " ")
				inner = scrub(inner)
			} else {
				inner = scrubURL(inner)
			}
			b.WriteString(inner)
			b.WriteByte(q)
			scrubWord(b, w[j+1:])
			return
		}
	}
	b.WriteString(scrubURL(w))
}

// scrubURL returns w, which may be a URL with something before and after it, without
// user information, query and fragment.
func scrubURL(w string) string {
	at := strings.Index(w, "://")
	// From the query on nothing is kept, but for the punctuation after it.
	rest := w
	if at >= 0 {
		rest = w[at+3:]
	}
	end := len(rest)
	if i := strings.IndexAny(rest, "?#"); i >= 0 && (at >= 0 || looksLikeQuery(rest[i:])) {
		// An '@' behind may end user information with a '?' or '#' in it.
		if j := strings.LastIndexByte(rest, '@'); at >= 0 && j > i && !strings.Contains(rest[:i], "/") && strings.Contains(rest[:i], ":") && !strings.Contains(rest[:i], "@") {
			rest = rest[j+1:]
			end = len(rest)
			if i := strings.IndexAny(rest, "?#"); i >= 0 {
				end = i
			}
		} else {
			end = i
		}
	}
	tail := ""
	if end < len(rest) {
		tail = trailing(rest[end:])
	}
	rest = rest[:end]
	if at >= 0 {
		return w[:at+3] + withoutUser(rest) + tail
	}
	return withoutUserBare(rest) + tail
}

// trailing returns the punctuation that a text goes on with after a URL.
func trailing(s string) string {
	return s[len(strings.TrimRight(s, ":,;)]}>'")):]
}

// looksLikeQuery reports whether s, which begins with '?' or '#', is a query: "?a=".
func looksLikeQuery(s string) bool {
	i := strings.IndexByte(s, '=')
	return s[0] == '?' && i > 1
}

// withoutUser returns what follows "://" without user information, also that of a
// URL within it. An '@' in the path is none, unless what stands before the path is no
// host and port: then the password has a slash in it.
func withoutUser(s string) string {
	authority := s
	if i := strings.IndexByte(s, '/'); i >= 0 {
		authority = s[:i]
	}
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		s = s[i+1:]
	} else if _, port, ok := strings.Cut(authority, ":"); ok && !isNumber(port) && authority[0] != '[' {
		if i := strings.LastIndexByte(s, '@'); i >= 0 {
			s = s[i+1:]
		}
	}
	if i := strings.Index(s, "://"); i >= 0 {
		return s[:i+3] + withoutUser(s[i+3:])
	}
	return s
}

// withoutUserBare is withoutUser where there is no scheme: "user:password@host".
func withoutUserBare(s string) string {
	i := strings.LastIndexByte(s, '@')
	if i <= 0 || i == len(s)-1 {
		return s
	}
	if user, _, ok := strings.Cut(s[:i], ":"); ok && user != "mailto" {
		return s[i+1:]
	}
	return s
}

func isNumber(s string) bool {
	return strings.Trim(s, "0123456789") == ""
}
