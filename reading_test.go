package headway_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/breaker"
	"github.com/headway-go/headway/limiter"
)

// ten answers the first ten requests so, and those after them with 200.
func ten(answer func(*http.Request) (*http.Response, error)) func(*http.Request) (*http.Response, error) {
	var list []func(*http.Request) (*http.Response, error)
	for range 10 {
		list = append(list, answer)
	}
	return inTurn(list...)
}

// grown is when thirteen requests start of which ten are refused without a time.
const grown = "A0@0s A1@1s A2@3s A3@7s A4@15s A5@31s A6@1m3s A7@2m7s A8@4m15s A9@8m31s A10@13m31s A11@13m31.01s A12@13m31.02s"

// A 529 is a throttle, with or without a time: it pauses, and the breaker ignores
// it. As in anthropics/claude-code 3572, where a service answers nothing else for
// minutes, and tombii/better-ccflare 236.
func TestOverloaded(t *testing.T) {
	policies := broken(breaker.Config{Failures: 5}, limiter.PerSecond(100))
	play(t, policies, func(s *scene) {
		s.base.answer = ten(says(529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, "Content-Type: application/json"))
		s.sendAll(ask{method: "POST"}, names("A", 13)...)
		s.wantStarts(grown)
		s.wantState(breaker.Closed)
	})
	play(t, limits(limiter.PerSecond(100)), func(s *scene) {
		s.base.answer = inTurn(says(529, "", "Retry-After: 300"))
		s.sendAll(ask{}, "A", "B")
		s.wantStarts("A@0s B@5m0s")
	})
}

// A refusal without a usable time means a pause that grows, whatever else it says.
// Only an explicit Retry-After: 0 means now: spotify/web-api 542.
func TestNoUsableTime(t *testing.T) {
	for _, lines := range [][]string{
		nil,
		{"X-RateLimit-Limit: 100", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 0"},
		{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 0"},
		{"X-RateLimit-Remaining: -1", "X-RateLimit-Reset: 0"},
		{"X-RateLimit-Limit: -1", "X-RateLimit-Remaining: -1", "X-RateLimit-Reset: 0"}, // openai/openai-dotnet 838
		{"x-ratelimit-limit-tokens: -1", "x-ratelimit-remaining-tokens: -1", "x-ratelimit-reset-tokens: 0"},
		{"X-RateLimit-Reset: 0"},
		{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 946684800"}, // the second in which all begins
		{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: Fri, 31 Dec 1999 23:00:00 GMT"},
		{`RateLimit: "a";r=0;t=0`},
		{"RateLimit-Remaining: 0", "RateLimit-Reset: 0"},
	} {
		t.Run(fmt.Sprint(lines), func(t *testing.T) {
			for _, learn := range []headway.LearnMode{headway.LearnLower, headway.LearnOff} {
				policies := limits(limiter.PerSecond(100))
				policies[0].Server.Learn = learn
				play(t, policies, func(s *scene) {
					s.base.answer = ten(says(429, "", lines...))
					s.sendAll(ask{}, names("A", 13)...)
					s.wantStarts(grown)
				})
			}
		})
	}
	// apache/apisix 9964: 503, and the reset is 0 once nothing is left.
	play(t, limits(limiter.PerSecond(100)), func(s *scene) {
		s.base.answer = ten(says(503, "", "X-RateLimit-Limit: 2", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 0"))
		s.sendAll(ask{}, names("A", 10)...)
		s.wantStarts(strings.Join(strings.Fields(grown)[:10], " "))
	})
	play(t, limits(limiter.PerSecond(100)), func(s *scene) {
		s.base.answer = inTurn(says(429, "", "Retry-After: 0", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 0"))
		s.sendAll(ask{}, "A", "B")
		s.wantStarts("A@0s B@0s")
	})
}

// What a Retry-After means is waited for, however it is written, and no longer.
// openSearch-project/data-prepper 6927, getsentry/sentry 7919, openclaw/clawhub 407,
// openai/openai-python 937.
func TestRetryAfterAsItIsMeant(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"Retry-After: 299.997", "4m59.997s"},
		{"Retry-After: 292.052427053", "4m52.053s"},
		{"Retry-After: 2.0", "2s"},
		{"Retry-After: 60s", "1m0s"},
		{"Retry-After: 60 seconds", "1m0s"},
		{"Retry-After: 2 minutes", "2m0s"},
		{"Retry-After: 2000-01-01T00:01:00Z", "1m0s"},
		{"Retry-After: 946684830", "30s"},
		{"Retry-After: 978307201", "24h0m0s"},    // more than a year away: seconds
		{"x-rate-limit-reset-tokens: 55", "56s"}, // a reset in whole seconds may be one early
		{"x-ratelimit-reset-tokens: 55", "56s"},
	} {
		t.Run(c.line, func(t *testing.T) {
			play(t, limits(limiter.PerSecond(100)), func(s *scene) {
				s.base.answer = inTurn(says(429, "", c.line))
				s.sendAll(ask{}, "A", "B")
				s.wantStarts("A@0s B@" + c.want)
			})
		})
	}
	play(t, limits(limiter.PerSecond(100)), func(s *scene) {
		s.base.answer = inTurn(says(503, "", "Retry-After: 60 seconds"))
		s.sendAll(ask{}, "A", "B")
		s.wantStarts("A@0s B@1m0s")
	})
}

// Retry-After says when: the pause ends at it, and that nothing is left until a later
// reset is void. Then one request goes alone, since units may not have returned. What is left
// above nothing caps the starts until the reset.
func TestRetryAfterAndAReset(t *testing.T) {
	limit := func(left, reset int, more ...string) []string {
		return append(more, "X-RateLimit-Limit: 5", fmt.Sprint("X-RateLimit-Remaining: ", left), fmt.Sprint("X-RateLimit-Reset: ", reset))
	}
	for _, c := range []struct {
		name   string
		status int
		lines  []string
		want   string
	}{
		{"sooner", 429, limit(0, 6, "Retry-After: 1"), "A@0s B@1s C@1.01s D@1.02s"},
		{"much sooner", 429, limit(0, 3300, "Retry-After: 30"), "A@0s B@30s C@30.01s D@30.02s"},
		{"later", 429, limit(0, 6, "Retry-After: 30"), "A@0s B@30s C@30.01s D@30.02s"},
		{"some left", 429, limit(2, 40, "Retry-After: 20"), "A@0s B@20s C@20.01s D@41s"},
		{"now", 429, limit(0, 300, "Retry-After: 0"), "A@0s B@0s C@1ms D@1ms"},
		{"no reset", 429, []string{"X-RateLimit-Remaining: 0", "Retry-After: 5"}, "A@0s B@5s C@5.01s D@5.02s"},
		{"two limits", 429, []string{`RateLimit: "burst";r=0;t=60, "day";r=1;t=3600`, "Retry-After: 2"}, "A@0s B@2s C@1h0m1s D@1h0m1.001s"},
		{"a success", 200, limit(0, 300, "Retry-After: 30"), "A@0s B@30s C@30.001s D@30.001s"},
		{"a success, reset alone", 200, limit(0, 300), "A@0s B@5m1s C@5m1.001s D@5m1.001s"},
		{"a success with some left", 200, limit(2, 300, "Retry-After: 30"), "A@0s B@0s C@0s D@5m1s"},
		{"polling", 202, []string{"Retry-After: 30"}, "A@0s B@0s C@0s D@0s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, limits(limiter.PerSecond(100)), func(s *scene) {
				s.base.answer = inTurn(says(c.status, "", c.lines...))
				s.sendAll(ask{}, "A", "B", "C", "D")
				s.wantStarts(c.want)
			})
		})
	}
	// What was said before is void, too; what is said after it counts.
	play(t, limits(limiter.PerSecond(100)), func(s *scene) {
		s.base.answer = inTurn(says(200, "", limit(1, 60)...), says(429, "", limit(0, 60, "Retry-After: 3")...), says(200, "", limit(0, 57)...))
		s.sendAll(ask{}, "A", "B", "C", "D")
		s.wantStarts("A@0s B@0s C@3s D@1m1s")
	})
}

// dribble is an answer whose body comes a byte in each 100 ms.
func dribble(answer func(*http.Request) (*http.Response, error)) func(*http.Request) (*http.Response, error) {
	return func(req *http.Request) (*http.Response, error) {
		resp, err := answer(req)
		resp.Body = slowBody{resp.Body}
		return resp, err
	}
}

type slowBody struct{ io.ReadCloser }

func (b slowBody) Read(p []byte) (int, error) {
	time.Sleep(100 * time.Millisecond)
	return b.ReadCloser.Read(p[:min(1, len(p))])
}

// What the headers say holds from the moment that they came, however slow the body.
func TestHeadersBeforeTheBody(t *testing.T) {
	headersFirst(t, "1m0s", "Retry-After: 60")
	headersFirst(t, "1m1s", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 60")
	headersFirst(t, "1m0s", "Retry-After: 60", "X-RateLimit-Remaining: 5", "X-RateLimit-Reset: 90")
}

// So does a refusal without a time. A store takes no pause back, and so gets it once
// the body is read; until then the line holds.
func TestNoTimeBeforeTheBody(t *testing.T) {
	if openStore == nil {
		headersFirst(t, "1s")
	} else {
		headersFirst(t, "2s")
	}
}

// Whom such a refusal holds waits no longer than it may, and those of another key are
// not held.
func TestAudienceOfABody(t *testing.T) {
	policies := []headway.Policy{{Hosts: []string{"*"}, Rules: []headway.Rule{keyed(limiter.PerSecond(1000))}, MaxWaiting: 2}}
	play(t, policies, func(s *scene) {
		s.base.answer = inTurn(dribble(says(429, strings.Repeat(" ", 50))))
		a := s.send("A", key("a"))
		s.until(time.Millisecond)
		no := s.send("B", ask{call: headway.Call{Key: "a", MaxWait: headway.NoWait}})
		short := s.send("C", ask{call: headway.Call{Key: "a", MaxWait: 200 * time.Millisecond}})
		s.send("D", key("b"))
		s.until(201 * time.Millisecond)
		s.sendAll(key("a"), "E", "F")
		full := s.send("G", key("a"))
		if !no.done.Load() || no.after != 0 || !errors.Is(no.err, headway.ErrThrottled) {
			s.Errorf("without a wait: got %v after %v, want it refused at once", no.err, no.after)
		}
		if !short.done.Load() || short.after > 200*time.Millisecond || !errors.Is(short.err, headway.ErrThrottled) {
			s.Errorf("with a short one: got %v after %v, want it refused within that", short.err, short.after)
		}
		var refused *headway.ThrottledError
		if !errors.As(full.err, &refused) || refused.Reason != limiter.ReasonLineFull {
			s.Errorf("the line is full: got %v, want a refusal", full.err)
		}
		s.all.Wait()
		io.Copy(io.Discard, a.resp.Body)
		got := s.base.starts()
		wantIdle(s, s.Transport)
		if len(got) != 4 || got[1] != "D@1ms" || got[2] < "E@1s" {
			s.Errorf("got starts %v, want E and F after a second", got)
		}
	})
}

// Of a body that never ends, what has come within a second is read, and a request
// whose context ends is not held up by it.
func TestABodyThatNeverEnds(t *testing.T) {
	const text = `{"message":"You have exceeded a secondary rate limit."`
	play(t, limits(limiter.PerSecond(100)), func(s *scene) {
		s.base.answer = inTurn(endless(says(403, text, "Content-Type: application/json")))
		a := s.send("A", ask{url: "https://api.github.com/"})
		s.send("B", ask{url: "https://api.github.com/"})
		s.until(1100 * time.Millisecond)
		s.send("C", ask{url: "https://api.github.com/"})
		s.wantStarts("A@0s B@0s C@1m1s")
		a.resp.Body.Close()
	})
	play(t, limits(limiter.PerSecond(100)), func(s *scene) {
		s.base.answer = inTurn(endless(says(403, text, "Content-Type: application/json")))
		ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		defer cancel()
		a := s.send("A", ask{url: "https://api.github.com/", ctx: ctx})
		s.until(200 * time.Millisecond)
		if !a.done.Load() {
			s.Error("it waits for the body beyond its deadline")
		}
		s.send("B", ask{url: "https://api.github.com/"})
		s.wantStarts("A@0s B@1m0.2s")
		a.resp.Body.Close()
	})
}

// endless is an answer whose body comes at once and does not end until it is closed.
func endless(answer func(*http.Request) (*http.Response, error)) func(*http.Request) (*http.Response, error) {
	return func(req *http.Request) (*http.Response, error) {
		resp, err := answer(req)
		closed := make(chan struct{})
		resp.Body = &openBody{Reader: resp.Body, closed: closed, close: sync.OnceFunc(func() { close(closed) })}
		return resp, err
	}
}

type openBody struct {
	io.Reader
	closed chan struct{}
	close  func()
}

func (b *openBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF {
		<-b.closed
	}
	return n, err
}

func (b *openBody) Close() error {
	b.close()
	return nil
}

// headersFirst checks when the others start after a 429 of which the body dribbles.
func headersFirst(t *testing.T, want string, lines ...string) {
	t.Helper()
	text := `{"error":{"message":"` + strings.Repeat("x", 50) + `"}}`
	play(t, limits(limiter.PerMinute(1000)), func(s *scene) {
		s.base.answer = inTurn(dribble(says(429, text, append(lines, "Content-Type: application/json")...)))
		a := s.send("A", ask{})
		b := s.send("B", ask{}) // at the same instant
		s.until(300 * time.Millisecond)
		d := s.send("D", ask{})
		if a.done.Load() || b.done.Load() || d.done.Load() {
			s.Error("it does not wait")
		}
		s.all.Wait()
		if got := s.base.starts(); len(got) != 3 || got[1] != "B@"+want {
			s.Errorf("%q: got %v, want B@%s", lines, got, want)
		}
		if got, err := io.ReadAll(a.resp.Body); string(got) != text || err != nil {
			s.Errorf("%q: the caller reads %q, %v", lines, got, err)
		}
	})
}

// The body adds to what the headers say: a longer wait, or that there is none.
func TestTheBodyAdds(t *testing.T) {
	slow := func(answer func(*http.Request) (*http.Response, error)) func(*http.Request) (*http.Response, error) {
		return func(req *http.Request) (*http.Response, error) {
			resp, err := answer(req)
			resp.Body = &lateBody{ReadCloser: resp.Body, by: 200 * time.Millisecond}
			return resp, err
		}
	}
	nothing := "A@0s B@1s C@1.01s"
	if openStore != nil { // a pause begins when the body is read
		nothing = "A@0s B@1.2s C@1.21s"
	}
	for _, c := range []struct {
		name, text string
		lines      []string
		want       string
	}{
		{"must be paid for", `{"error":{"type":"insufficient_quota"}}`, nil, "A@0s B@200ms C@300ms"},
		{"a lock", `{"error":{"code":"lock_timeout"}}`, nil, "A@0s B@200ms C@300ms"},
		{"a documented minute", `{"message":"You have exceeded a secondary rate limit."}`, nil, "A@0s B@1m0.2s C@1m0.21s"},
		{"a time", `{"error":{"details":[{"@type":"google.rpc.RetryInfo","retryDelay":"7s"}]}}`, nil, "A@0s B@7.2s C@7.21s"},
		{"nothing", `{}`, nil, nothing},
		{"nothing to a time", `{"error":{"code":"lock_timeout"}}`, []string{"Retry-After: 5"}, "A@0s B@5s C@5.01s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var events []headway.Event
			playConfig(t, headway.Config{Policies: limits(limiter.PerSecond(100)), Observer: collect(&events)}, func(s *scene) {
				s.base.answer = inTurn(slow(says(429, c.text, append(c.lines, "Content-Type: application/json")...)))
				s.sendAll(ask{}, "A", "B")
				s.until(300 * time.Millisecond)
				s.send("C", ask{})
				s.wantStarts(c.want)
			})
			n := 0
			for _, e := range events {
				if e.Kind == headway.EventPause {
					n++
				}
			}
			if pauses := strings.Contains(c.want, "@1") || c.want[len("A@0s B@"):][0] >= '5'; pauses != (n == 1) || n > 1 {
				t.Errorf("got %d events of a pause", n)
			}
		})
	}
}

// A lateBody comes after a while.
type lateBody struct {
	io.ReadCloser
	by time.Duration
}

func (l *lateBody) Read(p []byte) (int, error) {
	time.Sleep(l.by)
	l.by = 0
	return l.ReadCloser.Read(p)
}

// A refusal that its body alone tells is understood in gzip and deflate, which the
// caller has asked for and gets as it came.
func TestCompressedRefusals(t *testing.T) {
	const text = `{"message":"You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}`
	compress := func(open func(io.Writer) io.WriteCloser, text string) string {
		var b bytes.Buffer
		w := open(&b)
		io.WriteString(w, text)
		w.Close()
		return b.String()
	}
	zip := func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }
	zl := func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) }
	raw := func(w io.Writer) io.WriteCloser { f, _ := flate.NewWriter(w, 9); return f }
	bomb := compress(zip, strings.Repeat(" ", 8<<20)+text)
	for _, c := range []struct{ name, coding, body, want string }{
		{"gzip", "gzip", compress(zip, text), "1m0s"},
		{"zlib", "deflate", compress(zl, text), "1m0s"},
		{"raw deflate", "deflate", compress(raw, text), "1m0s"},
		{"cut off", "gzip", compress(zip, text)[:90], "1m0s"},
		{"plain after all", "gzip", text, "1m0s"},
		{"unknown", "br", text, "0s"},
		{"a bomb", "gzip", bomb, "0s"},
		{"no gzip", "gzip", "\x1f\x8b garbage", "0s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, limits(limiter.PerSecond(100)), func(s *scene) {
				s.base.answer = inTurn(says(403, c.body, "Content-Type: application/json", "Content-Encoding: "+c.coding))
				a := s.send("A", ask{url: "https://api.github.com/", header: http.Header{"Accept-Encoding": {"gzip, deflate"}}})
				s.send("B", ask{url: "https://api.github.com/"})
				s.wantStarts("A@0s B@" + c.want)
				if got, err := io.ReadAll(a.resp.Body); string(got) != c.body || err != nil {
					s.Errorf("the caller reads %d bytes, %v, want all %d", len(got), err, len(c.body))
				}
			})
		})
	}
}

// A 429 about one object pauses no other request, and the breaker ignores it.
// stripe/stripe-dotnet 1886, stripe/stripe-node 2056, nozzlegear/ShopifySharp 350.
func TestOneObject(t *testing.T) {
	const json = "Content-Type: application/json"
	for _, c := range []struct {
		name, url, text string
		lines           []string
		pauses          bool
	}{
		{"a lock, by the body", "https://api.test/", `{"error":{"code":"lock_timeout","type":"invalid_request_error"}}`, []string{json}, false},
		{"a lock, by the header", "https://api.test/", "", []string{"Stripe-Should-Retry: true"}, false},
		{"a lock, by the host", "https://api.stripe.com/v1/charges", "", nil, false},
		{"a resource", "https://api.stripe.com/v1/charges", "", []string{"Stripe-Rate-Limited-Reason: resource-specific"}, false},
		{"an issue", "https://acme.atlassian.net/", "", []string{"RateLimit-Reason: jira-per-issue-on-write", "Retry-After: 2"}, false},
		{"the account", "https://api.stripe.com/v1/charges", "", []string{"Stripe-Rate-Limited-Reason: global-rate"}, true},
		{"the account, by the body", "https://api.stripe.com/v1/charges", `{"error":{"code":"rate_limit"}}`, []string{json}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, broken(breaker.Config{Failures: 5}, limiter.PerSecond(100)), func(s *scene) {
				s.base.answer = ten(says(429, c.text, c.lines...))
				want := "A0@0s A1@0s A2@0s A3@0s A4@0s A5@0s A6@0s A7@0s A8@0s A9@0s A10@0s A11@0s A12@0s"
				if c.pauses {
					want = grown
				}
				s.sendAll(ask{url: c.url, method: "POST"}, names("A", 13)...)
				s.wantStarts(want)
				s.wantState(breaker.Closed)
			})
		})
	}
	// An endpoint's limit pauses those under the endpoint's rule.
	endpoints := []headway.Policy{{Hosts: []string{"*"}, Limits: []limiter.Limit{limiter.PerSecond(100)}, Rules: []headway.Rule{
		{Name: "charges", Limit: limiter.PerSecond(50), Path: "/v1/charges"},
	}}}
	play(t, endpoints, func(s *scene) {
		s.base.answer = inTurn(says(429, "", "Stripe-Rate-Limited-Reason: endpoint-concurrency"))
		charges := ask{url: "https://api.stripe.com/v1/charges"}
		s.send("A", charges)
		s.send("B", ask{url: "https://api.stripe.com/v1/refunds"})
		s.send("C", charges)
		s.wantStarts("A@0s B@0s C@1s")
	})
}
