package headway

import (
	"github.com/headway-go/headway/internal/desk"

	"errors"
	"strings"
	"testing"
	"time"

	"github.com/headway-go/headway/limiter"
)

var perSecond = limiter.PerSecond(5)

// one returns a valid policy, changed.
func one(change func(*Policy)) []Policy {
	p := Policy{Name: "p", Hosts: []string{"example.com"}}
	change(&p)
	return []Policy{p}
}

func TestValidatePoliciesAccepts(t *testing.T) {
	for name, policies := range map[string][]Policy{
		"none":        nil,
		"nothing set": {{Hosts: []string{"*"}}},
		"the same rule and limit in two policies": {
			{Hosts: []string{"a"}, Limits: []limiter.Limit{perSecond}, Rules: []Rule{{Name: "r", Limit: perSecond}}},
			{Hosts: []string{"b"}, Limits: []limiter.Limit{perSecond}, Rules: []Rule{{Name: "r", Limit: perSecond}}},
		},
		"overlapping hosts": {
			{Hosts: []string{"a.com", "a.com:8443", "*.a.com"}}, {Hosts: []string{"b.a.com", "*.com"}}, {Hosts: []string{"*", "*:80"}},
		},
		"one host twice in one policy": {{Hosts: []string{"a.com", "A.com."}}},
		"NoWait":                       one(func(p *Policy) { p.MaxWait = NoWait }),
		"OneWindow":                    one(func(p *Policy) { p.MaxWait = OneWindow }),
		"WaitForever":                  one(func(p *Policy) { p.MaxWait = WaitForever }),
		"everything": one(func(p *Policy) {
			p.Shared, p.MaxWait, p.MaxWaiting, p.MaxInFlight, p.Refusal = true, time.Second, 5, 5, RefuseWithResponse
			p.Limits = []limiter.Limit{perSecond, limiter.PerMinute(100)}
			p.Rules = []Rule{
				{Name: "search", Limit: perSecond, Methods: []string{"GET", "BREW", "M-SEARCH"}, Path: "/search/{kind}"},
				{Name: "tenant", Limit: perSecond, Key: FromCallKey, Cost: FromCallCost},
			}
		}),
		"one label for other requests": one(func(p *Policy) {
			p.Rules = []Rule{
				{Name: "r", Limit: perSecond, Announced: "requests"},
				{Name: "path", Limit: perSecond, Announced: "requests", Path: "/"},
				{Name: "method", Limit: perSecond, Announced: "Requests", Methods: []string{"PUT"}},
				{Name: "key", Limit: perSecond, Announced: "requests", Key: FromCallKey},
			}
		}),
	} {
		if err := validatePolicies(policies); err != nil {
			t.Errorf("%s: got %v, want none", name, err)
		}
	}
}

func TestValidatePoliciesNamesTheMistake(t *testing.T) {
	rule := func(change func(*Rule)) []Policy {
		r := Rule{Name: "r", Limit: perSecond}
		change(&r)
		return one(func(p *Policy) { p.Rules = []Rule{r} })
	}
	for _, tc := range []struct {
		name     string
		policies []Policy
		want     string // a part of the error
	}{
		{"no hosts", one(func(p *Policy) { p.Hosts = nil }), `Policies[0] "p": Hosts is empty: want`},
		{"no hosts and no name", []Policy{{}}, `Policies[0] "": Hosts is empty: want`},
		{"two of one name", []Policy{{Name: "p", Hosts: []string{"a"}}, {Name: "p", Hosts: []string{"b"}}},
			`Policies[1] "p": Name = "p": want another, Policies[0] has this one`},
		{"a name and a default name", []Policy{{Name: "b", Hosts: []string{"a"}}, {Hosts: []string{"b"}}},
			`Policies[1] "b": Name = "b": want another, Policies[0]`},
		{"one host in two", []Policy{{Name: "p", Hosts: []string{"a.com"}}, {Name: "q", Hosts: []string{"b", "A.com."}}},
			`Policies[1] "q": Hosts[1] = "A.com.": want it in one policy only, Policies[0]`},
		{"one suffix in two", []Policy{{Name: "p", Hosts: []string{"*.a.com:80"}}, {Name: "q", Hosts: []string{"*.A.com:80"}}},
			`Hosts[0] = "*.A.com:80": want it in one policy only`},
		{"every host twice", []Policy{{Name: "p", Hosts: []string{"*"}}, {Name: "q", Hosts: []string{"*"}}},
			`Hosts[0] = "*": want it in one policy only`},

		{"negative MaxWait", one(func(p *Policy) { p.MaxWait = -time.Second }), `MaxWait = -1s: want a positive duration`},
		{"negative MaxWaiting", one(func(p *Policy) { p.MaxWaiting = -3 }), `MaxWaiting = -3: want a positive number`},
		{"negative MaxInFlight", one(func(p *Policy) { p.MaxInFlight = -4 }), `MaxInFlight = -4: want a positive number`},
		{"no such answer", one(func(p *Policy) { p.Refusal = 7 }), `Refusal = 7: want RefuseWithError or RefuseWithResponse`},

		{"negative N", one(func(p *Policy) { p.Limits = []limiter.Limit{perSecond, limiter.PerSecond(-1)} }), `Limits[1]: limiter: N`},
		{"zero period", one(func(p *Policy) { p.Limits = []limiter.Limit{{N: 1}} }), `Limits[0]: limiter: Per`},
		{"one limit twice", one(func(p *Policy) { p.Limits = []limiter.Limit{perSecond, limiter.PerSecond(5)} }),
			`Limits[1] = "5/1s": want each limit once, Limits[0] is the same`},

		{"no rule name", rule(func(r *Rule) { r.Name = "" }), `Rules[0].Name is empty: want`},
		{"two rules of one name", one(func(p *Policy) {
			p.Rules = []Rule{{Name: "r", Limit: perSecond}, {Name: "s", Limit: perSecond}, {Name: "r", Limit: perSecond}}
		}), `Rules[2].Name = "r": want another, Rules[0] has this one`},
		{"a rule named like a limit", one(func(p *Policy) {
			p.Limits, p.Rules = []limiter.Limit{perSecond}, []Rule{{Name: "5/1s", Limit: perSecond}}
		}), `Rules[0].Name = "5/1s": want another, Limits[0] has this one`},
		{"a rule without a limit", rule(func(r *Rule) { r.Limit = limiter.Limit{} }), `Rules[0].Limit: limiter: Per is`},
		{"no method", rule(func(r *Rule) { r.Methods = []string{"GET", ""} }), `Rules[0].Methods[1] = "": want one method`},
		{"two methods in one", rule(func(r *Rule) { r.Methods = []string{"GET,POST"} }), `Rules[0].Methods[0] = "GET,POST": want one method`},
		{"a method in lower case", rule(func(r *Rule) { r.Methods = []string{"post"} }), `Rules[0].Methods[0] = "post": want "POST"`},
		{"a path with a method", rule(func(r *Rule) { r.Path = "GET /x" }), `Rules[0].Path = "GET /x": want a path alone`},
		{"a path with a host", rule(func(r *Rule) { r.Path = "a.com/x" }), `Rules[0].Path = "a.com/x": want a path that begins with "/"`},
		{"half a wildcard", rule(func(r *Rule) { r.Path = "/{x" }), `Rules[0].Path = "/{x": segment "{x": want`},
		{"text before a wildcard", rule(func(r *Rule) { r.Path = "/v{x}" }), `segment "v{x}": want a wildcard to fill it`},
		{"a wildcard without a name", rule(func(r *Rule) { r.Path = "/{}" }), `segment "{}": want a Go identifier`},
		{"the rest in the middle", rule(func(r *Rule) { r.Path = "/{x...}/a" }), `segment "{x...}": want it at the end`},
		{"a wildcard twice", rule(func(r *Rule) { r.Path = "/{x}/{x}" }), `segment "{x}": want each name once`},
		{"a label of two lines", rule(func(r *Rule) { r.Announced = "a\nb" }), `Rules[0].Announced = "a\nb": want the label of a limit, without control characters`},
		{"one label twice", one(func(p *Policy) {
			p.Rules = []Rule{
				{Name: "r", Limit: perSecond, Path: "/", Announced: "core"}, {Name: "s", Limit: perSecond},
				{Name: "t", Limit: perSecond, Path: "/", Announced: "Core"},
			}
		}), `Rules[2].Announced = "Core": want another, Rules[0] has this one for the same requests`},
		{"a percent sign in a name", []Policy{{Name: "100%d"}}, `Policies[0] "100%d": Hosts`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := validatePolicies(tc.policies)
			if err == nil || !strings.HasPrefix(err.Error(), "headway: Policies[") || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got  %v\nwant  … %s …", err, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("got more than the one mistake: %v", err)
			}
		})
	}
}

func TestValidateHostForms(t *testing.T) {
	for pattern, want := range map[string]string{
		"":            "want a host such as",
		"http://x":    "'/' is not allowed; want a bare host",
		"x.com/path":  "'/' is not allowed; want a bare host",
		"user@x.com":  "'@' is not allowed; want a bare host",
		"x.com?q":     "'?' is not allowed; want a bare host",
		"a b":         "' ' is not allowed; want a bare host",
		"*.":          "a part between dots is empty",
		".":           "a part between dots is empty",
		".x.com":      "a part between dots is empty",
		"a..b":        "a part between dots is empty",
		"*..x":        "a part between dots is empty",
		":80":         "a part between dots is empty",
		"a*b":         `"*" can only stand alone`,
		"*x.com":      `"*" can only stand alone`,
		"x.*":         `"*" can only stand alone`,
		"*.*.com":     `"*" can only stand alone`,
		"**":          `"*" can only stand alone`,
		"x.com:":      `port "": want 1 to 65535`,
		"x.com:0":     `port "0": want 1 to 65535`,
		"x.com:080":   `port "080": want 1 to 65535`,
		"x.com:65536": `port "65536": want 1 to 65535`,
		"x.com:http":  `port "http": want 1 to 65535`,
		"*:+80":       `port "+80": want 1 to 65535`,
		"[::1]:99999": `port "99999": want 1 to 65535`,
		"::1":         "want an IPv6 address in brackets",
		"[::1":        "want an IPv6 address", // closed nowhere
		"[1.2.3.4]":   "want an IPv6 address between the brackets",
		"[x]":         "want an IPv6 address between the brackets",
		"[::1]x":      "want an IPv6 address between the brackets",
		"*.[::1]":     "want an IPv6 address in brackets",
		"a,b":         "',' is not allowed; want letters",
		"*.[x]":       "'[' is not allowed; want letters",
		"a%41":        "'%' is not allowed; want letters",
		"x.com\x00":   `'\x00' is not allowed; want letters`,
	} {
		err := validatePolicies([]Policy{{Name: "p", Hosts: []string{pattern}}})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "Hosts[0] = ") {
			t.Errorf("%q: got %v, want … %s …", pattern, err, want)
		}
	}
}

func TestValidatePoliciesReportsAllAtOnce(t *testing.T) {
	err := validatePolicies([]Policy{
		{Name: "p", Hosts: []string{"http://x", "*."}, MaxWaiting: -1, Limits: []limiter.Limit{{N: -1}}},
		{Name: "p", Rules: []Rule{{Path: "x", Methods: []string{"", "get"}, Limit: perSecond}}},
	})
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		t.Fatalf("got %v, want joined errors", err)
	}
	// Of the first: two hosts, MaxWaiting, N and Per. Of the second: its name,
	// its hosts, the rule's name, two methods, the path.
	if got := len(joined.Unwrap()); got != 11 {
		t.Errorf("got %d mistakes, want 11:\n%v", got, err)
	}
	if errors.Unwrap(joined.Unwrap()[0]) == nil {
		t.Error("the cause cannot be reached")
	}
}

// A table is only ever made of what validatePolicies passes; whatever that is,
// every host pattern is in it.
func FuzzHostPattern(f *testing.F) {
	for _, s := range []string{"a.com", "*.a.com:80", "*", "[::1]:8080", "A.com.", "http://x", "*.", "::1", "bücher.example"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, pattern string) {
		policies := []Policy{{Name: "p", Hosts: []string{pattern}}}
		if validatePolicies(policies) != nil {
			return
		}
		host := strings.Replace(pattern, "*", "x", 1)
		if key, i := compile(policies, nil, new(desk.Desk)).hosts.Lookup("https", host); i != 0 {
			t.Errorf("%q: its own host %q (%q) is not found", pattern, host, key)
		}
	})
}
