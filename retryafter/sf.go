package retryafter

import (
	"strings"
	"unicode/utf8"
)

// This file reads the part of Structured Fields (RFC 9651) that the RateLimit
// drafts use: lists of items and dictionaries of items, with parameters. Every
// kind of bare item is checked, as an unknown parameter may hold any; inner lists
// have no meaning in these fields and are malformed. Nothing is allocated.

// sfKind is the kind of a bare item.
type sfKind uint8

const (
	sfInteger sfKind = iota + 1
	sfDecimal
	sfString
	sfToken
	sfBytes
	sfBoolean
	sfDate
	sfDisplayString
)

// An sfItem is one bare item. Of strings and tokens text holds what stands in
// the field: a string's without its quotes, its escapes not resolved.
type sfItem struct {
	kind    sfKind
	integer int64
	text    string
	escaped bool
}

// sfScanner reads one field line. A line is read by itself: a string may not
// run over two lines (RFC 9651, section 4.2, allows to fail then).
type sfScanner struct {
	s string
	i int
}

func (p *sfScanner) end() bool { return p.i == len(p.s) }

func (p *sfScanner) next(c byte) bool {
	if p.i < len(p.s) && p.s[p.i] == c {
		p.i++
		return true
	}
	return false
}

func (p *sfScanner) spaces() {
	for p.next(' ') {
	}
}

// comma passes over what separates two members: optional whitespace, a comma,
// optional whitespace and not the end. done is true at the end of the line.
func (p *sfScanner) comma() (done, ok bool) {
	p.whitespace()
	if p.end() {
		return true, true
	}
	if !p.next(',') {
		return false, false
	}
	p.whitespace()
	return false, !p.end()
}

func (p *sfScanner) whitespace() {
	for p.next(' ') || p.next('\t') {
	}
}

func isLower(c byte) bool { return c-'a' <= 'z'-'a' }
func isAlpha(c byte) bool { return isLower(c | 0x20) }

// key reads a key: lower case, digits, and a few signs.
func (p *sfScanner) key() (string, bool) {
	start := p.i
	if p.end() || !isLower(p.s[p.i]) && p.s[p.i] != '*' {
		return "", false
	}
	for p.i < len(p.s) {
		if c := p.s[p.i]; !isLower(c) && !isDigit(c) && c != '_' && c != '-' && c != '.' && c != '*' {
			break
		}
		p.i++
	}
	return p.s[start:p.i], true
}

// param reads the next parameter. more is false when none follows.
func (p *sfScanner) param(v *sfItem) (key string, more, ok bool) {
	if !p.next(';') {
		return "", false, true
	}
	p.spaces()
	if key, ok = p.key(); !ok {
		return "", false, false
	}
	if !p.next('=') {
		*v = sfItem{kind: sfBoolean}
		return key, true, true
	}
	return key, true, p.item(v)
}

// item reads one bare item.
func (p *sfScanner) item(v *sfItem) bool {
	*v = sfItem{}
	if p.end() {
		return false
	}
	switch c := p.s[p.i]; {
	case c == '-' || isDigit(c):
		return p.number(v)
	case c == '"':
		return p.quoted(v)
	case c == '*' || isAlpha(c):
		start := p.i
		for p.i < len(p.s) && isTokenChar(p.s[p.i]) {
			p.i++
		}
		v.kind, v.text = sfToken, p.s[start:p.i]
		return true
	case c == ':':
		return p.bytes(v)
	case c == '?':
		v.kind = sfBoolean
		p.i++
		return p.next('0') || p.next('1')
	case c == '@':
		p.i++
		ok := p.number(v) && v.kind == sfInteger
		v.kind = sfDate
		return ok
	case c == '%':
		return p.display(v)
	}
	return false
}

// number reads an integer of at most 15 digits or a decimal of at most 12 and 3.
func (p *sfScanner) number(v *sfItem) bool {
	negative := p.next('-')
	start := p.i
	for p.i < len(p.s) && isDigit(p.s[p.i]) {
		if p.i-start == 15 {
			return false
		}
		v.integer = v.integer*10 + int64(p.s[p.i]-'0')
		p.i++
	}
	whole := p.i - start
	if whole == 0 {
		return false
	}
	if negative {
		v.integer = -v.integer
	}
	v.kind = sfInteger
	if !p.next('.') {
		return true
	}
	v.kind = sfDecimal
	start = p.i
	for p.i < len(p.s) && isDigit(p.s[p.i]) {
		p.i++
	}
	n := p.i - start
	return whole <= 12 && 1 <= n && n <= 3
}

func (p *sfScanner) quoted(v *sfItem) bool {
	v.kind = sfString
	p.i++
	for start := p.i; p.i < len(p.s); p.i++ {
		switch c := p.s[p.i]; {
		case c == '"':
			v.text = p.s[start:p.i]
			p.i++
			return true
		case c == '\\':
			v.escaped = true
			p.i++
			if p.end() || p.s[p.i] != '"' && p.s[p.i] != '\\' {
				return false
			}
		case c < 0x20 || c > 0x7e:
			return false
		}
	}
	return false
}

// bytes reads a byte sequence. Pad bits that are not zero are accepted, as in
// the draft's own example; so is missing padding.
func (p *sfScanner) bytes(v *sfItem) bool {
	v.kind = sfBytes
	p.i++
	n, pad := 0, 0
	for ; p.i < len(p.s); p.i++ {
		switch c := p.s[p.i]; {
		case c == ':':
			p.i++
			return n%4 != 1 && (pad == 0 || (n+pad)%4 == 0)
		case c == '=' && pad < 2:
			pad++
		case pad == 0 && (isAlpha(c) || isDigit(c) || c == '+' || c == '/'):
			n++
		default:
			return false
		}
	}
	return false
}

// display reads a display string: percent-encoded UTF-8 in quotes.
func (p *sfScanner) display(v *sfItem) bool {
	v.kind = sfDisplayString
	p.i++
	if !p.next('"') {
		return false
	}
	var buf [utf8.UTFMax]byte // of the rune that is being put together
	n := 0
	for p.i < len(p.s) {
		c := p.s[p.i]
		p.i++
		switch {
		case c == '"':
			return n == 0
		case c < 0x20 || c > 0x7e:
			return false
		case c == '%':
			hi, ok1 := p.hex()
			lo, ok2 := p.hex()
			if !ok1 || !ok2 {
				return false
			}
			c = hi<<4 | lo
		}
		if n == 0 && c < utf8.RuneSelf {
			continue
		}
		buf[n] = c
		n++
		if utf8.FullRune(buf[:n]) {
			if r, size := utf8.DecodeRune(buf[:n]); size != n || r == utf8.RuneError && n == 1 {
				return false
			}
			n = 0
		}
	}
	return false
}

func (p *sfScanner) hex() (byte, bool) {
	if p.end() {
		return 0, false
	}
	c := p.s[p.i]
	p.i++
	switch {
	case isDigit(c):
		return c - '0', true
	case c-'a' <= 'f'-'a':
		return c - 'a' + 10, true
	}
	return 0, false
}

// isTokenChar is tchar of RFC 9110, with ":" and "/".
func isTokenChar(c byte) bool {
	return isAlpha(c) || isDigit(c) || strings.IndexByte("!#$%&'*+-.^_`|~:/", c) >= 0
}

// unescape resolves the escapes of a string.
func (v *sfItem) unescape() string {
	if !v.escaped {
		return v.text
	}
	var b strings.Builder
	for i := 0; i < len(v.text); i++ {
		if v.text[i] == '\\' {
			i++
		}
		b.WriteByte(v.text[i])
	}
	return b.String()
}

// sfTooLong reports whether the lines of a field are together too long, or too
// many, to be looked at.
func sfTooLong(lines []string) bool {
	if len(lines) > maxLines {
		return true
	}
	n := 0
	for _, line := range lines {
		n += len(line)
	}
	return n > maxLong
}
