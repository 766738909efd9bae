package headway_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/retryafter"
	"github.com/headway-go/headway/store"
)

// says is an answer with a status, a text, and headers "Name: value".
func says(status int, text string, lines ...string) func(*http.Request) (*http.Response, error) {
	return func(req *http.Request) (*http.Response, error) {
		resp := ok(req)
		resp.StatusCode = status
		if text != "" {
			resp.Body = newBody(text)
		}
		for _, l := range lines {
			name, value, _ := strings.Cut(l, ": ")
			resp.Header.Add(name, value)
		}
		return resp, nil
	}
}

// inTurn answers the n-th request, from 0, by the n-th answer, and those after
// the last with 200.
func inTurn(answers ...func(*http.Request) (*http.Response, error)) func(*http.Request) (*http.Response, error) {
	var n atomic.Int64
	return func(req *http.Request) (*http.Response, error) {
		if i := int(n.Add(1)); i <= len(answers) {
			return answers[i-1](req)
		}
		return ok(req), nil
	}
}

// oneByOne answers one request at a time.
func oneByOne(answer func(*http.Request) (*http.Response, error)) func(*http.Request) (*http.Response, error) {
	var mu sync.Mutex
	return func(req *http.Request) (*http.Response, error) {
		mu.Lock()
		defer mu.Unlock()
		return answer(req)
	}
}

var asks5 = says(429, "", "Retry-After: 5")

// names returns n names with a prefix.
func names(prefix string, n int) (list []string) {
	for i := range n {
		list = append(list, prefix+strconv.Itoa(i))
	}
	return list
}

// tenants is one policy with a rule by Call.Key and a shared limit.
func tenants(rules ...headway.Rule) []headway.Policy {
	all := append([]headway.Rule{{Name: "tenant", Limit: limiter.PerSecond(5), Key: headway.FromCallKey}}, rules...)
	return []headway.Policy{{Hosts: []string{"*"}, Rules: all}}
}

// One 429 holds all requests to the host, and they start again one by one.
func TestS60_C20_OnePauseForAll(t *testing.T) {
	play(t, limits(limiter.PerSecond(5)), func(s *scene) {
		s.base.latency = 10 * time.Millisecond
		s.base.answer = inTurn(asks5)
		s.send("A", ask{})
		s.until(20 * time.Millisecond) // told at 10 ms: until 5.010 s
		s.sendAll(ask{}, names("B", 8)...)
		s.wantStarts("A@0s B0@5.01s B1@5.21s B2@5.41s B3@5.61s B4@5.81s B5@6.01s B6@6.21s B7@6.41s")
	})
	// Those in line already, and of other paths, are held as well.
	play(t, limits(limiter.Limit{N: 1, Per: time.Second}), func(s *scene) {
		s.base.answer = inTurn(says(200, ""), says(429, "", "Retry-After: 60"))
		s.sendAll(ask{}, names("A", 20)...)
		want := "A0@0s A1@1s"
		for i := range 18 {
			want += fmt.Sprintf(" A%d@%v", i+2, time.Duration(61+i)*time.Second)
		}
		s.wantStarts(want)
	})
}

// The longest pause wins, in whatever order they come.
func TestS61_TheLongestPauseWins(t *testing.T) {
	for _, waits := range [][]string{{"60", "5"}, {"5", "60"}} {
		play(t, limits(limiter.PerSecond(5)), func(s *scene) {
			s.base.latency = time.Second
			s.base.answer = inTurn(says(429, "", "Retry-After: "+waits[0]), says(429, "", "Retry-After: "+waits[1]))
			s.sendAll(ask{}, "A", "B")
			s.until(2 * time.Second)
			s.send("C", ask{})
			s.wantStarts("A@0s B@0s C@1m1s")
		})
	}
}

// Retry-After 0 means now; a 429 without a hint is a pause that grows until a
// success, and those in flight when it was raised do not make it grow.
func TestS62_C4_C8_NoHint(t *testing.T) {
	play(t, limits(limiter.PerSecond(100)), func(s *scene) {
		s.base.answer = inTurn(says(429, "", "Retry-After: 0"), says(429, "", "Retry-After: Sat, 01 Jan 2000 00:00:00 GMT"))
		s.sendAll(ask{}, "A", "B", "C")
		s.wantStarts("A@0s B@0s C@0s")
	})
	for _, hint := range []string{"", "Retry-After: soon", "Retry-After: -5"} {
		play(t, limits(limiter.PerSecond(100)), func(s *scene) {
			refuse := says(429, "", hint)
			list := []func(*http.Request) (*http.Response, error){}
			for range 10 {
				list = append(list, refuse)
			}
			s.base.answer = inTurn(append(list, says(200, ""), refuse)...)
			s.sendAll(ask{}, names("A", 13)...)
			// 1 + 2 + 4 + … up to 300 s each, and 1 s again after the success.
			s.wantStarts("A0@0s A1@1s A2@3s A3@7s A4@15s A5@31s A6@1m3s A7@2m7s A8@4m15s A9@8m31s A10@13m31s " +
				"A11@13m31.01s A12@13m32.01s")
		})
	}
	play(t, limits(limiter.PerSecond(100)), func(s *scene) {
		s.base.latency = 100 * time.Millisecond
		n := 0
		s.base.answer = oneByOne(func(req *http.Request) (*http.Response, error) {
			if n++; n <= 50 {
				return says(429, "")(req)
			}
			return ok(req), nil
		})
		s.sendAll(ask{}, names("A", 50)...) // told at 100 ms, one pause
		s.until(200 * time.Millisecond)
		s.send("B", ask{})
		s.all.Wait()
		if got := s.base.starts()[50]; got != "B@1.1s" {
			s.Errorf("got %s, want B@1.1s", got)
		}
	})
}

// A pause beyond the deadline is refused at once, with the true time.
func TestS63_C3_C6_C24_RefusedWithTheTrueTime(t *testing.T) {
	play(t, limits(limiter.PerSecond(100)), func(s *scene) {
		s.base.answer = inTurn(says(429, "", "Retry-After: 300"))
		s.send("A", ask{})
		ctx, cancel := context.WithTimeout(s.Context(), 10*time.Second)
		defer cancel()
		for range 99 {
			p := s.send("B", ask{ctx: ctx})
			e := s.wantRefused(p, limiter.ReasonPause, 300*time.Second)
			if !errors.Is(e, context.DeadlineExceeded) || !e.Timeout() {
				s.Errorf("%v is not the deadline's", e)
			}
		}
		s.wantRefused(s.send("C", ask{call: headway.Call{MaxWait: 299 * time.Second}}), limiter.ReasonPause, 300*time.Second)
		s.send("D", ask{call: headway.Call{MaxWait: 300 * time.Second}})
		s.wantStarts("A@0s D@5m0s")
	})
	// Requests in line that can no longer start in time are refused at once.
	play(t, limits(limiter.PerSecond(1)), func(s *scene) {
		s.base.answer = inTurn(says(200, ""), says(429, "", "Retry-After: 3600"))
		s.sendAll(ask{}, "A", "B")
		c := s.send("C", ask{call: headway.Call{MaxWait: 15 * time.Minute}})
		s.until(time.Second)
		if e, isThrottled := c.err.(*headway.ThrottledError); !isThrottled || e.RetryAfter != time.Hour || c.after != time.Second {
			s.Errorf("got %v after %v, want it refused after 1 s with 1 h", c.err, c.after)
		}
		s.wantStarts("A@0s B@1s")
	})
}

// Dates are measured by the server's clock and rounded up; what is too long is
// cut, with an event.
func TestS64_C1_C2_DatesAndLongPauses(t *testing.T) {
	play(t, limits(limiter.PerSecond(100)), func(s *scene) {
		s.until(600 * time.Millisecond) // the bubble begins on 2000-01-01 00:00:00
		s.base.answer = inTurn(says(429, "", "Retry-After: Sat, 01 Jan 2000 00:00:01 GMT"))
		s.sendAll(ask{}, "A", "B")
		s.wantStarts("A@600ms B@1s")
	})
	for _, v := range []string{"9223372037", "18446744074", "99999999999999", "18446744073709551616", "86401"} {
		var events []headway.Event
		playConfig(t, headway.Config{Policies: limits(limiter.PerSecond(100)), Observer: collect(&events)}, func(s *scene) {
			s.base.answer = inTurn(says(429, "", "Retry-After: "+v))
			s.sendAll(ask{}, "A", "B")
			s.wantStarts("A@0s B@24h0m0s")
			e := only(s.T, events, headway.EventPause)
			if e.Pause != 24*time.Hour || !e.Cut || e.Status != 429 || e.Dialect != "rfc9110" {
				s.Errorf("%s: got %+v, want a cut pause of 24 h", v, e)
			}
		})
	}
	policy := limits(limiter.PerSecond(100))
	policy[0].Server.MaxPause = time.Minute
	play(t, policy, func(s *scene) {
		s.base.answer = inTurn(says(429, "", "Retry-After: 3600"))
		s.sendAll(ask{}, "A", "B")
		s.wantStarts("A@0s B@1m0s")
	})
	for _, v := range []string{"18446744073709551616x", "1e30", "+5", "NaN"} {
		var events []headway.Event
		playConfig(t, headway.Config{Policies: limits(limiter.PerSecond(100)), Observer: collect(&events)}, func(s *scene) {
			s.base.answer = inTurn(says(429, "", "Retry-After: "+v))
			s.sendAll(ask{}, "A", "B")
			s.wantStarts("A@0s B@1s")
			if e := only(s.T, events, headway.EventMalformed); e.Header != "Retry-After" || e.Status != 429 {
				s.Errorf("%s: got %+v", v, e)
			}
		})
	}
}

// only returns the one event of a kind.
func only(t *testing.T, events []headway.Event, kind headway.EventKind) (only headway.Event) {
	t.Helper()
	n := 0
	for _, e := range events {
		if e.Kind == kind {
			only = e
			n++
		}
	}
	if n != 1 {
		t.Errorf("got %d events %v, want one", n, kind)
	}
	return only
}

// What the server says is left counts, less what it may not have counted yet.
func TestS65_WhatIsLeft(t *testing.T) {
	left := func(n int, reset string) func(*http.Request) (*http.Response, error) {
		return says(200, "", "X-RateLimit-Limit: 40", "X-RateLimit-Remaining: "+strconv.Itoa(n), "X-RateLimit-Reset: "+reset)
	}
	// 3, though more are left here. At the reset one asks. Its response says nothing of a
	// limit, and how long another window would last is not known: the others go.
	play(t, limits(limiter.PerMinute(1000)), func(s *scene) {
		s.base.answer = inTurn(left(3, "30"))
		s.sendAll(ask{}, names("A", 45)...)
		want := "A0@0s A1@0s A2@0s A3@0s A4@31s"
		for i := 5; i < 45; i++ {
			want += fmt.Sprintf(" A%d@31.001s", i)
		}
		s.wantStarts(want)
	})
	// Four in flight when the first number comes: 5 are left, and the server may not have
	// counted the other three. As long as no request that started later has a response, the
	// least that one of the four is told counts, less those that have none yet.
	play(t, limits(limiter.PerMinute(1000)), func(s *scene) {
		slow := map[string]time.Duration{"A": 4 * time.Second, "B": time.Second, "C": 3 * time.Second, "D": 5 * time.Second, "E": time.Second}
		says := map[string]int{"A": 30, "B": 5, "C": 3, "D": 20, "E": 20}
		s.base.answer = func(req *http.Request) (*http.Response, error) {
			name := req.Header.Get("Name")
			time.Sleep(slow[name])
			if n, told := says[name]; told {
				return left(n, "30")(req)
			}
			time.Sleep(time.Hour)
			return ok(req), nil
		}
		s.send("A", ask{})
		s.until(time.Millisecond)
		s.sendAll(ask{}, "B", "C", "D")
		remaining := func() int64 { return s.Snapshot()[0].Learned[0].Remaining }
		for _, c := range []struct {
			at   time.Duration
			want int64
		}{
			{1001 * time.Millisecond, 2}, // 5, less A, C, D
			{3001 * time.Millisecond, 1}, // 3, less A, D
			{4 * time.Second, 2},         // an older one says 30: C's number knows of A
			{5001 * time.Millisecond, 3}, // 20, but the server may have served it before C
			{7001 * time.Millisecond, 20},
		} {
			if s.until(c.at); remaining() != c.want {
				s.Errorf("at %v: got %d left, want %d", c.at, remaining(), c.want)
			}
			if c.at == 5001*time.Millisecond {
				s.send("E", ask{})
			}
		}
	})
}

// A pause and what is left after it both hold.
func TestS66_PauseAndWhatIsLeft(t *testing.T) {
	play(t, limits(limiter.PerSecond(100)), func(s *scene) {
		s.base.answer = inTurn(says(429, "", "Retry-After: 20", "X-RateLimit-Limit: 50", "X-RateLimit-Remaining: 15", "X-RateLimit-Reset: 40"))
		s.sendAll(ask{}, names("A", 30)...)
		want := "A0@0s"
		for i := range 15 { // gently
			want += fmt.Sprintf(" A%d@%v", i+1, 20*time.Second+time.Duration(i)*10*time.Millisecond)
		}
		want += " A16@41s" // asks
		for i := 17; i < 30; i++ {
			want += fmt.Sprintf(" A%d@41.001s", i)
		}
		s.wantStarts(want)
	})
}

// GitHub's refusals: the body tells its secondary limit from a full quota and
// from a mere prohibition.
func TestS67_C7_GitHub(t *testing.T) {
	primary := []string{"X-RateLimit-Limit: 5000", "X-RateLimit-Resource: core", "Content-Type: application/json", "X-GitHub-Media-Type: github.v3"}
	at := func(left string, text string) func(*http.Request) (*http.Response, error) {
		return func(req *http.Request) (*http.Response, error) {
			reset := strconv.FormatInt(time.Now().Add(55*time.Minute).Unix(), 10)
			return says(403, text, append([]string{"X-RateLimit-Remaining: " + left, "X-RateLimit-Reset: " + reset}, primary...)...)(req)
		}
	}
	const secondary = `{"message":"You have exceeded a secondary rate limit. Please wait a few minutes before you try again.","documentation_url":"https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"}`
	const forbidden = `{"message":"Resource not accessible by integration"}`
	for _, c := range []struct {
		name, left, text string
		answers          int
		want             string
	}{
		{"secondary, growing", "4114", secondary, 3, "A0@0s A1@1m0s A2@3m0s A3@7m0s"},
		{"primary", "0", `{"message":"API rate limit exceeded for user ID 1."}`, 1, "A0@0s A1@55m1s A2@55m1.01s A3@55m1.02s"},
		{"forbidden", "4114", forbidden, 1, "A0@0s A1@0s A2@0s A3@0s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, limits(limiter.PerSecond(100)), func(s *scene) {
				var list []func(*http.Request) (*http.Response, error)
				for range c.answers {
					list = append(list, at(c.left, c.text))
				}
				s.base.answer = inTurn(list...)
				all := s.sendAll(ask{url: "https://api.github.com/user"}, names("A", 4)...)
				s.wantStarts(c.want)
				if got, _ := io.ReadAll(all[0].resp.Body); string(got) != c.text {
					s.Errorf("the caller reads %q, want all of it", got)
				}
			})
		})
	}
}

// With keyed rules it is the caller's identity that is paused, over all paths.
func TestS68_AudienceOfAPause(t *testing.T) {
	refused := func(url string) func(*http.Request) (*http.Response, error) {
		return func(req *http.Request) (*http.Response, error) {
			if req.Header.Get("Name") == "A" {
				return asks5(req)
			}
			return ok(req), nil
		}
	}
	play(t, tenants(), func(s *scene) {
		s.base.answer = refused("")
		s.send("A", key("a"))
		s.send("B", key("b"))
		a := key("a")
		a.url = "https://api.test/other"
		s.send("C", a)
		s.wantStarts("A@0s B@0s C@5s")
	})
	// Two keyed rules: the identity is both keys together.
	both := tenants(headway.Rule{Name: "user", Limit: limiter.PerSecond(5), Key: headway.ByHeader("User")})
	play(t, both, func(s *scene) {
		s.base.answer = refused("")
		as := func(tenant, user string) ask {
			return ask{call: headway.Call{Key: tenant}, header: http.Header{"User": {user}}}
		}
		s.send("A", as("a", "x"))
		s.send("B", as("a", "y"))
		s.send("C", as("b", "x"))
		s.send("D", as("a", "x"))
		s.wantStarts("A@0s B@0s C@0s D@5s")
		if got := s.Snapshot()[0].Pauses; len(got) != 0 {
			s.Errorf("got %+v after its end", got)
		}
	})
	// A request without a key is the host: it holds all requests.
	some := []headway.Policy{{Hosts: []string{"*"}, Rules: []headway.Rule{
		{Name: "tenant", Limit: limiter.PerSecond(5), Key: headway.FromCallKey, Path: "/t/"},
	}}}
	play(t, some, func(s *scene) {
		s.base.answer = refused("")
		s.send("A", ask{})
		b := key("b")
		b.url = "https://api.test/t/x"
		s.send("B", b)
		s.wantStarts("A@0s B@5s")
	})
	// A dialect may say that it is the method, or the address.
	slack := tenants(headway.Rule{Name: "chat", Limit: limiter.PerSecond(5), Path: "/chat"})
	play(t, slack, func(s *scene) {
		s.base.answer = refused("")
		at := func(tenant, path string) ask {
			return ask{call: headway.Call{Key: tenant}, url: "https://slack.com" + path}
		}
		s.send("A", at("a", "/chat"))
		p := s.Snapshot()[0].Pauses
		if len(p) != 1 || p[0].Rule != "chat" || p[0].KeyDigest == "" || p[0].Left != 5*time.Second || p[0].Source != "slack" {
			s.Errorf("got pauses %+v", p)
		}
		s.send("B", at("a", "/users"))
		s.send("C", at("b", "/chat"))
		s.send("D", at("a", "/chat"))
		s.wantStarts("A@0s B@0s C@0s D@5s")
	})
	play(t, tenants(), func(s *scene) {
		s.base.answer = refused("")
		at := func(tenant string) ask {
			return ask{call: headway.Call{Key: tenant}, url: "https://api.binance.com/"}
		}
		s.send("A", at("a"))
		s.send("B", at("b"))
		s.wantStarts("A@0s B@5s")
	})
	// A Shared policy pauses as a whole.
	shared := limits(limiter.PerSecond(5))
	shared[0].Shared = true
	play(t, shared, func(s *scene) {
		s.base.answer = refused("")
		s.send("A", ask{})
		s.send("B", ask{url: "https://other.test"})
		s.wantStarts("A@0s B@5s")
	})
}

// Several labels, one line or many: the tightest policy binds.
func TestC9_TheTightestBinds(t *testing.T) {
	for _, lines := range [][]string{
		{`RateLimit: "burst";r=2;t=10, "day";r=500;t=3600`},
		{`RateLimit: "burst";r=2;t=10`, `RateLimit: "day";r=500;t=3600`},
		{`RateLimit: "day";r=500;t=3600`, `RateLimit: "burst";r=2;t=10`},
	} {
		play(t, limits(limiter.PerSecond(100)), func(s *scene) {
			s.base.answer = inTurn(says(200, "", lines...))
			s.sendAll(ask{}, "A", "B", "C", "D")
			s.wantStarts("A@0s B@0s C@0s D@11s")
		})
	}
}

// Each option changes behaviour.
func TestC10_SwitchedOff(t *testing.T) {
	off := limits(limiter.PerSecond(100))
	off[0].Server.Dialects = []retryafter.Dialect{retryafter.None}
	play(t, off, func(s *scene) {
		s.base.answer = inTurn(asks5, says(429, ""), says(200, "", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 60"))
		s.sendAll(ask{}, "A", "B", "C", "D")
		s.wantStarts("A@0s B@0s C@0s D@0s")
	})
	one := limits(limiter.PerSecond(100))
	one[0].Server.Dialects = []retryafter.Dialect{retryafter.RFC9110}
	play(t, one, func(s *scene) {
		s.base.answer = inTurn(says(200, "", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 60"), asks5)
		s.sendAll(ask{}, "A", "B", "C")
		s.wantStarts("A@0s B@0s C@5s")
	})
	unlearned := limits(limiter.PerSecond(100))
	unlearned[0].Server.Learn = headway.LearnOff
	play(t, unlearned, func(s *scene) {
		s.base.answer = inTurn(says(200, "", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 60"), asks5)
		s.sendAll(ask{}, "A", "B", "C")
		s.wantStarts("A@0s B@0s C@5s")
		if got := s.Snapshot()[0].Learned; len(got) != 0 {
			s.Errorf("got %+v", got)
		}
	})
	paced := limits(limiter.PerSecond(100))
	paced[0].Server.Learn = headway.LearnPace
	play(t, paced, func(s *scene) {
		s.base.answer = inTurn(says(200, "", "X-RateLimit-Limit: 100", "X-RateLimit-Remaining: 4", "X-RateLimit-Reset: 60"))
		s.sendAll(ask{}, names("A", 7)...)
		s.wantStarts("A0@0s A1@0s A2@15s A3@30s A4@45s A5@1m1s A6@1m1.001s")
	})
	play(t, paced, func(s *scene) { // the window's length is known, and others have used most of it
		s.base.answer = inTurn(says(200, "", `RateLimit-Policy: "q";q=100;w=3600`, `RateLimit: "q";r=4;t=60`))
		s.sendAll(ask{}, names("A", 6)...)
		s.wantStarts("A0@0s A1@0s A2@12s A3@24s A4@36s A5@1m1s")
	})
}

// A quota that must be paid for: no pause helps, and none is made.
func TestC11_UnpaidQuota(t *testing.T) {
	play(t, limits(limiter.PerSecond(100)), func(s *scene) {
		const text = `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`
		s.base.answer = inTurn(says(429, text, "Content-Type: application/json"))
		all := s.sendAll(ask{url: "https://api.openai.com/v1/responses"}, "A", "B")
		s.wantStarts("A@0s B@0s")
		if got, _ := io.ReadAll(all[0].resp.Body); string(got) != text {
			s.Errorf("the caller reads %q", got)
		}
	})
}

// After a pause of the host, the lines of all keys go on.
func TestC21_AllKeysResume(t *testing.T) {
	play(t, tenants(), func(s *scene) {
		s.base.answer = inTurn(says(429, "", "Retry-After: 5"))
		s.send("A", ask{call: headway.Call{Key: "a"}, url: "https://api.binance.com/"})
		want := "A@0s"
		for i := range 10 {
			s.send(fmt.Sprint("B", i), ask{call: headway.Call{Key: fmt.Sprint(i)}, url: "https://api.binance.com/"})
			want += fmt.Sprintf(" B%d@%v", i, 5*time.Second+time.Duration(i)*200*time.Millisecond)
		}
		s.wantStarts(want)
	})
}

// A host or key that was paused or capped is not forgotten.
func TestC22_PausesSurviveEviction(t *testing.T) {
	playConfig(t, headway.Config{Policies: limits(limiter.PerSecond(100)), MaxHosts: 2}, func(s *scene) {
		s.base.answer = inTurn(says(429, "", "Retry-After: 60"), says(200, "", "X-RateLimit-Limit: 9", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 90"))
		s.send("A", ask{url: "https://a.test"})
		s.send("B", ask{url: "https://b.test"})
		s.until(2 * time.Second)
		for i := range 5 {
			s.send("x", ask{url: fmt.Sprintf("https://x%d.test", i)})
		}
		s.send("C", ask{url: "https://a.test"})
		s.send("D", ask{url: "https://b.test"})
		s.all.Wait()
		if got := s.base.starts()[7:]; fmt.Sprint(got) != "[C@1m0s D@1m31s]" {
			s.Errorf("got %v", got)
		}
	})
	playConfig(t, headway.Config{Policies: tenants(), MaxHosts: 4}, func(s *scene) {
		s.base.answer = inTurn(says(429, "", "Retry-After: 60"))
		s.send("A", key("a"))
		s.until(2 * time.Second)
		for i := range 9 {
			s.send("x", key(fmt.Sprint(i)))
		}
		s.send("B", key("a"))
		s.all.Wait()
		if got := s.base.starts()[10:]; fmt.Sprint(got) != "[B@1m0s]" {
			s.Errorf("got %v", got)
		}
	})
}

// The time stands in a JSON body; only a bounded prefix of refusals is read, and
// the caller gets all of it, and the error at its end.
func TestC31_Bodies(t *testing.T) {
	slowDown := `<?xml version="1.0"?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>`
	retryInfo := `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34s"}]}}`
	for _, c := range []struct {
		name, url, kind, text string
		status                int
		want                  string
		read                  int // how much was read before the caller got it
	}{
		{"Google's time", "https://x.googleapis.com/", "application/json", retryInfo, 429, "A@0s B@34s", len(retryInfo)},
		{"S3's SlowDown", "https://b.s3.amazonaws.com/", "application/xml", slowDown, 503, "A@0s B@1s", len(slowDown)},
		{"a long one", "https://api.github.com/", "application/json", `{"message":"You have exceeded a secondary rate limit."}` + strings.Repeat(" ", 1<<20), 403, "A@0s B@1m0s", 4096},
		{"a success", "https://api.github.com/", "application/json", slowDown, 200, "A@0s B@0s", 0},
		{"a stream", "https://api.github.com/", "text/event-stream", slowDown, 403, "A@0s B@0s", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, limits(limiter.PerSecond(100)), func(s *scene) {
				read := 0
				broken := errors.New("cut off")
				s.base.answer = inTurn(func(req *http.Request) (*http.Response, error) {
					resp, _ := says(c.status, "", "Content-Type: "+c.kind)(req)
					resp.Body = io.NopCloser(&counted{strings.NewReader(c.text), broken, &read})
					return resp, nil
				})
				all := s.sendAll(ask{url: c.url}, "A", "B")
				if read != c.read {
					s.Errorf("%d bytes were read first, want %d", read, c.read)
				}
				s.wantStarts(c.want)
				got, err := io.ReadAll(all[0].resp.Body)
				if string(got) != c.text || err != broken {
					s.Errorf("the caller reads %d bytes and %v, want %d and the error", len(got), err, len(c.text))
				}
			})
		})
	}
}

// counted counts what is read of it, and fails at its end.
type counted struct {
	*strings.Reader
	err error
	n   *int
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if *c.n += n; err == io.EOF {
		err = c.err
	}
	return n, err
}

// A dialect that panics harms its own request: the body is closed, the slot comes
// back.
func TestADialectPanics(t *testing.T) {
	policy := limits(limiter.PerSecond(100))
	policy[0].Server.Dialects = []retryafter.Dialect{panicky{}}
	policy[0].MaxInFlight = 1
	play(t, policy, func(s *scene) {
		b := newBody("x")
		s.base.answer = inTurn(func(req *http.Request) (*http.Response, error) {
			resp := ok(req)
			resp.Body = b
			resp.Header.Set("Panic", "1")
			return resp, nil
		})
		func() {
			defer func() { recover() }()
			s.RoundTrip(ask{}.request("A"))
			s.Error("no panic")
		}()
		if b.closed.Load() == 0 {
			s.Error("the body is open")
		}
		s.send("B", ask{})
		s.wantStarts("A@0s B@0s")
		wantIdle(s.T, s.Transport)
	})
}

type panicky struct{}

func (panicky) Name() string { return "panicky" }

func (panicky) Read(_ int, h http.Header, _ time.Time) (retryafter.Signal, bool) {
	if h.Get("Panic") != "" {
		panic("a dialect")
	}
	return retryafter.Signal{}, false
}

// A learned limit belongs to the rule of its label or window, with the rule's cost
// and key.
func TestLearnedLimitsBelongToRules(t *testing.T) {
	policy := []headway.Policy{{Hosts: []string{"*"}, Rules: []headway.Rule{
		{Name: "llm", Announced: "tokens", Limit: limiter.PerMinute(100_000), Cost: headway.FromCallCost, Key: headway.FromCallKey},
		{Name: "tenant", Limit: limiter.PerHour(1000), Key: headway.FromCallKey},
	}}}
	play(t, policy, func(s *scene) {
		s.base.answer = inTurn(
			says(200, "", "X-RateLimit-Limit-Tokens: 5000", "X-RateLimit-Remaining-Tokens: 900", "X-RateLimit-Reset-Tokens: 30s"),
			says(200, "", `RateLimit-Policy: "x";q=1000;w=3600`, `RateLimit: "x";r=1;t=600`),
		)
		costs := func(n int64, key string) ask { return ask{call: headway.Call{Key: key, Cost: n}} }
		s.send("A", costs(100, "a"))
		s.send("B", costs(400, "b"))
		s.send("C", costs(600, "a")) // and 300 tokens are left to a
		s.send("D", costs(500, "b"))
		s.send("E", costs(1, "b")) // the hour's last went to D
		s.send("F", costs(301, "a"))
		s.wantStarts("A@0s B@0s C@0s D@0s F@30s E@10m1s")
		for _, l := range s.Snapshot()[0].Learned {
			if l.KeyDigest == "" || l.Rule != "llm" && (l.Rule != "tenant" || l.Window != time.Hour) {
				s.Errorf("got %+v", l)
			}
		}
	})
}

// A limit belongs to the rule with its label, before the rule of its period; a rule with a
// label takes no limit with another one, and its name is none.
func TestAnnouncedNamesTheServersLimit(t *testing.T) {
	policy := []headway.Policy{{Hosts: []string{"*"}, Rules: []headway.Rule{
		{Name: "requests", Limit: limiter.PerMinute(1000)},
		{Name: "calls", Announced: "Requests", Limit: limiter.PerHour(1000)},
		{Name: "core", Announced: "other", Limit: limiter.PerHour(5000)},
		{Name: "files", Limit: limiter.PerSecond(1000)},
	}}}
	announces := func(name string, window int) []string {
		return []string{fmt.Sprintf(`RateLimit-Policy: %q;q=1000;w=%d`, name, window), fmt.Sprintf(`RateLimit: %q;r=900;t=60`, name)}
	}
	for _, name := range []string{"memory", "store"} {
		for _, tc := range []struct {
			name, want string
			lines      []string
		}{
			{"the label", "calls", announces("requests", 60)},
			{"without case", "core", announces("OTHER", 60)},
			{"the name of a rule", "learned files", announces("files", 3600*24)},
			{"another label", "learned core", announces("core", 3600)},
			{"the period", "requests", announces("x", 60)},
			{"no label, the period", "calls", []string{"RateLimit-Limit: 1000, 1000;w=3600", "RateLimit-Remaining: 900", "RateLimit-Reset: 60"}},
		} {
			t.Run(name+"/"+tc.name, func(t *testing.T) {
				var events []headway.Event
				cfg := headway.Config{Policies: policy, Observer: collect(&events)}
				if name == "store" {
					cfg.Store, cfg.Secret = new(store.Memory), []byte("s")
				}
				playConfig(t, cfg, func(s *scene) {
					s.base.answer = says(200, "", tc.lines...)
					s.wantOK(s.send("A", ask{}))
					var got []string
					for _, e := range events {
						if e.Kind == headway.EventLearned {
							got = append(got, e.Rule)
						}
					}
					if !slices.Equal(got, []string{tc.want}) {
						s.Errorf("learned for %q, want %q", got, tc.want)
					}
				})
			})
		}
	}
}

// What others have spent shows in what is left.
func TestDrift(t *testing.T) {
	var events []headway.Event
	cfg := headway.Config{Policies: limits(limiter.PerMinute(1000)), Observer: collect(&events)}
	playConfig(t, cfg, func(s *scene) {
		left := func(n int) func(*http.Request) (*http.Response, error) {
			return says(200, "", "X-RateLimit-Limit: 100", "X-RateLimit-Remaining: "+strconv.Itoa(n), "X-RateLimit-Reset: 60")
		}
		s.base.answer = inTurn(left(99), left(98), left(60), left(59))
		s.sendAll(ask{}, "A", "B", "C", "D")
		s.until(7 * time.Second)
		got := s.Snapshot()[0].Learned
		if len(got) != 1 || got[0] != (headway.LearnedStatus{
			Rule: "learned", Source: "x-ratelimit", Limit: 100, Remaining: 59, Reset: 54 * time.Second, Age: 7 * time.Second, Drift: 37,
		}) {
			s.Errorf("got %+v, want a drift of 37", got)
		}
		var drift int64
		for _, e := range events {
			if e.Kind == headway.EventLearned {
				drift += e.Drift
			}
		}
		if drift != 37 {
			s.Errorf("the events say %d", drift)
		}
	})
}

// A server names ever new limits: what is kept of them is bounded.
func TestLearnedLimitsAreBounded(t *testing.T) {
	play(t, limits(limiter.PerSecond(1000)), func(s *scene) {
		n := 0
		s.base.answer = oneByOne(func(req *http.Request) (*http.Response, error) {
			n++
			return says(200, "", fmt.Sprintf(`RateLimit: "n%d";r=1000;t=60`, n))(req)
		})
		for range 100 {
			s.send("A", ask{})
		}
		if got := len(s.Snapshot()[0].Learned); got != 8 {
			s.Errorf("%d are kept, want 8", got)
		}
	})
}

// The other half of C85: each hop obeys its own host.
func TestC85_EachHopObeysItsOwnHost(t *testing.T) {
	play(t, limits(limiter.PerSecond(100)), func(s *scene) {
		s.base.answer = func(req *http.Request) (*http.Response, error) {
			if req.URL.Host == "a.test" {
				return says(302, "", "Location: https://b.test/", "X-RateLimit-Limit: 9", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 30")(req)
			}
			return asks5(req)
		}
		client := &http.Client{Transport: s.Transport}
		resp, err := client.Do(ask{url: "https://a.test"}.request("A"))
		if err != nil || resp.StatusCode != 429 {
			s.Fatal(resp, err)
		}
		for host, want := range map[string]time.Duration{"a.test": 31 * time.Second, "b.test": 5 * time.Second} {
			if d, err := s.Delay(ask{url: "https://" + host}.request("B")); d != want || err != nil {
				s.Errorf("%s: got %v, %v, want %v", host, d, err, want)
			}
		}
	})
}

// Where a vendor documents at what rate units return, no reset is needed. Shopify's bucket
// leaks in 20 s what it holds: 40 at 2 a second, 400 at 20. Where nothing is known, one
// request asks after a minute.
func TestNothingLeftWithoutAReset(t *testing.T) {
	for _, c := range []struct {
		size  int
		every time.Duration // a unit
	}{{40, 500 * time.Millisecond}, {80, 250 * time.Millisecond}, {400, 50 * time.Millisecond}} {
		play(t, limits(limiter.PerSecond(1000)), func(s *scene) {
			left := 3
			refilled := time.Now()
			s.base.answer = oneByOne(func(req *http.Request) (*http.Response, error) { // a leaky bucket
				left = min(c.size, left+int(time.Since(refilled)/c.every))
				if refilled = time.Now(); left == 0 {
					return asks5(req)
				}
				left--
				return says(200, "", fmt.Sprintf("X-Shopify-Shop-Api-Call-Limit: %d/%d", c.size-left, c.size))(req)
			})
			s.sendAll(ask{}, names("A", 8)...)
			want := "A0@0s A1@0s A2@0s"
			for i := 3; i < 8; i++ {
				want += fmt.Sprintf(" A%d@%v", i, time.Duration(i-2)*c.every)
			}
			s.wantStarts(want)
		})
	}
	play(t, limits(limiter.PerSecond(1000)), func(s *scene) {
		s.base.answer = inTurn(says(200, "", "X-RateLimit-Limit: 40", "X-RateLimit-Remaining: 0"), says(200, "", "X-RateLimit-Limit: 40", "X-RateLimit-Remaining: 39"))
		s.sendAll(ask{}, names("A", 4)...)
		s.wantStarts("A0@0s A1@1m0s A2@1m0s A3@1m0s") // the others wait for what A1 receives
	})
}

// A vendor counts in fixed windows of 20 per 10 s, and the client believes in
// 100. With headers there is no 429 after the first window; with Retry-After
// alone each pause costs at most MaxInFlight.
func TestSoakAgainstAStricterVendor(t *testing.T) {
	const limit, window, inFlight = 20, 10 * time.Second, 4
	for _, headers := range []bool{true, false} {
		policy := limits(limiter.Limit{N: 100, Per: window})
		policy[0].MaxInFlight = inFlight
		var mu sync.Mutex // guards following variables
		var pauses, late int
		var refusedInPause, most int
		cfg := headway.Config{Policies: policy, Observer: headway.ObserverFunc(func(_ context.Context, e headway.Event) {
			if e.Kind == headway.EventPause {
				mu.Lock()
				defer mu.Unlock()
				pauses++
				refusedInPause = 0
			}
		})}
		playConfig(t, cfg, func(s *scene) {
			s.base.quiet, s.base.latency = true, 20*time.Millisecond
			begin := time.Now()
			var current, used int
			s.base.answer = func(req *http.Request) (*http.Response, error) {
				mu.Lock()
				defer mu.Unlock()
				at := time.Since(begin)
				if w := int(at / window); w != current {
					current, used = w, 0
				}
				reset := window - at%window
				seconds := strconv.FormatInt(int64((reset+time.Second-1)/time.Second), 10)
				if used == limit {
					if refusedInPause++; current > 0 {
						late++
					}
					most = max(most, refusedInPause)
					return says(429, "", "Retry-After: "+seconds)(req)
				}
				used++
				if !headers {
					return ok(req), nil
				}
				return says(200, "", "X-RateLimit-Limit: 20", "X-RateLimit-Remaining: "+strconv.Itoa(limit-used), "X-RateLimit-Reset: "+seconds)(req)
			}
			var done atomic.Int64
			for range 8 {
				s.all.Go(func() {
					for done.Load() < 1000 {
						resp, err := s.RoundTrip(ask{}.request("A"))
						if err != nil {
							s.Error(err)
							return
						}
						resp.Body.Close()
						if resp.StatusCode == 200 {
							done.Add(1)
						}
					}
				})
			}
			s.all.Wait()
			if headers && late > 0 {
				s.Errorf("%d answers of 429 after the first window, want none", late)
			}
			if !headers && (pauses == 0 || most > inFlight) {
				s.Errorf("%d pauses, up to %d answers of 429 each, want at most %d", pauses, most, inFlight)
			}
			if took := time.Since(begin); took > 70*window {
				s.Errorf("1,000 requests took %v", took)
			}
		})
	}
}

// TestReadmePause: the README's picture is what happens.
func TestReadmePause(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	play(t, limits(limiter.PerSecond(20)), func(s *scene) {
		s.base.latency = 10 * time.Millisecond
		answers := make([]func(*http.Request) (*http.Response, error), 21)
		for i := range 20 {
			answers[i] = says(200, "")
		}
		answers[20] = says(429, "", "Retry-After: 3")
		s.base.answer = inTurn(answers...)
		s.sendAll(ask{}, names("A", 100)...)
		s.all.Wait()
		bars := make([]string, 14)
		for _, start := range s.base.starts() {
			_, at, _ := strings.Cut(start, "@")
			d, err := time.ParseDuration(at)
			if err != nil {
				s.Fatal(err)
			}
			bars[d/(500*time.Millisecond)] += "#"
		}
		picture := ""
		for i, bar := range bars {
			line := fmt.Sprintf("%.1f s  %s", float64(i)/2, bar)
			if i == 2 {
				line += "  one is refused"
			}
			picture += strings.TrimRight(line, " ") + "\n"
		}
		if !strings.Contains(string(readme), "```text\n"+picture+"```\n") {
			s.Errorf("the README does not show\n%s", picture)
		}
	})
}

// slowReader is a dialect that takes its time, where the answer says how much.
type slowReader struct{}

func (slowReader) Name() string { return "slow" }

func (slowReader) Read(_ int, h http.Header, _ time.Time) (retryafter.Signal, bool) {
	d, _ := time.ParseDuration(h.Get("Slow"))
	time.Sleep(d)
	return retryafter.Signal{}, false
}

// A response that has arrived, but has not been read, may announce less than what
// another announces meanwhile: its request counts as in flight. A dialect takes long
// to read it.
func TestUnreadResponsesAreInFlight(t *testing.T) {
	for _, slots := range []int{0, 9} { // the short way, and the long one
		policy := limits(limiter.PerMinute(1000))
		policy[0].MaxInFlight = slots
		policy[0].Server.Dialects = append([]retryafter.Dialect{slowReader{}}, retryafter.Dialects()...)
		play(t, policy, func(s *scene) {
			s.base.answer = func(req *http.Request) (*http.Response, error) {
				switch req.Header.Get("Name") {
				case "first": // which has to look for its host
					return ok(req), nil
				case "A":
					return says(200, "", "Slow: 2s", "X-RateLimit-Remaining: 1", "X-RateLimit-Reset: 60")(req)
				}
				time.Sleep(time.Second)
				return says(200, "", "X-RateLimit-Remaining: 5", "X-RateLimit-Reset: 59")(req)
			}
			s.sendAll(ask{}, "first", "A", "B")
			for at, want := range map[time.Duration]int64{1500 * time.Millisecond: 4, 2500 * time.Millisecond: 1} {
				time.AfterFunc(at, func() {
					if got := s.Snapshot()[0].Learned[0].Remaining; got != want {
						s.Errorf("%d slots, at %v: %d left, want %d", slots, at, got, want)
					}
				})
			}
			s.until(3 * time.Second)
		})
	}
}
