package headway

import (
	"context"
	"net/http"
	"time"

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
			if p.Identity = v.who; p.Identity != 0 {
				e.KeyDigest = v.label()
			}
		}
		if c := v.narrowest(); s.Scope == retryafter.ScopeRule && c != nil {
			p.Rule, e.Rule = c.budget, c.rule.name
		}
		p.Open = v.policy.open && p.Identity == 0 && p.Rule == nil
		e.Pause, err = v.site.line.AnnouncePause(p)
		return err
	})
	if err != nil {
		e.Pause = 0
	}
	return e
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
