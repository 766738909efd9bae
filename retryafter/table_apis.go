package retryafter

// social are chats, networks and media.
var social = []*builtin{
	// A limit for each method, workspace and app. docs.slack.dev, "Rate limits".
	&slackRow,
	// Two dialects: the API before version 8 sent Retry-After in milliseconds, and
	// no Reset-After. github.com/discord/discord-api-docs, "Rate limits".
	&discordV6Row,
	&discordRow,
	// docs.x.com, "Rate limits": for each endpoint, by user or app.
	&twitterRow,
	// No limit, but what was used; seconds to the end of the period, and a float. The
	// Reddit API wiki.
	&redditRow,
	// Windows aligned to the epoch. github.com/mastodon/mastodon, rate_limit_headers.rb.
	{name: "mastodon", hosts: "mastodon.social mastodon.online", uses: plainX, resets: ResetWindow},
	// github.com/bluesky-social/atproto, rate-limiter.ts: fixed windows.
	{name: "bluesky", hosts: "bsky.social public.api.bsky.app", uses: plainIETF, resets: ResetWindow},
	{name: "vimeo", hosts: "api.vimeo.com", uses: plainX},
	// "when your bucket is reset to full". dev.twitch.tv, "Twitch API Concepts".
	{name: "twitch", hosts: "api.twitch.tv", uses: plainIETF, resets: ResetFull},
	{name: "spotify", hosts: "api.spotify.com"},
	{name: "strava", hosts: "www.strava.com", uses: []*builtin{&xRateLimitRow, &xReadRateLimitRow}},
	&metaRow,
}

var slackRow = builtin{name: "slack", hosts: "slack.com", scope: ScopeRule, routes: routesSlack, perPath: true}

var discordV6Row = builtin{
	name:  "discord-v6",
	uses:  plainX,
	shows: []bitset{markBucket},
	lacks: markResetAfter,
	retry: milliseconds,
	scope: ScopeRule,

	resets: ResetWindow,
	routes: routesDiscord,
}

var discordRow = builtin{
	name:  "discord",
	hosts: "discord.com discordapp.com",
	uses:  plainX,
	shows: []bitset{markBucket, markGlobal},
	retry: decimalSeconds,
	scope: ScopeRule,

	resets: ResetWindow, // all of the bucket
	routes: routesDiscord,
}

var twitterRow = builtin{
	name:  "twitter",
	hosts: "api.twitter.com api.x.com",
	uses:  plainHyphen,
	scope: ScopeRule,

	resets:  ResetWindow, // of 15 minutes, or a day
	routes:  routesPath,
	perPath: true,
}

var redditRow = builtin{name: "reddit", hosts: "oauth.reddit.com www.reddit.com", uses: plainX, resets: ResetWindow}

// commerce are shops, payments and accounting.
var commerce = []*builtin{
	// A leaky bucket as used/size, Retry-After with a fraction. shopify.dev, "REST
	// Admin API rate limits".
	&shopifyRow,
	// docs.stripe.com, "Rate limits"; the reason is not sent for a lock on an object.
	// See narrow and stripeBody.
	&stripeRow,
	&xeroRow,
	// The per-second header has been seen with its last letter missing.
	{
		name:  "etsy",
		hosts: "openapi.etsy.com api.etsy.com",
		fields: []field{
			{name: "X-Limit-Per-Second", role: isLimit, label: "second"},
			{name: "X-Remaining-This-Second", role: isRemaining, label: "second"},
			{name: "X-Remaining-This-Secon", role: isRemaining, label: "second"},
			{name: "X-Limit-Per-Day", role: isLimit, label: "day"},
			{name: "X-Remaining-Today", role: isRemaining, label: "day"},
		},
	},
	&amazonRow,
	// No header: "wait 60 seconds". developer.intuit.com.
	&quickBooksRow,
	&bigCommerceRow,
	{name: "square", hosts: "connect.squareup.com"},
	{name: "adyen", hosts: ".adyen.com"},
	{name: "ebay", hosts: "api.ebay.com"},
	{name: "plaid", hosts: "production.plaid.com sandbox.plaid.com"},
}

var stripeRow = builtin{
	name:  "stripe",
	hosts: "api.stripe.com",
	fields: []field{
		{name: "Stripe-Rate-Limited-Reason", role: isName},
		{name: "Stripe-Should-Retry", role: isShouldRetry},
	},
	body: bodyStripe,
}

// bigCommerceRow: milliseconds to the end of the window under names of its own; its
// older API sent 509 with X-Retry-After. docs.bigcommerce.com, "API rate limits".
var bigCommerceRow = builtin{
	name:  "bigcommerce",
	hosts: "api.bigcommerce.com .mybigcommerce.com",
	fields: []field{
		{name: "X-Rate-Limit-Requests-Quota", role: isLimit},
		{name: "X-Rate-Limit-Requests-Left", role: isRemaining},
		{name: "X-Rate-Limit-Time-Reset-Ms", role: isReset, form: millis},
		{name: "X-Rate-Limit-Time-Window-Ms", role: isWindow, form: millis},
		{name: "X-Retry-After", role: isAsk, form: seconds, rank: rankVendor},
	},
	resets: ResetWindow,
}

var quickBooksRow = builtin{
	name:  "quickbooks",
	hosts: "quickbooks.api.intuit.com sandbox-quickbooks.api.intuit.com",
	wait:  60 * second,
}

// intelligence are the hosts of language models.
var intelligence = []*builtin{
	// A limit each for requests and tokens, Go's durations, milliseconds before
	// seconds. Reset is when the limit "resets to its initial state".
	// platform.openai.com, "Rate limits"; openai-python.
	&openAIRow,
	// The example says so: 14,370 of 14,400 a day are left, and all in 2m59.56s.
	// console.groq.com, "Rate limits".
	{name: "groq", hosts: "api.groq.com", uses: plainModels, resets: ResetFull},
	// OpenAI's names with whole seconds, and one with a hyphen more.
	{name: "azure-openai", hosts: ".openai.azure.com", uses: []*builtin{&retryAfterMsRow, &xRateLimitRow, &xRateHyphenRow, &openAIRow}},
	// RFC 3339; 529 is overload. Reset is when the bucket is "fully replenished".
	// docs.anthropic.com, "Rate limits".
	&anthropicRow,
	{name: "together", hosts: "api.together.xyz api.together.ai", uses: plainX},
	// The policy is called "fixed window". huggingface.co/docs/hub, "Rate limits".
	{name: "huggingface", hosts: "huggingface.co", uses: plainIETF, resets: ResetWindow},
}

var plainModels = []*builtin{&retryAfterMsRow, &xRateLimitRow, &openAIRow}

var openAIRow = builtin{
	name:  "openai",
	hosts: "api.openai.com",
	fields: []field{
		{name: "X-Should-Retry", role: isShouldRetry},
	},
	uses:   []*builtin{&retryAfterMsRow, &xRateLimitRow},
	resets: ResetFull,
	body:   bodyOpenAI,
}

var anthropicRow = builtin{
	name:  "anthropic",
	hosts: "api.anthropic.com",
	patterns: []pattern{{
		prefix: "Anthropic-Ratelimit-",
		after: []field{
			{name: "-Limit", role: isLimit},
			{name: "-Remaining", role: isRemaining},
			{name: "-Reset", role: isReset, form: byMagnitude},
		},
	}},
	uses:   []*builtin{&retryAfterMsRow, &openAIRow},
	resets: ResetFull,
	body:   bodyAnthropic,
}

// dataAPIs are catalogues, exchanges and other sources of data.
var dataAPIs = []*builtin{
	{name: "crossref", hosts: "api.crossref.org", uses: plainHyphen},
	{name: "pdnd", hosts: "api.interop.pagopa.it", uses: plainHyphen},
	{name: "rapidapi", hosts: ".p.rapidapi.com", uses: plainX},
	{name: "brave", hosts: "api.search.brave.com", uses: plainX},
	{name: "guardian", hosts: "content.guardianapis.com", uses: plainX},
	// api.data.gov and others: a limit for each of several windows, with fractions.
	{name: "suffix-fractional", uses: plainX},
	// maxlag comes with status 200. mediawiki.org, "Manual:Maxlag parameter".
	{name: "mediawiki", hosts: ".wikipedia.org .wikimedia.org .wikidata.org"},
	{name: "nominatim", hosts: "nominatim.openstreetmap.org"},
	{name: "virustotal", hosts: "www.virustotal.com"},
	{name: "coinbase", hosts: "api.coinbase.com api.exchange.coinbase.com"},
	{name: "kraken", hosts: "api.kraken.com"},
	&binanceRow,
	// bybit-exchange.github.io, "Rate limit": a rolling window for each endpoint; the
	// timestamp is now while some is left.
	{
		name:  "bybit",
		hosts: "api.bybit.com",
		fields: []field{
			{name: "X-Bapi-Limit", role: isLimit},
			{name: "X-Bapi-Limit-Status", role: isRemaining},
			{name: "X-Bapi-Limit-Reset-Timestamp", role: isReset, form: byMagnitude},
		},
		resets:  ResetRolling,
		routes:  routesPath,
		perPath: true,
	},
	// Milliseconds to the end of a window of 30 s. kucoin.com/docs, "Rate limit".
	{name: "kucoin", hosts: "api.kucoin.com", fields: trio("Gw-Ratelimit-", millis), resets: ResetWindow},
	// Says when, not what is left; 400 with code 99991400. open.larksuite.com.
	&larkRow,
	// docs.oracle.com, Access Governance, "Rate limits": milliseconds.
	{
		name: "oracle-access-governance",
		patterns: []pattern{{
			prefix: "Requestlimit-",
			after: []field{
				{name: "-Remaining", role: isRemaining},
				{name: "-Retryafter", role: isReset, form: millis},
			},
		}},
	},
	// Milliseconds from now, under the names Twitter has for an epoch.
	// developer.prisjakt.nu, "Rate limits".
	&prisjaktRow,
	{name: "alegra", hosts: "api.alegra.com", uses: plainHyphen},
	&esiRow,
	{name: "shodan", hosts: "api.shodan.io"},
	{name: "censys", hosts: "search.censys.io"},
	{name: "newsapi", hosts: "newsapi.org"},
}

var larkRow = builtin{
	name:  "lark",
	hosts: "open.larksuite.com open.feishu.cn",
	fields: []field{
		{name: "X-Ogw-Ratelimit-Limit", role: isLimit},
		{name: "X-Ogw-Ratelimit-Reset", role: isReset, form: byMagnitudeF},
	},
	refuses: []int{400},
	blind:   true,
}

// esiRow is EVE Online's API. What remains counts errors, not requests, so that only
// the time to the end of the window is read: 420 once too many requests were wrong. developers.eveonline.com,
// "ESI error rate limit".
var esiRow = builtin{
	name:  "eve-esi",
	hosts: "esi.evetech.net",
	fields: []field{
		{name: "X-Esi-Error-Limit-Reset", role: isReset, form: byMagnitude, otherUnit: true},
	},
	refuses: []int{statusCalm},
	blind:   true,
	resets:  ResetWindow,
}

var prisjaktRow = builtin{
	name:  "prisjakt",
	hosts: ".prisjakt.nu",
	uses:  plainHyphen,
	small: smallMillis,
}
