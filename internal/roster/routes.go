package roster

import (
	"hash/maphash"
	"strings"
	"sync/atomic"

	"github.com/headway-go/headway/internal/hostname"
)

// Routes remembers what was found out for the requests to one host, by the spelling of
// their URLs, while one set of policies is in force: a cache that may forget any. NewRoutes
// makes one.
//
// It is read without a lock: a slot is replaced as a whole, and so is the table of slots
// when it grows. Another goroutine may fill a slot at the same time and win; what is lost
// is found out again.
type Routes[R any] struct {
	seed  maphash.Seed // assigned once
	slots atomic.Pointer[[]atomic.Pointer[routed[R]]]
}

type routed[R any] struct {
	policies     uint64 // which set of policies it holds under
	scheme, host string
	route        R
	used         atomic.Bool // since another host last wanted the slot
}

// The cache grows from fewRoutes to mostRoutes when hosts want the same slots. A
// host has two: one that its hash gives, and that one's neighbour.
const (
	fewRoutes  = 64
	mostRoutes = 1 << 13
)

// NewRoutes returns an empty cache.
func NewRoutes[R any]() *Routes[R] {
	rs := &Routes[R]{seed: maphash.MakeSeed()}
	slots := make([]atomic.Pointer[routed[R]], fewRoutes)
	rs.slots.Store(&slots)
	return rs
}

func (rs *Routes[R]) pair(slots []atomic.Pointer[routed[R]], host string) (first, second *atomic.Pointer[routed[R]]) {
	i := maphash.String(rs.seed, host) & uint64(len(slots)-1)
	return &slots[i], &slots[i^1]
}

// Find returns what is remembered of a URL's scheme and host under a set of policies, or
// nil. The caller only reads it.
func (rs *Routes[R]) Find(policies uint64, scheme, host string) *R {
	first, second := rs.pair(*rs.slots.Load(), host)
	r := first.Load()
	if r == nil || r.host != host {
		r = second.Load()
	}
	if r == nil || r.host != host || r.policies != policies || r.scheme != scheme {
		return nil
	}
	if !r.used.Load() {
		r.used.Store(true)
	}
	return &r.route
}

// slot returns where the route of a host is to be put; nil where others are of more use,
// or the host is too long to be kept.
func (rs *Routes[R]) slot(policies uint64, host string) *atomic.Pointer[routed[R]] {
	if len(host) > hostname.MostText {
		return nil
	}
	for slots := *rs.slots.Load(); ; {
		first, second := rs.pair(slots, host)
		a, b := first.Load(), second.Load()
		switch {
		case a == nil || a.host == host || a.policies != policies:
			return first
		case b == nil || b.host == host || b.policies != policies:
			return second
		case len(slots) < mostRoutes:
			slots = rs.grow(slots)
		case !a.used.Swap(false):
			return first
		case !b.used.Swap(false):
			return second
		default:
			return nil
		}
	}
}

// Put remembers a route, unless others are of more use. It keeps the scheme and the host.
func (rs *Routes[R]) Put(policies uint64, scheme, host string, route R) {
	if slot := rs.slot(policies, host); slot != nil {
		slot.Store(&routed[R]{policies: policies, scheme: scheme, host: host, route: route})
	}
}

// SchemeText returns a copy of a scheme: of those that nearly all URLs have one that compares
// by its address.
func SchemeText(scheme string) string {
	switch scheme {
	case "http":
		return "http"
	case "https":
		return "https"
	}
	return strings.Clone(scheme)
}

func (rs *Routes[R]) grow(slots []atomic.Pointer[routed[R]]) []atomic.Pointer[routed[R]] {
	more := make([]atomic.Pointer[routed[R]], 2*len(slots))
	for i := range slots {
		if old := slots[i].Load(); old != nil {
			first, second := rs.pair(more, old.host)
			if first.Load() != nil {
				first = second
			}
			first.Store(old)
		}
	}
	rs.slots.Store(&more)
	return more
}
