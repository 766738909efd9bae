package headway_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/retryafter"
)

// A github is GitHub's API: each resource has a budget of its own, which lasts an hour.
type github struct {
	mu      sync.Mutex // guards following fields
	left    map[string]int
	refused int
}

// refill makes so much left of each resource.
func (g *github) refill(left int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for resource := range g.left {
		g.left[resource] = left
	}
}

// wantNoneRefused checks that all requests so far were admitted.
func (g *github) wantNoneRefused(s *scene) {
	s.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refused > 0 {
		s.Errorf("%d were refused", g.refused)
	}
}

func (g *github) answer(req *http.Request) (*http.Response, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	resource := "core"
	switch path := strings.TrimPrefix(req.URL.Path, "/api/v3"); {
	case strings.HasPrefix(path, "/search/"):
		resource = "search"
	case path == "/graphql":
		resource = "graphql"
	}
	status := 200
	if g.left[resource] == 0 {
		g.refused++
		status = 403
	}
	g.left[resource] = max(0, g.left[resource]-1)
	return says(status, "", "X-RateLimit-Limit: 30", fmt.Sprint("X-RateLimit-Remaining: ", g.left[resource]), fmt.Sprint("X-RateLimit-Reset: ", endOfHour()),
		"X-RateLimit-Resource: "+resource, "X-RateLimit-Used: 1", "X-GitHub-Request-Id: 1")(req)
}

// endOfHour is 55 minutes after a bubble begins.
func endOfHour() int64 { return time.Date(2000, 1, 1, 0, 55, 0, 0, time.UTC).Unix() }

// get asks for a URL.
func get(url string) ask { return ask{url: url} }

// to asks for a URL by another method than GET.
func to(method, url string) ask { return ask{method: method, url: url} }

// What is left of GitHub's search or graphql says nothing about core.
func TestResourceGitHub(t *testing.T) {
	const api = "https://api.github.com"
	for _, resource := range []string{"/search/code", "/graphql"} {
		g := &github{left: map[string]int{"core": 100, "search": 1, "graphql": 1}}
		play(t, limits(limiter.PerSecond(100)), func(s *scene) {
			s.base.answer = g.answer
			s.send("A", get(api+resource)) // a 200 that says that nothing is left
			s.send("B", get(api+resource))
			s.send("C", get(api+"/user"))
			s.send("D", get(api+"/user"))
			if got := waitOf(s, api+resource); got < 55*time.Minute+time.Second || got > 55*time.Minute+2*time.Second { // B is in line
				s.Errorf("Delay of %s is %v", resource, got)
			}
			if got := waitOf(s, api+"/user"); got != 0 {
				s.Errorf("Delay of core is %v", got)
			}
			l := s.Snapshot()[0].Learned
			if i := slices.IndexFunc(l, func(l headway.LearnedStatus) bool { return l.Resource == "core" }); len(l) != 2 || i < 0 || l[i].Remaining != 98 {
				s.Errorf("got %+v, want core and another", l)
			}
			s.until(54 * time.Minute)
			g.refill(30)
			s.wantStarts("A@0s C@0s D@0s B@55m1s")
		})
	}
}

// waitOf returns what Delay says of a GET.
func waitOf(s *scene, url string) time.Duration {
	s.Helper()
	d, err := s.Delay(get(url).request("delay"))
	if err != nil {
		s.Error(err)
	}
	return d
}

// A route that has not been seen is held by no resource, and the first response on it is what
// it draws on from then on: search has more than one path.
func TestResourceRouteNotSeenYet(t *testing.T) {
	const api = "https://ghes.test/api/v3" // an Enterprise Server, which no table knows
	g := &github{left: map[string]int{"core": 100, "search": 1}}
	policy := []headway.Policy{{Hosts: []string{"*"}, Rules: []headway.Rule{
		{Name: "issues", Limit: limiter.PerSecond(100), Path: "/api/v3/search/issues"},
		{Name: "all", Limit: limiter.PerSecond(100)},
	}}}
	play(t, policy, func(s *scene) {
		s.base.answer = g.answer
		s.send("A", get(api+"/search/issues"))
		s.send("B", get(api+"/user"))
		s.send("C", get(api+"/search/issues")) // held
		s.until(time.Minute)
		g.wantNoneRefused(s)
		s.until(54 * time.Minute)
		g.refill(30)
		s.wantStarts("A@0s B@0s C@55m1s")
	})
	// A host may not say at first that it has resources.
	play(t, limits(limiter.PerSecond(100)), func(s *scene) {
		of := func(left int) func(*http.Request) (*http.Response, error) {
			return says(200, "", "X-RateLimit-Limit: 30", fmt.Sprint("X-RateLimit-Remaining: ", left), "X-RateLimit-Reset: 60.5", "X-RateLimit-Resource: jobs")
		}
		s.base.answer = inTurn(says(200, ""), says(200, ""), of(0))
		s.sendAll(get("https://api.test/home"), "A", "B")
		s.sendAll(get("https://api.test/jobs"), "C", "D")
		s.send("E", get("https://api.test/home"))
		s.wantStarts("A@0s B@0s C@0s E@0s D@1m0.5s")
	})
	// By method and path, where the dialect has no word for it: each is learned by itself.
	play(t, limits(limiter.PerSecond(100)), func(s *scene) {
		var left atomic.Int64
		s.base.answer = func(req *http.Request) (*http.Response, error) {
			return says(200, "", "X-RateLimit-Limit: 30", fmt.Sprint("X-RateLimit-Remaining: ", left.Load()), "X-RateLimit-Reset: 600", "X-RateLimit-Resource: reports")(req)
		}
		s.send("A", get("https://api.test/reports/1"))
		s.send("B", get("https://api.test/reports/2")) // the same route
		s.send("C", get("https://api.test/other"))     // none has been seen to draw on it
		if d := waitOf(s, "https://api.test/other"); d < 10*time.Minute {
			s.Errorf("Delay is %v, though a response has named what it draws on", d)
		}
		s.send("E", to("DELETE", "https://api.test/reports/1"))
		s.until(9 * time.Minute)
		left.Store(30)
		s.wantStarts("A@0s C@0s E@0s B@10m1s")
	})
}

// Requests in line are held too, once the first of them has shown what they draw on.
func TestResourceOfThoseInLine(t *testing.T) {
	g := &github{left: map[string]int{"core": 100, "search": 1}}
	play(t, limits(limiter.PerSecond(1)), func(s *scene) {
		s.base.answer, s.base.latency = g.answer, 10*time.Millisecond
		s.sendAll(get("https://api.github.com/search/code"), "A", "B", "C")
		s.send("D", get("https://api.github.com/user"))
		s.until(54 * time.Minute)
		g.wantNoneRefused(s)
		g.refill(30)
		s.wantStarts("A@0s D@1s B@55m1s C@55m2s")
	})
}

// A route may draw on another resource than before: the newest response decides.
func TestResourceOfARouteChanges(t *testing.T) {
	play(t, limits(limiter.PerSecond(100)), func(s *scene) {
		of := func(resource string, left int) func(*http.Request) (*http.Response, error) {
			return says(200, "", "X-RateLimit-Limit: 30", fmt.Sprint("X-RateLimit-Remaining: ", left), "X-RateLimit-Reset: 60", "X-RateLimit-Resource: "+resource)
		}
		s.base.answer = inTurn(of("a", 3), of("b", 0), of("a", 2), of("a", 1))
		s.send("A", get("https://api.test/x"))
		s.send("B", get("https://api.test/x")) // from now on it draws on b
		s.send("C", get("https://api.test/y")) // on a
		s.send("D", get("https://api.test/x"))
		s.send("E", get("https://api.test/y"))
		s.wantStarts("A@0s B@0s C@0s E@0s D@1m1s")
	})
}

// A bucket of Discord is told apart by the channel: one channel's edits say nothing about
// posts, nor about the edits of another channel.
func TestResourceDiscord(t *testing.T) {
	const api = "https://discord.com/api/v10/channels/"
	play(t, limits(limiter.PerSecond(100)), func(s *scene) {
		s.base.answer = func(req *http.Request) (*http.Response, error) {
			bucket, left := "posts", 4
			if req.Method == "PATCH" {
				bucket, left = "edits", 0
			}
			if strings.Contains(req.URL.Path, "/channels/2/") {
				left = 4
			}
			return says(200, "", "X-RateLimit-Limit: 5", fmt.Sprint("X-RateLimit-Remaining: ", left), "X-RateLimit-Reset-After: 600.5", "X-RateLimit-Bucket: "+bucket)(req)
		}
		s.send("A", to("PATCH", api+"1/messages/11"))
		s.send("B", to("PATCH", api+"1/messages/12"))
		s.send("C", to("POST", api+"1/messages"))
		s.send("D", to("POST", api+"2/messages"))
		s.send("E", to("PATCH", api+"2/messages/21"))
		s.send("F", to("PATCH", api+"2/messages/22")) // the same bucket, of another channel
		s.wantStarts("A@0s C@0s D@0s E@0s F@0s B@10m0.5s")
	})
}

// X limits each endpoint, and does not name it.
func TestResourceX(t *testing.T) {
	const api = "https://api.x.com/2"
	play(t, limits(limiter.PerSecond(100)), func(s *scene) {
		s.base.answer = func(req *http.Request) (*http.Response, error) {
			left := 24
			if req.Method == "POST" {
				left = 0
			}
			day := time.Date(2000, 1, 2, 0, 0, 0, 0, time.UTC).Unix()
			return says(200, "", "X-Rate-Limit-Limit: 25", fmt.Sprint("X-Rate-Limit-Remaining: ", left), fmt.Sprint("X-Rate-Limit-Reset: ", day))(req)
		}
		s.send("A", to("POST", api+"/tweets"))
		s.send("B", to("POST", api+"/tweets"))
		s.send("C", get(api+"/users/12/tweets"))
		s.send("D", get(api+"/users/13/tweets"))
		s.send("E", to("DELETE", api+"/tweets/1"))
		s.wantStarts("A@0s C@0s D@0s E@0s B@24h0m0s")
	})
}

// A refusal that names what it is about pauses only the requests that draw on that, of that
// identity.
func TestResourcePause(t *testing.T) {
	refuses := func(lines ...string) func(*http.Request) (*http.Response, error) {
		return func(req *http.Request) (*http.Response, error) {
			if !strings.HasPrefix(req.Header.Get("Name"), "A") {
				return ok(req), nil
			}
			return says(429, "", lines...)(req)
		}
	}
	inHour := fmt.Sprint("X-RateLimit-Reset: ", endOfHour())
	for _, c := range []struct {
		name       string
		says       []string
		of, beside ask
		want       string // a second later where a limit ends in whole seconds
		dialect    string
		resource   string
	}{
		{"slack", []string{"Retry-After: 30"}, to("POST", "https://slack.com/api/chat.postMessage"), to("POST", "https://slack.com/api/users.list"), "30s", "slack", "chat.postMessage"},
		{"x", []string{"X-Rate-Limit-Limit: 25", "X-Rate-Limit-Remaining: 0", "X-Rate-Limit-Reset: 300"}, get("https://api.x.com/2/users/1/likes"), get("https://api.x.com/2/users/1/tweets"), "5m1s", "twitter", "GET /2/users/*/likes"},
		{"discord", []string{"Retry-After: 3.5", "X-RateLimit-Bucket: abc", "X-RateLimit-Scope: shared", "X-RateLimit-Remaining: 3", "X-RateLimit-Reset-After: 1.0"}, get("https://discord.com/api/channels/1/messages"), get("https://discord.com/api/channels/2/messages"), "3.5s", "discord", "abc"},
		{"github", []string{"X-RateLimit-Limit: 30", "X-RateLimit-Remaining: 0", inHour, "X-RateLimit-Resource: search", "X-RateLimit-Used: 30"}, get("https://api.github.com/search/code"), get("https://api.github.com/user"), "55m1s", "github", "search"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var events []headway.Event
			cfg := headway.Config{Policies: tenants(), Observer: collect(&events)}
			playConfig(t, cfg, func(s *scene) {
				s.base.answer = refuses(c.says...)
				as := func(a ask, tenant string) ask {
					a.call.Key = tenant
					return a
				}
				s.send("A", as(c.of, "a"))
				p := s.Snapshot()[0].Pauses
				if len(p) != 1 || p[0].Resource != c.resource || p[0].KeyDigest == "" || p[0].Rule != "" || p[0].Source != c.dialect || p[0].Left.String() != c.want {
					s.Errorf("got pauses %+v", p)
				}
				s.send("B", as(c.beside, "a"))
				s.send("C", as(c.of, "b"))
				s.send("D", as(c.of, "a"))
				s.wantStarts("A@0s B@0s C@0s D@" + c.want)
			})
			i := slices.IndexFunc(events, func(e headway.Event) bool { return e.Kind == headway.EventPause })
			if i < 0 || events[i].Resource != c.resource || events[i].KeyDigest == "" {
				t.Errorf("got events %+v", events)
			}
		})
	}
}

// What is about no resource is about all: Discord's limit of everything, and a limit of
// GitHub's that only the body tells from that of a resource.
func TestResourceOfAll(t *testing.T) {
	play(t, limits(limiter.PerSecond(100)), func(s *scene) {
		s.base.answer = inTurn(says(429, "", "Retry-After: 3.5", "X-RateLimit-Global: true", "X-RateLimit-Scope: global"))
		s.send("A", get("https://discord.com/api/channels/1/messages"))
		s.send("B", get("https://discord.com/api/channels/2/messages"))
		s.wantStarts("A@0s B@3.5s")
	})
	play(t, limits(limiter.PerSecond(100)), func(s *scene) {
		s.base.answer = inTurn(says(403, `{"message":"You have exceeded a secondary rate limit."}`, "Content-Type: application/json", "Retry-After: 90",
			"X-RateLimit-Limit: 30", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 0", "X-RateLimit-Resource: search", "X-RateLimit-Used: 30"))
		s.send("A", get("https://api.github.com/search/code"))
		s.send("B", get("https://api.github.com/user"))
		s.wantStarts("A@0s B@1m30s")
	})
}

// Where the server names no endpoint, a rule's path is what one endpoint is.
func TestResourceOfARulesPath(t *testing.T) {
	policy := []headway.Policy{{Hosts: []string{"*"}, Rules: []headway.Rule{
		{Name: "names", Limit: limiter.PerSecond(100), Path: "/2/users/{name}/{what}"},
	}}}
	play(t, policy, func(s *scene) {
		s.base.answer = says(200, "", "X-Rate-Limit-Limit: 25", "X-Rate-Limit-Remaining: 0", "X-Rate-Limit-Reset: 60")
		s.send("A", get("https://api.x.com/2/users/jack/likes"))
		s.send("B", get("https://api.x.com/2/users/jill/tweets"))
		s.send("C", get("https://api.x.com/2/lists/mine"))
		s.wantStarts("A@0s C@0s B@1m1s")
	})
}

// A rule with the label of a resource is that limit.
func TestResourceAnnounced(t *testing.T) {
	g := &github{left: map[string]int{"core": 100, "search": 2}}
	policy := []headway.Policy{{Hosts: []string{"*"}, Rules: []headway.Rule{
		{Name: "finding", Announced: "search", Limit: limiter.PerMinute(30), Path: "/search/"},
		{Name: "search", Limit: limiter.PerSecond(100)}, // a name is no label
	}}}
	play(t, policy, func(s *scene) {
		s.base.answer = g.answer
		s.send("A", get("https://api.github.com/search/code"))
		s.send("B", get("https://api.github.com/user"))
		for _, l := range s.Snapshot()[0].Learned {
			if l.Rule == "finding" && l.Resource == "" && l.Remaining == 1 || l.Rule == "learned core" && l.Resource == "core" {
				continue
			}
			s.Errorf("got %+v", l)
		}
		s.send("C", get("https://api.github.com/search/issues"))
		s.send("D", get("https://api.github.com/search/issues"))
		s.until(54 * time.Minute)
		g.refill(30)
		s.wantStarts("A@0s B@0s C@0s D@55m1s")
	})
}

// A dialect of one's own may name resources and routes. A resource's limit is not that of a rule
// with the same period, which counts what is sent to others too.
func TestResourceOfAnOwnDialect(t *testing.T) {
	policy := limits(limiter.PerMinute(100))
	policy[0].Server.Dialects = []retryafter.Dialect{lanes{}}
	play(t, policy, func(s *scene) {
		s.base.answer = func(req *http.Request) (*http.Response, error) {
			if req.URL.Query().Get("lane") == "slow" {
				return says(200, "", "Lane: slow")(req)
			}
			return ok(req), nil
		}
		s.sendAll(get("https://api.test/?lane=slow"), "A", "B")
		s.send("C", get("https://api.test/?lane=fast"))
		s.wantStarts("A@0s C@0s B@1m0s")
	})
}

// lanes says that nothing is left for a minute of the lane in the header.
type lanes struct{}

func (lanes) Name() string { return "lanes" }

func (lanes) Route(req *http.Request) string { return req.URL.Query().Get("lane") }

func (lanes) Read(_ int, h http.Header, _ time.Time) (s retryafter.Signal, ok bool) {
	lane := h.Get("Lane")
	if lane != "" {
		s.Add(retryafter.LimitSignal{Resource: lane, Limit: 5, HasLimit: true, HasRemaining: true, Reset: time.Minute, HasReset: true, Window: time.Minute, HasWindow: true})
	}
	return s, lane != ""
}

// Resources are remembered as keys are: no more than there is room for, and those that matter
// are not forgotten for others.
func TestResourcesAreBounded(t *testing.T) {
	of := func(req *http.Request) (*http.Response, error) {
		left, reset := 5, 600
		if req.URL.Path == "/spent" {
			left, reset = 0, 86400
		}
		return says(200, "", "X-RateLimit-Limit: 30", fmt.Sprint("X-RateLimit-Remaining: ", left), fmt.Sprint("X-RateLimit-Reset: ", reset), "X-RateLimit-Resource: "+req.URL.Path)(req)
	}
	cfg := headway.Config{Policies: limits(limiter.PerSecond(1e6)), MaxHosts: 20}
	playConfig(t, cfg, func(s *scene) {
		s.base.answer = of
		s.send("spent", get("https://api.test/spent"))
		for i := range 60 {
			s.send("x", get(fmt.Sprintf("https://api.test/path-%c%c", 'a'+i/10, 'a'+i%10)))
			time.Sleep(20 * time.Minute) // what is left of that has come back
		}
		if d := waitOf(s, "https://api.test/spent"); d != 4*time.Hour {
			s.Errorf("Delay is %v, want the rest of a day", d)
		}
		resources := map[string]bool{}
		for _, l := range s.Snapshot()[0].Learned {
			resources[l.Resource] = true
		}
		if len(resources) > 19 || !resources["/spent"] {
			s.Errorf("%d resources are remembered: %v", len(resources), resources)
		}
	})
	// Where there is no room, what is announced of a resource is the identity's.
	cfg.MaxHosts = 1
	playConfig(t, cfg, func(s *scene) {
		s.base.answer = of
		s.send("A", get("https://api.test/spent"))
		s.send("B", get("https://api.test/other"))
		s.wantStarts("A@0s B@24h0m0s")
	})
}

// Many requests to four resources, each with a window of its own at the server, are never
// refused, and what one has left holds no request to another.
func TestResourcesSideBySide(t *testing.T) {
	type window struct{ number, used int }
	play(t, limits(limiter.PerSecond(3)), func(s *scene) {
		windows, refused := map[string]*window{}, 0
		s.base.latency = time.Second
		s.base.answer = func(req *http.Request) (*http.Response, error) {
			s.base.mu.Lock()
			defer s.base.mu.Unlock()
			limit := 10
			if req.URL.Path == "/a" {
				limit = 100
			}
			w := windows[req.URL.Path]
			if w == nil {
				w = new(window)
				windows[req.URL.Path] = w
			}
			if n := int(time.Since(s.base.epoch) / time.Minute); n != w.number {
				*w = window{number: n}
			}
			status := 200
			if w.used++; w.used > limit {
				status = 429
				refused++
			}
			reset := time.Duration(w.number+1)*time.Minute - time.Since(s.base.epoch)
			return says(status, "", fmt.Sprint("X-RateLimit-Limit: ", limit), fmt.Sprint("X-RateLimit-Remaining: ", max(0, limit-w.used)),
				fmt.Sprint("X-RateLimit-Reset: ", reset.Seconds()), "X-RateLimit-Resource: "+req.URL.Path)(req)
		}
		var first []*trip // of the first minute, to the resource that has enough left
		for i := range 240 {
			p := s.send("x", get(fmt.Sprintf("https://api.test/%c", 'a'+i%4)))
			if i%4 == 0 && i < 110 {
				first = append(first, p)
			}
			time.Sleep(500 * time.Millisecond)
		}
		s.all.Wait()
		if refused > 0 {
			s.Errorf("%d requests were refused", refused)
		}
		for i, p := range first {
			if p.after > 2*time.Second {
				s.Errorf("request %d to a resource with enough left took %v", i, p.after)
			}
		}
		wantIdle(s.T, s.Transport)
	})
}
