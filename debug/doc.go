// Package debug is a page that shows what a headway.Transport does now: for every
// policy and host the line, what is in flight, each budget and what is left of
// it, the breaker, pauses and who asked for them, what was learned from the server, the
// last refusals, and whether the store is away, since when and why. It is to be
// mounted where net/http/pprof is:
//
//	var recent debug.Recent
//	transport, err := headway.NewTransport(nil, headway.Config{Policies: policies, Observer: &recent})
//	http.Handle("/debug/headway", debug.Handler(transport, &recent))
//
// Without a Recent the page works too; only then it shows no refusals, of a
// pause not which answer raised it, and nothing of the store.
//
// # What it answers
//
// The path does not matter, the query does:
//
//	?as=html     the page; also without as
//	?as=json     the same as JSON, for scripts
//	?as=events   the page's live part as server-sent events, for the page itself
//	?q=TEXT      only policies and hosts whose name contains TEXT
//	?offset=N    without the first N hosts
//	?limit=N     for JSON: at most N hosts, up to 1,000
//	?rows=N      for JSON: at most N rows of each table of a host, up to 10,000
//
// Hosts with the longest lines come first, then those with pauses, with breakers that
// are not closed, and with requests in flight; all else by name. The page shows 100 of
// them and 20 rows of each table of a host, JSON 100 and 100 where nothing else is asked
// for. Both say how many there are in all. Between two requests hosts may change places.
//
// The page needs nothing from elsewhere and no scripts: without them it is loaded
// again every 5 s. With them it is live: an event comes each second, less often
// where it takes long to make. A stream ends when the reader goes or has taken
// nothing for 10 s, while its tab is hidden, and when the server shuts down.
//
// # What it costs
//
// Nothing while nobody looks: there is no goroutine, and nothing is sampled. The
// small picture of a line shows the last 5 minutes as far as somebody looked at the
// page, or fetched its JSON: each look is a sample, at most one a second, however many look.
// Where nobody looked it is blank. Samples are kept for 5 minutes of looking, at
// most 301, with the 100 longest lines each; of the rest what was seen last is kept
// until the next look. For the past that nobody looked at
// there are metrics.
//
// # Who may see it
//
// Whoever can reach it: so mount it where only operators can. It is read-only and
// answers GET and HEAD alone, and only under the names localhost, 127.0.0.0/8 and [::1],
// at any port, or one of Config.Hosts: else a page of another site could read it, by
// having its own name lead here. It shows names of policies, rules and hosts, but of
// keys only their digests. Nothing of it is stored by caches, and its content
// security policy lets nothing run but its own script.
package debug
