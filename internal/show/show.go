// Package show formats errors and times for readers other than the caller they belong to:
// in logs, events, pages, and errors of other requests.
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

// Duration rounds d for readers: to milliseconds, and below 10 ms to microseconds. A
// duration shorter than 1 µs stays.
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

// Error returns the part of err that may be kept. That is err itself if nothing in it can
// hold a secret. Otherwise it is a new error, which does not lead to err: it has the text
// of err as Text returns it, the errors within err that hold no secret, for errors.Is and
// errors.As, and whether err is a net.Error and a timeout. A result of Error is returned
// unchanged.
func Error(err error) (kept error) {
	switch err.(type) {
	case nil, *kind, *netKind:
		return err
	}
	defer func() {
		if recover() != nil { // a method of err panics, such as Error of a nil pointer
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

// A kind is the part of an error that is kept.
type kind struct {
	text   string
	values []error // errors within it that Unwrap returns
	same   []error // errors within it that Is compares with only
}

// A netKind is the kind of a net.Error.
type netKind struct {
	kind
	timeout bool
}

func (k *kind) Error() string { return k.text }

// GoString returns the text, too, so that no form of printing shows more.
func (k *kind) GoString() string { return k.text }

// Unwrap returns the errors within that hold no secret.
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

// mostNodes bounds how many errors within one error are inspected.
const mostNodes = 64

// collect keeps what may be kept of err and of all errors within it. It reports whether
// that is all of them.
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

// known are the packages whose errors hold nothing beyond their text. Errors of net/url
// hold a URL, and a tls.RecordHeaderError its connection.
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

// Text returns a text without the secrets in it. It removes the user information, the
// query and the fragment of URLs, also of texts that look like a URL without a scheme, and
// values with the name of a secret, as in "host=h password=p", {"token":"t"} or
// "Authorization: Bearer t". It cuts the text to MostText bytes.
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

// named matches a value after a name that marks it as a secret.
var named = regexp.MustCompile(`(?i)` +
	`((?:[\w.-]*(?:passw|pwd|secret|token|api[-_]?key|access[-_]?key|credential|session|signature)[\w.-]*(?:\s*=\s*|%3d|\\?"\s*:\s*)` +
	`|authorization\\?"?\s*[:=]\s*\\?"?(?:\w+ )?))` +
	`(?:"(?:[^"\\]|\\.)*"|'[^']*'|[^\s&;,)}\]"']+)`)

// scrub is Text without the cut. It goes word by word: a word stands between spaces, or
// between two quotes of one kind if a URL follows the first.
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
	// From the query on, only the punctuation after it is kept.
	rest := w
	if at >= 0 {
		rest = w[at+3:]
	}
	end := len(rest)
	if i := strings.IndexAny(rest, "?#"); i >= 0 && (at >= 0 || looksLikeQuery(rest[i:])) {
		// A later '@' may end user information that contains a '?' or '#'.
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

// withoutUser removes user information from the text after "://", also that of a URL
// within it. An '@' in the path does not end user information, unless the text before the
// path is not a host and port: then the password contains a slash.
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
