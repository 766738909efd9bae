package retryafter

import (
	"net/http"
	"strings"
	"time"
)

// bodies says which refusals a dialect recognizes by the body.
type bodies uint8

const (
	bodyGitHub bodies = 1 << iota
	bodyGoogle
	bodyOpenAI
	bodyAWS
	bodyStripe
	bodyAnthropic

	allBodies = bodyGitHub | bodyGoogle | bodyOpenAI | bodyAWS | bodyStripe | bodyAnthropic
)

// maxBody is how much of a body is read.
const maxBody = 4 << 10

// bodied is a built-in dialect that reads bodies.
type bodied struct{ *builtin }

// ReadBody implements [BodyDialect].
func (b bodied) ReadBody(status int, h http.Header, prefix []byte, now time.Time) (Signal, bool) {
	s, _ := b.Read(status, h, now)
	return s, s.readBody(b.body, status, prefix)
}

// ReadBody is Read with prefix, the first bytes of the response's body, without a
// content coding. At most 4 KiB are read, and they may end anywhere. Only the body
// of a refusal, with a status from 400 on, is worth reading. ReadBody returns false
// if the body says nothing beyond the headers.
func (r *Reader) ReadBody(status int, h http.Header, prefix []byte, now time.Time) (Signal, bool) {
	var s Signal
	if r.set != 0 {
		r.read(&s, status, h, now)
	}
	found := s.readBody(r.bodies(), status, prefix)
	for _, d := range r.custom {
		b, isBody := d.(BodyDialect)
		if isBody {
			if c, ok := b.ReadBody(status, h, prefix, now); ok {
				s.join(&c, d.Name())
				found = true
				continue
			}
		}
		if c, ok := d.Read(status, h, now); ok {
			s.join(&c, d.Name())
		}
	}
	return s, found
}

// bodies returns the bodies to expect: those of the host's dialect, else of all
// chosen ones.
func (r *Reader) bodies() bodies {
	if r.host != nil && r.host.body != 0 {
		return r.host.body
	}
	if r.all {
		return allBodies
	}
	var b bodies
	for _, l := range r.listed {
		b |= l.body
	}
	return b
}

// unsure reports whether the vendor of the responses is unknown.
func (r *Reader) unsure() bool { return r.all && r.host == nil }

func (r *Reader) customBodies() bool {
	for _, d := range r.custom {
		if _, ok := d.(BodyDialect); ok {
			return true
		}
	}
	return false
}

// coded reports whether a body's content coding is another than gzip and deflate,
// which package http or the caller undoes, or more than one.
func coded(h http.Header) bool {
	v := h["Content-Encoding"]
	if len(v) == 0 || len(v) == 1 && v[0] == "" {
		return false
	}
	switch strings.ToLower(trim(v[0])) {
	case "gzip", "x-gzip", "deflate", "identity":
		return len(v) > 1
	}
	return true
}

// textual reports whether the body may be one JSON or XML text: it says so, or
// says nothing, and is not a series of them.
func textual(h http.Header) bool {
	if coded(h) || streamed(h) {
		return false
	}
	t, ok := mediaType(h)
	return !ok || strings.Contains(t, "json") || strings.Contains(t, "xml") || t == "text/plain"
}

// streamed reports whether the body is a series of texts.
func streamed(h http.Header) bool {
	t, ok := mediaType(h)
	return ok && (t == "text/event-stream" || strings.HasSuffix(t, "json-seq") ||
		strings.Contains(t, "ndjson") || strings.Contains(t, "stream+json") || strings.Contains(t, "jsonl"))
}

// mediaType returns the media type of a body in lower case, "" for an absurd one. It
// is false where the response does not say.
func mediaType(h http.Header) (string, bool) {
	v := h["Content-Type"]
	switch {
	case len(v) == 0:
		return "", false
	case len(v[0]) > maxValue:
		return "", true
	}
	t, _, _ := strings.Cut(strings.ToLower(v[0]), ";")
	return trim(t), true
}

// readBody adds what a body says to what the headers said.
func (s *Signal) readBody(which bodies, status int, prefix []byte) bool {
	if status < 400 || which == 0 {
		return false
	}
	if len(prefix) > maxBody {
		prefix = prefix[:maxBody]
	}
	text := strings.TrimLeft(string(prefix), "\ufeff \t\r\n")
	if text == "" {
		return false
	}
	switch text[0] {
	case '{', '[':
		return s.readJSON(which, status, text)
	case '<':
		return which&bodyAWS != 0 && s.readXML(text)
	}
	return false
}

// readJSON looks for what each vendor writes, at the place where it writes it: a
// text that merely contains the word says nothing.
func (s *Signal) readJSON(which bodies, status int, text string) bool {
	found := false
	p := jsonScanner{s: text}
	for p.next() {
		if !p.quoted {
			continue
		}
		switch {
		case which&bodyGitHub != 0 && s.gitHubBody(status, &p),
			which&bodyGoogle != 0 && s.googleBody(status, &p),
			which&bodyOpenAI != 0 && s.openAIBody(status, &p),
			which&bodyStripe != 0 && s.stripeBody(status, &p),
			which&bodyAnthropic != 0 && s.anthropicBody(status, &p),
			which&bodyAWS != 0 && s.awsBody(&p):
			found = true
		}
	}
	return found
}

// gitHubBody reads the message and the link of a 403 or 429:
//
//	{"message":"You have exceeded a secondary rate limit. Please wait ...",
//	 "documentation_url":"https://docs.github.com/.../rate-limits-for-the-rest-api#about-secondary-rate-limits"}
//
// A secondary limit that names no time means one minute at least, whatever the
// primary limit has left or when it resets.
func (s *Signal) gitHubBody(status int, p *jsonScanner) bool {
	if p.depth != 1 || status != http.StatusForbidden && status != http.StatusTooManyRequests {
		return false
	}
	primary, secondary := false, false
	switch p.key(0) {
	case "message":
		primary = strings.HasPrefix(p.text, "API rate limit exceeded")
		secondary = strings.Contains(p.text, "exceeded a secondary rate limit") ||
			strings.Contains(p.text, "triggered an abuse detection mechanism") // its older name
	case "documentation_url":
		secondary = !p.partial && (strings.HasSuffix(p.text, "secondary-rate-limits") || strings.HasSuffix(p.text, "#abuse-rate-limits"))
	}
	if !primary && !secondary {
		return false
	}
	s.Throttled = true
	if s.Dialect == "" {
		s.Dialect = gitHubRow.name
	}
	if secondary {
		s.Resource = "" // it is of the account
	}
	if secondary && (!s.HasRetryAfter || s.Inferred && s.RetryAfter < time.Minute) {
		s.ask(time.Minute)
		s.Documented = true
	}
	return true
}

// googleBody reads the reason and the RetryInfo of Google's errors:
//
//	{"error":{"errors":[{"domain":"usageLimits","reason":"rateLimitExceeded"}],"code":403}}
//	{"error":{"status":"RESOURCE_EXHAUSTED","details":[{"@type":
//	    "type.googleapis.com/google.rpc.RetryInfo","retryDelay":"30s"}]}}
func (s *Signal) googleBody(status int, p *jsonScanner) bool {
	// The list form of an error batch has one array around it.
	at := 0
	if p.depth > 0 && !p.object[0] {
		at = 1
	}
	if p.key(at) != "error" || p.partial {
		return false
	}
	if p.depth == at+2 && p.key(at+1) == "message" && status == http.StatusTooManyRequests &&
		strings.HasPrefix(p.text, "The object ") && strings.Contains(p.text, "exceeded the rate limit for object mutation operations") {
		s.Scope, s.Throttled = ScopeRequest, true // Cloud Storage: one write a second to one object
		if s.Dialect == "" {
			s.Dialect = googleRow.name
		}
		return true
	}
	throttle := false
	switch list, key := p.key(at+1), p.key(p.depth-1); {
	case p.depth == at+2 && key == "status":
		throttle = p.text == "RESOURCE_EXHAUSTED" && status == http.StatusTooManyRequests
	case p.depth == at+4 && list == "errors" && key == "reason":
		throttle = p.text == "rateLimitExceeded" || p.text == "userRateLimitExceeded"
	case p.depth == at+4 && list == "details" && key == "reason":
		throttle = p.text == "RATE_LIMIT_EXCEEDED"
	case p.depth == at+4 && list == "details" && key == "retryDelay":
		if n := len(p.text); n > 1 && p.text[n-1] == 's' && (!s.HasRetryAfter || s.Inferred) {
			if n, nano, ok := decimal(p.text[:n-1]); ok {
				s.ask(span(n, nano, time.Second))
				throttle = true
			}
		}
	}
	if throttle {
		s.Throttled = true
		if s.Dialect == "" {
			s.Dialect = googleRow.name
		}
	}
	return throttle
}

// openAIBody reads the code of a 429 that no waiting helps:
//
//	{"error":{"message":"You exceeded your current quota, ...",
//	 "type":"insufficient_quota","param":null,"code":"insufficient_quota"}}
func (s *Signal) openAIBody(status int, p *jsonScanner) bool {
	if status != http.StatusTooManyRequests || p.depth != 2 || p.key(0) != "error" || p.partial {
		return false
	}
	if key := p.key(1); key != "type" && key != "code" || p.text != "insufficient_quota" {
		return false
	}
	s.NoRetry, s.Throttled = true, true
	if s.Dialect == "" {
		s.Dialect = openAIRow.name
	}
	return true
}

// stripeBody reads the code of a 429: a lock on an object concerns the request
// alone, and a rate limit the account even where the header with the reason is
// missing.
//
//	{"error":{"code":"lock_timeout","message":"This object cannot be accessed right now ...",
//	 "type":"invalid_request_error"}}
func (s *Signal) stripeBody(status int, p *jsonScanner) bool {
	if status != http.StatusTooManyRequests || p.depth != 2 || p.key(0) != "error" || p.key(1) != "code" || p.partial {
		return false
	}
	switch p.text {
	case "lock_timeout":
		s.Scope = ScopeRequest
	case "rate_limit":
		if s.Scope != ScopeRequest || s.n > 0 { // the header gives the reason
			return false
		}
		s.Scope, s.Resource = ScopeIdentity, ""
	default:
		return false
	}
	s.Throttled = true
	if s.Dialect == "" {
		s.Dialect = stripeRow.name
	}
	return true
}

// anthropicBody reads the reason of a 429 that lasts until the month ends:
//
//	{"type":"error","error":{"type":"rate_limit_error",
//	 "details":{"error_code":"enforced_spend_limit_reached"}}}
func (s *Signal) anthropicBody(status int, p *jsonScanner) bool {
	if status != http.StatusTooManyRequests || p.depth != 3 || p.partial || p.text != "enforced_spend_limit_reached" ||
		p.key(0) != "error" || p.key(1) != "details" || p.key(2) != "error_code" {
		return false
	}
	s.NoRetry, s.Throttled = true, true
	if s.Dialect == "" {
		s.Dialect = anthropicRow.name
	}
	return true
}

// awsBody reads the type of an error in the JSON protocols:
//
//	{"__type":"com.amazonaws.dynamodb.v20120810#ThrottlingException","message":"..."}
func (s *Signal) awsBody(p *jsonScanner) bool {
	if p.depth != 1 || p.partial || p.key(0) != "__type" {
		return false
	}
	code := p.text[strings.LastIndexByte(p.text, '#')+1:]
	return s.awsCode(code)
}

// readXML reads the code of an error in XML, S3's and that of the query protocol:
//
//	<?xml version="1.0" encoding="UTF-8"?>
//	<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>
func (s *Signal) readXML(text string) bool {
	if strings.HasPrefix(text, "<?xml") {
		i := strings.Index(text, "?>")
		if i < 0 {
			return false
		}
		text = strings.TrimLeft(text[i+2:], " \t\r\n")
	}
	root := false
	for _, name := range [...]string{"<Error>", "<Error ", "<ErrorResponse>", "<ErrorResponse ", "<Response>"} {
		root = root || strings.HasPrefix(text, name)
	}
	if !root {
		return false
	}
	i := strings.Index(text, "<Code>")
	if i < 0 || strings.Contains(text[:i], "<!") { // a comment or CDATA could hold anything
		return false
	}
	code, _, found := strings.Cut(text[i+len("<Code>"):], "</Code>")
	return found && s.awsCode(trim(code))
}

// awsCode takes an error code.
func (s *Signal) awsCode(code string) bool {
	if !isThrottle(code) {
		return false
	}
	s.Throttled = true
	if s.Dialect == "" {
		s.Dialect = awsRow.name
	}
	return true
}

// isThrottle reports whether an error code is one that the AWS SDKs retry as a
// throttle.
func isThrottle(code string) bool {
	switch code {
	case "SlowDown", "Throttling", "ThrottlingException", "ThrottledException",
		"RequestThrottled", "RequestThrottledException", "RequestLimitExceeded",
		"TooManyRequestsException", "ProvisionedThroughputExceededException",
		"BandwidthLimitExceeded", "EC2ThrottledException", "PriorRequestNotComplete":
		return true
	}
	return false
}
