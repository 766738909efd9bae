package headway_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/breaker"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/retryafter"
)

// outcome finds out what an answer means to a breaker: half-open with one probe,
// a success closes it, a failure opens it, and what is ignored leaves it so.
func (s *scene) outcome(resp *http.Response, err error) breaker.Outcome {
	s.Helper()
	s.breaker().Reset()
	s.breaker().Trip(nil, 0)
	s.until(time.Since(s.base.epoch) + 5*time.Second)
	s.base.answer = func(req *http.Request) (*http.Response, error) { return resp, err }
	s.send("x", ask{})
	s.all.Wait() // for the end of a pause
	switch s.breaker().State() {
	case breaker.Closed:
		return breaker.Success
	case breaker.Open:
		return breaker.Failure
	}
	return breaker.Ignored
}

// The table in the documentation of Policy.Classify, which holds for a program that does not
// listen too.
func TestClassifyByDefault(t *testing.T) {
	for _, dialects := range [][]retryafter.Dialect{nil, {retryafter.None}} {
		policies := broken(breaker.Config{})
		policies[0].Server.Dialects = dialects
		t.Run(fmt.Sprintf("listens=%t", dialects == nil), func(t *testing.T) { classifyByDefault(t, policies) })
	}
}

func classifyByDefault(t *testing.T, policies []headway.Policy) {
	play(t, policies, func(s *scene) {
		check := func(what string, want breaker.Outcome, resp *http.Response, err error) {
			t.Helper()
			if got := s.outcome(resp, err); got != want {
				t.Errorf("%s: got %v, want %v", what, got, want)
			}
		}
		for status := 100; status < 600; status++ {
			want := breaker.Success
			switch {
			case status == 429, status == 529:
				want = breaker.Ignored
			case status == 408, status >= 500 && status != 501 && status != 505:
				want = breaker.Failure
			}
			check(fmt.Sprint(status), want, &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody}, nil)
		}
		for _, tc := range []struct {
			status int
			header http.Header
			want   breaker.Outcome
		}{
			{503, http.Header{"Retry-After": {"7"}}, breaker.Ignored},
			{503, http.Header{"Retry-After": {"soon"}}, breaker.Failure},
			{502, http.Header{"Retry-After": {"7"}}, breaker.Failure},
			{403, http.Header{"Retry-After": {"7"}, "X-Github-Request-Id": {"1"}, "X-Ratelimit-Remaining": {"0"}}, breaker.Ignored},
		} {
			check(fmt.Sprint(tc.status, tc.header), tc.want, &http.Response{StatusCode: tc.status, Header: tc.header, Body: http.NoBody}, nil)
		}
		for _, tc := range []struct {
			err  error
			want breaker.Outcome
		}{
			{syscall.ECONNREFUSED, breaker.Failure},
			{&net.OpError{Op: "read", Err: syscall.ECONNRESET}, breaker.Failure},
			{&net.DNSError{Err: "no such host", Name: "api.test"}, breaker.Failure},
			{&tls.CertificateVerificationError{Err: errors.New("expired")}, breaker.Failure},
			{io.ErrUnexpectedEOF, breaker.Failure},
			{context.DeadlineExceeded, breaker.Failure}, // not the caller's
			{fmt.Errorf("below: %w", context.Canceled), breaker.Ignored},
			{&headway.ThrottledError{}, breaker.Ignored},
			{&headway.OpenError{}, breaker.Ignored},
			{&headway.KeyError{Err: io.EOF}, breaker.Ignored},
			{&limiter.Refusal{}, breaker.Ignored},
			{nil, breaker.Failure}, // neither a response nor an error
		} {
			check(fmt.Sprint(tc.err), tc.want, nil, tc.err)
		}
	})
}

// A failure's Retry-After holds the breaker open, for a day at most.
func TestClassifyHonoursARetryAfter(t *testing.T) {
	for asked, want := range map[string]time.Duration{"60": time.Minute, "1": 5 * time.Second, "86401": 24 * time.Hour} {
		play(t, broken(breaker.Config{Failures: 1}), func(s *scene) {
			s.base.answer = func(req *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 500, Header: http.Header{"Retry-After": {asked}}, Body: http.NoBody}, nil
			}
			s.send("A", ask{})
			s.wantOpen(s.send("B", ask{}), 0, want, nil)
		})
	}
}

// Policy.Classify replaces the table, and sees the caller's request.
func TestClassifyOfThePolicy(t *testing.T) {
	policies := hasty(breaker.Config{Failures: 1}, time.Minute)
	var seen *http.Request
	policies[0].Classify = func(req *http.Request, resp *http.Response, err error) breaker.Outcome {
		seen = req
		switch {
		case err != nil:
			return breaker.Success
		case resp.StatusCode == 404:
			return breaker.Failure
		}
		return breaker.Ignored
	}
	play(t, policies, func(s *scene) {
		s.base.answer = script
		s.send("fail", ask{})
		s.send("500", ask{})
		s.wantState(breaker.Closed)
		req := ask{}.request("404")
		if _, err := s.RoundTrip(req); err != nil || seen != req {
			t.Errorf("Classify saw another request than the caller's; error %v", err)
		}
		s.wantState(breaker.Open)
		if e := s.send("x", ask{}).err.(*headway.OpenError); e.Err == nil || e.Err.Error() != "headway: the response was 404 Not Found" {
			t.Errorf("got %v, want the status", e.Err)
		}
	})
}

// A panic in Classify harms its request alone: its body is closed.
func TestClassifyPanicLeaksNothing(t *testing.T) {
	policies := broken(breaker.Config{})
	policies[0].MaxInFlight = 1
	policies[0].Classify = func(*http.Request, *http.Response, error) breaker.Outcome { panic("panic in Classify") }
	b := newBody("x")
	tr := newTransport(t, roundTripper(func(req *http.Request) (*http.Response, error) {
		resp := ok(req)
		resp.Body = b
		return resp, nil
	}), headway.Config{Policies: policies})
	func() {
		defer func() { recover() }()
		tr.RoundTrip(ask{}.request("x"))
	}()
	if b.closed.Load() != 1 {
		t.Errorf("the body was closed %d times, want once", b.closed.Load())
	}
	wantIdle(t, tr)
}

// C72 and what it takes to count it: a body that fails after a good status is
// ignored unless it is reported.
func TestC72_AnUnreadableBodyIsIgnoredUnlessReported(t *testing.T) {
	play(t, broken(breaker.Config{Failures: 1}), func(s *scene) {
		s.base.answer = script
		p := s.send("cut", ask{})
		_, err := io.Copy(io.Discard, p.resp.Body)
		if err != errReset {
			t.Fatalf("read %v, want %v", err, errReset)
		}
		s.wantState(breaker.Closed)
		s.breaker().Fail(err, 0)
		s.wantOpen(s.send("x", ask{}), 0, 5*time.Second, errReset)
	})
}

// C73: a ratio with a minimum of calls would never see it.
func TestC73_OneCallAMinuteOpens(t *testing.T) {
	play(t, broken(breaker.Config{Failures: 20}), func(s *scene) {
		s.base.answer = script
		for i := range 20 {
			s.wantState(breaker.Closed)
			s.send("fail", ask{})
			s.until(time.Duration(i+1) * time.Minute)
		}
		s.wantState(breaker.Open)
	})
}

// C74, over real sockets.
func TestC74_RefusedConnectionsAreFailures(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close()
	tr := newTransport(t, nil, headway.Config{Policies: broken(breaker.Config{})})
	client := &http.Client{Transport: tr}
	for range 5 {
		if _, err := client.Get(server.URL); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("got %v, want a refused connection", err)
		}
	}
	_, err := client.Post(server.URL, "text/plain", bytes.NewReader([]byte("x")))
	if !errors.Is(err, headway.ErrOpen) || !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("got %v, want it refused, and why", err)
	}
}

// C75: at the border of a window nothing is forgotten at one blow.
func TestC75_NoForgettingAtAWindowsBorder(t *testing.T) {
	play(t, broken(breaker.Config{Rate: 0.5, Within: time.Minute, MinCalls: 100}), func(s *scene) {
		s.base.quiet = true
		s.base.answer = script
		s.until(59 * time.Second)
		for range 10_000 {
			s.send("200", ask{})
		}
		s.until(61 * time.Second)
		for range 900 {
			s.send("fail", ask{})
		}
		s.wantState(breaker.Closed)
		for range 9_100 {
			s.send("fail", ask{})
		}
		s.wantState(breaker.Open)
	})
}
