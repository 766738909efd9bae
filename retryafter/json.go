package retryafter

// A jsonScanner walks over JSON text and stops at every string and number that
// is a value, keeping the keys under which it stands. It accepts what RFC 8259
// accepts, needs no memory but its own, and works on text that was cut off: what
// came before the cut is found. Escapes in strings are not resolved.
type jsonScanner struct {
	s     string
	i     int
	depth int
	// Of each container around the place: whether it is an object, and the key in
	// it. Containers within maxDepth others end the scan.
	object [maxDepth]bool
	keys   [maxDepth]string
	state  jsonState

	text    string // the value: a string without quotes, a number, a word
	quoted  bool   // it is a string
	partial bool   // it was cut off
	failed  bool   // the text is no JSON
}

// maxDepth bounds how deep containers may lie in each other. Nothing we look for
// lies deeper than five.
const maxDepth = 16

type jsonState uint8

const (
	wantValue jsonState = iota
	wantFirst           // a value or the end of an array
	wantKey
	wantFirstKey // a key or the end of an object
	wantColon
	wantNext // a comma or the end of the container
	wantEnd
)

// next goes to the next value. It is false at the end, at the cut, and where the
// text is no JSON.
func (p *jsonScanner) next() bool {
	for {
		for p.i < len(p.s) && (p.s[p.i] == ' ' || p.s[p.i] == '\t' || p.s[p.i] == '\n' || p.s[p.i] == '\r') {
			p.i++
		}
		if p.i == len(p.s) {
			return false
		}
		c := p.s[p.i]
		switch p.state {
		case wantFirst, wantValue:
			switch {
			case c == ']' && p.state == wantFirst:
				p.close()
			case c == '{' || c == '[':
				if p.depth == maxDepth {
					return p.fail()
				}
				p.i++
				p.object[p.depth] = c == '{'
				p.keys[p.depth] = ""
				p.depth++
				p.state = wantFirst
				if c == '{' {
					p.state = wantFirstKey
				}
			case c == '"':
				p.after()
				return p.str()
			default:
				p.after()
				return p.scalar()
			}
		case wantKey, wantFirstKey:
			if c == '}' && p.state == wantFirstKey {
				p.close()
				continue
			}
			if c != '"' {
				return p.fail()
			}
			if !p.str() || p.partial {
				return false
			}
			p.keys[p.depth-1] = p.text
			p.state = wantColon
		case wantColon:
			if c != ':' {
				return p.fail()
			}
			p.i++
			p.state = wantValue
		case wantNext:
			object := p.object[p.depth-1]
			switch {
			case c == ',':
				p.i++
				p.state = wantValue
				if object {
					p.keys[p.depth-1] = ""
					p.state = wantKey
				}
			case c == '}' && object || c == ']' && !object:
				p.close()
			default:
				return p.fail()
			}
		case wantEnd:
			return p.fail()
		}
	}
}

// complete reports, after next was false, whether all of the text was JSON.
func (p *jsonScanner) complete() bool {
	return !p.failed && !p.partial && p.state == wantEnd && p.i == len(p.s)
}

// key returns the key of the n-th container around the value, from the outside.
// It is "" for an array, and where there is no such container.
func (p *jsonScanner) key(n int) string {
	if n < 0 || n >= p.depth {
		return ""
	}
	return p.keys[n]
}

func (p *jsonScanner) fail() bool {
	p.failed = true
	return false
}

// close leaves a container.
func (p *jsonScanner) close() {
	p.i++
	p.depth--
	p.after()
}

// after sets what may follow a value.
func (p *jsonScanner) after() {
	p.state = wantNext
	if p.depth == 0 {
		p.state = wantEnd
	}
}

// str reads a string.
func (p *jsonScanner) str() bool {
	p.i++
	p.quoted = true
	start := p.i
	for p.i < len(p.s) {
		c := p.s[p.i]
		switch {
		case c == '"':
			p.text = p.s[start:p.i]
			p.i++
			return true
		case c == '\\':
			p.i++
			if p.i == len(p.s) {
				break
			}
			switch p.s[p.i] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				for n := 0; n < 4 && p.i+1 < len(p.s); n++ {
					p.i++
					if c := p.s[p.i]; !isDigit(c) && (c|0x20 < 'a' || c|0x20 > 'f') {
						return p.fail()
					}
				}
			default:
				return p.fail()
			}
			p.i++
		case c < ' ':
			return p.fail()
		default:
			p.i++
		}
	}
	p.text, p.partial = p.s[start:], true
	return true
}

// scalar reads a number, true, false or null.
func (p *jsonScanner) scalar() bool {
	start := p.i
	for p.i < len(p.s) && (isAlpha(p.s[p.i]) || isDigit(p.s[p.i]) || p.s[p.i] == '-' || p.s[p.i] == '+' || p.s[p.i] == '.') {
		p.i++
	}
	p.text, p.quoted = p.s[start:p.i], false
	switch p.text {
	case "true", "false", "null":
		return true
	}
	if p.i == len(p.s) && p.depth > 0 {
		p.partial = true // perhaps it goes on behind the cut
		return true
	}
	if !jsonNumber(p.text) {
		return p.fail()
	}
	return true
}

// jsonNumber reports whether v is -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?
func jsonNumber(v string) bool {
	if v != "" && v[0] == '-' {
		v = v[1:]
	}
	n := countDigits(v)
	if n == 0 || n > 1 && v[0] == '0' {
		return false
	}
	v = v[n:]
	if v != "" && v[0] == '.' {
		if n = countDigits(v[1:]); n == 0 {
			return false
		}
		v = v[1+n:]
	}
	if v != "" && v[0]|0x20 == 'e' {
		v = v[1:]
		if v != "" && (v[0] == '+' || v[0] == '-') {
			v = v[1:]
		}
		n = countDigits(v)
		return n > 0 && n == len(v)
	}
	return v == ""
}

func countDigits(v string) int {
	n := 0
	for n < len(v) && isDigit(v[n]) {
		n++
	}
	return n
}
