// Package line is the queue of the requests that wait for one set of budgets in memory: a
// real queue, planned anew whenever something changes, with one timer and no goroutine of
// its own.
//
// # An example
//
// Two budgets: host admits 2 requests in any 10 s, and key, which belongs to one tenant,
// admits 1 in any 30 s. At 0 s two requests have started, the first of the tenant: both
// budgets are used up. Five more arrive, one a second. b and e are the tenant's and need
// one unit of key and one of host; a, c and d need one of host.
//
//	          0 s         10 s        20 s        30 s        40 s  ...   60 s
//	host 2/10 ██          a c         d           b                       e
//	key  1/30 █                                   b                       e
//
// Each request gets a planned start as it arrives, the earliest that makes no other
// planned start impossible:
//
//	1 s  a: 10 s, when host has its two units back.
//	2 s  b: 30 s. host would have room at 10 s, but key has none before.
//	3 s  c: 10 s. It starts before b, which arrived earlier, and yet takes nothing from
//	     it: a unit of host that is taken at 10 s is back at 20 s.
//	4 s  d: 20 s, after a and c.
//	5 s  e: 60 s, since b takes the unit of key at 30 s.
//
// Units are taken at the start and not on arrival. So when the caller of a gives up at
// 6 s, there is nothing to give back: d moves up to 10 s, and all others keep their
// starts. At 7 s, f arrives and needs two units of host. It starts at 20 s, before b,
// since both are back at 30 s. At 8 s, g arrives and needs two units as well. At 30 s, one
// of them is b's, whatever g would gain by it: g starts at 40 s.
//
// That is conservative backfilling, as batch schedulers call it. Most lines are simpler:
// all requests need the same budgets. Then nothing can be backfilled, the order is that
// of arrival, and only the start of the first need be known. In such a line 100,000
// requests wait for the price of a list.
//
// # Invariants
//
//   - A planned start never moves later, unless something that could not be foreseen
//     makes it impossible: a spend, a pause or an announced limit, a lowered limit, a slot
//     or a response that does not come.
//   - No start takes a unit, a slot or a place of a gate that an earlier request needs at
//     its planned start. Where checking that would cost too much, the later request is
//     held back.
//   - Requests of one class, with the same needs and the same gate, start in order of
//     arrival.
//   - A start takes all that the request needs, or nothing, under one hold of the lock.
//     What is taken is given back in full if the request is not sent.
//   - A request is refused at once if it cannot start within its wait budget or deadline,
//     and later as soon as a change makes that so. A reported wait that may become longer
//     is said to be a lower bound.
//   - No time passes between the moment when a request can start and its start: each
//     change ends with dispatch, and dispatch arms the timer for the next planned start.
//     The timer fires at most once for each start, cancel or change of the first.
//   - A waiter is woken once: to start, or with its refusal.
//   - Requests that start at one instant are sent in order: each wakes the next in the
//     chain when it is about to be sent.
//   - The steps of every loop are bounded by the requests in line and by the program's
//     own limits, never by a number that a server has sent.
//   - What all idle lines share (idleQueue, noExtra, noDemand, noDetails) is never
//     written.
//
// # Files
//
//	line.go          the Line, its lock and clock, and what its callers do to it
//	enter.go         how a request starts at once, joins the line, or is refused
//	start.go         the short way of a request that needs no line, and what is in flight
//	waiter.go        a request in line, until it starts, is refused, or leaves
//	fifo.go          one class: the first in, the first out
//	backfill.go      many classes: who may start before whom, and who moves up
//	list.go          the lists and heaps of waiters, and the chain of those that start
//	crowd.go         which request makes way in a full line
//	budget.go        budgets, their limits, and when they are forgotten
//	gate.go          circuit breakers in front of requests
//	storegate.go     the same for requests that wait in a store's line
//	announcements.go what responses have announced, and which requests it binds
//	announcelimit.go how many units of a limit a response says are left
//	announcepause.go how long a response says to stay away
//	lockfree.go      starts without the lock, for a lone budget
//	refusal.go       why a request cannot start in time, and when it could
//	journal.go       what delayed a request, for traces
//	status.go        what a line knows, for pages
//	guard.go         the check that shared values are not written, under the race detector
package line
