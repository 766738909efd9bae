// Package otelheadway makes OpenTelemetry metrics and spans of what a
// headway.Transport decides: how many requests started or were refused and why,
// how long they stood in line and for what.
//
//	observer, err := otelheadway.NewObserver() // the global providers
//	if err != nil {
//		log.Fatal(err)
//	}
//	transport, err := headway.NewTransport(nil, headway.Config{Policies: policies, Observer: observer})
//
// # Metrics
//
// All have the attributes headway.policy and server.address, and server.port
// where it is not the scheme's own. What belongs to a Shared policy as a whole
// (waiting, in_flight, remaining, pause.remaining) has no server.address, and
// store.away and store.transitions have none of them. The
// other attributes are these, all of them with "headway." before their names:
//
//	headway.decisions          counter        {request}  outcome, reason
//	headway.wait.duration      histogram      s          outcome
//	headway.delayed            counter        {request}
//	headway.retries            counter        {request}
//	headway.amplification      gauge          1
//	headway.waiting            updowncounter  {request}
//	headway.in_flight          updowncounter  {request}
//	headway.remaining          gauge          {unit}     rule
//	headway.units.spent        counter        {unit}     rule, source
//	headway.units.returned     counter        {unit}     rule, source
//	headway.drift              counter        {unit}     rule
//	headway.pause.duration     histogram      s
//	headway.pause.remaining    gauge          s
//	headway.breaker.state      gauge          {state}
//	headway.breaker.transitions  counter      {transition}  state
//	headway.headers.malformed  counter        {header}
//	headway.overflows          counter        {event}
//	headway.store.away         gauge          {transport}
//	headway.store.transitions  counter        {transition}  state
//	headway.store.missed       counter        {request}  outcome
//
// What they tell:
//
//   - decisions: every request that a policy applies to is one, and so is every
//     Quota.Wait. headway.outcome is "started", "refused" or "canceled": its
//     context ended while it waited. headway.reason says why it was refused:
//     "limit", "pause", "in_flight", "line_full", "impossible", "disabled", "store",
//     or "no_key" for a *headway.KeyError and "open" for a *headway.OpenError.
//   - wait.duration: the time in line of every decision. Those who did not wait
//     have the first bucket, up to 0, for themselves. While the caller's span is
//     sampled, it is the exemplar.
//   - delayed: decisions after a wait, each counted once, however often it was
//     put off. With a Config.Store that is nearly all, as its round trip is a wait.
//   - retries: starts that were not their call's first attempt, see
//     headway.AttemptFrom. amplification is how many attempts were sent for each
//     call that was sent, since the beginning: 1 is without retries, and it is
//     never less. Requests that were refused or gave up do not count. Over the
//     last minutes it is the rate of all starts by that of the starts that are
//     no retries.
//   - waiting, in_flight: how many are now in line, and in flight, as
//     headway.HostStatus has them.
//   - remaining: how many units could start now; negative in debt. Of a rule with
//     keys it is the key that has the fewest left. Over a Config.Store it is what that
//     has said to this process within the last period of the limit. What a server has announced of
//     a limit that no rule stands for is the rule "learned".
//   - units: cost taken from a rule's limit and given back to it. headway.source is
//     "client" for requests, their settling, and Quota.Wait; "outside" for Quota.Spend.
//   - drift: units that the server has counted and nobody here has spent.
//   - pause: those that answers have raised. The duration is counted from when
//     the answer came; remaining is the time until the last one ends, 0 where
//     there is none.
//   - breaker: its state is 0 closed, 1 half-open or 2 open, by host also in a
//     Shared policy; transitions are counted by the state that it came to,
//     "closed", "half_open" or "open".
//   - headers.malformed: headers of answers that were ignored since nothing could
//     be made of them.
//   - overflows: times that a host or key found no room under Config.MaxHosts.
//   - store: away is how many Transports have told that their Config.Store is
//     away, and not that it is back. Requests tell: it stays while none come, and
//     for good where a Transport is dropped meanwhile. Transitions are counted by
//     the state that it came to, "away" or "back". missed are the decisions that
//     were made without it, under the policy's Store.Down; they are among
//     headway.decisions too. unread are the rows that could not be read, by the host
//     whose they are, clock_set_back how often the store's clock was found to be
//     behind what it had written.
//
// Counters, and store.away, appear when there is something to count. There are
// series for at most as many hosts as WithMaxHosts says; the others of a policy are one, with the
// server.address "_OTHER", and so are a host's rules beyond the 64th. Nothing is
// lost by that but the names. The SDK has a bound of its own, 2,000 series for
// each instrument. Key digests are in spans only.
//
// Instruments are made once for each provider, attribute sets once for each host
// and rule. Transports are asked for what is now when metrics are collected, and
// are held by weak pointers.
//
// # Spans
//
// While the span of a request's context is recording, each request has a span
// "headway wait" under it, from its arrival until it starts, is refused or gives
// up. No other request has one. It has ended when the request is sent, so that it
// waits neither for headers nor for a body. Its attributes are those of the
// metrics, and where they apply headway.rule (the one with the fewest units left,
// or the one that refused), headway.cost, headway.remaining,
// headway.key.digest, headway.retry_after (in seconds), error.type,
// http.request.resend_count and headway.store.away (true where it was decided
// without the store). A refusal or a cancel is an error.
//
// An event "headway.held" tells what held it up, by headway.cause: "pause", "rule",
// "slot" or "breaker", or the reason of the refusal. To a pause belong its length in seconds
// in headway.pause.duration, http.response.status_code and headway.dialect of the
// answer that raised it, and a link to the span of the request that got that
// answer. A pause is found for the host and key that it was raised for, and for
// at most the 16 that end last; a cause "rule" names the rule with the fewest
// units left.
//
// Names that OpenTelemetry has are those of its semantic conventions 1.43.0.
//
// # With otelhttp
//
// Under Headway, as its base, otelhttp sees the network alone, and nothing of what
// is refused. Its spans follow those of the waits, under the same parent:
//
//	transport, err := headway.NewTransport(otelhttp.NewTransport(nil), headway.Config{Policies: policies, Observer: observer})
//	client := &http.Client{Transport: transport}
//
// Over Headway, otelhttp sees the wait too, and its spans are the parents of
// those of the waits:
//
//	transport, err := headway.NewTransport(nil, headway.Config{Policies: policies, Observer: observer})
//	client := &http.Client{Transport: otelhttp.NewTransport(transport)}
//
// Both together show how much of a call was the wait and how much the network.
package otelheadway
