package retryafter_test

import (
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headway-go/headway/retryafter"
)

const forever = time.Duration(math.MaxInt64)

var pi = time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC) // a Saturday

func TestParse(t *testing.T) {
	for _, c := range []struct {
		value string
		want  time.Duration
	}{
		{"0", 0},
		{"120", 2 * time.Minute},
		{"007", 7 * time.Second},
		{" \t30 \t", 30 * time.Second},
		// C1: what overflows a Duration saturates; a sign check would miss the second.
		{"9223372036", 9223372036 * time.Second},
		{"9223372037", forever},
		{"18446744074", forever},
		{"99999999999999", forever},
		{"18446744073709551615", forever},
		{"18446744073709551616", forever}, // C2
		{"99999999999999999999", forever},
		{strings.Repeat("9", 200), forever},
		{strings.Repeat("0", 200) + "5", 5 * time.Second},
		{"1773501011", 1773501011 * time.Second}, // an epoch by mistake is a delay by the grammar
		{"Sat, 14 Mar 2026 15:10:56 GMT", 90 * time.Second},
		{"Saturday, 14-Mar-26 15:10:26 GMT", time.Minute},
		{"Sat Mar 14 15:10:00 2026", 34 * time.Second},
		{"Sun Apr  5 15:09:26 2026", 22 * 24 * time.Hour},
		{"Fri, 31 Dec 1999 23:59:59 GMT", 0}, // past
		{"Mon, 14 Mar 2026 15:10:26 GMT", time.Minute},
		{"Thu, 31 Dec 2026 23:59:60 GMT", time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC).Sub(pi)},
		{"Sat, 14 Mar 2026 15:09:60 GMT", 34 * time.Second},
		{"Tue, 29 Feb 2028 00:00:00 GMT", time.Date(2028, 2, 29, 0, 0, 0, 0, time.UTC).Sub(pi)},
		{"Fri, 31 Dec 9999 23:59:59 GMT", forever},
		{"Mon, 01 Jan 0001 00:00:00 GMT", 0},
		// Two digits: more than 50 years ahead means the past century.
		{"Sunday, 06-Nov-94 08:49:37 GMT", 0},
		{"Friday, 14-Mar-70 15:09:26 GMT", time.Date(2070, 3, 14, 15, 9, 26, 0, time.UTC).Sub(pi)},
		{"Saturday, 14-Mar-76 15:09:26 GMT", time.Date(2076, 3, 14, 15, 9, 26, 0, time.UTC).Sub(pi)},
		{"Saturday, 14-Mar-76 15:09:27 GMT", 0},
	} {
		got, ok := retryafter.Parse(c.value, pi)
		if !ok || got != c.want {
			t.Errorf("Parse(%q) = %v, %v, want %v", c.value, got, ok, c.want)
		}
	}
}

func TestParseMalformed(t *testing.T) {
	for _, value := range []string{
		"", " ", "-5", "+5", "1e3", "1e30", "0x1F", "1_000", "1.5", ".5", "5.", "5s", "5 s", "1 20", "NaN", "Inf",
		"\"30\"", "30;a=b", "5\x00", "5\x07", "5\n", "\u00a030", "30\u00a0", "５", "0,5", "5, 120", "5,", "null",
		"18446744073709551616x", strings.Repeat("9", 300), // C2
		"Sat, 14 Mar 2026 15:10:26 UTC", "Sat, 14 Mar 2026 11:10:26 EST", "Sat, 14 Mar 2026 16:10:26 +0100",
		"Sat, 14 Mar 2026 15:10:26", "sat, 14 mar 2026 15:10:26 gmt", "SAT, 14 MAR 2026 15:10:26 GMT",
		"Sat, 14 Mar 2026 15:10:26 GMT ~", "Sat,  14 Mar 2026 15:10:26 GMT", "Sat, 7 Mar 2026 15:09:26 GMT",
		"Sat, 14-Mar-2026 15:10:26 GMT", "Sat Mar 14 15:10:26 2026 GMT", "Sat Mar 7 15:10:26 2026",
		"Mon, 30 Feb 2026 00:00:00 GMT", "Sun, 29 Feb 2026 00:00:00 GMT", "Sat, 00 Mar 2026 15:10:26 GMT",
		"Sat, 32 Mar 2026 15:10:26 GMT", "Sat, 14 Foo 2026 15:10:26 GMT", "Foo, 14 Mar 2026 15:10:26 GMT",
		"Sat, 14 Mar 2026 24:00:00 GMT", "Sat, 14 Mar 2026 15:60:00 GMT", "Sat, 14 Mar 2026 15:10:61 GMT",
		"Saturday, 30-Feb-26 15:10:26 GMT", "Saturday, 29-Feb-26 15:10:26 XMT", "Sat, 14 Mar +026 15:10:26 GMT",
		"Sat, 14 Mar 2026 15.10.26 GMT", "2026-03-14T15:10:26Z", "Sat, 14",
	} {
		if got, ok := retryafter.Parse(value, pi); ok || got != 0 {
			t.Errorf("Parse(%q) = %v, %v, want nothing", value, got, ok)
		}
	}
}

// S64: rounded up, so that no request is early.
func TestParseRoundsUp(t *testing.T) {
	now := time.Date(2026, 3, 14, 12, 0, 0, 600_000_000, time.UTC)
	if got, _ := retryafter.Parse("Sat, 14 Mar 2026 12:00:01 GMT", now); got != 400*time.Millisecond {
		t.Errorf("600 ms before: got %v, want 400ms", got)
	}
	if got, _ := retryafter.Parse("Sat, 14 Mar 2026 12:00:01 GMT", now.Add(-1)); got != 401*time.Millisecond {
		t.Errorf("1 ns earlier: got %v, want 401ms", got)
	}
	if got, _ := retryafter.Parse("Sat, 14 Mar 2026 12:00:00 GMT", now); got != 0 {
		t.Errorf("600 ms after: got %v, want 0", got)
	}
}

// TestParseDates writes random times in the three forms and reads them back,
// from nows all over the centuries and in other zones.
func TestParseDates(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	zone := time.FixedZone("elsewhere", -7*3600)
	for range 20_000 {
		now := time.Unix(rnd.Int64N(8_000_000_000)-2_000_000_000, rnd.Int64N(1e9)).In(zone)
		at := now.Add(time.Duration(rnd.Int64N(int64(80*365*24*time.Hour))) - 30*365*24*time.Hour).UTC().Truncate(time.Second)
		want := max(0, at.Sub(now))
		if r := want % time.Millisecond; r > 0 {
			want += time.Millisecond - r
		}
		for _, layout := range []string{http.TimeFormat, time.ANSIC} {
			if got, ok := retryafter.Parse(at.Format(layout), now); !ok || got != want {
				t.Fatalf("%s at %v: got %v, %v, want %v", at.Format(layout), now, got, ok, want)
			}
		}
		value := at.Format("Monday, 02-Jan-06 15:04:05 GMT")
		if at.After(now.AddDate(50, 0, 0)) {
			want = 0 // the century before
		} else if !at.After(now.AddDate(-50, 0, 0)) {
			continue // the century after
		}
		if got, ok := retryafter.Parse(value, now); !ok || got != want {
			t.Fatalf("%s at %v: got %v, %v, want %v", value, now, got, ok, want)
		}
	}
}

// TestParseMutated changes single bytes of valid dates: what is still accepted is
// a date to net/http too, and the same one.
func TestParseMutated(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	const alphabet = " \t,:-+0123456789abcJFMASONDTueGMTsy"
	accepted := 0
	for range 200_000 {
		at := pi.Add(time.Duration(rnd.Int64N(int64(40 * 365 * 24 * time.Hour)))).Truncate(time.Second)
		layout := []string{http.TimeFormat, time.ANSIC, "Monday, 02-Jan-06 15:04:05 GMT"}[rnd.IntN(3)]
		b := []byte(at.Format(layout))
		b[rnd.IntN(len(b))] = alphabet[rnd.IntN(len(alphabet))]
		value := string(b)
		got, ok := retryafter.Parse(value, pi)
		if !ok || strings.Contains(value, ":60") {
			continue
		}
		accepted++
		want, err := http.ParseTime(value)
		if err != nil {
			t.Fatalf("%q: accepted, but net/http says %v", value, err)
		}
		if layout == time.ANSIC || layout == http.TimeFormat {
			if d := max(0, want.Sub(pi)); got != d {
				t.Fatalf("%q: got %v, want %v", value, got, d)
			}
		}
	}
	if accepted < 1000 {
		t.Errorf("only %d were accepted", accepted)
	}
}
