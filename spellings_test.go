package headway_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/breaker"
	"github.com/headway-go/headway/limiter"
)

// All spellings that net/http dials alike are one host, for requests, quotas,
// breakers and patterns.
func TestSpellingsAreOneHost(t *testing.T) {
	for _, pattern := range []string{"api.bücher.example", "API.xn--bcher-kva.Example.", "*.bücher。example", "*.xn--bcher-kva.example"} {
		p := []headway.Policy{{
			Hosts: []string{pattern}, Rules: []headway.Rule{{Name: "r", Limit: limiter.Every(time.Minute)}}, MaxWait: headway.NoWait,
			Breaker: &breaker.Config{Failures: 1, OpenFor: time.Hour},
		}}
		play(t, p, func(s *scene) {
			const canonical = "api.xn--bcher-kva.example"
			s.send("A", ask{url: "https://api.bücher.example/"})
			for _, host := range []string{
				"api.b%C3%BCcher.example", "API.BÜCHER.EXAMPLE", "ａｐｉ。ｂｕ̈cher｡example", "api.xn--bcher-kva.example.:443", "a\u00adpi.bücher.example:0443",
			} {
				e := s.wantRefused(s.send(host, ask{url: "https://" + host + "/"}), limiter.ReasonLimit, time.Minute)
				if e.Host != canonical {
					s.Errorf("%s: got %s, want %s", host, e.Host, canonical)
				}
			}
			if q, err := s.Quota("Api。Bücher.example", "r", ""); err != nil || remaining(s, q) != 0 {
				s.Errorf("quota: got %v, want the budget of %s", err, canonical)
			}
			b, err := s.Breaker("api.BÜCHER.example:443")
			if err != nil {
				s.Fatal(err)
			}
			b.Trip(nil, 0)
			if e, open := s.send("B", ask{url: "https://api.xn--bcher-kva.example"}).err.(*headway.OpenError); !open || e.Host != canonical {
				s.Errorf("got %v, want the breaker of %s open", e, canonical)
			}
			if got := s.Snapshot(); len(got) != 1 || got[0].Host != canonical {
				s.Errorf("got %+v, want one host", got)
			}
		})
	}
}

// A pattern that no host can have is a mistake.
func TestInternationalPatternsAreChecked(t *testing.T) {
	for pattern, ok := range map[string]bool{
		"bücher.example": true, "*.例え。テスト": true, "１２７.0.0.1": true, "[::FFFF:1.2.3.4]:80": true,
		"ü_.example": false, "＊.example": false, "-ü.example": false, "xn--ü.example": false,
	} {
		_, err := headway.NewTransport(nil, headway.Config{Policies: []headway.Policy{{Hosts: []string{pattern}}}})
		if (err == nil) != ok {
			t.Errorf("%q: got %v, want it accepted: %v", pattern, err, ok)
		}
	}
	_, err := headway.NewTransport(nil, headway.Config{Policies: []headway.Policy{
		{Name: "a", Hosts: []string{"bücher.example", "127.0.0.1"}}, {Name: "b", Hosts: []string{"XN--bcher-kva.example."}}, {Name: "c", Hosts: []string{"[::ffff:127.0.0.1]"}},
	}})
	if len(unjoin(err)) != 2 {
		t.Errorf("got %v, want both patterns that stand in two policies", err)
	}
}

// A base that rewrites the URL, which it may not, does not have the host that it sends to
// taken for the one that was asked for.
func TestBaseRewritesTheURL(t *testing.T) {
	p := []headway.Policy{{Hosts: []string{"api.test"}, Limits: []limiter.Limit{limiter.Every(time.Hour)}, MaxWait: headway.NoWait}}
	play(t, p, func(s *scene) {
		s.base.answer = func(req *http.Request) (*http.Response, error) {
			req.URL.Host = "gateway.test"
			resp := ok(req)
			resp.Header.Set("RateLimit", `"other";r=5;t=60`)
			return resp, nil
		}
		s.wantOK(s.send("A", ask{}))
		for range 2 {
			s.wantOK(s.send("B", ask{url: "https://gateway.test/"}))
		}
	})
}
