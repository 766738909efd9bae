package retryafter

import (
	"strings"
	"time"
)

// This file reads what a malformed Retry-After most likely means. It is apart from
// parse.go, since a hint is no reading: HasRetryAfter stays false, and only
// [Signal.Wait] uses it.

// hint returns how long a malformed member of a Retry-After field most likely asks
// to wait: the longest of the lengths that it may sensibly mean, zero for none.
// Only for what looks like a date may it allocate.
func (r *reading) hint(v string) time.Duration {
	if !strings.ContainsAny(v, "0123456789") {
		return 0
	}
	v = strings.TrimSpace(v) // NBSP and line feeds, too
	v, _, _ = strings.Cut(v, ";")
	if n := len(v); n >= 2 && (v[0] == '"' || v[0] == '\'') && v[n-1] == v[0] {
		v = v[1 : n-1]
	}
	v = strings.TrimSpace(v)
	if v == "" {
		return 0
	}
	if n, ok := digits(v); ok {
		return r.epoch(v, span(n, 0, time.Second))
	}
	if d, ok := r.fraction(v); ok {
		return d
	}
	if d, ok := withUnit(strings.ToLower(v)); ok {
		return d
	}
	d, _, ok := r.date(v)
	if !ok && strings.Count(v, ":") == 2 {
		d, _ = r.looseDate(v)
	}
	return d
}

// hintOfComma is hint for a line with a comma that no space follows: the fraction
// "7,5", the number "1,000", or a list without spaces.
func (r *reading) hintOfComma(line string) (d time.Duration) {
	whole := strings.ReplaceAll(line, ",", "")
	if thousands([]string{line}) {
		d = r.hint(whole)
	}
	if strings.Count(line, ",") == 1 {
		d = max(d, r.hint(strings.Replace(line, ",", ".", 1)))
	}
	for member := range strings.SplitSeq(line, ",") {
		d = max(d, r.hint(member))
	}
	return d
}

// withUnit reads numbers with a unit behind each, in lower case, such as "60s",
// "60 seconds", "1.5 min" and "1 minute 30 seconds", or Go's "1m30s".
func withUnit(v string) (sum time.Duration, ok bool) {
	for rest := v; rest != ""; {
		n, nano, after, ok := leadingDecimal(rest)
		if !ok {
			return 0, false
		}
		after = trim(after)
		end := strings.IndexAny(after, " \t0123456789")
		if end < 0 {
			end = len(after)
		}
		var unit time.Duration
		switch after[:end] {
		case "ms", "msec", "msecs", "millis", "millisecond", "milliseconds":
			unit = time.Millisecond
		case "s", "sec", "secs", "second", "seconds":
			unit = time.Second
		case "m", "min", "mins", "minute", "minutes":
			unit = minute
		case "h", "hr", "hrs", "hour", "hours":
			unit = hour
		case "d", "day", "days":
			unit = day
		default:
			return goDuration(v)
		}
		d := span(n, nano, unit)
		sum += min(d, maxDuration-sum)
		rest = trim(after[end:])
	}
	return sum, v != ""
}

// looseDates are dates that RFC 9110 does not allow and whose zone is certain.
var looseDates = [...]string{
	"_2 Jan 2006 15:04:05 -0700",
	"_2 Jan 2006 15:04:05",
	"_2-Jan-2006 15:04:05",
	"Mon Jan _2 15:04:05 2006",
	"2006-01-02 15:04:05",
	"2006-01-02T15:04:05",
}

// looseDate reads a date with other spaces, case or zone than an HTTP-date has.
// Without a zone it is in UTC, which is what every HTTP-date is in.
func (r *reading) looseDate(v string) (time.Duration, bool) {
	if i := strings.IndexByte(v, ','); i >= 0 {
		v = v[i+1:] // the day of the week
	}
	v = strings.Join(strings.Fields(v), " ")
	if n := len(v); n > 4 && (strings.EqualFold(v[n-4:], " gmt") || strings.EqualFold(v[n-4:], " utc")) {
		v = v[:n-4]
	}
	for _, layout := range looseDates {
		if t, err := time.Parse(layout, v); err == nil {
			return r.clock().until(instantOf(t)), true
		}
	}
	return 0, false
}
