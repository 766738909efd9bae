// Package breaker is a circuit breaker with three outcomes. A call succeeds,
// fails, or is ignored: a call that was throttled, refused on this side or
// given up by its caller says nothing about the health of the service, and
// counts for nothing.
//
// Ask with Take before a call; it gives a Ticket or refuses. Say with Record,
// and with that ticket, how the call ended:
//
//	ticket, ok := b.Take(time.Now())
//	if !ok {
//		return fmt.Errorf("open for %v: %w", b.Delay(time.Now()), b.Cause())
//	}
//	result := breaker.Result{} // Ignored, should call panic
//	defer func() { b.Record(ticket, result, time.Now()) }()
//	result.Err = call()
//	result.Outcome = breaker.Success
//	if result.Err != nil {
//		result.Outcome = breaker.Failure
//	}
//
// # States
//
// Closed, every call passes, and results are counted: so many failures in a
// row, so many among the last calls, or a rate of failures within a time open
// it. See Config.
//
// Open, every call is refused, for OpenFor at first and for twice as long each
// time it opens again, up to MaxOpenFor, or until the end of a Retry-After that
// a failure carried, where that is later.
//
// Half-open, a few probes may pass: never more than Probes in flight, and each
// with a lease, so that a probe which is never heard of again gives its place
// up. As many successes as Probes close it; one failure opens it.
//
// Closed again, Allowance says how many calls should be in flight at once:
// Probes at first, then twice as many with each success, until it no longer
// binds. The breaker does not hold those back: the caller has the line.
//
// A ticket belongs to the state in which it was taken. A result that comes in a
// later one counts for nothing: neither a slow success from before the outage
// closes the breaker nor does a slow failure open it again.
//
// # Time and callbacks
//
// No goroutine and no timer runs. Every method that needs the time takes it as
// an argument, and what has run out is seen when somebody asks. A time earlier
// than one given before counts as that one. The exception is Config.Within,
// which is counted by the wall clock of the process.
//
// The windows and thresholds are those of failsafe-go's circuitbreaker: it
// alone decides when a count of results opens the breaker or closes it.
package breaker
