package retryafter

import (
	"strings"
	"time"
)

// Parse reads one Retry-After value as defined by RFC 9110, section 10.2.3: a
// number of seconds, or an HTTP-date in any of its three forms, measured against
// now. The result is rounded up to a whole millisecond, saturates at the largest
// Duration, and is zero for a date in the past. Parse returns false for everything
// else: a sign, a fraction, an exponent, a unit, a list, a date in another form or
// zone, an empty value.
func Parse(value string, now time.Time) (time.Duration, bool) {
	if len(value) > maxValue {
		return 0, false
	}
	return parse(trim(value), now, instantOf(now), strictSeconds)
}

// A retryForm is how a vendor writes the number in Retry-After.
type retryForm uint8

const (
	strictSeconds  retryForm = iota // 1*DIGIT, as the RFC says
	decimalSeconds                  // "2.0": Shopify, and Discord at times
	milliseconds                    // 1*DIGIT: Discord's API up to version 6
)

// parse reads one member, with a date measured against ref.
func parse(v string, now time.Time, ref instant, form retryForm) (time.Duration, bool) {
	if v == "" {
		return 0, false
	}
	if !isDigit(v[0]) {
		sec, ok := httpDate(v, now)
		if !ok {
			return 0, false
		}
		return ref.until(instant{sec, 0}), true
	}
	switch form {
	case decimalSeconds:
		n, nano, ok := decimal(v)
		return span(n, nano, time.Second), ok
	case milliseconds:
		n, ok := digits(v)
		return span(n, 0, time.Millisecond), ok
	}
	n, ok := digits(v)
	return span(n, 0, time.Second), ok
}

// retryAfter reads all lines of a Retry-After field. Though it is a singleton,
// it is met twice, as two lines or joined to one (RFC 9110, section 5.3, has
// them mean the same): the longest valid member counts, so that no instruction
// is broken. bad is true when a member, or all there was, was malformed.
func (r *reading) retryAfter(lines []string, form retryForm) (d time.Duration, ok, bad bool) {
	if len(lines) > maxLines {
		lines, bad = lines[:maxLines], true
	}
	empty := true
	for _, line := range lines {
		if len(line) > maxValue {
			bad = true
			continue
		}
		line = trim(line)
		if decimalComma(line) {
			bad = true
			r.sig.Hint = max(r.sig.Hint, r.hintOfComma(line))
			continue
		}
		for line != "" {
			var member string
			member, line = cutMember(line)
			if member == "" {
				continue
			}
			empty = false
			var now time.Time
			var ref instant
			if !isDigit(member[0]) { // reads the clocks: only where a date may stand
				now, ref = r.now(), r.clock()
			}
			m, valid := parse(member, now, ref, form)
			if !valid {
				m, valid = r.fraction(member)
			}
			if valid && form != milliseconds && isDigit(member[0]) {
				m = r.epoch(member, m)
			}
			if valid {
				d, ok = max(d, m), true
			} else {
				bad = true
				r.sig.Hint = max(r.sig.Hint, r.hint(member))
			}
		}
	}
	return d, ok, bad || empty
}

// fraction reads seconds with a decimal point, in any form that is meant so:
// Sentry, Shopify and many a framework write Retry-After as a float.
func (r *reading) fraction(v string) (time.Duration, bool) {
	if strings.HasPrefix(v, ".") && len(v) > 1 {
		_, nano, rest, ok := leadingDecimal("0" + v)
		return span(0, nano, time.Second), ok && rest == ""
	}
	if n, ok := digits(strings.TrimSuffix(v, ".")); ok {
		return span(n, 0, time.Second), true
	}
	n, nano, ok := decimal(v)
	return span(n, nano, time.Second), ok
}

// epochNear is how far from the server's clock an epoch may be, in seconds.
const epochNear = 366 * 86400

// epoch reads a number of seconds, d, as an instant where it is a Unix time within
// a year of the server's clock: no server means so many seconds.
func (r *reading) epoch(v string, d time.Duration) time.Duration {
	if d < epochStart/2*time.Second {
		return d
	}
	n, nano, ok := decimal(v)
	if !ok {
		return d
	}
	at, clock := instant{int64(min(n, 1<<62)), int64(nano)}, r.clock()
	if at.sec < clock.sec-epochNear || at.sec > clock.sec+epochNear {
		return d
	}
	return clock.until(at)
}

// cutMember cuts the first member from a list. The comma within an HTTP-date
// separates nothing.
func cutMember(v string) (member, rest string) {
	i := strings.IndexByte(v, ',')
	if i >= 0 && (weekday(v[:i]) || longWeekday(v[:i])) {
		if j := strings.IndexByte(v[i+1:], ','); j >= 0 {
			i += 1 + j
		} else {
			i = -1
		}
	}
	if i < 0 {
		return trim(v), ""
	}
	return trim(v[:i]), trim(v[i+1:])
}

// decimalComma reports whether a comma in v is followed by more than space:
// "7,5" or "1,000" is a number in some languages, and no list that a proxy
// joined.
func decimalComma(v string) bool {
	for i := 0; i+1 < len(v); i++ {
		if v[i] == ',' && v[i+1] != ' ' && v[i+1] != '\t' {
			return true
		}
	}
	return false
}
