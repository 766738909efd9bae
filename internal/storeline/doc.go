// Package storeline is the queue of the requests whose budgets are in a store: a file that
// the processes of one machine share, or a server that a fleet shares.
//
// # An example
//
// Processes A and B share one budget of 3 per second in a store. The store decides 2 ms after
// a round trip begins, and its results arrive 2 ms later. Five requests arrive, a1 to a3 in A
// and b1 and b2 in B; b2 may wait for 500 ms. Times are in milliseconds.
//
//	A   0  a1 arrives        take a1 ──▶ 2 granted, 2 left           4  a1 starts
//	    1  a2 arrives        (a round trip is out: it waits for it)
//	    2  a3 arrives        (so does a3)
//	    4                    take a2, a3 ──▶ 6 both granted, 0 left  8  a2 starts, then a3
//	B  10  b1 arrives        take b1 ──▶ 12 not before 1002          14  b1 sleeps until 1004
//	   20  b2 arrives        forecast b1, b2 ──▶ 22 in 980 and 984   24  b2 is refused
//	 1004  b1 wakes          take b1 ──▶ 1006 granted, 2 left        1008 b1 starts
//
// The unit of a1 counts from 2, when the store took it, so that it is free again at 1002; those
// of a2 and a3 are free at 1006. B adds the 990 ms that the store reports to its own time of
// receipt, 14. It never compares its clock with the store's, and so asks later by the way back,
// but never too early. b2 needs what the store has just refused to b1, so that B does not try
// to take it once more. But b2 may not wait for ever. A forecast reports when each request in
// line would start if no other arrived first: for b2 that is past its wait budget. It is
// refused at once, could start in 984 ms, and has taken nothing. Without a wait budget it would
// have cost no round trip to put it in line.
//
// # Invariants
//
//   - What a response brings holds in this process at once, and the response does not wait for
//     the store: see unsent.go. The store receives it before it decides for any request that
//     asks later.
//   - A request starts with units that the store has taken for it or reserved for its class,
//     and with nothing else. What the store grants is used or given back: also when the caller
//     has left, when the round trip was abandoned, and when the machine slept meanwhile.
//   - A line has at most one round trip out: its own, or the sender's. Both goroutines end when
//     nothing is due. What comes up meanwhile goes with the next round trip. No lock is held
//     while the store works.
//   - Requests with the same needs are a class, and start in order of arrival. Of several
//     classes that are due together, the request that arrived first asks first, and the
//     requests that are granted together are sent in order of arrival.
//   - Nothing polls. A class asks at the instant at which the store reported that it could
//     start, and after a change that may let it start sooner.
//   - A request that cannot start in time is refused as soon as the store can foretell it.
//   - No request waits for a store that is down. Those in line return ErrDown when it fails,
//     later ones at once. Requests start the probes that find out when it is up.
//   - The mu of a Line is taken before that of its Client, and before that of the line in
//     memory whose gates its requests pass; never the other way round.
//   - The store's instants are passed back to the store, and compared with no clock of this
//     process. Times of this process include the time that the machine slept.
//
// # Files
//
//	queue.go     the line, its classes, and how a request enters and leaves
//	ask.go       round trips: when a line makes one, and what it requests
//	apply.go     what becomes of the results
//	unsent.go    what responses bring, which no request waits for
//	operation.go what is requested for others than those in line
//	wait.go      which requests may wait, and which are refused
//	flight.go    what has started, until its response has been taken in
//	reserved.go  starts without a round trip
//	gate.go      breakers, slots, and what waits for the body of a response
//	plan.go      what the policy allows
//	known.go     what the process knows of the store, for pages
//	journal.go   what held up a request, and pauses
//	client.go    all lines of a store
//	down.go      the store itself, and whether it is down
//	notice.go    what is to be reported of the store
package storeline
