package retryafter

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func TestDecimal(t *testing.T) {
	for _, c := range []struct {
		v       string
		n, nano uint64
	}{
		{"0", 0, 0},
		{"2.0", 2, 0},
		{"0.997", 0, 997_000_000},
		{"1.123456789", 1, 123_456_789},
		{"1.1234567891", 1, 123_456_790},
		{"1.1234567890000", 1, 123_456_789},
		{"0.9999999999", 0, 1_000_000_000},
		{"18446744073709551615", 1<<64 - 1, 0},
		{"18446744073709551616.5", 1<<64 - 1, 500_000_000},
	} {
		if n, nano, ok := decimal(c.v); !ok || n != c.n || nano != c.nano {
			t.Errorf("decimal(%q) = %d, %d, %v, want %d, %d", c.v, n, nano, ok, c.n, c.nano)
		}
	}
	for _, v := range []string{"", ".", ".5", "5.", "1.5.1", "-1", "+1", "1e3", "1,5", "1.5s", " 1", "0x1", "1_0", "NaN"} {
		if n, nano, ok := decimal(v); ok {
			t.Errorf("decimal(%q) = %d, %d, want nothing", v, n, nano)
		}
	}
}

// TestSpan compares with arithmetic that cannot overflow.
func TestSpan(t *testing.T) {
	for n, want := range map[uint64]time.Duration{9223372036: maxDuration, 9223372035: 9223372036 * time.Second} {
		if got := span(n, 999_999_999, time.Second); got != want {
			t.Errorf("%d s and nearly one more: %d, want %d", n, got, want)
		}
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	units := []time.Duration{time.Nanosecond, time.Microsecond, time.Millisecond, time.Second, time.Minute, time.Hour, 24 * time.Hour}
	for range 100_000 {
		n := rnd.Uint64() >> rnd.IntN(64)
		nano := uint64(rnd.Int64N(1_000_000_001))
		unit := units[rnd.IntN(len(units))]
		got := span(n, nano, unit)
		// in billionths of a nanosecond
		x := new(big.Int).SetUint64(n)
		x.Mul(x, big.NewInt(1e9)).Add(x, new(big.Int).SetUint64(nano)).Mul(x, big.NewInt(int64(unit)))
		ms := big.NewInt(1e9 * 1e6)
		x.Add(x, new(big.Int).Sub(ms, big.NewInt(1))).Div(x, ms).Mul(x, big.NewInt(1e6))
		want := maxDuration
		if x.IsInt64() {
			want = time.Duration(x.Int64())
		}
		if got != want {
			t.Fatalf("span(%d, %d, %v) = %d, want %d", n, nano, unit, got, want)
		}
	}
}

func TestGoDuration(t *testing.T) {
	for _, c := range []struct {
		v    string
		want time.Duration
	}{
		{"20ms", 20 * time.Millisecond},
		{"6m0s", 6 * time.Minute},
		{"1h0m0.5s", time.Hour + 500*time.Millisecond},
		{"2m59.56s", 2*time.Minute + 59560*time.Millisecond},
		{"500µs", time.Millisecond},
		{"500μs", time.Millisecond},
		{"500us", time.Millisecond},
		{"1ns", time.Millisecond},
		{"0s", 0},
		{"412.345678ms", 413 * time.Millisecond},
		{"999999999999h", maxDuration},
		{"99999999999999999999s", maxDuration},
		{"9223372036s9223372036s", maxDuration},
		{"1s" + strings.Repeat("9999999h", 9), maxDuration},
	} {
		if got, ok := goDuration(c.v); !ok || got != c.want {
			t.Errorf("goDuration(%q) = %v, %v, want %v", c.v, got, ok, c.want)
		}
	}
	for _, v := range []string{"", "s", "1", "-1s", "+1s", "1 s", "1S", "1d", "6m0sx", "NaNs", "1.s", ".5s", "1s 2s", "1e3s", "1ms1"} {
		if got, ok := goDuration(v); ok {
			t.Errorf("goDuration(%q) = %v, want nothing", v, got)
		}
	}
	rnd := rand.New(rand.NewPCG(2, 2))
	for range 20_000 {
		d := time.Duration(rnd.Int64() >> rnd.IntN(60))
		if got, ok := goDuration(d.String()); !ok || got != roundUp(d) {
			t.Fatalf("goDuration(%q) = %v, %v, want %v", d, got, ok, roundUp(d))
		}
	}
}

// TestJSONScanner: what stands where, and where a cut leaves off.
func TestJSONScanner(t *testing.T) {
	const text = `{"a": "x\"\u00e9", "b": [1, -2.5e3, {"c": true}], "d": {}, "e": []}`
	values := func(s string) (all []string, p jsonScanner) {
		p = jsonScanner{s: s}
		for p.next() {
			all = append(all, fmt.Sprint(p.key(0), "/", p.key(p.depth-1), "=", p.text, p.partial))
		}
		return all, p
	}
	all, p := values(text)
	want := []string{`a/a=x\"\u00e9false`, "b/=1false", "b/=-2.5e3false", "b/c=truefalse"}
	if fmt.Sprint(all) != fmt.Sprint(want) || !p.complete() {
		t.Errorf("got %q, complete %v, want %q", all, p.complete(), want)
	}
	for i := range text {
		cut, p := values(text[:i])
		if p.complete() || p.failed {
			t.Errorf("%q: complete %v, failed %v", text[:i], p.complete(), p.failed)
		}
		for j, v := range cut {
			if v != want[j] && (j < len(cut)-1 || !p.partial) {
				t.Errorf("%q: value %d is %s, want %s", text[:i], j, v, want[j])
			}
		}
	}
	for _, bad := range []string{`{"a" "b"}`, `{"a":1,}`, `[1,]`, `[1 2]`, `{1:2}`, `[01]`, `[1.]`, `[-]`, `[1e]`, `["\x"]`, `["\u12g4"]`, "[\"\x01\"]", `[}`, `{]`, `1 2`, `nul`, `]`} {
		if _, p := values(bad); p.complete() {
			t.Errorf("%q: complete", bad)
		}
	}
	for _, good := range []string{`1`, `"a"`, `null`, `[]`, `{}`, ` [ 0 , -0.0E+1 ] `} {
		if _, p := values(good); !p.complete() {
			t.Errorf("%q: not complete", good)
		}
	}
}

func TestThousands(t *testing.T) {
	for v, want := range map[string]bool{
		"1,000": true, "12,345,678": true, "999,999": true,
		"1000": false, "1,00": false, "1,0000": false, "1234,567": false, "1, 000": false, "200,2000": false, ",000": false, "": false,
	} {
		if got := thousands([]string{v}); got != want {
			t.Errorf("thousands(%q) = %v, want %v", v, got, want)
		}
	}
}

// TestCalendar compares our calendar with package time's, for every day of 801
// years and some of the rest.
func TestCalendar(t *testing.T) {
	check := func(day time.Time) {
		y, m, d := day.Date()
		if got := daysTo(y, int(m), d) * 86400; got != day.Unix() {
			t.Fatalf("%v: got %d, want %d", day, got, day.Unix())
		}
		if last := time.Date(y, m+1, 0, 0, 0, 0, 0, time.UTC).Day(); daysIn(y, int(m)) != last {
			t.Fatalf("%v: the month has %d days, want %d", day, daysIn(y, int(m)), last)
		}
	}
	for day := time.Date(1600, 1, 1, 0, 0, 0, 0, time.UTC); day.Year() < 2401; day = day.AddDate(0, 0, 1) {
		check(day)
	}
	for day := time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC); day.Year() < 10000; day = day.AddDate(0, 0, 97) {
		check(day)
	}
}

func TestRFC3339(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 3))
	for range 20_000 {
		at := time.Unix(rnd.Int64N(4_000_000_000), rnd.Int64N(1e9)).
			In(time.FixedZone("", (rnd.IntN(1440)-720)*60))
		for _, layout := range []string{time.RFC3339Nano, time.RFC3339, "2006-01-02T15:04:05.000000Z07:00", "2006-01-02t15:04:05-0700"} {
			v := at.Format(layout)
			want, err := time.Parse(layout, v)
			if err != nil {
				t.Fatal(err)
			}
			if got, ok := rfc3339(v); !ok || got != instantOf(want) {
				t.Fatalf("rfc3339(%q) = %v, %v, want %v", v, got, ok, instantOf(want))
			}
		}
	}
	if got, ok := rfc3339("2026-03-14T16:00Z"); !ok || got.sec != time.Date(2026, 3, 14, 16, 0, 0, 0, time.UTC).Unix() {
		t.Errorf("without seconds: %v, %v", got, ok)
	}
	for _, v := range []string{
		"", "2026-03-14", "2026-03-14T15:09:26", "2026-03-14 15:10:00Z", "2026-13-14T15:15:00Z", "2026-02-29T15:15:00Z",
		"2026-03-14T15:09Zx", "2026-03-14T15:09:2Z", "2026-03-14T15:09:26.Z", "2026-03-14T15:09:26.5", "2026-03-14T15:09:26+25:00",
		"2026-03-14T15:09:26+1:00", "2026-03-14T15:09:26+01:60", "2026-03-14T15:09:26*01:00", "2026-00-14T15:09:26Z", "2026-03-14T15:09:",
		"2026-03-14T15:09:26ZZ", "+026-03-14T15:09:26Z",
	} {
		if got, ok := rfc3339(v); ok {
			t.Errorf("rfc3339(%q) = %v, want nothing", v, got)
		}
	}
}

func TestJSDate(t *testing.T) {
	got, ok := jsDate("Tue Feb 16 2021 09:02:42 GMT+0100 (Central European Standard Time)")
	if want := time.Date(2021, 2, 16, 8, 2, 42, 0, time.UTC); !ok || got.sec != want.Unix() {
		t.Errorf("got %v, %v, want %v", got, ok, want.Unix())
	}
	if _, ok := jsDate("Tue Feb 16 2021 09:02:42 GMT+0000"); !ok {
		t.Error("without the name of the zone: malformed")
	}
	for _, v := range []string{
		"", "Tue Feb 16 2021 09:02:42", "Tue Feb 16 2021 09:02:42 GMT", "Tue Feb 16 2021 09:02:42 GMT+01", "Tue Feb 16 2021 09:02:42 GMT+0100 (",
		"Tue Feb 16 2021 09:02:42 GMT+0100x", "Tue Feb 16 2021 09:02:42 UTC+0100", "Tue Feb 30 2021 09:02:42 GMT+0100", "Tue Foo 16 2021 09:02:42 GMT+0100",
	} {
		if got, ok := jsDate(v); ok {
			t.Errorf("jsDate(%q) = %v, want nothing", v, got)
		}
	}
}

// TestMagnitude checks each rule at the borders of numbers without a known unit.
func TestMagnitude(t *testing.T) {
	now := time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
	epoch := now.Unix() + 45
	for _, c := range []struct {
		v    string
		conv *builtin
		want time.Duration
	}{
		{"0", &unknown, 0},
		{"45", &unknown, 45 * second},
		{"45.5", &unknown, 45500 * time.Millisecond},
		{"999999999", &unknown, 999999999 * second},
		{"1000000000", &unknown, 0}, // 2001
		{fmt.Sprint(epoch), &unknown, 45 * second},
		{fmt.Sprint(epoch, ".25"), &unknown, 45250 * time.Millisecond},
		{"999999999999", &unknown, maxDuration},
		{"1000000000000", &unknown, 0}, // 2001 in milliseconds
		{fmt.Sprint(epoch * 1000), &unknown, 45 * second},
		{fmt.Sprint(epoch*1000 + 7), &unknown, 45007 * time.Millisecond},
		{fmt.Sprint(epoch*1000, ".5"), &unknown, 45001 * time.Millisecond},
		{"999999999999999", &unknown, maxDuration},
		{fmt.Sprint(epoch * 1_000_000), &unknown, 45 * second},
		{fmt.Sprint(epoch*1_000_000, ".1"), &unknown, 45001 * time.Millisecond},
		// A vendor that sends epochs only means a past one.
		{"60", &gitHubRow, 0},
		{fmt.Sprint(epoch), &gitHubRow, 45 * second},
		{fmt.Sprint(epoch * 1000), &gitHubRow, 45 * second},
		{"600000", &prisjaktRow, 10 * time.Minute},
		{fmt.Sprint(epoch * 1000), &prisjaktRow, 45 * second},
	} {
		v := strings.ReplaceAll(c.v, " ", "")
		r := reading{clocks: clocks{came: now}, conv: c.conv, sig: new(Signal)}
		if got, _, ok := r.magnitude(v, true); !ok || got != c.want {
			t.Errorf("%s, %q: got %v, %v, want %v", c.conv.name, v, got, ok, c.want)
		}
	}
	r := reading{clocks: clocks{came: now}, conv: &unknown, sig: new(Signal)}
	for _, v := range []string{"1000000000000000000", "99999999999999999999", "-5", "soon", "1.5.1"} {
		if got, _, ok := r.magnitude(v, true); ok {
			t.Errorf("%q: got %v, want nothing", v, got)
		}
	}
	if got, _, ok := r.magnitude("45.5", false); ok {
		t.Errorf("a fraction where none is sent: got %v, want nothing", got)
	}
}
