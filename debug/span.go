package debug

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/headway-go/headway/limiter"
)

// A span is a duration as the page shows it. In JSON it is seconds, and null for
// limiter.Never and an unknown time.
type span time.Duration

// String returns it with the digits that a reader needs: "0.25 s", "12 s",
// "4 min 10 s", "3 d 4 h".
func (s span) String() string {
	d := time.Duration(s)
	switch {
	case d == limiter.Never:
		return "never"
	case d < 0:
		return "unknown"
	case d == 0:
		return "0 s"
	case d < 10*time.Millisecond:
		return "under 0.01 s"
	case d < 10*time.Second:
		return strconv.FormatFloat(math.Ceil(d.Seconds()*100)/100, 'f', -1, 64) + " s"
	case d <= 2*time.Minute:
		return fmt.Sprintf("%.0f s", math.Ceil(d.Seconds()))
	case d < 2*time.Hour:
		return twoUnits(d, time.Minute, "min", time.Second, "s")
	case d < 48*time.Hour:
		return twoUnits(d, time.Hour, "h", time.Minute, "min")
	default:
		return twoUnits(d, 24*time.Hour, "d", time.Hour, "h")
	}
}

// Ago returns it as the age of something, in whole seconds.
func (s span) Ago() string {
	if d := time.Duration(s).Truncate(time.Second); d > 0 {
		return span(d).String() + " ago"
	}
	return "just now"
}

func twoUnits(d, big time.Duration, bigName string, small time.Duration, smallName string) string {
	d = (d + small - 1) / small * small // a time to wait is never said too short
	s := fmt.Sprintf("%d %s", d/big, bigName)
	if rest := d % big / small; rest > 0 {
		s += fmt.Sprintf(" %d %s", rest, smallName)
	}
	return s
}

// MarshalJSON returns the seconds.
func (s span) MarshalJSON() ([]byte, error) {
	if s < 0 || time.Duration(s) == limiter.Never {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, time.Duration(s).Seconds(), 'f', -1, 64), nil
}

// A count is a number of units, grouped by thousands on the page. In JSON
// math.MaxInt64, which no limit bounds, is null.
type count int64

// String returns it as "1,234,567".
func (c count) String() string {
	s := strconv.FormatInt(int64(c), 10)
	first := 0
	if c < 0 {
		first = 1
	}
	for i := len(s) - 3; i > first; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// MarshalJSON returns the number.
func (c count) MarshalJSON() ([]byte, error) {
	if c == math.MaxInt64 {
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, int64(c), 10), nil
}
