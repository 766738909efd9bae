package retryafter

import (
	"net/http"
	"strings"
	"time"
)

// finish draws the conclusions once all headers are read.
func (r *reading) finish() {
	s := r.sig
	if s.n > 1 {
		r.merge()
	}
	exhausted, global := false, false
	for i := range s.Limits() {
		exhausted = exhausted || s.limits[i].exhausted()
		global = global || s.limits[i].Name == "global"
	}
	if !s.HasRetryAfter && r.refused {
		r.waitForReset(exhausted)
	}
	if !s.HasRetryAfter && r.status == http.StatusTooManyRequests && r.conv.wait > 0 {
		s.ask(r.conv.wait)
		s.Documented = true
	}
	switch {
	case r.status == http.StatusTooManyRequests, r.status == statusOverloaded:
		s.Throttled = true
	case r.status == http.StatusServiceUnavailable:
		s.Throttled = s.Throttled || s.HasRetryAfter || s.Hint > 0
	case r.refused: // a status with other meanings besides
		s.Throttled = s.Throttled || exhausted || s.HasRetryAfter || s.Hint > 0
	}
	if (s.Throttled || s.HasRetryAfter) && !global {
		s.Scope = r.conv.scope
	}
	if r.status == http.StatusTooManyRequests {
		r.narrow()
	}
	r.whose(global)
	s.Dialect = r.dialect()
}

// narrow sets the scope of a 429 whose vendor says what was refused: an object or an
// endpoint, while the others go on.
func (r *reading) narrow() {
	s := r.sig
	switch reason := r.line("Stripe-Rate-Limited-Reason"); {
	case reason == "resource-specific":
		s.Scope = ScopeRequest
	case strings.HasPrefix(reason, "endpoint-"):
		s.Scope = ScopeRule
	case reason == "" && !s.HasRetryAfter && (r.seen&stripeRow.own != 0 || r.conv == &stripeRow):
		s.Scope = ScopeRequest // a lock on an object: only Stripe's limiters give a reason
	}
	switch r.line("Ratelimit-Reason") {
	case "jira-per-issue-on-write":
		s.Scope = ScopeRequest
	case "jira-burst-based":
		s.Scope = ScopeRule
	}
	if r.seen&shopifyRow.own != 0 && s.n > 0 {
		// The bucket of the shop is not half full: a limit of the resource refused.
		if l := &s.limits[0]; r.rows[0] == shopifyRow.order && l.Remaining > l.Limit/2 {
			s.Scope = ScopeRule
		}
	}
}

// waitForReset makes a refusal that names no time a request to wait for the last
// reset of those limits that are exhausted; when the response says so of none, for
// the reset of the limit of which it does not say what is left. A limit that has
// units left did not refuse.
func (r *reading) waitForReset(exhausted bool) {
	s := r.sig
	unknown := -1 // of those without a number of what is left, the one that binds
	for i := range s.Limits() {
		l := &s.limits[i]
		switch {
		case l.HasReset && l.exhausted():
			s.infer(l.Reset)
		case l.HasReset && !l.HasRemaining && (unknown < 0 || bindsBefore(l, &s.limits[unknown])):
			unknown = i
		}
	}
	if exhausted || unknown < 0 {
		return
	}
	l := &s.limits[unknown]
	switch r.status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, statusOverloaded:
	default: // it may mean anything else
		if !r.blind() || l.Reset == 0 {
			return
		}
	}
	s.infer(l.Reset)
}

// blind reports whether the dialect never says what is left.
func (r *reading) blind() bool {
	for _, row := range refusers {
		if row.blind && r.seen&row.own != 0 {
			return true
		}
	}
	return false
}

// merge joins what the same response says twice about one limit: under
// RateLimit-* and X-RateLimit-*, or under a trio without a label and again under
// the name of the window (Kong). Two limits without a label of one row are two.
func (r *reading) merge() {
	for i := 0; i < int(r.sig.n); i++ {
		if !r.mergeable(i) {
			continue
		}
		for j := 0; j < int(r.sig.n); j++ {
			a, b := &r.sig.limits[i], &r.sig.limits[j]
			if i == j || b.Name == "" && r.rows[i] == r.rows[j] || !alike(a, b, r.mergeable(j)) {
				continue
			}
			fill(b, a)
			r.remove(i)
			i--
			break
		}
	}
}

// mergeable reports whether the i-th limit is without a label, in fields that
// many send.
func (r *reading) mergeable(i int) bool {
	return r.sig.limits[i].Name == "" &&
		(r.rows[i] == rateLimitRow.order || r.rows[i] == xRateLimitRow.order || r.rows[i] == xRateHyphenRow.order)
}

// alike reports whether a, without a label, and b are one limit. With a label b
// must say the same in so many words; otherwise it is enough that they nowhere
// contradict each other.
func alike(a, b *LimitSignal, loose bool) bool {
	sameLimit := a.Limit == b.Limit && a.HasLimit && b.HasLimit
	sameLeft := a.Remaining == b.Remaining && a.HasRemaining && b.HasRemaining
	sameReset := a.HasReset && b.HasReset && near(a.Reset, b.Reset)
	if a.HasReset && b.HasReset && !sameReset {
		return false
	}
	if loose {
		return (sameLimit || !a.HasLimit || !b.HasLimit) && (sameLeft || !a.HasRemaining || !b.HasRemaining)
	}
	return sameLeft && (sameLimit || sameReset && (!a.HasLimit || !b.HasLimit))
}

// near allows for the rounding of an epoch and of a Date.
func near(a, b time.Duration) bool {
	return max(a, b)-min(a, b) <= 2*time.Second
}

// fill adds to l what only m knows. Of two resets the longer counts.
func fill(l, m *LimitSignal) {
	if !l.HasLimit {
		l.Limit, l.HasLimit = m.Limit, m.HasLimit
	}
	if !l.HasRemaining {
		l.Remaining, l.HasRemaining = m.Remaining, m.HasRemaining
	}
	if m.HasReset && (!l.HasReset || m.Reset > l.Reset) {
		l.Reset, l.HasReset, l.Coarse = m.Reset, true, m.Coarse
	}
	l.Resets = max(l.Resets, m.Resets)
	if !l.HasWindow {
		l.Window, l.HasWindow = m.Window, m.HasWindow
	}
}

// dialect is the name under which the reading is known: of the dialect that was
// shown or named, else of the row of the binding limit, else of what asked to wait.
func (r *reading) dialect() string {
	if r.conv != &unknown && r.seen != 0 {
		return r.conv.name
	}
	if i := r.sig.binding(); i >= 0 {
		if r.rows[i] == policiesOnly {
			return rateLimitRow.name
		}
		return table[r.rows[i]].name
	}
	if r.asked != 0 {
		return table[r.asker].name
	}
	if r.sig.Documented {
		return r.conv.name
	}
	return ""
}
