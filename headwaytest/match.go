package headwaytest

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/headway-go/headway/limiter"
)

// An account names one budget: its limit by place, negative for Vendor.Limits,
// and whose it is.
type account struct {
	place     int
	host, key string
}

// A cost is what a request takes from one budget.
type cost struct {
	account
	limit limiter.Limit
	units int64
}

// costs returns what a request to host takes, under all that applies to it.
func (v *Vendor) costs(req *http.Request, host string) []cost {
	if v.Shared {
		host = ""
	}
	var list []cost
	for i, l := range v.Limits {
		list = append(list, cost{account{place: -1 - i, host: host}, l, 1})
	}
	for i, r := range v.Rules {
		if len(r.Methods) > 0 && !slices.Contains(r.Methods, method(req)) || !matchPath(r.Path, req.URL.EscapedPath()) {
			continue
		}
		c := cost{account{place: i, host: host}, r.Limit, 1}
		var keyErr, costErr error
		if r.Key != nil {
			c.key, keyErr = r.Key(req)
		}
		if r.Cost != nil {
			c.units, costErr = r.Cost(req)
		}
		if keyErr == nil && costErr == nil && (r.Key == nil || c.key != "") && c.units >= 0 {
			list = append(list, c)
		}
	}
	return list
}

func method(req *http.Request) string {
	if req.Method == "" {
		return http.MethodGet
	}
	return req.Method
}

// matchPath reports whether a path as it was sent matches the pattern of a Rule.
func matchPath(pattern, path string) bool {
	if pattern == "" {
		return true
	}
	want, got := strings.Split(pattern, "/")[1:], strings.Split("/"+strings.TrimPrefix(path, "/"), "/")[1:]
	for i, w := range want {
		last := i == len(want)-1
		switch {
		case last && (w == "" || strings.HasSuffix(w, "...}")):
			return len(got) > i // whatever comes below
		case last && w == "{$}":
			return len(got) == i+1 && got[i] == ""
		case i == len(got):
			return false
		case strings.HasPrefix(w, "{"):
			if got[i] == "" {
				return false
			}
		case unescaped(w) != unescaped(got[i]):
			return false
		}
	}
	return len(got) == len(want)
}

func unescaped(segment string) string {
	if s, err := url.PathUnescape(segment); err == nil {
		return s
	}
	return segment
}

// canonical returns a host as budgets know it: in lower case, without a dot at
// its end and without the scheme's own port.
func canonical(scheme, host string) string {
	host = strings.ToLower(host)
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		return strings.TrimSuffix(host, ".")
	}
	name = strings.TrimSuffix(name, ".")
	switch {
	case port == "", scheme == "http" && port == "80", scheme == "https" && port == "443":
		if strings.Contains(name, ":") {
			return "[" + name + "]"
		}
		return name
	}
	return net.JoinHostPort(name, port)
}
