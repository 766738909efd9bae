package headway_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
)

type roundTripperFunc func(*http.Request) (*http.Response, error)

func (f roundTripperFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// throughClient returns err as the caller of an http.Client gets it.
func throughClient(t *testing.T, err error) *url.Error {
	t.Helper()
	c := &http.Client{
		Transport: roundTripperFunc(func(*http.Request) (*http.Response, error) { return nil, err }),
		Timeout:   time.Minute,
	}
	_, err = c.Do(newRequest(t, "GET", "https://example.com/"))
	var u *url.Error
	if !errors.As(err, &u) {
		t.Fatalf("got %T, want *url.Error", err)
	}
	return u
}

// S35
func TestThrottledErrorThroughClient(t *testing.T) {
	for _, tc := range []struct {
		name     string
		cause    error
		deadline bool
	}{
		{"the deadline was too short", context.DeadlineExceeded, true},
		{"only MaxWait was too short", nil, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			want := &headway.ThrottledError{
				Refusal: limiter.Refusal{Reason: limiter.ReasonLimit, RetryAfter: 3 * time.Second, Err: tc.cause},
				Policy:  "p", Host: "example.com",
			}
			err := throughClient(t, want)
			if got := errors.Is(err, context.DeadlineExceeded); got != tc.deadline {
				t.Errorf("is context.DeadlineExceeded: got %v, want %v", got, tc.deadline)
			}
			if got := err.Timeout(); got != tc.deadline {
				t.Errorf("Timeout: got %v, want %v", got, tc.deadline)
			}
			if err.Temporary() {
				t.Error("Temporary: got true, want false")
			}
			if !errors.Is(err, headway.ErrThrottled) || errors.Is(err, headway.ErrKey) {
				t.Error("want it to be ErrThrottled alone")
			}
			var got *headway.ThrottledError
			if !errors.As(err, &got) || got != want {
				t.Errorf("as *ThrottledError: got %v, want the one returned", got)
			}
			var r *limiter.Refusal
			if !errors.As(err, &r) || r != &want.Refusal {
				t.Errorf("as *limiter.Refusal: got %v, want the one within", r)
			}
			if got.StatusCode() != 429 {
				t.Errorf("StatusCode: got %d, want 429", got.StatusCode())
			}
		})
	}
}

func TestThrottledErrorText(t *testing.T) {
	for _, tc := range []struct {
		err  headway.ThrottledError
		want string
	}{
		{
			headway.ThrottledError{
				Refusal: limiter.Refusal{Reason: limiter.ReasonLimit, RetryAfter: 3 * time.Second},
				Policy:  "github", Host: "api.github.com", Rule: "search", KeyDigest: "3f9a",
			},
			`headway: policy "github" throttled a request to api.github.com by rule "search" for key 3f9a: ` +
				`the limit has no room yet, could start in 3s`,
		}, {
			headway.ThrottledError{
				Refusal: limiter.Refusal{Reason: limiter.ReasonLimit, RetryAfter: time.Second, Err: context.DeadlineExceeded},
				Policy:  "github", Host: "api.github.com", Rule: "50/1s",
			},
			`headway: policy "github" throttled a request to api.github.com by rule "50/1s": ` +
				`the limit has no room yet, could start in 1s, after the caller's deadline`,
		}, {
			headway.ThrottledError{
				Refusal: limiter.Refusal{Reason: limiter.ReasonInFlight, RetryAfter: time.Second, AtLeast: true},
				Policy:  "p", Host: "h:8443",
			},
			`headway: policy "p" throttled a request to h:8443: ` +
				`too many requests are in flight, could start in 1s at the earliest`,
		}, {
			headway.ThrottledError{
				Refusal: limiter.Refusal{Reason: limiter.ReasonDisabled, RetryAfter: limiter.Never},
				Policy:  "p", Host: "h", Rule: "r",
			},
			`headway: policy "p" throttled a request to h by rule "r": the limit is Blocked; replace it to admit requests`,
		},
	} {
		if got := tc.err.Error(); got != tc.want {
			t.Errorf("got  %s\nwant %s", got, tc.want)
		}
	}
}

// SDKs take these words for a fault of the network, and send again.
func TestErrorTextsAvoidNetworkWords(t *testing.T) {
	var errs []error
	for reason := limiter.ReasonLimit; reason <= limiter.ReasonDisabled; reason++ {
		for _, after := range []time.Duration{0, time.Hour, limiter.Never} {
			for _, cause := range []error{nil, context.DeadlineExceeded} {
				errs = append(errs, &headway.ThrottledError{
					Refusal: limiter.Refusal{Reason: reason, RetryAfter: after, AtLeast: after == 0, Err: cause},
					Policy:  "p", Host: "example.com", Rule: "r", KeyDigest: "00",
				})
			}
		}
	}
	_, noHeader := headway.ByHeader("X-Key")(newRequest(t, "GET", "https://example.com/"))
	_, noCall := headway.FromCallKey(newRequest(t, "GET", "https://example.com/"))
	errs = append(errs, &headway.KeyError{Policy: "p", Rule: "r", Err: noHeader}, &headway.KeyError{Policy: "p", Rule: "r", Err: noCall})
	for _, err := range errs {
		text := strings.ToLower(err.Error())
		for _, word := range []string{
			"eof", "connection", "reset", "refused", "broken pipe", "timeout", "timed out", "network", "unreachable",
			"no such host", "temporary", "tls", "http2", "goaway", "failed to", "://",
		} {
			if strings.Contains(text, word) {
				t.Errorf("%q is in %q", word, err)
			}
		}
		if !strings.HasPrefix(err.Error(), "headway: ") {
			t.Errorf("got %q, want it to begin with the package", err)
		}
	}
}

// S12, the error of it.
func TestKeyErrorThroughClient(t *testing.T) {
	cause := errors.New("no tenant")
	err := throughClient(t, &headway.KeyError{Policy: "p", Rule: "tenant", Err: cause})
	if !errors.Is(err, headway.ErrKey) || !errors.Is(err, cause) || errors.Is(err, headway.ErrThrottled) {
		t.Errorf("%v: want it to be ErrKey and its cause", err)
	}
	if err.Timeout() {
		t.Error("Timeout: got true, want false")
	}
	want := `headway: policy "p" cannot apply rule "tenant": no tenant`
	if got := err.Err.Error(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
