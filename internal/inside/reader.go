package inside

import (
	"net/http"
	"time"
	_ "unsafe" // for go:linkname

	"github.com/headway-go/headway/retryafter"
)

// ReadTo is r.Read into the zero Signal s, without the copy. It reports whether the
// response says anything.
//
//go:noescape
//go:linkname ReadTo github.com/headway-go/headway/retryafter.readTo
func ReadTo(r *retryafter.Reader, s *retryafter.Signal, status int, h http.Header, now time.Time) bool

// ForHost returns a Reader of the same dialects for another host.
//
//go:linkname ForHost github.com/headway-go/headway/retryafter.forHost
func ForHost(r *retryafter.Reader, host string) *retryafter.Reader

// NeedsBody reports whether the first 4 KiB of the body should be passed to
// r.ReadBody.
//
//go:linkname NeedsBody github.com/headway-go/headway/retryafter.needsBody
func NeedsBody(r *retryafter.Reader, status int, h http.Header) bool

// FromCache reports whether a cache has sent the response that ReadTo has read into s,
// and had kept it.
//
//go:noescape
//go:linkname FromCache github.com/headway-go/headway/retryafter.fromCache
func FromCache(r *retryafter.Reader, s *retryafter.Signal, h http.Header) bool

// Routed reports whether a request's route is known to matter before any response has named
// a resource.
//
//go:linkname Routed github.com/headway-go/headway/retryafter.routed
func Routed(r *retryafter.Reader) bool

// RouteTo appends the route of a request to the empty dst, where a dialect is that in which
// responses have named resources, or nothing. named is true if the dialect knows better than
// anybody else which requests draw on the same limits.
//
//go:noescape
//go:linkname RouteTo github.com/headway-go/headway/retryafter.routeTo
func RouteTo(r *retryafter.Reader, dialect string, dst []byte, req *http.Request) (route []byte, named bool)

// ResourceOf appends to the empty dst what tells a resource that a response to the request
// has named in a dialect apart from all others.
//
//go:noescape
//go:linkname ResourceOf github.com/headway-go/headway/retryafter.resourceOf
func ResourceOf(dialect string, dst []byte, req *http.Request, resource string) []byte
