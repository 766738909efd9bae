package retry_test

import (
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/retry"
)

// A look is the part of a request that must not change.
type look struct {
	req     http.Request
	header  http.Header
	url     url.URL
	getBody uintptr
}

func lookAt(req *http.Request) look {
	l := look{req: *req, header: req.Header.Clone(), url: *req.URL, getBody: reflect.ValueOf(req.GetBody).Pointer()}
	l.req.GetBody = nil
	return l
}

// The contract of a RoundTripper holds however a call ends: the request is unchanged,
// also for a concurrent reader under -race; each of its bodies is closed; and either
// a response or an error is returned.
func TestContract(t *testing.T) {
	type script = func(int, *http.Request) (*http.Response, error)
	both := func(int, *http.Request) (*http.Response, error) { return response(503, nil), errBroken }
	neither := func(int, *http.Request) (*http.Response, error) { return nil, nil }
	for name, tt := range map[string]struct {
		policy headway.Policy
		script script
		sends  int
	}{
		"success":              {script: responses(200), sends: 1},
		"success later":        {script: responses(503, 429, 0, 200), sends: 4},
		"failures":             {script: responses(503), sends: 5},
		"errors":               {script: responses(0), sends: 5},
		"not found":            {script: responses(404), sends: 1},
		"not found later":      {script: responses(503, 404), sends: 2},
		"both":                 {script: both, sends: 5},
		"neither":              {script: neither, sends: 5},
		"refused at once":      {policy: headway.Policy{Limits: []limiter.Limit{limiter.Blocked()}}, sends: 0},
		"refused later":        {policy: headway.Policy{Limits: []limiter.Limit{limiter.PerHour(1)}, MaxWait: headway.NoWait}, script: responses(0), sends: 1},
		"refused with a reply": {policy: headway.Policy{Limits: []limiter.Limit{limiter.PerHour(1)}, MaxWait: headway.NoWait, Refusal: headway.RefuseWithResponse}, script: responses(0), sends: 1},
		"no key": {policy: headway.Policy{Rules: []headway.Rule{{
			Name: "r", Limit: limiter.PerSecond(1), Key: headway.FromCallKey,
		}}}, sends: 0},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, tt.policy, retry.Config{}, func(s *scene) {
				s.script = tt.script
				if s.script == nil {
					s.script = responses(200)
				}
				var bodies []*body
				fresh := func() (io.ReadCloser, error) {
					b := newBody("hello")
					bodies = append(bodies, b)
					return b, nil
				}
				req := request(s.Context(), "PUT", "hello", "X", "1")
				req.GetBody = fresh
				req.Body, _ = fresh()
				first := req.Body
				was := lookAt(req)
				stop := make(chan struct{})
				var reader sync.WaitGroup
				reader.Go(func() {
					for {
						select {
						case <-stop:
							return
						case <-time.After(time.Millisecond):
							lookAt(req)
						}
					}
				})
				s.send(req)
				close(stop)
				reader.Wait()
				if is := lookAt(req); !reflect.DeepEqual(is, was) || req.Body != first {
					s.Errorf("the request is not as it was:\n%+v\n%+v", is, was)
				}
				for i, b := range bodies {
					if b.closed.Load() == 0 {
						s.Errorf("body %d of %d is not closed", i, len(bodies))
					}
				}
				if got := s.sends(); got != tt.sends {
					s.Errorf("got %d sends, want %d", got, tt.sends)
				}
			})
		})
	}
}

// CloseIdleConnections reaches the base. Giving up on a request does not call it.
func TestCloseIdleConnections(t *testing.T) {
	b := &idleCloser{RoundTripper: roundTripper(func(*http.Request) (*http.Response, error) { return nil, errBroken })}
	rt, err := retry.New(newTransport(t, b, headway.Policy{}), retry.Config{MaxRetries: 1})
	if err != nil {
		t.Fatal(err)
	}
	rt.SetJitter(0)
	if _, err := rt.RoundTrip(request(t.Context(), "GET", "")); err == nil || !strings.Contains(err.Error(), "EOF") {
		t.Errorf("got %v, want %v", err, errBroken)
	}
	if b.closed != 0 {
		t.Error("a failure has closed the connections of others")
	}
	(&http.Client{Transport: rt}).CloseIdleConnections()
	if b.closed != 1 {
		t.Errorf("forwarded %d times, want once", b.closed)
	}
}

type idleCloser struct {
	http.RoundTripper
	closed int
}

func (c *idleCloser) CloseIdleConnections() { c.closed++ }
