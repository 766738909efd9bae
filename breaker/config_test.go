package breaker_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/headway-go/headway/breaker"
)

func TestConfigMistakes(t *testing.T) {
	for _, test := range []struct {
		config breaker.Config
		want   []string // a line each, in order
	}{
		{breaker.Config{}, nil},
		{breaker.Config{Failures: 1, Of: 1, OpenFor: 1, MaxOpenFor: 1, Probes: 1000, ProbeTimeout: 1}, nil},
		{breaker.Config{Failures: 65536, Of: 65536, OpenFor: math.MaxInt64, ProbeTimeout: math.MaxInt64}, nil},
		{breaker.Config{Rate: 0.01, Within: time.Millisecond, MinCalls: 1}, nil},
		{breaker.Config{Rate: 1, Within: 365 * 24 * time.Hour, MinCalls: 1e9}, nil},
		{breaker.Config{OpenFor: 2 * time.Minute}, nil}, // the default of MaxOpenFor gives way
		{breaker.Config{Failures: -1}, []string{"breaker: Failures is -1: use 1 to 65536, or 0 for 5 in a row"}},
		{breaker.Config{Failures: 65537}, []string{"breaker: Failures is 65537: use 1 to 65536, or 0 for 5 in a row"}},
		{breaker.Config{Of: -2}, []string{"breaker: Of is -2: use Failures to 65536, or 0 for failures in a row"}},
		{breaker.Config{Of: 10}, []string{"breaker: Of is 10 without Failures: set how many of the last 10 results open it"}},
		{breaker.Config{Failures: 6, Of: 5}, []string{"breaker: Failures is 6 of 5: use an Of of at least 6"}},
		{breaker.Config{Rate: math.NaN()}, []string{"breaker: Rate is NaN: use 0.01 to 1, or 0 to count Failures"}},
		{breaker.Config{Rate: 50}, []string{"breaker: Rate is 50: use 0.01 to 1, or 0 to count Failures"}},
		{breaker.Config{Rate: 0.001}, []string{"breaker: Rate is 0.001: use 0.01 to 1, or 0 to count Failures"}},
		{breaker.Config{Rate: -0.5}, []string{"breaker: Rate is -0.5: use 0.01 to 1, or 0 to count Failures"}},
		{breaker.Config{Rate: 0.5, Within: 9}, []string{"breaker: Within is 9ns: use 1ms to 8760h0m0s, or 0 for 1m0s"}},
		{breaker.Config{Rate: 0.5, Failures: 3, Of: 4}, []string{
			"breaker: Failures is 3 beside a Rate of 0.5: set only one of them",
			"breaker: Of is 4 beside a Rate of 0.5: set only one of them",
		}},
		{breaker.Config{Within: time.Second, MinCalls: 3}, []string{
			"breaker: Within is 1s without a Rate: set Rate, or leave Within zero",
			"breaker: MinCalls is 3 without a Rate: set Rate, or leave MinCalls zero",
		}},
		{breaker.Config{OpenFor: 10 * time.Second, MaxOpenFor: time.Second},
			[]string{"breaker: MaxOpenFor is 1s: use at least OpenFor (10s), or 0 for 1m0s"}},
		{breaker.Config{MaxOpenFor: time.Second},
			[]string{"breaker: MaxOpenFor is 1s: use at least OpenFor (5s), or 0 for 1m0s"}},
		{breaker.Config{Failures: -1, Rate: 2, Within: -1, MinCalls: -1, OpenFor: -1, MaxOpenFor: -1, Probes: -1, ProbeTimeout: -1}, []string{
			"breaker: Failures is -1: use 1 to 65536, or 0 for 5 in a row",
			"breaker: Rate is 2: use 0.01 to 1, or 0 to count Failures",
			"breaker: Within is -1ns: use 1ms to 8760h0m0s, or 0 for 1m0s",
			"breaker: MinCalls is -1: use 1 to 1000000000, or 0 for 10",
			"breaker: Failures is -1 beside a Rate of 2: set only one of them",
			"breaker: OpenFor is -1ns: use a positive duration, or 0 for 5s",
			"breaker: MaxOpenFor is -1ns: use at least OpenFor (1ns), or 0 for 1m0s",
			"breaker: Probes is -1: use 1 to 1000, or 0 for 1",
			"breaker: ProbeTimeout is -1ns: use a positive duration, or 0 for 30s",
		}},
		{breaker.Config{Probes: 1001}, []string{"breaker: Probes is 1001: use 1 to 1000, or 0 for 1"}},
	} {
		var got string
		if err := test.config.Validate(); err != nil {
			got = err.Error()
		}
		if want := strings.Join(test.want, "\n"); got != want {
			t.Errorf("%+v:\ngot  %s\nwant %s", test.config, got, want)
		}
		b, err := breaker.New(test.config, nil)
		if (b == nil) != (len(test.want) > 0) || (err == nil) != (len(test.want) == 0) {
			t.Errorf("%+v: New gave %v, %v", test.config, b, err)
		}
	}
}

// TestZeroConfig checks what each zero means.
func TestZeroConfig(t *testing.T) {
	now := t0
	b := newBreaker(t, breaker.Config{}, nil)
	call(t, b, now, repeat(4, failure)...)
	want(t, b, now, breaker.Closed, 0)
	call(t, b, now, failure)
	want(t, b, now, breaker.Open, 5*time.Second)

	// Each failed probe doubles it, up to a minute.
	for _, next := range []time.Duration{10, 20, 40, 60, 60} {
		now = now.Add(b.Delay(now))
		call(t, b, now, failure)
		want(t, b, now, breaker.Open, next*time.Second)
	}

	now = now.Add(time.Minute)
	take(t, b, now)
	want(t, b, now, breaker.HalfOpen, 30*time.Second)
	wantRefused(t, b, now)
	now = now.Add(30 * time.Second)
	call(t, b, now, success)
	want(t, b, now, breaker.Closed, 0)
}

// TestZeroRateConfig checks what a Within and a MinCalls of zero mean.
func TestZeroRateConfig(t *testing.T) {
	b := newBreaker(t, breaker.Config{Rate: 1}, nil)
	call(t, b, t0, repeat(9, failure)...)
	want(t, b, t0, breaker.Closed, 0)
	if b.Clean(t0.Add(time.Minute - 1)) {
		t.Error("clean before Within has passed")
	}
	if !b.Clean(t0.Add(time.Minute)) {
		t.Error("not clean after Within has passed")
	}
	call(t, b, t0, failure)
	want(t, b, t0, breaker.Open, 5*time.Second)
}

func TestStrings(t *testing.T) {
	for got, want := range map[string]string{
		breaker.Ignored.String():    "ignored",
		breaker.Success.String():    "success",
		breaker.Failure.String():    "failure",
		breaker.Outcome(9).String(): "ignored",
		breaker.Closed.String():     "closed",
		breaker.Open.String():       "open",
		breaker.HalfOpen.String():   "half-open",
		breaker.State(9).String():   "unknown",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
