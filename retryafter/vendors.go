package retryafter

import (
	"math"
	"strings"
	"time"
)

// This file reads headers of vendors whose values are no plain numbers, each in a
// few lines: ratios, rates, and counters with the window in the name.

var shopifyRow = builtin{
	name:  "shopify",
	hosts: ".myshopify.com",
	odd:   oddShopify,
	fields: []field{
		{name: "X-Shopify-Shop-Api-Call-Limit", role: isOdd, marks: markShopify},
		{name: "X-Shopify-Api-Version", role: isMark, marks: markShopify},
	},
	shows: []bitset{markShopify},
	retry: decimalSeconds,
}

// shopifyLeak is how long a full bucket takes to leak: 40 at 2 a second, 80 at 4, 400 at
// 20. shopify.dev, "REST Admin API rate limits"; the 80 of the Advanced plan are in
// community.shopify.com, "API rate limits question".
const shopifyLeak = 20 * time.Second

// shopify reads the fill of a leaky bucket: "32/40".
func (r *reading) shopify(run []hit) {
	v, ok := r.one(&run[0])
	if !ok {
		return
	}
	l, ok := usedOf(v)
	if !ok {
		r.sig.malformed(run[0].key)
		return
	}
	l.Window, l.Resets = shopifyLeak, ResetFull
	r.add(&l, shopifyRow.order)
}

// usedOf reads used/limit.
func usedOf(v string) (LimitSignal, bool) {
	used, rest, ok := leadingDigits(v)
	if !ok || rest == "" || rest[0] != '/' {
		return LimitSignal{}, false
	}
	limit, ok := digits(rest[1:])
	if !ok || limit > math.MaxInt64 {
		return LimitSignal{}, false
	}
	left := int64(0)
	if used < limit {
		left = int64(limit - used)
	}
	return LimitSignal{Limit: int64(limit), HasLimit: true, Remaining: left, HasRemaining: true}, true
}

var salesforceRow = builtin{
	name:  "salesforce",
	hosts: ".salesforce.com .force.com",
	odd:   oddSalesforce,
	fields: []field{
		{name: "Sforce-Limit-Info", role: isOdd},
	},
	refuses: []int{403},
}

// salesforce reads "api-usage=25/5000; per-app-api-usage=17/250(appName=x)".
func (r *reading) salesforce(run []hit) {
	h := &run[0]
	if sfTooLong(h.vals) {
		r.sig.malformed(h.key)
		return
	}
	for _, line := range h.vals {
		for more := true; more; {
			var part string
			part, line, more = strings.Cut(line, ";")
			name, v, found := strings.Cut(trim(part), "=")
			v, _, _ = strings.Cut(v, "(")
			l, ok := usedOf(trim(v))
			if !found || !ok || name == "" || !printable(name) {
				r.sig.malformed(h.key)
				continue
			}
			l.Name = name
			r.add(&l, salesforceRow.order)
		}
	}
}

var amazonRow = builtin{
	name:  "amazon-sp-api",
	hosts: "sellingpartnerapi-na.amazon.com sellingpartnerapi-eu.amazon.com sellingpartnerapi-fe.amazon.com",
	odd:   oddAmazon,
	fields: []field{
		{name: "X-Amzn-Ratelimit-Limit", role: isOdd},
	},
}

// amazon reads a rate in requests per second, which is often a fraction. As a
// Limit is whole, 0.5 per second is reported as 1 in 2 s, 1.5 as 1,500 in 1,000 s:
// the same rate to a thousandth. developer-docs.amazon.com, "Usage plans and rate limits".
func (r *reading) amazon(run []hit) {
	v, ok := r.one(&run[0])
	if !ok {
		return
	}
	n, nano, ok := decimal(v)
	if !ok || n > math.MaxInt64/1000 || n|nano == 0 {
		r.sig.malformed(run[0].key)
		return
	}
	l := LimitSignal{Limit: int64(n), HasLimit: true, Window: time.Second, HasWindow: true}
	switch {
	case nano == 0:
	case n == 0:
		l.Limit = 1
		l.Window = roundUp(time.Duration((1_000_000_000*1_000_000_000 + nano - 1) / nano))
	default:
		l.Limit = int64(n*1000 + nano/1_000_000)
		l.Window = 1000 * time.Second
		if d := gcd(l.Limit, 1000); d > 1 {
			l.Limit, l.Window = l.Limit/d, l.Window/time.Duration(d)
		}
	}
	r.add(&l, amazonRow.order)
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

var azureComputeRow = builtin{
	name: "azure-compute",
	odd:  oddCompute,
	fields: []field{
		{name: "X-Ms-Ratelimit-Remaining-Resource", role: isOdd},
	},
}

// compute reads one "Microsoft.Compute/HighCostGet3Min;107" for each policy, a
// line each or in a list; the window stands at the end of the name.
// learn.microsoft.com, "Troubleshoot API throttling errors".
func (r *reading) compute(run []hit) {
	h := &run[0]
	if sfTooLong(h.vals) {
		r.sig.malformed(h.key)
		return
	}
	for _, line := range h.vals {
		for more := true; more; {
			var part string
			part, line, more = cutComma(line)
			name, v, _ := strings.Cut(part, ";")
			left, negative, ok := countOf(trim(v), count)
			if name = trim(name); name == "" || !printable(name) || !ok || negative && !r.refused {
				r.sig.malformed(h.key)
				continue
			}
			if negative {
				left = 0
			}
			l := LimitSignal{Name: name, Remaining: left, HasRemaining: true}
			l.Window, l.HasWindow = windowAtEnd(name)
			r.add(&l, azureComputeRow.order)
		}
	}
}

// windowAtEnd reads the 3Min at the end of a name.
func windowAtEnd(name string) (time.Duration, bool) {
	var unit time.Duration
	for _, u := range [...]struct {
		name string
		unit time.Duration
	}{{"Sec", time.Second}, {"Min", minute}, {"Hour", hour}, {"Day", day}} {
		if strings.HasSuffix(name, u.name) {
			name, unit = name[:len(name)-len(u.name)], u.unit
			break
		}
	}
	i := len(name)
	for i > 0 && isDigit(name[i-1]) {
		i--
	}
	n, ok := digits(name[i:])
	if !ok || n == 0 || unit == 0 {
		return 0, false
	}
	return span(n, 0, unit), true
}

var binanceRow = builtin{
	name:  "binance",
	hosts: "api.binance.com fapi.binance.com dapi.binance.com",
	odd:   oddBinance,
	patterns: []pattern{
		{prefix: "X-Mbx-Used-Weight-", rest: &field{role: isUsed, otherUnit: true}},
		{prefix: "X-Mbx-Order-Count-", rest: &field{role: isUsed}},
	},
	refuses: []int{418}, // a ban, after 429 was not obeyed
	scope:   ScopeHost,  // the address is limited
}

// binance reads counters of what was used, with the window in the name:
// X-MBX-USED-WEIGHT-1M. The limits stand elsewhere (exchangeInfo), so only the
// window can be known. github.com/binance/binance-spot-api-docs, "LIMITS".
func (r *reading) binance(run []hit) {
	for i := range run {
		h := &run[i]
		r.count(h) // says so when it is malformed; the window is known all the same
		if w, ok := binanceWindow(h.label()); ok {
			r.add(&LimitSignal{Window: w, HasWindow: true}, binanceRow.order)
		}
	}
}

// binanceWindow reads 10s, 1m, 1h or 1d, in either case: m is a minute.
func binanceWindow(label string) (time.Duration, bool) {
	n, rest, ok := leadingDigits(label)
	if !ok || n == 0 || len(rest) != 1 {
		return 0, false
	}
	switch rest[0] | 0x20 {
	case 's':
		return span(n, 0, time.Second), true
	case 'm':
		return span(n, 0, minute), true
	case 'h':
		return span(n, 0, hour), true
	case 'd':
		return span(n, 0, day), true
	}
	return 0, false
}
