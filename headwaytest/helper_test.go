package headwaytest_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/headway-go/headway/headwaytest"
)

const url = "https://api.example.com/items"

// newRequest returns a GET with headers, given as names and values in turn.
func newRequest(t testing.TB, ctx context.Context, url string, headers ...string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return req
}

// status sends a GET and returns the status of its answer.
func status(t testing.TB, base http.RoundTripper, url string, headers ...string) int {
	t.Helper()
	resp, err := base.RoundTrip(newRequest(t, t.Context(), url, headers...))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

// script returns a Vendor that answers everything so.
func script(reply headwaytest.Reply) *headwaytest.Vendor {
	return &headwaytest.Vendor{Script: func(_ headwaytest.Arrival, r *headwaytest.Reply) {
		header := r.Header
		if *r = reply; r.Header == nil {
			r.Header = header
		}
		if r.Status == 0 {
			r.Status = http.StatusOK
		}
	}}
}

// A fakeTB is a test that only remembers how it failed.
type fakeTB struct {
	testing.TB // nil: whatever else is called panics
	failures   []string
}

func (f *fakeTB) Helper() {}

func (f *fakeTB) Errorf(format string, args ...any) {
	f.failures = append(f.failures, fmt.Sprintf(format, args...))
}

// passes fails the test if the assertion has failed.
func (f *fakeTB) passes(t *testing.T) {
	t.Helper()
	if len(f.failures) > 0 {
		t.Errorf("got the failures %q, want none", f.failures)
	}
}

// fails fails the test unless the assertion has failed once, with this text.
func (f *fakeTB) fails(t *testing.T, want string) {
	t.Helper()
	if len(f.failures) != 1 || f.failures[0] != want {
		t.Errorf("got the failures %q, want\n%s", f.failures, want)
	}
}
