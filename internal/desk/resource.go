package desk

import (
	"hash/maphash"

	"github.com/headway-go/headway/internal/digest"
	"github.com/headway-go/headway/internal/line"
	"github.com/headway-go/headway/internal/roster"
)

type errRoute struct{}

func (errRoute) Error() string { return "desk: set the route, and enter again" }

// ErrRoute is what Enter and Delay return where what is announced may depend on the route of the
// request: the caller calls SetRoute and enters again.
var ErrRoute error = errRoute{}

// Names returns the dialect in which responses of the request's host name resources; empty if
// none has yet.
func (k *Ticket) Names() string {
	if k.Host == nil {
		return ""
	}
	return k.Host.Names()
}

// SetRoute tells which way the request goes, once its claims are known; empty is none. By its
// route the request draws on what responses to others that went the same way have named.
func (k *Ticket) SetRoute(route []byte) {
	if k.routed = true; len(route) > 0 {
		k.route = k.hash(route)
	}
}

// hash stands for a text within the request's identity.
func (k *Ticket) hash(text []byte) uint64 {
	var h maphash.Hash
	h.SetSeed(identitySeed)
	maphash.WriteComparable(&h, k.identity.of)
	h.Write(text)
	return h.Sum64() | 1
}

// lacksRoute reports whether SetRoute has to be called before the request enters.
func (k *Ticket) lacksRoute() bool {
	return !k.routed && !k.Quota && k.Plan.Listens && k.Names() != ""
}

// findResource finds what the request draws on by its route.
func (k *Ticket) findResource() {
	if k.resource = nil; k.route != 0 {
		k.resource = k.Host.ResourceOf(k.route)
	}
}

// who returns as whom the request receives announcements in memory.
func (k *Ticket) who() line.Who {
	w := line.Who{Identity: k.identity.audience, Route: k.route}
	if k.resource != nil {
		w.Resource = k.resource.ID
	}
	return w
}

// DrawOn makes what Limit and Pause are told next about one resource of the request's identity,
// since a response in a dialect has named it for the request's route. full tells it apart from
// the others, and name is the server's name for it; empty: the same. It is false where there is no room to
// remember it: then, and after DrawOn without a route, they are about the identity.
func (k *Ticket) DrawOn(dialect string, route, full []byte, name string) bool {
	if k.named = nil; len(route) == 0 || len(full) == 0 {
		return false
	}
	if k.Host == nil || k.stored != nil {
		k.locate()
	}
	k.namedBy = k.hash(route)
	id := ^k.hash(full) // a route may have the same text
	if k.named = k.Host.ResourceOf(k.namedBy); k.named == nil || k.named.ID != id {
		r := &roster.Resource{ID: id, Name: name, Dialect: dialect}
		if name == "" {
			r.Name = string(full)
		}
		if k.desk.store != nil {
			r.Stored = "//" + k.desk.Roster.Digests.Of(digest.KeyOf(string(full)))
		}
		k.learn(r)
	}
	return k.named != nil
}

// learn remembers that the route draws on r, also of the requests in line.
func (k *Ticket) learn(r *roster.Resource) {
	if k.named = k.desk.Roster.Learn(k.Host, k.Gate, k.Claims.All(), k.namedBy, r); k.named != nil {
		k.Host.Line.JoinAudience(r.ID, k.namedBy)
	}
}

// openResource makes the place for what is announced of the resource that DrawOn was told. Where
// there is no room, that is about the identity.
func (k *Ticket) openResource() error {
	if k.learn(k.named); k.named == nil {
		return nil
	}
	_, err := k.Host.Line.OpenAudience(k.named.ID, k.label(), k.named.Name, nil)
	return err
}

// resourceName returns the server's name for the resource that DrawOn was told, or nothing.
func (k *Ticket) resourceName() string {
	if k.named == nil {
		return ""
	}
	return k.named.Name
}
