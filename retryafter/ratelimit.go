package retryafter

import "time"

// rateLimitRow reads what the IETF drafts "RateLimit header fields for HTTP"
// called their fields over the years:
//
//	RateLimit: "default";r=50;t=30                 since 08: a list of named policies
//	RateLimit-Policy: "default";q=100;w=60
//	RateLimit: limit=100, remaining=50, reset=5    07: a dictionary
//	RateLimit-Policy: 100;w=10
//	RateLimit-Limit: 100, 100;w=60                 03 to 06: a field each, in 05 and
//	RateLimit-Remaining: 50                        before with the policies in Limit
//	RateLimit-Reset: 50
//
// Sources: draft-ietf-httpapi-ratelimit-headers, versions 03 to 10. Vendors put an
// epoch or a date into RateLimit-Reset, and a name (GitLab) beside the trio.
var rateLimitRow = builtin{
	name: "ratelimit",
	odd:  oddRateLimit,
	fields: []field{
		{name: "Ratelimit", role: isStructured},
		{name: "Ratelimit-Policy", role: isPolicy},
		{name: "Ratelimit-Limit", role: isLimit, form: countList},
		{name: "Ratelimit-Remaining", role: isRemaining, form: countList},
		{name: "Ratelimit-Reset", role: isReset, form: byMagnitude},
		{name: "Ratelimit-Resettime", role: isReset, form: dateOnly},
		{name: "Ratelimit-Name", role: isName},
		{name: "Ratelimit-Observed", role: isMark, marks: markGitLab},
	},
}

// policiesOnly stands in place of a row for the limits that are announced as
// policies only, without a state. They are never merged with others.
const policiesOnly = 255

// rateLimit reads all fields of the row.
func (r *reading) rateLimit(run []hit) {
	var structured, policy *hit
	rest := run
	for len(rest) > 0 && rest[0].f.role >= isStructured {
		if rest[0].f.role == isStructured {
			structured = &rest[0]
		} else {
			policy = &rest[0]
		}
		rest = rest[1:]
	}
	first := int(r.sig.n)
	// A stored response describes another client's request: the draft has RateLimit
	// ignored when Age is positive. What a policy promises holds all the same.
	if structured != nil && !r.stored() {
		if !r.structured(structured.vals) {
			r.sig.malformed("Ratelimit")
		}
	}
	r.plain(rest)
	if policy != nil {
		if !r.policies(policy.vals, first) {
			r.sig.malformed("Ratelimit-Policy")
		}
	}
}

// structured reads RateLimit in its list or its dictionary form, all or nothing.
func (r *reading) structured(lines []string) bool {
	if sfTooLong(lines) {
		return false
	}
	list := false
	for _, line := range lines {
		if line = trim(line); line != "" {
			list = line[0] == '"'
			break
		}
	}
	if !list {
		return r.dictionary(lines)
	}
	var m member
	check := memberList{lines: lines}
	for check.next(&m) {
		if m.kind != sfString || m.has&hasR == 0 || m.bad&(hasR|hasT) != 0 {
			return false
		}
	}
	if check.bad {
		return false
	}
	for read := (memberList{lines: lines}); read.next(&m); {
		r.add(&LimitSignal{
			Name:         m.text(),
			Remaining:    m.r,
			HasRemaining: true,
			Reset:        span(uint64(m.t), 0, time.Second),
			HasReset:     m.has&hasT != 0,
			Coarse:       m.has&hasT != 0,
		}, rateLimitRow.order)
	}
	return true
}

// dictionary reads the form of draft 07: limit, remaining and reset are integers
// that are not negative, any other key is passed over, the last of a repeated
// key counts.
func (r *reading) dictionary(lines []string) bool {
	var l LimitSignal
	var badLimit, badRemaining, badReset bool
	for _, line := range lines {
		p := sfScanner{s: trim(line)}
		for done := p.end(); !done; {
			key, ok := p.key()
			if !ok {
				return false
			}
			v := sfItem{kind: sfBoolean}
			if p.next('=') && !p.item(&v) {
				return false
			}
			var ignored sfItem
			for more := true; more; {
				if _, more, ok = p.param(&ignored); !ok {
					return false
				}
			}
			whole := v.kind == sfInteger && v.integer >= 0
			switch key {
			case "limit":
				l.Limit, l.HasLimit, badLimit = v.integer, true, !whole
			case "remaining":
				l.Remaining, l.HasRemaining, badRemaining = v.integer, true, !whole
			case "reset":
				l.Reset, l.HasReset, badReset = span(uint64(v.integer), 0, time.Second), true, !whole
				l.Coarse = true
			}
			if done, ok = p.comma(); !ok {
				return false
			}
		}
	}
	if badLimit || badRemaining || badReset {
		return false
	}
	if l == (LimitSignal{}) {
		return allEmpty(lines) // an empty field says nothing, and is not malformed
	}
	r.add(&l, rateLimitRow.order)
	return true
}

func allEmpty(lines []string) bool {
	for _, line := range lines {
		if trim(line) != "" {
			return false
		}
	}
	return true
}

// policies reads the members of a list of policies: strings with q and w, or
// integers with w. Each fills the limit and the window of the limit it speaks of
// (of those from index first on), or is a limit of its own. A member that is no policy is ignored alone.
func (r *reading) policies(lines []string, first int) (ok bool) {
	if sfTooLong(lines) {
		return false
	}
	var m member
	members := 0
	check := memberList{lines: lines}
	for check.next(&m) {
		members++
	}
	if check.bad {
		return false
	}
	ok = true
	end := int(r.sig.n)
	read := memberList{lines: lines}
	for read.next(&m) {
		if !m.isPolicy() {
			ok = false
			continue
		}
		p := LimitSignal{
			Name:      m.text(),
			Limit:     m.quota(),
			HasLimit:  true,
			Window:    span(uint64(m.w), 0, time.Second),
			HasWindow: m.has&hasW != 0,
			OtherUnit: m.qu != "" && m.qu != "requests",
		}
		if !r.attach(&p, first, end, members == 1) && (p.HasWindow || p.Name != "") {
			r.add(&p, policiesOnly)
		}
	}
	return ok
}

// attach fills in what policy p says about the limits from first to end. only is
// true when p is the only policy.
func (r *reading) attach(p *LimitSignal, first, end int, only bool) bool {
	found := false
	for i := first; i < end; i++ {
		l := &r.sig.limits[i]
		if r.rows[i] == policiesOnly {
			continue
		}
		named := p.Name != "" && l.Name == p.Name
		numbered := l.HasLimit && l.Limit == p.Limit && (l.Name == "" || p.Name == "")
		if !named && !numbered && !(only && !l.HasLimit && l.Name == p.Name) {
			continue
		}
		found = true
		if !l.HasLimit {
			l.Limit, l.HasLimit = p.Limit, true
		}
		if !l.HasWindow && p.HasWindow {
			l.Window, l.HasWindow = p.Window, true
		}
		if l.Name == "" {
			l.Name = p.Name
		}
		l.OtherUnit = l.OtherUnit || p.OtherUnit
	}
	return found
}

// What a member says in its parameters, as bits of has and bad.
const (
	hasR = 1 << iota
	hasT
	hasQ
	hasW
)

// A member is one member of a list, with the parameters that are known here.
// has says which were there, bad which of them were no integer from 0 on.
type member struct {
	sfItem
	r, t, q, w int64
	has, bad   uint8
	qu         string
	label      sfItem // Envoy names a policy so: 10;w=1;name="foo"
}

// text is the name of the policy.
func (m *member) text() string {
	if m.kind == sfString {
		return m.unescape()
	}
	return m.label.unescape()
}

// isPolicy is true for "name";q=100;w=60, where w may be missing but not zero,
// and for 100;w=60.
func (m *member) isPolicy() bool {
	if m.has&hasW != 0 && (m.bad&hasW != 0 || m.w == 0) {
		return false
	}
	if m.kind == sfString {
		return m.has&hasQ != 0 && m.bad&hasQ == 0
	}
	return m.kind == sfInteger && m.integer >= 0
}

func (m *member) quota() int64 {
	if m.kind == sfString {
		return m.q
	}
	return m.integer
}

// A memberList walks over the members of a list that stands in some lines. An
// empty line holds none.
type memberList struct {
	lines []string
	p     sfScanner
	bad   bool // why next was false
}

// next reads the next member into m. It is false at the end and when the field
// is malformed.
func (l *memberList) next(m *member) bool {
	for l.p.end() {
		if len(l.lines) == 0 {
			return false
		}
		l.p = sfScanner{s: trim(l.lines[0])}
		l.lines = l.lines[1:]
	}
	*m = member{}
	l.bad = !l.read(m)
	return !l.bad
}

func (l *memberList) read(m *member) bool {
	if !l.p.item(&m.sfItem) {
		return false
	}
	for {
		var v sfItem
		key, more, ok := l.p.param(&v)
		if !ok {
			return false
		}
		if !more {
			break
		}
		switch key {
		case "r":
			m.number(&m.r, hasR, &v)
		case "t":
			m.number(&m.t, hasT, &v)
		case "q":
			m.number(&m.q, hasQ, &v)
		case "w":
			m.number(&m.w, hasW, &v)
		case "qu":
			m.qu = v.text
		case "name":
			m.label = sfItem{}
			if v.kind == sfString {
				m.label = v
			}
		}
	}
	_, ok := l.p.comma()
	return ok
}

// number takes the value of a parameter; the last of a repeated one counts.
func (m *member) number(to *int64, bit uint8, v *sfItem) {
	m.has |= bit
	m.bad &^= bit
	if v.kind != sfInteger || v.integer < 0 {
		m.bad |= bit
		v.integer = 0
	}
	*to = v.integer
}
