package respbody

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
	"weak"
)

type roundTripperFunc func(*http.Request) (*http.Response, error)

func (f roundTripperFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// An http.Client with a Timeout hides the body of the response behind its own.
func TestAttachedThroughClient(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer srv.Close()
	defer srv.Client().CloseIdleConnections()
	for _, timeout := range []time.Duration{0, time.Minute} {
		c := &http.Client{Timeout: timeout, Transport: roundTripperFunc(func(req *http.Request) (*http.Response, error) {
			resp, err := srv.Client().Transport.RoundTrip(req)
			if err == nil {
				Attach(resp, timeout)
			}
			return resp, err
		})}
		resp, err := c.Get(srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got := Attached(resp); got != timeout {
			t.Errorf("got %v, want %v", got, timeout)
		}
	}
}

func TestAttached(t *testing.T) {
	one, two := &http.Response{}, &http.Response{}
	if got := Attached(one); got != nil {
		t.Errorf("nothing attached: got %v, want nil", got)
	}
	Attach(one, 1)
	Attach(two, 2)
	Attach(two, 3) // a base that hands out the same response again
	if got := Attached(one); got != 1 {
		t.Errorf("got %v, want 1", got)
	}
	if got := Attached(two); got != 3 {
		t.Errorf("got %v, want 3", got)
	}
}

//go:noinline
func attachToGarbage() weak.Pointer[http.Response] {
	resp := &http.Response{}
	Attach(resp, make([]byte, 100))
	return weak.Make(resp)
}

// What is attached goes with its response.
func TestAttachedIsForgotten(t *testing.T) {
	p := attachToGarbage()
	if !collected(func() bool { _, ok := attachments.Load(p); return !ok }) {
		t.Error("still there after the response is gone")
	}
}
