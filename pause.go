package headway

import (
	"context"
	"net/http"
	"time"

	"github.com/headway-go/headway/internal/desk"
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

// maxPause returns what the longest pause is that is believed.
func (p *policy) maxPause() time.Duration {
	if p.Server.MaxPause == 0 {
		return 24 * time.Hour
	}
	return p.Server.MaxPause
}

// refusedByServer obeys what a refusal says of coming back. Where its headers do
// not say how long, but its body may, the pause holds at once, and is reported, or
// taken back, once that is read.
func (v *request) refusedByServer(ctx context.Context, resp *http.Response, more bool, s *retryafter.Signal) {
	status := resp.StatusCode
	p, timed := pauseOf(s)
	var first desk.Effect
	if p.For > 0 {
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
	scope := s.Scope
	if read, ok := v.reader.ReadBody(status, resp.Header, peek.Body(ctx, resp), time.Now()); ok {
		*s = read
		readPlain(resp, s)
	}
	q, _ := pauseOf(s)
	switch {
	case timed && q.For <= p.For: // a pause is not shortened
		return
	case !timed && first.Lasts > 0 && q.For == p.For && s.Scope == scope: // the body adds nothing
		v.reportPause(ctx, p, first)
		return
	}
	if first.Final && first.Lasts > 0 {
		q.Grow = false
	}
	q.Over = p
	v.reportPause(ctx, q, v.pause(ctx, status, s, q))
}

// audienceOf returns whom a pause concerns.
func audienceOf(s *retryafter.Signal) desk.Audience {
	switch s.Scope {
	case retryafter.ScopeHost:
		return desk.ToAll
	case retryafter.ScopeRule:
		return desk.ToRule
	}
	return desk.ToIdentity
}

// pauseOf returns the pause that a response asks for, For zero for none, and whether
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

// pause raises a pause, no longer than the policy believes.
func (v *request) pause(ctx context.Context, status int, s *retryafter.Signal, p *line.Pause) desk.Effect {
	most := v.policy.maxPause()
	cut := p.For > most
	p.For = min(p.For, most)
	if p.Grow {
		p.Most = min(p.Most, most)
	}
	p.Source, p.Status = s.Dialect, status
	e := v.Pause(ctx, p, audienceOf(s))
	e.Cut = cut
	v.opened(ctx)
	return e
}

// reportPause reports the pause that p has raised, if that matters.
func (v *request) reportPause(ctx context.Context, p *line.Pause, got desk.Effect) {
	if got.Lasts == 0 || v.t.observer == nil || !v.IsNews(p, got) {
		return
	}
	e := Event{Kind: EventPause, Status: p.Status, Dialect: p.Source, Cut: got.Cut, KeyDigest: got.KeyDigest, Pause: got.Lasts}
	if got.Rule != nil {
		e.Rule = got.Rule.Name
	}
	v.report(ctx, e)
}
