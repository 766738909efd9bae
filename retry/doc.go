// Package retry sends requests again that a headway.Transport has sent and that
// failed, as far as that is safe, worth it, and in time.
//
// NewClient is the short way. It sits outside of the Transport, so that each
// attempt waits in the Transport's line as any other request does, and nobody
// waits twice:
//
//	client, err := retry.NewClient(transport, retry.Config{})
//
// # What is sent again
//
// A request that the server has not worked on is sent again whatever its method:
// one answered with 429 or 529, or with another status but 503 that the Transport has
// read as a throttle, and one whose connection was refused or could not be dialed. So is one
// whose response says x-should-retry: true, or Stripe-Should-Retry: true, whatever
// its status: the server vouches for it. A
// request whose effect is unknown is sent again only where doing it twice is
// doing it once: after any other transport error, a 5xx but 501 and 505, 408 and
// 425, if its method is GET, HEAD, OPTIONS, TRACE, PUT or DELETE, if it has the
// header Idempotency-Key or X-Idempotency-Key, or if its context has the mark of
// Idempotent. In each case its body must be empty or come again from GetBody.
//
// Nothing is sent again that was refused on this side (a *headway.ThrottledError,
// an *headway.OpenError or a *headway.KeyError, or the local answer of
// headway.RefuseWithResponse), whose context has ended, whose certificate is not to be
// trusted, whose host's name does not exist, or of which the server said
// x-should-retry: false or, in the first bytes of a 429's body, that it must be paid
// for. Neither is what failed by the caller's fault: a request that cannot be sent,
// such as one with an invalid header, or whose body fails or is not as long as it
// says. A redirect is a request of its own and no attempt.
//
// Config.Retry decides otherwise.
//
// # One reading
//
// Each response is read once, by the Transport, in the dialects of its policy, and
// retry goes by that. So a refusal that makes the Transport pause is retried, and one
// that is retried has made it pause, but for these: what the server says not to
// retry, or must be paid for, is not; after a Retry-After of zero, or for one object
// that was busy, only the request itself comes back; and a time of more than a day is
// not waited for. A 503 that throttles is retried as any 5xx. Where the Transport has
// read nothing, since the request had no policy or passed it by, or its Dialects are
// None, retry reads in all dialects what holds for the request alone.
//
// # When
//
// After its backoff: a random time from zero to Config.MinBackoff, doubled for
// each further retry up to Config.MaxBackoff. Where the server said when to come
// back that comes on top, so that nobody is early, unless the Transport holds
// the request for as long anyhow. Where the next attempt cannot start before the
// context's deadline, within Config.MaxElapsed, or within the Transport's wait
// budget, that is known at once, and ends the retrying there. A server's time of
// more than a day is not waited for.
//
// # How often
//
// Config.MaxRetries times, and no more often than the host's Budget has room
// for: that keeps a service which fails for everybody from being sent a multiple
// of the requests. Retries that others do on top of these must not multiply with
// them. Where the other one says that a request is a retry already, by
// headway.WithAttempt or as the SDKs of OpenAI, Anthropic and AWS do in a header,
// it is sent once. For any other, Shared makes the requests of one context share
// one allowance.
//
// # What comes back
//
// The last response, open and complete, with a nil error; or the last error, as
// the Transport returned it. The responses before it were read, up to 4 KiB and
// for half a second, and closed, so that their connections can be used again.
// Only where something else ended the call after that, such as a new pause or
// the context, is there an *Error with both.
package retry
