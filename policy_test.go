package headway_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
)

func newRequest(t *testing.T, method, url string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func TestByHeader(t *testing.T) {
	key := headway.ByHeader("x-tenant")
	for _, tc := range []struct {
		name   string
		header http.Header
		want   string
		fails  bool
	}{
		{"one value", http.Header{"X-Tenant": {"a"}}, "a", false},
		{"the first of two", http.Header{"X-Tenant": {"a", "b"}}, "a", false},
		{"no such header", http.Header{"X-Other": {"a"}}, "", true},
		{"no headers", nil, "", true},
		{"an empty value is none", http.Header{"X-Tenant": {""}}, "", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			req := newRequest(t, "GET", "https://example.com/")
			req.Header = tc.header
			got, err := key(req)
			if got != tc.want || (err != nil) != tc.fails {
				t.Errorf("got %q, %v, want %q, an error: %v", got, err, tc.want, tc.fails)
			}
		})
	}
}

func TestFromCall(t *testing.T) {
	req := newRequest(t, "GET", "https://example.com/")
	if key, err := headway.FromCallKey(req); key != "" || err == nil {
		t.Errorf("key without a Call: got %q, %v, want an error", key, err)
	}
	if cost, err := headway.FromCallCost(req); cost != 1 || err != nil {
		t.Errorf("cost without a Call: got %d, %v, want 1", cost, err)
	}
	req = req.WithContext(headway.WithCall(req.Context(), headway.Call{Key: "k", Cost: 7}))
	if key, err := headway.FromCallKey(req); key != "k" || err != nil {
		t.Errorf("key: got %q, %v, want k", key, err)
	}
	if cost, err := headway.FromCallCost(req); cost != 7 || err != nil {
		t.Errorf("cost: got %d, %v, want 7", cost, err)
	}
}

// A Rule takes the functions as they are, and a function of the caller's own.
var _ = []headway.Rule{
	{Key: headway.ByHeader("X"), Cost: headway.FromCallCost},
	{Key: headway.FromCallKey, Cost: func(*http.Request) (int64, error) { return 0, errors.New("none") }},
}

// Rules that the caller changes afterwards are its own: nothing changes until SetPolicies.
func TestPoliciesAreCopied(t *testing.T) {
	rule := headway.Rule{Name: "r", Limit: limiter.PerMinute(1), Key: headway.FromCallKey, Methods: []string{"GET"}}
	p := []headway.Policy{{Hosts: []string{"*"}, Rules: []headway.Rule{rule}, MaxWait: headway.NoWait}}
	play(t, p, func(s *scene) {
		p[0].Rules[0] = headway.Rule{Name: "x", FirstAttemptOnly: true, Cost: func(*http.Request) (int64, error) { return 0, nil }}
		rule.Methods[0] = "PUT"
		s.wantOK(s.send("A", key("a")))
		s.wantRefused(s.send("B", key("a")), limiter.ReasonLimit, time.Minute)
		s.wantOK(s.send("C", key("b")))
	})
}
