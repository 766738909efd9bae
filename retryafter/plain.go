package retryafter

import (
	"math"
	"strings"
	"time"
)

// plain reads the headers of a row whose values are plain numbers and times: one
// limit for each label in the run.
func (r *reading) plain(run []hit) {
	for i := 0; i < len(run); {
		j := i + 1
		for j < len(run) && run[j].label() == run[i].label() {
			j++
		}
		r.limit(run[i:j])
		i = j
	}
}

// limit reads the headers that speak of one limit.
func (r *reading) limit(run []hit) {
	var l LimitSignal
	var used int64 = -1
	var window time.Duration // as the names of the headers state it
	var otherUnit bool
	var list []string // of policies behind the limit
	for i := range run {
		h := &run[i]
		f := h.f
		switch f.role {
		case isLimit:
			if !l.HasLimit {
				var isList bool
				if l.Limit, _, isList, l.HasLimit = r.count(h); isList {
					list = h.vals
				}
			}
		case isRemaining:
			if l.HasRemaining {
				break
			}
			n, negative, _, ok := r.count(h)
			if negative {
				// Overdrawn on a refusal; on a success -1 is a sentinel for "unknown".
				n, ok = 0, r.refused
			}
			l.Remaining, l.HasRemaining = n, ok
		case isUsed:
			if n, _, _, ok := r.count(h); ok {
				used = n
			}
		case isReset:
			if !l.HasReset {
				l.Reset, l.Coarse, l.HasReset = r.time(h)
				if l.HasReset {
					l.Resets = f.resets
				}
			}
		case isWindow:
			if !l.HasWindow {
				l.Window, _, l.HasWindow = r.time(h)
				if l.HasWindow && l.Window == 0 {
					l.HasWindow = false
					r.sig.malformed(h.key)
				}
			}
		case isName, isGlobal:
			if l.Name == "" {
				l.Name = r.name(h)
			}
		default:
			r.say(h)
		}
		if f.window != 0 {
			window = f.window
		}
		otherUnit = otherUnit || f.otherUnit
	}
	if used >= 0 && !l.HasLimit && l.HasRemaining && l.Remaining <= math.MaxInt64-used {
		l.Limit, l.HasLimit = used+l.Remaining, true // Reddit
	}
	if l == (LimitSignal{}) {
		return
	}
	if label := run[0].label(); label != "" {
		word := wordOf(label)
		if l.Name == "" {
			l.Name = word.name
		}
		if window == 0 {
			window = word.window
		}
		otherUnit = otherUnit || word.otherUnit
	}
	if window != 0 && !l.HasWindow {
		l.Window, l.HasWindow = window, true
	}
	l.OtherUnit = otherUnit
	first := int(r.sig.n)
	r.add(&l, run[0].f.row.order)
	if list != nil && !r.policies(list, first) {
		r.sig.malformed(run[0].key)
	}
}

// say reads a header that says something about the response as a whole.
func (r *reading) say(h *hit) {
	switch h.f.role {
	case isAsk:
		if d, _, ok := r.time(h); ok {
			r.ask(h.f.rank, d, h.f.row)
		}
	case isRetryAfter:
		d, ok, bad := r.retryAfter(h.vals, r.conv.retry)
		if ok {
			r.ask(h.f.rank, d, h.f.row)
		}
		if bad {
			r.sig.malformed(h.key)
		}
	case isRefusal:
		if v, ok := r.one(h); ok && strings.EqualFold(v, "true") && r.status >= 400 {
			r.sig.Throttled = true
		}
	case isErrorCode:
		if v, ok := r.one(h); ok && r.status >= 400 {
			v, _, _ = strings.Cut(v, ":") // where it is documented may follow
			r.sig.Throttled = isThrottle(v[strings.LastIndexByte(v, '#')+1:]) || r.sig.Throttled
		}
	case isShouldRetry:
		if v, ok := r.one(h); ok && r.status >= 400 {
			r.sig.NoRetry = r.sig.NoRetry || strings.EqualFold(v, "false")
			r.sig.ShouldRetry = r.sig.ShouldRetry || strings.EqualFold(v, "true") // Python's is "True"
		}
	}
}

// one returns the single value of a header, trimmed. A header that comes twice
// has one only if both say the same.
func (r *reading) one(h *hit) (string, bool) {
	v := h.vals[0]
	ok := len(v) <= maxValue && len(h.vals) <= maxLines
	if ok {
		v = trim(v)
		for _, other := range h.vals[1:] {
			ok = ok && len(other) <= maxValue && trim(other) == v
		}
	}
	if !ok || v == "" {
		r.sig.malformed(h.key)
		return "", false
	}
	return v, true
}

// name reads the label of the limit.
func (r *reading) name(h *hit) string {
	v, ok := r.one(h)
	if !ok {
		return ""
	}
	if h.f.role == isGlobal {
		if !strings.EqualFold(v, "true") {
			return ""
		}
		return "global"
	}
	if !printable(v) {
		r.sig.malformed(h.key)
		return ""
	}
	return v
}

// printable reports whether v may be shown as a name.
func printable(v string) bool {
	for i := 0; i < len(v); i++ {
		if v[i] < ' ' || v[i] == 0x7f {
			return false
		}
	}
	return len(v) <= maxValue
}

// short reads the usual value, which every form of a number means alike: one
// line of at most 15 digits.
func (h *hit) short() (n int64, ok bool) {
	if len(h.vals) != 1 {
		return 0, false
	}
	v := h.vals[0]
	if len(v) > 15 {
		return 0, false
	}
	for i := 0; i < len(v); i++ {
		d := v[i] - '0'
		if d > 9 {
			return 0, false
		}
		n = n*10 + int64(d)
	}
	return n, v != ""
}

// count reads a number of units. negative is true for a number below zero, whose
// size does not matter; only what is left may be. list is true when more stands
// behind the number.
func (r *reading) count(h *hit) (n int64, negative, list, ok bool) {
	if n, ok = h.short(); ok {
		return n, false, false, true
	}
	if h.f.form == countList || h.f.form == countListAny {
		return r.countList(h)
	}
	v, ok := r.one(h)
	if !ok {
		return 0, false, false, false
	}
	if n, negative, ok = countOf(v, h.f.form); !ok {
		r.sig.malformed(h.key)
	}
	return positive(n, negative, ok, h)
}

// positive makes a limit below zero, which is a sentinel for "none" or "unknown",
// none at all.
func positive(n int64, negative, ok bool, h *hit) (int64, bool, bool, bool) {
	if !ok || negative && h.f.role != isRemaining {
		return 0, false, false, false
	}
	return n, negative, false, true
}

// countOf reads one number.
func countOf(v string, f form) (n int64, negative, ok bool) {
	if v != "" && v[0] == '-' {
		v, negative = v[1:], true
	}
	var whole, nano uint64
	if f == countDecimal || f == countListAny {
		whole, nano, ok = decimal(v)
	} else {
		whole, ok = digits(v)
	}
	if !ok || whole > math.MaxInt64 {
		return 0, false, false
	}
	return int64(whole), negative && whole|nano != 0, true
}

// countList reads the first member of a list of numbers with parameters: the
// limit that expires next, or what is left of it. A list without parameters has
// but one limit; "1,000" is no list but a number with a separator.
func (r *reading) countList(h *hit) (n int64, negative, list, ok bool) {
	if len(h.vals) == 1 && len(h.vals[0]) <= maxValue {
		v := trim(h.vals[0])
		if n, negative, ok = countOf(v, h.f.form); ok {
			// A structured field has at most 15 digits; where none was ever promised,
			// everything that fits is a number.
			if ok = h.f.form == countListAny || len(v) <= 15; !ok {
				r.sig.malformed(h.key)
			}
			return positive(n, negative, ok, h)
		}
	}
	var first, more member
	members := memberList{lines: h.vals}
	ok = !sfTooLong(h.vals) && !thousands(h.vals) &&
		members.next(&first) && first.kind == sfInteger && first.integer >= 0
	if ok && h.f.role == isRemaining {
		ok = !members.next(&more) && !members.bad // Docker Hub: 20;w=21600
	}
	if !ok {
		r.sig.malformed(h.key)
		return 0, false, false, false
	}
	return first.integer, false, true, true
}

// thousands reports whether the value is a number such as 1,000 or 12,000,000.
func thousands(lines []string) bool {
	if len(lines) != 1 || len(lines[0]) > maxValue {
		return false
	}
	v := trim(lines[0])
	_, rest, ok := leadingDigits(v)
	if !ok || rest == "" || len(v)-len(rest) > 3 {
		return false
	}
	for rest != "" {
		if len(rest) < 4 || rest[0] != ',' {
			return false
		}
		if _, ok := digits(rest[1:4]); !ok {
			return false
		}
		rest = rest[4:]
	}
	return true
}

// time reads a length of time, or an instant as the time until it. It is coarse if it
// is given in whole seconds.
func (r *reading) time(h *hit) (d time.Duration, coarse, ok bool) {
	if f := h.f.form; f == byMagnitude || f == byMagnitudeF {
		if n, ok := h.short(); ok {
			return r.bySize(uint64(n), 0, r.conv.small)
		}
	}
	v, ok := r.one(h)
	if !ok {
		return 0, false, false
	}
	if d, coarse, ok = r.timeOf(v, h.f.form); !ok {
		r.sig.malformed(h.key)
	}
	return d, coarse && ok && pointless(v), ok
}

// pointless reports whether no fraction of a second is written: what has one is exact,
// even if it is zero.
func pointless(v string) bool { return strings.IndexByte(v, '.') < 0 }

func (r *reading) timeOf(v string, f form) (d time.Duration, coarse, ok bool) {
	switch f {
	case byMagnitude, byMagnitudeF:
		return r.magnitude(v, f == byMagnitudeF)
	case durationOr:
		if d, ok := goDuration(v); ok {
			return d, false, true
		}
		return r.magnitude(v, true)
	case dateOnly:
		return r.date(v)
	case duration:
		d, ok = goDuration(v)
		return d, false, ok
	case durationOrMillis:
		if d, ok := goDuration(v); ok {
			return d, false, true
		}
		if r.h["X-Rate-Limit-Remaining"] == nil && r.h["X-Rate-Limit-Reset"] == nil {
			return 0, false, false // Crossref always writes the unit; bare milliseconds are PDND's
		}
		f = millis
	}
	unit := time.Second
	if f == millis || f == millisF {
		unit = time.Millisecond
	}
	coarse = unit == time.Second
	if f == secondsF || f == millisF {
		n, nano, ok := decimal(v)
		return span(n, nano, unit), coarse, ok
	}
	n, ok := digits(v)
	return span(n, 0, unit), coarse, ok
}

// date reads an instant in any of the forms in which it is written out.
func (r *reading) date(v string) (d time.Duration, coarse, ok bool) {
	at, ok := rfc3339(v)
	if !ok {
		at.sec, ok = r.httpDate(v)
		at.nano = 0
	}
	if !ok {
		at, ok = jsDate(v)
	}
	if !ok {
		return 0, false, false
	}
	return r.clock().until(at), true, true
}

// Numbers from here on are epochs: no wait is 30 years long.
const epochStart = 1_000_000_000

// magnitude reads a reset in a header whose unit differs from vendor to vendor:
// a number below 10^9 is seconds from now, below 10^12 an epoch in seconds, below
// 10^15 in milliseconds, below 10^18 in microseconds. What is no number is a
// date.
//
// Near the turn of the millennium epochs are below 10^9, and the clock of a
// testing/synctest bubble starts there: the borders then lie a year before the
// server's clock.
func (r *reading) magnitude(v string, fraction bool) (d time.Duration, coarse, ok bool) {
	n, nano, ok := decimal(v)
	if !ok {
		return r.date(v)
	}
	if !fraction && !pointless(v) {
		return 0, false, false
	}
	return r.bySize(n, nano, r.conv.small)
}

// bySize reads the number that magnitude has found.
func (c *clocks) bySize(n, nano uint64, small smallNumber) (d time.Duration, coarse, ok bool) {
	start := uint64(epochStart)
	if n >= epochStart/2 {
		if t := c.clock().sec - 366*86400; t >= epochStart/2 && t < epochStart {
			start = uint64(t)
		}
	}
	if small == smallMillis && n < start*100 {
		return span(n, nano, time.Millisecond), false, true // three years: seconds would be an epoch
	}
	if n < start {
		if small == smallPast {
			return 0, true, true
		}
		return span(n, nano, time.Second), true, true
	}
	var at instant
	switch {
	case n < start*1_000:
		at, coarse = instant{int64(n), int64(nano)}, true
	case n < start*1_000_000:
		at = instant{int64(n / 1_000), int64(n%1_000*1_000_000 + (nano+999)/1_000)}
	case n < start*1_000_000_000:
		at = instant{int64(n / 1_000_000), int64(n%1_000_000*1_000 + (nano+999_999)/1_000_000)}
	default:
		return 0, false, false
	}
	return c.clock().until(at), coarse, true
}
