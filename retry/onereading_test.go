package retry_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/breaker"
	"github.com/headway-go/headway/internal/inside"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/retry"
	"github.com/headway-go/headway/retryafter"
)

// A refusal is a server's response that may or may not throttle.
type refusal struct {
	name, dialect string
	now           time.Time
	status        int
	header        http.Header
	body          string
}

// refusals returns the responses that package retryafter is tested with, and some
// that only the body shows to be refusals.
func refusals(t *testing.T) []refusal {
	f, err := os.Open("../retryafter/testdata/corpus.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []refusal
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var c struct {
			ID      string
			Dialect string
			Now     time.Time
			Status  int
			Headers map[string][]string
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		r := refusal{name: c.ID, dialect: c.Dialect, now: c.Now, status: c.Status, header: http.Header{}}
		for name, values := range c.Headers {
			for _, v := range values {
				r.header.Add(name, v)
			}
		}
		if c.Status >= 400 {
			all = append(all, r)
		}
	}
	if len(all) < 100 {
		t.Fatalf("got %d refusals, want those of the corpus", len(all))
	}
	json := http.Header{"Content-Type": {"application/json"}}
	return append(all,
		// hub4j/github-api 2009: neither Retry-After nor a header about the limit.
		refusal{"github's secondary limit", "github", time.Time{}, 403,
			http.Header{"X-Github-Request-Id": {"1"}, "Content-Type": {"application/json"}},
			`{"message":"You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}`},
		refusal{"google's 403", "google", time.Time{}, 403, json,
			`{"error":{"code":403,"errors":[{"domain":"usageLimits","reason":"rateLimitExceeded"}]}}`},
		refusal{"google's other 403", "google", time.Time{}, 403, json,
			`{"error":{"code":403,"errors":[{"domain":"global","reason":"forbidden"}]}}`},
		refusal{"amazon's 400", "aws", time.Time{}, 400,
			http.Header{"X-Amzn-Requestid": {"1"}, "Content-Type": {"application/x-amz-json-1.1"}},
			`{"__type":"ThrottlingException","message":"Rate exceeded"}`},
		refusal{"amazon's 400 by its header", "aws", time.Time{}, 400,
			http.Header{"X-Amzn-Errortype": {"ThrottlingException"}, "Content-Type": {"application/json"}}, `{"message":"Rate exceeded"}`},
		refusal{"an unpaid quota", "openai", time.Time{}, 429, json,
			`{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`},
		refusal{"calm", "calm", time.Time{}, 420, http.Header{"X-Calm": {"3"}}, ""},
		refusal{"calm without a time", "calm", time.Time{}, 420, http.Header{"X-Calm": {""}}, ""},
	)
}

// calm is a custom dialect in which 420 is a refusal.
type calm struct{}

func (calm) Name() string { return "calm" }

func (calm) Read(status int, h http.Header, _ time.Time) (retryafter.Signal, bool) {
	v, ok := h["X-Calm"]
	if status != 420 || !ok {
		return retryafter.Signal{}, false
	}
	d, err := time.ParseDuration(v[0] + "s")
	return retryafter.Signal{Throttled: true, RetryAfter: d, HasRetryAfter: err == nil}, true
}

// Under a policy that listens, the Transport reads the response, and retry follows
// that reading: a refusal pauses if and only if it is retried. The exceptions are:
//
//   - NoRetry, such as a quota that must be paid for: neither.
//   - An explicit time of zero, or one busy object: retried without a pause.
//   - A time of more than a day: a pause, and the response is returned.
//   - A 5xx, 408 or 425 that does not throttle: retried because of its status.
//   - Dialects None: no pause, and retry reads the response: TestServerTimeIsAFloor.
func TestPausesIfAndOnlyIfRetried(t *testing.T) {
	all := append(retryafter.Dialects(), calm{})
	for _, r := range refusals(t) {
		sets := [][]retryafter.Dialect{all}
		if i := slices.IndexFunc(all, func(d retryafter.Dialect) bool { return d.Name() == r.dialect }); i >= 0 {
			sets = append(sets, []retryafter.Dialect{all[i]})
		}
		for i, dialects := range sets {
			for _, method := range []string{"GET", "POST"} {
				t.Run(r.name+"/"+[]string{"all", "alone"}[i]+"/"+method, func(t *testing.T) {
					policy := headway.Policy{Server: headway.Server{Dialects: dialects, Learn: headway.LearnOff}, Limits: []limiter.Limit{limiter.PerSecond(1000)}}
					var pause time.Duration
					observer := headway.ObserverFunc(func(_ context.Context, e headway.Event) {
						if e.Kind == headway.EventPause {
							pause = e.Pause
						}
					})
					playObserved(t, policy, observer, func(s *scene) {
						time.Sleep(time.Until(r.now))
						begin := time.Now()
						s.script = func(n int, _ *http.Request) (*http.Response, error) {
							if n > 0 {
								return response(200, nil), nil
							}
							resp := response(r.status, nil)
							resp.Header = r.header.Clone()
							if r.body != "" {
								resp.Body = newBody(r.body)
							}
							return resp, nil
						}
						s.send(request(s.Context(), method, "hello"))
						reader := retryafter.NewReader(dialects, "api.test")
						said := reader.Read(r.status, r.header, begin)
						if inside.NeedsBody(reader, r.status, r.header) {
							if fromBody, ok := reader.ReadBody(r.status, r.header, []byte(r.body), begin); ok {
								said = fromBody
							}
						}
						again, paused := s.sends() == 2, pause > 0
						wait, ok := said.Wait()
						switch {
						case said.NoRetry:
							if again || paused && !said.HasRetryAfter {
								s.Errorf("NoRetry: sent again %t, pause %v, want neither", again, pause)
							}
						case said.ShouldRetry, !said.Throttled && (r.status >= 500 || r.status == 408 || r.status == 425):
						case said.Throttled && (ok && wait == 0 || said.Scope == retryafter.ScopeRequest):
							if paused || !again && r.status < 500 {
								s.Errorf("at once: sent again %t, pause %v, want it again and no pause", again, pause)
							}
						case ok && wait > 24*time.Hour:
							if again {
								s.Error("more than a day: sent again, want it back")
							}
						case r.status == 503 && method == "POST":
							if again {
								s.Error("a 503 for a POST is sent again, want it back: what it has done is unknown")
							}
						case again != paused || paused != said.Throttled:
							s.Errorf("sent again %t, pause %v, asked %v, %t, throttled %t: want both or neither", again, pause, wait, ok, said.Throttled)
						case again && time.Since(begin) < pause:
							s.Errorf("sent again after %v, in a pause of %v", time.Since(begin), pause)
						}
					})
				})
			}
		}
	}
}

// A custom dialect may recognize a refusal by its body alone, with any status and any
// text. A 429 remains a refusal without it.
func TestOwnDialectAlone(t *testing.T) {
	for name, tt := range map[string]struct {
		dialect retryafter.Dialect
		status  int
		header  string
		body    string
		want    string
	}{
		"its body, 400":         {slowly{}, 400, "", "slow down", "0@0s 1@7s"},
		"its body, 418, a page": {slowly{}, 418, "Content-Type: text/html", "<p>slow down", "0@0s 1@7s"},
		"its body, 500":         {slowly{}, 500, "", "slow down", "0@0s 1@7s"},
		"another body":          {slowly{}, 400, "", "hurry up", "0@0s"},
		"429":                   {calm{}, 429, "", "", "0@0s 1@1s"},
		"429 with a time":       {calm{}, 429, "Retry-After: 60", "", "0@0s 1@1m0s"},
		"429 with a loose time": {calm{}, 429, "Retry-After: 60s", "", "0@0s 1@1m0s"},
		"429, its body unread":  {slowly{}, 429, "Retry-After: 60", "hurry up", "0@0s 1@1m0s"},
		"429 with its own time": {slowly{}, 429, "Retry-After: 5", "slow down", "0@0s 1@7s"},
		"529":                   {calm{}, 529, "", "", "0@0s 1@1s"},
	} {
		t.Run(name, func(t *testing.T) {
			policy := headway.Policy{Server: headway.Server{Dialects: []retryafter.Dialect{tt.dialect}}, Breaker: &breaker.Config{Failures: 1}}
			playObserved(t, policy, nil, func(s *scene) {
				s.script = func(n int, _ *http.Request) (*http.Response, error) {
					if n > 0 {
						return response(200, nil), nil
					}
					resp := response(tt.status, newBody(tt.body))
					if key, value, ok := strings.Cut(tt.header, ": "); ok {
						resp.Header.Set(key, value)
					}
					return resp, nil
				}
				s.send(request(s.Context(), "GET", ""))
				s.wantSends(tt.want)
			})
		})
	}
}

// slowly is a custom dialect that reads only bodies.
type slowly struct{}

func (slowly) Name() string { return "slowly" }

func (slowly) Read(int, http.Header, time.Time) (s retryafter.Signal, ok bool) { return s, false }

func (slowly) ReadBody(_ int, _ http.Header, prefix []byte, _ time.Time) (retryafter.Signal, bool) {
	return retryafter.Signal{Throttled: true, RetryAfter: 7 * time.Second, HasRetryAfter: true}, strings.Contains(string(prefix), "slow down")
}

// Four refusals that made the Transport pause but were once not retried, at exact
// times.
func TestWhatOnlyTheTransportReads(t *testing.T) {
	for name, tt := range map[string]struct {
		refusal string
		method  string
		want    string
	}{
		"github's bare secondary limit": {"github's secondary limit", "GET", "0@0s 1@1m0s"},
		"google's 403":                  {"google's 403", "GET", "0@0s 1@1s"},
		"google's 403, a POST":          {"google's 403", "POST", "0@0s 1@1s"},
		"amazon's 400":                  {"amazon's 400", "POST", "0@0s 1@1s"},
		"a custom 420":                  {"calm", "POST", "0@0s 1@3s"},
		"a custom 420 without a time":   {"calm without a time", "GET", "0@0s 1@1s"},
		"a 403 that is none":            {"google's other 403", "GET", "0@0s"},
		"an unpaid quota":               {"an unpaid quota", "GET", "0@0s"},
	} {
		t.Run(name, func(t *testing.T) {
			all := refusals(t)
			r := all[slices.IndexFunc(all, func(r refusal) bool { return r.name == tt.refusal })]
			policy := headway.Policy{Server: headway.Server{Dialects: append(retryafter.Dialects(), calm{})}}
			playObserved(t, policy, nil, func(s *scene) {
				s.script = func(n int, _ *http.Request) (*http.Response, error) {
					if n > 0 {
						return response(200, nil), nil
					}
					resp := response(r.status, newBody(r.body))
					resp.Header = r.header.Clone()
					return resp, nil
				}
				s.send(request(s.Context(), tt.method, "hello"))
				s.wantSends(tt.want)
			})
		})
	}
}

// A custom dialect reads each response once, for the Transport alone, at the first
// attempt and at the others.
func TestAResponseIsReadOnce(t *testing.T) {
	d := &counting{}
	playObserved(t, headway.Policy{Server: headway.Server{Dialects: []retryafter.Dialect{d}}}, nil, func(s *scene) {
		s.script = func(n int, _ *http.Request) (*http.Response, error) {
			if n < 3 {
				return response(420, nil, "X-Calm", "1"), nil
			}
			return response(404, nil), nil
		}
		s.wantStatus(request(s.Context(), "GET", ""), 404)
		s.wantSends("0@0s 1@1s 2@2s 3@3s")
		if d.reads != 4 {
			s.Errorf("4 responses were read %d times", d.reads)
		}
	})
}

type counting struct {
	calm
	reads int
}

func (c *counting) Read(status int, h http.Header, now time.Time) (retryafter.Signal, bool) {
	c.reads++
	return c.calm.Read(status, h, now)
}

// The policy's MaxPause bounds a server's time for retry, too.
func TestMaxPauseHoldsForRetries(t *testing.T) {
	for _, asked := range []string{"3600", "9999999"} {
		playObserved(t, headway.Policy{Server: headway.Server{MaxPause: time.Minute}}, nil, func(s *scene) {
			s.script = once(429, "Retry-After", asked)
			s.wantStatus(request(s.Context(), "GET", ""), 200)
			s.wantSends("0@0s 1@1m0s")
		})
	}
}

// The response to a request that bypasses its policy or has none is read by retry.
func TestReadHereWithoutAPolicy(t *testing.T) {
	bypass := func(ctx context.Context) context.Context {
		return headway.WithCall(ctx, headway.Call{Bypass: true})
	}
	for name, tt := range map[string]struct {
		policy headway.Policy
		ctx    func(context.Context) context.Context
	}{
		"bypass":    {headway.Policy{}, bypass},
		"no policy": {headway.Policy{Hosts: []string{"other.test"}}, func(ctx context.Context) context.Context { return ctx }},
	} {
		t.Run(name, func(t *testing.T) {
			playObserved(t, tt.policy, nil, func(s *scene) {
				s.script = once(403, "X-GitHub-Request-Id", "1", "Retry-After", "7", "X-RateLimit-Remaining", "0")
				s.wantStatus(request(tt.ctx(s.Context()), "GET", ""), 200)
				s.wantSends("0@0s 1@7.5s")
			})
		})
	}
}

// A refusal about one object is retried after the backoff, and holds up no other
// request. Stripe marks it in its header; stripe/stripe-ruby 431 and
// beam-community/stripity-stripe 733 ask for a retry of what was locked.
func TestOneObjectIsRetriedWithoutAPause(t *testing.T) {
	playObserved(t, headway.Policy{Server: headway.Server{Dialects: []retryafter.Dialect{oneObject{}}}}, nil, func(s *scene) {
		s.script = func(n int, _ *http.Request) (*http.Response, error) {
			if n == 0 {
				return response(429, nil), nil
			}
			return response(200, nil), nil
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.wantStatus(request(s.Context(), "POST", "hello"), 200)
		}()
		time.Sleep(100 * time.Millisecond)
		s.wantStatus(request(s.Context(), "GET", ""), 200)
		<-done
		s.wantSends("0@0s 0@100ms 1@500ms")
	})
}

type oneObject struct{}

func (oneObject) Name() string { return "one object" }

func (oneObject) Read(status int, _ http.Header, _ time.Time) (retryafter.Signal, bool) {
	return retryafter.Signal{Throttled: true, Scope: retryafter.ScopeRequest}, status == 429
}

// playObserved is play over a Transport that listens as its policy says.
func playObserved(t *testing.T, policy headway.Policy, observer headway.Observer, f func(s *scene)) {
	t.Helper()
	playConfig(t, headway.Config{Policies: []headway.Policy{policy}, Observer: observer}, retry.Config{}, f)
}

// The header x-should-retry is recognized in the spellings of documentation and SDKs.
func TestShouldRetryInAnySpelling(t *testing.T) {
	for _, name := range []string{"Stripe-Should-Retry", "stripe-should-retry", "X-Should-Retry", "x-should-retry"} {
		for value, want := range map[string]int{"true": 2, "false": 1, "maybe": 1, "": 1} {
			playObserved(t, headway.Policy{}, nil, func(s *scene) {
				s.script = once(409, name, value)
				s.send(request(s.Context(), "POST", "hello"))
				if got := s.sends(); got != want {
					s.Errorf("%s: %q: sent %d times, want %d", strings.ToLower(name), value, got, want)
				}
			})
		}
	}
}
