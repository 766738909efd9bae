package retryafter

import (
	"net/http"
	"time"
)

// A reading is one response while it is being read. (It holds no pointer to the
// scan and stores none of its own pointers anywhere: the compiler then keeps both
// on the stack.)
type reading struct {
	status int
	h      http.Header
	now    time.Time
	sig    *Signal
	rows   [maxLimits]uint8 // where in the table each limit of sig was read

	seen    bitset
	conv    *builtin // whose conventions hold for headers that many share
	refused bool     // the status refuses the request, in this dialect
	asked   uint8    // the rank of the explicit request to wait, zero: none yet
	asker   uint8    // the row that read it

	dateLine, ageLine string  // what the clock is read from
	server            instant // the server's clock
	hasServer         bool
}

// read reads a response into the zero Signal s. It is false when the response
// said nothing that c reads.
func (c *Reader) read(s *Signal, status int, h http.Header, now time.Time) bool {
	var found scan
	found.scan(h, c.set)
	if found.seen == 0 && status < 400 {
		return false
	}
	if now.IsZero() {
		now = time.Now()
	}
	c.interpret(s, &found, status, h, now)
	return found.seen != 0 || s.HasRetryAfter
}

// interpret makes s of what was found.
func (c *Reader) interpret(s *Signal, found *scan, status int, h http.Header, now time.Time) {
	r := reading{status: status, h: h, now: now, sig: s, seen: found.seen, dateLine: found.date, ageLine: found.age}
	r.conv = c.choose(found, status)
	r.refused = r.refuses()
	for i := 0; i < found.n; {
		run := found.run(i)
		r.run(run)
		i += len(run)
	}
	r.finish()
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

// refuses reports whether the status says that the request came too fast: 429
// and 503, or what the dialect uses besides.
func (r *reading) refuses() bool {
	switch r.status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
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
func (r *reading) add(l LimitSignal, row uint8) {
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

// clock is the server's time: its Date and, for a stored response, its Age;
// without a readable Date it is ours.
func (r *reading) clock() instant {
	if r.hasServer {
		return r.server
	}
	r.server, r.hasServer = instantOf(r.now), true
	if len(r.dateLine) <= maxValue {
		if sec, ok := httpDate(trim(r.dateLine), r.now); ok {
			r.server = instant{sec + r.age(), 0}
		}
	}
	return r.server
}

// age is the response's Age in seconds, zero when it has none.
func (r *reading) age() int64 {
	if len(r.ageLine) > maxValue {
		return 0
	}
	n, ok := digits(trim(r.ageLine))
	if !ok {
		return 0
	}
	return int64(min(n, 1<<31)) // RFC 9111, section 1.2.2: saturates there
}

// stored reports whether the response came from a cache.
func (r *reading) stored() bool { return r.age() > 0 }
