package retry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/retry"
)

// pause makes the next request to the scene's host start in d at the earliest.
func (s *scene) pause(d time.Duration) {
	s.Helper()
	err := s.next.SetPolicies([]headway.Policy{{
		Name: "p", Hosts: []string{"*"}, MaxWait: s.maxWait(),
		Rules: []headway.Rule{{Name: "r", Limit: limiter.Limit{N: 1, Per: d, Law: limiter.Bucket}}},
	}})
	if err != nil {
		s.Error(err)
	}
	q, err := s.next.Quota("api.test", "r", "")
	if err != nil {
		s.Fatal(err)
	}
	left, err := q.Remaining(context.Background())
	if err != nil {
		s.Error(err)
	}
	if err := q.Spend(context.Background(), max(left, 0)); err != nil {
		s.Error(err)
	}
}

func (s *scene) maxWait() time.Duration {
	d, err := s.next.WaitBudget(request(context.Background(), "GET", ""))
	if err != nil {
		s.Error(err)
	}
	if d == limiter.Never {
		return 0
	}
	return d
}

// When no retry is due, the last response is returned, open and complete.
func TestLastResponseIsOpen(t *testing.T) {
	play(t, headway.Policy{}, retry.Config{MaxRetries: 2}, func(s *scene) {
		var bodies []*body
		s.script = func(n int, req *http.Request) (*http.Response, error) {
			bodies = append(bodies, newBody(fmt.Sprint("failure ", n)))
			return response(503, bodies[n]), nil
		}
		req := request(s.Context(), "GET", "")
		resp, err := s.RoundTrip(req)
		if err != nil || resp.StatusCode != 503 || resp.Request != req {
			s.Fatalf("got %+v, %v, want the last response, to this request", resp, err)
		}
		if bodies[0].closed.Load() != 1 || bodies[1].closed.Load() != 1 || bodies[2].closed.Load() != 0 {
			s.Error("want the first two closed once, the last open")
		}
		if text, err := io.ReadAll(resp.Body); string(text) != "failure 2" || err != nil {
			s.Errorf("got %q, %v, want all of the last", text, err)
		}
	})
}

// The last error is returned unwrapped.
func TestLastErrorIsBare(t *testing.T) {
	play(t, headway.Policy{}, retry.Config{MaxRetries: 2}, func(s *scene) {
		s.script = func(n int, req *http.Request) (*http.Response, error) {
			if n < 2 {
				return response(503, nil), nil
			}
			return nil, timeout{}
		}
		if _, err := s.get(s.Context()); err != (timeout{}) {
			s.Errorf("got %v, want the error of the base", err)
		}
	})
}

// S78: if a request failed and its retry is refused, the error wraps both errors. It
// is returned immediately.
func TestS78_FailedThenRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		policy   headway.Policy
		deadline time.Duration
		timeout  bool
		text     string
	}{
		"by the wait budget": {
			policy: headway.Policy{Name: "p", Limits: []limiter.Limit{limiter.Every(time.Minute)}, MaxWait: time.Second},
			text:   `retry: ended after attempt 1: headway: policy "p" throttled a request to api.test by rule "spaced 1/1m": the limit has no room yet, could start in 1m0s; before that, the request failed: read: unexpected EOF`,
		},
		"by the deadline": {
			policy:   headway.Policy{Name: "p", Limits: []limiter.Limit{limiter.Every(time.Minute)}},
			deadline: 30 * time.Second, timeout: true,
			text: `retry: ended after attempt 1: headway: policy "p" throttled a request to api.test by rule "spaced 1/1m": the limit has no room yet, could start in 1m0s, after the caller's deadline; before that, the request failed: read: unexpected EOF`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, tt.policy, retry.Config{}, func(s *scene) {
				s.script = responses(0)
				ctx := s.Context()
				if tt.deadline > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tt.deadline)
					defer cancel()
				}
				_, err := s.get(ctx)
				var refused *headway.ThrottledError
				if !errors.As(err, &refused) || refused.RetryAfter != time.Minute || !errors.Is(err, errBroken) {
					s.Fatalf("got %v, want both errors", err)
				}
				ended, isError := err.(*retry.Error)
				if !isError || ended.Attempts != 1 || ended.StatusCode != 0 || ended.Header != nil || ended.Timeout() != tt.timeout || errors.Is(err, context.DeadlineExceeded) != tt.timeout {
					s.Errorf("got %#v, Timeout %t", ended, ended.Timeout())
				}
				if err.Error() != tt.text {
					s.Errorf("got  %s\nwant %s", err, tt.text)
				}
				if took := time.Since(s.begin); took != 0 {
					s.Errorf("took %v, want the error immediately", took)
				}
				s.wantSends("0@0s")
			})
		})
	}
}

// S78 for a retry that has no key.
func TestS78_FailedThenNoKey(t *testing.T) {
	cause := errors.New("no key for a retry")
	p := headway.Policy{Rules: []headway.Rule{{Name: "r", Limit: limiter.PerSecond(9), Key: func(req *http.Request) (string, error) {
		if headway.AttemptFrom(req.Context()) > 0 {
			return "", cause
		}
		return "k", nil
	}}}}
	play(t, p, retry.Config{}, func(s *scene) {
		s.script = responses(0)
		_, err := s.get(s.Context())
		if !errors.Is(err, headway.ErrKey) || !errors.Is(err, cause) || !errors.Is(err, errBroken) {
			s.Errorf("got %v, want all of them", err)
		}
	})
	play(t, p, retry.Config{}, func(s *scene) {
		s.script = responses(503)
		s.wantStatus(request(s.Context(), "GET", ""), 503) // the response is kept
	})
}

// C5 and S78: a pause that begins while a retry is due refuses it. The error describes
// the failure before that, whose body is closed.
func TestC5_RefusedAfterDraining(t *testing.T) {
	play(t, headway.Policy{MaxWait: time.Second}, retry.Config{}, func(s *scene) {
		b := newBody("overloaded")
		s.script = func(n int, req *http.Request) (*http.Response, error) {
			time.AfterFunc(100*time.Millisecond, func() { s.pause(time.Hour) })
			return response(503, b, "X-Request-Id", "17"), nil
		}
		_, err := s.get(s.Context())
		var refused *headway.ThrottledError
		var ended *retry.Error
		if !errors.As(err, &refused) || !errors.As(err, &ended) || refused.RetryAfter != time.Hour-400*time.Millisecond {
			s.Fatalf("got %v, want a refusal with its time", err)
		}
		if ended.StatusCode != 503 || ended.Header.Get("X-Request-Id") != "17" || ended.Cause != nil || ended.Attempts != 1 {
			s.Errorf("got %#v, want status and headers", ended)
		}
		if want := "could start in 59m59.6s; before that, the response was 503 Service Unavailable"; !strings.HasSuffix(err.Error(), want) {
			s.Errorf("got %q, want it to end with %q", err, want)
		}
		if b.closed.Load() != 1 {
			s.Error("the response is open")
		}
		s.wantSends("0@0s")
	})
}

// C6: a pause of 30 minutes exceeds a MaxElapsed of 15: the retry is refused
// immediately, with both numbers.
func TestC6_BothNumbers(t *testing.T) {
	play(t, headway.Policy{}, retry.Config{MaxElapsed: 15 * time.Minute}, func(s *scene) {
		s.script = func(n int, req *http.Request) (*http.Response, error) {
			if n == 0 {
				time.AfterFunc(500*time.Millisecond-1, func() { s.pause(30 * time.Minute) })
				return response(503, nil), nil
			}
			return response(200, nil), nil
		}
		_, err := s.get(s.Context())
		if err == nil || !strings.Contains(err.Error(), "MaxElapsed 15m0s") || !strings.Contains(err.Error(), "could start in 30m0s") {
			s.Errorf("got %v, want both numbers", err)
		}
		if te, ok := err.(*retry.Error); !ok || te.Timeout() || errors.Is(err, context.DeadlineExceeded) {
			s.Errorf("got %v, want it to be no timeout", err)
		}
		if took := time.Since(s.begin); took != 500*time.Millisecond {
			s.Errorf("took %v, want the error when the retry is due", took)
		}
		// Retries are not switched off.
		s.pause(time.Nanosecond)
		time.Sleep(500 * time.Millisecond)
		s.script = responses(200, 503, 200)
		s.wantStatus(request(s.Context(), "GET", ""), 200)
		s.wantSends("0@0s 0@1s 1@1.5s")
	})
}

// MaxElapsed also ends a wait whose length could not be predicted.
func TestMaxElapsedBoundsTheLine(t *testing.T) {
	play(t, headway.Policy{MaxInFlight: 1}, retry.Config{MaxElapsed: 10 * time.Second}, func(s *scene) {
		release := make(chan struct{})
		s.script = func(n int, req *http.Request) (*http.Response, error) {
			if req.Header.Get("Long") != "" {
				<-release
				return response(200, nil), nil
			}
			return response(503, newBody("no")), nil
		}
		go func() {
			time.Sleep(100 * time.Millisecond) // the other request has released its slot
			s.wantStatus(request(s.Context(), "GET", "", "Long", "1"), 200)
		}()
		_, err := s.get(s.Context())
		if !errors.Is(err, headway.ErrThrottled) || time.Since(s.begin) != 10*time.Second {
			s.Errorf("got %v after %v, want a refusal after MaxElapsed", err, time.Since(s.begin))
		}
		close(release)
		synctest.Wait()
	})
}

// If the context ends during a backoff, in line or in flight, the call ends
// immediately, and the error wraps both errors.
func TestContextEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		policy headway.Policy
		hang   bool
		sends  string
	}{
		"in a backoff": {sends: "0@0s"},
		"in line":      {policy: headway.Policy{Limits: []limiter.Limit{limiter.Every(time.Minute)}}, sends: "0@0s"},
		"in flight":    {hang: true, sends: "0@0s 1@500ms"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, tt.policy, retry.Config{MinBackoff: map[bool]time.Duration{false: time.Minute, true: 500 * time.Millisecond}[tt.hang]}, func(s *scene) {
				ctx, cancel := context.WithCancel(s.Context())
				time.AfterFunc(time.Second, cancel)
				s.script = func(n int, req *http.Request) (*http.Response, error) {
					if n == 1 {
						<-req.Context().Done()
						return nil, req.Context().Err()
					}
					return response(503, nil, "X-Request-Id", "17"), nil
				}
				_, err := s.get(ctx)
				ended, isError := err.(*retry.Error)
				if !isError || !errors.Is(err, context.Canceled) || ended.StatusCode != 503 || ended.Header.Get("X-Request-Id") != "17" || ended.Timeout() {
					s.Errorf("got %v, want the context's error and the failure", err)
				}
				if took := time.Since(s.begin); took != time.Second {
					s.Errorf("took %v, want 1s", took)
				}
				s.wantSends(tt.sends)
			})
		})
	}
	// If it ends before or in the first attempt, its error is returned unwrapped.
	play(t, headway.Policy{}, retry.Config{}, func(s *scene) {
		ctx, cancel := context.WithCancel(s.Context())
		s.script = func(n int, req *http.Request) (*http.Response, error) {
			cancel()
			return nil, req.Context().Err()
		}
		for range 2 {
			if _, err := s.get(ctx); err != context.Canceled {
				s.Errorf("got %v, want the context's error, bare", err)
			}
		}
		s.wantSends("0@0s")
	})
}

func TestGetBodyFails(t *testing.T) {
	play(t, headway.Policy{}, retry.Config{}, func(s *scene) {
		s.script = responses(429)
		want := errors.New("gone")
		req := request(s.Context(), "POST", "hello")
		req.GetBody = func() (io.ReadCloser, error) { return nil, want }
		_, err := s.send(req)
		var ended *retry.Error
		if !errors.Is(err, want) || !errors.As(err, &ended) || ended.StatusCode != 429 || ended.Attempts != 1 {
			s.Errorf("got %v, want the error of GetBody and the failure", err)
		}
		s.wantSends("0@0s")
	})
}

// Draining is bounded, in bytes and in time.
func TestDrainingIsBounded(t *testing.T) {
	play(t, headway.Policy{}, retry.Config{}, func(s *scene) {
		b := newBody(strings.Repeat("x", 1<<20))
		s.script = func(n int, req *http.Request) (*http.Response, error) {
			if n == 0 {
				return response(503, b), nil
			}
			return response(200, nil), nil
		}
		s.wantStatus(request(s.Context(), "GET", ""), 200)
		if left := b.Reader.(*strings.Reader).Len(); left != 1<<20-4096 || b.closed.Load() != 1 {
			s.Errorf("%d bytes are left, closed %d times, want 4096 read, and closed", left, b.closed.Load())
		}
	})
	play(t, headway.Policy{}, retry.Config{}, func(s *scene) {
		r, w := io.Pipe() // nothing is written to it
		s.script = func(n int, req *http.Request) (*http.Response, error) {
			if n == 0 {
				return response(503, r), nil
			}
			return response(200, nil), nil
		}
		s.wantStatus(request(s.Context(), "GET", ""), 200)
		s.wantSends("0@0s 1@1s") // half a second each for the body and the backoff
		if _, err := w.Write([]byte("x")); err != io.ErrClosedPipe {
			s.Errorf("got %v, want the body closed", err)
		}
	})
}

// A local response ends the retrying as a refusal does.
func TestRefusalResponseEndsIt(t *testing.T) {
	play(t, headway.Policy{Refusal: headway.RefuseWithResponse, Limits: []limiter.Limit{limiter.PerMinute(1)}, MaxWait: time.Second}, retry.Config{}, func(s *scene) {
		s.script = responses(0)
		resp, err := s.get(s.Context())
		if err != nil || resp.StatusCode != 429 || resp.Header.Get("Headway-Refused") != "limit" {
			s.Errorf("got %v, %v, want the local response", resp, err)
		}
		s.wantSends("0@0s")
	})
}

// After a panic or a Goexit in an attempt, nothing is open and no request is in line.
func TestPanics(t *testing.T) {
	for _, end := range []func(){func() { panic("base") }, runtime.Goexit} {
		play(t, headway.Policy{MaxInFlight: 1}, retry.Config{}, func(s *scene) {
			b := newBody("no")
			s.script = func(n int, req *http.Request) (*http.Response, error) {
				if n == 1 {
					end()
				}
				return response(503, b), nil
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				defer func() { recover() }()
				s.get(s.Context())
			}()
			<-done
			if b.closed.Load() != 1 {
				s.Errorf("the response was closed %d times, want once", b.closed.Load())
			}
			s.wantSends("0@0s 1@500ms")
		})
	}
}
