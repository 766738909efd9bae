package debug

import (
	"net"
	"net/netip"
	"strings"
)

// answersTo reports whether the page answers to the name that a request asks for, the
// value of its Host header. A page of another site can have its name lead here, but
// cannot make the browser ask for one of these.
func (h *handler) answersTo(host string) bool {
	name := hostname(host)
	if name == "" {
		return false
	}
	if name == "localhost" || h.names[name] || h.names["*"] {
		return true
	}
	addr, err := netip.ParseAddr(name)
	return err == nil && addr.Unmap().IsLoopback()
}

// hostname returns a host without port, brackets and a final dot, in lower case.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	} else if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		host = host[1 : len(host)-1]
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}
