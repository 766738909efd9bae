package retryafter

import (
	"strings"
	"time"
)

// xRateLimitRow are the X-RateLimit-* names, which were never standardized: Limit,
// Remaining and Reset, with a unit that differs from vendor to vendor; a label
// behind them (OpenAI: X-RateLimit-Limit-Tokens, Kong: X-RateLimit-Limit-Minute)
// or before them (Linear: X-RateLimit-Requests-Limit); and what single vendors
// added.
var xRateLimitRow = builtin{
	name: "x-ratelimit",
	odd:  oddXRateLimit,
	fields: []field{
		{name: "X-Ratelimit-Limit", role: isLimit, form: countListAny, marks: markXLimit},
		{name: "X-Ratelimit-Max", role: isLimit},            // GoHighLevel
		{name: "X-Ratelimit", role: isLimit},                // Composio
		{name: "X-Ratelimit-Burst-Capacity", role: isLimit}, // Spring Cloud Gateway
		{name: "X-Ratelimit-Remaining", role: isRemaining, form: countDecimal},
		{name: "X-Ratelimit-Used", role: isUsed, form: countDecimal, marks: markUsed},
		{name: "X-Ratelimit-Reset-After", role: isReset, form: secondsF, marks: markResetAfter}, // Discord
		{name: "X-Ratelimit-Reset", role: isReset, form: byMagnitudeF},
		{name: "X-Ratelimit-Next", role: isReset, form: dateOnly, resets: ResetUnit}, // Akamai
		{name: "X-Ratelimit-Interval-Milliseconds", role: isWindow, form: millis},    // GoHighLevel
		{name: "X-Ratelimit-Window-Size", role: isWindow, form: duration},            // Composio
		{name: "X-Ratelimit-Resource", role: isName, marks: markResource},            // GitHub
		{name: "X-Ratelimit-Scope", role: isName},                                    // Discord
		{name: "X-Ratelimit-Global", role: isGlobal, marks: markGlobal},              // Discord
		{name: "Ratelimit-Reason", role: isName},                                     // Jira
		{name: "X-Ratelimit-Bucket", role: isMark, marks: markBucket},                // Discord
		{name: "X-Ratelimit-Usage", role: isOdd, marks: markUsage},                   // Strava
		{name: "X-Ratelimit-Policy", role: isOdd, marks: markPolicy},                 // Brave
		{name: "X-Ratelimit-Retry-After", role: isAsk, form: seconds, rank: rankVendor},
	},
	patterns: []pattern{{
		prefix: "X-Ratelimit-",
		before: []field{
			{name: "Limit-", role: isLimit, form: countDecimal},
			{name: "Remaining-", role: isRemaining, form: countDecimal},
			{name: "Reset-", role: isReset, form: durationOr},
		},
		after: []field{
			{name: "-Limit", role: isLimit, marks: markInfix},
			{name: "-Remaining", role: isRemaining, marks: markInfix},
			{name: "-Reset", role: isReset, form: byMagnitude, marks: markInfix},
		},
	}},
}

// xReadRateLimitRow is Strava's second pair, for requests that only read.
var xReadRateLimitRow = builtin{
	name: "x-readratelimit",
	odd:  oddReadRateLimit,
	fields: []field{
		{name: "X-Readratelimit-Limit", role: isOdd},
		{name: "X-Readratelimit-Usage", role: isOdd},
	},
}

// xRateLimit reads all headers of the row.
func (r *reading) xRateLimit(run []hit) {
	if r.seen&markUsage != 0 {
		r.strava("X-Ratelimit-Limit", "X-Ratelimit-Usage", [2]string{"15min", "day"})
		for i := range run {
			r.say(&run[i])
		}
		return
	}
	first := int(r.sig.n)
	if r.parallel(run) {
		for len(run) > 0 && run[0].label() == "" {
			r.say(&run[0])
			run = run[1:]
		}
		r.plain(run)
		return
	}
	r.plain(run)
	if r.seen&markPolicy != 0 && !r.policies(r.h["X-Ratelimit-Policy"], first) {
		r.sig.malformed("X-Ratelimit-Policy")
	}
}

// parallel reads lists that run alongside each other, as Brave sends them, one
// place for each window:
//
//	X-RateLimit-Limit: 1, 15000
//	X-RateLimit-Policy: 1;w=1, 15000;w=2592000
//	X-RateLimit-Remaining: 0, 14999
//	X-RateLimit-Reset: 1, 1419704
//
// It is false when these are no such lists: Limit and Remaining must have the
// same number of places, two or more.
func (r *reading) parallel(run []hit) bool {
	lists := false
	for i := range run {
		if h := &run[i]; h.f.role == isRemaining && h.hi == 0 {
			for _, line := range h.vals[:min(len(h.vals), maxLines)] { // the same line twice is one value
				lists = lists || line != h.vals[0] || len(line) <= maxValue && strings.IndexByte(line, ',') >= 0
			}
		}
	}
	if !lists || r.seen&markPolicy == 0 &&
		(thousands(r.h["X-Ratelimit-Remaining"]) || thousands(r.h["X-Ratelimit-Limit"])) {
		return false
	}
	var limit, left, reset columns
	if !left.read(r.h["X-Ratelimit-Remaining"]) || left.n < 2 ||
		!limit.read(r.h["X-Ratelimit-Limit"]) || limit.n != left.n {
		return false
	}
	if !reset.read(r.h["X-Ratelimit-Reset"]) || reset.n != left.n {
		reset = columns{}
		if r.h["X-Ratelimit-Reset"] != nil {
			r.sig.malformed("X-Ratelimit-Reset")
		}
	}
	policies := memberList{lines: r.h["X-Ratelimit-Policy"]}
	if sfTooLong(policies.lines) {
		policies.lines = nil
	}
	for i := range left.n {
		var l LimitSignal
		var negative, ok bool
		if l.Limit, negative, l.HasLimit = countOf(limit.v[i], countDecimal); !l.HasLimit || negative {
			l.Limit, l.HasLimit = 0, false
			r.sig.malformed("X-Ratelimit-Limit")
		}
		if l.Remaining, negative, ok = countOf(left.v[i], countDecimal); negative {
			l.Remaining, l.HasRemaining = 0, r.refused
		} else if l.HasRemaining = ok; !ok {
			r.sig.malformed("X-Ratelimit-Remaining")
		}
		if reset.n > 0 {
			if l.Reset, l.Coarse, l.HasReset = r.timeOf(reset.v[i], byMagnitudeF); !l.HasReset {
				r.sig.malformed("X-Ratelimit-Reset")
			}
			l.Coarse = l.Coarse && l.HasReset && pointless(reset.v[i])
		}
		var m member
		if policies.next(&m) && m.isPolicy() && (!l.HasLimit || m.quota() == l.Limit) {
			l.Window, l.HasWindow = span(uint64(m.w), 0, time.Second), m.has&hasW != 0
			l.Name = m.text()
		}
		if l != (LimitSignal{}) {
			r.add(&l, xRateLimitRow.order)
		}
	}
	return true
}

// columns are the places of a comma-separated list.
type columns struct {
	v [maxLimits]string
	n int
}

// read splits the lines of a header. It is false when there are too many places,
// too many bytes, or nothing.
func (c *columns) read(lines []string) bool {
	if len(lines) > maxLines {
		return false
	}
	for _, line := range lines {
		if len(line) > maxValue {
			return false
		}
		for more := true; more; {
			if c.n == len(c.v) {
				return false
			}
			var v string
			v, line, more = cutComma(line)
			c.v[c.n] = v
			c.n++
		}
	}
	return c.n > 0
}

// cutComma cuts the first place off a list.
func cutComma(line string) (v, rest string, more bool) {
	for i := 0; i < len(line); i++ {
		if line[i] == ',' {
			return trim(line[:i]), line[i+1:], true
		}
	}
	return trim(line), "", false
}

// strava reads pairs of a quarter of an hour and a day, aligned to the clock in
// UTC: developers.strava.com, "Rate limits".
//
//	X-RateLimit-Limit: 200,2000
//	X-RateLimit-Usage: 128,1034
//
// A single number does not say which window it is of.
func (r *reading) strava(limitKey, usageKey string, names [2]string) {
	var limit, usage columns
	okLimit, okUsage := limit.read(r.h[limitKey]), usage.read(r.h[usageKey])
	if !okLimit || limit.n != 2 {
		r.sig.malformed(limitKey)
	}
	if !okUsage || usage.n != 2 {
		r.sig.malformed(usageKey)
	}
	if !okLimit || !okUsage || limit.n != 2 || usage.n != 2 {
		return
	}
	for i, window := range [2]time.Duration{15 * minute, day} {
		n, negative, ok := countOf(limit.v[i], count)
		if !ok || negative {
			r.sig.malformed(limitKey)
			continue
		}
		used, negative, ok := countOf(usage.v[i], count)
		if !ok || negative {
			r.sig.malformed(usageKey)
			continue
		}
		now := r.clock()
		size := int64(window / time.Second)
		end := instant{now.sec - floorMod(now.sec, size) + size, 0}
		r.add(&LimitSignal{
			Name:         names[i],
			Limit:        n,
			HasLimit:     true,
			Remaining:    max(0, n-used),
			HasRemaining: true,
			Reset:        now.until(end),
			HasReset:     true,
			Resets:       ResetWindow,
			Window:       window,
			HasWindow:    true,
		}, xReadRateLimitRow.order)
	}
}

// floorMod is the remainder that is never negative.
func floorMod(a, b int64) int64 { return (a%b + b) % b }

func (r *reading) readRateLimit([]hit) {
	r.strava("X-Readratelimit-Limit", "X-Readratelimit-Usage", [2]string{"read-15min", "read-day"})
}
