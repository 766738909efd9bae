package headwaytest_test

import (
	"errors"
	"net"
	"net/http"
	"testing"

	"github.com/headway-go/headway/headwaytest"
)

// An idler counts how often it is told to close idle connections.
type idler struct {
	headwaytest.Vendor
	closed int
}

func (i *idler) CloseIdleConnections() { i.closed++ }

func TestByHost(t *testing.T) {
	a, b := new(idler), new(idler)
	hosts := headwaytest.ByHost{"a.example.com": a, "b.example.com:8443": b, "nil.example.com": nil}
	for _, url := range []string{"https://a.example.com", "https://A.Example.com.:443/x", "http://a.example.com:80", "https://b.example.com:8443"} {
		if got := status(t, hosts, url); got != 200 {
			t.Errorf("%s: got %d, want 200", url, got)
		}
	}
	if na, _ := a.Count(); na != 3 {
		t.Errorf("a: got %d requests, want 3", na)
	}
	if nb, _ := b.Count(); nb != 1 {
		t.Errorf("b: got %d requests, want 1", nb)
	}
	for _, url := range []string{"https://b.example.com", "https://a.example.com:8443", "https://nil.example.com", "https://c.example.com"} {
		body := new(headwaytest.Body)
		req := newRequest(t, t.Context(), url)
		req.Body = body
		resp, err := hosts.RoundTrip(req)
		var missing *net.DNSError
		if resp != nil || !errors.As(err, &missing) || !missing.IsNotFound || !body.Closed() {
			t.Errorf("%s: got %v, %v, closed %t, want no such host and a closed body", url, resp, err, body.Closed())
		}
	}
	if resp, err := hosts.RoundTrip(new(http.Request)); resp != nil || err == nil {
		t.Errorf("no URL: got %v, %v, want an error", resp, err)
	}
	hosts.CloseIdleConnections()
	if a.closed != 1 || b.closed != 1 {
		t.Errorf("idle connections closed %d and %d times, want once each", a.closed, b.closed)
	}
}
