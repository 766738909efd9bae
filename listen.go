package headway

import (
	"context"
	"errors"
	"hash/maphash"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/headway-go/headway/internal/attempt"
	"github.com/headway-go/headway/internal/fault"
	"github.com/headway-go/headway/internal/law"
	"github.com/headway-go/headway/internal/line"
	"github.com/headway-go/headway/internal/peek"
	"github.com/headway-go/headway/retryafter"
)

// What a refusal without a time means: a pause that doubles from least to most
// until a request succeeds.
const (
	leastPause = time.Second
	mostPause  = 5 * time.Minute
)

// assumedReset bounds the time until units come back where the server says how
// long its windows are, but not when this one ends.
const assumedReset = time.Minute

// maxPause returns what the longest pause is that is believed.
func (p *policy) maxPause() time.Duration {
	if p.MaxPause == 0 {
		return 24 * time.Hour
	}
	return p.MaxPause
}

// identify adds a key to the request's identity.
func (v *visit) identify(r *rule, key keyRef) {
	if r.key != nil {
		v.identity, v.newcomers = v.with(v.identity, r, key.sum), v.with(v.newcomers, r, keySum{})
		v.keyed++
	}
}

// with returns the identity that has one key more.
func (v *visit) with(who uint64, r *rule, key keySum) uint64 {
	return 1 | maphash.Comparable(v.t.routes.seed, struct {
		who   uint64
		place int
		key   keySum
	}{who, r.place, key})
}

// owner returns the budget of the request's only key; nil where it has none or
// several, or the rule is no more.
func (v *visit) owner() *line.Budget {
	if v.keyed == 1 {
		for _, c := range v.claims.all() {
			if c.rule.key != nil && v.site.owns(c.rule) {
				return c.budget
			}
		}
	}
	return nil
}

// chooseEar finds out as whom the request listens, once its budgets are open: an
// identity that there is no room for counts as newcomers, and nobody else does. It
// reports whether the observer has to hear that this has begun.
func (v *visit) chooseEar() (news bool) {
	v.who = 0
	if v.identity == 0 || !v.policy.listens {
		return false
	}
	remembered := true
	if b := v.owner(); b == nil {
		remembered, news = v.t.table.identity(v.site, v.gate, v.claims.all(), v.identity, v.newcomers)
	} else {
		for _, c := range v.claims.all() {
			remembered = remembered && (c.rule.key == nil || b != v.site.at(c.rule.index))
		}
	}
	if v.who = v.identity; !remembered {
		v.who = v.newcomers
	}
	return news
}

// label is the digests of the keys that are the identity; empty for newcomers.
func (v *visit) label() string {
	if v.who == v.newcomers && v.who != 0 {
		return ""
	}
	if v.claims.n == 1 {
		return v.t.digestOf(v.claims.few[0].key)
	}
	var digests []string
	for _, c := range v.claims.all() {
		if !c.key.none() {
			digests = append(digests, v.t.digestOf(c.key))
		}
	}
	return labelOf(digests)
}

// labelOf joins the digests of an identity; several rules may have one key.
func labelOf(digests []string) string {
	var each []string
	for _, d := range digests {
		if !slices.Contains(each, d) {
			each = append(each, d)
		}
	}
	return strings.Join(each, "+")
}

// sendStarted sends a request that has taken a unit of each of the route's
// budgets at an instant, and p of its gate, if it has one. It listens to the
// answer, and tells the breaker. What panics needs no place given back: p is of a
// breaker that bounded nothing.
func (t *Transport) sendStarted(r *route, req *http.Request, at time.Duration, p line.Pass, heard *attempt.Reading) (resp *http.Response, err error) {
	flying, over, done := r.policy.listens, false, false
	var kept *keptEvents
	defer func() {
		if flying {
			r.site.line.Arrived(r.budgets)
		}
		defer closeUnless(&over, resp)
		t.tellResponse(req.Context(), kept, r.gate)
		over = done
	}()
	var body *fault.Body
	resp, err = t.send(req, r.gate, &body)
	var s retryafter.Signal
	if flying && err == nil {
		said, more := read(r.reader, resp, &s), needsBody(r.reader, resp)
		if more || said && (s.Throttled || t.observer != nil || !r.learn(at, &s, &flying)) {
			kept = r.hear(t, req, at, flying, resp, said, more, &s)
		}
		r.policy.leave(heard, resp, &s)
	}
	well := len(r.budgets) == 0 && r.policy.listens && succeeded(resp, &s)
	switch {
	case flying && well:
		flying = false
		r.site.line.ArrivedWell(at)
	case flying:
		flying = false
		r.site.line.Arrived(r.budgets)
	case well: // it has landed by what it announced
		r.site.line.Served(at)
	}
	if r.gate != nil {
		t.record(r, r.site, r.gate, &p, r.policy.result(req, resp, err, &s, body))
	}
	done = true
	return resp, err
}

// learn is visit.learn for all limits that an answer announces to a request that
// sendStarted has sent, of which nobody is told. With the first it ends the
// flight, under one lock. It is false where visit.learn has to look for what was
// forgotten meanwhile.
func (r *route) learn(at time.Duration, s *retryafter.Signal, flying *bool) bool {
	if r.policy.Learn == LearnOff {
		return true
	}
	for i := range s.Limits() {
		l := &s.Limits()[i]
		if !l.HasRemaining {
			continue
		}
		var scope line.Scope
		if i := r.policy.ruleOf(l); i >= 0 {
			scope.Rule = r.budgets[i]
		}
		said := r.policy.said(l, at)
		if said.Empty() {
			continue
		}
		var ended []*line.Budget
		if *flying {
			ended, *flying = r.budgets, false
		}
		if _, err := r.site.line.Learn(scope, line.LearnedKey{Name: l.Name, Window: l.Window}, s.Dialect, &said, ended); err != nil {
			return false
		}
	}
	return true
}

// hear is visit.hear for a request that sendStarted has sent. It returns the events
// to report.
func (r *route) hear(t *Transport, req *http.Request, at time.Duration, flying bool, resp *http.Response, said, more bool, s *retryafter.Signal) *keptEvents {
	v := visit{t: t, req: req, route: *r, site: r.site, gate: r.gate}
	v.grant.At, v.grant.Count = at, flying
	for i := range r.policy.rules {
		v.claims.add(claim{rule: &r.policy.rules[i], cost: 1, budget: r.budgets[i]})
	}
	v.keep()
	v.hear(req.Context(), resp, said, more, s)
	return v.takeKept()
}

// read reads what the headers of an answer say, and reports whether that is
// anything.
func read(reader *retryafter.Reader, resp *http.Response, s *retryafter.Signal) bool {
	said := reader.ReadTo(s, resp.StatusCode, resp.Header, time.Time{})
	said = readPlain(resp, s) || said
	if said && s.HasRetryAfter && !s.Inferred && !s.Documented {
		endExhausted(s)
	}
	return said
}

// plain reads what HTTP itself says of coming back.
var plain = retryafter.NewReader([]retryafter.Dialect{retryafter.RFC9110}, "")

// readPlain makes a throttle of a 429 or 529 that dialects of the user's own do not
// call one: else it would be retried, and nobody would pause. It reports whether it has.
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

// endExhausted ends the limits of which nothing is left with the Retry-After that
// stands beside them, where that comes before their reset: it says when the next
// request may come, and the response to that says what is left.
func endExhausted(s *retryafter.Signal) {
	list := s.Limits()
	for i := range list {
		l := &list[i]
		none := l.HasLimit && l.Limit <= 0 // which says nothing, as it stands
		if l.HasRemaining && l.Remaining <= 0 && !none && (!l.HasReset || l.Reset > s.RetryAfter) {
			l.Reset, l.HasReset = s.RetryAfter, true
			l.Limit, l.HasLimit = 0, false
			l.Window, l.HasWindow = 0, false
		}
	}
}

// needsBody reports whether the body of a refusal may say more than its headers.
func needsBody(reader *retryafter.Reader, resp *http.Response) bool {
	return resp.StatusCode >= 400 && resp.Body != nil && resp.Body != http.NoBody && reader.NeedsBody(resp.StatusCode, resp.Header)
}

// leave leaves in heard how a response was read, where a retry may ask for it.
func (p *policy) leave(heard *attempt.Reading, resp *http.Response, s *retryafter.Signal) {
	if heard != nil && resp.StatusCode >= 400 {
		heard.Done, heard.Signal, heard.MaxPause = true, *s, p.MaxPause
	}
}

// listen reads what an answer says into s, and obeys it.
func (v *visit) listen(ctx context.Context, resp *http.Response, s *retryafter.Signal) {
	if said, more := read(v.reader, resp, s), needsBody(v.reader, resp); said || more {
		v.hear(ctx, resp, said, more, s)
	}
	if succeeded(resp, s) {
		if v.heeded {
			v.succeeded()
		}
		if v.claims.n == 0 {
			v.served()
		}
	}
}

// succeeded reports whether a response, which may be nil, is a success: what was
// asked for, and no throttle.
func succeeded(resp *http.Response, s *retryafter.Signal) bool {
	return resp != nil && resp.StatusCode < 400 && !s.Throttled
}

// hear obeys what an answer says: it raises pauses, and lowers what is left. What
// the headers say, s, holds at once; with more, its body is read then, and s is
// both. said is false where the headers say nothing.
func (v *visit) hear(ctx context.Context, resp *http.Response, said, more bool, s *retryafter.Signal) {
	if said {
		v.hearHeaders(ctx, resp.StatusCode, s)
	}
	if more || s.Throttled {
		v.hearRefusal(ctx, resp, more, s)
	}
}

// hearRefusal is hear for what a refusal says of coming back. Where its headers do
// not say how long, but its body may, the pause holds at once and is told of, or
// taken back, once that is read.
func (v *visit) hearRefusal(ctx context.Context, resp *http.Response, more bool, s *retryafter.Signal) {
	status := resp.StatusCode
	p, timed := pauseOf(s)
	var e Event
	switch {
	case p.For == 0:
	case !timed && more && v.far != nil: // a store takes no pause back
		defer v.far.line.Halt(v.whoseFar(s))()
	default:
		e = v.pause(ctx, status, s, p)
	}
	if timed || !more {
		v.tellPause(ctx, e, p)
	}
	if !more {
		return
	}
	scope := s.Scope
	if told, ok := v.reader.ReadBody(status, resp.Header, peek.Body(ctx, resp), time.Now()); ok {
		*s = told
		readPlain(resp, s)
	}
	q, _ := pauseOf(s)
	switch {
	case timed && q.For <= p.For: // a pause is not shortened
		return
	case !timed && e.Pause > 0 && q.For == p.For && s.Scope == scope: // the body adds nothing
		v.tellPause(ctx, e, p)
		return
	}
	if v.far != nil && e.Pause > 0 {
		q.Grow = false
	}
	q.Over = p
	v.tellPause(ctx, v.pause(ctx, status, s, q), q)
}

// tellPause reports the pause that p has raised, if that matters.
func (v *visit) tellPause(ctx context.Context, e Event, p *line.Pause) {
	if e.Pause == 0 || v.t.observer == nil {
		return
	}
	news := false
	if v.far != nil {
		news = v.far.line.IsNews(e.KeyDigest+"\n"+e.Rule, e.Pause)
	} else {
		news = v.site.line.IsNews(p)
	}
	if news {
		v.tell(ctx, e)
	}
}

// pauseOf returns the pause that an answer asks for, For zero for none, and whether
// it says how long. Without a usable time it grows.
func pauseOf(s *retryafter.Signal) (p *line.Pause, timed bool) {
	p = new(line.Pause)
	if !s.Throttled || s.Scope == retryafter.ScopeRequest {
		return p, false
	}
	d, timed := s.Wait()
	switch {
	case timed:
		p.For, p.Grow, p.Most = d, s.Documented, max(mostPause, d)
	case !s.NoRetry: // waiting does not help with what must be paid for
		p.For, p.Grow, p.Most = leastPause, true, mostPause
	}
	return p, timed
}

// hearHeaders tells of a header that is malformed, and learns what is left.
func (v *visit) hearHeaders(ctx context.Context, status int, s *retryafter.Signal) {
	if s.Malformed != "" {
		v.tell(ctx, Event{Kind: EventMalformed, Status: status, Dialect: s.Dialect, Header: strings.Clone(s.Malformed)})
	}
	if v.policy.Learn != LearnOff {
		for i := range s.Limits() {
			v.learn(ctx, status, s.Dialect, &s.Limits()[i])
		}
	}
}

// pause holds up those whose pause the answer is. It returns the event that is to
// be told, with a Pause of zero where nobody waits longer by it.
func (v *visit) pause(ctx context.Context, status int, s *retryafter.Signal, p *line.Pause) Event {
	e := Event{Kind: EventPause, Status: status, Dialect: s.Dialect}
	if most := v.policy.maxPause(); p.For > most || p.Most > most && p.Grow {
		e.Cut = p.For > most
		p.For, p.Most = min(p.For, most), min(p.Most, most)
	}
	p.Source, p.Status, p.Started = s.Dialect, status, v.grant.At
	for _, c := range v.claims.all() {
		p.Limits = append(p.Limits, c.rule.spec)
	}
	if v.far != nil {
		return v.pauseFar(s, p, e)
	}
	err := v.retry(ctx, func() (err error) {
		e.Rule, e.KeyDigest = "", ""
		p.Scope = line.Scope{}
		if s.Scope != retryafter.ScopeHost {
			if p.Who = v.who; p.Who != 0 {
				e.KeyDigest = v.label()
			}
		}
		if c := v.narrowest(); s.Scope == retryafter.ScopeRule && c != nil {
			p.Rule, e.Rule = c.budget, c.rule.name
		}
		p.Open = v.policy.open && p.Who == 0 && p.Rule == nil
		e.Pause, err = v.site.line.Pause(p)
		return err
	})
	if err != nil {
		e.Pause = 0
	}
	return e
}

// retry does what needs the site, the claims' budgets and the request's ear, again
// with their successors where they have been forgotten meanwhile.
func (v *visit) retry(ctx context.Context, do func() error) error {
	for {
		err := do()
		if errors.Is(err, line.ErrNoEar) {
			err = v.openEar(ctx)
		} else if !errors.Is(err, line.ErrRetired) {
			return err
		}
		if err != nil {
			v.open(ctx)
		}
	}
}

// openEar makes the place for what is said to the request's identity, or to all
// newcomers where there is no room for it alone.
func (v *visit) openEar(ctx context.Context) error {
	news := v.chooseEar()
	isNew, err := v.site.line.OpenEar(v.who, v.label(), v.owner())
	if news || isNew && v.who == v.newcomers {
		v.tell(ctx, Event{Kind: EventOverflow})
	}
	return err
}

// narrowest returns the claim of the first rule that is for some methods or
// paths only, or nil.
func (v *visit) narrowest() *claim {
	claims := v.claims.all()
	for i := range claims {
		if c := &claims[i]; c.cost > 0 && c.rule.Narrow() {
			return c
		}
	}
	return nil
}

// learn takes in one limit that an answer announces.
func (v *visit) learn(ctx context.Context, status int, dialect string, l *retryafter.LimitSignal) {
	if !l.HasRemaining {
		return
	}
	said := v.policy.said(l, v.grant.At)
	if said.Empty() {
		return
	}
	e := Event{
		Kind: EventLearned, Status: status, Dialect: dialect,
		Limit: max(0, said.Limit), Remaining: l.Remaining, Reset: time.Duration(said.Reset),
		Cut: l.HasReset && l.Reset > v.policy.maxPause(),
	}
	key := line.LearnedKey{Name: l.Name, Window: l.Window}
	if v.far != nil {
		v.learnFar(ctx, key, dialect, said, v.ruleOf(l), e)
		return
	}
	err := v.retry(ctx, func() (err error) {
		var s line.Scope
		own := int64(1)
		if c := v.ruleOf(l); c != nil {
			s.Rule, e.Rule, own = c.budget, c.rule.name, c.cost
			if v.t.observer != nil {
				e.KeyDigest = v.t.digestOf(c.key)
			}
		} else if s.Who = v.who; s.Who != 0 && v.t.observer != nil {
			e.KeyDigest = v.label()
		}
		if v.grant.Count {
			said.Own = own
		}
		e.Drift, err = v.site.line.Learn(s, key, dialect, &said, nil)
		return err
	})
	if err == nil && v.t.observer != nil {
		if e.Rule == "" {
			e.Rule = v.t.learned.text(sumOf(l.Name), l.Name, learnedName)
		}
		v.tell(ctx, e)
	}
}

// said is what the answer to a request that started at an instant says of a
// limit, as the line takes it.
func (p *policy) said(l *retryafter.LimitSignal, started time.Duration) law.Said {
	said := law.Said{Left: l.Remaining, Limit: -1, Reset: -1, Started: int64(started), Pace: p.Learn == LearnPace}
	if l.HasLimit {
		said.Limit = l.Limit
		if l.Limit < 0 && l.Remaining <= 0 {
			said.Limit = 0 // as a server without a limit says too
		}
	}
	most := p.maxPause()
	if l.HasWindow {
		said.Window = int64(min(l.Window, most))
	}
	switch {
	case l.HasReset:
		said.Reset = int64(min(l.Reset, most))
	case l.HasWindow && l.Window <= assumedReset:
		said.Reset = int64(l.Window)
	}
	return said
}

// learnedName is the name of the rule that a limit without a rule is.
func learnedName(name string) string {
	if name == "" {
		return "learned"
	}
	return "learned " + name
}

// ruleOf returns the claim of the rule that a server's limit belongs to, or nil.
func (v *visit) ruleOf(l *retryafter.LimitSignal) *claim {
	claims := v.claims.all()
	for i := range claims {
		if c := &claims[i]; c.cost > 0 && c.rule.isNamed(l) && v.owns(c) {
			return c
		}
	}
	for i := range claims {
		if c := &claims[i]; c.cost > 0 && c.rule.isAsLong(l) && v.owns(c) {
			return c
		}
	}
	return nil
}

// owns reports whether a claim's budget is that of the request's identity alone, so
// that what a server says to the identity may be said of the budget: all keys that
// make up the identity are the budget's.
func (v *visit) owns(c *claim) bool {
	if v.identity == 0 {
		return true
	}
	for _, o := range v.claims.all() {
		if o.rule.key != nil && (c.rule.key == nil || o.rule.keyed != c.rule.keyed) {
			return false
		}
	}
	return true
}

// ruleOf is visit.ruleOf for a request that takes one unit under each rule: the
// index of the rule, or -1.
func (p *policy) ruleOf(l *retryafter.LimitSignal) int {
	for i := range p.rules {
		if p.rules[i].isNamed(l) {
			return i
		}
	}
	for i := range p.rules {
		if p.rules[i].isAsLong(l) {
			return i
		}
	}
	return -1
}

// isNamed reports whether a server's limit has the rule's name.
func (r *rule) isNamed(l *retryafter.LimitSignal) bool {
	return l.Name != "" && strings.EqualFold(r.name, l.Name)
}

// isAsLong reports whether the windows of a server's limit are as long as the
// rule's.
func (r *rule) isAsLong(l *retryafter.LimitSignal) bool {
	return l.HasWindow && !l.OtherUnit && r.spec.Period() == l.Window
}
