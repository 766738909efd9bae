package retryafter

import (
	"net/http"
	"time"
)

// A builtin is a dialect of the table: which headers it reads, and how it differs
// from what they generally mean. Most rows are data only. A row with an oddity
// has a file, or a part of one, that reads its headers.
type builtin struct {
	name string
	// hosts are well-known hosts, separated by spaces; ".example.com" is every host
	// below example.com.
	hosts string
	// fields are the headers this dialect alone defines, patterns those of which a
	// part of the name is the label of a limit. Of fields that say the same thing
	// the first that can be read counts.
	fields   []field
	patterns []pattern
	// uses are rows whose headers it sends too. Retry-After is understood.
	uses []*builtin
	// shows are signs, each of which alone shows that a response is in this
	// dialect, if none of lacks is seen.
	shows []bitset
	lacks bitset

	odd     oddity
	small   smallNumber
	retry   retryForm
	refuses []int         // statuses besides 429 and 503 that refuse for going too fast
	blind   bool          // never says what is left: a refusal with a reset is enough
	wait    time.Duration // the wait the documentation asks for after a 429 that names none
	scope   Scope         // which requests its pauses hold
	resets  ResetKind     // what happens at a reset, where it is documented
	routes  routes        // how requests are told apart that draw on other limits
	perPath bool          // each route has limits of its own, which the response does not name
	body    bodies        // what the bodies of its refusals reveal

	order uint8   // place in the table
	own   bitset  // of its fields and patterns, zero without any
	set   bitset  // of everything it reads
	alone *Reader // of this dialect alone
}

// A bitset is a set of rows that have headers, and of marks.
type bitset uint64

// A mark is set by a header that shows a dialect.
const (
	markGitHub     bitset = 1 << iota // X-GitHub-*
	markUsed                          // X-RateLimit-Used
	markResource                      // X-RateLimit-Resource
	markXLimit                        // X-RateLimit-Limit
	markBucket                        // X-RateLimit-Bucket
	markResetAfter                    // X-RateLimit-Reset-After
	markGlobal                        // X-RateLimit-Global
	markUsage                         // X-RateLimit-Usage
	markPolicy                        // X-RateLimit-Policy
	markComplexity                    // X-Complexity
	markInfix                         // X-RateLimit-<label>-*
	markGitLab                        // RateLimit-Observed
	markShopify                       // X-Shopify-*
	firstRow                          // the bit of the first row with headers
)

// smallNumber is what a number below 10^9 means in a reset that is read by
// magnitude.
type smallNumber uint8

const (
	smallSeconds smallNumber = iota // seconds from now
	smallPast                       // an instant long past: this vendor sends epochs only
	smallMillis                     // milliseconds from now, up to 10^11
)

// A field is one header of a dialect.
type field struct {
	name      string // canonical, as in http.Header
	role      role
	form      form
	rank      uint8         // of an isAsk: the lowest that can be read counts
	label     string        // of the limit it speaks of
	window    time.Duration // of that limit, where the name of the header states it
	otherUnit bool
	resets    ResetKind // of an isReset that means the same at every vendor
	marks     bitset

	row   *builtin
	order int
	usual bool // it may be in a usual response
}

// A pattern is a set of headers that begin alike and have a label in their name.
type pattern struct {
	prefix string
	before []field // "Limit-", then the label
	after  []field // the label, then "-Limit"
	rest   *field  // nothing but the label
}

// role is what a header says. Those from isStructured on stand first in a run.
type role uint8

const (
	isLimit role = iota
	isRemaining
	isUsed
	isReset
	isWindow
	isName        // the label of the limit that the other headers speak of
	isGlobal      // "true": the limit is the one called "global"
	isAsk         // an explicit request to wait
	isRetryAfter  // Retry-After itself
	isRefusal     // "true": the refusal is a throttle
	isErrorCode   // one of Amazon's
	isShouldRetry // "false": do not retry; "true": whatever the status, do
	isMark        // only shows the dialect
	isOdd         // read by the row's oddity
	isStructured  // RateLimit
	isPolicy      // RateLimit-Policy
)

// form is how a value is written.
type form uint8

const (
	count            form = iota // 1*DIGIT; of what is left also -1*DIGIT
	countDecimal                 // with a fraction, rounded down
	countList                    // the first member of a list of integers with parameters
	countListAny                 // countList, countDecimal
	byMagnitude                  // a reset: seconds, an epoch in s, ms or µs, or a date
	byMagnitudeF                 // with a fraction
	durationOr                   // Go's duration, or byMagnitude
	seconds                      // 1*DIGIT seconds
	secondsF                     // with a fraction
	millis                       // 1*DIGIT milliseconds
	millisF                      // with a fraction
	dateOnly                     // an HTTP-date or an RFC 3339 instant
	duration                     // Go's duration
	durationOrMillis             // that, or 1*DIGIT milliseconds: an X-Rate-Limit-Interval
)

// oddity names the code that reads the headers of a row whose values are no
// plain numbers. (It is a switch and not a function in the row, as a reading that
// is passed to a function value would have to be allocated.)
type oddity uint8

const (
	plain oddity = iota
	oddRateLimit
	oddXRateLimit
	oddReadRateLimit
	oddShopify
	oddSalesforce
	oddAmazon
	oddCompute
	oddBinance
	oddContentful
	oddMeta
	oddSentry
	oddXero
	oddZendesk
)

// Name returns the name of the dialect in the table.
func (b *builtin) Name() string { return b.name }

// Read reads the headers of this dialect, as it means them. It is false when
// the response has none.
func (b *builtin) Read(status int, h http.Header, now time.Time) (s Signal, ok bool) {
	ok = b.alone.read(&s, status, h, now)
	return s, ok
}
