package retryafter

import (
	"math"
	"math/bits"
	"time"
)

// This file reads the numbers and lengths of time that stand in headers. Each
// reader takes the whole value, without surrounding space, or nothing: no sign,
// no exponent, no hex, no underscore, no digit that is not ASCII.

// maxValue bounds the length of a value that holds one number or date, and
// maxLong of one that holds a list. A longer value is malformed: it is not
// looked at, so that 10 MB cost nothing.
const (
	maxValue = 256
	maxLong  = 4096
	maxLines = 16 // of one header
)

// trim removes the optional whitespace of RFC 9110, section 5.6.3. Other space
// (NBSP, a line feed) is part of the value, and makes it malformed.
func trim(v string) string {
	for len(v) > 0 && (v[0] == ' ' || v[0] == '\t') {
		v = v[1:]
	}
	for len(v) > 0 && (v[len(v)-1] == ' ' || v[len(v)-1] == '\t') {
		v = v[:len(v)-1]
	}
	return v
}

func isDigit(c byte) bool { return c-'0' <= 9 }

// leadingDigits reads the digits at the start of v, saturating, and returns what
// follows them. It is false when there is none.
func leadingDigits(v string) (n uint64, rest string, ok bool) {
	i := 0
	for ; i < len(v) && isDigit(v[i]); i++ {
		d := uint64(v[i] - '0')
		if i >= 19 && n > (math.MaxUint64-d)/10 { // 19 digits always fit
			n = math.MaxUint64
			continue
		}
		n = n*10 + d
	}
	return n, v[i:], i > 0
}

// digits reads 1*DIGIT, saturating.
func digits(v string) (uint64, bool) {
	n, rest, ok := leadingDigits(v)
	if !ok || rest != "" {
		return 0, false
	}
	return n, true
}

// leadingDecimal reads 1*DIGIT ["." 1*DIGIT] at the start of v: n whole units and
// nano billionths of one more, rounded up, which may make a whole one.
func leadingDecimal(v string) (n, nano uint64, rest string, ok bool) {
	n, rest, ok = leadingDigits(v)
	if !ok || rest == "" || rest[0] != '.' {
		return n, 0, rest, ok
	}
	rest = rest[1:]
	if rest == "" || !isDigit(rest[0]) {
		return 0, 0, "", false
	}
	scale := uint64(1_000_000_000)
	more := false
	for rest != "" && isDigit(rest[0]) {
		if scale > 1 {
			scale /= 10
			nano += uint64(rest[0]-'0') * scale
		} else {
			more = more || rest[0] != '0'
		}
		rest = rest[1:]
	}
	if more {
		nano++
	}
	return n, nano, rest, true
}

// decimal reads 1*DIGIT ["." 1*DIGIT] and nothing else.
func decimal(v string) (n, nano uint64, ok bool) {
	n, nano, rest, ok := leadingDecimal(v)
	if !ok || rest != "" {
		return 0, 0, false
	}
	return n, nano, true
}

// span is n + nano/1e9 units as a Duration, saturating and rounded up to a
// whole millisecond.
func span(n, nano uint64, unit time.Duration) time.Duration {
	hi, d := bits.Mul64(n, uint64(unit))
	if hi != 0 || d > uint64(maxDuration) {
		return maxDuration
	}
	if nano > 0 {
		d += part(nano, unit)
		if d > uint64(maxDuration) {
			return maxDuration
		}
	}
	return roundUp(time.Duration(d))
}

// part is nano/1e9 of a unit, rounded up, for nano up to 2e9.
func part(nano uint64, unit time.Duration) uint64 {
	hi, lo := bits.Mul64(nano, uint64(unit))
	lo, carry := bits.Add64(lo, 999_999_999, 0)
	d, _ := bits.Div64(hi+carry, lo, 1_000_000_000)
	return d
}

// roundUp rounds up to a whole millisecond, and a negative duration to zero.
func roundUp(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	r := d % time.Millisecond
	if r == 0 {
		return d
	}
	if d > maxDuration-time.Millisecond {
		return maxDuration
	}
	return d - r + time.Millisecond
}

// goDuration reads a duration as Go's time.Duration prints it ("1h0m0.5s",
// "20ms"), without a sign, saturating and rounded up to a whole millisecond.
// time.ParseDuration would refuse what does not fit, and accept signs and ".5s".
func goDuration(v string) (time.Duration, bool) {
	if v == "" {
		return 0, false
	}
	var sum uint64
	for v != "" {
		n, nano, rest, ok := leadingDecimal(v)
		if !ok {
			return 0, false
		}
		unit, size := durationUnit(rest)
		if size == 0 {
			return 0, false
		}
		v = rest[size:]
		hi, d := bits.Mul64(n, uint64(unit))
		if hi != 0 || d > uint64(maxDuration) {
			sum = math.MaxInt64
			continue
		}
		d += part(nano, unit) // 2^63 and a few hours at most
		if sum += d; sum < d || sum > uint64(maxDuration) {
			sum = math.MaxInt64
		}
	}
	return roundUp(time.Duration(sum)), true
}

// durationUnit returns the unit at the start of v and the length of its name.
func durationUnit(v string) (time.Duration, int) {
	if len(v) >= 2 {
		switch v[:2] {
		case "ns":
			return time.Nanosecond, 2
		case "us":
			return time.Microsecond, 2
		case "ms":
			return time.Millisecond, 2
		}
		if len(v) >= 3 && (v[:3] == "µs" || v[:3] == "μs") {
			return time.Microsecond, 3
		}
	}
	if v != "" {
		switch v[0] {
		case 's':
			return time.Second, 1
		case 'm':
			return time.Minute, 1
		case 'h':
			return time.Hour, 1
		}
	}
	return 0, 0
}
