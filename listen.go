package headway

import (
	"cmp"
	"context"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/headway-go/headway/internal/attempt"
	"github.com/headway-go/headway/internal/desk"
	"github.com/headway-go/headway/internal/digest"
	"github.com/headway-go/headway/internal/inside"
	"github.com/headway-go/headway/internal/law"
	"github.com/headway-go/headway/internal/line"
	"github.com/headway-go/headway/internal/peek"
	"github.com/headway-go/headway/internal/roster"
	"github.com/headway-go/headway/retryafter"
)

// plain reads what RFC 9110 says of retries.
var plain = retryafter.NewReader([]retryafter.Dialect{retryafter.RFC9110}, "")

// read reads what the headers of the response to req say, and reports whether that is
// anything.
func read(req *http.Request, reader *retryafter.Reader, resp *http.Response, s *retryafter.Signal) bool {
	found := inside.ReadTo(reader, s, resp.StatusCode, resp.Header, time.Time{})
	if resp.StatusCode >= 400 && readPlain(resp, s) {
		found = true
	}
	if list := s.Limits(); len(list) > 0 && !announcesOwn(req, reader, resp, s) {
		for i := range list {
			list[i].HasRemaining = false // which is what is learned from
		}
	}
	return found
}

// announcesOwn reports whether the limits in a response are those that the request draws
// on. They are not in a refusal that is about who the client is, which carries the limits
// of anonymous clients; in a proxy's response; in that of another host, to which the base
// transport has followed a redirect; and in one that a cache has kept.
func announcesOwn(req *http.Request, reader *retryafter.Reader, resp *http.Response, s *retryafter.Signal) bool {
	switch status := resp.StatusCode; {
	case status < 400:
	case status == http.StatusProxyAuthRequired,
		!s.Throttled && (status == http.StatusUnauthorized || status == http.StatusForbidden):
		return false
	}
	// Only a client's redirect sets Request.Response. A base transport that sends to another
	// address as such does not.
	if last := resp.Request; last != req && last != nil && last.Response != nil && last.Response != req.Response && last.URL.Host != req.URL.Host {
		return false
	}
	return !inside.FromCache(reader, s, resp.Header)
}

// readPlain makes a throttle of a 429 or 529 that dialects of the user's own do not
// call one: otherwise it would be retried without a pause. It reports whether it has.
func readPlain(resp *http.Response, s *retryafter.Signal) bool {
	if s.Throttled || resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != statusOverloaded {
		return false
	}
	p := plain.Read(resp.StatusCode, resp.Header, time.Time{})
	if s.Throttled = true; !s.HasRetryAfter {
		s.RetryAfter, s.HasRetryAfter, s.Hint = p.RetryAfter, p.HasRetryAfter, p.Hint
	}
	if s.Dialect == "" {
		s.Dialect = p.Dialect
	}
	return true
}

// needsBody reports whether the body of a refusal may announce more than its headers.
func needsBody(reader *retryafter.Reader, resp *http.Response) bool {
	return resp.StatusCode >= 400 && resp.Body != nil && resp.Body != http.NoBody && inside.NeedsBody(reader, resp.StatusCode, resp.Header)
}

// leave leaves in reading how a response was read, where a retry may need it.
func (p *policy) leave(reading *attempt.Reading, resp *http.Response, s *retryafter.Signal) {
	if reading != nil && resp.StatusCode >= 400 {
		reading.Done, reading.Signal, reading.MaxPause = true, *s, p.Server.MaxPause
	}
}

// listen reads what a response announces into s, and obeys it.
func (v *request) listen(ctx context.Context, resp *http.Response, s *retryafter.Signal) {
	if found, more := read(v.req, v.reader, resp, s), needsBody(v.reader, resp); found || more {
		v.obey(ctx, resp, found, more, s)
	}
	if succeeded(resp, s) {
		v.Succeeded()
	}
}

// succeeded reports whether a response, which may be nil, is a success: what was
// asked for, and no throttle.
func succeeded(resp *http.Response, s *retryafter.Signal) bool {
	return resp != nil && resp.StatusCode < 400 && !s.Throttled
}

// obey takes in the limits that a response announces, and raises the pause that it requests.
// s is what its headers announce, and found is false where that is nothing. It takes effect at
// once; with more, the body is read after that, and then s is what both announce.
func (v *request) obey(ctx context.Context, resp *http.Response, found, more bool, s *retryafter.Signal) {
	if found && s.Malformed != "" {
		v.report(ctx, Event{Kind: EventMalformed, Status: resp.StatusCode, Dialect: s.Dialect, Header: strings.Clone(s.Malformed)})
	}
	if found && v.policy.Server.Learn != LearnOff {
		for i := range s.Limits() {
			v.drawOn(s, s.Limits()[i].Resource)
			v.announce(ctx, resp.StatusCode, s, &s.Limits()[i])
		}
	}
	if more || s.Throttled {
		v.refusedByServer(ctx, resp, more, s)
	}
}

// announce takes in one limit that a response announces.
func (v *request) announce(ctx context.Context, status int, s *retryafter.Signal, l *retryafter.LimitSignal) {
	c, of := v.ruleOf(l), (*rule)(nil)
	if c != nil {
		of = &v.policy.rules[c.Rule.Place]
	}
	signal := v.policy.limitSignal(s, l, of, v.At)
	if !l.HasRemaining || signal.Empty() {
		return
	}
	got := v.Limit(line.AnnouncedKey{Name: l.Name, Window: l.Window}, s.Dialect, signal, c)
	v.opened(ctx)
	if !got.OK || v.t.observer == nil {
		return
	}
	e := Event{
		Kind: EventLearned, Status: status, Dialect: s.Dialect, KeyDigest: got.KeyDigest, Resource: got.Resource, Drift: got.Drift,
		Limit: max(0, signal.Limit), Remaining: l.Remaining, Reset: time.Duration(signal.Reset),
		Cut: l.HasReset && l.Reset > v.policy.maxPause(),
	}
	if got.Rule != nil {
		e.Rule = got.Rule.Name
	} else {
		e.Rule = v.t.learned.Text(digest.SumOf(l.Name), l.Name, learnedName)
	}
	v.report(ctx, e)
}

// limitSignal returns a limit in the form that lines take, as the response to a request that
// started at an instant announces it. of is the rule that it is; nil is none.
func (p *policy) limitSignal(s *retryafter.Signal, l *retryafter.LimitSignal, of *rule, started time.Duration) law.LimitSignal {
	signal := law.LimitSignal{
		Most: int64(p.maxPause()),
		Left: l.Remaining, Limit: -1, Reset: -1, Resets: law.Resets(l.Resets),
		Refused: s.Throttled, Pace: p.Server.Learn == LearnPace, Started: int64(started),
	}
	if l.HasLimit {
		signal.Limit = l.Limit
		if l.Limit < 0 && l.Remaining <= 0 {
			signal.Limit = 0 // a server without a limit sends that too
		}
	}
	most := p.maxPause()
	signal.Window = int64(l.Window)
	if l.HasReset {
		signal.Reset, signal.Whole = int64(min(l.Reset, most)), l.Coarse
	}
	// Where nothing is left, a Retry-After comes before the reset.
	if l.Remaining <= 0 && s.HasRetryAfter && !s.Inferred && !s.Documented && (!l.HasReset || l.Reset >= s.RetryAfter) {
		signal.Reset, signal.Whole, signal.Early = int64(min(s.RetryAfter, most)), false, true
	}
	if of != nil {
		signal.RuleLimit, signal.RulePeriod, signal.RuleFills = of.Limit.N, int64(of.Limit.Period()), of.Limit.Kind == law.Bucket
	}
	return signal
}

// learnedName is the name of the rule that a limit without a rule is.
func learnedName(name string) string {
	if name == "" {
		return "learned"
	}
	return "learned " + name
}

// ruleOf returns the claim of the rule that a server's limit belongs to, or nil.
func (v *request) ruleOf(l *retryafter.LimitSignal) (of *roster.Claim) {
	claims, best := v.Claims.All(), 0
	for i := range claims {
		c := &claims[i]
		if fit := v.policy.rules[c.Rule.Place].fit(l); fit > best && c.Cost > 0 && v.Owns(c) {
			of, best = c, fit
		}
	}
	return of
}

// ruleOf is request.ruleOf for a request that takes one unit under each rule: the
// index of the rule, or -1.
func (p *policy) ruleOf(l *retryafter.LimitSignal) int {
	of, best := -1, 0
	for i := range p.rules {
		if fit := p.rules[i].fit(l); fit > best {
			of, best = i, fit
		}
	}
	return of
}

// fit returns how well a server's limit fits the rule. The limit belongs to the rule that it
// fits best. 2: by Announced. 1: by the length of its windows, if it is not of one resource. 0:
// it does not. A rule with Announced takes no limit of another label.
func (r *rule) fit(l *retryafter.LimitSignal) int {
	switch {
	case l.Name != "" && r.of.Announced != "":
		if strings.EqualFold(r.of.Announced, l.Name) {
			return 2
		}
	case l.HasWindow && !l.OtherUnit && l.Resource == "" && r.Limit.Period() == l.Window:
		return 1
	}
	return 0
}

// What a refusal without a time means: a pause that doubles from least to most
// until a request succeeds.
const (
	leastPause = time.Second
	mostPause  = 5 * time.Minute
)

// maxPause returns the longest pause that is obeyed.
func (p *policy) maxPause() time.Duration {
	return cmp.Or(p.Server.MaxPause, 24*time.Hour)
}

// refusedByServer raises the pause that a refusal requests. Where the headers give no time but
// the body may, a pause holds at once; when the body has been read, it is reported or replaced.
func (v *request) refusedByServer(ctx context.Context, resp *http.Response, more bool, s *retryafter.Signal) {
	status := resp.StatusCode
	p, timed := pauseOf(s)
	var first desk.Effect
	if p.For > 0 {
		v.drawOn(s, v.resourceOf(s))
		var release func()
		if !timed && more {
			release = v.Halt(audienceOf(s))
		}
		if release != nil { // what is raised could not be taken back
			defer release()
		} else {
			first = v.pause(ctx, status, s, p)
		}
	}
	if timed || !more {
		v.reportPause(ctx, p, first)
	}
	if !more {
		return
	}
	scope, resource := s.Scope, s.Resource
	if read, ok := v.reader.ReadBody(status, resp.Header, peek.Body(ctx, resp), time.Now()); ok {
		*s = read
		readPlain(resp, s)
	}
	q, _ := pauseOf(s)
	wider := resource != "" && s.Resource == "" // than one resource
	switch {
	case timed && q.For <= p.For && !wider: // a pause is not shortened
		return
	case !timed && first.Lasts > 0 && q.For == p.For && s.Scope == scope && !wider: // the body adds nothing
		v.reportPause(ctx, p, first)
		return
	}
	v.drawOn(s, v.resourceOf(s))
	if first.Final && first.Lasts > 0 {
		q.Grow = false
	}
	q.Over = p
	v.reportPause(ctx, q, v.pause(ctx, status, s, q))
}

// audienceOf returns which requests a pause concerns.
func audienceOf(s *retryafter.Signal) desk.Audience {
	switch s.Scope {
	case retryafter.ScopeHost:
		return desk.ToAll
	case retryafter.ScopeRule:
		return desk.ToRule
	}
	return desk.ToIdentity
}

// pauseOf returns the pause that a response requests, and whether the response gives a time. For
// is zero for no pause. Without a usable time the pause grows.
func pauseOf(s *retryafter.Signal) (p *line.Pause, timed bool) {
	p = new(line.Pause)
	if !s.Throttled || s.Scope == retryafter.ScopeRequest {
		return p, false
	}
	d, timed := s.Wait()
	switch {
	case timed:
		if s.Inferred && isCoarse(s) {
			d = min(d, math.MaxInt64-time.Second) + time.Second
		}
		p.For, p.Grow, p.Most = d, s.Documented, max(mostPause, d)
	case !s.NoRetry: // waiting does not help with what must be paid for
		p.For, p.Grow, p.Most = leastPause, true, mostPause
	}
	return p, timed
}

// isCoarse reports whether the reset that stands for a Retry-After is in whole seconds: then
// it is believed a second late, as that of the limit is.
func isCoarse(s *retryafter.Signal) bool {
	for i := range s.Limits() {
		if l := &s.Limits()[i]; l.Coarse && l.HasReset && l.Reset == s.RetryAfter {
			return true
		}
	}
	return false
}

// pause raises a pause, no longer than the policy believes.
func (v *request) pause(ctx context.Context, status int, s *retryafter.Signal, p *line.Pause) desk.Effect {
	most := v.policy.maxPause()
	cut := p.For > most
	p.For = min(p.For, most)
	if p.Grow {
		p.Most = min(p.Most, most)
	}
	p.Source, p.Status, p.Cut = s.Dialect, status, cut
	e := v.Pause(p, audienceOf(s))
	v.opened(ctx)
	return e
}

// reportPause reports the pause that p has raised, if that matters.
func (v *request) reportPause(ctx context.Context, p *line.Pause, got desk.Effect) {
	if got.Lasts == 0 || v.t.observer == nil || !v.IsNews(p) {
		return
	}
	e := Event{Kind: EventPause, Status: p.Status, Dialect: p.Source, Cut: p.Cut, KeyDigest: got.KeyDigest, Resource: got.Resource, Pause: got.Lasts}
	if got.Rule != nil {
		e.Rule = got.Rule.Name
	}
	v.report(ctx, e)
}
