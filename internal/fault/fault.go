// Package fault tells whether a request that has failed was the caller's fault: it
// could not be sent as it is, or its body failed. Such an error says nothing about
// the server, and the same request would fail again.
package fault

import (
	"errors"
	"io/fs"
	"net"
	"net/http"
	"strings"
)

// texts are how those errors of net/http begin that say that the request cannot be
// sent. Nearly all are of types that are not exported, or of no type of their own,
// so that only the text tells them apart. The tests of package retry provoke them
// over real connections, and fail where another version of Go words one otherwise.
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
	// Over HTTP/2 alone: a name or value that only HTTP/1 knows, an unusable :path,
	// and more than this server accepts.
	"http2: invalid ",
	"http2: unsupported scheme",
	"http2: request header list larger than peer's advertised limit",
	// The body is not as long as the request says.
	"http: Request.ContentLength=",
	"http: ContentLength=",
	"http2: request body larger than specified content length",
	// By Request.Cancel or Transport.CancelRequest; what a context ends has its error.
	"net/http: request canceled",
}

// OfCaller reports whether a request has failed with err since it cannot be sent.
// What a body returns is the caller's own error, which looks like any other: Watch
// finds out about that.
func OfCaller(req *http.Request, err error) bool {
	var file *fs.PathError
	var addr *net.AddrError
	return errors.Is(err, http.ErrBodyReadAfterClose) ||
		errors.As(err, &addr) && addr.Err == "invalid port" || // net.Dial's, of one that is a number
		errors.As(err, &file) && (file.Op == "read" || file.Op == "close") || // no connection has that; a body that is a file does
		says(err) || unwritable(req, err)
}

// unwritable reports whether it was when it wrote the request that net/http found
// that it cannot. Then it closes the connection, and of that error and the one of a
// read that the close ends either may come first. So the request itself is looked at.
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

// says reports whether err, or one that it wraps, begins like one of texts.
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
