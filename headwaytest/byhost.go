package headwaytest

import (
	"net"
	"net/http"
)

// ByHost is an http.RoundTripper that passes each request to the RoundTripper of
// its host, such as one Vendor for each. The keys are host names in lower case,
// with a port only if it is not the default port of the scheme. A missing host
// fails like one that DNS does not know. The map must not change while in use.
type ByHost map[string]http.RoundTripper

// RoundTrip passes the request to the RoundTripper of its host.
func (h ByHost) RoundTrip(req *http.Request) (*http.Response, error) {
	host := ""
	if req.URL != nil {
		host = canonical(req.URL.Scheme, req.URL.Host)
	}
	if base := h[host]; base != nil {
		return base.RoundTrip(req)
	}
	if req.Body != nil {
		req.Body.Close()
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

// CloseIdleConnections closes the idle connections of every host.
func (h ByHost) CloseIdleConnections() {
	for _, base := range h {
		closeIdle(base)
	}
}

func closeIdle(base http.RoundTripper) {
	if c, ok := base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
