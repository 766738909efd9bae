package debug

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/breaker"
)

const (
	maxHosts = 100   // on the page, and in JSON by default
	maxRows  = 20    // of each table of a host on the page
	jsonRows = 100   // the same in JSON by default
	mostJSON = 1000  // hosts, at most
	mostRows = 10000 // rows of each table, at most
)

// A window selects the hosts to show.
type window struct {
	q                   string // a part of the policy or host
	offset, limit, rows int
	page                bool // it is for the page
}

// windowOf returns the window of a query.
func windowOf(query url.Values, page bool) (window, error) {
	in := window{q: query.Get("q"), limit: maxHosts, rows: maxRows, page: page}
	if !page {
		in.rows = jsonRows
	}
	for _, p := range []struct {
		name        string
		to          *int
		least, most int
	}{{"offset", &in.offset, 0, 1 << 30}, {"limit", &in.limit, 0, mostJSON}, {"rows", &in.rows, 0, mostRows}} {
		text := query.Get(p.name)
		if text == "" || page && p.name != "offset" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < p.least {
			return in, fmt.Errorf("%s must be a number of at least %d", p.name, p.least)
		}
		*p.to = min(n, p.most)
	}
	return in, nil
}

// byImportance sorts hosts: those with the longest lines come first, then those with
// pauses, with breakers that are not closed, and with requests in flight; all else by
// name.
func byImportance(hosts []headway.HostStatus) {
	down := make(map[place]breaker.State)
	for _, h := range hosts {
		if w := worst(h); w != breaker.Closed {
			down[place{h.Policy, h.Host}] = w
		}
	}
	slices.SortStableFunc(hosts, func(a, b headway.HostStatus) int {
		return cmp.Or(cmp.Compare(b.Waiting, a.Waiting), cmp.Compare(len(b.Pauses), len(a.Pauses)),
			cmp.Compare(down[place{b.Policy, b.Host}], down[place{a.Policy, a.Host}]), cmp.Compare(b.InFlight, a.InFlight))
	})
}
