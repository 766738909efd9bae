package retryafter

import (
	"net/http"
	"time"
)

// A reading is one response while it is being read. (It holds no pointer to the
// scan and stores none of its own pointers anywhere: the compiler then keeps both
// on the stack.)
type reading struct {
	clocks
	status int
	sig    *Signal
	rows   [maxLimits]uint8 // where in the table each limit of sig was read

	seen    bitset
	conv    *builtin // whose conventions hold for headers that many share
	refused bool     // the status refuses the request, in this dialect
	asked   uint8    // the rank of the explicit request to wait, zero: none yet
	asker   uint8    // the row that read it
}

// read reads a response into the zero Signal s. It is false when the response
// said nothing that c reads.
func (c *Reader) read(s *Signal, status int, h http.Header, now time.Time) bool {
	if len(h) == 0 && status < 400 {
		return false
	}
	var few [fewHits]hit
	found := scan{hits: few[:0]}
	found.scan(h, c.set)
	switch {
	case found.seen == 0 && status < 400:
		return false
	case found.more:
		return c.readMany(s, status, h, now)
	case status < 400 && c.usual(s, &found, h, now):
		return true
	}
	c.interpret(s, &found, status, h, now)
	return found.seen != 0 || s.HasRetryAfter
}

// readMany is read with room for all hits.
func (c *Reader) readMany(s *Signal, status int, h http.Header, now time.Time) bool {
	var many [maxHits]hit
	found := scan{hits: many[:0]}
	found.scan(h, c.set)
	c.interpret(s, &found, status, h, now)
	return true
}

// interpret makes s of what was found.
func (c *Reader) interpret(s *Signal, found *scan, status int, h http.Header, now time.Time) {
	found.sort()
	r := reading{clocks: clocks{h: h, came: now}, status: status, sig: s, seen: found.seen}
	r.conv = c.choose(found, status)
	r.refused = r.refuses()
	for i := 0; i < len(found.hits); {
		run := found.run(i)
		r.run(run)
		i += len(run)
	}
	r.finish()
	s.stored = found.stored && s.n > 0
}

// run reads the headers of one row.
func (r *reading) run(run []hit) {
	switch run[0].f.row.odd {
	case oddRateLimit:
		r.rateLimit(run)
	case oddXRateLimit:
		r.xRateLimit(run)
	case oddReadRateLimit:
		r.readRateLimit(run)
	case oddShopify:
		r.shopify(run)
	case oddSalesforce:
		r.salesforce(run)
	case oddAmazon:
		r.amazon(run)
	case oddCompute:
		r.compute(run)
	case oddBinance:
		r.binance(run)
	case oddContentful:
		r.contentful(run)
	case oddMeta:
		r.meta(run)
	case oddSentry:
		r.sentry(run)
	case oddXero:
		r.xero(run)
	case oddZendesk:
		r.zendesk(run)
	default:
		r.plain(run)
	}
}

// Statuses that no RFC defines, and that say that requests come too fast.
const (
	statusCalm       = 420 // Twitter once, and its followers: "Enhance Your Calm"
	statusBandwidth  = 509 // BigCommerce, Bitbucket and cPanel: "Bandwidth Limit Exceeded"
	statusOverloaded = 529 // Anthropic, Notion, Qualys: overloaded, all callers together
)

// refuses reports whether the status says that the request came too fast: 429,
// 503 and what is used for them, or what the dialect uses besides.
func (r *reading) refuses() bool {
	switch r.status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, statusOverloaded, statusCalm, statusBandwidth:
		return true
	}
	if r.status < 400 {
		return false
	}
	if r.conv.refusesWith(r.status) {
		return true
	}
	for _, row := range refusers {
		if r.seen&row.own != 0 && row.refusesWith(r.status) {
			return true
		}
	}
	return false
}

func (b *builtin) refusesWith(status int) bool {
	for _, s := range b.refuses {
		if s == status {
			return true
		}
	}
	return false
}

// add adds a limit that the row with the given place in the table read.
func (r *reading) add(l *LimitSignal, row uint8) {
	dropped, ok := r.sig.add(l)
	if !ok {
		return
	}
	if dropped >= 0 {
		copy(r.rows[dropped:], r.rows[dropped+1:])
	}
	r.rows[r.sig.n-1] = row
}

func (r *reading) remove(i int) {
	r.sig.remove(i)
	copy(r.rows[i:], r.rows[i+1:])
}

// ask takes an explicit request to wait: the lowest rank counts, of equals the
// longest.
func (r *reading) ask(rank uint8, d time.Duration, row *builtin) {
	if r.asked != 0 && r.asked < rank {
		return
	}
	if r.asked != rank {
		r.sig.HasRetryAfter = false
	}
	r.asked, r.asker = rank, row.order
	r.sig.ask(d)
}
