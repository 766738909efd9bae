package headway

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/headway-go/headway/internal/attempt"
	"github.com/headway-go/headway/internal/fault"
	"github.com/headway-go/headway/internal/inside"
	"github.com/headway-go/headway/internal/line"
	"github.com/headway-go/headway/retryafter"
)

// sendStarted sends a request that has taken a unit of each of the route's
// budgets at an instant, and p of its gate, if it has one. It listens to the
// answer, and tells the breaker. What panics needs no place given back: p is of a
// breaker that bounded nothing.
func (t *Transport) sendStarted(r *route, req *http.Request, at time.Duration, p line.Pass, heard *attempt.Reading) (resp *http.Response, err error) {
	flying, told, over := r.policy.listens, false, false
	var kept *keptEvents
	defer func() {
		if over {
			return
		}
		if flying {
			r.site.line.DoneStart(r.budgets)
		}
		defer closeUnless(&over, resp)
		if !told {
			t.tellResponse(req.Context(), kept, r.gate)
		}
	}()
	var body *fault.Body
	resp, err = t.send(req, r.gate, &body)
	var s retryafter.Signal
	if flying && err == nil {
		said, more := read(r.reader, resp, &s), needsBody(r.reader, resp)
		if more || said && (s.Throttled || t.observer != nil || !r.learn(at, &s, &flying)) {
			kept = r.hear(t, req, at, flying, resp, said, more, &s)
		}
		if heard != nil {
			r.policy.leave(heard, resp, &s)
		}
	}
	well := len(r.budgets) == 0 && r.policy.listens && succeeded(resp, &s)
	if well {
		r.site.line.Served(at, flying)
	} else if flying {
		r.site.line.DoneStart(r.budgets)
	}
	flying = false
	if r.gate != nil {
		t.record(r, r.site, r.gate, &p, r.policy.result(req, resp, err, &s, body))
	}
	told = true
	switch {
	case kept != nil:
		t.tellResponse(req.Context(), kept, r.gate)
	case r.gate != nil:
		r.gate.tell()
	}
	over = true
	return resp, err
}

// hear is visit.hear for a request that sendStarted has sent. It returns the events
// to report.
func (r *route) hear(t *Transport, req *http.Request, at time.Duration, flying bool, resp *http.Response, said, more bool, s *retryafter.Signal) *keptEvents {
	v := visit{t: t, req: req, route: *r, site: r.site, gate: r.gate}
	v.grant.At, v.grant.InFlight = at, flying
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
	said := inside.ReadTo(reader, s, resp.StatusCode, resp.Header, time.Time{})
	if resp.StatusCode >= 400 && readPlain(resp, s) {
		said = true
	}
	if said && s.HasRetryAfter && !s.Inferred && !s.Documented {
		endExhausted(s)
	}
	return said
}

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
	return resp.StatusCode >= 400 && resp.Body != nil && resp.Body != http.NoBody && inside.NeedsBody(reader, resp.StatusCode, resp.Header)
}

// leave leaves in heard how a response was read, where a retry may ask for it.
func (p *policy) leave(heard *attempt.Reading, resp *http.Response, s *retryafter.Signal) {
	if heard != nil && resp.StatusCode >= 400 {
		heard.Done, heard.Signal, heard.MaxPause = true, *s, p.Server.MaxPause
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

// hearHeaders tells of a header that is malformed, and learns what is left.
func (v *visit) hearHeaders(ctx context.Context, status int, s *retryafter.Signal) {
	if s.Malformed != "" {
		v.tell(ctx, Event{Kind: EventMalformed, Status: status, Dialect: s.Dialect, Header: strings.Clone(s.Malformed)})
	}
	if v.policy.Server.Learn != LearnOff {
		for i := range s.Limits() {
			v.learn(ctx, status, s.Dialect, &s.Limits()[i])
		}
	}
}

// retry does what needs the site, the claims' budgets and the request's ear, again
// with their successors where they have been forgotten meanwhile.
func (v *visit) retry(ctx context.Context, do func() error) error {
	for {
		err := do()
		if errors.Is(err, line.ErrNoAudience) {
			err = v.openEar(ctx)
		} else if !errors.Is(err, line.ErrRetired) {
			return err
		}
		if err != nil {
			v.open(ctx)
		}
	}
}
