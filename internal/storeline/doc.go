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
// The unit of a1 counts from 2, when the store took it, so that it is free
// again at 1002, as those of a2 and a3 are at 1006. B adds the 990 ms that the store says to its own time of arrival, 14: it
// never compares its clock with the store's, and asks too late by a way back rather than too
// early. b2 needs what b1 needs, which has just been refused: B does not try to take for it.
// But b2 may not wait for ever. A forecast says when each in line would start if none came
// between. For b2 that is past its wait budget, so that it is refused at once, could start in
// 984 ms, and takes nothing. Had it no wait budget, B would have asked nothing for it.
//
// # Invariants
//
//   - A request starts with units that the store has taken for it, or reserved for its class:
//     never on a guess. What the store grants is used, or goes back: when the caller has gone
//     or the round trip was abandoned, and when the machine slept while it was out.
//   - A line has one round trip out at most, in a goroutine that ends when nothing is due.
//     What comes up meanwhile goes with the next. No lock is held while the store works.
//   - In a class, the requests with the same needs, the first to come starts first. Of all
//     that are due, the first to come asks first, and goes on first.
//   - Nothing polls. A class asks when it is due: when the store said that it could start,
//     or at once after a change that may let it start sooner.
//   - A request that cannot start in time is refused as soon as the store can say so.
//   - No request waits for a store that is down. Those in line return ErrDown, later ones at
//     once. A probe, which requests start, finds out when it is up.
//   - A lock of a Line may be held when that of its Client, or of the line in memory whose
//     gates its requests pass, is taken; never the other way round.
//   - The store's instants are passed back to it, and compared with no clock of this
//     process. Times of this process include the time that the machine slept.
//
// # Files
//
//	queue.go     the line, its classes, and how a request enters and leaves
//	ask.go       round trips: what is asked, and what becomes of the results
//	wait.go      which requests may wait, and which are refused
//	flight.go    what has started, until its response has been taken in
//	reserved.go  starts without a round trip
//	gate.go      breakers, slots, and what a response halts until its body is read
//	plan.go      what the policy says
//	known.go     what the process knows of the store, for pages
//	journal.go   what held up a request, and pauses
//	client.go    all lines of a store
//	down.go      the store itself, and whether it is down
//	notice.go    what is to be reported of the store
package storeline
