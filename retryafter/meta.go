package retryafter

import "time"

// metaRow reads what Facebook, Instagram and WhatsApp send: JSON with percentages
// of several budgets, and in the business form the minutes until access comes
// back. developers.facebook.com, "Rate Limits".
//
//	X-App-Usage: {"call_count":28,"total_time":25,"total_cputime":25}
//	X-Business-Use-Case-Usage: {"1":[{"type":"ads_insights","call_count":100,
//	    "total_time":25,"total_cputime":25,"estimated_time_to_regain_access":19}]}
var metaRow = builtin{
	name:  "meta",
	hosts: "graph.facebook.com graph.instagram.com graph.whatsapp.com",
	odd:   oddMeta,
	fields: []field{
		{name: "X-App-Usage", role: isOdd, label: "app"},
		{name: "X-Ad-Account-Usage", role: isOdd, label: "ad-account"},
		{name: "X-Page-Usage", role: isOdd, label: "page"},
		{name: "X-Business-Use-Case-Usage", role: isOdd, label: "business-use-case"},
	},
	refuses: []int{400, 403},
}

// meta reports the highest percentage of each header as one limit of 100.
func (r *reading) meta(run []hit) {
	for i := range run {
		h := &run[i]
		if !r.usage(h) {
			r.sig.malformed(h.key)
		}
	}
}

// usage reads one header, all of it or nothing.
func (r *reading) usage(h *hit) bool {
	if len(h.vals) != 1 || len(h.vals[0]) > maxLong {
		return false
	}
	l := LimitSignal{Name: h.label(), Limit: 100, HasLimit: true, OtherUnit: true}
	left := int64(100)
	p := jsonScanner{s: h.vals[0]}
	for p.next() {
		if p.quoted {
			continue
		}
		n, nano, ok := decimal(p.text)
		switch p.key(p.depth - 1) {
		case "call_count", "total_time", "total_cputime", "acc_id_util_pct", "app_id_util_pct":
			if !ok {
				return false
			}
			if nano > 0 {
				n++
			}
			l.HasRemaining = true
			left = min(left, 100-int64(min(n, 100)))
		case "estimated_time_to_regain_access":
			if !ok {
				return false
			}
			if d := span(n, nano, time.Minute); d > 0 {
				l.Reset, l.HasReset = max(l.Reset, d), true
			}
		}
	}
	if !p.complete() || !l.HasRemaining {
		return false
	}
	l.Remaining = left
	if l.HasReset {
		l.Remaining = 0 // access was taken away, whatever the percentages say
	}
	r.add(&l, metaRow.order)
	return true
}
