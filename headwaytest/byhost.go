package headwaytest

import (
	"net"
	"net/http"
)

// ByHost is an http.RoundTripper that hands each request to that of its host: a
// Vendor for each, say. The names are in lower case, and have a port only where
// it is not the scheme's own. A host that is not there cannot be found, as in
// DNS. It must not be changed while in use.
type ByHost map[string]http.RoundTripper

// RoundTrip sends the request to its host.
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

// CloseIdleConnections closes those of every host that can.
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
