package retryafter

import (
	"strings"
	"time"
)

// This file reads headers of services whose limits come in several headers or in
// a list of their own.

var zendeskRow = builtin{
	name:  "zendesk",
	hosts: ".zendesk.com",
	odd:   oddZendesk,
	patterns: []pattern{
		{prefix: "Zendesk-Ratelimit-", rest: &field{role: isOdd}},
	},
	uses:   []*builtin{&rateLimitRow, &xRateHyphenRow},
	resets: ResetWindow, // of a minute
	routes: routesPath,
}

// zendesk reads the limits of endpoints:
//
//	zendesk-ratelimit-tickets-index: total=100; remaining=99; resets=41
func (r *reading) zendesk(run []hit) {
	for i := range run {
		h := &run[i]
		line, ok := r.one(h)
		if !ok {
			continue
		}
		var l LimitSignal
		for more := true; more; {
			var part string
			part, line, more = strings.Cut(line, ";")
			name, v, _ := strings.Cut(trim(part), "=")
			n, negative, ok := countOf(trim(v), count)
			if ok && negative {
				n, ok = 0, r.refused && trim(name) == "remaining"
			}
			switch trim(name) {
			case "total":
				l.Limit, l.HasLimit = n, ok
			case "remaining":
				l.Remaining, l.HasRemaining = n, ok
			case "resets":
				l.HasReset, l.Coarse = ok, ok
				if ok {
					l.Reset = span(uint64(n), 0, time.Second)
				}
			default:
				ok = true // nothing we know
			}
			if !ok {
				r.sig.malformed(h.key)
			}
		}
		if l != (LimitSignal{}) {
			l.Name = wordOf(h.label()).name
			l.Resource = l.Name
			r.add(&l, zendeskRow.order)
		}
	}
}

// hubSpotRow: the -Secondly pair is still sent but no longer enforced, and so not
// read. developers.hubspot.com, "API usage guidelines".
var hubSpotRow = builtin{
	name:  "hubspot",
	hosts: "api.hubapi.com",
	fields: []field{
		{name: "X-Hubspot-Ratelimit-Max", role: isLimit},
		{name: "X-Hubspot-Ratelimit-Remaining", role: isRemaining},
		{name: "X-Hubspot-Ratelimit-Interval-Milliseconds", role: isWindow, form: millis},
		{name: "X-Hubspot-Ratelimit-Daily", role: isLimit, label: "daily"},
		{name: "X-Hubspot-Ratelimit-Daily-Remaining", role: isRemaining, label: "daily"},
	},
}

var linearRow = builtin{
	name:  "linear",
	hosts: "api.linear.app",
	fields: []field{
		{name: "X-Complexity", role: isMark, marks: markComplexity},
	},
	uses:    plainX,
	shows:   []bitset{markComplexity},
	refuses: []int{400},
}

var contentfulRow = builtin{
	name:  "contentful",
	hosts: "api.contentful.com cdn.contentful.com preview.contentful.com",
	odd:   oddContentful,
	fields: []field{
		{name: "X-Contentful-Ratelimit-Reset", role: isReset, form: byMagnitude},
		{name: "X-Contentful-Ratelimit-Second-Limit", role: isLimit, label: "second"},
		{name: "X-Contentful-Ratelimit-Second-Remaining", role: isRemaining, label: "second"},
		{name: "X-Contentful-Ratelimit-Hour-Limit", role: isLimit, label: "hour"},
		{name: "X-Contentful-Ratelimit-Hour-Remaining", role: isRemaining, label: "hour"},
	},
	resets: ResetUnit, // "until the next request can be made"
}

// contentful has one reset for two windows: it is that of the limit that binds.
// contentful.com/developers, "API rate limits".
func (r *reading) contentful(run []hit) {
	reset := -1
	if run[0].f.role == isReset {
		at := int(r.sig.n)
		r.plain(run[:1])
		if int(r.sig.n) > at {
			reset = at
		}
		run = run[1:]
	}
	best := -1
	for from := int(r.sig.n); len(run) > 0; {
		n := 1
		for n < len(run) && run[n].label() == run[0].label() {
			n++
		}
		r.limit(run[:n])
		run = run[n:]
		for i := from; i < int(r.sig.n); i++ {
			if best < 0 || bindsBefore(&r.sig.limits[i], &r.sig.limits[best]) {
				best = i
			}
		}
	}
	if reset >= 0 && best >= 0 {
		l, of := &r.sig.limits[best], &r.sig.limits[reset]
		l.Reset, l.HasReset, l.Coarse = of.Reset, true, of.Coarse
		r.remove(reset)
	}
}

var xeroRow = builtin{
	name:  "xero",
	hosts: "api.xero.com",
	odd:   oddXero,
	fields: []field{
		{name: "X-Minlimit-Remaining", role: isRemaining, label: "minute"},
		{name: "X-Daylimit-Remaining", role: isRemaining, label: "day"},
		{name: "X-Appminlimit-Remaining", role: isRemaining, label: "app-minute", window: minute},
		{name: "X-Rate-Limit-Problem", role: isName, label: "problem"},
	},
}

// xero counts what is left in three windows. The name of the one that refused is
// a limit of its own only where no counter could be read, as after too many at
// once. developer.xero.com, "OAuth 2.0 API limits".
func (r *reading) xero(run []hit) {
	first := r.sig.n
	var problem *hit
	for i := range run {
		if run[i].f.role == isName {
			problem = &run[i]
			continue
		}
		r.limit(run[i : i+1])
	}
	if problem != nil && r.sig.n == first {
		if name := r.name(problem); name != "" {
			r.add(&LimitSignal{Name: name}, xeroRow.order)
		}
	}
}

var sentryRow = builtin{
	name:  "sentry",
	hosts: "sentry.io .sentry.io",
	odd:   oddSentry,
	fields: []field{
		{name: "X-Sentry-Rate-Limits", role: isOdd},
	},
}

// sentry reads limits that are in force, also on a success:
//
//	60:default;error:organization:reason, 2700::project
//
// The fields are seconds, categories (none: all), scope, reason, namespaces.
// Those are up to the caller, so the longest counts.
// develop.sentry.dev, "Rate limiting".
func (r *reading) sentry(run []hit) {
	h := &run[0]
	if sfTooLong(h.vals) {
		r.sig.malformed(h.key)
		return
	}
	for _, line := range h.vals {
		for more := true; more; {
			var part string
			part, line, more = cutComma(line)
			v, rest, found := strings.Cut(part, ":")
			n, ok := digits(trim(v))
			_, rest, _ = strings.Cut(rest, ":")
			scope, _, _ := strings.Cut(rest, ":")
			if !ok || !found || !printable(scope) {
				r.sig.malformed(h.key)
				continue
			}
			d := span(n, 0, time.Second)
			r.ask(rankVendor, d, &sentryRow)
			r.add(&LimitSignal{Name: trim(scope), Reset: d, HasReset: true, Coarse: true}, sentryRow.order)
		}
	}
}
