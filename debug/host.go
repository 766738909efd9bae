package debug

import (
	"net/netip"
	"strings"

	"github.com/headway-go/headway/internal/hostname"
)

// servesName reports whether the page is served under the name in a request's Host
// header. A page of another site can point its own name here, but cannot make the
// browser send one of these.
func (h *handler) servesName(host string) bool {
	name := nameOf(host)
	if name == "" {
		return false
	}
	if name == "localhost" || h.names[name] || h.names["*"] {
		return true
	}
	addr, err := netip.ParseAddr(name)
	return err == nil && addr.Unmap().IsLoopback()
}

// nameOf returns the canonical form of a host without its port and brackets: the one of
// an international name is what browsers send.
func nameOf(host string) string {
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.Unmap().String()
	}
	name, _, _ := hostname.Cut(host)
	return strings.Trim(hostname.Name(name), "[]")
}
