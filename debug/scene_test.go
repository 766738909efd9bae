package debug

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/breaker"
	"github.com/headway-go/headway/limiter"
)

// base responds as the path says: /429 refuses with a Retry-After, /learn announces what
// is left (/learn?5 that it is 5), /chat of two limits, one of which is the requests of a
// minute, /reset fails, /hang responds at the end of the test, all else is a 200.
type base struct {
	over  chan struct{}
	pause string // in seconds; empty for 40
}

func (b base) RoundTrip(req *http.Request) (*http.Response, error) {
	resp := &http.Response{
		StatusCode: http.StatusOK, Header: make(http.Header), Body: io.NopCloser(strings.NewReader("")), Request: req,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	switch req.URL.Path {
	case "/429":
		resp.StatusCode = http.StatusTooManyRequests
		resp.Header.Set("Retry-After", cmp.Or(b.pause, "40"))
	case "/learn":
		resp.Header.Set("X-RateLimit-Limit", "5000")
		resp.Header.Set("X-RateLimit-Remaining", cmp.Or(req.URL.RawQuery, "1234"))
		resp.Header.Set("X-RateLimit-Reset", fmt.Sprint(time.Now().Add(31*time.Minute).Unix()))
		resp.Header.Set("X-RateLimit-Resource", "core")
	case "/chat":
		resp.Header.Set("RateLimit-Policy", `"requests";q=100;w=60, "day";q=2000;w=86400`)
		resp.Header.Set("RateLimit", `"requests";r=40;t=30, "day";r=1500;t=50000`)
	case "/reset":
		return nil, errors.New("connection <reset> by peer")
	case "/hang":
		select {
		case <-b.over:
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
	}
	return resp, nil
}

// A scene is a Transport in a state with much to show.
type scene struct {
	*headway.Transport
	recent  Recent
	waiting sync.WaitGroup
	leave   context.CancelFunc
}

const (
	secret  = "tenant-secret-7" // a key
	hostile = `<script>alert(1)</script>"><img src=x onerror=alert(2)>` + "\r\ndata: x"
)

// newScene makes one. end ends it: those in line and in flight go.
func newScene(t *testing.T) *scene { return newSceneOf(t, "") }

// newSceneOf is newScene with a pause of so many seconds: a browser may take its
// time to start.
func newSceneOf(t *testing.T, pause string) *scene {
	t.Helper()
	s := new(scene)
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	s.leave = func() { cancel(); close(over); s.waiting.Wait() }
	byTenant := headway.ByHeader("X-Tenant")
	tr, err := headway.NewTransport(base{over, pause}, headway.Config{Observer: &s.recent, Policies: []headway.Policy{
		{
			Name: "payments", Hosts: []string{"api.payments.test"}, MaxInFlight: 8, MaxWaiting: 40,
			Limits: []limiter.Limit{limiter.PerSecond(25), limiter.PerHour(10_000)},
		},
		{
			Name: "mail", Hosts: []string{"*.mail.test"},
			Rules: []headway.Rule{
				{Name: "tenant", Limit: limiter.PerMinute(60), Key: byTenant},
				{Name: "send", Methods: []string{"POST"}, Path: "/send", Limit: limiter.Every(2 * time.Second)},
			},
		},
		{Hosts: []string{"api.forge.test"}, Limits: []limiter.Limit{{N: 100, Per: time.Minute, Law: limiter.Bucket, Burst: 20}}},
		{
			Name: "tokens", Hosts: []string{"api.model.test"}, MaxWait: headway.NoWait,
			Rules: []headway.Rule{{
				Name: "tokens per day", Cost: headway.FromCallCost,
				Limit: limiter.Limit{N: 1_000_000, Law: limiter.Calendar, Unit: limiter.Day},
			}},
		},
		{Name: "search", Hosts: []string{"*.search.test"}, Shared: true, Breaker: &breaker.Config{Failures: 2, OpenFor: 30 * time.Second}},
		{Name: "chat", Hosts: []string{"api.chat.test"}, Rules: []headway.Rule{{Name: "calls", Limit: limiter.PerMinute(600), Announced: "requests"}}},
		{Name: hostile, Hosts: []string{"hostile.test"}, Limits: []limiter.Limit{limiter.PerMinute(2)}, MaxWait: headway.NoWait},
	}})
	if err != nil {
		t.Fatal(err)
	}
	s.Transport = tr
	for range 8 { // takes all slots
		s.later(ctx, t, "GET", "https://api.payments.test/hang")
	}
	s.settle(t, func(h headway.HostStatus) bool { return h.Policy == "payments" && h.InFlight == 8 })
	for range 32 {
		s.later(ctx, t, "GET", "https://api.payments.test/hang")
	}
	s.settle(t, func(h headway.HostStatus) bool { return h.Policy == "payments" && h.Waiting == 32 })
	for left := 1236; left >= 1234; left-- {
		s.now(t, "GET", fmt.Sprint("https://api.forge.test/learn?", left), "", 0)
	}
	for _, path := range []string{"chat", "", ""} {
		s.now(t, "GET", "https://api.chat.test/"+path, "", 0)
	}
	s.now(t, "POST", "https://eu.mail.test/send", "tenant-3", 0)
	s.now(t, "GET", "https://eu.mail.test/429", secret, 0)
	for range 4 {
		s.later(ctx, t, "POST", "https://eu.mail.test/send")
	}
	s.settle(t, func(h headway.HostStatus) bool { return h.Policy == "mail" && h.Waiting == 4 })
	s.now(t, "GET", "https://api.model.test/", "", 940_000)
	q, err := tr.Quota("api.model.test", "tokens per day", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Spend(context.Background(), 75_000); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		s.now(t, "GET", "https://api.model.test/", "", 1_000)
	}
	for range 4 {
		s.now(t, "GET", "https://hostile.test/", "", 0)
	}
	s.now(t, "GET", "https://us.search.test/", "", 0)
	for range 5 { // two fail, three are refused
		s.now(t, "GET", "https://eu.search.test/reset", "", 0)
	}
	return s
}

// now sends a request and drops its response or error.
func (s *scene) now(t *testing.T, method, url, tenant string, cost int64) {
	t.Helper()
	s.send(t.Context(), t, method, url, tenant, cost)
}

// later sends a request that may wait.
func (s *scene) later(ctx context.Context, t *testing.T, method, url string) {
	s.waiting.Go(func() { s.send(ctx, t, method, url, secret, 0) })
}

func (s *scene) send(ctx context.Context, t *testing.T, method, url, tenant string, cost int64) {
	req, err := http.NewRequestWithContext(headway.WithCall(ctx, headway.Call{Cost: cost}), method, url, nil)
	if err != nil {
		t.Error(err)
		return
	}
	req.Header.Set("X-Tenant", tenant)
	resp, err := s.RoundTrip(req)
	switch {
	case err == nil:
		resp.Body.Close()
	case !errors.Is(err, headway.ErrThrottled) && !errors.Is(err, headway.ErrOpen) && req.URL.Path != "/reset" && !errors.Is(err, context.Canceled):
		t.Error(err)
	}
}

// settle waits until a host is as ok says.
func (s *scene) settle(t *testing.T, ok func(headway.HostStatus) bool) {
	t.Helper()
	for begin := time.Now(); ; {
		for _, h := range s.Snapshot() {
			if ok(h) {
				return
			}
		}
		if time.Since(begin) > 20*time.Second {
			t.Fatalf("not settled: %+v", s.Snapshot())
		}
	}
}

// pictured gives h a past: five minutes of looking, with a minute away.
func pictured(h *handler, now time.Time) {
	var past history
	for i := range 300 {
		if i > 120 && i < 180 {
			continue
		}
		n := 0
		if i > 60 {
			n = int(25 + 20*math.Sin(float64(i)/20) + float64(i%7))
		}
		past = past.with(now.Add(time.Duration(i-300)*time.Second), []headway.HostStatus{
			{Policy: "payments", Host: "api.payments.test", Waiting: n},
			{Policy: "mail", Host: "eu.mail.test", Waiting: max(0, i-250) / 10},
		})
	}
	h.last = &sight{history: past}
}
