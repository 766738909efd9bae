// Package headway keeps the requests of an http.Client inside the limits of the
// services that it calls: they wait their turn instead of failing.
//
// Wrap is the short way: one client, one or more limits, each host with a budget
// of its own. NewTransport is the long way, with a Policy for each set of hosts.
// Both are an http.RoundTripper around another.
//
// # The order of decisions
//
// A Transport takes every request through the same steps, in this order.
//
//  1. Policy. The host picks it: an exact name beats the longest "*.suffix",
//     which beats "*". All spellings that net/http dials alike are one host; a
//     pattern without a port matches every port. Without a policy, or with
//     Call.Bypass, the request passes untouched.
//  2. Keys. Every rule that matches determines whose budget the request spends.
//     If a key or a cost cannot be determined, the request fails with a *KeyError:
//     nothing is sent and nothing is spent.
//  3. Breaker. While the breaker of the host is open, the request is refused
//     immediately with an *OpenError that has the time until a probe is possible:
//     nothing is spent, and the request does not wait. When half-open, only Probes
//     requests are queued or sent. The breaker is checked again when the request
//     joins the line and when it starts.
//  4. Earliest start. The request can start once all of these hold: the pause that
//     the server requested is over; each of its limits, and each limit that the
//     server announced, has room; a slot under MaxInFlight is free; and the requests
//     ahead of it in line have what they need.
//  5. Fit. If it cannot start within its wait budget, before its context's
//     deadline, or within the line's cap, it is refused immediately with a
//     *ThrottledError that has the exact time. Where only a response can determine
//     the time, the time is a lower bound, and the request waits until its wait
//     budget or its context is over.
//  6. One wait. The request waits in line once, for everything together. Whenever
//     something changes, the requests in line move up; none moves back, unless a
//     limit is lowered, budget is spent elsewhere or the server announces that less
//     is left. A request passes another only where the other loses nothing by it.
//  7. Start. All its units, its slot and its place as a probe are taken together,
//     at the moment when it is handed to the base transport, or none is.
//  8. Listen. Pauses and limits in the response apply to all requests that they
//     concern, those in line included. See "What the server announces".
//  9. Classify. The end of the request is a success or a failure to the breaker, or
//     is ignored, by the table of Policy.Classify. Throttling is ignored.
//  10. Report. The Observer receives the decisions, with no lock held.
//
// The response is returned unchanged. A Transport never sends a request twice;
// package retry does, outside of it.
//
// # What the server announces
//
// A pause is raised by a 429, a 529, a 503 with a Retry-After, and any response
// that a dialect of package retryafter, or the body of a refusal, identifies as a
// throttle. The pause belongs to the request's identity: the keys of the matching
// rules that have a Key, taken together, over all paths. A request without keys has
// the identity of the host, or of all hosts of a Shared policy. A dialect may narrow
// the pause to the requests of that identity under the first matching rule with
// Methods or a Path, or to those that draw on the same resource, or widen it to the
// host. The longest pause wins, and no request starts before it ends.
//
// A resource is what a server limits by itself: GitHub's search, a bucket of Discord's
// in one channel, an endpoint of X's, a method of Slack's. Where a response names one,
// or its dialect has limits for each endpoint, what it announces concerns only the
// requests that draw on that: those that go the same route as one whose response has
// named it before. The route is what the dialect makes of the request (see
// retryafter.RouteDialect), else the Path of the first rule that has one and matches,
// else method and path, without what looks like the name of a single object. A route
// that has not been seen is held by no resource. The newest response to a route says
// what it draws on. Over a Config.Store each process learns routes by itself, and
// requests that are in line already when one is learned are not held by it.
//
// For 10 s after its end the k-th start comes no earlier than the end plus k times
// the shortest interval of the request's limits, at most 1 s. Where the pause holds
// requests that no rule matches, the restart is at least as fast as requests
// succeeded in the second before the refused one started, and at least one per
// second; each start comes one interval after the last, and after the 10 s the rate
// doubles each second until it delays nothing. A restart that is refused in its first
// second is followed by one at half its rate.
//
// A 429 without a usable time pauses for 1 s, doubling up to 5 min until a request
// succeeds; a reset that is over is not a usable time. A quota that must be paid for raises no
// pause, nor does a 429 about one object, such as a lock. Policy.Server.MaxPause cuts
// pauses that are too long to be credible.
//
// Headers take effect as soon as they arrive, before the body is read. A Retry-After
// ends the pause even where a limit with nothing left resets later: the next request
// starts then, and its response announces what is left.
//
// An announced limit is counted beside the rules, and each response corrects its
// count: see LearnMode. The response need not be a refusal. Where a dialect recognizes its refusals by their body, up to 4 KiB of a
// refusal's body are read before the caller gets it; the caller still reads all of
// it. Waiting for these bytes takes at most a second. Bodies of successes and streams
// are never read. Policy.Server.Dialects chooses the dialects, or switches listening
// off.
//
// # Beyond one process
//
// With Config.Store budgets are kept outside the process. Steps 3 to 6 are as above,
// but of the requests with the same needs only the first asks the store. The store
// takes all its units, or none and returns the exact time; the request sleeps until
// that time and asks again. Requests with the same needs start in order of arrival,
// and of all requests that are due the first to arrive asks first. Later requests with other needs, and other processes, cannot be predicted: a
// reported wait assumes that no other request arrives first, and a request with a
// wait budget is refused when that is over. A limit that a server announces counts the
// starts of all processes.
//
// No response waits for the store, but for the Settle of a rule whose limit is Strict.
// What it announces holds in this process at once: a request that the store has granted
// without knowing of a pause waits, too. It is sent to the store in the background, before
// the next question, and so reaches the other processes one way to the store later. At
// most 1,024 announcements are on hold for it, of each pause the longest and of each limit
// the newest; beyond that, limits are forgotten first. Pauses are kept while the store is
// down. A process that exits loses what is younger than one round trip.
//
// Config.MaxHosts bounds what is remembered for Snapshot, not the store. A rule that
// is removed keeps its past in the store as long as that counts. While processes
// are configured with different limits, each applies its own to the shared budget,
// and the starts of all count under each. Policy.Store.Down decides what happens to
// requests while the store is down. Each process has its own breakers, which are
// checked when the store has granted a start. Policy.Store.Batch reserves several
// starts per round trip. A Trace shows another process's pause from the moment when
// the store was asked.
//
// # Clocks
//
// Periods, pauses and wait budgets are elapsed time. On Linux and Windows it includes
// the time that the machine is suspended: a wait that ends meanwhile is over within a
// minute of waking, or, if it is longer than a day, within 1/1440 of what is left.
// Other systems do not report how long they slept: there a wait ends that much late,
// and never early. A date that a server gives is converted to a time from now by the
// server's own clock. So setting the wall clock moves none of these. Only the periods
// of a Calendar begin and end by the wall clock.
//
// # Words
//
// A limit is at most N units of cost per period; a request costs one unit unless
// its rule says otherwise. A law is how a limit counts: package limiter has five.
// A rule is a limit with what it applies to and whose budget it is. A policy is
// the rules, the breaker, the wait budget and the cap on requests in flight for a
// set of hosts. A line is the queue of the requests that wait under one policy at
// one host. A wait budget is how long a request may wait in line: Policy.MaxWait,
// or Call.MaxWait. A start is the moment at which a request is handed to the base
// transport.
//
// # What holds
//
// The RoundTripper's contract: the request is not changed, and its body is closed
// on every path that does not send it. A Transport is safe for use by many
// goroutines, has none of its own while nothing waits, and needs no closing. No
// lock is held while a callback, an Observer or the network runs. The memory for
// hosts, keys and resources is bounded by Config.MaxHosts; one is forgotten only when that
// makes no difference, but for the routes of a resource. Keys never leave the process in the clear: errors, events and
// snapshots carry a digest.
package headway
