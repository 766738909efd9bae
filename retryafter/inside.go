package retryafter

import (
	"net/http"
	"strings"
	"time"
	_ "unsafe" // for go:linkname
)

// The functions of this file are what the Transport and package retry need beyond
// the exported methods, which are as good for one response as for many, and simpler.
// They are exported to this module only, by internal/inside, which links to them by
// name and has a test that compares the signatures.

// readTo is r.Read into the zero Signal s, which it does not copy: a Signal holds
// its limits and is as large as several cache lines. It reports whether the response
// says anything. It must keep neither s nor a pointer into it, for internal/inside
// promises the compiler that s does not escape.
//
//go:linkname readTo
func readTo(r *Reader, s *Signal, status int, h http.Header, now time.Time) bool {
	said := r.set != 0 && (r.read(s, status, h, now) || s.Throttled)
	if len(r.custom) > 0 && now.IsZero() {
		now = time.Now()
	}
	for _, d := range r.custom {
		if c, ok := d.Read(status, h, now); ok {
			s.join(&c, d.Name())
			said = true
		}
	}
	return said
}

// forHost returns a Reader of the same dialects for another host: r itself where
// that host is known for none of them, as most are.
//
//lint:ignore U1000 internal/inside links to it
//go:linkname forHost
func forHost(r *Reader, host string) *Reader {
	known := wellKnown(host)
	if known == r.host || known != nil && !r.reads(known) {
		if r.host == nil || known == r.host {
			return r
		}
		known = nil
	}
	other := *r
	other.host = known
	return &other
}

// needsBody reports whether the first 4 KiB of the body should be passed to
// r.ReadBody: whether the response is a refusal, its body is no stream, and one of
// the dialects may recognize a throttle by it. A custom dialect may do so under any
// status from 400 on, and by any text. It is false for every success, and for a
// content coding other than gzip and deflate. A body in one of these two must be
// decoded first.
//
//go:linkname needsBody
func needsBody(r *Reader, status int, h http.Header) bool {
	if status >= 400 && r.customBodies() {
		t, _ := mediaType(h)
		return textual(h) || strings.HasPrefix(t, "text/") && !coded(h) && !streamed(h)
	}
	switch status {
	case http.StatusBadRequest: // ThrottlingException, and everything that is wrong with a request
		if r.bodies()&bodyAWS == 0 || r.unsure() {
			return false
		}
	case http.StatusForbidden, http.StatusTooManyRequests, http.StatusServiceUnavailable:
	default:
		return false
	}
	return r.bodies() != 0 && textual(h)
}

// fromCache reports whether a cache has sent the response that was read into s, and had
// kept it: one that has an Age (RFC 9111, section 5.1) and is marked as a hit, or that a
// cache in this process has marked. Its limits are no news.
//
//lint:ignore U1000 internal/inside links to it
//go:linkname fromCache
func fromCache(r *Reader, s *Signal, h http.Header) bool {
	if r.set != 0 && !s.stored { // it has been looked for already
		return false
	}
	if h["X-From-Cache"] != nil {
		return true
	}
	if age := h["Age"]; len(age) == 0 || strings.Trim(age[0], " 0") == "" {
		return false
	}
	for _, name := range [...]string{"Cache-Status", "X-Cache", "Cf-Cache-Status", "X-Cache-Status", "X-Proxy-Cache", "X-Varnish-Cache", "X-Vercel-Cache"} {
		for _, v := range h[name] {
			if strings.Contains(strings.ToLower(v), "hit") {
				return true
			}
		}
	}
	return false
}
