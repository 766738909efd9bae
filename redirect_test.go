package headway_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
)

// byToken is a policy for two hosts whose rule is keyed by a header that an
// http.Client drops on a redirect to another host.
func byToken(header string, fallback ...string) []headway.Policy {
	return []headway.Policy{{Name: "p", Hosts: []string{"*"}, Rules: []headway.Rule{
		{Name: "token", Limit: limiter.PerMinute(1), Key: headway.ByHeader(header, fallback...)},
	}}}
}

// moved redirects what comes to from.test to to.test.
func moved(req *http.Request) (*http.Response, error) {
	resp := ok(req)
	if req.URL.Host == "from.test" {
		resp.StatusCode = http.StatusTemporaryRedirect
		resp.Header.Set("Location", "https://to.test/")
	}
	return resp, nil
}

// A redirect to another host loses Authorization and Cookie. With OrHost the hop
// uses the budget of those at that host without a key; without it the error says
// what has happened.
//
// The hops of golang/go 35104 and nerdalize/nerd 33: both were surprised that no
// Authorization came with them.
func TestARedirectLosesTheKey(t *testing.T) {
	for _, header := range []string{"Authorization", "Cookie"} {
		play(t, byToken(header, headway.OrHost), func(s *scene) {
			s.base.answer = moved
			client := &http.Client{Transport: s.Transport}
			for _, value := range []string{"token a", "token b"} {
				req := ask{url: "https://from.test/", header: http.Header{header: {value}}}.request(value[6:])
				resp, err := client.Do(req)
				if err != nil || resp.Request.URL.Host != "to.test" {
					s.Fatalf("%s: got %v, %v, want the response of the second host", header, resp, err)
				}
			}
			// Each has a budget of its own at the first host, and both share one at the second.
			s.wantStarts("a@0s a@0s b@0s b@1m0s")
		})
		play(t, byToken(header), func(s *scene) {
			s.base.answer = moved
			client := &http.Client{Transport: s.Transport}
			_, err := client.Do(ask{url: "https://from.test/", header: http.Header{header: {"a"}}}.request("a"))
			var missing *headway.KeyError
			if !errors.As(err, &missing) {
				s.Fatalf("%s: got %v, want a KeyError", header, err)
			}
			want := "the request has no header " + header + "; with ByHeader(name, OrHost) such requests share a budget of their host" +
				" (this request follows a redirect: http.Client drops Authorization and Cookie headers on a redirect to another host)"
			if got := missing.Err.Error(); got != want {
				s.Errorf("got  %s\nwant %s", got, want)
			}
			s.wantStarts("a@0s")
			// The error of a request that follows no redirect does not name one.
			p := s.send("b", ask{})
			if !errors.As(p.err, &missing) || strings.Contains(p.err.Error(), "redirect") || !strings.Contains(p.err.Error(), "OrHost") {
				s.Errorf("got %v, want it to name the fallback alone", p.err)
			}
		})
	}
}

// Those without the header are an identity of their own: a pause that one of them
// is told holds them alone, and one that a key is told does not hold them. Each host
// has its own.
func TestOrHostIsAnIdentityOfItsOwn(t *testing.T) {
	policies := byToken("Tenant", headway.OrHost)
	policies[0].Rules[0].Limit = limiter.PerMinute(1000)
	tenant := func(name string) ask { return ask{header: http.Header{"Tenant": {name}}} }
	play(t, policies, func(s *scene) {
		s.base.answer = func(req *http.Request) (*http.Response, error) {
			resp := ok(req)
			switch req.Header.Get("Name") {
			case "refused":
				resp.StatusCode = http.StatusTooManyRequests
				resp.Header.Set("Retry-After", "10")
			}
			return resp, nil
		}
		s.send("refused", ask{})
		s.send("none", ask{})
		s.send("a", tenant("a"))
		s.send("other", ask{url: "https://other.test/"})
		s.wantStarts("refused@0s a@0s other@0s none@10s")
		s.until(time.Minute)
		s.send("refused", tenant("b"))
		s.send("b", tenant("b"))
		s.send("none", ask{})
		s.wantStarts("refused@0s a@0s other@0s none@10s refused@1m0s none@1m0s b@1m10s")
	})
}

// Any other fallback is a key like those in headers; without one that is not empty,
// requests without the header fail.
func TestByHeaderFallbackIsAKey(t *testing.T) {
	tenant := func(name string) ask { return ask{header: http.Header{"Tenant": {name}}} }
	play(t, byToken("Tenant", "guest"), func(s *scene) {
		s.sendAll(tenant("a"), "a")
		s.sendAll(ask{}, "none")
		s.sendAll(tenant("guest"), "guest")
		s.wantStarts("a@0s none@0s guest@1m0s")
	})
	play(t, byToken("Tenant", ""), func(s *scene) {
		if p := s.send("none", ask{}); !errors.Is(p.err, headway.ErrKey) {
			s.Errorf("got %v, want a KeyError", p.err)
		}
	})
}

// The hosts of a Shared policy share the budget of the fallback too.
func TestOrHostUnderASharedPolicy(t *testing.T) {
	policies := byToken("Tenant", headway.OrHost)
	policies[0].Shared = true
	play(t, policies, func(s *scene) {
		s.send("a", ask{url: "https://a.test/"})
		s.send("b", ask{url: "https://b.test/"})
		s.wantStarts("a@0s b@1m0s")
	})
}
