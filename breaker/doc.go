// Package breaker is a circuit breaker with three outcomes. A call succeeds,
// fails, or is ignored: a call that was throttled, refused locally or canceled by
// its caller says nothing about the health of the service, and does not count.
//
// Call Take before each call. It returns a Ticket, or refuses. Call Record with
// that ticket when the call has ended:
//
//	ticket, ok := b.Take(time.Now())
//	if !ok {
//		return fmt.Errorf("open for %v: %w", b.Delay(time.Now()), b.Cause())
//	}
//	result := breaker.Result{} // Ignored, if call panics
//	defer func() { b.Record(ticket, result, time.Now()) }()
//	result.Err = call()
//	result.Outcome = breaker.Success
//	if result.Err != nil {
//		result.Outcome = breaker.Failure
//	}
//
// # States
//
// While the breaker is closed, every call passes, and results are counted. It opens
// after a number of failures in a row, a number of failures among the last results,
// or at a rate of failures within a time. See Config.
//
// While it is open, every call is refused. It stays open for OpenFor at first, and
// for twice as long each time it opens again, up to MaxOpenFor; if a failure
// carried a Retry-After that ends later, it stays open until then.
//
// While it is half-open, a few calls pass as probes: never more than Probes in
// flight. A probe without a result makes room for another after ProbeTimeout. As
// many successes as Probes close the breaker; one failure opens it.
//
// A ticket belongs to the state in which it was taken, and its result counts only
// in that state: a slow success from before an outage does not close the breaker,
// and a slow failure does not open it again.
//
// # Time and callbacks
//
// There are no goroutines and no timers. Methods that need the time take it as an
// argument, and a time earlier than one given before counts as that one. The
// exception is Config.Within, which is measured by the wall clock of the process.
//
// The windows and thresholds are those of failsafe-go's circuitbreaker, which
// decides when the results counted open or close the breaker.
package breaker
