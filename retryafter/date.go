package retryafter

import (
	"math"
	"time"
)

// An instant is a time as seconds since 1970 and nanoseconds within the second.
type instant struct {
	sec  int64
	nano int64
}

func instantOf(t time.Time) instant { return instant{t.Unix(), int64(t.Nanosecond())} }

// until is the time from a to b, rounded up to a whole millisecond, zero when b
// is past. The seconds of both are far from the ends of int64.
func (a instant) until(b instant) time.Duration {
	sec := b.sec - a.sec
	if sec >= math.MaxInt64/1_000_000_000 {
		return maxDuration
	}
	if sec < -1 {
		return 0
	}
	return roundUp(time.Duration(sec*1_000_000_000 + b.nano - a.nano))
}

// httpDate reads an HTTP-date of RFC 9110, section 5.6.7, in its three forms:
//
//	Sun, 06 Nov 1994 08:49:37 GMT    IMF-fixdate
//	Sunday, 06-Nov-94 08:49:37 GMT   RFC 850
//	Sun Nov  6 08:49:37 1994         asctime
//
// It is strict where http.ParseTime is not: case, single spaces, the literal
// GMT, two-digit days. It accepts the leap second, which that refuses, and does
// not check that the weekday fits the date, which the RFC does not require. now tells
// in which century a two-digit year falls, and is not used otherwise.
func httpDate(v string, now time.Time) (int64, bool) {
	switch {
	case len(v) == 29 && v[3] == ',':
		if !weekday(v[:3]) || v[4] != ' ' || v[7] != ' ' || v[11] != ' ' || v[16] != ' ' || v[25:] != " GMT" {
			return 0, false
		}
		year, ok := number(v[12:16])
		return civil(year, month(v[8:11]), v[5:7], v[17:25], ok)
	case len(v) == 24 && v[3] == ' ':
		day := v[8:10]
		if day[0] == ' ' {
			day = day[1:]
		}
		if !weekday(v[:3]) || v[7] != ' ' || v[10] != ' ' || v[19] != ' ' {
			return 0, false
		}
		year, ok := number(v[20:])
		return civil(year, month(v[4:7]), day, v[11:19], ok)
	case twoDigitYear(v):
		d := v[len(v)-24:] // ", 06-Nov-94 08:49:37 GMT"
		if !longWeekday(v[:len(v)-24]) || d[:2] != ", " || d[4] != '-' || d[8] != '-' || d[11] != ' ' || d[20:] != " GMT" {
			return 0, false
		}
		year, ok := number(d[9:11])
		return century(year, month(d[5:8]), d[2:4], d[12:20], ok, now)
	}
	return 0, false
}

// twoDigitYear reports whether v can only be a date of RFC 850.
func twoDigitYear(v string) bool { return len(v) >= 30 && len(v) <= 33 }

// century dates a two-digit year by the rule of RFC 9110: a date that appears to
// be more than 50 years ahead is the most recent past one with those digits. (Go
// pivots at 69, whatever the year is.)
func century(year, mon int, day, clock string, ok bool, now time.Time) (int64, bool) {
	now = now.UTC()
	y, m, d := now.Date()
	h, mi, s := now.Clock()
	horizon := daysTo(y+50, int(m), d)*86400 + int64(h*3600+mi*60+s)
	year += y - y%100 + 100
	for tries := 0; tries < 3; tries++ {
		if t, valid := civil(year, mon, day, clock, ok); valid && t <= horizon {
			return t, true
		} else if !valid && (mon != 2 || day != "29") {
			return 0, false
		}
		year -= 100
	}
	return 0, false
}

// civil is the date and the clock "15:04:05" as seconds since 1970. It is false
// for an instant that does not exist, but for second 60 in any minute.
func civil(year, mon int, day, clock string, ok bool) (int64, bool) {
	d, okDay := number(day)
	if !ok || !okDay || mon == 0 || clock[2] != ':' || clock[5] != ':' {
		return 0, false
	}
	h, ok1 := number(clock[:2])
	m, ok2 := number(clock[3:5])
	s, ok3 := number(clock[6:8])
	if !ok1 || !ok2 || !ok3 || h > 23 || m > 59 || s > 60 || d < 1 || d > daysIn(year, mon) {
		return 0, false
	}
	return daysTo(year, mon, d)*86400 + int64(h*3600+m*60+s), true
}

// rfc3339 reads an instant as RFC 3339 writes it, and the two shapes near it
// that vendors send: without seconds (Jira documents yyyy-MM-ddTHH:mmZ) and with
// an offset without colon. An instant without a zone is malformed.
func rfc3339(v string) (instant, bool) {
	if len(v) < 17 || v[4] != '-' || v[7] != '-' || v[10]|0x20 != 't' || v[13] != ':' {
		return instant{}, false
	}
	year, okY := number(v[:4])
	mon, okM := number(v[5:7])
	if !okY || !okM || mon < 1 || mon > 12 {
		return instant{}, false
	}
	var buf [8]byte
	clock := buf[:]
	copy(clock, v[11:16])
	copy(clock[5:], ":00")
	rest := v[16:]
	var nano uint64
	if rest[0] == ':' {
		if len(rest) < 4 {
			return instant{}, false
		}
		copy(clock[5:], rest[:3])
		rest = rest[3:]
		if rest[0] == '.' {
			var ok bool
			if _, nano, rest, ok = leadingDecimal(v[18:]); !ok || rest == "" { // the last digit of the seconds and on
				return instant{}, false
			}
		}
	}
	offset, ok := zone(rest)
	if !ok {
		return instant{}, false
	}
	sec, ok := civil(year, mon, v[8:10], string(clock), true)
	return instant{sec - offset, int64(nano)}, ok
}

// zone reads Z, +01:00 or +0100 as seconds east.
func zone(v string) (int64, bool) {
	if len(v) == 1 {
		return 0, v[0]|0x20 == 'z'
	}
	if len(v) == 6 && v[3] == ':' {
		return offset(v[0], v[1:3], v[4:])
	}
	if len(v) == 5 {
		return offset(v[0], v[1:3], v[3:])
	}
	return 0, false
}

func offset(sign byte, hours, minutes string) (int64, bool) {
	h, ok1 := number(hours)
	m, ok2 := number(minutes)
	if !ok1 || !ok2 || h > 23 || m > 59 {
		return 0, false
	}
	sec := int64(h*3600 + m*60)
	switch sign {
	case '+':
		return sec, true
	case '-':
		return -sec, true
	}
	return 0, false
}

// jsDate reads what JavaScript's Date.toString writes, which lemlist sends:
//
//	Tue Feb 16 2021 09:02:42 GMT+0100 (Central European Standard Time)
func jsDate(v string) (instant, bool) {
	if len(v) < 33 || !weekday(v[:3]) || v[3] != ' ' || v[7] != ' ' || v[10] != ' ' || v[15] != ' ' || v[24:28] != " GMT" {
		return instant{}, false
	}
	if name := v[33:]; name != "" && (len(name) < 4 || name[:2] != " (" || name[len(name)-1] != ')') {
		return instant{}, false
	}
	east, ok := offset(v[28], v[29:31], v[31:33])
	if !ok {
		return instant{}, false
	}
	year, ok := number(v[11:15])
	sec, ok := civil(year, month(v[4:7]), v[8:10], v[16:24], ok)
	return instant{sec - east, 0}, ok
}

// number reads a few digits, all of them.
func number(v string) (int, bool) {
	n := 0
	for i := 0; i < len(v); i++ {
		if !isDigit(v[i]) {
			return 0, false
		}
		n = n*10 + int(v[i]-'0')
	}
	return n, v != ""
}

func weekday(v string) bool {
	switch v {
	case "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun":
		return true
	}
	return false
}

func longWeekday(v string) bool {
	switch v {
	case "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday":
		return true
	}
	return false
}

// month returns 1 to 12, or 0 for what is no month.
func month(v string) int {
	switch v {
	case "Jan":
		return 1
	case "Feb":
		return 2
	case "Mar":
		return 3
	case "Apr":
		return 4
	case "May":
		return 5
	case "Jun":
		return 6
	case "Jul":
		return 7
	case "Aug":
		return 8
	case "Sep":
		return 9
	case "Oct":
		return 10
	case "Nov":
		return 11
	case "Dec":
		return 12
	}
	return 0
}

func daysIn(year, mon int) int {
	switch mon {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}

// daysTo counts the days from 1970-01-01 to a date of the Gregorian calendar.
// Counting years from March puts the leap day last.
func daysTo(year, mon, day int) int64 {
	y, m := int64(year), int64(mon)
	if m < 3 {
		y, m = y-1, m+12
	}
	leaps := y/4 - y/100 + y/400
	if y < 0 { // year 0 only: January and February belong to year -1
		leaps = -1
	}
	return y*365 + leaps + (153*(m-3)+2)/5 + int64(day) - 719469
}
