package retryafter_test

import (
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway/retryafter"
)

// TestBinding is rule by rule.
func TestBinding(t *testing.T) {
	for _, c := range []struct {
		name   string
		limits []retryafter.LimitSignal
		want   string
	}{
		{"fewest left", []retryafter.LimitSignal{limit("a", 5000, 4998, unknown, unknown), limit("b", 10, 8, unknown, unknown)}, "b"},
		{"exhausted", []retryafter.LimitSignal{limit("a", 10, 1, time.Hour, unknown), limit("b", 10, 0, time.Second, unknown)}, "b"},
		{"exhausted, longest reset", []retryafter.LimitSignal{limit("a", 60, 0, 12*time.Second, unknown), limit("b", 1000, 0, 7200*time.Second, unknown)}, "b"},
		{"exhausted, one reset unknown", []retryafter.LimitSignal{limit("a", 60, 0, unknown, unknown), limit("b", 1000, 0, time.Second, unknown)}, "b"},
		{"exhausted, no reset, longest window", []retryafter.LimitSignal{limit("a", 60, 0, unknown, time.Minute), limit("b", 1000, 0, unknown, time.Hour)}, "b"},
		{"requests before tokens", []retryafter.LimitSignal{inTokens(limit("a", 100, 10, unknown, unknown)), limit("b", 100, 99, unknown, unknown)}, "b"},
		{"exhausted tokens before requests", []retryafter.LimitSignal{limit("a", 100, 1, unknown, unknown), inTokens(limit("b", 100, 0, unknown, unknown))}, "b"},
		{"a state before a policy", []retryafter.LimitSignal{limit("a", 1, unknown, unknown, time.Second), limit("b", 100, 99, unknown, unknown)}, "b"},
		{"the smallest policy", []retryafter.LimitSignal{limit("a", 5000, unknown, unknown, time.Hour), limit("b", 10, unknown, unknown, time.Second)}, "b"},
		{"the shortest window", []retryafter.LimitSignal{limit("a", unknown, unknown, unknown, time.Hour), limit("b", unknown, unknown, unknown, time.Second)}, "b"},
		{"equals: the first", []retryafter.LimitSignal{limit("a", 10, 5, time.Second, unknown), limit("b", 10, 5, time.Second, unknown)}, "a"},
	} {
		var s retryafter.Signal
		for _, l := range c.limits {
			s.Add(l)
		}
		if l, ok := s.Binding(); !ok || l.Name != c.want {
			t.Errorf("%s: %q, want %q", c.name, l.Name, c.want)
		}
	}
	var s retryafter.Signal
	if l, ok := s.Binding(); ok || l != (retryafter.LimitSignal{}) || len(s.Limits()) != 0 {
		t.Errorf("the zero Signal: %+v, %v", l, ok)
	}
}

// TestAddKeepsBinding: whatever is dropped, the limit that binds first is kept.
func TestAddKeepsBinding(t *testing.T) {
	rnd := rand.New(rand.NewPCG(4, 4))
	for range 5_000 {
		var s retryafter.Signal
		var best retryafter.Signal // of two at a time
		for range rnd.IntN(20) {
			l := limit("", rnd.Int64N(12)-1, rnd.Int64N(5)-1, time.Duration(rnd.Int64N(4)-1), []time.Duration{unknown, 1, 2}[rnd.IntN(3)])
			l.OtherUnit = rnd.IntN(2) == 0
			s.Add(l)
			best.Add(l)
			b, _ := best.Binding()
			best = retryafter.Signal{}
			best.Add(b)
		}
		got, ok := s.Binding()
		want, wantOK := best.Binding()
		if ok != wantOK || got != want {
			t.Fatalf("got %+v, want %+v", got, want)
		}
		if len(s.Limits()) > 6 {
			t.Fatalf("%d limits", len(s.Limits()))
		}
	}
}

// TestBubble: in a synctest bubble it is the year 2000, and epochs are below 10^9.
func TestBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		for _, c := range []struct {
			name  string
			value string
			want  time.Duration
		}{
			{"seconds", "60", time.Minute},
			{"a day", "86400", 24 * time.Hour},
			{"epoch", itoa(now.Unix() + 60), time.Minute},
			{"epoch in ms", itoa(now.UnixMilli() + 60_000), time.Minute},
			{"epoch in µs", itoa(now.UnixMicro() + 60_000_000), time.Minute},
			{"past epoch", itoa(now.Unix() - 60), 0},
			{"RFC 3339", now.Add(time.Minute).UTC().Format(time.RFC3339), time.Minute},
		} {
			h := head("X-RateLimit-Limit", "5", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", c.value)
			if s := retryafter.Read(429, h, now); s.RetryAfter != c.want || !s.HasRetryAfter {
				t.Errorf("%s: %v, want %v", c.name, s.RetryAfter, c.want)
			}
			h.Set("Date", now.UTC().Format(http.TimeFormat))
			if s := retryafter.Read(429, h, now); s.RetryAfter != c.want || !s.HasRetryAfter {
				t.Errorf("%s with a Date: %v, want %v", c.name, s.RetryAfter, c.want)
			}
		}
	})
}

func TestScopeString(t *testing.T) {
	for s, want := range map[retryafter.Scope]string{
		retryafter.ScopeIdentity: "identity", retryafter.ScopeRule: "rule", retryafter.ScopeHost: "host", 9: "identity",
	} {
		if got := s.String(); got != want {
			t.Errorf("%d: %q, want %q", s, got, want)
		}
	}
}

// What Wait returns: an explicit instruction as it is, a reset only while it lies
// ahead, and what a malformed value means where nothing better was said.
func TestWait(t *testing.T) {
	for _, test := range []struct {
		name string
		s    retryafter.Signal
		want time.Duration
		ok   bool
	}{
		{"nothing", retryafter.Signal{}, 0, false},
		{"now", retryafter.Signal{HasRetryAfter: true}, 0, true},
		{"explicit", retryafter.Signal{HasRetryAfter: true, RetryAfter: time.Second}, time.Second, true},
		{"a reset ahead", retryafter.Signal{HasRetryAfter: true, Inferred: true, RetryAfter: time.Second}, time.Second, true},
		{"a reset that is over", retryafter.Signal{HasRetryAfter: true, Inferred: true}, 0, false},
		{"a hint alone", retryafter.Signal{Hint: time.Minute}, time.Minute, true},
		{"a hint beside an instruction", retryafter.Signal{Hint: time.Minute, HasRetryAfter: true}, 0, true},
		{"a hint beside a shorter reset", retryafter.Signal{Hint: time.Minute, HasRetryAfter: true, Inferred: true, RetryAfter: time.Second}, time.Minute, true},
		{"a hint beside a longer reset", retryafter.Signal{Hint: time.Second, HasRetryAfter: true, Inferred: true, RetryAfter: time.Minute}, time.Minute, true},
	} {
		if got, ok := test.s.Wait(); got != test.want || ok != test.ok {
			t.Errorf("%s: got %v, %v; want %v, %v", test.name, got, ok, test.want, test.ok)
		}
	}
}

// A reset is inferred, an instruction is not, and it replaces what was inferred.
func TestInferred(t *testing.T) {
	now := time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
	for _, test := range []struct {
		status   int
		lines    []string
		inferred bool
	}{
		{429, []string{"X-Ratelimit-Remaining: 0", "X-Ratelimit-Reset: 0"}, true},
		{429, []string{"X-Ratelimit-Remaining: 0", "X-Ratelimit-Reset: 30"}, true},
		{429, []string{"X-Ratelimit-Reset: 30"}, true},
		{429, []string{"X-Ratelimit-Remaining: 0", "X-Ratelimit-Reset: 30", "Retry-After: 1"}, false},
		{429, []string{"X-Ratelimit-Remaining: 0", "X-Ratelimit-Reset: 30", "Retry-After: 0"}, false},
		{200, []string{"X-Ratelimit-Remaining: 0", "X-Ratelimit-Reset: 30"}, false},
		{429, nil, false},
	} {
		h := http.Header{}
		for _, l := range test.lines {
			name, value, _ := strings.Cut(l, ": ")
			h.Set(name, value)
		}
		if s := retryafter.Read(test.status, h, now); s.Inferred != test.inferred {
			t.Errorf("%d %q: Inferred = %v, want %v", test.status, test.lines, s.Inferred, test.inferred)
		}
	}
}
