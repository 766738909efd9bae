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

// decode returns what the first bytes of a body are once its content coding is
// undone, as far as they go: as many bytes as are read of any other body at most,
// whatever they grow to. A caller that asks for a coding itself gets it from
// net/http as it came. Without a coding, and where it is not as it says, prefix is
// returned.
func decode(h http.Header, prefix []byte) []byte {
	var text []byte
	switch coding(h) {
	case "gzip", "x-gzip":
		if r, err := gzip.NewReader(bytes.NewReader(prefix)); err == nil {
			text = head(r)
		}
	case "deflate": // zlib's, by RFC 9110; bare of old
		if r, err := zlib.NewReader(bytes.NewReader(prefix)); err == nil {
			text = head(r)
		} else if text = head(flate.NewReader(bytes.NewReader(prefix))); isText(prefix) && !isText(text) {
			return prefix // nearly anything can be read as a bare stream
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

// head returns what can be read of r, at most.
func head(r io.Reader) []byte {
	text, _ := io.ReadAll(io.LimitReader(r, most)) // cut off: what came before counts
	return text
}
