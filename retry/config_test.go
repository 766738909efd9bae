package retry_test

import (
	"errors"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/retry"
	"github.com/headway-go/headway/retryafter"
)

// newTransport returns a Transport with one policy, which does not read responses;
// see play.
func newTransport(t testing.TB, base http.RoundTripper, p headway.Policy) *headway.Transport {
	t.Helper()
	p.Server.Dialects = []retryafter.Dialect{retryafter.None}
	if p.Hosts == nil {
		p.Hosts = []string{"*"}
	}
	tr, err := headway.NewTransport(base, headway.Config{Policies: []headway.Policy{p}})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func TestConfigMistakes(t *testing.T) {
	next := newTransport(t, nil, headway.Policy{})
	for _, tt := range []struct {
		cfg  retry.Config
		want []string // one for each mistake
	}{
		{retry.Config{}, nil},
		{retry.Config{MaxRetries: retry.None}, nil},
		{retry.Config{MaxRetries: retry.Unlimited, MaxElapsed: time.Minute}, nil},
		{retry.Config{MinBackoff: time.Minute}, nil}, // longer than the default of MaxBackoff
		{retry.Config{Budget: retry.Budget{Start: math.Inf(1), Max: math.Inf(1), PerSecond: retry.None}}, nil},
		{retry.Config{MaxRetries: retry.Unlimited}, []string{"retry: MaxRetries = Unlimited: want a MaxElapsed with it, else the retries of a request are unbounded"}},
		{retry.Config{MaxRetries: -2}, []string{"retry: MaxRetries = -2: want a positive number, zero for 4, None or Unlimited"}},
		{retry.Config{MaxElapsed: -1}, []string{"retry: MaxElapsed = -1ns: want a positive duration, or zero for no bound"}},
		{retry.Config{MinBackoff: -1, MaxBackoff: -1}, []string{
			"retry: MinBackoff = -1ns: want a positive duration up to 24 h, or zero for 500 ms",
			"retry: MaxBackoff = -1ns: want a positive duration up to 24 h, or zero for 30 s",
		}},
		{retry.Config{MinBackoff: time.Second, MaxBackoff: time.Millisecond}, []string{"retry: MaxBackoff = 1ms: want no less than MinBackoff, 1s"}},
		{retry.Config{MinBackoff: 25 * time.Hour}, []string{"retry: MinBackoff = 25h0m0s: want a positive duration up to 24 h, or zero for 500 ms"}},
		{retry.Config{MaxHosts: -1}, []string{"retry: MaxHosts = -1: want a positive number, or zero for 100,000"}},
		{retry.Config{Budget: retry.Budget{Start: -2, PerRequest: math.NaN(), PerSecond: -0.1, PerSuccess: -3, Max: math.Inf(-1)}}, []string{
			"retry: Budget.Start = -2: want a positive number, zero for 10, or None",
			"retry: Budget.PerRequest = NaN: want a positive number, zero for 0.2, or None",
			"retry: Budget.PerSecond = -0.1: want a positive number, zero for 3, or None",
			"retry: Budget.PerSuccess = -3: want a positive number, zero for 1, or None",
			"retry: Budget.Max = -Inf: want a positive number, zero for 30, or None",
		}},
	} {
		rt, err := retry.New(next, tt.cfg)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if want := strings.Join(tt.want, "\n"); got != want || (rt == nil) != (err != nil) {
			t.Errorf("%+v:\ngot  %s\nwant %s", tt.cfg, got, want)
		}
	}
	if _, err := retry.New(nil, retry.Config{}); err == nil {
		t.Error("no Transport: got no error")
	}
}

func TestNewClientReturnsEveryMistake(t *testing.T) {
	next := newTransport(t, nil, headway.Policy{})
	for _, tt := range []struct {
		next *headway.Transport
		cfg  retry.Config
		want []string
	}{
		{next, retry.Config{MaxRetries: -7, MaxHosts: -1}, []string{"MaxRetries = -7", "MaxHosts = -1"}},
		{nil, retry.Config{MaxRetries: -7}, []string{"the headway.Transport is nil", "MaxRetries = -7"}},
		{next, retry.Config{}, nil},
	} {
		c, err := retry.NewClient(tt.next, tt.cfg)
		if (c == nil) != (err != nil) || (err == nil) != (tt.want == nil) {
			t.Errorf("%+v: got %v, %v", tt.cfg, c, err)
		}
		for _, want := range tt.want {
			if err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: got %v, want %q in it", tt.cfg, err, want)
			}
		}
	}
}

func TestNoURL(t *testing.T) {
	want := errors.New("no URL")
	rt, err := retry.New(newTransport(t, roundTripper(func(*http.Request) (*http.Response, error) { return nil, want }), headway.Policy{}), retry.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rt.RoundTrip(&http.Request{}); err != want {
		t.Errorf("got %v, want what the base says", err)
	}
}
