package desk

import (
	"hash/maphash"
	"slices"

	"github.com/headway-go/headway/internal/digest"
	"github.com/headway-go/headway/internal/line"
	"github.com/headway-go/headway/internal/roster"
)

// An identity is the keys of the rules that match a request, taken together.
type identity struct {
	of        uint64 // zero: no rule that matches has a key
	newcomers uint64 // what all identities under these rules share that there is no room for
	keys      int    // how many of the rules have keys
	audience  uint64 // as which of the two the request receives announcements; zero: as all
}

// Claim adds a claim to a Ticket, and its key to the request's identity.
func (k *Ticket) Claim(c roster.Claim) {
	k.Claims.Add(c)
	if c.Rule.Keyed {
		k.identity.of = with(k.identity.of, c.Rule, c.Key.Sum)
		k.identity.newcomers = with(k.identity.newcomers, c.Rule, digest.Sum{})
		k.identity.keys++
	}
}

var identitySeed = maphash.MakeSeed()

// with returns the identity that has one key more.
func with(identity uint64, r *roster.Rule, key digest.Sum) uint64 {
	return 1 | maphash.Comparable(identitySeed, struct {
		identity uint64
		rule     int
		key      digest.Sum
	}{identity, r.ID, key})
}

// owner returns the budget of the request's only key; nil where it has none or
// several, or the rule is no more.
func (k *Ticket) owner() *line.Budget {
	if k.identity.keys == 1 {
		for _, c := range k.Claims.All() {
			if c.Rule.Keyed && k.Host.Owns(c.Rule) {
				return c.Budget
			}
		}
	}
	return nil
}

// chooseAudience finds the audience of a request whose budgets are open. An identity that there
// is no room for counts as newcomers.
func (k *Ticket) chooseAudience() {
	id := &k.identity
	id.audience = 0
	if id.of == 0 || !k.Plan.Listens {
		return
	}
	remembered := true
	if b := k.owner(); b == nil {
		var overflows bool
		remembered, overflows = k.desk.Roster.Identity(k.Host, k.Gate, k.Claims.All(), id.of, id.newcomers)
		k.Overflows = k.Overflows || overflows
	} else {
		for _, c := range k.Claims.All() {
			remembered = remembered && (!c.Rule.Keyed || b != k.Host.At(c.Rule.Index))
		}
	}
	if id.audience = id.of; !remembered {
		id.audience = id.newcomers
	}
}

// openAudience makes the place for what is announced to the request's identity, or to all
// newcomers where there is no room for it alone.
func (k *Ticket) openAudience() error {
	k.chooseAudience()
	isNew, err := k.Host.Line.OpenAudience(k.identity.audience, k.label(), "", k.owner())
	k.Overflows = k.Overflows || isNew && k.identity.audience == k.identity.newcomers
	return err
}

// label is the digests of the keys that are the identity; empty for newcomers.
func (k *Ticket) label() string {
	if k.identity.audience == k.identity.newcomers && k.identity.audience != 0 {
		return ""
	}
	claims := k.Claims.All()
	if len(claims) == 1 {
		return k.desk.Roster.Digests.Of(claims[0].Key)
	}
	var digests []string
	for _, c := range claims {
		if !c.Key.None() {
			digests = append(digests, k.desk.Roster.Digests.Of(c.Key))
		}
	}
	return digest.Join(digests)
}

// Owns reports whether a claim's budget belongs to the request's identity alone: all keys that
// make up the identity are the budget's. Then what a server announces to the identity holds for
// the budget.
func (k *Ticket) Owns(c *roster.Claim) bool {
	return k.identity.of == 0 || !slices.ContainsFunc(k.Claims.All(), func(o roster.Claim) bool {
		return o.Rule.Keyed && (!c.Rule.Keyed || o.Rule.SameKey != c.Rule.SameKey)
	})
}
