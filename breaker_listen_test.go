package headway_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/breaker"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/retryafter"
)

// A dialect that knows nothing, and counts how often it is asked.
type dumb struct{ asked *atomic.Int32 }

func (dumb) Name() string { return "dumb" }

func (d dumb) Read(int, http.Header, time.Time) (retryafter.Signal, bool) {
	d.asked.Add(1)
	return retryafter.Signal{}, false
}

// A throttled probe gives its place back, and the pause holds: the next probe
// waits for it in line, the others are refused with the time until one is possible, and one that does not
// wait is refused by the pause, not by the breaker.
func TestS71_AThrottledProbeWaitsForThePause(t *testing.T) {
	for _, status := range []int{429, 503} {
		play(t, broken(breaker.Config{}), func(s *scene) {
			s.base.answer = inTurn(says(status, "", "Retry-After: 7"))
			s.breaker().Trip(errReset, 0)
			s.until(5 * time.Second)
			s.wantOK(s.send("A", ask{}))
			s.wantState(breaker.HalfOpen)
			s.wantRefused(s.send("X", ask{call: headway.Call{MaxWait: headway.NoWait}}), limiter.ReasonPause, 7*time.Second)
			b := s.send("B", ask{})
			s.wantOpen(s.send("C", ask{}), 0, 7*time.Second+30*time.Second, errReset)
			s.wantStarts("A@5s B@12s")
			s.wantOK(b)
			s.wantState(breaker.Closed)
		})
	}
}

// In a slow start the pause holds before the throttled request makes room.
func TestS60_ThePauseComesBeforeTheRoom(t *testing.T) {
	play(t, broken(breaker.Config{}), func(s *scene) {
		s.base.latency = time.Second
		s.breaker().Trip(errReset, 0)
		s.until(5 * time.Second)
		s.send("probe", ask{})
		s.until(6 * time.Second)
		s.base.answer = inTurn(says(429, "", "Retry-After: 10"))
		s.sendAll(ask{}, "A", "B")
		s.wantStarts("probe@5s A@6s B@17s")
	})
}

// Requests that a pause sets apart from the others still wait in front of their gate.
func TestSlowStartHoldsThePausedOnesToo(t *testing.T) {
	policies := broken(breaker.Config{})
	policies[0].Rules = tenants()[0].Rules
	play(t, policies, func(s *scene) {
		s.base.latency = time.Second
		s.breaker().Trip(errReset, 0)
		s.until(5 * time.Second)
		s.send("probe", key("a"))
		s.until(6 * time.Second)
		s.base.answer = inTurn(says(429, "", "Retry-After: 10"))
		s.sendAll(key("a"), "A", "B")
		s.sendAll(key("b"), "C", "D")
		// D waits for C, until that has its answer.
		s.wantStarts("probe@5s A@6s C@7s D@8s B@17s")
	})
}

// An open breaker comes before a pause: no request waits for a service that is down,
// and nothing is spent. The probe waits for the pause.
func TestS70_OpenComesBeforeAPause(t *testing.T) {
	play(t, broken(breaker.Config{}, limiter.PerMinute(9)), func(s *scene) {
		s.base.answer = inTurn(says(429, "", "Retry-After: 60"))
		s.send("A", ask{})
		b := s.send("B", ask{})
		s.breaker().Trip(errReset, 0)
		synctest.Wait()
		s.wantOpen(b, 0, 5*time.Second, errReset)
		s.wantOpen(s.send("C", ask{}), 0, 5*time.Second, errReset)
		if d, err := s.Delay(ask{}.request("x")); d != time.Minute || err != nil {
			t.Errorf("Delay is %v, %v; want that of the pause, which is longer", d, err)
		}
		if left := s.Snapshot()[0].Rules[0].Remaining; left != 8 {
			t.Errorf("%d left, want 8", left)
		}
		s.until(5 * time.Second)
		d := s.send("D", ask{})
		s.wantOpen(s.send("E", ask{}), 0, 55*time.Second+30*time.Second, errReset)
		s.wantStarts("A@0s D@1m0s")
		s.wantOK(d)
		s.wantState(breaker.Closed)
	})
}

// A 503 with a Retry-After is ignored, whatever the policy listens to; where it
// reads that header it is a pause besides. One without is a failure.
func TestS71_A503ThrottlesOrFails(t *testing.T) {
	var asked atomic.Int32
	for _, tc := range []struct {
		dialects []retryafter.Dialect
		pause    time.Duration
	}{
		{nil, time.Second},
		{[]retryafter.Dialect{retryafter.None}, 0},
		{[]retryafter.Dialect{dumb{&asked}}, 0},
	} {
		policies := broken(breaker.Config{}, limiter.PerSecond(1000))
		policies[0].Server.Dialects = tc.dialects
		play(t, policies, func(s *scene) {
			var want strings.Builder
			for i := range 5 {
				s.base.answer = says(503, "", "Retry-After: 1")
				s.send("A", ask{})
				fmt.Fprintf(&want, "A@%v ", time.Duration(i)*tc.pause)
				s.until(time.Duration(i+1) * tc.pause)
			}
			s.wantStarts(want.String())
			s.base.answer = says(503, "")
			for range 5 {
				s.wantState(breaker.Closed)
				s.send("B", ask{})
				s.all.Wait() // a pause ends gently
			}
			s.wantState(breaker.Open)
		})
	}
}

// Where only the body tells that a refusal throttles, the breaker knows, and the
// caller reads all of the body.
func TestS71_WhatTheBodyAnnounces(t *testing.T) {
	long := strings.Repeat(" ", 6<<10)
	for _, tc := range []struct {
		name   string
		status int
		body   string
		header string
		kind   string
		want   breaker.State
		next   time.Duration
	}{
		{"S3 slows down", 503, "<Error><Code>SlowDown</Code></Error>" + long, "Server: AmazonS3", "application/xml", breaker.HalfOpen, time.Second},
		{"S3 is down", 503, "<Error><Code>ServiceUnavailable</Code></Error>" + long, "Server: AmazonS3", "application/xml", breaker.Open, 10 * time.Second},
		{"GitHub's secondary limit", 403, `{"message":"You have exceeded a secondary rate limit."}` + long, "X-Github-Request-Id: 1", "application/json", breaker.HalfOpen, time.Minute},
		{"GitHub forbids", 403, `{"message":"Must have admin rights."}` + long, "X-Github-Request-Id: 1", "application/json", breaker.Closed, 0},
		{"C11 quota exhausted", 429, `{"error":{"code":"insufficient_quota"}}` + long, "Openai-Version: 2020-10-01", "application/json", breaker.HalfOpen, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			policies := broken(breaker.Config{})
			policies[0].AttemptTimeout, policies[0].MaxInFlight = 2*time.Second, 1
			play(t, policies, func(s *scene) {
				var sent context.Context
				s.base.answer = func(req *http.Request) (*http.Response, error) {
					sent = req.Context()
					resp, err := says(tc.status, tc.body, tc.header, "Content-Type: "+tc.kind)(req)
					resp.Body = struct {
						io.Reader
						io.Closer
					}{untilEnd{sent, resp.Body}, resp.Body}
					return resp, err
				}
				s.breaker().Trip(errReset, 0)
				s.until(5 * time.Second)
				p := s.send("A", ask{})
				s.wantState(tc.want)
				s.base.answer = nil
				s.until(8 * time.Second) // longer than an attempt may take
				if n := s.Snapshot()[0].InFlight; n != 1 {
					t.Errorf("%d in flight, want the slot held until the body ends", n)
				}
				text, err := io.ReadAll(p.resp.Body)
				if string(text) != tc.body || err != nil {
					t.Errorf("read %d bytes, %v; want %d", len(text), err, len(tc.body))
				}
				if sent.Err() == nil {
					t.Error("the attempt's context is left")
				}
				wantIdle(t, s.Transport)
				if tc.want == breaker.Open {
					s.until(15 * time.Second)
				}
				s.send("B", ask{})
				s.wantStarts(fmt.Sprintf("A@5s B@%v", max(8*time.Second, 5*time.Second+tc.next)))
				s.wantState(breaker.Closed)
			})
		})
	}
}

// untilEnd reads until the request's context ends, as net/http does.
type untilEnd struct {
	ctx context.Context
	io.Reader
}

func (u untilEnd) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.Reader.Read(p)
}

// A response is read once, for everything that needs it.
func TestAResponseIsReadOnce(t *testing.T) {
	for _, observer := range []headway.Observer{nil, headway.ObserverFunc(func(context.Context, headway.Event) {})} {
		var asked atomic.Int32
		policies := broken(breaker.Config{})
		policies[0].Server.Dialects = []retryafter.Dialect{retryafter.RFC9110, dumb{&asked}}
		playConfig(t, headway.Config{Policies: policies, Observer: observer}, func(s *scene) {
			s.base.answer = script
			for i, name := range []string{"200", "500", "429", "503", "404"} {
				s.wantOK(s.send(name, ask{}))
				if n := asked.Load(); n != int32(i+1) {
					t.Fatalf("%s: asked %d times in all, want %d", name, n, i+1)
				}
			}
		})
	}
}

// MaxPause bounds for how long an answer holds a breaker open.
func TestMaxPauseOfABreaker(t *testing.T) {
	policies := broken(breaker.Config{Failures: 1})
	policies[0].Server.MaxPause = time.Hour
	play(t, policies, func(s *scene) {
		s.base.answer = says(500, "", "Retry-After: 7200")
		s.send("A", ask{})
		s.wantOpen(s.send("B", ask{}), 0, time.Hour, nil)
	})
}

// An Observer that panics when it receives a pause harms its request alone: the
// body is closed, slot and probe's place come back, and the pause holds.
func TestS77_APanicInListening(t *testing.T) {
	policies := broken(breaker.Config{})
	policies[0].MaxInFlight = 1
	observer := headway.ObserverFunc(func(_ context.Context, e headway.Event) {
		if e.Kind == headway.EventPause {
			panic("panic in Observe")
		}
	})
	playConfig(t, headway.Config{Policies: policies, Observer: observer}, func(s *scene) {
		b := newBody("x")
		s.base.answer = inTurn(func(req *http.Request) (*http.Response, error) {
			resp, err := asks5(req)
			resp.Body = b
			return resp, err
		})
		s.breaker().Trip(errReset, 0)
		s.until(5 * time.Second)
		s.all.Go(func() {
			defer func() { recover() }()
			s.RoundTrip(ask{}.request("A"))
		})
		synctest.Wait()
		if b.closed.Load() != 1 {
			t.Errorf("the body was closed %d times, want once", b.closed.Load())
		}
		wantIdle(t, s.Transport)
		s.wantState(breaker.HalfOpen)
		s.send("B", ask{})
		s.wantStarts("A@5s B@10s")
		s.wantState(breaker.Closed)
	})
}

// lateEnd is a context that ends between the first two looks at it.
type lateEnd struct {
	context.Context
	looks int
}

func (c *lateEnd) Err() error {
	if c.looks++; c.looks > 1 {
		return context.Canceled
	}
	return nil
}

// A request whose context ends as it starts is not in flight for good.
func TestAnUndoneStartIsNotInFlight(t *testing.T) {
	playConfig(t, headway.Config{Policies: broken(breaker.Config{}), MaxHosts: 1}, func(s *scene) {
		s.send("A", ask{})
		if p := s.send("B", ask{ctx: &lateEnd{Context: context.Background()}}); !errors.Is(p.err, context.Canceled) {
			t.Errorf("got %v, want it canceled", p.err)
		}
		s.send("C", ask{url: "https://other.test/"})
		if all := s.Snapshot(); len(all) != 1 || all[0].Host != "other.test" {
			t.Errorf("got %+v, want the other host alone", all)
		}
	})
}
