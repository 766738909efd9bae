package headway_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/headway-go/headway/limiter"
)

// Public reports of resets that clients misread, replayed here.

// auth0/go-auth0 501, octokit/plugin-throttling.js 599 and praw-dev/prawcore 197: a reset is cut to
// whole seconds, so that a client returns within the last second of the window and is
// refused. Here a window's end is never believed early, and at most 1 s late; one
// request goes first.
func TestReportResetCutToSeconds(t *testing.T) {
	for _, c := range []struct {
		name, url string
		end       time.Duration // of the window
		lines     func() []string
		want      string
	}{
		{"Reddit, 50 s", "https://oauth.reddit.com/", 50900 * time.Millisecond, func() []string {
			return []string{"X-Ratelimit-Used: 600", "X-Ratelimit-Remaining: 0.0", "X-Ratelimit-Reset: 50"}
		}, "A@0s B@50.9s-51s C@50.9s-51.001s"},
		{"Reddit, less than 1 s", "https://oauth.reddit.com/", 600 * time.Millisecond, func() []string {
			return []string{"X-Ratelimit-Used: 600", "X-Ratelimit-Remaining: 0.0", "X-Ratelimit-Reset: 0"}
		}, "A@0s B@600ms-1s C@600ms-1.001s"},
		{"X, an epoch", "https://api.x.com/2/tweets", 900300 * time.Millisecond, func() []string {
			return []string{
				"X-Rate-Limit-Limit: 25", "X-Rate-Limit-Remaining: 0",
				fmt.Sprint("X-Rate-Limit-Reset: ", time.Now().Add(900300*time.Millisecond).Unix()),
			}
		}, "A@0s B@15m0.3s-15m1s C@15m0.3s-15m1.001s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, limits(), func(s *scene) {
				s.inEpochs()
				s.base.answer = func(req *http.Request) (*http.Response, error) {
					if at := time.Since(s.base.epoch); at > 0 && at < c.end {
						s.Errorf("a request comes at %v, before the window's end at %v", at, c.end)
					}
					if req.Header.Get("Name") == "A" {
						return says(200, "", c.lines()...)(req)
					}
					return ok(req), nil
				}
				s.sendAll(ask{url: c.url}, "A", "B", "C")
				s.wantStartsIn(c.want)
			})
		})
	}
}

// DNSControl/dnscontrol 636 (DigitalOcean's reset is 25 min ago), withcoral/coral 89 (the client takes
// the epoch for seconds, and stalls), chaoss/grimoirelab-perceval 355 (it sleeps for a negative time,
// and fails) and auth0/go-auth0 501 (it does not sleep): a reset is over. After each success
// it holds the next request for no longer than the second by which resets are cut; a refusal
// with it has no time.
func TestReportResetThatIsOver(t *testing.T) {
	for _, c := range []struct {
		status, left int
		ago          time.Duration
		want         string
	}{
		{200, 0, 25 * time.Minute, "A@0s B@0s-1s C@0s-2s"},
		{200, 0, 2 * time.Second, "A@0s B@0s-1s C@0s-2s"},
		{429, 4321, 25 * time.Minute, "A@0s B@1s C@3s"},
		{429, 0, 25 * time.Minute, "A@0s B@1s C@3s"},
		{429, 0, 0, "A@0s B@1s C@3s"},
	} {
		t.Run(fmt.Sprint(c.status, " ", c.left, " left, ", c.ago, " ago"), func(t *testing.T) {
			play(t, limits(limiter.PerSecond(100)), func(s *scene) {
				s.inEpochs()
				answer := func(req *http.Request) (*http.Response, error) {
					reset := time.Now().Add(-c.ago).Unix()
					return says(c.status, "", "RateLimit-Limit: 5000", fmt.Sprint("RateLimit-Remaining: ", c.left), fmt.Sprint("RateLimit-Reset: ", reset))(req)
				}
				s.base.answer = inTurn(answer, answer)
				s.sendAll(ask{url: "https://api.digitalocean.com/v2/domains"}, "A", "B", "C")
				s.wantStartsIn(c.want)
			})
		})
	}
}

// abalabahaha/eris 191 (the client's clock is 40 s behind, and each bucket is held 40 s too long),
// basecamp/bc-api 84 and SinisterRectus/Discordia 211: a client compares an epoch with a clock that is
// not the server's. Here it is compared with the response's Date.
func TestReportClocksApart(t *testing.T) {
	for _, ahead := range []time.Duration{0, 40 * time.Second, -40 * time.Second, 3 * time.Hour, -3 * time.Hour} {
		t.Run(ahead.String(), func(t *testing.T) {
			play(t, limits(), func(s *scene) {
				s.inEpochs()
				s.base.answer = inTurn(func(req *http.Request) (*http.Response, error) {
					now := time.Now().Add(ahead)
					return says(200, "", "Date: "+now.UTC().Format(http.TimeFormat), "X-RateLimit-Limit: 10", "X-RateLimit-Remaining: 0",
						fmt.Sprint("X-RateLimit-Reset: ", now.Unix()+5))(req)
				})
				s.sendAll(ask{url: "https://tenant.auth0.test/api/v2/users"}, "A", "B")
				s.wantStartsIn("A@0s B@4.4s-6s") // 4.4 s to that epoch by the server's clock
			})
		})
	}
}

// discord/discord-api-docs 5621: Reset and Reset-After contradict each other, and a client that
// waits for Reset is half a second early. Here Reset-After holds, as Discord advises (1069).
func TestReportTwoResets(t *testing.T) {
	play(t, limits(), func(s *scene) {
		s.inEpochs()
		s.base.answer = inTurn(func(req *http.Request) (*http.Response, error) {
			now := time.Now()
			reset := float64(now.Add(1003*time.Millisecond).UnixMilli()) / 1000
			lines := append(discordHeaders("x", 5, 0, 1.513), fmt.Sprintf("X-RateLimit-Reset: %.3f", reset), "Date: "+now.UTC().Format(http.TimeFormat))
			return says(200, "", lines...)(req)
		})
		s.sendAll(ask{url: "https://discord.com/api/v10/channels/1/messages/2"}, "A", "B")
		s.wantStarts("A@0s B@1.513s")
	})
}
