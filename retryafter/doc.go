// Package retryafter reads what responses say about the limits of a server: how
// long to wait, how much is left, and when it is replenished. It reads the status,
// the headers and, for some refusals, the first bytes of the body.
//
// [Parse] reads one Retry-After value strictly by RFC 9110. [Read] reads a whole
// response in every built-in dialect: the standards (Retry-After, and RateLimit and
// RateLimit-Policy in every form of the IETF drafts), the X-RateLimit-* family, and
// vendors whose names or units differ. The same header means different things at
// different vendors, so a dialect is chosen by what the response shows, then by the
// dialects and the host that a [Reader] was created with, and finally by the size
// of the number.
//
// # How values are read
//
//   - An instant is measured against the response's own Date (plus its Age) if that
//     can be read, else against the time given: with a server whose clock is five
//     minutes off, one minute is still one minute.
//   - A duration is rounded up to a whole millisecond, saturates at the largest
//     time.Duration, and is never negative. An instant in the past is zero.
//   - A malformed value is ignored, and Signal.Malformed names its header; other
//     values still count. Only the structured RateLimit field is all or nothing, as
//     its draft requires. What a malformed Retry-After most likely means ("60
//     seconds") is a hint, which [Signal.Wait] respects.
//   - A Retry-After with a fraction is read as it stands. One that is a Unix time
//     within a year of the server's clock is read as that instant.
//   - With nothing left, a refusal asks to wait until the reset, but a success does
//     not. A reset in the past does not say when to retry: see [Signal.Wait].
//   - What happens at a reset (all units return, or one) and what a limit is of (an
//     endpoint, a bucket) is stated only where the vendor documents it: see
//     [LimitSignal].
//   - Values are read up to a fixed length. A longer one is malformed and costs no
//     more than a short one.
//
// Reading allocates nothing for a response without such headers, with the usual
// ones, or with structured fields. Only two kinds of label cost an allocation: an
// uncommon word within a header's name, and a policy name with escapes.
//
// The package keeps no state: acting on a [Signal] is up to the caller. All
// functions and all built-in dialects are safe for concurrent use.
package retryafter
