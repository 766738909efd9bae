package retryafter

import (
	"net/http"
	"strings"
	_ "unsafe" // for go:linkname
)

// routes says how a dialect tells requests apart that draw on different limits.
type routes uint8

const (
	noRoutes      routes = iota
	routesPath           // by method and path, without the names of single objects
	routesGitHub         // by what the documentation lists under "Get rate limit status"
	routesDiscord        // as routesPath, with the major parameter
	routesSlack          // by the method, as Slack calls the last part of the path
)

// maxRoute bounds a route. A longer one is no route.
const maxRoute = 256

// Route implements [RouteDialect].
func (b *builtin) Route(req *http.Request) string {
	var room [maxRoute]byte
	return string(b.appendRoute(room[:0], req))
}

// appendRoute appends the route of a request to the empty dst; nothing if it has none.
func (b *builtin) appendRoute(dst []byte, req *http.Request) []byte {
	if req.URL == nil {
		return dst
	}
	switch b.routes {
	case routesPath:
		dst = appendPath(dst, req.Method, req.URL.Path, false)
	case routesGitHub:
		dst = append(dst, gitHubResource(req.Method, req.URL.Path)...)
	case routesDiscord:
		dst = appendPath(dst, req.Method, discordPath(req.URL.Path), true)
	case routesSlack:
		if method, ok := strings.CutPrefix(req.URL.Path, "/api/"); ok && len(method) <= maxRoute {
			dst = append(dst, method...)
		}
	}
	return dst
}

// routed reports whether a request's route is known to matter before any response has named
// a resource: the host is one whose dialect tells routes apart, or such a dialect is chosen.
//
//lint:ignore U1000 internal/inside links to it
//go:linkname routed
func routed(r *Reader) bool {
	for _, d := range r.custom {
		if _, ok := d.(RouteDialect); ok {
			return true
		}
	}
	return r.router() != nil
}

// router returns the chosen dialect that tells routes apart, or nil.
func (r *Reader) router() *builtin {
	if r.host != nil {
		if r.host.routes == noRoutes {
			return nil
		}
		return r.host
	}
	for _, l := range r.listed {
		if l.routes != noRoutes {
			return l
		}
	}
	return nil
}

// routeTo appends the route of a request to the empty dst: by the dialects of the caller's,
// else by the built-in one that responses of the host have been read in, if there were any,
// else by that of the host, else by method and path. Nothing is appended where it is too
// long. named is true if the dialect knows better than anybody else which requests draw on
// the same limits.
//
//lint:ignore U1000 internal/inside links to it
//go:linkname routeTo
func routeTo(r *Reader, dialect string, dst []byte, req *http.Request) (route []byte, named bool) {
	for _, d := range r.custom {
		if d, ok := d.(RouteDialect); ok {
			if route := d.Route(req); route != "" {
				return append(dst, route[:min(len(route), maxRoute)]...), true
			}
		}
	}
	b := rows[dialect]
	if b == nil || b.routes == noRoutes {
		b = r.router()
	}
	if b != nil {
		if route = b.appendRoute(dst, req); len(route) > 0 {
			return route, !b.perPath
		}
	}
	return appendPath(dst, req.Method, req.URL.Path, false), false
}

// resourceOf appends to the empty dst what tells a resource that a response to the request
// has named apart from all others.
//
//lint:ignore U1000 internal/inside links to it
//go:linkname resourceOf
func resourceOf(dialect string, dst []byte, req *http.Request, resource string) []byte {
	dst = append(dst, resource...)
	if b := rows[dialect]; b != nil && b.routes == routesDiscord {
		dst = append(dst, majorPart(discordPath(req.URL.Path))...)
	}
	return dst
}

// rows are the rows of the table by name.
var rows = func() map[string]*builtin {
	m := make(map[string]*builtin, len(table))
	for _, row := range table {
		m[row.name] = row
	}
	return m
}()

// appendPath appends a method and a path in which a * stands for the name of a single
// object: GET /2/users/*/tweets. With major, the top-level resource of Discord keeps its
// name.
func appendPath(dst []byte, method, path string, major bool) []byte {
	if len(method)+len(path)+2 > maxRoute {
		return dst
	}
	if method == "" {
		method = http.MethodGet
	}
	dst = append(append(dst, method...), ' ')
	keep := 0
	if major {
		keep = len(majorPart(path))
	}
	before, rest := "", path
	for n := 0; rest != ""; n++ {
		var part string
		part, rest = cutPart(rest)
		dst = append(dst, '/')
		if len(path)-len(rest) > keep && isObject(part, before, n) {
			part = "*"
		}
		dst = append(dst, part...)
		before = part
	}
	return dst
}

// cutPart cuts the first part, with the slash before it, off a path.
func cutPart(path string) (part, rest string) {
	path = strings.TrimPrefix(path, "/")
	if i := strings.IndexByte(path, '/'); i >= 0 {
		return path[:i], path[i:]
	}
	return path, ""
}

// isObject reports whether the n-th part of a path, behind another, is the name of a
// single object and not of a kind of them: 1DXxyRYNejbKM, but not v2, oauth2 or @me.
func isObject(part, before string, n int) bool {
	switch {
	case part == "" || part == "@me":
		return false
	case before == "username" || before == "reactions": // X and Discord: any text follows
		return true
	case isDigit(part[0]):
		return n > 0 || len(part) > len("1.1") // else the version of the API
	}
	digit, upper := false, false
	for i := range len(part) {
		digit = digit || isDigit(part[i])
		upper = upper || part[i] >= 'A' && part[i] <= 'Z'
	}
	return strings.IndexByte(part, '@') >= 0 || digit && (upper || len(part) >= 16)
}

// discordPath returns a path of Discord's API without the version.
func discordPath(path string) string {
	rest, ok := strings.CutPrefix(path, "/api")
	if !ok {
		return path
	}
	if part, after := cutPart(rest); len(part) > 1 && part[0] == 'v' && isDigit(part[1]) {
		return after
	}
	return rest
}

// majorPart returns the beginning of a path of Discord's API that ends with the major
// parameter, by which buckets are told apart: /channels/123. It is "" if there is none.
// github.com/discord/discord-api-docs, "Rate limits".
func majorPart(path string) string {
	first, rest := cutPart(path)
	parts := 0
	switch first {
	case "channels", "guilds":
		parts = 1
	case "webhooks":
		parts = 2 // with the token
	}
	if parts == 0 || rest == "" {
		return ""
	}
	for ; parts > 0; parts-- {
		_, rest = cutPart(rest)
	}
	return path[:len(path)-len(rest)]
}

// gitHubResource returns which of GitHub's resources a request draws on: docs.github.com,
// "REST API endpoints for rate limits".
func gitHubResource(method, path string) string {
	path = strings.TrimPrefix(path, "/api") // of an Enterprise Server
	path = strings.TrimPrefix(path, "/v3")
	first, rest := cutPart(path)
	switch {
	case first == "graphql":
		return "graphql"
	case first == "search" && rest == "/code":
		return "code_search"
	case first == "search":
		return "search"
	case first == "scim":
		return "scim"
	case first == "app-manifests":
		return "integration_manifest"
	case strings.HasSuffix(path, "/dependency-graph/snapshots"):
		return "dependency_snapshots"
	case strings.HasSuffix(path, "/dependency-graph/sbom"):
		return "dependency_sbom"
	case method == http.MethodPost && strings.HasSuffix(path, "/code-scanning/sarifs"):
		return "code_scanning_upload"
	case method == http.MethodPost && strings.HasSuffix(path, "/actions/runners/registration-token"):
		return "actions_runner_registration"
	case (first == "orgs" || first == "enterprises") && strings.HasSuffix(path, "/audit-log"):
		return "audit_log"
	}
	return "core"
}
