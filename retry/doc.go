// Package retry retries requests that a headway.Transport has sent and that failed,
// as far as that is safe, worthwhile and in time.
//
// NewClient wraps the Transport, so that each attempt waits in the Transport's line
// like any other request, and waits once:
//
//	client, err := retry.NewClient(transport, retry.Config{})
//
// # What is retried
//
// A request that the server has not processed is retried whatever its method:
//
//   - after a 429 or 529, or another status but 503 that the Transport has read as
//     a throttle;
//   - if its connection was refused or could not be dialed;
//   - after a response of any status with x-should-retry: true or Stripe-Should-
//     Retry: true.
//
// A request that may have been processed is retried only if repeating it has no
// further effect. That is so after any other transport error, a 408, a 425, or a
// 5xx but 501 and 505, if
//
//   - its method is GET, HEAD, OPTIONS, TRACE, PUT or DELETE;
//   - it has the header Idempotency-Key or X-Idempotency-Key; or
//   - its context comes from Idempotent.
//
// In each case its body must be empty, or available again from GetBody.
//
// A request is not retried
//
//   - if it was refused locally: a *headway.ThrottledError, a *headway.OpenError, a
//     *headway.KeyError, or the local response of headway.RefuseWithResponse;
//   - if its context has ended, the certificate is not trusted, or the host name
//     does not exist;
//   - if the response says x-should-retry: false or, in the first bytes of the body
//     of a 429, that a quota must be paid for;
//   - if the caller caused the failure: the request cannot be sent, as with an
//     invalid header, or its body fails or is not as long as declared.
//
// A redirect is a new request, and no attempt of the one before. Config.Retry
// replaces these rules.
//
// # One reading
//
// Each response is read once, by the Transport, in the dialects of its policy, and
// retries follow that reading: a refusal that makes the Transport pause is retried,
// and a refusal that is retried makes the Transport pause. There are four
// exceptions. What must not be retried, or must be paid for, makes the Transport
// pause only. A Retry-After of zero, and a refusal that concerns one busy object,
// delay only the request itself. A Retry-After of more than a day is not waited
// for. A 503 that throttles is retried like any 5xx.
//
// If the Transport has read nothing, because the request had no policy or bypassed
// it, or because its dialects are None, retry reads the response in all dialects,
// for this request alone.
//
// # When
//
// A retry follows after a backoff: a random time between zero and
// Config.MinBackoff, which doubles for each further retry up to Config.MaxBackoff.
// A Retry-After is added to it, so that no retry is early, unless the Transport
// holds the request for that long itself. If the next attempt cannot start before
// the context's deadline, within Config.MaxElapsed, or within the Transport's wait
// budget, the retrying ends immediately.
//
// # How often
//
// A request is retried up to Config.MaxRetries times, and only while the Budget of
// its host has room: a service that fails for every request is not sent a multiple
// of them. Retries of another layer must not multiply with these. A request that
// the other layer marks as a retry, by headway.WithAttempt or, like the SDKs of
// OpenAI, Anthropic and AWS, in a header, is sent once. For any other layer, Shared
// gives the requests of one context a common allowance.
//
// # What is returned
//
// The last response, open and complete, with a nil error; or the last error, as the
// Transport returned it. Earlier responses are read, up to 4 KiB and for half a
// second, and closed, so that their connections can be reused. If something else
// ended the call while a retry was due, such as a new pause or the context, the
// error is an *Error with both.
package retry
