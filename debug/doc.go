// Package debug serves a page that shows what a headway.Transport is doing: for
// every policy and host the line, the requests in flight, each budget with what is
// left of it here and by what the server announced, the breaker, the pauses and the
// responses that raised them, the latest refusals, and whether the store is down,
// since when and why. Mount it where net/http/pprof is mounted:
//
//	var recent debug.Recent
//	transport, err := headway.NewTransport(nil, headway.Config{Policies: policies, Observer: &recent})
//	http.Handle("/debug/headway", debug.Handler(transport, &recent))
//
// The page works without a Recent, but then shows no refusals, no responses that
// raised pauses, and nothing about the store.
//
// # Requests
//
// The path does not matter, only the query:
//
//	?as=html     the page; also without as
//	?as=json     the same as JSON, for scripts
//	?as=events   the page's live part as server-sent events, for the page itself
//	?q=TEXT      only policies and hosts whose name contains TEXT
//	?offset=N    without the first N hosts
//	?limit=N     for JSON: at most N hosts, up to 1,000
//	?rows=N      for JSON: at most N rows of each table of a host, up to 10,000
//
// Hosts with the longest lines come first, then hosts with pauses, with breakers
// that are not closed, and with requests in flight; the others follow by name. By
// default the page shows 100 hosts and 20 rows of each table of a host, and JSON
// 100 of both. Both report the totals. Between two requests hosts may change
// places.
//
// The page loads nothing from elsewhere and works without scripts: it is then
// reloaded every 5 s. With scripts it is live, with an event each second, or less
// often if an event takes long to make. A stream ends when the client disconnects,
// receives nothing for 10 s, or hides the tab, and when the server shuts down.
//
// # Budgets
//
// Each budget is one row, with two sides:
//
//   - Ours is what the limit of the rule has left.
//   - Theirs, the server's on the page, is what each limit has left that the server
//     announced of this budget, the least first: with the time until units return, the
//     dialect of the response and its age, and how many units others have spent.
//
// The side that has less left binds: no more requests can start. JSON has the fields
// "ours", "theirs", a list, and "binds", which is "ours", "theirs" or "both", and absent
// where neither limits anything. An announced limit that belongs to no rule is a row
// without ours. Over a Config.Store the numbers are what this process knows of it: ours has the
// age of the store's report, and of a limit that was announced to another process alone
// no more is known than what it has left.
//
// # Cost
//
// Without readers it costs nothing: there is no goroutine, and nothing is sampled.
// The small picture of a line covers the last 5 minutes. Each request for the page
// or its JSON is a sample, at most one per second for all readers together, and the
// picture is blank where there was none. Samples are kept for 5 minutes, at most
// 301, with the 100 longest lines each; of the other lines the latest state is kept
// until the next sample. For history without gaps there are metrics.
//
// # Access
//
// Every client that can reach the page can read it, so mount it where only
// operators can. It is read-only and serves GET and HEAD requests, for the names
// localhost, 127.0.0.0/8 and [::1], at any port, and those of Config.Hosts. Under
// any other name a page of another site could read this one, by pointing a name of
// its own here. The page shows the names of policies, rules and hosts, but only
// digests of keys. Caches do not store it, and its content security policy runs no
// script but its own.
package debug
