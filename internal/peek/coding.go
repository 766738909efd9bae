package peek

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"strings"
)

// decode undoes the content coding of the first bytes of a body, as far as they go, and
// returns at most as many bytes as are read of any other body. net/http leaves a coding in
// place if the caller has requested it. Without a coding, or if the bytes do not match it,
// decode returns prefix.
func decode(h http.Header, prefix []byte) []byte {
	var text []byte
	switch coding(h) {
	case "gzip", "x-gzip":
		if r, err := gzip.NewReader(bytes.NewReader(prefix)); err == nil {
			text = head(r)
		}
	case "deflate": // zlib by RFC 9110, a raw stream by old practice
		if r, err := zlib.NewReader(bytes.NewReader(prefix)); err == nil {
			text = head(r)
		} else if text = head(flate.NewReader(bytes.NewReader(prefix))); isText(prefix) && !isText(text) {
			return prefix // nearly any bytes can be decoded as a raw stream
		}
	}
	if len(text) == 0 {
		return prefix
	}
	return text
}

// coding returns the one content coding of a body, in lower case, or "".
func coding(h http.Header) string {
	if v := h["Content-Encoding"]; len(v) == 1 {
		return strings.ToLower(strings.TrimSpace(v[0]))
	}
	return ""
}

// isText reports whether b begins like JSON or XML.
func isText(b []byte) bool {
	b = bytes.TrimLeft(b, " \t\r\n")
	return len(b) > 0 && (b[0] == '{' || b[0] == '[' || b[0] == '<')
}

// head returns what can be read of r, up to most bytes.
func head(r io.Reader) []byte {
	text, _ := io.ReadAll(io.LimitReader(r, most)) // an error at the cut is expected
	return text
}
