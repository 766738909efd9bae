package headway

import (
	"net/http"

	"github.com/headway-go/headway/internal/inside"
	"github.com/headway-go/headway/internal/match"
	"github.com/headway-go/headway/retryafter"
)

// A server may limit single resources, buckets or endpoints. What a response announces of one
// concerns only the requests that draw on it: those whose route has got a response that named
// it before. The route is what the dialect says of the request, or else the pattern of a rule.

// roomForRoute is the room on the stack for a route, or a resource. A longer one is allocated.
const roomForRoute = 256

// findRoute tells the desk which way the request goes, once its claims are known.
func (v *request) findRoute() {
	var room [roomForRoute]byte
	v.SetRoute(v.appendRoute(room[:0], v.Names()))
}

// appendRoute appends the route of the request, as seen by a dialect.
func (v *request) appendRoute(dst []byte, dialect string) []byte {
	route, named := inside.RouteTo(v.reader, dialect, dst, v.req)
	if !named { // the rule's author knows best what is one endpoint
		if r := v.policy.pathRule(v.req); r != nil {
			method := v.req.Method
			if method == "" {
				method = http.MethodGet
			}
			route = append(append(append(dst, method...), ' '), r.of.Path...)
		}
	}
	return route
}

// pathRule returns the first rule for some paths that matches, or nil.
func (p *policy) pathRule(req *http.Request) *rule {
	target := match.TargetOf(req)
	for i := range p.rules {
		if r := &p.rules[i]; r.of.Path != "" && r.Matches(target) {
			return r
		}
	}
	return nil
}

// drawOn makes what the desk is told next about the resource that a response names, or about
// the identity where it names none.
func (v *request) drawOn(s *retryafter.Signal, resource string) {
	var rooms [2][roomForRoute]byte
	switch resource {
	case "":
		v.DrawOn("", nil, nil, "")
	case retryafter.PerRoute:
		route := v.appendRoute(rooms[0][:0], s.Dialect)
		v.DrawOn(s.Dialect, route, route, "")
	default:
		route := v.appendRoute(rooms[0][:0], s.Dialect)
		v.DrawOn(s.Dialect, route, inside.ResourceOf(s.Dialect, rooms[1][:0], v.req, resource), resource)
	}
}

// resourceOf returns the resource that a refusal is about. Where a rule for some methods or paths
// matches, that is what a server means which limits each endpoint.
func (v *request) resourceOf(s *retryafter.Signal) string {
	if s.Resource == retryafter.PerRoute && s.Scope == retryafter.ScopeRule && v.Narrow() {
		return ""
	}
	return s.Resource
}

// namesResource reports whether one of the limits that a response announces is of a resource.
func namesResource(s *retryafter.Signal) bool {
	list := s.Limits()
	for i := range list {
		if list[i].Resource != "" {
			return true
		}
	}
	return false
}
