// Package fault finds out whether the caller caused the failure of a request: it could not
// be sent, or its body failed. Such an error says nothing about the server, and the same
// request would fail again.
package fault

import (
	"errors"
	"io/fs"
	"net"
	"net/http"
	"strings"
)

// texts are the beginnings of net/http's errors about requests that cannot be sent. Nearly
// all of these errors have an unexported type or none of their own, so that only the text
// identifies them. The tests of package retry provoke them over real connections, and
// fail if another version of Go words one differently.
var texts = []string{
	"http: nil Request.URL",
	"http: nil Request.Header",
	"http: no Host in request URL",
	"http: Request.Write on Request with no Host or URL set",
	"http: invalid Host header",
	"net/http: invalid header ",
	"net/http: invalid trailer ",
	"net/http: invalid method ",
	"net/http: can't write control character in Request.URL",
	"unsupported protocol scheme ",
	"invalid Trailer key ",
	"net/http: extended connect not supported by peer",
	// Over HTTP/2 only: a name or value that only HTTP/1 allows, an invalid :path, and
	// headers larger than this server accepts.
	"http2: invalid ",
	"http2: unsupported scheme",
	"http2: request header list larger than peer's advertised limit",
	// The body does not have the declared length.
	"http: Request.ContentLength=",
	"http: ContentLength=",
	"http2: request body larger than specified content length",
	// By Request.Cancel or Transport.CancelRequest. If a context ends the request, the
	// error is the context's.
	"net/http: request canceled",
}

// OfCaller reports whether a request has failed with err because it cannot be sent. It
// does not recognize the error of a body, which may be any error: see Watch.
func OfCaller(req *http.Request, err error) bool {
	var file *fs.PathError
	var addr *net.AddrError
	return errors.Is(err, http.ErrBodyReadAfterClose) ||
		errors.As(err, &addr) && addr.Err == "invalid port" || // of net.Dial, for a number
		errors.As(err, &file) && (file.Op == "read" || file.Op == "close") || // of a body that is a file, never of a connection
		says(err) || unwritable(req, err)
}

// unwritable reports whether net/http could not write the request. In that case it closes
// the connection, and either its own error or that of the interrupted read may come first.
// So unwritable checks the request itself.
func unwritable(req *http.Request, err error) bool {
	if req.URL == nil || !errors.Is(err, net.ErrClosed) {
		return false
	}
	host := req.Host
	if host == "" {
		host = req.URL.Host
	}
	for name := range req.Trailer {
		switch http.CanonicalHeaderKey(name) {
		case "Transfer-Encoding", "Trailer", "Content-Length":
			return true
		}
	}
	return req.Body == nil && req.ContentLength != 0 ||
		strings.ContainsFunc(req.URL.RequestURI(), isControl) ||
		strings.ContainsAny(host, " \"#<>?@\\^`{|}") || strings.ContainsFunc(host, isControl)
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// says reports whether err, or an error that it wraps, begins like one of texts.
func says(err error) bool {
	text := err.Error()
	for _, t := range texts {
		if strings.HasPrefix(text, t) {
			return true
		}
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		inner := e.Unwrap()
		return inner != nil && says(inner)
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			if inner != nil && says(inner) {
				return true
			}
		}
	}
	return false
}
