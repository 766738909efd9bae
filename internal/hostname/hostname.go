// Package hostname converts all spellings of a host to one form: the address that
// net/http dials for it.
package hostname

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"strings"

	"golang.org/x/net/idna"
)

// Canonical returns the canonical text of a URL's host, and its parts with the
// port that is dialled. The text leaves out the default port of the scheme; an
// empty scheme has none. Two hosts that differ in case, a default port, leading
// zeros of a port, a trailing dot, the form of an international name, or the
// spelling of an IP address have one text, of MostText bytes at most. Canonical does not
// allocate when host is canonical, or differs by a default port or a trailing dot alone.
func Canonical(scheme, host string) (text, name, port string) {
	spelled, digits, _ := Cut(host)
	name = Name(spelled)
	port = strings.TrimLeft(digits, "0")
	if port == "" && digits != "" {
		port = "0"
	}
	standard := ""
	switch scheme {
	case "http":
		standard = "80"
	case "https":
		standard = "443"
	}
	switch {
	case port == "" || port == standard:
		return bounded(name), name, standard
	case name == spelled && port == digits:
		return bounded(host), name, port
	}
	return bounded(name + ":" + port), name, port
}

// MostText is the length that the text of a host does not exceed. A name that can be
// looked up has 253 bytes at most.
const MostText = 320

// bounded cuts a text that is too long, and appends its digest.
func bounded(text string) string {
	if len(text) <= MostText {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return strings.ToValidUTF8(text[:MostText-33], "") + "~" + hex.EncodeToString(sum[:16])
}

// Cut splits host at the colon before its port, as url.URL does.
func Cut(host string) (name, port string, found bool) {
	i := strings.LastIndexByte(host, ':')
	if i < 0 || strings.Trim(host[i+1:], "0123456789") != "" {
		return host, "", false
	}
	return host[:i], host[i+1:], true
}

// Name returns the canonical form of a host without a port. An IPv6 address stands
// in brackets. A name that net/http could not look up stays as it is, but for the
// case of its letters.
func Name(name string) string {
	bare := name
	if n := len(name); n >= 2 && name[0] == '[' && name[n-1] == ']' {
		bare = name[1 : n-1]
	}
	if !ascii(bare) {
		if to, err := ToASCII(bare); err == nil {
			bare = to
		}
	}
	if !strings.Contains(bare, ":") {
		return lower(strings.TrimSuffix(bare, "."))
	}
	addr, err := netip.ParseAddr(bare)
	if addr = addr.Unmap(); addr.Is4() {
		return addr.String() // the dialler sees no difference
	}
	var few [64]byte
	text := few[:0]
	if err == nil {
		text = addr.AppendTo(text)
	} else {
		text = append(text, lower(bare)...)
	}
	if len(bare) < len(name) && string(text) == bare {
		return name
	}
	return "[" + string(text) + "]"
}

// ToASCII returns the form in which net/http looks up an international name. It returns
// an error if net/http cannot look it up.
func ToASCII(name string) (string, error) {
	if ascii(name) {
		return name, nil
	}
	return idna.Lookup.ToASCII(name)
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// lower is strings.ToLower for ASCII only: other letters that are left at this point are
// dialled unchanged.
func lower(s string) string {
	for i := range len(s) {
		if 'A' <= s[i] && s[i] <= 'Z' {
			b := []byte(s)
			for ; i < len(b); i++ {
				if 'A' <= b[i] && b[i] <= 'Z' {
					b[i] += 'a' - 'A'
				}
			}
			return string(b)
		}
	}
	return s
}
