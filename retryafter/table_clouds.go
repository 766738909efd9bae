package retryafter

// clouds are the large platforms and what runs on them.
var clouds = []*builtin{
	// What is left, with the label in the name; the SDK reads milliseconds first.
	// learn.microsoft.com, "Understand how Azure Resource Manager throttles
	// requests"; azcore, shared.go.
	&azureRow,
	&azureComputeRow,
	{name: "cosmosdb", hosts: ".documents.azure.com", uses: []*builtin{&retryAfterMsRow}},
	// learn.microsoft.com, "Microsoft Graph throttling guidance".
	{
		name:  "ms-graph",
		hosts: "graph.microsoft.com",
		fields: []field{
			{name: "X-Ms-Throttle-Scope", role: isName},
		},
		uses: plainIETF,
	},
	{name: "sharepoint", hosts: ".sharepoint.com", uses: plainIETF},
	// S3's SlowDown stands in the body. docs.aws.amazon.com, "Error responses"; the
	// milliseconds of x-amz-retry-after are read by the SDKs.
	&awsRow,
	// developers.google.com, "Resolve errors"; google.rpc.RetryInfo.
	&googleRow,
	{name: "cloudflare", hosts: "api.cloudflare.com", uses: plainIETF},
	// Fixed windows, for each endpoint. support.okta.com, "Rate Limit Frequently Asked
	// Questions"; developer.okta.com, "Rate limits".
	{name: "okta", hosts: ".okta.com .oktapreview.com", uses: plainHyphen, resets: ResetWindow, routes: routesPath, perPath: true},
	{name: "auth0", hosts: ".auth0.com", uses: plainX},
	{name: "docker-hub", uses: plainIETF},
	// Reset is when "the oldest request will expire". docs.digitalocean.com, "API
	// reference", "Rate limit".
	{name: "digitalocean", hosts: "api.digitalocean.com", uses: plainIETF, resets: ResetRolling},
	{name: "heroku", hosts: "api.heroku.com", uses: plainIETF},
	{name: "vercel", hosts: "api.vercel.com", uses: plainX},
	{name: "fly", hosts: "api.machines.dev"},
	{name: "npm"},
	{name: "pypi", uses: plainIETF},
}

var azureRow = builtin{
	name:  "azure-arm",
	hosts: "management.azure.com",
	patterns: []pattern{{
		prefix: "X-Ms-Ratelimit-Remaining-",
		rest:   &field{role: isRemaining},
	}},
	uses: []*builtin{&retryAfterMsRow, &azureComputeRow},
}

var awsRow = builtin{
	name:  "aws",
	hosts: ".amazonaws.com",
	fields: []field{
		{name: "X-Amz-Retry-After", role: isAsk, form: millis, rank: rankAmazon},
		{name: "X-Amzn-Errortype", role: isErrorCode}, // in REST with JSON, where the body may not say
	},
	body: bodyAWS,
}

var googleRow = builtin{
	name:  "google",
	hosts: ".googleapis.com",
	body:  bodyGoogle,
}

// gateways are proxies and frameworks, which speak for other services.
var gateways = []*builtin{
	// The trio is that of the tightest window, which is fixed; the windows are named
	// behind. github.com/Kong/kong, plugins/rate-limiting.
	{name: "kong", uses: []*builtin{&rateLimitRow, &xRateLimitRow}, resets: ResetWindow},
	// The marker comes without any time; Reset is that of "the current time-window".
	// envoyproxy.io, "Rate limit filter".
	{
		name: "envoy",
		fields: []field{
			{name: "X-Envoy-Ratelimited", role: isRefusal},
		},
		uses:   plainX,
		resets: ResetWindow,
	},
	// Retry-After is X-Retry-In in whole seconds. github.com/traefik/traefik,
	// middlewares/ratelimiter.
	{
		name: "traefik",
		fields: []field{
			{name: "X-Retry-In", role: isAsk, form: duration, rank: rankLate},
		},
	},
	{name: "nginx"},
	// github.com/laravel/framework, ThrottleRequests.php: fixed windows.
	{name: "laravel", uses: plainX, resets: ResetWindow},
	{name: "express-draft-6", uses: plainIETF},
	{name: "express-draft-7", uses: plainIETF},
	{name: "express-draft-8", uses: plainIETF},
	{name: "express-legacy", uses: plainX},
	// The bucket's size stands for the limit. github.com/spring-cloud/spring-cloud-gateway,
	// RedisRateLimiter.
	{name: "spring-cloud-gateway", uses: plainX},
	&sentryRow,
	// Next is when one more request is let through. techdocs.akamai.com.
	{name: "akamai", uses: plainX},
}
