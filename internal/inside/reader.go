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
