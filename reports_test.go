package headway_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/breaker"
	"github.com/headway-go/headway/limiter"
)

// Reports of faults in other limiters, breakers and clients, replayed here.

// everyLaw is each law with a limit of ten in ten minutes.
var everyLaw = []limiter.Limit{
	{N: 10, Per: 10 * time.Minute}, {N: 10, Per: 10 * time.Minute, Strict: true}, {N: 10, Per: 10 * time.Minute, Law: limiter.Bucket},
	{N: 10, Per: 10 * time.Minute, Law: limiter.Spaced}, {N: 10, Per: 10 * time.Minute, Law: limiter.Sliding},
	{N: 10, Law: limiter.Calendar, Unit: limiter.Hour},
}

// peterkhayes/rolling-rate-limiter 9 and 15: a refused attempt counts too, and
// whoever asks more often than it may is refused for ever. Here what is refused takes
// nothing: one that asks twice as often as it may is admitted every other time in the
// long run, as if it had asked only then.
func TestReportRefusalsTakeNothing(t *testing.T) {
	for _, limit := range everyLaw {
		t.Run(limit.String(), func(t *testing.T) {
			play(t, limits(limit), func(s *scene) {
				asked := func() (starts int) {
					for i := range 240 {
						s.until(time.Duration(i) * 30 * time.Second)
						s.send(fmt.Sprint(i), ask{call: headway.Call{MaxWait: headway.NoWait}})
					}
					return len(s.base.starts())
				}
				want := 120 // one a minute for two hours, and what a burst lets through besides
				switch limit.Law {
				case limiter.Bucket:
					want += 10 - 1
				case limiter.Calendar:
					want = 20
				}
				if got := asked(); got < want-12 || got > want+1 {
					s.Errorf("%d starts of 240 requests in two hours, want about %d", got, want)
				}
			})
		})
	}
}

// sidekiq/sidekiq 5315: of 100 workers that wait for one bucket again and again some
// lose each time, and exceed a wait of which they would need a fraction. Here they
// come in turn, and none is refused.
func TestReportWorkersInTurn(t *testing.T) {
	const workers, minutes = 100, 10
	p := limits(limiter.Limit{N: 300, Per: time.Minute, Law: limiter.Bucket, Burst: 1})
	p[0].MaxWait = 5 * time.Minute
	play(t, p, func(s *scene) {
		ctx, cancel := context.WithCancel(context.Background())
		var done [workers]int
		for w := range workers {
			s.all.Go(func() {
				for ctx.Err() == nil {
					_, err := s.RoundTrip(ask{ctx: ctx}.request(fmt.Sprint(w)))
					if errors.Is(err, headway.ErrThrottled) {
						s.Errorf("worker %d: %v", w, err)
					}
					if err == nil {
						done[w]++
					}
				}
			})
		}
		s.until(minutes*time.Minute - 1)
		cancel()
		s.all.Wait()
		for w, n := range done {
			// One is the first, and back in line before the others have come.
			if n < 300*minutes/workers-1 || n > 300*minutes/workers+1 {
				s.Errorf("worker %d has had %d starts, want about %d", w, n, 300*minutes/workers)
			}
		}
	})
}

// mvanhorn/cli-printing-press 4441: waits that are cancelled in the order in which they
// came leave a slot behind that no request uses. thrasher-corp/gocryptotrader 2363: a
// nanosecond of rounding breaks what a cancel gives back, in x/time/rate. Here a wait
// that is over has never been: the next comes when it would have come without.
func TestReportCancelsLeaveNothing(t *testing.T) {
	odd := []limiter.Limit{
		{N: 3, Per: 7 * time.Second}, {N: 3, Per: 7 * time.Second, Law: limiter.Bucket, Burst: 2}, {N: 7, Per: 11 * time.Second, Law: limiter.Spaced},
		{N: 5, Per: 13 * time.Second, Law: limiter.Sliding}, {N: 3, Per: 7 * time.Second, Strict: true},
	}
	for _, limit := range odd {
		t.Run(limit.String(), func(t *testing.T) {
			p := limits(limit, limiter.Limit{N: 100, Per: 9 * time.Second, Law: limiter.Bucket})
			play(t, p, func(s *scene) {
				r := rand.New(rand.NewPCG(1, 1))
				for round := range 30 {
					s.sendAll(ask{}, "a", "b", "c") // more than fit, some of the time
					next := ask{}.request("next")
					want, refused := s.Delay(next)
					var waits []context.CancelFunc
					for range 1 + r.IntN(4) {
						ctx, cancel := context.WithCancel(context.Background())
						s.send("canceled", ask{ctx: ctx, call: headway.Call{Cost: 1 + r.Int64N(2)}})
						waits = append(waits, cancel)
					}
					if round%2 == 0 {
						r.Shuffle(len(waits), func(i, j int) { waits[i], waits[j] = waits[j], waits[i] })
					}
					_, started := s.counts()
					for _, cancel := range waits {
						cancel()
						synctest.Wait()
					}
					if _, now := s.counts(); started == 0 && now == 0 {
						got, refusedNow := s.Delay(next)
						if got != want || (refused == nil) != (refusedNow == nil) {
							s.Fatalf("round %d: the next may start in %v (%v), without the canceled in %v (%v)", round, got, refusedNow, want, refused)
						}
					}
					s.all.Wait()
					time.Sleep(time.Duration(r.Int64N(int64(10 * time.Second))))
					s.base.reset()
				}
			})
		})
	}
}

// counts returns how many requests have started, and how many of them under the
// name "canceled".
func (s *scene) counts() (all, canceled int) {
	for _, start := range s.base.starts() {
		if all++; strings.HasPrefix(start, "canceled@") {
			canceled++
		}
	}
	return all, canceled
}

// reset forgets the starts so far.
func (b *base) reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.log = nil
}

// github/gh-aw-mcpg 10686: while a breaker's probe is out, refusals name a time that has
// passed, and so a negative wait. Here no refusal ever does, for as long as a probe may
// hang and longer.
func TestReportNoNegativeWait(t *testing.T) {
	c := breaker.Config{Failures: 1, OpenFor: 2 * time.Second, ProbeTimeout: 5 * time.Second}
	play(t, broken(c), func(s *scene) {
		s.base.answer = script
		s.send("fail", ask{})
		refusals := 0
		for at := time.Duration(0); at < 30*time.Second; at += 250 * time.Millisecond {
			s.until(at)
			trip := s.send("hang", ask{})
			var open *headway.OpenError
			if errors.As(trip.err, &open) {
				if refusals++; open.RetryAfter < 0 || open.RetryAfter > 5*time.Second {
					s.Errorf("at %v: to come back in %v", at, open.RetryAfter)
				}
			}
			defer trip.cancel()
		}
		if refusals < 50 {
			s.Errorf("%d refusals show nothing", refusals)
		}
	})
}

// vellum-ai/vellum-assistant 22509: a request that passes the breaker by takes the
// probe's place, and no result of it counts: half-open for ever. Here such a request
// is not seen.
func TestReportBypassIsNoProbe(t *testing.T) {
	play(t, broken(breaker.Config{Failures: 1, OpenFor: 2 * time.Second}), func(s *scene) {
		s.base.answer = script
		s.send("fail", ask{})
		s.until(2 * time.Second)
		passing := s.send("hang", ask{call: headway.Call{Bypass: true}})
		if probe := s.send("200", ask{}); probe.err != nil {
			s.Errorf("the probe got %v", probe.err)
		}
		if last := s.send("200", ask{}); last.err != nil {
			s.Errorf("after the probe: %v", last.err)
		}
		passing.cancel()
		s.wantStarts("fail@0s hang@2s 200@2s 200@2s")
	})
}

// openclaw/openclaw 116557: a refusal that a gateway passes on is not valid HTTP. Here a
// local answer can be written and read again, for HEAD too.
func TestReportLocalResponseIsHTTP(t *testing.T) {
	for _, method := range []string{"GET", "HEAD", "POST"} {
		t.Run(method, func(t *testing.T) {
			p := limits(limiter.Every(time.Minute))
			p[0].MaxWait, p[0].Refusal = headway.NoWait, headway.RefuseWithResponse
			play(t, p, func(s *scene) {
				s.send("first", ask{})
				refused := s.send("refused", ask{method: method})
				if refused.err != nil {
					s.Fatal(refused.err)
				}
				var wire bytes.Buffer
				if err := refused.resp.Write(&wire); err != nil {
					s.Fatal(err)
				}
				text := wire.String()
				got, err := http.ReadResponse(bufio.NewReader(&wire), &http.Request{Method: method})
				if err != nil {
					s.Fatalf("%v in\n%s", err, text)
				}
				body, err := io.ReadAll(got.Body)
				if err != nil || got.StatusCode != 429 || got.Header.Get("Retry-After") != "60" || (len(body) > 0) != (method != "HEAD") {
					s.Errorf("got %s, Retry-After %q, a body of %d bytes, %v, in\n%s", got.Status, got.Header.Get("Retry-After"), len(body), err, text)
				}
				if got.ContentLength >= 0 && method != "HEAD" && got.ContentLength != int64(len(body)) {
					s.Errorf("Content-Length %d of %d bytes", got.ContentLength, len(body))
				}
			})
		})
	}
}

// sony/gobreaker 37 and didip/tollbooth 106: what a callback asks of the limiter that
// calls it waits for its own lock. Here an observer may ask everything, of every
// event, and change everything too.
func TestReportObserverCallsBack(t *testing.T) {
	var tr *headway.Transport
	var q *headway.Quota
	var hb *headway.HostBreaker
	policies := broken(breaker.Config{Failures: 1, OpenFor: time.Second}, limiter.Limit{N: 2, Per: time.Second})
	policies[0].MaxInFlight, policies[0].MaxWaiting = 2, 3
	var mu sync.Mutex // guards seen
	seen := map[headway.EventKind]int{}
	var inside atomic.Bool
	observer := headway.ObserverFunc(func(_ context.Context, e headway.Event) {
		mu.Lock()
		seen[e.Kind]++
		mu.Unlock()
		if tr == nil || q == nil || !inside.CompareAndSwap(false, true) {
			return
		}
		defer inside.Store(false)
		req := ask{call: headway.Call{MaxWait: headway.NoWait}}.request("200")
		tr.Snapshot()
		tr.Delay(req)
		remaining(t, q)
		spend(t, q, 1)
		spend(t, q, -1)
		hb.State()
		hb.Fail(errReset, 0)
		hb.Reset()
		if err := tr.SetPolicies(policies); err != nil {
			t.Error(err)
		}
		if resp, err := tr.RoundTrip(req); err == nil {
			resp.Body.Close()
		}
	})
	playConfig(t, headway.Config{Policies: policies, Observer: observer}, func(s *scene) {
		s.base.answer = script
		tr, q, hb = nil, nil, nil
		quota := s.quota("api.test", "2/1s", "")
		handle, err := s.Breaker("api.test")
		if err != nil {
			s.Fatal(err)
		}
		tr, q, hb = s.Transport, quota, handle
		for _, name := range []string{"paused", "200", "fail", "500", "200/1s", "cut", "200", "200", "200", "200"} {
			trip := s.send(name, ask{call: headway.Call{MaxWait: 3 * time.Second}})
			if trip.done.Load() && trip.err == nil {
				io.Copy(io.Discard, trip.resp.Body)
				trip.resp.Body.Close()
			}
			time.Sleep(100 * time.Millisecond)
		}
		canceled := s.send("200", ask{})
		canceled.cancel()
		s.all.Wait()
		tr = nil
		for _, kind := range []headway.EventKind{headway.EventStart, headway.EventRefused, headway.EventPause} {
			if seen[kind] == 0 {
				s.Errorf("no event of kind %v among %v", kind, seen)
			}
		}
	})
}

// hashicorp/go-retryablehttp 297, go-resty/resty 1178, urllib3/urllib3 3743,
// openai/openai-java 853, openclaw/clawscan 58: a Retry-After beyond what a duration
// holds wraps, and the client comes back at once. Here it saturates, and MaxPause cuts
// it; one in the past is no wait.
func TestReportRetryAfterBeyondDurations(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"9223372036": 24 * time.Hour, "9223372037": 24 * time.Hour, "18446744073": 24 * time.Hour, "18446744074": 24 * time.Hour,
		"9223372036854775807": 24 * time.Hour, "9223372036854775808": 24 * time.Hour, "18446744073709551617": 24 * time.Hour,
		strings.Repeat("9", 200): 24 * time.Hour, "120": 2 * time.Minute,
		"Fri, 31 Dec 9999 23:59:59 GMT": 24 * time.Hour, "Wed, 21 Oct 1999 07:28:00 GMT": 0,
	} {
		t.Run(fmt.Sprintf("%.20s", value), func(t *testing.T) {
			play(t, []headway.Policy{{Hosts: []string{"*"}}}, func(s *scene) {
				s.base.answer = func(req *http.Request) (*http.Response, error) {
					resp := ok(req)
					if req.Header.Get("Name") == "first" {
						resp.StatusCode = 429
						resp.Header.Set("Retry-After", value)
					}
					return resp, nil
				}
				s.send("first", ask{})
				s.send("next", ask{})
				s.wantStarts(fmt.Sprintf("first@0s next@%v", want))
			})
		})
	}
}

// alexfalkowski/go-service 2584 and songzhibin97/gkit 134: a request whose context is over
// keeps its body open, and takes a unit. Here it does neither, and whatever else keeps
// a request from being sent closes its body once.
func TestReportBodyOfARequestThatIsNotSent(t *testing.T) {
	c := breaker.Config{Failures: 1, OpenFor: time.Hour}
	over, end := context.WithCancel(context.Background())
	end()
	soon := func() context.Context {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		context.AfterFunc(ctx, cancel)
		return ctx
	}
	for name, a := range map[string]func() ask{
		"over":       func() ask { return ask{ctx: over} },
		"no wait":    func() ask { return ask{call: headway.Call{MaxWait: headway.NoWait}} },
		"deadline":   func() ask { return ask{ctx: soon()} },
		"impossible": func() ask { return ask{call: headway.Call{Cost: math.MaxInt64}} },
		"no cost":    func() ask { return ask{call: headway.Call{Cost: -1}} },
		"open":       func() ask { return ask{url: "https://open.test/"} },
	} {
		t.Run(name, func(t *testing.T) {
			play(t, broken(c, limiter.Limit{N: 2, Per: time.Hour}), func(s *scene) {
				s.base.answer = script
				s.send("fail", ask{url: "https://open.test/"})
				s.send("200", ask{})
				if name != "over" {
					s.send("200", ask{})
				}
				b := newBody("hello")
				a := a()
				a.method, a.body = "POST", b
				trip := s.send("unsent", a)
				if !trip.done.Load() || trip.err == nil || b.closed.Load() != 1 {
					s.Errorf("done %v with %v, the body closed %d times; want an error at once, and once", trip.done.Load(), trip.err, b.closed.Load())
				}
				if name == "over" {
					if next := s.send("200", ask{call: headway.Call{MaxWait: headway.NoWait}}); next.err != nil {
						s.Errorf("it has taken a unit: %v", next.err)
					}
				}
				s.wantStarts("fail@0s 200@0s 200@0s")
			})
		})
	}
}
