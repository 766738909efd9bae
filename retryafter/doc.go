// Package retryafter reads what servers say about their limits: how long to
// wait, how much is left and when it comes back, in the status, the headers
// and, where only it tells, the first bytes of a refusal's body.
//
// [Parse] reads one Retry-After value by the letter of RFC 9110. [Read] reads a
// whole response in every dialect known here: the standards (Retry-After,
// RateLimit and RateLimit-Policy in each form the IETF drafts gave them), the
// X-RateLimit-* family, and the vendors whose names or units differ. The same
// header means different things at different vendors, so a dialect is chosen by
// what the response shows, then by the dialects and the host that a [Reader]
// was made with, and by the size of the number last.
//
// # What a careful reading is
//
//   - Instants are measured against the response's own Date (plus its Age) where
//     it has a readable one, else against the time passed in: a server whose
//     clock is five minutes off still means the minute it says.
//   - Durations are rounded up to a whole millisecond and saturate at the
//     largest time.Duration; they are never negative. A past instant is zero.
//   - A malformed value is ignored and the others stand; only the structured
//     RateLimit field is all or nothing, as its draft demands. [Signal] names a
//     header that was ignored so. What a malformed Retry-After most likely means
//     ("60 seconds") is a hint, which [Signal.Wait] respects.
//   - A Retry-After with a fraction is read as it stands, and one that is a Unix time
//     within a year of the server's clock as that instant.
//   - A success with nothing left is no request to wait; a refusal is. A reset that
//     is over already says nothing about when to come back: see [Signal.Wait].
//   - Values are looked at up to a fixed length. A longer one is malformed and
//     costs no more than a short one.
//
// Nothing is allocated for a response without such headers, with the usual
// ones, or with structured fields. Only a rare label costs an allocation: one that
// stands in a header's name and is not a common word, or a policy's name with
// escapes in it.
//
// No state is kept here: what to do with a [Signal] is the caller's business.
// All functions and all built-in dialects may be used by many goroutines.
package retryafter
