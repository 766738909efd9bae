package roster

import (
	"slices"
	"strings"
	"sync/atomic"
)

// A server may limit single resources, buckets or endpoints of an identity. Which of its
// requests draw on one of them is learned from responses: those that go a route whose
// response has named it. See Learn.
//
//	GET /search/code   a response names "code_search": its route draws on that
//	GET /search/code   needs what has been announced of "code_search" from now on
//	GET /user          another route, which nothing is known of: only the identity's holds
//
// A resource is an entry in the ring like an identity of several keys, and its routes go with
// it. Then nothing that is announced holds those requests, until the next response.

// A Resource is one resource of one identity.
type Resource struct {
	ID   uint64 // of its audience
	Name string // the server's, for people
	// Stored is what a store calls it behind the name of the identity's audience.
	Stored  string
	Dialect string // of the response that has named it
}

// A resource is a Resource, and the routes that draw on it, oldest first.
type resource struct {
	Resource
	routes []uint64
}

// mostResourceRoutes bounds the routes of a resource; a new one takes the place of the oldest.
const mostResourceRoutes = 64

// resources are those of a host; part of its keys.
type resources struct {
	byRoute map[uint64]*key
	dialect atomic.Pointer[string]
}

// Names returns the dialect of the latest response of h that has named a resource; empty if
// none has.
func (h *Host) Names() string {
	if ks := h.keys.Load(); ks != nil {
		if d := ks.dialect.Load(); d != nil {
			return *d
		}
	}
	return ""
}

// Names reports whether a response of one of the hosts has named a resource.
func (hs *Hosts) Names() bool { return hs.names.Load() }

// ResourceOf returns what the requests that go a route draw on; nil if that is not known. It is
// read-only.
func (h *Host) ResourceOf(route uint64) *Resource {
	ks := h.keys.Load()
	if ks == nil {
		return nil
	}
	ks.mu.RLock()
	defer ks.mu.RUnlock()
	k := ks.byRoute[route]
	if k == nil {
		return nil
	}
	k.Touch()
	return &k.resource.Resource
}

// Learn notes that the requests of an identity that go a route draw on r from now on, as a
// response has said, and returns what is remembered of r; nil where there is no room for it. own
// and opened are what the request has opened. Texts are copied.
func (t *Roster) Learn(h *Host, own *Gate, opened []Claim, route uint64, r *Resource) *Resource {
	t.mu.Lock()
	defer t.mu.Unlock()
	id := keyID{identity: r.ID}
	room := h.key(id) != nil || t.makeRoomLocked(h, own, opened)
	h.hosts.mu.RLock()
	defer h.hosts.mu.RUnlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	k := h.allKeysLocked()[id]
	if k == nil {
		if !room || h.hosts.overflow == h || h.hosts.current.Load() == nil {
			return nil
		}
		own := Resource{r.ID, strings.Clone(r.Name), strings.Clone(r.Stored), strings.Clone(r.Dialect)}
		k = &key{entry: entry{host: h}, id: id, resource: &resource{Resource: own}}
		k.join(opened)
		t.addKeyLocked(k)
	}
	h.routeLocked(k, route)
	return &k.resource.Resource
}

// routeLocked has a route draw on the resource k from now on.
func (h *Host) routeLocked(k *key, route uint64) {
	ks := h.keys.Load()
	ks.mu.Lock()
	defer ks.mu.Unlock()
	if old := ks.dialect.Load(); old == nil || *old != k.resource.Dialect {
		ks.dialect.Store(&k.resource.Dialect)
		h.hosts.names.Store(true)
	}
	if old := ks.byRoute[route]; old != nil {
		old.resource.routes = slices.DeleteFunc(old.resource.routes, func(r uint64) bool { return r == route })
	}
	if ks.byRoute == nil {
		ks.byRoute = map[uint64]*key{}
	}
	ks.byRoute[route] = k
	k.resource.routes = append(k.resource.routes, route)
	if len(k.resource.routes) > mostResourceRoutes {
		delete(ks.byRoute, k.resource.routes[0])
		k.resource.routes = k.resource.routes[1:]
	}
}
