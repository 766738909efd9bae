package desk

import (
	"cmp"
	"slices"
	"time"

	"github.com/headway-go/headway/internal/law"
	"github.com/headway-go/headway/internal/line"
	"github.com/headway-go/headway/internal/roster"
	"github.com/headway-go/headway/internal/storeline"
	"github.com/headway-go/headway/store"
)

// An Audience is the requests that a pause concerns.
type Audience uint8

const (
	ToIdentity Audience = iota // requests with the same keys; all where the request has none
	ToRule                     // of these, requests that the first narrow rule matches
	ToAll                      // all requests to the host
)

// An Effect is what an announcement has changed, as far as it is to be reported.
type Effect struct {
	OK        bool          // it is in force
	Lasts     time.Duration // of a pause, from now; zero: no request waits longer by it
	Final     bool          // a later pause cannot replace it
	Rule      *roster.Rule  // which it concerns; nil: no single one
	Resource  string        // the server's name for the resource that it concerns; empty: none
	KeyDigest string
	Drift     int64 // of a limit: units that others have spent
}

// narrowest returns the claim of the first rule that is for some methods or
// paths only, or nil.
func (k *Ticket) narrowest() *roster.Claim {
	claims := k.Claims.All()
	for i := range claims {
		if c := &claims[i]; c.Cost > 0 && c.Rule.Narrow {
			return c
		}
	}
	return nil
}

// Narrow reports whether a rule that is for some methods or paths only has a claim.
func (k *Ticket) Narrow() bool { return k.narrowest() != nil }

// Pause raises the pause that a response requests, also for the requests in line. It concerns
// the requests of an audience or, after DrawOn, those that draw on the resource. Over a store
// it holds in this process at once, and the store receives it afterwards. Effect.Lasts is then
// as far as this process knows.
func (k *Ticket) Pause(p *line.Pause, to Audience) (e Effect) {
	for _, c := range k.Claims.All() {
		p.Limits = append(p.Limits, c.Rule.Limit)
	}
	if k.stored != nil {
		return k.stored.pause(k, p, to)
	}
	p.Started = k.At
	return k.pauseLocal(p, to)
}

// pauseLocal is Pause in memory.
func (k *Ticket) pauseLocal(p *line.Pause, to Audience) (e Effect) {
	err := k.retry(func() (err error) {
		e = Effect{}
		p.Scope = line.Scope{}
		if to != ToAll && k.identity.audience != 0 {
			p.Identity, e.KeyDigest = k.identity.audience, k.label()
		}
		if c := k.narrowest(); to == ToRule && c != nil && k.named == nil {
			p.Rule, e.Rule = c.Budget, c.Rule
		}
		p.Open = k.Plan.Open && p.Identity == 0 && p.Rule == nil
		if k.named != nil {
			p.Identity, e.Resource = k.named.ID, k.named.Name
		}
		e.Lasts, err = k.Host.Line.AnnouncePause(p)
		return err
	})
	if e.OK = err == nil; !e.OK {
		e.Lasts = 0
	}
	return e
}

// IsNews reports whether p, which has been raised, is to be reported: not where one that is
// about as long has been.
func (k *Ticket) IsNews(p *line.Pause) bool {
	if k.stored != nil {
		k = k.stored.memory
	}
	return k.Host.Line.IsNews(p)
}

// Halt keeps requests in this process from starting while the length of a pause that concerns
// them is being read. It returns nil in memory: there a pause is raised at once, and replaced,
// which a store cannot do.
func (k *Ticket) Halt(to Audience) (release func()) {
	if k.stored == nil {
		return nil
	}
	return k.stored.line.Halt(k.stored.audienceOf(k, to))
}

// Limit takes in how many units of a limit the server has announced to be left: of the budget of
// a claim or, where that is nil, of what DrawOn was told or else of the request's
// identity.
func (k *Ticket) Limit(key line.AnnouncedKey, dialect string, signal law.LimitSignal, c *roster.Claim) (e Effect) {
	if c != nil {
		e.Rule = c.Rule
	} else {
		e.Resource = k.resourceName()
	}
	if k.stored != nil {
		e.OK = k.stored.limit(k, key, dialect, &signal, c) == nil
		e.KeyDigest = k.limitDigest(c)
		return e
	}
	err := k.retry(func() (err error) {
		r := line.LimitReport{Key: key, Source: dialect, Signal: signal}
		own := int64(1)
		if c != nil {
			r.Scope.Rule, own = c.Budget, c.Cost
		} else if r.Scope.Identity = k.identity.audience; k.named != nil {
			r.Scope.Identity = k.named.ID
		}
		if k.grant.InFlight {
			r.Signal.Own = own
			r.Undrawn, r.Identity = c == nil && k.named != nil && !k.grant.DrawsOn(k.named.ID), k.identity.audience
		}
		e.Drift, err = k.Host.Line.AnnounceLimit(&r, k.needs.All(), nil, nil)
		return err
	})
	e.OK, e.KeyDigest = err == nil, k.limitDigest(c)
	return e
}

// limitDigest returns the digest of the key that an announced limit is of, if it is to be
// reported.
func (k *Ticket) limitDigest(c *roster.Claim) string {
	switch {
	case !k.desk.Roster.Watched:
		return ""
	case c != nil:
		return k.desk.Roster.Digests.Of(c.Key)
	case k.identity.of == 0 || k.stored == nil && k.identity.audience == 0:
		return ""
	}
	return k.label()
}

// Succeeded is called when the request has succeeded. The pauses that held it no longer grow, and
// if it has no claims, a restart may be as fast as such requests were.
func (k *Ticket) Succeeded() {
	open := len(k.Claims.All()) == 0
	if k.stored != nil {
		if k.announced {
			k.stored.succeeded(k)
		}
		if open {
			k.stored.line.Served(store.Instant(k.At))
		}
		return
	}
	if k.announced {
		k.Host.Line.Succeeded(k.grant.Who(), k.At)
	}
	if open {
		k.Host.Line.Served(k.At, false)
	}
}

// audienceOf returns the store's name for the requests that a pause concerns: an audience and, if
// only is not empty, of that the requests that need this budget.
func (at *stored) audienceOf(k *Ticket, to Audience) (audience, only string) {
	audience = all
	if to != ToAll {
		audience = k.audience()
	}
	if k.named != nil {
		return audience + k.named.Stored, ""
	}
	if c := k.narrowest(); to == ToRule && c != nil {
		only = k.budget(c)
	}
	return audience, only
}

func (at *stored) pause(k *Ticket, p *line.Pause, to Audience) (e Effect) {
	e.Final = true
	if p.For == 0 {
		return e
	}
	op := store.Op{Kind: store.OpPause, Pause: &store.Pause{
		For: p.For, Grow: p.Grow, Most: p.Most, Started: int64(k.At), Source: p.Source,
	}}
	for i := range p.Limits {
		op.Pause.Limits = append(op.Pause.Limits, limitOf(&p.Limits[i]))
	}
	e.Resource = k.resourceName()
	if op.Audience, op.Only = at.audienceOf(k, to); op.Audience != all {
		e.KeyDigest = k.label()
	}
	if op.Only != "" {
		e.Rule = k.narrowest().Rule
	}
	if k.Plan.Open && op.Only == "" && (op.Audience == all || k.named != nil && k.identity.of == 0) {
		op.Pause.Found = max(1, at.line.Found(op.Pause.Started))
	}
	local := at.pauseInMemory(k, p, to)
	e.OK, e.Lasts = local.OK, local.Lasts
	at.line.AnnouncePause(op, storeline.Raised{Lasts: e.Lasts, Status: p.Status, News: k.longerOf(p, to, e)})
	return e
}

func (at *stored) limit(k *Ticket, key line.AnnouncedKey, dialect string, signal *law.LimitSignal, c *roster.Claim) error {
	op := store.Op{Kind: store.OpLearn, Audience: all, Learn: &store.Learn{
		Name: key.Name, Window: key.Window, Left: signal.Left, Limit: signal.Limit, Reset: time.Duration(signal.Reset),
		Period: time.Duration(signal.Window), Resets: uint8(signal.Resets), Whole: signal.Whole, Early: signal.Early, Refused: signal.Refused, Most: time.Duration(signal.Most),
		Started: signal.Started, Own: 1, Pace: signal.Pace, Source: dialect,
		RuleLimit: signal.RuleLimit, RulePeriod: time.Duration(signal.RulePeriod), RuleFills: signal.RuleFills,
	}}
	where, flying := all, ""
	switch {
	case c != nil:
		op.Only, op.Learn.Own = k.budget(c), c.Cost
		where = op.Only
	case k.named != nil:
		op.Audience = k.audience() + k.named.Stored
		if where = op.Audience; !slices.Contains(at.ask.Audiences, where) {
			flying = k.audience() // others of it may draw on the resource too
		}
	case k.identity.of != 0:
		op.Audience = k.audience()
		where = op.Audience
	}
	op.Learn.Mark = at.grant.Mark(where, key)
	op.Learn.Mark.InFlight = at.grant.Before(op.Learn.Own)
	op.Learn.InFlight = at.line.InFlight(cmp.Or(flying, where), at.grant)
	return at.line.AnnounceLimit(op)
}
