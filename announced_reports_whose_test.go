package headway_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/headway-go/headway/limiter"
)

// Public reports of one budget's numbers that held the requests of another, replayed here.

// gitHubHeaders are GitHub's headers, with a reset so long from now.
func gitHubHeaders(resource string, limit, left int, reset time.Duration) func(*http.Request) (*http.Response, error) {
	return func(req *http.Request) (*http.Response, error) {
		return says(200, "",
			fmt.Sprint("X-RateLimit-Limit: ", limit), fmt.Sprint("X-RateLimit-Remaining: ", left), fmt.Sprint("X-RateLimit-Used: ", limit-left),
			fmt.Sprint("X-RateLimit-Reset: ", time.Now().Add(reset).Unix()), "X-RateLimit-Resource: "+resource, "X-GitHub-Request-Id: 1")(req)
	}
}

// PyGithub/PyGithub 1988 (the numbers of `search` overwrite those of `core`), octokit/octokit.rb 586
// and gabrielkoerich/orch 311 (a spent `graphql` stops all REST calls for up to an hour). Here
// a spent budget holds the requests that draw on it, and no others.
func TestReportGitHubResources(t *testing.T) {
	search, graphQL, core := "https://api.github.com/search/issues?q=x", "https://api.github.com/graphql", "https://api.github.com/repos/o/r"
	for _, c := range []struct {
		name, spent string
		answer      func(*http.Request) (*http.Response, error)
		others      []string
		held        string
	}{
		{"search", search, gitHubHeaders("search", 30, 0, 50*time.Second), []string{core, graphQL}, "A@0s B@0s C@0s D@49.4s-51s"},
		{"graphql", graphQL, gitHubHeaders("graphql", 5000, 0, 55*time.Minute), []string{core, search}, "A@0s B@0s C@0s D@54m59.4s-55m1s"},
		{"core", core, gitHubHeaders("core", 5000, 0, 55*time.Minute), []string{search, graphQL}, "A@0s B@0s C@0s D@54m59.4s-55m1s"},
	} {
		for _, seen := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, others seen %v", c.name, seen), func(t *testing.T) {
				play(t, limits(limiter.PerSecond(100)), func(s *scene) {
					s.inEpochs()
					resources := map[string]func(*http.Request) (*http.Response, error){
						"/search/issues": gitHubHeaders("search", 30, 29, 50*time.Second),
						"/graphql":       gitHubHeaders("graphql", 5000, 4990, 40*time.Minute),
						"/repos/o/r":     gitHubHeaders("core", 5000, 4321, 30*time.Minute),
					}
					s.base.answer = func(req *http.Request) (*http.Response, error) {
						if req.Header.Get("Name") == "A" {
							return c.answer(req)
						}
						return resources[req.URL.Path](req)
					}
					if seen {
						s.sendAll(ask{url: c.others[0]}, "-")
						s.sendAll(ask{url: c.others[1]}, "-")
						s.base.reset()
					}
					s.send("A", ask{url: c.spent})
					s.send("D", ask{url: c.spent})
					s.send("B", ask{url: c.others[0]})
					s.send("C", ask{url: c.others[1]})
					s.wantStartsIn(c.held)
				})
			})
		}
	}
}

// discord/discord-api-docs 1551 and discord-net/Discord.Net 1546 (one channel's bucket stands for
// those of all channels), restcord/restcord 122 and nyxx-discord/nyxx 301 (each message gets a
// bucket of its own, and is refused), discord/discord-api-docs 981 and 8073 (two methods share a
// bucket, which only the header shows). Here a spent bucket holds the requests of the routes
// that named it, to its channel.
func TestReportDiscordBuckets(t *testing.T) {
	const messages = "https://discord.com/api/v10/channels/%d/messages/%d"
	play(t, limits(limiter.PerSecond(50)), func(s *scene) {
		s.base.answer = reportResponses(map[string]reportResponse{
			"delete": {0, 200, discordHeaders("edit", 5, 1, 599.5)},
			"patch":  {0, 200, discordHeaders("edit", 5, 0, 599.5)},
			"post":   {0, 200, discordHeaders("post", 5, 4, 4.5)},
			"patch2": {0, 200, discordHeaders("edit", 5, 4, 4.5)},
		})
		s.send("delete", ask{method: "DELETE", url: fmt.Sprintf(messages, 1, 9)})
		s.send("patch", ask{method: "PATCH", url: fmt.Sprintf(messages, 1, 10)})
		s.send("held", ask{method: "PATCH", url: fmt.Sprintf(messages, 1, 11)})
		s.send("held", ask{method: "DELETE", url: fmt.Sprintf(messages, 1, 12)})
		s.send("patch2", ask{method: "PATCH", url: fmt.Sprintf(messages, 2, 20)})
		s.send("post", ask{method: "POST", url: "https://discord.com/api/v10/channels/1/messages"})
		s.send("free", ask{method: "DELETE", url: fmt.Sprintf(messages, 2, 21)})
		s.send("free", ask{method: "POST", url: "https://discord.com/api/v10/channels/3/messages"})
		s.send("free", ask{url: "https://discord.com/api/v10/guilds/1"})
		s.wantStarts("delete@0s patch@0s patch2@0s post@0s free@0s free@0s free@0s held@9m59.5s held@9m59.501s")
	})
}

// The buckets of two channels have one hash, and both are known.
func TestReportDiscordBucketsOfOneHash(t *testing.T) {
	play(t, limits(limiter.PerSecond(50)), func(s *scene) {
		s.base.answer = reportResponses(map[string]reportResponse{
			"3a": {0, 200, discordHeaders("invites", 5, 4, 60.5)},
			"4a": {0, 200, discordHeaders("invites", 5, 0, 60.5)},
			"3b": {0, 200, discordHeaders("invites", 5, 3, 60.5)},
		})
		for _, name := range []string{"3a", "4a", "4b", "3b"} {
			s.send(name, ask{method: "POST", url: fmt.Sprintf("https://discord.com/api/v10/channels/%c/invites", name[0])})
		}
		s.wantStarts("3a@0s 4a@0s 3b@0s 4b@1m0.5s")
	})
}

// xdevplatform/twitter-api-typescript-sdk 96: one endpoint allows one request a day, and all
// others go on. Here it holds its own requests only.
func TestReportXEndpoints(t *testing.T) {
	for _, host := range []string{"api.x.com", "api.twitter.com"} {
		t.Run(host, func(t *testing.T) {
			play(t, limits(limiter.PerSecond(50)), func(s *scene) {
				s.inEpochs()
				x := func(limit, left int, reset time.Duration) func(*http.Request) (*http.Response, error) {
					return func(req *http.Request) (*http.Response, error) {
						return says(200, "", fmt.Sprint("x-rate-limit-limit: ", limit), fmt.Sprint("x-rate-limit-remaining: ", left),
							fmt.Sprint("x-rate-limit-reset: ", time.Now().Add(reset).Unix()))(req)
					}
				}
				s.base.answer = func(req *http.Request) (*http.Response, error) {
					switch req.URL.Path {
					case "/2/users/1/tweets":
						return x(1, 0, 23*time.Hour)(req)
					case "/2/users/me":
						return x(25, 24, 23*time.Hour)(req)
					}
					return x(300, 299, 15*time.Minute)(req)
				}
				to := func(path string) ask { return ask{url: "https://" + host + path} }
				s.send("me", to("/2/users/me"))
				s.send("A", to("/2/users/1/tweets"))
				s.send("B", to("/2/users/1/tweets"))
				s.send("me", to("/2/users/me"))
				s.send("new", to("/2/tweets/search/recent"))
				s.send("post", ask{method: "POST", url: "https://" + host + "/2/tweets"})
				s.wantStartsIn("me@0s A@0s me@0s new@0s post@0s B@22h59m59.4s-23h0m1s")
			})
		})
	}
}

// The same where a refusal announces that a budget is spent: discord/discord-api-docs 108 (libraries
// stop all requests at one bucket's 429), while a global one concerns all, and the second
// request of xdevplatform/twitter-api-typescript-sdk 96.
func TestReportRefusalsOfOneBudget(t *testing.T) {
	type answer = func(*http.Request) (*http.Response, error)
	refused := func(status int, text string, headers answer, lines ...string) answer {
		return func(req *http.Request) (*http.Response, error) {
			first, err := headers(req)
			if err != nil {
				return nil, err
			}
			resp, err := says(status, text, append(lines, "Content-Type: application/json")...)(req)
			for name, v := range first.Header {
				resp.Header[name] = v
			}
			return resp, err
		}
	}
	x := func(req *http.Request) (*http.Response, error) {
		return says(200, "", "x-rate-limit-limit: 1", "x-rate-limit-remaining: 0", fmt.Sprint("x-rate-limit-reset: ", time.Now().Add(23*time.Hour).Unix()))(req)
	}
	for _, c := range []struct {
		name         string
		answer       answer
		spent, other ask
		want         string
	}{
		{
			"Discord's bucket", refused(429, `{"retry_after":30.5}`, says(200, "", discordHeaders("edit", 5, 0, 30.5)...), "Retry-After: 31", "X-RateLimit-Scope: user"),
			ask{method: "PATCH", url: "https://discord.com/api/v10/channels/1/messages/10"}, ask{method: "PATCH", url: "https://discord.com/api/v10/channels/2/messages/20"},
			"A@0s C@0s B@30.5s-31s",
		},
		{
			"Discord's global limit", says(429, `{"global":true}`, "X-RateLimit-Global: true", "Retry-After: 31", "Content-Type: application/json"),
			ask{method: "PATCH", url: "https://discord.com/api/v10/channels/1/messages/10"}, ask{method: "PATCH", url: "https://discord.com/api/v10/channels/2/messages/20"},
			"A@0s B@31s C@31s-32s",
		},
		{
			"X's endpoint", refused(429, `{"title":"Too Many Requests"}`, x),
			ask{url: "https://api.x.com/2/users/1/tweets"}, ask{url: "https://api.x.com/2/users/me"},
			"A@0s C@0s B@22h59m59.4s-23h0m1s",
		},
		{
			"GitHub's search", refused(403, `{"message":"API rate limit exceeded for user ID 1."}`, gitHubHeaders("search", 30, 0, 50*time.Second)),
			ask{url: "https://api.github.com/search/issues?q=x"}, ask{url: "https://api.github.com/repos/o/r"},
			"A@0s C@0s B@49.4s-51s",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, limits(limiter.PerSecond(50)), func(s *scene) {
				s.inEpochs()
				s.base.answer = inTurn(c.answer)
				s.send("A", c.spent)
				s.send("B", c.spent)
				s.send("C", c.other)
				s.wantStartsIn(c.want)
			})
		})
	}
}
