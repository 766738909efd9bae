package retryafter

import "slices"

// table holds every built-in dialect. The order decides between two that a
// response shows at once, and in which order limits are listed. To add a
// dialect, add a row to the group it belongs to: its own headers, or in uses the
// row whose headers it sends. The tests generate responses from every row.
var table = slices.Concat(
	standards,
	codeHosting,
	social,
	commerce,
	intelligence,
	clouds,
	gateways,
	services,
	dataAPIs,
)

// Shorthands for the rows whose headers many vendors send.
var (
	plainX      = []*builtin{&xRateLimitRow}
	plainHyphen = []*builtin{&xRateHyphenRow}
	plainIETF   = []*builtin{&rateLimitRow}
)

// trio is the usual set of three headers.
func trio(prefix string, reset form) []field {
	return []field{
		{name: prefix + "Limit", role: isLimit},
		{name: prefix + "Remaining", role: isRemaining},
		{name: prefix + "Reset", role: isReset, form: reset},
	}
}

// unknown stands for the dialect of a response that shows none, with no
// convention of its own.
var unknown builtin

// standards are the rows that are no vendor's, and the families of names that
// many vendors share.
var standards = []*builtin{
	&retryAfterRow,
	&retryAfterMsRow,
	&rateLimitRow,
	&xRateLimitRow,
	&xReadRateLimitRow,
	&xRateHyphenRow,
}

// Ranks of the headers that ask for a wait in so many words: the first that can
// be read counts. Milliseconds come first, as in OpenAI's and Azure's SDKs.
const (
	rankMillis      uint8 = iota + 1 // retry-after-ms
	rankAzureMillis                  // x-ms-retry-after-ms
	rankAmazon                       // x-amz-retry-after
	rankVendor                       // a vendor's own header
	rankRetryAfter                   // Retry-After
	rankLate                         // what is less careful than Retry-After beside it
)

// retryAfterRow is RFC 9110, section 10.2.3. Every dialect reads it.
var retryAfterRow = builtin{
	name: "rfc9110",
	fields: []field{
		{name: "Retry-After", role: isRetryAfter, rank: rankRetryAfter},
	},
}

// retryAfterMsRow: openai-python's _base_client.py and azcore's shared.go read
// these before Retry-After, the first with a fraction.
var retryAfterMsRow = builtin{
	name: "retry-after-ms",
	fields: []field{
		{name: "Retry-After-Ms", role: isAsk, form: millisF, rank: rankMillis},
		{name: "X-Ms-Retry-After-Ms", role: isAsk, form: millisF, rank: rankAzureMillis},
	},
}

// xRateHyphenRow are the names with two hyphens: Twitter and Okta send an epoch
// in Reset, Alegra seconds, Prisjakt milliseconds; Zendesk's limit is called
// X-Rate-Limit; Crossref and PDND add an interval, the one in Go's notation and
// the other in milliseconds; Trello names two limits, and Azure OpenAI sends
// x-rate-limit-reset-tokens beside x-ratelimit-remaining-requests. Twitter sent
// 420 once.
var xRateHyphenRow = builtin{
	name: "x-rate-limit",
	fields: []field{
		{name: "X-Rate-Limit-Limit", role: isLimit},
		{name: "X-Rate-Limit", role: isLimit},
		{name: "X-Rate-Limit-Remaining", role: isRemaining},
		{name: "X-Rate-Limit-Reset", role: isReset, form: byMagnitude},
		{name: "X-Rate-Limit-Interval", role: isWindow, form: durationOrMillis},
	},
	patterns: []pattern{{
		prefix: "X-Rate-Limit-",
		before: []field{
			{name: "Limit-", role: isLimit},
			{name: "Remaining-", role: isRemaining},
			{name: "Reset-", role: isReset, form: durationOr},
		},
		after: []field{
			{name: "-Max", role: isLimit},
			{name: "-Limit", role: isLimit},
			{name: "-Remaining", role: isRemaining},
			{name: "-Reset", role: isReset, form: byMagnitude},
			{name: "-Interval-Ms", role: isWindow, form: millis},
		},
	}},
	refuses: []int{420},
}

// codeHosting are GitHub, its peers, and Atlassian.
var codeHosting = []*builtin{
	// Primary limits on 403 or 429, with x-ratelimit-remaining 0; secondary limits
	// with or without Retry-After, which only the body distinguishes from a missing
	// permission. docs.github.com, "Rate limits for the REST API".
	&gitHubRow,
	// An epoch under the IETF's name. docs.gitlab.com, "User and IP rate limits".
	&gitLabRow,
	{name: "bitbucket", hosts: "api.bitbucket.org", uses: plainX},
	// RateLimit-Reason says which of three limits refused. developer.atlassian.com,
	// "Rate limiting".
	{name: "jira", hosts: "api.atlassian.com .atlassian.net", uses: plainX},
	// Two limiters, the second for floods in one room. developer.atlassian.com, 2017.
	{
		name:  "hipchat",
		hosts: "api.hipchat.com",
		fields: []field{
			{name: "X-Floodcontrol-Limit", role: isLimit, label: "floodcontrol"},
			{name: "X-Floodcontrol-Remaining", role: isRemaining, label: "floodcontrol"},
			{name: "X-Floodcontrol-Reset", role: isReset, form: byMagnitude, label: "floodcontrol"},
		},
		uses: plainX,
	},
}

var gitHubRow = builtin{
	name:  "github",
	hosts: "api.github.com uploads.github.com",
	fields: []field{
		{name: "X-Github-Request-Id", role: isMark, marks: markGitHub},
	},
	uses:    plainX,
	shows:   []bitset{markGitHub, markUsed | markResource},
	small:   smallPast,
	resets:  ResetWindow, // "the current rate limit window resets"
	routes:  routesGitHub,
	refuses: []int{403},
	wait:    60 * second, // a 429 with budget left is a secondary limit: a minute at least
	body:    bodyGitHub,
}

var gitLabRow = builtin{
	name:  "gitlab",
	hosts: "gitlab.com",
	uses:  plainIETF,
	shows: []bitset{markGitLab},
	small: smallPast,
	// gitlabhq, lib/gitlab/rack_attack.rb: fixed windows.
	resets: ResetWindow,
}

// services are helpdesks, trackers, mail and other software as a service.
var services = []*builtin{
	// A limit of the account under two names, and one for each endpoint.
	// developer.zendesk.com, "Rate limits".
	&zendeskRow,
	&hubSpotRow,
	// HubSpot's shape under the general prefix. marketplace.gohighlevel.com.
	{name: "gohighlevel", hosts: "services.leadconnectorhq.com", uses: plainX},
	// Used and size of the quota of a rolling day; 403 when it is spent. Salesforce
	// REST API guide, "Limit Info Header".
	&salesforceRow,
	// Epochs in milliseconds, limits for requests, complexity and endpoints; 400 when
	// one is spent. linear.app/developers, "Rate limiting".
	&linearRow,
	{name: "notion", hosts: "api.notion.com"},
	// No header: "you will need to wait 30 seconds". support.airtable.com.
	&airtableRow,
	{name: "twilio", hosts: "api.twilio.com"},
	// A number of requests to each endpoint for each refresh period.
	// twilio.com/docs/sendgrid, "Rate limits".
	{name: "sendgrid", hosts: "api.sendgrid.com", uses: plainX, resets: ResetWindow, routes: routesPath, perPath: true},
	{name: "mailgun", hosts: "api.mailgun.net api.eu.mailgun.net", uses: plainX},
	{name: "resend", hosts: "api.resend.com", uses: plainIETF},
	// developers.brevo.com, "Rate limit headers".
	{name: "brevo", hosts: "api.brevo.com", fields: trio("X-Sib-Ratelimit-", byMagnitude), routes: routesPath, perPath: true},
	{name: "dropbox", hosts: "api.dropboxapi.com content.dropboxapi.com"},
	{name: "box", hosts: "api.box.com upload.box.com"},
	{name: "asana", hosts: "app.asana.com"},
	{name: "trello", hosts: "api.trello.com", uses: plainHyphen},
	&contentfulRow,
	// Fixed windows, for each endpoint and account. developers.klaviyo.com, "Rate limits,
	// status codes, and errors".
	{name: "klaviyo", hosts: "a.klaviyo.com", uses: plainIETF, resets: ResetWindow, routes: routesPath, perPath: true},
	// developers.pipedrive.com, "Rate limiting".
	{
		name:  "pipedrive",
		hosts: "api.pipedrive.com .pipedrive.com",
		fields: []field{
			{name: "X-Daily-Requests-Left", role: isRemaining, label: "daily"},
		},
		uses: plainX,
	},
	// "Time when rate limit window will be reset". developers.intercom.com, "Rate limiting".
	{name: "intercom", hosts: "api.intercom.io", uses: plainX, resets: ResetWindow},
	{name: "clickup", hosts: "api.clickup.com", uses: plainX},
	{name: "smartsheet", hosts: "api.smartsheet.com", uses: plainX},
	{name: "lemlist", hosts: "api.lemlist.com", uses: plainX},
	{name: "composio", hosts: "backend.composio.dev", uses: plainX},
	{name: "asaas", hosts: "api.asaas.com", uses: plainIETF},
	{name: "airweave", hosts: "api.airweave.ai", uses: plainIETF},
	{name: "pluggy", hosts: "api.pluggy.ai", uses: plainIETF},
	{name: "persona", hosts: "api.withpersona.com", uses: plainIETF},
	{name: "perforce", uses: plainX},
	{name: "mailerlite", hosts: "api.mailerlite.com connect.mailerlite.com", uses: plainX},
	{name: "braze", uses: plainX},
	{name: "supabase", uses: plainX},
}

var airtableRow = builtin{name: "airtable", hosts: "api.airtable.com", wait: 30 * second}
