package retryafter

import (
	"net/http"
	"slices"
	"time"
)

// A Dialect is one way in which servers describe their limits. Implement it to add
// one, and pass it to [NewReader]. It must be safe for concurrent use.
type Dialect interface {
	// Name returns a short, constant name in lower case, such as "github".
	Name() string
	// Read reads the status and the headers of a response that arrived at now. It
	// returns false if the response says nothing in this dialect. It must not
	// change h.
	Read(status int, h http.Header, now time.Time) (Signal, bool)
}

// A BodyDialect is a Dialect with refusals that only the body reveals, such as
// GitHub's secondary limits. Of the built-in dialects, [GitHub], [AWS], [Google],
// [OpenAI], and those of Anthropic and Stripe are.
type BodyDialect interface {
	Dialect
	// ReadBody reads the response with prefix, the first bytes of its body: at most
	// 4 KiB, which may end anywhere. The Signal includes what the headers say. It
	// returns false if the body does not reveal a throttle.
	ReadBody(status int, h http.Header, prefix []byte, now time.Time) (Signal, bool)
}

// A RouteDialect is a Dialect of servers that limit single endpoints, methods or other
// resources besides the identity, see [LimitSignal].Resource. The built-in dialects are
// RouteDialects; most of them have nothing to say.
type RouteDialect interface {
	Dialect
	// Route returns a name for what a request is for, such as "search" for GitHub's
	// /search/code: requests with the same route draw on the same limits. It returns ""
	// if the dialect says nothing of that, and it must not change the request.
	Route(*http.Request) string
}

// The dialects that are worth choosing explicitly, because they read a response
// differently or read its body. [Dialects] returns all others, too.
var (
	None       Dialect = none{}             // reads nothing: among the dialects of a [Reader] it turns all reading off
	RFC9110    Dialect = &retryAfterRow     // Retry-After alone: RFC 9110, section 10.2.3
	RateLimit  Dialect = &rateLimitRow      // RateLimit, RateLimit-Policy, RateLimit-*: draft-ietf-httpapi-ratelimit-headers, 03 to 10
	XRateLimit Dialect = &xRateLimitRow     // X-RateLimit-*, by the size of the number
	Airtable   Dialect = &airtableRow       // a 429 means 30 s: support.airtable.com, "Managing API call limits"
	AWS        Dialect = bodied{&awsRow}    // SlowDown and Throttling in the body: docs.aws.amazon.com, S3 "Error responses"
	Azure      Dialect = &azureRow          // Resource Manager and Compute: learn.microsoft.com, "ARM request limits"
	Binance    Dialect = &binanceRow        // limits the address: github.com/binance/binance-spot-api-docs
	Discord    Dialect = &discordRow        // a fraction in Retry-After, buckets: github.com/discord/discord-api-docs
	DiscordV6  Dialect = &discordV6Row      // milliseconds in Retry-After: the same, before version 8
	GitHub     Dialect = bodied{&gitHubRow} // 403 too; secondary limits are in the body: docs.github.com, "Rate limits for the REST API"
	GitLab     Dialect = &gitLabRow         // an epoch in RateLimit-Reset: docs.gitlab.com, "User and IP rate limits"
	Google     Dialect = bodied{&googleRow} // rateLimitExceeded, RetryInfo in the body: developers.google.com, "Resolve errors"
	Linear     Dialect = &linearRow         // 400 too; an epoch in ms: linear.app/developers, "Rate limiting"
	OpenAI     Dialect = bodied{&openAIRow} // insufficient_quota in the body: platform.openai.com, "Error codes"
	Prisjakt   Dialect = &prisjaktRow       // milliseconds in X-Rate-Limit-Reset: developer.prisjakt.nu, "Rate limits"
	QuickBooks Dialect = &quickBooksRow     // a 429 means 60 s: developer.intuit.com, "API call limits"
	Salesforce Dialect = &salesforceRow     // 403 too: Salesforce REST API guide, "Limit Info Header"
	Shopify    Dialect = &shopifyRow        // a fraction in Retry-After: shopify.dev, "REST Admin API rate limits"
	Slack      Dialect = &slackRow          // limits the method, not the caller: docs.slack.dev, "Rate limits"
	Twitter    Dialect = &twitterRow        // limits the endpoint, not the caller: docs.x.com, "Rate limits"
)

// Dialects returns all built-in dialects, those of the standards first. Select from
// them by Name.
func Dialects() []Dialect { return slices.Clone(dialects) }

var dialects = func() []Dialect {
	var all []Dialect
	for _, row := range table {
		if row.body != 0 {
			all = append(all, bodied{row})
		} else {
			all = append(all, row)
		}
	}
	return all
}()

type none struct{}

func (none) Name() string                                    { return "none" }
func (none) Read(int, http.Header, time.Time) (Signal, bool) { return Signal{}, false }
