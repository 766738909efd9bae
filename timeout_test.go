package headway_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/breaker"
	"github.com/headway-go/headway/limiter"
)

// hasty is broken under AttemptTimeout.
func hasty(c breaker.Config, timeout time.Duration, list ...limiter.Limit) []headway.Policy {
	policies := broken(c, list...)
	policies[0].AttemptTimeout = timeout
	return policies
}

// A hang becomes a failure that counts: its time begins with the start, and the
// caller gets a bare net.Error that is no deadline of his.
func TestAttemptTimeoutCountsFromTheStart(t *testing.T) {
	play(t, hasty(breaker.Config{Failures: 2}, 3*time.Second, limiter.Limit{N: 1, Per: 2 * time.Second}), func(s *scene) {
		s.base.answer = script
		a, b := s.send("hang", ask{body: newBody("x")}), s.send("hang", ask{})
		c := s.send("C", ask{call: headway.Call{MaxWait: time.Minute}})
		s.until(5 * time.Second)
		s.wantOK(c)
		for i, p := range []*trip{a, b} {
			e, isNet := p.err.(net.Error)
			if !isNet || !e.Timeout() || errors.Is(p.err, context.DeadlineExceeded) || p.after != time.Duration(3+2*i)*time.Second {
				t.Errorf("%d: got %#v after %v, want a net.Error after %v", i, p.err, p.after, time.Duration(3+2*i)*time.Second)
			}
			var outer net.Error = &url.Error{Op: "Get", URL: "u", Err: p.err}
			if !outer.Timeout() {
				t.Errorf("%d: the error of an http.Client is no timeout", i)
			}
		}
		s.wantState(breaker.Closed) // C came in between
		s.until(6 * time.Second)
		last := s.send("hang", ask{})
		s.until(9 * time.Second)
		s.wantState(breaker.Open)
		s.wantOpen(s.send("D", ask{}), 0, 5*time.Second, last.err)
	})
}

// The caller's own cancel and deadline stay what they are, and are ignored.
func TestAttemptTimeoutLeavesTheCallersContext(t *testing.T) {
	play(t, hasty(breaker.Config{Failures: 1}, 3*time.Second), func(s *scene) {
		s.base.answer = script
		canceled := s.send("hang", ask{})
		deadline, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		late := s.send("hang", ask{ctx: deadline})
		s.until(time.Second)
		canceled.cancel()
		s.until(5 * time.Second)
		if canceled.err != context.Canceled || canceled.after != time.Second {
			t.Errorf("canceled: got %v after %v", canceled.err, canceled.after)
		}
		if late.err != context.DeadlineExceeded || late.after != 2*time.Second {
			t.Errorf("deadline: got %v after %v", late.err, late.after)
		}
		s.wantState(breaker.Closed)
	})
}

// A slow body is not cut.
func TestAttemptTimeoutSparesTheBody(t *testing.T) {
	play(t, hasty(breaker.Config{}, time.Second), func(s *scene) {
		s.base.answer = func(req *http.Request) (*http.Response, error) {
			time.Sleep(time.Second - 1)
			resp := ok(req)
			resp.Body = io.NopCloser(slowly{req.Context()})
			return resp, nil
		}
		p := s.send("A", ask{})
		s.until(time.Second)
		if text, err := io.ReadAll(p.resp.Body); len(text) != 10 || err != nil {
			t.Errorf("read %d bytes in %v, then %v; want all 10", len(text), time.Since(s.base.epoch), err)
		}
	})
}

// slowly is a body of a byte a minute, ten times, unless its context ends.
type slowly struct{ ctx context.Context }

func (b slowly) Read(p []byte) (int, error) {
	time.Sleep(time.Minute)
	if b.ctx.Err() != nil {
		return 0, context.Cause(b.ctx)
	}
	p[0] = 'x'
	if time.Now().Minute() == 10 {
		return 1, io.EOF
	}
	return 1, nil
}

// Over real sockets: the response is that to the caller's request, and the
// context that the base got ends with the body and not before.
func TestAttemptTimeoutEndsWithTheBody(t *testing.T) {
	rest := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "be")
		w.(http.Flusher).Flush()
		<-rest
		io.WriteString(w, "gun")
	}))
	defer server.Close()
	var inner context.Context
	tr := newTransport(t, roundTripper(func(req *http.Request) (*http.Response, error) {
		inner = req.Context()
		return http.DefaultTransport.RoundTrip(req)
	}), headway.Config{Policies: []headway.Policy{{Hosts: []string{"*"}, AttemptTimeout: time.Minute, MaxInFlight: 1}}})
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	req, err := http.NewRequest("GET", server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	if resp.Request != req {
		t.Error("the response is that to another request")
	}
	if inner.Err() != nil {
		t.Error("the context has ended before the body")
	}
	close(rest)
	text, err := io.ReadAll(resp.Body)
	if string(text) != "begun" || err != nil {
		t.Errorf("read %q, %v; want all of it", text, err)
	}
	if inner.Err() == nil {
		t.Error("the body has ended, its context has not")
	}
	wantIdle(t, tr)
}

// Whatever way a request ends, its context does too: nothing is left behind.
func TestAttemptTimeoutLeavesNothing(t *testing.T) {
	for _, name := range []string{"200", "429", "fail", "hang", "panic", "exit", "body"} {
		t.Run(name, func(t *testing.T) {
			var inner context.Context
			play(t, hasty(breaker.Config{}, time.Second), func(s *scene) {
				s.base.answer = func(req *http.Request) (*http.Response, error) {
					inner = req.Context()
					resp, err := script(req)
					if name == "body" {
						resp.Body = newBody("x")
					}
					return resp, err
				}
				s.all.Go(func() {
					defer func() { recover() }()
					if resp, err := s.RoundTrip(ask{}.request(name)); err == nil {
						resp.Body.Close()
					}
				})
				s.all.Wait()
				if inner.Err() == nil {
					t.Error("the context has not ended")
				}
				wantIdle(t, s.Transport)
			})
		})
	}
}

// An answer that comes too late is closed.
func TestAttemptTimeoutClosesALateResponse(t *testing.T) {
	late := newBody("x")
	play(t, hasty(breaker.Config{}, time.Second), func(s *scene) {
		s.base.answer = func(req *http.Request) (*http.Response, error) {
			time.Sleep(2 * time.Second) // it does not heed the context
			resp := ok(req)
			resp.Body = late
			return resp, nil
		}
		p := s.send("A", ask{})
		s.until(2 * time.Second)
		if e, isNet := p.err.(net.Error); !isNet || !e.Timeout() || late.closed.Load() != 1 {
			t.Errorf("got %v, closed %d times; want a timeout, and the body closed", p.err, late.closed.Load())
		}
		synctest.Wait()
	})
}
