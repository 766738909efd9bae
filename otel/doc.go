// Package otelheadway records OpenTelemetry metrics and spans of what a
// headway.Transport decides: how many requests started, how many were refused and why,
// and how long they waited in line and for what.
//
//	observer, err := otelheadway.NewObserver() // the global providers
//	if err != nil {
//		log.Fatal(err)
//	}
//	transport, err := headway.NewTransport(nil, headway.Config{Policies: policies, Observer: observer})
//
// # Metrics
//
// All have the attributes headway.policy and server.address, and server.port unless
// it is the default of the scheme. Metrics of a Shared policy as a whole (waiting,
// in_flight, remaining, pause.remaining) have no server.address. store.away and
// store.transitions have none of the three. The other attributes are the following,
// each prefixed with "headway.":
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
// What they mean:
//
//   - decisions: every request under a policy is one, and so is every Quota.Wait.
//     headway.outcome is "started", "refused", or "canceled" if its context ended
//     while it waited. headway.reason says why it was refused: "limit", "pause",
//     "in_flight", "line_full", "impossible", "disabled", "store", or "no_key" for
//     a *headway.KeyError and "open" for a *headway.OpenError.
//   - wait.duration: the time in line of every decision. The first bucket, up to 0,
//     holds only the decisions without a wait. While the caller's span is sampled,
//     it is the exemplar.
//   - delayed: decisions after a wait, each counted once, however often it was
//     postponed. With a Config.Store that is nearly all of them, as a round trip to
//     the store is a wait.
//   - retries: starts that were not the first attempt of their call, see
//     headway.AttemptFrom. amplification is the attempts sent per call sent, since
//     the beginning: 1 without retries, and never less. Requests that were refused
//     or canceled do not count. For the last minutes, divide the rate of all starts
//     by the rate of the starts that are not retries.
//   - waiting, in_flight: the requests now in line and in flight, as in
//     headway.HostStatus.
//   - remaining: the units that could start now; negative in debt. For a rule with
//     keys it is that of the key with the fewest units left. With a Config.Store it
//     is what the store has reported to this process within the last period of the
//     limit. A limit that a server announces, and that no rule stands for, has the
//     rule "learned".
//   - units: cost taken from a rule's limit, and returned to it. headway.source is
//     "client" for requests, the corrections of their cost, and Quota.Wait, and
//     "outside" for Quota.Spend.
//   - drift: units that the server has counted and this process has not.
//   - pause: pauses raised by responses. The duration counts from the arrival of
//     the response; remaining is the time until the last pause ends, or 0.
//   - breaker: its state is 0 closed, 1 half-open or 2 open, by host even in a
//     Shared policy. Transitions are counted by the new state: "closed",
//     "half_open" or "open".
//   - headers.malformed: headers of responses that were ignored because they could
//     not be read.
//   - overflows: times that a host or a key found no room under Config.MaxHosts.
//   - store: away is the number of Transports whose Config.Store is down. Requests
//     find that out: the value stays while there are none, and for good if a
//     Transport is dropped meanwhile. Transitions are counted by the new state,
//     "away" or "back". missed counts the decisions that were made without the
//     store, under the policy's Store.Down; headway.decisions includes them. unread
//     counts the rows that could not be read, by their host, and clock_set_back how
//     often the store's clock was found to be behind what it had written.
//
// Counters, and store.away, appear when there is something to count. There are
// series for as many hosts as WithMaxHosts permits. The other hosts of a policy
// share one, with the server.address "_OTHER", and so do the rules of a host beyond
// the 64th: only their names are lost. The SDK has a bound of its own, 2,000 series
// per instrument. Key digests appear in spans only.
//
// Instruments are created once per provider, and attribute sets once per host and
// rule. Gauges read the state of Transports when metrics are collected. Transports
// are held by weak pointers.
//
// # Spans
//
// While the span of a request's context is recording, each request has a child span
// "headway wait", from its arrival until it starts, is refused or is canceled.
// Without such a span there is none. It has ended when the request is sent, so that
// it covers neither headers nor a body. Its attributes are those of the metrics
// and, where they apply, headway.rule (the rule with the fewest units left, or the
// one that refused), headway.cost, headway.remaining, headway.key.digest,
// headway.retry_after (in seconds), error.type, http.request.resend_count and
// headway.store.away (true if it was decided without the store). A refusal and a
// cancellation are errors.
//
// An event "headway.held" says what held the request, by headway.cause: "pause",
// "rule", "slot" or "breaker", or the reason of the refusal. For a pause it has the
// length in seconds in headway.pause.duration, http.response.status_code and
// headway.dialect of the response that raised it, and a link to the span of the
// request that received that response. Pauses are found by the host and key that
// they were raised for, and only the 16 that end last. A cause "rule" names the
// rule with the fewest units left.
//
// Names that OpenTelemetry defines are those of its semantic conventions 1.43.0.
//
// # With otelhttp
//
// As the base of a Transport, otelhttp sees the network alone, and no request that
// is refused. Its spans follow the wait spans, under the same parent:
//
//	transport, err := headway.NewTransport(otelhttp.NewTransport(nil), headway.Config{Policies: policies, Observer: observer})
//	client := &http.Client{Transport: transport}
//
// Around a Transport, otelhttp sees the wait too, and its spans are the parents of
// the wait spans:
//
//	transport, err := headway.NewTransport(nil, headway.Config{Policies: policies, Observer: observer})
//	client := &http.Client{Transport: otelhttp.NewTransport(transport)}
//
// Both together show how much of a call was spent waiting and how much in the
// network.
package otelheadway
