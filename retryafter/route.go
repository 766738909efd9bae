package retryafter

import (
	"net/http"
	"strings"
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
