// Package inside gives this module what packages breaker and retryafter do not
// export, because only a Transport needs it: package breaker's inside.go and
// package retryafter's inside.go say what each function does.
//
// The functions are linked by name. Go checks neither that a name exists until a
// program is linked nor that the signatures agree: a test of this package does. A
// variable of a function type, assigned by the other package, would be checked, but
// whatever is passed to it escapes to the heap: an allocation for each response.
package inside

import (
	"time"
	_ "unsafe" // for go:linkname

	"github.com/headway-go/headway/breaker"
)

// Allowance returns how many calls should be in flight at once.
//
//go:linkname Allowance github.com/headway-go/headway/breaker.allowance
func Allowance(b *breaker.Breaker) int

// Room returns how many calls of Take would succeed now.
//
//go:linkname Room github.com/headway-go/headway/breaker.room
func Room(b *breaker.Breaker, now time.Time) int

// Well reports whether one more success would change nothing.
//
//go:linkname Well github.com/headway-go/headway/breaker.well
func Well(b *breaker.Breaker) bool

// Clean reports whether b behaves from now on as a new breaker would.
//
//go:linkname Clean github.com/headway-go/headway/breaker.clean
func Clean(b *breaker.Breaker, now time.Time) bool

// ProbeTimeout returns b's Config.ProbeTimeout, or its default.
//
//go:linkname ProbeTimeout github.com/headway-go/headway/breaker.probeTimeout
func ProbeTimeout(b *breaker.Breaker) time.Duration

// Report calls b's callback for every change that has not been reported.
//
//go:linkname Report github.com/headway-go/headway/breaker.report
func Report(b *breaker.Breaker)
