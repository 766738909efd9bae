package retry_test

import (
	"errors"
	"io"
	"net/http"
	"runtime"
	"testing"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/headwaytest"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/retry"
)

// Config.Retry decides instead of the rules, once for each attempt that was sent.
//
// Public reports: stripe/stripe-ruby 431 (a 409 of a request in flight is not
// retried), PyGithub/PyGithub 2387 (only the caller knows what is worth a retry).
func TestTheCallerDecides(t *testing.T) {
	all := func(d retry.Decision) func(*http.Request, *http.Response, error) retry.Decision {
		return func(*http.Request, *http.Response, error) retry.Decision { return d }
	}
	for name, tt := range map[string]struct {
		decide func(*http.Request, *http.Response, error) retry.Decision
		script func(int, *http.Request) (*http.Response, error)
		method string
		want   string
	}{
		"default":           {all(retry.Default), responses(503, 200), "GET", "0@0s 1@500ms"},
		"default, final":    {all(retry.Default), responses(409), "GET", "0@0s"},
		"yes to a 409":      {all(retry.Yes), responses(409), "POST", "0@0s 1@500ms 2@1.5s"},
		"yes to a 503":      {all(retry.Yes), responses(503), "POST", "0@0s 1@500ms 2@1.5s"},
		"yes to a success":  {all(retry.Yes), responses(200), "GET", "0@0s 1@500ms 2@1.5s"},
		"yes to an error":   {all(retry.Yes), responses(0), "POST", "0@0s 1@500ms 2@1.5s"},
		"yes to a NoRetry":  {all(retry.Yes), once(429, "X-Should-Retry", "false"), "GET", "0@0s 1@500ms 2@1.5s"},
		"no to a 429":       {all(retry.No), responses(429), "GET", "0@0s"},
		"no to an error":    {all(retry.No), responses(0), "GET", "0@0s"},
		"no to ShouldRetry": {all(retry.No), once(409, "X-Should-Retry", "true"), "GET", "0@0s"},
		"an unknown value":  {all(99), responses(503, 200), "GET", "0@0s 1@500ms"},
		"one status of many": {func(_ *http.Request, resp *http.Response, _ error) retry.Decision {
			if resp != nil && resp.StatusCode == 409 {
				return retry.Yes
			}
			return retry.Default
		}, responses(409, 404), "POST", "0@0s 1@500ms"},
	} {
		t.Run(name, func(t *testing.T) {
			called := 0
			cfg := retry.Config{MaxRetries: 2, Retry: func(req *http.Request, resp *http.Response, err error) retry.Decision {
				called++
				if (resp == nil) == (err == nil) || req.URL.String() != itemsURL || resp != nil && resp.Request != req {
					t.Errorf("it was shown %v, %v, %v, want the caller's request and one of them", req, resp, err)
				}
				return tt.decide(req, resp, err)
			}}
			play(t, headway.Policy{}, cfg, func(s *scene) {
				s.script = tt.script
				req := request(s.Context(), tt.method, "hello")
				s.send(req)
				s.wantSends(tt.want)
				if called != s.sends() {
					s.Errorf("called %d times for %d attempts", called, s.sends())
				}
			})
		})
	}
}

// The other bounds still apply to a Yes, and the function is not called for a request
// that was refused locally.
func TestYesIsBound(t *testing.T) {
	called := 0
	yes := func(*http.Request, *http.Response, error) retry.Decision { called++; return retry.Yes }
	play(t, headway.Policy{}, retry.Config{Retry: yes}, func(s *scene) {
		s.script = responses(409)
		req := request(s.Context(), "POST", "hello")
		req.GetBody = nil // its body cannot be sent again
		s.wantStatus(req, 409)
		s.wantSends("0@0s")
	})
	play(t, headway.Policy{}, retry.Config{Retry: yes, MaxElapsed: time.Second}, func(s *scene) {
		s.script = responses(409)
		s.wantStatus(request(s.Context(), "POST", ""), 409)
		s.wantSends("0@0s 1@500ms")
	})
	play(t, headway.Policy{}, retry.Config{Retry: yes, Budget: retry.Budget{Start: 1, PerSecond: retry.None, PerRequest: retry.None}}, func(s *scene) {
		s.script = responses(409)
		s.wantStatus(request(s.Context(), "POST", ""), 409)
		s.wantSends("0@0s 1@500ms")
	})
	called = 0
	for _, mode := range []headway.RefusalMode{headway.RefuseWithError, headway.RefuseWithResponse} {
		play(t, headway.Policy{Limits: []limiter.Limit{limiter.Blocked()}, Refusal: mode}, retry.Config{Retry: yes}, func(s *scene) {
			s.send(request(s.Context(), "GET", ""))
			s.wantSends("")
		})
	}
	if called != 0 {
		t.Errorf("it was called %d times for local refusals", called)
	}
}

// A panic or a Goexit in the function, at any attempt, affects its own call only: the
// response is closed, and no slot is kept.
func TestDecisionPanics(t *testing.T) {
	for _, end := range []func(){func() { panic("in Retry") }, runtime.Goexit} {
		for _, at := range []int{0, 1} {
			called := 0
			cfg := retry.Config{Retry: func(*http.Request, *http.Response, error) retry.Decision {
				if called++; called == at+1 {
					end()
				}
				return retry.Yes
			}}
			play(t, headway.Policy{MaxInFlight: 1}, cfg, func(s *scene) {
				var bodies []*body
				s.script = func(int, *http.Request) (*http.Response, error) {
					bodies = append(bodies, newBody("no"))
					return response(409, bodies[len(bodies)-1]), nil
				}
				done := make(chan struct{})
				go func() {
					defer close(done)
					defer func() { recover() }()
					s.RoundTrip(request(s.Context(), "GET", ""))
				}()
				<-done
				if len(bodies) != at+1 {
					s.Errorf("got %d attempts, want %d", len(bodies), at+1)
				}
				for i, b := range bodies {
					if b.closed.Load() == 0 {
						s.Errorf("the response to attempt %d is open", i)
					}
				}
				headwaytest.AssertIdle(s, s.next)
				called = 100
				s.script = responses(404)
			})
		}
	}
}

// The function runs without locks, so that it may send a request to the same host.
func TestDecisionMaySend(t *testing.T) {
	var s *scene
	called := 0
	cfg := retry.Config{Retry: func(req *http.Request, _ *http.Response, _ error) retry.Decision {
		if called++; called == 1 {
			s.wantStatus(request(req.Context(), "GET", ""), 200)
		}
		return retry.Default
	}}
	play(t, headway.Policy{}, cfg, func(sc *scene) {
		s = sc
		s.script = responses(503, 200)
		s.wantStatus(request(s.Context(), "GET", ""), 200)
		s.wantSends("0@0s 0@0s 1@500ms")
	})
}

// A retry whose response the function ends by No is not a success, and returns nothing
// to the budget.
func TestNoIsNoSuccess(t *testing.T) {
	n := 0
	cfg := retry.Config{Budget: retry.Budget{Start: 5, PerSecond: retry.None, PerRequest: retry.None}, Retry: func(*http.Request, *http.Response, error) retry.Decision {
		if n++; n == 2 {
			return retry.No
		}
		return retry.Default
	}}
	play(t, headway.Policy{}, cfg, func(s *scene) {
		s.script = responses(503)
		s.wantStatus(request(s.Context(), "GET", ""), 503)
		if left := s.Left(request(s.Context(), "GET", "")); left != 4_000_000_000 {
			s.Errorf("%d billionths are left, want 4 of 5 retries", left)
		}
	})
}

// A body that was read before the function decides is still complete for the caller.
func TestDecisionLeavesTheBody(t *testing.T) {
	cfg := retry.Config{Retry: func(*http.Request, *http.Response, error) retry.Decision { return retry.No }}
	play(t, headway.Policy{}, cfg, func(s *scene) {
		s.script = func(int, *http.Request) (*http.Response, error) { return response(429, newBody("hello")), nil }
		resp, err := s.RoundTrip(request(s.Context(), "GET", ""))
		if err != nil {
			s.Fatal(err)
		}
		defer resp.Body.Close()
		if text, err := io.ReadAll(resp.Body); string(text) != "hello" || err != nil {
			s.Errorf("got %q, %v, want all of it", text, errors.Join(err))
		}
	})
}
