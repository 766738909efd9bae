package match

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/headway-go/headway/internal/hostname"
)

// A HostTable finds the policy of a host, by its index. It is filled first and read-only
// afterwards.
type HostTable struct {
	exact map[hostPort]int
	// suffix holds "*.example.com" as ".example.com" and "*" as "".
	suffix map[hostPort]int
}

// A hostPort is a canonical host name and a port, which is "" in a pattern
// that means every port.
type hostPort struct{ name, port string }

// NewHostTable returns an empty table.
func NewHostTable() *HostTable {
	return &HostTable{exact: map[hostPort]int{}, suffix: map[hostPort]int{}}
}

// Add puts the policy with an index under a pattern, and returns the one that has been
// there; -1 for none. The error names what is wrong with the pattern.
func (t *HostTable) Add(pattern string, policy int) (before int, err error) {
	k, wild, err := parseHostPattern(pattern)
	if err != nil {
		return -1, err
	}
	in := t.exact
	if wild {
		in = t.suffix
	}
	before, taken := in[k]
	if !taken {
		before = -1
	}
	in[k] = policy
	return before, nil
}

// Lookup returns the canonical text of a URL's host, under which its state is
// kept, and the index of its policy, -1 without one. See hostname.Canonical for
// which hosts have one text.
func (t *HostTable) Lookup(scheme, host string) (key string, policy int) {
	var k hostPort
	key, k.name, k.port = hostname.Canonical(scheme, host)
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

// parseHostPattern returns what a pattern of Policy.Hosts is kept under, and
// whether it stands for the names that end in it. The error says what is wrong
// and what would be right.
func parseHostPattern(pattern string) (k hostPort, wild bool, err error) {
	if pattern == "" {
		return k, false, errors.New(`want a host such as "api.example.com", "*.example.com" or "*"`)
	}
	if i := strings.IndexAny(pattern, "/?#@ \t\r\n"); i >= 0 {
		return k, false, fmt.Errorf("%q is not allowed; want a bare host without scheme, user, path and query", pattern[i])
	}
	name, port, found := pattern, "", false
	if i := strings.LastIndexByte(pattern, ':'); i > strings.LastIndexByte(pattern, ']') {
		name, port, found = pattern[:i], pattern[i+1:], true
	}
	if strings.Contains(name, ":") && name[0] != '[' {
		return k, false, errors.New(`want an IPv6 address in brackets, such as "[::1]:8080"`)
	}
	if found {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || port[0] == '0' {
			return k, false, fmt.Errorf("port %q: want 1 to 65535", port)
		}
	}
	if name == "*" {
		return hostPort{"", port}, true, nil
	}
	if strings.HasPrefix(name, "[") {
		inner, closed := strings.CutSuffix(name[1:], "]")
		if addr, err := netip.ParseAddr(inner); !closed || err != nil || !addr.Is6() {
			return k, false, errors.New(`want an IPv6 address between the brackets, such as "[::1]:8080"`)
		}
		return hostPort{hostname.Name(name), port}, false, nil
	}
	rest, wild := strings.CutPrefix(name, "*.")
	if rest, err = hostname.ToASCII(rest); err != nil {
		return k, false, fmt.Errorf("want a name that can be looked up: %w", err)
	}
	rest = strings.TrimSuffix(strings.ToLower(rest), ".")
	if err := validLabels(rest); err != nil {
		return k, false, err
	}
	if wild {
		rest = "." + rest
	}
	return hostPort{rest, port}, wild, nil
}

// validLabels accepts the parts of a canonical name that a URL can hold and that
// are of use in a pattern.
func validLabels(name string) error {
	for label := range strings.SplitSeq(name, ".") {
		if label == "" {
			return errors.New("a part between dots is empty; want names between them")
		}
		for i := range len(label) {
			switch c := label[i]; {
			case c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_':
			case c == '*':
				return errors.New(`"*" can only stand alone or as the first part, such as "*.example.com"`)
			default:
				return fmt.Errorf("%q is not allowed; want letters, digits, hyphens and dots", c)
			}
		}
	}
	return nil
}
