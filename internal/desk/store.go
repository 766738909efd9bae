package desk

import (
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/headway-go/headway/internal/awake"
	"github.com/headway-go/headway/internal/digest"
	"github.com/headway-go/headway/internal/law"
	"github.com/headway-go/headway/internal/line"
	"github.com/headway-go/headway/internal/roster"
	"github.com/headway-go/headway/internal/storeline"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/store"
)

// A stored is a request's way through the store.
type stored struct {
	line  *storeline.Line
	ask   storeline.Ask
	grant *storeline.Grant // nil until it has started

	memory *Ticket // the request as one that memory decides for; nil before its first pause
}

// all names the audience of what is announced to all requests of a host; see Ticket.audience.
const all = "ear"

// group is what the store keeps together: a policy at a host, or at all of its
// hosts where it is Shared.
func group(p *roster.Plan, name string) string {
	if p.Shared {
		name = ""
	}
	return p.Group + url.PathEscape(name)
}

// hostOf returns the host of a group.
func hostOf(group string) string {
	_, escaped, _ := strings.Cut(group, "/")
	name, _ := url.PathUnescape(escaped) // it fails for what another store has made up
	return name
}

// budget is what the store calls the budget of a claim.
func (k *Ticket) budget(c *roster.Claim) string {
	if c.Rule.Keyed {
		return c.Rule.Stored + "/" + k.desk.Roster.Digests.Of(c.Key)
	}
	return c.Rule.Stored
}

// audience is what the store calls the audience of the request's identity alone, or of all
// where it has none: the rules of its keys, each with the key's digest.
func (k *Ticket) audience() string {
	if k.identity.of == 0 {
		return all
	}
	var b strings.Builder
	b.WriteString(all)
	claims := k.Claims.All()
	for i := range claims {
		if claims[i].Rule.Keyed {
			b.WriteByte('/')
			b.WriteString(k.budget(&claims[i]))
		}
	}
	return b.String()
}

// digestsOf returns the digests of the identity that an audience is of, or of whose resources it
// is one: behind // it is named; see DrawOn.
func digestsOf(audience string) string {
	var digests []string
	audience, _, _ = strings.Cut(audience, "//")
	parts := strings.Split(audience, "/")
	for i := 2; i < len(parts); i += 2 {
		digests = append(digests, parts[i])
	}
	return digest.Join(digests)
}

// storeLine returns the line of a plan at a host. Unuse must follow.
func (d *Desk) storeLine(p *roster.Plan, name string) *storeline.Line {
	hosts := p.Hosts
	return d.store.Line(hosts, group(p, name), func() *storeline.Plan {
		if now := hosts.Current(); now != nil {
			return now.InStore
		}
		return nil
	})
}

// limitOf returns a limit in the form that stores take.
func limitOf(s *law.Spec) limiter.Limit {
	return limiter.Limit{N: s.N, Per: s.Per, Law: limiter.Law(s.Kind), Burst: s.Burst, Strict: s.Strict, Unit: limiter.Unit(s.Unit), Location: s.Location}
}

// openStore finds the line and the needs, and the gate if there is one. close must follow.
func (d *Desk) openStore(k *Ticket) {
	at := &stored{line: d.storeLine(k.Plan, k.Name)}
	k.stored = at
	if k.Plan.Breaker != nil {
		k.locate()
		if k.Gate != nil {
			at.ask.Local, at.ask.Gate = &k.Host.Line, k.Gate.Side()
		}
	}
	at.ask.Identity, at.ask.Exact, at.ask.MaxWait, at.ask.NoSlot, at.ask.Journal = k.identity.of, k.Exact, k.MaxWait, k.Quota, k.Journal
	claims := k.Claims.All()
	for i := range claims {
		if c := &claims[i]; c.Cost > 0 {
			at.ask.Needs = append(at.ask.Needs, storeline.Need{Budget: k.budget(c), Cost: c.Cost})
		}
	}
	if k.Plan.Listens {
		own := k.audience()
		if k.Plan.Hosts.Names() && !k.Quota {
			if k.locate(); k.route != 0 {
				k.findResource()
			}
			if k.resource != nil {
				at.ask.Audiences = append(at.ask.Audiences, own+k.resource.Stored)
			}
		}
		if own != all {
			at.ask.Audiences = append(at.ask.Audiences, own)
		}
		at.ask.Audiences = append(at.ask.Audiences, all)
	}
}

// close ends the use of the line that openStore has found.
func (k *Ticket) close() {
	if k.stored != nil {
		k.stored.line.Unuse()
		k.stored = nil
	}
}

// enterStore is Enter by way of the store.
func (d *Desk) enterStore(ctx context.Context, k *Ticket) (*line.Refusal, error) {
	for began := time.Now(); ; {
		d.openStore(k)
		if k.Overflows {
			k.close()
			return nil, ErrAgain
		}
		if k.lacksRoute() {
			k.close()
			return nil, ErrRoute
		}
		grant, refusal, err := k.stored.line.Enter(ctx, &k.stored.ask)
		if err == line.ErrRetired {
			k.close()
			continue
		}
		k.Waited = time.Since(began)
		if grant != nil && err == nil {
			k.stored.grant, k.granted, k.announced = grant, true, grant.UnderPause
			k.At, k.Waited = time.Duration(grant.At), grant.Waited
			k.grant.Slot, k.grant.Pass = grant.Slot, grant.Pass
		}
		return refusal, err
	}
}

func (d *Desk) delayStore(ctx context.Context, k *Ticket) (wait time.Duration, err error) {
	d.openStore(k)
	defer k.close()
	if k.lacksRoute() {
		return 0, ErrRoute
	}
	r, err := k.stored.line.Delay(ctx, &k.stored.ask)
	if err != nil {
		return 0, err
	}
	if r != nil {
		wait = r.RetryAfter
	}
	if k.Gate != nil && !k.Gate.Closed() {
		wait = max(wait, k.Gate.Delay(awake.Now()))
	}
	return wait, nil
}

// recheck looks again at the requests in front of g in lines of the store, after its breaker has
// changed or a request that has passed it is no longer in flight.
func (d *Desk) recheck(g *roster.Gate) {
	h, group := g.At(), "" // of a gate of many hosts
	if g.Host != "" {
		group = url.PathEscape(h.Of().Name) + "/" + url.PathEscape(h.Name)
	}
	d.store.Recheck(h.Of(), group, &h.Line, g.Side())
}

// do does an operation with n units of a claim, which were taken at an instant. A
// rule that is no more has all units. When ctx ends, do returns its error, and the operation is
// done all the same.
func (d *Desk) do(ctx context.Context, k *Ticket, kind store.OpKind, c *roster.Claim, n int64, taken time.Duration) (store.Result, error) {
	need, ok := k.need(c, n, taken)
	if !ok {
		return store.Result{Remaining: []int64{law.Unlimited}}, nil
	}
	l := d.storeLine(k.Plan, k.Name)
	defer l.Unuse()
	return l.Do(ctx, store.Op{Kind: kind, Needs: []store.Need{need}})
}

// need returns n units of a claim, which were taken at an instant, in the form that stores take;
// false where its rule is no more.
func (k *Ticket) need(c *roster.Claim, n int64, taken time.Duration) (need store.Need, ok bool) {
	r := k.Plan.Hosts.Current().Rule(c.Rule.ID)
	if r == nil {
		return need, false
	}
	return store.Need{Budget: k.budget(c), Limit: limitOf(&r.Limit), Cost: n, Taken: int64(taken)}, true
}
