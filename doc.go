// Package headway keeps the requests of an http.Client inside the limits of
// the services that it calls: they wait their turn instead of failing.
//
// Wrap is the short way: one client, one or more limits, each host with a
// budget of its own. NewTransport is the long way, with a Policy for each set
// of hosts. Both are an http.RoundTripper around another.
//
// # The order of decisions
//
// A Transport takes every request through the same steps, in this order.
//
//  1. Policy. The host picks it: an exact name beats the longest "*.suffix",
//     which beats "*". All spellings that net/http dials alike are one host; a
//     pattern without a port matches every port. Without a policy, or with
//     Call.Bypass, the request passes untouched.
//  2. Keys. Every rule that matches says whose budget it spends. A key, or a
//     cost, that cannot be told is a *KeyError at once: nothing is sent, nothing
//     spent.
//  3. Breaker. While that of its host is open it is an *OpenError at once, with
//     the time until a probe is possible: nothing is spent, and nobody stands in
//     line. Half-open, as many stand in line or are sent as may be probes. It is
//     looked at again on joining the line and on starting.
//  4. When could it start? At the latest of: the end of a pause that the server
//     asked for, the moment when each of its limits, and each that the server
//     announced, has room, a free slot under MaxInFlight, and what those in line
//     before it need.
//  5. Does it fit? When that is past its wait budget, at or past the context's
//     deadline, past the line's cap, or never, it is refused now, by a
//     *ThrottledError with the true time. Where only an
//     answer can tell, the time is a lower bound, and the request waits until
//     its wait budget or its context is over.
//  6. One wait. It stands in line once, for everything together. Whenever
//     something changes, those in line move up; nobody is moved back by it,
//     unless a limit was lowered, budget was spent elsewhere or the server said
//     that less is left. A request may
//     pass another only where the other loses nothing by it.
//  7. Start. All its units, its slot and its place as a probe are taken
//     together, at the moment when it is handed to the base transport, or none
//     is.
//  8. Listen. What the answer says holds for everybody whom it concerns, those
//     in line among them. See "What the server says".
//  9. Classify. Its end is a success or a failure to the breaker, or is ignored,
//     by the table of Policy.Classify. Throttling is ignored.
//  10. Tell. The Observer hears what was decided, with no lock held.
//
// The response goes back as it came. A Transport never sends a request twice;
// package retry does, outside of it.
//
// # What the server says
//
// A 429, a 529, a 503 with a Retry-After, and what a dialect of package retryafter or
// a refusal's body tells to be the same, raises a pause. It belongs to the
// request's identity: the keys of those rules with a Key that match it, taken
// together, over all paths; where none does, to the host, or to all hosts of a
// Shared policy. A dialect may narrow it to the requests of that identity under
// the first rule with Methods or a Path that matched, or widen it to the host. The
// longest pause wins, and it is never left early. After its end, for 10 s, the
// k-th start comes no earlier than the end plus k times the shortest interval of
// the request's limits, at most 1 s. Where the pause holds requests that no rule
// matches, the restart is as fast at least as those succeeded in the second before the
// refused one started, and one a second at least; each start comes an interval after
// the last, and after the 10 s the rate doubles each second until it holds nothing
// up. A restart that is refused in its first second is followed by one at half its
// rate. A 429 without a usable time pauses for 1 s, doubling up to 5 min until a
// request succeeds; a reset that is over already is no usable time. There is no pause
// for a quota that must be paid for, nor for a 429 about one object, such as a lock.
// Policy.Server.MaxPause cuts what is too long to be true.
//
// What the headers say holds as soon as they arrive, before the body is read. A
// Retry-After ends the pause even where a limit with nothing left resets later: the
// next request starts then, and its response says what is left.
//
// What a server says is left of a limit caps what starts, see LearnMode; an answer
// that says so need not be a refusal. To know it, the first 4 KiB of a refusal's
// body may be read before the caller gets it, where a dialect tells its refusals
// by the body; the caller still reads all of it. That waits for these bytes for a
// second at most. Bodies of successes and streams are never read. Policy.Server.Dialects chooses what is understood, or switches listening off.
//
// # Beyond one process
//
// With Config.Store budgets are kept outside the process: steps 3 to 6 are as
// above, but the first of those with the same needs asks the store, which takes
// all or nothing, or tells the exact time; it sleeps until then and asks again.
// Those with the same needs start in order of arrival, and of all who are due the
// first to arrive asks first. Of a later request with other needs, and of other
// processes, nobody knows beforehand: so a told time holds if nobody else comes,
// and a request that has a wait budget is refused when that is over. What a server
// announces is only lowered until its reset. Config.MaxHosts bounds what is
// remembered for Snapshot, not the store. A rule that is removed keeps its past in
// the store, as long as that counts. While processes differ in a limit, each puts the
// budget under its own, and what all have started counts under each. Policy.Store.Down
// says what becomes of requests while the store is away. Breakers stay each process's
// own, and who is due passes them when the store has granted its start.
// Policy.Store.Batch takes starts several at a time. A Trace knows of another
// process's pause from when the store was asked.
//
// # Clocks
//
// Periods, pauses and wait budgets are elapsed time. It includes the time that the
// machine is suspended on Linux and on Windows; a wait that ends meanwhile is
// over within a minute of waking, or, where it is longer than a day, within 1/1440
// of what is left. Other systems do not say how long they have slept: there a
// wait ends that much late, and never early. A date that a server gives is a time from
// now by its own clock. So setting the wall clock moves none of these. Only the
// periods of a Calendar begin and end by the wall clock.
//
// # Words
//
// A limit is at most N units of cost per period; a request costs one unit
// unless its rule says otherwise. A law is how a limit counts: package limiter
// has five. A rule is a limit with what it applies to and whose budget it is.
// A policy is the rules, the breaker, the wait budget and the cap on requests in
// flight for a set of hosts. A wait budget is how long a request may stand in line:
// Policy.MaxWait, or Call.MaxWait. A start is the moment at which a request is
// handed to the base transport.
//
// # What holds
//
// The RoundTripper's contract: the request is not changed, and its body is
// closed on every path that does not send it. A Transport is safe for use by
// many goroutines, has none of its own while nothing waits, and needs no
// closing. No lock is held while a callback, an Observer or the network runs.
// The memory for hosts and keys is bounded by Config.MaxHosts, and one is
// forgotten only when that cannot be noticed. Keys never leave the process in
// the clear: errors, events and snapshots carry a digest.
package headway
