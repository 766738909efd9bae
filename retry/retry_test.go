package retry_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/retry"
)

// timeout is the error of a base whose own timeout has passed.
type timeout struct{}

func (timeout) Error() string { return "timeout awaiting response headers" }
func (timeout) Timeout() bool { return true }

// Which outcomes are retried, for which requests. C39: a POST that was cut off is not
// retried, unless it has an idempotency key. C40: the method is that of the request,
// so that it is known without a response.
func TestWhatIsSentAgain(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	noRoute := &net.OpError{Op: "dial", Err: errors.New("no route to host")}
	for name, tt := range map[string]struct {
		status int
		err    error
		header []string
		// which of the requests below are sent again
		get, post, keyed, marked bool
	}{
		"200":                     {status: 200},
		"301":                     {status: 301, header: []string{"Location", "%zz"}},
		"400":                     {status: 400},
		"403":                     {status: 403},
		"403 that is a throttle":  {status: 403, header: []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "946684801", "X-GitHub-Request-Id", "1"}, get: true, post: true, keyed: true, marked: true},
		"404":                     {status: 404},
		"408":                     {status: 408, get: true, keyed: true, marked: true},
		"425":                     {status: 425, get: true, keyed: true, marked: true},
		"429":                     {status: 429, get: true, post: true, keyed: true, marked: true},
		"429 not to be retried":   {status: 429, header: []string{"X-Should-Retry", "false"}},
		"500":                     {status: 500, get: true, keyed: true, marked: true},
		"501":                     {status: 501},
		"503":                     {status: 503, get: true, keyed: true, marked: true},
		"503 that is a throttle":  {status: 503, header: []string{"Retry-After", "1"}, get: true, keyed: true, marked: true},
		"505":                     {status: 505},
		"529":                     {status: 529, get: true, post: true, keyed: true, marked: true},
		"409":                     {status: 409},
		"409 to be retried":       {status: 409, header: []string{"Stripe-Should-Retry", "true"}, get: true, post: true, keyed: true, marked: true},
		"409, OpenAI's":           {status: 409, header: []string{"x-should-retry", "true"}, get: true, post: true, keyed: true, marked: true},
		"409 both ways":           {status: 409, header: []string{"Stripe-Should-Retry", "true", "x-should-retry", "false"}},
		"400 to be retried":       {status: 400, header: []string{"x-should-retry", "true"}, get: true, post: true, keyed: true, marked: true},
		"500 to be retried":       {status: 500, header: []string{"Stripe-Should-Retry", "true"}, get: true, post: true, keyed: true, marked: true},
		"501 to be retried":       {status: 501, header: []string{"Stripe-Should-Retry", "true"}, get: true, post: true, keyed: true, marked: true},
		"500 not to be retried":   {status: 500, header: []string{"Stripe-Should-Retry", "false"}},
		"200 to be retried":       {status: 200, header: []string{"x-should-retry", "true"}},
		"301 to be retried":       {status: 301, header: []string{"x-should-retry", "true", "Location", "/"}},
		"409 with another word":   {status: 409, header: []string{"x-should-retry", "yes"}},
		"a broken connection":     {err: errBroken, get: true, keyed: true, marked: true},
		"a reset connection":      {err: syscall.ECONNRESET, get: true, keyed: true, marked: true},
		"a timeout of the base's": {err: timeout{}, get: true, keyed: true, marked: true},
		"a timeout by a context":  {err: context.DeadlineExceeded, get: true, keyed: true, marked: true},
		"a refused connection":    {err: refused, get: true, post: true, keyed: true, marked: true},
		"a refusal alone":         {err: syscall.ECONNREFUSED, get: true, post: true, keyed: true, marked: true},
		"no route":                {err: noRoute, get: true, post: true, keyed: true, marked: true},
		"no such name":            {err: &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", IsNotFound: true}}},
		"a name server away":      {err: &net.OpError{Op: "dial", Err: &net.DNSError{Err: "server misbehaving", IsTemporary: true}}, get: true, post: true, keyed: true, marked: true},
		"no trust":                {err: &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}},
		"no trust in the issuer":  {err: x509.UnknownAuthorityError{}},
		"another host's":          {err: x509.HostnameError{Certificate: new(x509.Certificate)}},
		"an old certificate":      {err: x509.CertificateInvalidError{Cert: new(x509.Certificate)}},
		"another throttle":        {err: &headway.ThrottledError{}},
		"a limiter below":         {err: fmt.Errorf("below: %w", &limiter.Refusal{})},
		"another key":             {err: &headway.KeyError{}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, r := range []struct {
				method string
				ctx    context.Context
				header []string
				again  bool
			}{
				{method: "GET", again: tt.get},
				{method: "HEAD", again: tt.get},
				{method: "OPTIONS", again: tt.get},
				{method: "TRACE", again: tt.get},
				{method: "PUT", again: tt.get},
				{method: "DELETE", again: tt.get},
				{method: "", again: tt.get},
				{method: "POST", again: tt.post},
				{method: "PATCH", again: tt.post},
				{method: "POST", header: []string{"Idempotency-Key", "k"}, again: tt.keyed},
				{method: "POST", header: []string{"X-Idempotency-Key", "k"}, again: tt.keyed},
				{method: "POST", ctx: retry.Idempotent(context.Background()), again: tt.marked},
			} {
				play(t, headway.Policy{}, retry.Config{MaxRetries: 1}, func(s *scene) {
					s.script = func(int, *http.Request) (*http.Response, error) {
						if tt.err != nil {
							return nil, tt.err
						}
						return response(tt.status, nil, tt.header...), nil
					}
					if r.ctx == nil {
						r.ctx = s.Context()
					}
					req := request(r.ctx, "POST", "hello", r.header...)
					req.Method = r.method
					resp, err := s.send(req)
					want := 1
					if r.again {
						want = 2
					}
					if got := s.sends(); got != want {
						s.Errorf("%s %v: sent %d times, want %d", r.method, r.header, got, want)
					}
					if err != tt.err || err == nil && resp.StatusCode != tt.status {
						s.Errorf("%s: got %v, %v, want what the base says, bare", r.method, resp, err)
					}
				})
			}
		})
	}
}

// A request whose body cannot be rewound, or that cannot be sent at all, is sent once.
func TestWhatIsNeverSentAgain(t *testing.T) {
	play(t, headway.Policy{}, retry.Config{}, func(s *scene) {
		s.script = responses(429, 429, 200)
		req := request(s.Context(), "PUT", "hello")
		req.GetBody = nil
		s.wantStatus(req, 429)
		s.wantSends("0@0s")
		req = request(s.Context(), "PUT", "")
		req.Body = http.NoBody
		req.GetBody = nil
		s.wantStatus(req, 200)
		s.wantSends("0@0s 0@0s 1@500ms")
	})
}

func TestUnsendableIsSentOnce(t *testing.T) {
	play(t, headway.Policy{}, retry.Config{}, func(s *scene) {
		s.script = responses(0)
		for _, u := range []string{"htps://api.test", "https:///x"} {
			req := request(s.Context(), "GET", "")
			req.URL.Scheme, req.URL.Host, _ = strings.Cut(u, "://")
			req.URL.Host, _, _ = strings.Cut(req.URL.Host, "/")
			if _, err := s.send(req); err != errBroken {
				s.Errorf("%s: got %v, want %v", u, err, errBroken)
			}
		}
		s.wantSends("0@0s 0@0s")
	})
}

// C39: a retry has the same key and body.
func TestC39_SameKeyAndBody(t *testing.T) {
	play(t, headway.Policy{}, retry.Config{}, func(s *scene) {
		s.script = func(n int, req *http.Request) (*http.Response, error) {
			text, err := io.ReadAll(req.Body)
			if string(text) != "hello" || err != nil || req.ContentLength != 5 || req.Header.Get("Idempotency-Key") != "k" {
				s.Errorf("attempt %d: got %q of %d, %v, %v", n, text, req.ContentLength, req.Header, err)
			}
			return responses(0, 500, 429, 201)(n, req)
		}
		s.wantStatus(request(s.Context(), "POST", "hello", "Idempotency-Key", "k"), 201)
		s.wantSends("0@0s 1@500ms 2@1.5s 3@3.5s")
	})
}

// Backoff: exponential, capped, with full jitter.
func TestBackoff(t *testing.T) {
	cfg := retry.Config{MaxRetries: 8, MinBackoff: time.Second, MaxBackoff: 10 * time.Second, Budget: retry.Budget{Start: 30}}
	play(t, headway.Policy{}, cfg, func(s *scene) {
		s.script = responses(503)
		s.wantStatus(request(s.Context(), "GET", ""), 503)
		s.wantSends("0@0s 1@1s 2@3s 3@7s 4@15s 5@25s 6@35s 7@45s 8@55s")
	})
	play(t, headway.Policy{}, cfg, func(s *scene) {
		s.SetJitter(0)
		s.script = responses(503)
		s.wantStatus(request(s.Context(), "GET", ""), 503)
		s.wantSends("0@0s 1@0s 2@0s 3@0s 4@0s 5@0s 6@0s 7@0s 8@0s")
	})
	play(t, headway.Policy{}, retry.Config{}, func(s *scene) {
		s.script = responses(503)
		s.wantStatus(request(s.Context(), "GET", ""), 503)
		s.wantSends("0@0s 1@500ms 2@1.5s 3@3.5s 4@7.5s")
	})
}

// The default jitter is spread over the whole backoff.
func TestBackoffJitter(t *testing.T) {
	next := newTransport(t, roundTripper(func(*http.Request) (*http.Response, error) { return nil, nil }), headway.Policy{})
	rt, err := retry.New(next, retry.Config{})
	if err != nil {
		t.Fatal(err)
	}
	low, high := 0, 0
	for range 1000 {
		switch d := rt.Backoff(3); { // 4 s at most
		case d < 0 || d >= 4*time.Second:
			t.Fatalf("got %v, want less than 4 s", d)
		case d < 400*time.Millisecond:
			low++
		case d >= 3600*time.Millisecond:
			high++
		}
	}
	if low < 50 || high < 50 { // 100 each on average: nine standard deviations off would be 15
		t.Errorf("of 1000, %d are below a tenth and %d above nine", low, high)
	}
}

// A server's time is a lower bound, and jitter only adds to it.
func TestServerTimeIsAFloor(t *testing.T) {
	for name, tt := range map[string]struct {
		status int
		header []string
		jitter float64
		want   string
	}{
		"429":               {429, []string{"Retry-After", "7"}, 1, "0@0s 1@7.5s"},
		"503":               {503, []string{"Retry-After", "7"}, 1, "0@0s 1@7.5s"},
		"without jitter":    {429, []string{"Retry-After", "7"}, 0, "0@0s 1@7s"},
		"now":               {429, []string{"Retry-After", "0"}, 0, "0@0s 1@0s"},
		"now, with jitter":  {429, []string{"Retry-After", "0"}, 1, "0@0s 1@500ms"},
		"unreadable":        {429, []string{"Retry-After", "soon"}, 1, "0@0s 1@500ms"},
		"a date":            {503, []string{"Retry-After", "Sat, 01 Jan 2000 00:01:00 GMT"}, 1, "0@0s 1@1m0.5s"},
		"a vendor's header": {429, []string{"Retry-After-Ms", "1500"}, 1, "0@0s 1@2s"},
		"a day":             {429, []string{"Retry-After", "86400"}, 0, "0@0s 1@24h0m0s"},
		"more than a day":   {429, []string{"Retry-After", "86401"}, 0, "0@0s"},
		"absurd":            {429, []string{"Retry-After", "9223372037"}, 0, "0@0s"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, headway.Policy{}, retry.Config{MaxRetries: 1}, func(s *scene) {
				s.SetJitter(tt.jitter)
				s.script = func(n int, req *http.Request) (*http.Response, error) {
					return response(tt.status, nil, tt.header...), nil
				}
				s.wantStatus(request(s.Context(), "GET", ""), tt.status)
				s.wantSends(tt.want)
			})
		})
	}
}

// If the Transport holds the next attempt until the server's time, the attempt waits
// there only.
func TestThrottledWaitsInLineOnce(t *testing.T) {
	p := headway.Policy{Limits: []limiter.Limit{limiter.Every(7 * time.Second)}}
	play(t, p, retry.Config{}, func(s *scene) {
		s.script = func(n int, req *http.Request) (*http.Response, error) {
			if n == 0 {
				return response(429, nil, "Retry-After", "7"), nil
			}
			return response(200, nil), nil
		}
		var all sync.WaitGroup
		all.Go(func() { s.wantStatus(request(s.Context(), "GET", ""), 200) })
		time.Sleep(100 * time.Millisecond) // its retry has been in line since 0 s
		all.Go(func() { s.wantStatus(request(s.Context(), "GET", "", "Second", "1"), 200) })
		all.Wait()
		s.wantSends("0@0s 1@7s 0@14s")
	})
	// A limit that has room slightly before that does not make the retry early.
	almost := headway.Policy{Limits: []limiter.Limit{limiter.Every(7*time.Second - 5*time.Millisecond)}}
	play(t, almost, retry.Config{MaxRetries: 1}, func(s *scene) {
		s.script = func(int, *http.Request) (*http.Response, error) { return response(429, nil, "Retry-After", "7"), nil }
		s.wantStatus(request(s.Context(), "GET", ""), 429)
		s.wantSends("0@0s 1@7.5s")
	})
	// The backoff and the time in line run at once.
	play(t, p, retry.Config{}, func(s *scene) {
		s.script = responses(503, 200)
		s.wantStatus(request(s.Context(), "GET", ""), 200)
		s.wantSends("0@0s 1@7s")
	})
}

// C23: retries pass the limiter too.
func TestC23_RetriesPassTheLimiter(t *testing.T) {
	cfg := retry.Config{MaxRetries: 2, Budget: retry.Budget{Start: 30}}
	play(t, headway.Policy{Limits: []limiter.Limit{limiter.PerSecond(5)}}, cfg, func(s *scene) {
		s.script = func(n int, req *http.Request) (*http.Response, error) {
			if headway.AttemptFrom(req.Context()) < 2 {
				return response(500, nil), nil
			}
			return response(200, nil), nil
		}
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() { s.wantStatus(request(s.Context(), "GET", ""), 200) })
		}
		all.Wait()
		if took := time.Since(s.begin); s.sends() != 30 || took != 5*time.Second {
			s.Errorf("%d sends took %v, want 30 in 5 s", s.sends(), took)
		}
	})
}

// C41: if the pause is longer than the time that is left, the response is returned
// immediately.
func TestC41_TooLongAPause(t *testing.T) {
	for name, tt := range map[string]struct {
		policy headway.Policy
		cfg    retry.Config
		within time.Duration // the context's
		after  string        // Retry-After
		want   string
	}{
		"beyond MaxElapsed":        {cfg: retry.Config{MaxElapsed: 30 * time.Second}, after: "100", want: "0@0s"},
		"just beyond it":           {cfg: retry.Config{MaxElapsed: 30 * time.Second}, after: "31", want: "0@0s"},
		"its last instant":         {cfg: retry.Config{MaxElapsed: 30 * time.Second, MaxRetries: 1}, after: "30", want: "0@0s 1@30s"},
		"beyond the deadline":      {within: 30 * time.Second, after: "100", want: "0@0s"},
		"at the deadline":          {within: 30500 * time.Millisecond, after: "30", want: "0@0s"},
		"just before the deadline": {within: 30500*time.Millisecond + 1, after: "30", want: "0@0s 1@30.5s"},
		"unlimited":                {cfg: retry.Config{MaxRetries: retry.Unlimited, MaxElapsed: 30 * time.Second}, after: "10", want: "0@0s 1@10.5s 2@21.5s"},
		"in line": {
			policy: headway.Policy{Limits: []limiter.Limit{limiter.Every(time.Minute)}},
			cfg:    retry.Config{MaxElapsed: 30 * time.Second}, after: "1", want: "0@0s",
		},
		"in line, beyond the deadline": {
			policy: headway.Policy{Limits: []limiter.Limit{limiter.Every(time.Minute)}},
			within: time.Minute, after: "1", want: "0@0s",
		},
		"in line, beyond the wait budget": {
			policy: headway.Policy{Limits: []limiter.Limit{limiter.Every(time.Minute)}, MaxWait: time.Minute - 1},
			after:  "1", want: "0@0s",
		},
		"beyond the wait budget": {policy: headway.Policy{MaxWait: 30*time.Second - 1}, after: "30", want: "0@0s"},
		"just within it":         {policy: headway.Policy{MaxWait: 30 * time.Second}, cfg: retry.Config{MaxRetries: 1}, after: "30", want: "0@0s 1@30.5s"},
		"in line, just within it": {
			policy: headway.Policy{Limits: []limiter.Limit{limiter.Every(time.Minute)}, MaxWait: time.Minute},
			cfg:    retry.Config{MaxRetries: 1}, after: "1", want: "0@0s 1@1m0s",
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, tt.policy, tt.cfg, func(s *scene) {
				ctx := s.Context()
				if tt.within > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tt.within)
					defer cancel()
				}
				var last *body
				s.script = func(n int, req *http.Request) (*http.Response, error) {
					last = newBody("wait")
					return response(429, last, "Retry-After", tt.after), nil
				}
				resp, err := s.RoundTrip(request(ctx, "GET", ""))
				if err != nil || resp.StatusCode != 429 || resp.Header.Get("Retry-After") != tt.after {
					s.Fatalf("got %v, %v, want the response", resp, err)
				}
				if last.closed.Load() != 0 {
					s.Error("it is closed, want it open")
				}
				if text, err := io.ReadAll(resp.Body); string(text) != "wait" || err != nil {
					s.Errorf("got %q, %v, want it complete", text, err)
				}
				s.wantSends(tt.want)
			})
		})
	}
}

// When a retry enters the line, the slot of the previous attempt has been released.
func TestMaxInFlightOne(t *testing.T) {
	play(t, headway.Policy{MaxInFlight: 1, MaxWait: headway.NoWait}, retry.Config{}, func(s *scene) {
		s.script = func(n int, req *http.Request) (*http.Response, error) {
			if n < 2 {
				return response(500, newBody("no")), nil
			}
			return response(200, newBody("yes")), nil
		}
		s.wantStatus(request(s.Context(), "GET", ""), 200)
		s.wantSends("0@0s 1@500ms 2@1.5s")
	})
}

// S16: every attempt counts, or only the first.
func TestS16_FirstAttemptOnly(t *testing.T) {
	for _, first := range []bool{false, true} {
		rule := headway.Rule{Name: "r", Limit: limiter.PerMinute(10), FirstAttemptOnly: first}
		play(t, headway.Policy{Rules: []headway.Rule{rule}}, retry.Config{}, func(s *scene) {
			s.script = responses(500, 500, 500, 200)
			s.wantStatus(request(s.Context(), "GET", ""), 200)
			want := int64(6)
			if first {
				want = 9
			}
			if got := s.next.Snapshot()[0].Rules[0].Remaining; got != want {
				s.Errorf("FirstAttemptOnly %t: got %d left, want %d", first, got, want)
			}
		})
	}
}

// Events say which attempt they are about.
func TestEventsCarryTheAttempt(t *testing.T) {
	var got []int
	base := roundTripper(func(*http.Request) (*http.Response, error) { return response(500, nil), nil })
	next, err := headway.NewTransport(base, headway.Config{
		Policies: []headway.Policy{{Hosts: []string{"*"}, Limits: []limiter.Limit{limiter.PerMinute(9)}}},
		Observer: headway.ObserverFunc(func(_ context.Context, e headway.Event) { got = append(got, e.Attempt) }),
	})
	if err != nil {
		t.Fatal(err)
	}
	rt, err := retry.New(next, retry.Config{MaxRetries: 2})
	if err != nil {
		t.Fatal(err)
	}
	rt.SetJitter(0)
	if _, err := rt.RoundTrip(request(t.Context(), "GET", "")); err != nil {
		t.Fatal(err)
	}
	if len(got) != 3 || got[0] != 0 || got[1] != 1 || got[2] != 2 {
		t.Errorf("got attempts %v, want 0, 1, 2", got)
	}
}

// The Transport's own refusal is not retried.
func TestLocalRefusalsAreNotRetried(t *testing.T) {
	full := headway.Policy{Limits: []limiter.Limit{limiter.PerHour(1)}, MaxWait: headway.NoWait}
	play(t, full, retry.Config{}, func(s *scene) {
		s.wantStatus(request(s.Context(), "GET", ""), 200)
		before := s.Left(request(s.Context(), "GET", ""))
		_, err := s.get(s.Context())
		if after := s.Left(request(s.Context(), "GET", "")); after != before {
			s.Errorf("the budget went from %d to %d by a refusal", before, after)
		}
		if _, bare := err.(*headway.ThrottledError); !bare {
			s.Errorf("got %v, want a bare refusal", err)
		}
		s.wantSends("0@0s")
	})
	full.Refusal = headway.RefuseWithResponse
	play(t, full, retry.Config{}, func(s *scene) {
		s.wantStatus(request(s.Context(), "GET", ""), 200)
		before := s.Left(request(s.Context(), "GET", ""))
		s.wantStatus(request(s.Context(), "GET", ""), 429)
		s.wantSends("0@0s")
		if after := s.Left(request(s.Context(), "GET", "")); after != before {
			s.Errorf("the budget went from %d to %d by a refusal", before, after)
		}
	})
	key := headway.Policy{Rules: []headway.Rule{{Name: "r", Limit: limiter.PerHour(1), Key: headway.FromCallKey}}}
	play(t, key, retry.Config{}, func(s *scene) {
		_, err := s.get(s.Context())
		if _, bare := err.(*headway.KeyError); !bare {
			s.Errorf("got %v, want a bare *KeyError", err)
		}
	})
}

// A redirect is followed by the client above, and does not count as an attempt. C33:
// its body is sent again, also after a retry.
func TestC33_RedirectAfterARetry(t *testing.T) {
	play(t, headway.Policy{}, retry.Config{}, func(s *scene) {
		s.script = func(n int, req *http.Request) (*http.Response, error) {
			if text, err := io.ReadAll(req.Body); string(text) != "hello" || err != nil {
				s.Errorf("send %d: got %q, %v", n, text, err)
			}
			switch n {
			case 1:
				return response(307, nil, "Location", "https://other.test/"), nil
			case 3:
				return response(200, nil), nil
			}
			return response(429, nil), nil
		}
		c := &http.Client{Transport: s.Transport}
		resp, err := c.Do(request(s.Context(), "POST", "hello"))
		if err != nil {
			s.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 200 || resp.Request.URL.Host != "other.test" {
			s.Errorf("got %v of %v", resp.StatusCode, resp.Request.URL)
		}
		s.wantSends("0@0s 1@500ms 0@500ms 1@1s")
	})
}

// Random scripts never cause more attempts than allowed, or an early one.
func TestNeverTooOftenNeverEarly(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 0))
		cfg := retry.Config{MaxRetries: 1 + r.IntN(5), MaxElapsed: time.Duration(1+r.IntN(20)) * time.Second}
		p := headway.Policy{Limits: []limiter.Limit{{N: 1 + r.Int64N(3), Per: time.Second}}, MaxWait: time.Duration(1+r.IntN(3)) * time.Second}
		play(t, p, cfg, func(s *scene) {
			s.SetJitter(r.Float64())
			var earliest time.Duration
			s.script = func(n int, req *http.Request) (*http.Response, error) {
				now := time.Since(s.begin)
				if now < earliest {
					s.Errorf("seed %d: send %d at %v, want no earlier than %v", seed, n, now, earliest)
				}
				if now > cfg.MaxElapsed {
					s.Errorf("seed %d: send %d at %v, want none after %v", seed, n, now, cfg.MaxElapsed)
				}
				if n > cfg.MaxRetries {
					s.Errorf("seed %d: send %d, want no more than %d", seed, n, cfg.MaxRetries)
				}
				time.Sleep(time.Duration(r.IntN(500)) * time.Millisecond)
				switch r.IntN(5) {
				case 0:
					return nil, errBroken
				case 1:
					return response(500, nil), nil
				case 2:
					return response(200, nil), nil
				}
				after := r.IntN(4)
				earliest = time.Since(s.begin) + time.Duration(after)*time.Second
				return response(429, nil, "Retry-After", string(rune('0'+after))), nil
			}
			s.get(s.Context())
		})
	}
}
