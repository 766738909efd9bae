package headway_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/breaker"
	"github.com/headway-go/headway/limiter"
)

func TestS12_KeyError(t *testing.T) {
	cause := errors.New("who are you")
	rule := func(change func(*headway.Rule)) headway.Rule {
		r := headway.Rule{Name: "tenant", Limit: limiter.PerMinute(5)}
		change(&r)
		return r
	}
	for name, tc := range map[string]struct {
		rule headway.Rule
		ask  ask
		want error // that the error wraps, if any
	}{
		"an error": {rule: rule(func(r *headway.Rule) {
			r.Key = func(*http.Request) (string, error) { return "x", cause }
		}), want: cause},
		"an empty key": {rule: rule(func(r *headway.Rule) {
			r.Key = func(*http.Request) (string, error) { return "", nil }
		})},
		"no header":       {rule: rule(func(r *headway.Rule) { r.Key = headway.ByHeader("Tenant") })},
		"no Call":         {rule: rule(func(r *headway.Rule) { r.Key = headway.FromCallKey })},
		"an unknown cost": {rule: rule(func(r *headway.Rule) { r.Cost = func(*http.Request) (int64, error) { return 1, cause } }), want: cause},
		"a negative cost": {rule: rule(func(r *headway.Rule) { r.Cost = headway.FromCallCost }), ask: cost(-1)},
		"a negative cost of a Limit": {
			rule: headway.Rule{Name: "tenant", Limit: limiter.PerMinute(5), Path: "/other"},
			ask:  cost(-1),
		},
	} {
		t.Run(name, func(t *testing.T) {
			var events []headway.Event
			policies := []headway.Policy{{Name: "p", Hosts: []string{"*"}, Rules: []headway.Rule{tc.rule}, Limits: []limiter.Limit{limiter.PerMinute(7)}}}
			playConfig(t, headway.Config{Policies: policies, Observer: collect(&events)}, func(s *scene) {
				b := newBody("x")
				tc.ask.body, tc.ask.method = b, "POST"
				p := s.send("A", tc.ask)
				e, isKeyError := p.err.(*headway.KeyError)
				if !isKeyError || !errors.Is(p.err, headway.ErrKey) || tc.want != nil && !errors.Is(p.err, tc.want) {
					s.Fatalf("got %#v, want a bare *KeyError of %v", p.err, tc.want)
				}
				if wantRule := "tenant"; e.Policy != "p" || e.Rule != wantRule && e.Rule != "7/1m" {
					s.Errorf("got policy %q and rule %q", e.Policy, e.Rule)
				}
				if b.closed.Load() != 1 {
					s.Errorf("body closed %d times, want once", b.closed.Load())
				}
				if p.after != 0 || len(s.base.starts()) != 0 {
					s.Errorf("back after %v, %d sent, want at once, unsent", p.after, len(s.base.starts()))
				}
				q, err := s.Quota("api.test", "7/1m", "")
				if err != nil {
					s.Fatal(err)
				}
				if left := remaining(s, q); left != 7 {
					s.Errorf("got %d left, want all 7", left)
				}
				if _, err := s.Delay(tc.ask.request("A")); !errors.Is(err, headway.ErrKey) {
					s.Errorf("Delay: got %v, want a *KeyError", err)
				}
			})
		})
	}
}

// collect returns an observer that appends to events; they are to be read when
// nothing is under way.
func collect(events *[]headway.Event) headway.Observer {
	lock := make(chan struct{}, 1)
	return headway.ObserverFunc(func(_ context.Context, e headway.Event) {
		lock <- struct{}{}
		*events = append(*events, e)
		<-lock
	})
}

// No error, event, snapshot or answer has a key in the clear.
func TestS13_KeysArePrivate(t *testing.T) {
	const secretKey = "sk-live-4242"
	var events []headway.Event
	policies := []headway.Policy{{
		Hosts: []string{"*"}, MaxWait: headway.NoWait, Breaker: &breaker.Config{Failures: 1},
		Rules: []headway.Rule{
			{Name: "by header", Limit: limiter.Every(time.Minute), Key: headway.ByHeader("Authorization")},
			{Name: "by call", Limit: limiter.PerMinute(5), Key: headway.FromCallKey, Cost: headway.FromCallCost},
		},
	}}
	answers := policies[0]
	answers.Name, answers.Hosts, answers.Refusal = "answers", []string{"answer.test"}, headway.RefuseWithResponse
	cfg := headway.Config{Policies: append(policies, answers), Observer: collect(&events), Secret: []byte("s"), MaxHosts: 3}
	playConfig(t, cfg, func(s *scene) {
		var texts []string
		a := ask{header: http.Header{"Authorization": {secretKey}}, call: headway.Call{Key: secretKey}}
		note := func(p *trip) {
			if p.err != nil {
				texts = append(texts, p.err.Error(), fmt.Sprintf("%+v %#v", p.err, p.err))
			} else {
				text, _ := io.ReadAll(p.resp.Body)
				texts = append(texts, string(text), fmt.Sprint(p.resp.Header))
			}
		}
		first := s.send("", a)
		note(first)
		for _, cost := range []int64{2, 1} {
			if err := headway.Settle(first.resp, "by call", cost); err != nil {
				s.Error(err)
			}
		}
		note(s.send("", a)) // refused
		costly := a
		costly.call.Cost = 6
		note(s.send("", costly)) // impossible
		ended, cancel := context.WithCancel(s.Context())
		cancel()
		a.ctx = ended
		note(s.send("", a)) // canceled
		a.ctx = nil
		note(s.send("", ask{call: headway.Call{Key: secretKey}})) // no header
		a.url = "https://answer.test"
		note(s.send("", a))
		note(s.send("", a)) // overflows, and is answered
		q, err := s.Quota("api.test", "by call", secretKey)
		if err != nil {
			s.Fatal(err)
		}
		spend(s, q, 2)
		if err := q.Wait(s.Context(), 4); err != nil {
			texts = append(texts, err.Error())
		}
		if _, err := s.Quota("api.test", "none", secretKey); err != nil {
			texts = append(texts, err.Error())
		}
		if _, err := s.Quota("none", "by call", secretKey); err != nil {
			texts = append(texts, err.Error())
		}
		s.until(2 * time.Hour)
		s.base.answer = says(429, "", "Retry-After: 5, soon", "X-RateLimit-Limit: 9", "X-RateLimit-Remaining: x", "RateLimit: \"a\";r=1;t=60")
		a.url = ""
		note(s.send("", a))
		s.until(3 * time.Hour)
		s.base.answer = says(500, "")
		note(s.send("", a)) // opens
		note(s.send("", a))
		s.until(4 * time.Hour)
		s.base.answer = nil
		note(s.send("", a)) // closes
		kinds := map[headway.EventKind]bool{}
		digests := map[string]bool{}
		for _, e := range events {
			kinds[e.Kind] = true
			if e.KeyDigest != "" {
				for digest := range strings.SplitSeq(e.KeyDigest, "+") { // of an identity
					digests[digest] = true
				}
			}
			texts = append(texts, fmt.Sprintf("%+v", e))
		}
		texts = append(texts, fmt.Sprintf("%+v", s.Snapshot()))
		for _, text := range texts {
			if strings.Contains(text, secretKey) {
				s.Errorf("the key stands in %s", text)
			}
		}
		for k := headway.EventStart; k <= headway.EventSettle; k++ {
			if !kinds[k] && !(k == headway.EventOverflow && openStore != nil) { // a store has room
				s.Errorf("no event %v has been looked at", k)
			}
		}
		if len(digests) != 1 {
			s.Errorf("got digests %v, want one for the one key", digests)
		}
	})
}

// Blocked, a cost that never fits, and no limit are three outcomes.
func TestS28_ThreeOutcomes(t *testing.T) {
	for name, tc := range map[string]struct {
		limits []limiter.Limit
		want   limiter.Reason // zero: it starts
	}{
		"blocked":                {[]limiter.Limit{limiter.Blocked()}, limiter.ReasonDisabled},
		"a cost that never fits": {[]limiter.Limit{limiter.PerSecond(2)}, limiter.ReasonImpossible},
		"a burst that is small":  {[]limiter.Limit{{N: 100, Per: time.Second, Law: limiter.Bucket, Burst: 2}}, limiter.ReasonImpossible},
		"no limit":               {nil, 0},
		"blocked behind a full":  {[]limiter.Limit{limiter.PerHour(3), limiter.Blocked()}, limiter.ReasonDisabled},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, limits(tc.limits...), func(s *scene) {
				p := s.send("A", cost(3))
				d, err := s.Delay(cost(3).request("A"))
				if err != nil {
					s.Error(err)
				}
				if tc.want == 0 {
					s.wantStarts("A@0s")
					if d != 0 {
						s.Errorf("Delay: got %v, want 0", d)
					}
					return
				}
				s.wantRefused(p, tc.want, limiter.Never)
				if d != limiter.Never {
					s.Errorf("Delay: got %v, want Never", d)
				}
				// No deadline is to blame for what never fits.
				ctx, cancel := context.WithTimeout(s.Context(), time.Second)
				defer cancel()
				a := cost(3)
				a.ctx = ctx
				if e := s.wantRefused(s.send("B", a), tc.want, limiter.Never); e.Timeout() || errors.Is(e, context.DeadlineExceeded) {
					s.Errorf("%v: blames the deadline", e)
				}
			})
		})
	}
}

// C60 in the line: while a request waits the three outcomes are the same.
func TestC60_ThreeOutcomesInLine(t *testing.T) {
	policies := []headway.Policy{{
		Hosts: []string{"*"},
		Rules: []headway.Rule{
			{Name: "zero", Path: "/zero", Limit: limiter.Blocked()},
			{Name: "two", Path: "/two", Limit: limiter.PerSecond(2), Cost: headway.FromCallCost},
			{Name: "hour", Path: "/hour", Limit: limiter.Every(time.Hour)},
		},
	}}
	play(t, policies, func(s *scene) {
		at := func(path string, cost int64) ask {
			return ask{url: "https://api.test" + path, call: headway.Call{Cost: cost}}
		}
		s.sendAll(at("/hour", 1), "H1", "H2")
		s.sendAll(at("/two", 2), "T1", "T2")
		if e := s.wantRefused(s.send("Z", at("/zero", 1)), limiter.ReasonDisabled, limiter.Never); e.Rule != "zero" {
			s.Errorf("got rule %q, want zero", e.Rule)
		}
		if e := s.wantRefused(s.send("T3", at("/two", 3)), limiter.ReasonImpossible, limiter.Never); e.Rule != "two" {
			s.Errorf("got rule %q, want two", e.Rule)
		}
		s.send("free", at("/free", 1))
		s.wantStarts("H1@0s T1@0s free@0s T2@1s H2@1h0m0s")
	})
}

func TestS30_MaxWait(t *testing.T) {
	const s = time.Second
	second, hour := limiter.Every(s), limiter.Every(time.Hour)
	for _, tc := range []struct {
		name         string
		limit        limiter.Limit
		policy, call time.Duration
		want         int // how many wait, of those that come when one has started
	}{
		{"unset", second, 0, 0, 20},
		{"NoWait", second, headway.NoWait, 0, 0},
		{"a duration", second, 3 * s, 0, 3}, // the last instant is in it
		{"a duration, less the last instant", second, 3*s - 1, 0, 2},
		{"OneWindow", second, headway.OneWindow, 0, 1},
		{"OneWindow is at most 5 s", limiter.Limit{N: 60, Per: time.Minute, Law: limiter.Spaced}, headway.OneWindow, 0, 5},
		{"WaitForever in the policy", hour, headway.WaitForever, 0, 20},
		{"the call's duration", second, headway.NoWait, 2 * s, 2},
		{"the call's duration is shorter", second, 0, 2 * s, 2},
		{"the call's NoWait", second, 0, headway.NoWait, 0},
		{"the call's WaitForever", hour, headway.NoWait, headway.WaitForever, 20},
		{"the call's OneWindow", second, headway.NoWait, headway.OneWindow, 1},
		{"the call's time has passed", second, 0, -1, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := limits(tc.limit)
			p[0].MaxWait = tc.policy
			play(t, p, func(s *scene) {
				s.send("first", ask{})
				for i := range 20 {
					p := s.send("x", ask{call: headway.Call{MaxWait: tc.call}})
					if i < tc.want {
						if p.done.Load() {
							s.Errorf("number %d: got %v, want it to wait", i+1, p.err)
						}
						continue
					}
					e := s.wantRefused(p, limiter.ReasonLimit, time.Duration(tc.want+1)*tc.limit.Per/time.Duration(tc.limit.N))
					// That is no deadline of the caller's.
					if e.Timeout() || errors.Is(e, context.DeadlineExceeded) || e.AtLeast {
						s.Errorf("%v: timeout %v, at least %v, want neither", e, e.Timeout(), e.AtLeast)
					}
				}
				s.all.Wait()
				if got := len(s.base.starts()); got != 1+tc.want {
					s.Errorf("got %d starts, want %d", got, 1+tc.want)
				}
			})
		})
	}
}

// OneWindow counts the limits that apply to the request.
func TestS30_OneWindowOfWhatApplies(t *testing.T) {
	policies := []headway.Policy{{
		Hosts: []string{"*"}, MaxWait: headway.OneWindow, Limits: []limiter.Limit{limiter.Every(time.Second)},
		Rules: []headway.Rule{{Name: "search", Path: "/search", Limit: limiter.PerMinute(100)}},
	}}
	play(t, policies, func(s *scene) {
		s.sendAll(ask{}, "A", "B") // B at 1 s, one window
		s.wantRefused(s.send("C", ask{}), limiter.ReasonLimit, 2*time.Second)
		s.sendAll(ask{url: "https://api.test/search"}, "D", "E", "F", "G") // up to 5 s
		s.wantRefused(s.send("H", ask{url: "https://api.test/search"}), limiter.ReasonLimit, 6*time.Second)
		s.wantStarts("A@0s B@1s D@2s E@3s F@4s G@5s")
	})
}

// S31: what a wait budget of 1 s is worth under two laws. Bucket lets a burst
// through and then goes on evenly, Window has to wait for the burst to age.
func TestS31_RefusedUnderLoad(t *testing.T) {
	bucket := limiter.Limit{N: 50, Per: time.Second, Law: limiter.Bucket}
	for _, tc := range []struct {
		name           string
		n              int
		over           time.Duration
		bucket, window int // refused
	}{
		{"50 over 1 s", 50, time.Second, 0, 0},
		{"100 at once", 100, 0, 0, 0},
		{"200 evenly over 2 s", 200, 2 * time.Second, 1, 50},
		{"300 evenly over 1 s", 300, time.Second, 151, 200},
	} {
		for law, want := range map[limiter.Limit]int{bucket: tc.bucket, limiter.PerSecond(50): tc.window} {
			t.Run(tc.name+"/"+law.String(), func(t *testing.T) {
				p := limits(law)
				p[0].MaxWait = time.Second
				play(t, p, func(s *scene) {
					var trips []*trip
					for range tc.n {
						trips = append(trips, s.send("x", ask{}))
						time.Sleep(tc.over / time.Duration(tc.n))
					}
					s.all.Wait()
					refused := 0
					for _, p := range trips {
						if p.err != nil {
							refused++
						}
					}
					if refused > want || law.Law == limiter.Window && refused != want {
						s.Errorf("got %d refused, want %d", refused, want)
					}
				})
			})
		}
	}
}

// S32 and C57: a refusal takes no time, in real time too.
func TestS32_RefusedAtOnce(t *testing.T) {
	p := limits(limiter.Limit{N: 50, Per: time.Minute, Law: limiter.Bucket})
	p[0].MaxWait = headway.NoWait
	tr := newTransport(t, new(base), headway.Config{Policies: p})
	refused := 0
	quickest := time.Hour
	for range 100 {
		req := ask{}.request("x")
		begin := time.Now()
		_, err := tr.RoundTrip(req)
		took := time.Since(begin)
		if e, isThrottled := err.(*headway.ThrottledError); isThrottled {
			refused++
			quickest = min(quickest, took)
			if e.RetryAfter <= 0 || e.RetryAfter > 1200*time.Millisecond {
				t.Errorf("told %v, want at most the 1.2 s until the next unit", e.RetryAfter)
			}
		}
	}
	if refused != 50 || quickest > time.Millisecond {
		t.Errorf("got %d refused, the quickest in %v, want 50 in less than 1 ms", refused, quickest)
	}
}

// One caller against 25 that loop without end: it starts after those who are in
// line before it, every time.
func TestS33_OneAgainstAHerd(t *testing.T) {
	play(t, limits(limiter.Limit{N: 50, Per: time.Second, Law: limiter.Bucket}), func(s *scene) {
		ctx, cancel := context.WithCancel(s.Context())
		for range 25 {
			s.all.Go(func() {
				for ctx.Err() == nil {
					s.RoundTrip(ask{ctx: ctx}.request("herd"))
				}
			})
		}
		time.Sleep(10 * time.Second)
		for range 20 {
			time.Sleep(7 * time.Millisecond)
			if p := s.send("one", ask{}); !p.done.Load() {
				for !p.done.Load() {
					time.Sleep(time.Millisecond)
				}
				if p.err != nil || p.after > 26*20*time.Millisecond {
					s.Errorf("got %v after %v, want a start within 520 ms", p.err, p.after)
				}
			}
		}
		cancel()
	})
}

func TestS34_BucketReportsWaits(t *testing.T) {
	play(t, limits(limiter.Limit{N: 100, Per: time.Second, Law: limiter.Bucket}), func(s *scene) {
		for i := range 198 {
			s.send(strconv.Itoa(i), ask{})
		}
		if d, err := s.Delay(ask{}.request("last")); d != 990*time.Millisecond || err != nil {
			s.Errorf("told %v, %v, want 990ms", d, err)
		}
		last := s.send("last", ask{})
		s.all.Wait()
		if last.after != 990*time.Millisecond || last.err != nil {
			s.Errorf("started after %v, %v, want 990ms", last.after, last.err)
		}
	})
}

// within returns a context with a deadline.
func (s *scene) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	s.Cleanup(cancel)
	return ctx
}

func TestS35_Deadline(t *testing.T) {
	play(t, limits(limiter.Every(3*time.Second)), func(s *scene) {
		s.send("first", ask{})
		for _, d := range []time.Duration{time.Second, 3 * time.Second} { // exactly the deadline does not fit
			e := s.wantRefused(s.send("A", ask{ctx: s.within(d)}), limiter.ReasonLimit, 3*time.Second)
			if !e.Timeout() || !errors.Is(e, context.DeadlineExceeded) || e.StatusCode() != 429 {
				s.Errorf("%v of %v: timeout %v, want the deadline to blame", e, d, e.Timeout())
			}
		}
		s.send("B", ask{ctx: s.within(3*time.Second + 1)})
		s.wantStarts("first@0s B@3s")
	})
	t.Run("MaxWait is shorter still", func(t *testing.T) {
		play(t, limits(limiter.Every(3*time.Second)), func(s *scene) {
			s.send("first", ask{})
			e := s.wantRefused(s.send("A", ask{ctx: s.within(2 * time.Second), call: headway.Call{MaxWait: time.Second}}), limiter.ReasonLimit, 3*time.Second)
			if e.Timeout() || errors.Is(e, context.DeadlineExceeded) {
				s.Errorf("%v: blames the deadline, which was not what was too short first", e)
			}
		})
	})
}

// Through http.Client: its *url.Error, and its Timeout.
func TestS35_DeadlineThroughClient(t *testing.T) {
	for name, timeout := range map[string]time.Duration{"the request's": 0, "Client.Timeout": time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, err := headway.Wrap(&http.Client{Transport: &base{}, Timeout: timeout}, limiter.Every(3*time.Second))
				if err != nil {
					t.Fatal(err)
				}
				ctx := context.Background()
				if timeout == 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, time.Second)
					defer cancel()
				}
				get := func() error {
					resp, err := c.Do(ask{ctx: ctx}.request("A"))
					if err == nil {
						resp.Body.Close()
					}
					return err
				}
				if err := get(); err != nil {
					t.Fatal(err)
				}
				begin := time.Now()
				err = get()
				var wrapped *url.Error
				var refused *headway.ThrottledError
				var netErr net.Error
				if !errors.As(err, &wrapped) || !wrapped.Timeout() || !errors.As(err, &netErr) || !netErr.Timeout() {
					t.Errorf("got %#v, want a *url.Error that is a timeout", err)
				}
				if !errors.As(err, &refused) || refused.RetryAfter != 3*time.Second || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v, want the refusal in it", err)
				}
				if took := time.Since(begin); took != 0 {
					t.Errorf("back after %v, want at once", took)
				}
			})
		})
	}
	t.Run("MaxWait is no timeout", func(t *testing.T) {
		p := limits(limiter.Every(3 * time.Second))
		p[0].MaxWait = time.Second
		play(t, p, func(s *scene) {
			c := &http.Client{Transport: s.Transport}
			for range 2 {
				resp, err := c.Do(ask{}.request("A"))
				var wrapped *url.Error
				if err == nil {
					resp.Body.Close()
				} else if !errors.As(err, &wrapped) || wrapped.Timeout() || errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, headway.ErrThrottled) {
					s.Errorf("got %#v, want a refusal that is no timeout", err)
				}
			}
		})
	})
}

// S36, C37
func TestS36_ContextIsOver(t *testing.T) {
	play(t, limits(limiter.PerMinute(1)), func(s *scene) {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(errors.New("a cause of its own"))
		if p := s.send("A", ask{ctx: ctx}); p.err != context.Canceled || p.after != 0 {
			s.Errorf("got %v after %v, want the plain context.Canceled at once", p.err, p.after)
		}
		past, cancelPast := context.WithDeadline(context.Background(), time.Now())
		defer cancelPast()
		if p := s.send("A", ask{ctx: past}); p.err != context.DeadlineExceeded || p.after != 0 {
			s.Errorf("got %v after %v, want the plain context.DeadlineExceeded at once", p.err, p.after)
		}
		s.send("B", ask{}) // nothing was taken
		c := s.send("C", ask{})
		s.until(5 * time.Second)
		c.cancel()
		synctest.Wait()
		if !c.done.Load() || c.err != context.Canceled || c.after != 5*time.Second {
			s.Errorf("got %v after %v, want the plain context.Canceled at 5 s", c.err, c.after)
		}
		s.send("D", ask{})
		s.wantStarts("B@0s D@1m0s")
	})
}

// C35: with real time, back soon after the cancel.
func TestC35_CancelIsPrompt(t *testing.T) {
	tr := newTransport(t, &base{}, headway.Config{Policies: limits(limiter.Every(time.Minute))})
	if _, err := tr.RoundTrip(ask{}.request("A")); err != nil {
		t.Fatal(err)
	}
	for quickest, tries := time.Hour, 0; quickest > 10*time.Millisecond; tries++ {
		if tries == 20 {
			t.Fatalf("back after %v at the soonest, want 10 ms", quickest)
		}
		ctx, cancel := context.WithCancel(t.Context())
		back := make(chan time.Time)
		go func() {
			tr.RoundTrip(ask{ctx: ctx}.request("B"))
			back <- time.Now()
		}()
		for tr.Snapshot()[0].Waiting == 0 {
		}
		begin := time.Now()
		cancel()
		quickest = min(quickest, (<-back).Sub(begin))
	}
}

// C36: the base fails, or the context ends, while others wait; the next goes.
func TestC36_NextGoesAfterAFailure(t *testing.T) {
	p := limits(limiter.PerSecond(100))
	p[0].MaxInFlight = 1
	play(t, p, func(s *scene) {
		s.base.latency = time.Second
		s.base.answer = func(req *http.Request) (*http.Response, error) {
			if req.Header.Get("Name") == "A" {
				return nil, io.ErrUnexpectedEOF
			}
			return ok(req), nil
		}
		a := s.send("A", ask{})
		b := s.send("B", ask{})
		s.sendAll(ask{}, "C", "D")
		s.until(1500 * time.Millisecond)
		b.cancel() // in flight
		s.wantStarts("A@0s B@1s C@1.5s D@2.5s")
		if a.err != io.ErrUnexpectedEOF || b.err != context.Canceled {
			s.Errorf("got %v and %v, want the base's errors", a.err, b.err)
		}
		wantIdle(s, s.Transport)
	})
}

func TestS40_LineFull(t *testing.T) {
	p := limits(limiter.Every(time.Second))
	p[0].MaxWaiting = 2
	play(t, p, func(s *scene) {
		three := s.sendAll(ask{}, "A", "B", "C")
		e := s.wantRefused(s.send("D", ask{}), limiter.ReasonLineFull, 3*time.Second)
		if e.Timeout() || e.Rule != "1/1s" && e.Rule != limiter.Every(time.Second).String() {
			s.Errorf("got %+v, want the limit's name and no timeout", e)
		}
		three[2].cancel()
		synctest.Wait()
		s.send("E", ask{}) // there is a place again
		s.wantStarts("A@0s B@1s E@2s")
	})
}

// The default cap.
func TestS40_LineFullAt10000(t *testing.T) {
	play(t, limits(limiter.Every(time.Second)), func(s *scene) {
		ctx, cancel := context.WithCancel(context.Background())
		s.send("first", ask{})
		for range 10_000 {
			s.all.Go(func() { s.RoundTrip(ask{ctx: ctx}.request("x")) })
		}
		synctest.Wait()
		s.wantRefused(s.send("last", ask{}), limiter.ReasonLineFull, 10_001*time.Second)
		cancel()
	})
}

// It runs in a bubble for the sake of stores: on a busy machine the questions of
// 10,000 callers may take longer than a store may take to answer.
func TestS38_C56_ExactlyTheLimit(t *testing.T) {
	for _, n := range []int{500, fewer(10_000)} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := limits(limiter.PerHour(50))
				p[0].MaxWait = headway.NoWait
				b := new(base)
				tr := newTransport(t, b, headway.Config{Policies: p})
				begin := make(chan struct{})
				errs := make(chan error, n)
				for range n {
					go func() {
						req := ask{}.request("x")
						<-begin
						_, err := tr.RoundTrip(req)
						errs <- err
					}()
				}
				close(begin)
				admitted := 0
				for range n {
					if err := <-errs; err == nil {
						admitted++
					} else if !errors.Is(err, headway.ErrThrottled) {
						t.Error(err)
					}
				}
				if admitted != 50 || len(b.starts()) != 50 {
					t.Errorf("got %d admitted, %d sent, want exactly 50", admitted, len(b.starts()))
				}
			})
		})
	}
}

// A rule that is blocked for a while refuses the requests in line and later ones; what
// it counted before still counts after it.
func TestBlockedForAWhile(t *testing.T) {
	rule := func(l limiter.Limit) []headway.Policy { return rules(headway.Rule{Name: "r", Limit: l}) }
	play(t, rule(limiter.PerHour(3)), func(s *scene) {
		s.sendAll(ask{}, "A", "B", "C")
		waiting := s.send("D", ask{})
		if err := s.SetPolicies(rule(limiter.Blocked())); err != nil {
			s.Fatal(err)
		}
		s.until(time.Minute)
		if e := s.wantRefused(waiting, limiter.ReasonDisabled, limiter.Never); e.Rule != "r" {
			s.Errorf("got rule %q, want r", e.Rule)
		}
		s.wantRefused(s.send("E", ask{}), limiter.ReasonDisabled, limiter.Never)
		q := s.quota("api.test", "r", "")
		if d := delay(s, q, 1); d != limiter.Never {
			s.Errorf("got a delay of %v, want Never", d)
		}
		if n := remaining(s, q); n > 0 {
			s.Errorf("%d are left, want none", n)
		}
		if got := s.Snapshot()[0].Rules[0].Limit.String(); got != "blocked" {
			s.Errorf("the snapshot shows %s", got)
		}
		s.until(30 * time.Minute)
		if err := s.SetPolicies(rule(limiter.PerHour(3))); err != nil {
			s.Fatal(err)
		}
		s.wantRemaining(q, 0)
		s.send("F", ask{})
		s.wantStarts("A@0s B@0s C@0s F@1h0m0s")
	})
}
