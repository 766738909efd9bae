package headway

import (
	"context"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/headway-go/headway/internal/line"
)

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

// openEar makes the place for what is said to the request's identity, or to all
// newcomers where there is no room for it alone.
func (v *visit) openEar(ctx context.Context) error {
	news := v.chooseEar()
	isNew, err := v.site.line.OpenAudience(v.who, v.label(), v.owner())
	if news || isNew && v.who == v.newcomers {
		v.tell(ctx, Event{Kind: EventOverflow})
	}
	return err
}
