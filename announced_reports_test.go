package headway_test

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
)

// Public reports of clients that made the wrong use of what a server announced as left,
// replayed here. Where a reset is in whole seconds, the window may end up to a second later.

// inEpochs moves a scene to a time at which Unix times have ten digits, 600 ms after a
// whole second, and begins its log there.
func (s *scene) inEpochs() {
	time.Sleep(time.Until(time.Date(2026, 3, 1, 12, 0, 0, 600e6, time.UTC)))
	s.base.epoch = time.Now()
}

// wantStartsIn waits until no request waits, and checks when the requests of each name
// started: "B@50s" is an instant, "B@50s-51s" any instant from the one to the other.
func (s *scene) wantStartsIn(want string) {
	s.Helper()
	s.all.Wait()
	got := s.base.starts()
	due := map[string][]string{}
	for start := range strings.FieldsSeq(want) {
		name, span, _ := strings.Cut(start, "@")
		due[name] = append(due[name], span)
	}
	wrong := len(got) != len(strings.Fields(want))
	for _, start := range got {
		name, at, _ := strings.Cut(start, "@")
		if len(due[name]) == 0 {
			wrong = true
			break
		}
		from, to, isSpan := strings.Cut(due[name][0], "-")
		if !isSpan {
			to = from
		}
		due[name] = due[name][1:]
		d := reportDuration(at)
		wrong = wrong || d < reportDuration(from) || d > reportDuration(to)
	}
	if wrong {
		s.Errorf("got starts %s\nwant       %s", strings.Join(got, " "), want)
	}
}

func reportDuration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return d
}

// A reportResponse is the response to the request of one name.
type reportResponse struct {
	after  time.Duration
	status int // zero: 200
	lines  []string
}

// reportResponses responds to each request by its name, and with 200 at once to those
// whose name it does not have.
func reportResponses(by map[string]reportResponse) func(*http.Request) (*http.Response, error) {
	return func(req *http.Request) (*http.Response, error) {
		r := by[req.Header.Get("Name")]
		time.Sleep(r.after)
		return says(max(200, r.status), "", r.lines...)(req)
	}
}

// discordHeaders are those of a bucket of Discord.
func discordHeaders(bucket string, limit, left int, resetAfter float64) []string {
	return []string{
		"X-RateLimit-Bucket: " + bucket, fmt.Sprint("X-RateLimit-Limit: ", limit), fmt.Sprint("X-RateLimit-Remaining: ", left),
		fmt.Sprintf("X-RateLimit-Reset-After: %.3f", resetAfter),
	}
}

// DSharpPlus/DSharpPlus 2248 and HabitRPG/habitica 12797: responses come in the inverse order of
// their requests, the client takes the oldest number for the newest, and a bucket that is
// nearly spent looks full. Here the number of the request that started last holds: 2.
func TestReportNumbersOutOfOrder(t *testing.T) {
	play(t, limits(), func(s *scene) {
		s.base.answer = reportResponses(map[string]reportResponse{
			"A": {3000 * time.Millisecond, 200, discordHeaders("x", 5, 4, 27.25)},
			"B": {1900 * time.Millisecond, 200, discordHeaders("x", 5, 3, 28.25)},
			"C": {800 * time.Millisecond, 200, discordHeaders("x", 5, 2, 29.25)},
			"D": {0, 200, discordHeaders("x", 5, 1, 26.25)},
			"E": {0, 200, discordHeaders("x", 5, 0, 26.25)},
		})
		a := ask{method: "POST", url: "https://discord.com/api/v10/channels/1/messages"}
		for i, name := range []string{"A", "B", "C"} {
			s.until(time.Duration(i) * 100 * time.Millisecond)
			s.send(name, a)
		}
		s.until(4 * time.Second)
		s.sendAll(a, "D", "E", "F")
		s.wantStarts("A@0s B@100ms C@200ms D@4s E@4s F@30.25s")
	})
}

// toolbox-team/reddit-moderator-toolbox 515: of two requests around a reset, the response to the
// one before it comes last, and the client takes its number for that of the new window.
// Here 599 are left.
func TestReportNumbersAcrossAReset(t *testing.T) {
	play(t, limits(), func(s *scene) {
		reddit := func(used, left, reset int) []string {
			return []string{fmt.Sprint("X-Ratelimit-Used: ", used), fmt.Sprintf("X-Ratelimit-Remaining: %d.0", left), fmt.Sprint("X-Ratelimit-Reset: ", reset)}
		}
		s.base.answer = reportResponses(map[string]reportResponse{
			"A": {300 * time.Millisecond, 200, reddit(600, 0, 1)},
			"B": {100 * time.Millisecond, 200, reddit(1, 599, 600)},
		})
		a := ask{url: "https://oauth.reddit.com/api/info"}
		s.send("A", a)
		s.until(100 * time.Millisecond)
		s.send("B", a)
		s.until(400 * time.Millisecond)
		s.sendAll(a, "C", "D")
		s.wantStarts("A@0s B@100ms C@400ms D@400ms")
	})
}

// fightmegg/riot-rate-limiter 250 and aj-r/RiotNet 14: the client takes a number for what may still
// start, though it does not count requests that are on their way. Here 9 are left after the
// first of five, and so 5 more start.
func TestReportRequestsInFlight(t *testing.T) {
	play(t, limits(), func(s *scene) {
		var mu sync.Mutex
		used := 0 // in the first minute
		s.base.answer = func(req *http.Request) (*http.Response, error) {
			at := time.Since(s.base.epoch)
			if at >= time.Minute {
				return ok(req), nil
			}
			mu.Lock()
			used++
			left := 10 - used
			mu.Unlock()
			if left < 0 {
				s.Errorf("one too many at %v", at)
			}
			switch name := req.Header.Get("Name"); {
			case name == "A0":
				time.Sleep(time.Second)
			case name[0] == 'A':
				time.Sleep(5 * time.Second)
			}
			reset := int((time.Minute - time.Since(s.base.epoch)) / time.Second)
			return says(200, "", `RateLimit-Policy: "app";q=10;w=60`, fmt.Sprintf(`RateLimit: "app";r=%d;t=%d`, left, reset))(req)
		}
		s.sendAll(ask{}, names("A", 5)...)
		s.until(2 * time.Second)
		s.sendAll(ask{}, names("B", 10)...)
		s.wantStartsIn("A0@0s A1@0s A2@0s A3@0s A4@0s B0@2s B1@2s B2@2s B3@2s B4@2s " +
			"B5@1m0s-1m2s B6@1m0s-1m2s B7@1m0s-1m2s B8@1m0s-1m2s B9@1m0s-1m2s")
	})
}

// sourcegraph/sourcegraph-public-snapshot 2781, plhery/node-twitter-api-v2 412 and
// chaoss/grimoirelab-perceval 356: other programs spend the same budget. Here as much of ours is
// held back as they have spent, for as long as it counts.
func TestReportOthersSpendTheSame(t *testing.T) {
	play(t, limits(limiter.PerMinute(100)), func(s *scene) {
		ours, others := 0, 50 // in a rolling minute; the others came at its beginning
		s.base.answer = oneByOne(func(req *http.Request) (*http.Response, error) {
			at := time.Since(s.base.epoch)
			if at >= time.Minute && others > 0 {
				ours, others = 0, 0
			}
			ours++
			left := 100 - ours - others
			if left < 0 {
				s.Errorf("one too many at %v", at)
			}
			return says(200, "", `RateLimit-Policy: "hits";q=100;w=60`, fmt.Sprintf(`RateLimit: "hits";r=%d;t=60`, max(0, left)))(req)
		})
		all := names("A", 61)
		s.sendAll(ask{}, all...)
		s.wantStarts(strings.Join(all[:50], "@0s ") + "@0s " + strings.Join(all[50:], "@1m0s ") + "@1m0s")
	})
}

// "GPT-4 API - Confusing Ratelimit Headers" (community.openai.com 104084): of 200 requests a minute
// 419 are left, then 199, then 362, with resets of one or two minutes. Here no more than
// the limit is ever left: such numbers let no more through than our own limit, nor less.
func TestReportMoreLeftThanTheLimit(t *testing.T) {
	play(t, limits(limiter.PerMinute(200)), func(s *scene) {
		n := 0
		s.base.answer = oneByOne(func(req *http.Request) (*http.Response, error) {
			l := [][2]string{{"419", "125.82s"}, {"199", "59.70s"}, {"362", "108.64s"}}[n%3]
			n++
			return says(200, "", "x-ratelimit-limit-requests: 200", "x-ratelimit-remaining-requests: "+l[0], "x-ratelimit-reset-requests: "+l[1])(req)
		})
		all, want := names("A", 600), ""
		for i, name := range all {
			want += fmt.Sprintf(" %s@%v", name, time.Duration(i/200)*time.Minute)
		}
		s.sendAll(ask{method: "POST", url: "https://api.openai.com/v1/chat/completions"}, all...)
		s.wantStarts(want)
	})
}

// agentgateway/agentgateway 3328 (the numbers are of a limit that let the request pass: the SDK
// retries every 12 s for an hour), elizaOS/agent-twitter-client 68 (800 are left: it retries
// immediately, 800 times) and digitalocean/terraform-provider-digitalocean 473: a refusal
// announces that some are left. Here it has no time, and the pause grows.
func TestReportRefusedThoughSomeAreLeft(t *testing.T) {
	for _, lines := range [][]string{
		{"X-RateLimit-Limit: 60", "X-RateLimit-Remaining: 56", "X-RateLimit-Reset: 12"},
		{"X-Rate-Limit-Limit: 900", "X-Rate-Limit-Remaining: 800", "X-Rate-Limit-Reset: 840"},
		{"RateLimit-Limit: 5000", "RateLimit-Remaining: 4321", "RateLimit-Reset: 3000"},
		{`RateLimit-Policy: "user";q=60;w=60`, `RateLimit: "user";r=56;t=12`},
	} {
		t.Run(lines[len(lines)-1], func(t *testing.T) {
			play(t, limits(limiter.PerSecond(100)), func(s *scene) {
				s.base.answer = ten(says(429, "", lines...))
				s.sendAll(ask{}, names("A", 13)...)
				s.wantStarts(grown)
			})
		})
	}
}

// hubtty/hubtty 107 (the client gives up) and Metron-Project/mokkari 167 (it must send a request, or no
// new number ever comes): nothing is left, and the response has no reset. Here one request
// goes within a minute, and the others wait for its number.
func TestReportNothingLeftAndNoReset(t *testing.T) {
	play(t, limits(), func(s *scene) {
		s.base.answer = reportResponses(map[string]reportResponse{
			"A": {500 * time.Millisecond, 200, []string{"X-RateLimit-Limit: 20", "X-RateLimit-Remaining: 0"}},
			"B": {500 * time.Millisecond, 200, []string{"X-RateLimit-Limit: 20", "X-RateLimit-Remaining: 19"}},
		})
		s.send("A", ask{})
		s.until(600 * time.Millisecond)
		s.sendAll(ask{}, "B", "C", "D")
		s.all.Wait()
		got, at := s.base.starts(), map[string]time.Duration{}
		for _, start := range got {
			name, d, _ := strings.Cut(start, "@")
			at[name] = reportDuration(d)
		}
		if len(got) != 4 || at["B"] < 600*time.Millisecond || at["B"] > time.Minute || at["C"] != at["B"]+500*time.Millisecond || at["D"] != at["C"] {
			s.Errorf("got %v, want B within a minute, and C and D at its response, 500 ms later", got)
		}
	})
}

// Metron-Project/mokkari 167 too: the client forgets the reset that it knows when a lower number
// comes without one. Here the end of the window stays what it was, neither unknown nor later.
func TestReportResetNamedOnce(t *testing.T) {
	play(t, limits(), func(s *scene) {
		s.base.answer = reportResponses(map[string]reportResponse{
			"A": {0, 200, []string{"X-RateLimit-Limit: 20", "X-RateLimit-Remaining: 5", "X-RateLimit-Reset-After: 30.5"}},
			"B": {0, 200, []string{"X-RateLimit-Limit: 20", "X-RateLimit-Remaining: 0"}},
		})
		s.sendAll(ask{}, "A", "B", "C")
		s.wantStarts("A@0s B@0s C@30.5s")
	})
}

// onfleet/node-onfleet 28 (nothing refills the budget: 800 requests wait for ever) and
// Colorfulstan/RiotRateLimiter-node 6 (the request that is to bring the new number gets a 403
// without one). Here the other requests follow, whatever becomes of it.
func TestReportLoneRequestFails(t *testing.T) {
	for name, fail := range map[string]func(*http.Request) (*http.Response, error){
		"403":      says(403, ""),
		"500":      says(500, ""),
		"an error": func(*http.Request) (*http.Response, error) { return nil, errReset },
	} {
		t.Run(name, func(t *testing.T) {
			play(t, limits(limiter.PerMinute(100)), func(s *scene) {
				s.base.answer = func(req *http.Request) (*http.Response, error) {
					time.Sleep(300 * time.Millisecond)
					switch req.Header.Get("Name") {
					case "A":
						return says(200, "", "X-RateLimit-Limit: 20", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset-After: 10.5")(req)
					case "B":
						return fail(req)
					}
					return ok(req), nil
				}
				s.send("A", ask{})
				s.until(time.Second)
				s.sendAll(ask{}, "B", "C", "D")
				s.until(20 * time.Second)
				s.send("E", ask{})
				s.wantStartsIn("A@0s B@10.8s C@10.8s-12s D@10.8s-12s E@20s")
			})
		})
	}
}

// diegosouzapw/OmniRoute 495: requests wait for hours, and their callers cannot fall back to
// another service. Here MaxWait and the deadline end each wait in time.
func TestReportLongResetAndShortWait(t *testing.T) {
	play(t, limits(limiter.PerMinute(100)), func(s *scene) {
		s.base.answer = inTurn(says(200, "", "X-RateLimit-Limit: 20", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 18000"))
		s.send("A", ask{})
		b := s.send("B", ask{call: headway.Call{MaxWait: 3 * time.Second}})
		c := s.send("C", ask{call: headway.Call{MaxWait: headway.NoWait}})
		d := s.send("D", ask{ctx: s.within(10 * time.Second)})
		s.all.Wait()
		for i, p := range []*trip{b, c, d} {
			if bound := []time.Duration{3 * time.Second, 0, 10 * time.Second}[i]; !errors.Is(p.err, headway.ErrThrottled) || p.after > bound {
				s.Errorf("number %d returned after %v with %v, want it refused by %v", i, p.after, p.err, bound)
			}
		}
		s.wantStarts("A@0s")
	})
}

// hikari-py/hikari 840: the longest wait that the user allows does not bound that for a global
// pause. Here it does.
func TestReportGlobalPauseAndShortWait(t *testing.T) {
	play(t, limits(limiter.PerMinute(100)), func(s *scene) {
		s.base.answer = inTurn(says(429, "", "X-RateLimit-Global: true", "Retry-After: 300"))
		s.send("A", ask{url: "https://discord.com/api/v10/users/@me"})
		s.wantRefused(s.send("B", ask{url: "https://discord.com/api/v10/gateway", call: headway.Call{MaxWait: 10 * time.Second}}), limiter.ReasonPause, 300*time.Second)
	})
}

// twilight-rs/twilight 1348 and ddevault/RedditSharp 195: a client measures a burst after idle
// time by the window before it, which is over, and sends one too many. Here the numbers of the
// burst hold.
func TestReportBurstAfterIdleTime(t *testing.T) {
	play(t, limits(), func(s *scene) {
		s.base.answer = reportResponses(map[string]reportResponse{
			"A": {0, 200, discordHeaders("x", 5, 4, 4.75)},
			"B": {0, 200, discordHeaders("x", 5, 4, 4.75)},
			"C": {0, 200, discordHeaders("x", 5, 3, 4.75)},
			"D": {0, 200, discordHeaders("x", 5, 2, 4.75)},
			"E": {0, 200, discordHeaders("x", 5, 1, 4.75)},
			"F": {0, 200, discordHeaders("x", 5, 0, 4.75)},
		})
		a := ask{method: "POST", url: "https://discord.com/api/v10/webhooks/1/token"}
		s.send("A", a)
		s.until(7 * time.Second)
		s.sendAll(a, "B", "C", "D", "E", "F", "G")
		s.wantStarts("A@0s B@7s C@7s D@7s E@7s F@7s G@11.75s")
	})
}

// bespokelabsai/curator 239 (the limit of input tokens stands for both, and output is refused
// again and again) and microsoft/copilot-camp 551 (1,014 tokens are left, and 7 requests). Here
// each number counts for the rule whose label it has.
func TestReportInputAndOutputTokens(t *testing.T) {
	from := func(header string) func(*http.Request) (int64, error) {
		return func(req *http.Request) (int64, error) { return strconv.ParseInt(req.Header.Get(header), 10, 64) }
	}
	policy := []headway.Policy{{Hosts: []string{"*"}, Rules: []headway.Rule{
		{Name: "calls", Announced: "requests", Limit: limiter.PerMinute(4000)},
		{Name: "in", Announced: "input-tokens", Limit: limiter.PerMinute(480_000), Cost: from("In")},
		{Name: "out", Announced: "output-tokens", Limit: limiter.PerMinute(80_000), Cost: from("Out")},
	}}}
	costs := func(in, out string) ask {
		return ask{method: "POST", url: "https://api.anthropic.com/v1/messages", header: http.Header{"In": {in}, "Out": {out}}}
	}
	play(t, policy, func(s *scene) {
		s.inEpochs()
		s.base.answer = inTurn(func(req *http.Request) (*http.Response, error) {
			full := time.Now().Add(59900 * time.Millisecond).UTC().Format(time.RFC3339Nano)
			return says(200, "",
				"anthropic-ratelimit-requests-limit: 4000", "anthropic-ratelimit-requests-remaining: 3999", "anthropic-ratelimit-requests-reset: "+full,
				"anthropic-ratelimit-input-tokens-limit: 480000", "anthropic-ratelimit-input-tokens-remaining: 479000", "anthropic-ratelimit-input-tokens-reset: "+full,
				"anthropic-ratelimit-output-tokens-limit: 80000", "anthropic-ratelimit-output-tokens-remaining: 0", "anthropic-ratelimit-output-tokens-reset: "+full)(req)
		})
		s.send("A", costs("1000", "600"))
		s.send("B", costs("10", "600"))
		s.sendAll(costs("1000", "0"), "C", "D") // counting tokens has no output
		s.send("E", costs("400000", "0"))
		s.wantStartsIn("A@0s B@1ms-1m0s C@0s D@0s E@0s")
	})
}
