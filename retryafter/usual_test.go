package retryafter

import (
	"net/http"
	"testing"
	"time"
)

// TestUsual: the short way for usual responses reads what the long one would, for
// every row that has a part in it, and takes the usual ones.
func TestUsual(t *testing.T) {
	values := [][]string{
		{"60"}, {"5000"}, {"0"}, {"1773502800"}, {"1773502800000"}, {"999999999"}, {"1000000000"}, {"007"}, {"123456789012345"}, {"1234567890123456"}, // numbers
		{"-1"}, {"1.5"}, {" 60"}, {"5, 6"}, {"5;w=60"}, {"1,000"}, {""}, {"soon"}, {"60", "60"}, {"60", "61"}, {"Sat, 14 Mar 2026 15:10:26 GMT"}, {},
	}
	now := time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
	others := []http.Header{
		{}, {"Date": {"Sat, 14 Mar 2026 15:08:26 GMT"}, "Age": {"5"}}, {"X-Github-Request-Id": {"1"}}, {"Ratelimit-Observed": {"1"}}, {"X-Ratelimit-Bucket": {"a"}},
		{"X-Ratelimit-Used": {"3"}}, {"X-Ratelimit-Reset-After": {"3"}}, {"X-Ratelimit-Policy": {"5;w=60"}}, {"X-Ratelimit-Limit-Minute": {"5000"}}, {"Ratelimit": {`"a";r=5;t=60`}},
		{"X-Sib-Ratelimit-Remaining": {"7"}}, // of another row, and another limit
	}
	readers := []*Reader{everything, NewReader(nil, "api.github.com"), NewReader([]Dialect{Prisjakt, Shopify}, ""), NewReader(nil, "discord.com")}
	usual, all := 0, 0
	check := func(h http.Header) {
		for _, r := range readers {
			for _, status := range []int{200, 304} {
				var room [maxHits]hit
				var short, long, got Signal
				found := scan{hits: room[:0]}
				found.scan(h, r.set)
				took := r.usual(&short, &found, h, now)
				r.interpret(&long, &found, status, h, now)
				if all++; took {
					if usual++; short != long {
						t.Fatalf("%v: got %+v, want %+v", h, short, long)
					}
				} else if short != (Signal{}) {
					t.Fatalf("%v: got %+v for a response that is not usual", h, short)
				}
				if readTo(r, &got, status, h, now); got != long {
					t.Fatalf("%v: readTo reads %+v, want %+v", h, got, long)
				}
			}
		}
	}
	for _, row := range table {
		var limits, lefts, resets []string
		for i := range row.fields {
			switch f := &row.fields[i]; f.role {
			case isLimit:
				limits = append(limits, f.name)
			case isRemaining:
				lefts = append(lefts, f.name)
			case isReset:
				resets = append(resets, f.name)
			}
		}
		for i := range max(len(limits), len(lefts), len(resets)) {
			for j, v := range values {
				for _, other := range others {
					h := other.Clone()
					set := func(names []string, v []string) {
						if i < len(names) {
							h[names[i]] = v
						}
					}
					set(limits, values[(j+1)%len(values)])
					set(resets, v)
					check(h)
					set(limits, values[1])
					set(lefts, values[2])
					check(h)
					set(lefts, v)
					set(resets, values[0])
					check(h)
				}
			}
		}
	}
	if usual < all/20 {
		t.Errorf("%d of %d responses are usual: this tests nothing", usual, all)
	}
	for _, reset := range []string{"60", "1773502800"} {
		h := http.Header{"X-Ratelimit-Limit": {"5000"}, "X-Ratelimit-Remaining": {"4987"}, "X-Ratelimit-Reset": {reset}}
		var s Signal
		found := scan{hits: make([]hit, 0, fewHits)}
		if found.scan(h, everything.set); !everything.usual(&s, &found, h, now) {
			t.Errorf("%v is not usual", h)
		}
	}
}

// A Reader that is to read the clock reads it for dialects of the caller's too.
func TestOwnDialectNow(t *testing.T) {
	var d clockDialect
	var s Signal
	if readTo(NewReader([]Dialect{&d}, ""), &s, 200, http.Header{}, time.Time{}); d.now.IsZero() {
		t.Error("the dialect was given the zero time")
	}
}

type clockDialect struct{ now time.Time }

func (d *clockDialect) Name() string { return "clock" }
func (d *clockDialect) Read(_ int, _ http.Header, now time.Time) (Signal, bool) {
	d.now = now
	return Signal{}, false
}
