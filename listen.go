package headway

import (
	"bytes"
	"context"
	"errors"
	"hash/maphash"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/headway-go/headway/internal/law"
	"github.com/headway-go/headway/internal/line"
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
func (v *visit) identify(r *rule, key string) {
	if r.key != nil && v.policy.listens {
		v.who = 1 | maphash.Comparable(v.t.routes.seed, struct {
			who   uint64
			place int
			key   string
		}{v.who, r.place, key})
	}
}

// label is the digests of the keys that are the identity.
func (v *visit) label() string {
	var b strings.Builder
	for _, c := range v.claims.all() {
		if c.key != "" {
			if b.Len() > 0 {
				b.WriteByte('+')
			}
			b.WriteString(v.t.digestOf(c.key))
		}
	}
	return b.String()
}

// sendAndListen sends a request that has taken a unit of each of the route's
// budgets at an instant, and listens to its answer.
func (t *Transport) sendAndListen(r *route, req *http.Request, at time.Duration) (*http.Response, error) {
	answered := false
	defer func() {
		if !answered {
			r.site.line.Arrived(r.budgets)
		}
	}()
	resp, err := oneOf(t.base.RoundTrip(req))
	r.site.line.Arrived(r.budgets)
	answered = true
	if err != nil {
		return nil, err
	}
	var s retryafter.Signal
	if read(r.reader, resp, &s) {
		r.hear(t, req, at, resp.StatusCode, &s)
	}
	return resp, nil
}

// hear is visit.hear for a request that sendAndListen has sent.
func (r *route) hear(t *Transport, req *http.Request, at time.Duration, status int, s *retryafter.Signal) {
	v := visit{t: t, req: req, route: *r, site: r.site}
	v.grant.At = at
	for i := range r.policy.rules {
		v.claims.add(claim{rule: &r.policy.rules[i], cost: 1, budget: r.budgets[i]})
	}
	v.hear(req.Context(), status, s)
}

// read reads what an answer says, and reports whether that is anything. When a
// dialect panics the caller gets no response, so that nobody else could close its
// body.
func read(reader *retryafter.Reader, resp *http.Response, s *retryafter.Signal) bool {
	over := false
	defer func() {
		if !over && resp.Body != nil {
			resp.Body.Close()
		}
	}()
	said := reader.ReadTo(s, resp.StatusCode, resp.Header, time.Time{})
	if resp.StatusCode >= 400 && resp.Body != nil && resp.Body != http.NoBody && reader.NeedsBody(resp.StatusCode, resp.Header) {
		if told, ok := reader.ReadBody(resp.StatusCode, resp.Header, peek(resp), time.Now()); ok {
			*s, said = told, true
		}
	}
	over = true
	return said
}

// hear obeys what an answer says: it raises pauses, and lowers what is left.
func (v *visit) hear(ctx context.Context, status int, s *retryafter.Signal) {
	if s.Malformed != "" {
		v.tell(ctx, Event{Kind: EventMalformed, Status: status, Dialect: s.Dialect, Header: s.Malformed})
	}
	if v.policy.Learn != LearnOff {
		for i := range s.Limits() {
			v.learn(ctx, status, s.Dialect, &s.Limits()[i])
		}
	}
	switch {
	case s.Throttled && s.HasRetryAfter && s.RetryAfter > 0:
		v.pause(ctx, status, s, line.Pause{For: s.RetryAfter, Grow: s.Documented, Most: max(mostPause, s.RetryAfter)})
	case s.Throttled && !s.HasRetryAfter && !s.NoRetry: // waiting does not help with what must be paid for
		v.pause(ctx, status, s, line.Pause{For: leastPause, Grow: true, Most: mostPause})
	}
}

// pause holds up those whose pause the answer is.
func (v *visit) pause(ctx context.Context, status int, s *retryafter.Signal, p line.Pause) {
	e := Event{Kind: EventPause, Status: status, Dialect: s.Dialect}
	if most := v.policy.maxPause(); p.For > most || p.Most > most && p.Grow {
		e.Cut = p.For > most
		p.For, p.Most = min(p.For, most), min(p.Most, most)
	}
	p.Source, p.Started = s.Dialect, v.grant.At
	for _, c := range v.claims.all() {
		p.Limits = append(p.Limits, c.rule.spec)
	}
	if v.far != nil {
		v.pauseFar(ctx, s, &p, e)
		return
	}
	err := v.retry(ctx, func() (err error) {
		e.Rule, e.KeyDigest = "", ""
		p.Scope = line.Scope{}
		if s.Scope != retryafter.ScopeHost {
			p.Who = v.openEar(ctx)
			if p.Who != 0 {
				e.KeyDigest = v.label()
			}
		}
		if c := v.narrowest(); s.Scope == retryafter.ScopeRule && c != nil {
			p.Rule, e.Rule = c.budget, c.rule.name
		}
		e.Pause, err = v.site.line.Pause(&p)
		return err
	})
	if err == nil && e.Pause > 0 {
		v.tell(ctx, e)
	}
}

// retry does what needs the site and the claims' budgets, again with their
// successors where they have been forgotten meanwhile.
func (v *visit) retry(ctx context.Context, do func() error) error {
	for {
		if err := do(); !errors.Is(err, line.ErrRetired) {
			return err
		}
		v.open(ctx)
	}
}

// openEar returns the request's identity, or none where there is no room to
// remember what is said to it: then everybody hears it.
func (v *visit) openEar(ctx context.Context) uint64 {
	if v.who == 0 || v.t.table.openEar(v.site, v.claims.all(), v.who, v.label) {
		return v.who
	}
	v.tell(ctx, Event{Kind: EventOverflow})
	return 0
}

// narrowest returns the claim of the first rule that is for some methods or
// paths only, or nil.
func (v *visit) narrowest() *claim {
	claims := v.claims.all()
	for i := range claims {
		if c := &claims[i]; c.cost > 0 && (c.rule.path != nil || len(c.rule.methods) > 0) {
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
	said := law.Said{
		Left: l.Remaining, Limit: -1, Reset: -1,
		Started: int64(v.grant.At), Pace: v.policy.Learn == LearnPace,
	}
	if l.HasLimit {
		said.Limit = l.Limit
	}
	most := v.policy.maxPause()
	if l.HasWindow {
		said.Window = int64(min(l.Window, most))
	}
	switch {
	case l.HasReset:
		said.Reset = int64(min(l.Reset, most))
	case l.HasWindow && l.Window <= assumedReset:
		said.Reset = int64(l.Window)
	}
	e := Event{
		Kind: EventLearned, Status: status, Dialect: dialect,
		Limit: max(0, said.Limit), Remaining: l.Remaining, Reset: time.Duration(said.Reset),
		Cut: l.HasReset && l.Reset > most,
	}
	key := line.LearnedKey{Name: l.Name, Window: l.Window}
	if v.far != nil {
		v.learnFar(ctx, key, dialect, said, v.ruleOf(l), e)
		return
	}
	err := v.retry(ctx, func() (err error) {
		var s line.Scope
		if c := v.ruleOf(l); c != nil {
			s.Rule, e.Rule = c.budget, c.rule.name
			if v.t.observer != nil {
				e.KeyDigest = v.t.digestOf(c.key)
			}
		} else if s.Who = v.openEar(ctx); s.Who != 0 && v.t.observer != nil {
			e.KeyDigest = v.label()
		}
		e.Drift, err = v.site.line.Learn(s, key, dialect, said)
		return err
	})
	if err == nil && v.t.observer != nil {
		if e.Rule == "" {
			e.Rule = learnedName(l.Name)
		}
		v.tell(ctx, e)
	}
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
		if c := &claims[i]; l.Name != "" && c.cost > 0 && strings.EqualFold(c.rule.name, l.Name) {
			return c
		}
	}
	if l.OtherUnit || !l.HasWindow {
		return nil
	}
	for i := range claims {
		if c := &claims[i]; c.cost > 0 && c.rule.spec.Period() == l.Window {
			return c
		}
	}
	return nil
}

// delay is Transport.Delay for a visit whose budgets are open.
func (v *visit) delay(noSlot bool) *line.Refusal {
	if v.far != nil {
		return v.delayFar(noSlot)
	}
	return v.site.line.Delay(&line.Ask{Needs: v.needs.all(), NoSlot: noSlot, Who: v.who})
}

// mostPeeked is how much of a refusal's body is read before the caller gets it.
const mostPeeked = 4 << 10

// peek reads the first bytes of a response's body, and puts them back.
func peek(resp *http.Response) []byte {
	prefix, err := io.ReadAll(io.LimitReader(resp.Body, mostPeeked)) // a refusal's: seldom
	back := io.Reader(bytes.NewReader(prefix))
	if err != nil {
		back = io.MultiReader(back, failing{err})
	} else {
		back = io.MultiReader(back, resp.Body)
	}
	resp.Body = &struct {
		io.Reader
		io.Closer
	}{back, resp.Body}
	return prefix
}

// failing is a reader that failed.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
