package debug

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/headway-go/headway/limiter"
)

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]struct{ text, ago, json string }{
		limiter.Never:                 {"never", "", "null"},
		-1:                            {"unknown", "just now", "null"},
		0:                             {"0 s", "just now", "0"},
		time.Nanosecond:               {"under 0.01 s", "just now", "0.000000001"},
		10 * time.Millisecond:         {"0.01 s", "just now", "0.01"},
		10*time.Millisecond + 1:       {"0.02 s", "just now", "0.010000001"},
		time.Second:                   {"1 s", "1 s ago", "1"},
		1500 * time.Millisecond:       {"1.5 s", "1 s ago", "1.5"},
		10*time.Second + 1:            {"11 s", "10 s ago", "10.000000001"},
		2 * time.Minute:               {"120 s", "120 s ago", "120"},
		2*time.Minute + 1:             {"2 min 1 s", "120 s ago", "120.000000001"},
		time.Hour - 1:                 {"60 min", "59 min 59 s ago", "3599.999999999"},
		25*time.Hour + 30*time.Second: {"25 h 1 min", "25 h 1 min ago", "90030"},
		76 * time.Hour:                {"3 d 4 h", "3 d 4 h ago", "273600"},
	} {
		if got := span(d).String(); got != want.text {
			t.Errorf("%d: got %q, want %q", d, got, want.text)
		}
		if got := span(d).Ago(); d != limiter.Never && got != want.ago {
			t.Errorf("%d: got %q, want %q", d, got, want.ago)
		}
		if got, err := json.Marshal(span(d)); string(got) != want.json || err != nil {
			t.Errorf("%d: got %s and %v, want %s", d, got, err, want.json)
		}
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int64]struct{ text, json string }{
		0: {"0", "0"}, 999: {"999", "999"}, 1000: {"1,000", "1000"}, -999: {"-999", "-999"}, -1000: {"-1,000", "-1000"},
		1234567: {"1,234,567", "1234567"}, math.MaxInt64: {"9,223,372,036,854,775,807", "null"},
	} {
		got, err := json.Marshal(count(n))
		if count(n).String() != want.text || string(got) != want.json || err != nil {
			t.Errorf("%d: got %v and %s, %v, want %v", n, count(n), got, err, want)
		}
	}
}
