package headway

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// A hostTable finds the policy of a host. It is filled first and read-only
// afterwards.
type hostTable struct {
	exact map[hostPort]int
	// suffix holds "*.example.com" as ".example.com" and "*" as "".
	suffix map[hostPort]int
}

// A hostPort is a canonical host name and a port, which is "" in a pattern
// that means every port.
type hostPort struct{ name, port string }

// newHostTable returns the table of policies that validatePolicies has passed.
func newHostTable(policies []Policy) *hostTable {
	t := &hostTable{exact: map[hostPort]int{}, suffix: map[hostPort]int{}}
	for i := range policies {
		for _, p := range policies[i].Hosts {
			if k, wild, err := parseHostPattern(p); err == nil {
				t.patterns(wild)[k] = i
			}
		}
	}
	return t
}

func (t *hostTable) patterns(wild bool) map[hostPort]int {
	if wild {
		return t.suffix
	}
	return t.exact
}

// lookup returns the canonical text of a URL's host, under which its state is
// kept, and the index of its policy, -1 without one. Two hosts that differ in
// nothing but case, a default port or a trailing dot have one text. It does not
// allocate when host is canonical or differs from it by a default port alone.
// An empty scheme has no default port.
func (t *hostTable) lookup(scheme, host string) (key string, policy int) {
	key, k := canonicalHost(scheme, host)
	if k.name == "" {
		return key, -1
	}
	if i, ok := find(t.exact, k); ok {
		return key, i
	}
	if len(t.suffix) == 0 {
		return key, -1
	}
	for i := 1; i < len(k.name); i++ { // from the left: the longest suffix first
		if k.name[i] == '.' {
			if p, ok := find(t.suffix, hostPort{k.name[i:], k.port}); ok {
				return key, p
			}
		}
	}
	if p, ok := find(t.suffix, hostPort{"", k.port}); ok {
		return key, p
	}
	return key, -1
}

// find looks for the pattern with k's port, then for the one with any port.
func find(m map[hostPort]int, k hostPort) (int, bool) {
	if i, ok := m[k]; ok {
		return i, true
	}
	i, ok := m[hostPort{name: k.name}]
	return i, ok
}

// canonicalHost returns the canonical text of a URL's host, and its parts with
// the port that will be dialled.
func canonicalHost(scheme, host string) (key string, k hostPort) {
	name, port, _ := cutPort(host)
	k.name = strings.TrimSuffix(strings.ToLower(name), ".")
	k.port = strings.TrimLeft(port, "0")
	standard := ""
	switch scheme {
	case "http":
		standard = "80"
	case "https":
		standard = "443"
	}
	if k.port == "" || k.port == standard {
		k.port = standard
		return k.name, k
	}
	if k.name == name && k.port == port {
		return host, k
	}
	return k.name + ":" + k.port, k
}

// cutPort splits host at the colon before its port, if there is one.
func cutPort(host string) (name, port string, found bool) {
	i := strings.LastIndexByte(host, ':')
	if i <= strings.LastIndexByte(host, ']') { // none, or within an IPv6 address
		return host, "", false
	}
	return host[:i], host[i+1:], true
}

// parseHostPattern returns what a pattern of Policy.Hosts is kept under, and
// whether it stands for the names that end in it. The error says what is wrong
// and what would be right.
func parseHostPattern(pattern string) (k hostPort, wild bool, err error) {
	if pattern == "" {
		return k, false, errors.New(`want a host such as "api.example.com", "*.example.com" or "*"`)
	}
	if i := strings.IndexAny(pattern, "/?#@ \t\r\n"); i >= 0 {
		return k, false, fmt.Errorf("%q has no place in it; want a bare host without scheme, user, path and query", pattern[i])
	}
	name, port, found := cutPort(pattern)
	if strings.Contains(name, ":") && name[0] != '[' {
		return k, false, errors.New(`want an IPv6 address in brackets, such as "[::1]:8080"`)
	}
	if found {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || port[0] == '0' {
			return k, false, fmt.Errorf("port %q: want 1 to 65535", port)
		}
	}
	name = strings.ToLower(name)
	if name == "*" {
		return hostPort{"", port}, true, nil
	}
	if strings.HasPrefix(name, "[") {
		inner, closed := strings.CutSuffix(name[1:], "]")
		if addr, err := netip.ParseAddr(inner); !closed || err != nil || !addr.Is6() {
			return k, false, errors.New(`want an IPv6 address between the brackets, such as "[::1]:8080"`)
		}
		return hostPort{name, port}, false, nil
	}
	rest, wild := strings.CutPrefix(name, "*.")
	rest = strings.TrimSuffix(rest, ".")
	if err := validLabels(rest); err != nil {
		return k, false, err
	}
	if wild {
		rest = "." + rest
	}
	return hostPort{rest, port}, wild, nil
}

// validLabels accepts the parts of a name that a URL can hold and that are of
// use in a pattern. Bytes above ASCII pass: they are the URL's business.
func validLabels(name string) error {
	for label := range strings.SplitSeq(name, ".") {
		if label == "" {
			return errors.New("a part between dots is empty; want names between them")
		}
		for i := range len(label) {
			switch c := label[i]; {
			case c >= 0x80 || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_':
			case c == '*':
				return errors.New(`"*" can only stand alone or as the first part, such as "*.example.com"`)
			default:
				return fmt.Errorf("%q has no place in it; want letters, digits, hyphens and dots", c)
			}
		}
	}
	return nil
}
