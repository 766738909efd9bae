package headway_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
)

// A service of language models says what is left of its requests and tokens a minute.
// With the rules that its limits are, and nothing else set, callers use all of it, though
// their estimates are a quarter too high: whether a response's headers settle them or its
// body does, and whether tokens or requests are what is short.
func TestAnnouncedRequestsAndTokens(t *testing.T) {
	const ms = time.Millisecond
	var list []scenario
	for _, server := range []struct {
		name string
		by   counting
		ours limiter.Law
	}{
		{"sliding", sliding, limiter.Window},
		{"bucket", bucket, limiter.Bucket},
		{"bucket, ours a window", bucket, limiter.Window},
	} {
		for _, short := range []struct {
			name   string
			tokens [2]int64
		}{{"tokens", [2]int64{100, 999}}, {"requests", [2]int64{50, 449}}, {"both", [2]int64{100, 566}}} {
			for _, settled := range []string{"headers", "body"} {
				if settled == "body" && short.name != "tokens" {
					continue
				}
				requests := headway.Rule{Name: "requests", Announced: "requests", Limit: limiter.Limit{N: 120, Per: time.Minute, Law: server.ours}}
				tokens := headway.Rule{Name: "tokens", Announced: "tokens", Limit: limiter.Limit{N: 40_000, Per: time.Minute, Law: server.ours}, Cost: headway.FromCallCost}
				s := scenario{
					name: fmt.Sprintf("%s, %s are short, settled by the %s", server.name, short.name, settled), says: saysOpenAI,
					meters: []meter{
						{label: "requests", n: 120, per: time.Minute, by: server.by},
						{label: "tokens", n: 40_000, per: time.Minute, by: server.by, tokens: true},
					},
					refuse: refuseInMilliseconds, callers: 40, there: [2]time.Duration{5 * ms, 65 * ms}, takes: [2]time.Duration{300 * ms, 2800 * ms},
					tokens: short.tokens, over: 1.25, lasts: 10 * time.Minute, want: figure{used: 97, refused: 2},
				}
				if server.ours == limiter.Bucket {
					s.where = inStores(figure{used: 96, refused: 2}) // see TestAnnouncedScenarios
				}
				if server.by == bucket && server.ours == limiter.Window {
					s.allowed = func(m *meter) float64 { return float64(m.n) * s.lasts.Minutes() }
				}
				if settled == "headers" {
					tokens.Settle = costHeader
				} else {
					s.settle = func(resp *http.Response, cost int64) {
						if err := headway.Settle(resp, "tokens", cost); err != nil {
							t.Error(err)
						}
					}
				}
				s.policy.Rules = []headway.Rule{requests, tokens}
				list = append(list, s)
			}
		}
	}
	playEverywhere(t, 1, list)
}

// What services say of one limit is used in whatever form they say it. None of these
// callers knows more than what is said and, where it has one, its own limit.
func TestAnnouncedForms(t *testing.T) { playEverywhere(t, 1, forms()) }

func forms() []scenario {
	const ms = time.Millisecond
	rule := func(l limiter.Limit) headway.Policy {
		return headway.Policy{Rules: []headway.Rule{{Name: "ours", Announced: "requests", Limit: l}}}
	}
	limit := func(list ...limiter.Limit) headway.Policy { return headway.Policy{Limits: list} }
	one := func(n int64, per time.Duration, by counting) []meter {
		return []meter{{label: "requests", n: n, per: per, by: by}}
	}
	tenInFiveSeconds := func(name string, says func(http.Header, *meter, state), p headway.Policy, used float64) scenario {
		return scenario{
			name: "10 a second in 5 s, " + name, meters: one(10, time.Second, sliding), says: says, policy: p,
			callers: 60, takes: [2]time.Duration{5 * time.Second, 5 * time.Second}, lasts: time.Minute,
			want: figure{used: used, refused: 0}, where: inStores(figure{used: 97}),
		}
	}
	bucketOf20 := func(name string, says func(http.Header, *meter, state), p headway.Policy, used float64) scenario {
		return scenario{
			name: "bucket of 20 a second, " + name, meters: one(20, time.Second, bucket), says: says, policy: p,
			callers: 40, there: [2]time.Duration{10 * ms, 50 * ms}, takes: [2]time.Duration{100 * ms, 300 * ms}, lasts: 5 * time.Minute,
			want: figure{used: used, refused: 8}, where: inStores(figure{used: used - 20, refused: 8}),
		}
	}
	unknown := func(name string, says func(http.Header, *meter, state), by counting, used float64) scenario {
		return scenario{
			name: "10 a second, no limit of ours, " + name, meters: one(10, time.Second, by), says: says, refuse: refuseIn100Milliseconds,
			callers: 30, every: 100 * ms, there: [2]time.Duration{5 * ms, 15 * ms}, takes: [2]time.Duration{20 * ms, 60 * ms}, lasts: 6 * time.Minute,
			want: figure{used: used, refused: 1000. * 19 / 3600},
			// Each process restarts by itself after a refusal.
			where: map[place]figure{ofTwo: {used: 75, refused: 15}, inBatches: {used: 75, refused: 15}},
		}
	}
	rolling := func(name string, reset func(state) string, used float64) scenario {
		return scenario{
			name: "a rolling minute, " + name, meters: one(60, time.Minute, sliding), says: saysPlain(reset), refuse: refuseInMilliseconds,
			callers: 10, every: 10 * time.Second, there: [2]time.Duration{5 * ms, 15 * ms}, takes: [2]time.Duration{time.Second, 2 * time.Second},
			lasts: 5 * time.Minute, want: figure{used: used, refused: 1000. * 2 / 300}, where: inStores(figure{used: used, refused: 30}),
		}
	}
	perSecond, refills := limiter.PerSecond(10), limiter.Limit{N: 20, Per: time.Second, Law: limiter.Bucket}
	// A bucket is taken for a rolling second, of which as much comes back as was used.
	byDraft8 := unknown("by draft 8", saysDraft8, bucket, 75)
	byDraft8.want.refused, byDraft8.where = 20, nil
	return []scenario{
		tenInFiveSeconds("by draft 8", saysDraft8, limit(perSecond), 100),
		tenInFiveSeconds("by draft 6", saysDraft6, limit(perSecond), 100),
		tenInFiveSeconds("by OpenAI's", saysOpenAI, rule(perSecond), 100),
		bucketOf20("by draft 8", saysDraft8, limit(refills), 98),
		bucketOf20("until full, a duration", saysOpenAI, rule(refills), 98),
		bucketOf20("until full, a decimal", saysPlain(fullInDecimals), limit(refills), 98),
		unknown("until the next, a duration", saysNextOpenAI, bucket, 97),
		unknown("until the next, a decimal", saysPlain(nextInDecimals), bucket, 97),
		unknown("until the next of a rolling second", saysNextOpenAI, sliding, 90),
		unknown("100ms, whatever it is", says100Milliseconds, bucket, 90),
		unknown("until full, a duration", saysOpenAI, bucket, 90),
		byDraft8,
		rolling("until the oldest comes back", nextInSeconds, 80),
		rolling("until the newest comes back", fullInSeconds, 55),
		rolling("a minute from now", func(state) string { return "60" }, 60),
		rolling("no reset", noReset, 55),
	}
}

// saysNextOpenAI has OpenAI's names, and the time until the next unit.
func saysNextOpenAI(h http.Header, m *meter, s state) {
	s.full = s.next
	saysOpenAI(h, m, s)
}

// says100Milliseconds has OpenAI's names, and a reset that never changes.
func says100Milliseconds(h http.Header, m *meter, s state) {
	s.full = 100 * time.Millisecond
	saysOpenAI(h, m, s)
}

func refuseIn100Milliseconds(h http.Header, _ time.Duration) { h.Set("Retry-After-Ms", "100") }

// Responses that take long hold up nothing: neither those that announce the same limit
// again and again, nor one that has not announced it yet.
func TestAnnouncedWhileRequestsAreInFlight(t *testing.T) {
	long := errand{takes: 10 * time.Minute}
	quick := errand{takes: 50 * time.Millisecond}
	for _, c := range []struct {
		name   string
		meter  meter
		says   func(http.Header, *meter, state)
		policy headway.Policy
		long   int           // so many long polls come first,
		short  int           // and so many other requests,
		every  time.Duration // one by one; zero: all at once
	}{
		{"five long polls, draft 8", meter{label: "s", n: 5, per: time.Second}, saysDraft8,
			headway.Policy{Limits: []limiter.Limit{limiter.PerSecond(5)}}, 5, 1475, 0},
		{"five long polls, OpenAI's", meter{label: "requests", n: 5, per: time.Second}, saysOpenAI,
			headway.Policy{Rules: []headway.Rule{{Name: "ours", Announced: "requests", Limit: limiter.PerSecond(5)}}}, 5, 1475, 0},
		{"one slow request, draft 8", meter{label: "m", n: 1000, per: time.Minute}, saysDraft8, headway.Policy{}, 1, 2400, 125 * time.Millisecond},
		{"one slow request, until full", meter{n: 1000, per: time.Minute}, saysPlain(fullInSeconds), headway.Policy{}, 1, 2400, 125 * time.Millisecond},
		{"one slow request, until the next", meter{n: 1000, per: time.Minute}, saysPlain(nextInSeconds), headway.Policy{}, 1, 2400, 125 * time.Millisecond},
		{"one slow request, a fixed window", meter{n: 1000, per: time.Minute, by: fixed}, saysPlain(fullInSeconds), headway.Policy{}, 1, 2400, 125 * time.Millisecond},
		{"one slow request, no reset", meter{n: 1000, per: time.Minute}, saysPlain(noReset), headway.Policy{}, 1, 2400, 125 * time.Millisecond},
	} {
		for _, in := range []place{inMemory, inStore} {
			t.Run(c.name+", "+in.String(), func(t *testing.T) {
				bubble(t, func() {
					const within = 5 * time.Minute
					m, short := c.meter, c.short
					if in != inMemory && c.every == 0 {
						short -= short / 50 // a period begins a round trip later
					}
					srv := &service{meters: []*meter{&m}, says: c.says, begin: time.Now(), end: within}
					s := scenario{policy: c.policy}
					tr := s.transports(t, srv, in)[0]
					var all sync.WaitGroup
					send := func(e errand) {
						all.Go(func() {
							resp, err := tr.RoundTrip(ask{ctx: e.on(context.Background())}.request(""))
							if err != nil {
								t.Error(err)
								return
							}
							resp.Body.Close()
						})
						synctest.Wait()
					}
					for range c.long {
						send(long)
					}
					for range short {
						send(quick)
						time.Sleep(c.every)
					}
					time.Sleep(within - time.Since(srv.begin))
					srv.mu.Lock()
					if srv.arrived != c.long+short || srv.refused > 0 {
						t.Errorf("%d requests have arrived after %v, and %d were refused; want all %d, and none", srv.arrived, within, srv.refused, c.long+short)
					}
					srv.mu.Unlock()
					all.Wait()
					time.Sleep(10 * time.Second)
				})
			})
		}
	}
}

// A wait under an announced limit may turn out longer, so what is reported is a lower
// bound, and MaxWait ends it on time.
func TestAnnouncedWaitsAreLowerBounds(t *testing.T) {
	for _, c := range []struct {
		name  string
		rules []headway.Rule
		lines []string
		least time.Duration
	}{
		{"a reset", nil, []string{"X-RateLimit-Limit: 3", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 10"}, 10 * time.Second},
		{"a window", nil, []string{`RateLimit-Policy: "m";q=3;w=60`, `RateLimit: "m";r=0;t=10`}, 10 * time.Second},
		{"a rule's", []headway.Rule{{Name: "ours", Announced: "requests", Limit: limiter.PerMinute(100)}},
			[]string{"X-RateLimit-Limit-Requests: 100", "X-RateLimit-Remaining-Requests: 0", "X-RateLimit-Reset-Requests: 10s"}, 0},
		{"lower than the rule", []headway.Rule{{Name: "ours", Announced: "requests", Limit: limiter.PerMinute(100)}},
			[]string{"X-RateLimit-Limit-Requests: 50", "X-RateLimit-Remaining-Requests: 0", "X-RateLimit-Reset-Requests: 10s"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, rules(c.rules...), func(s *scene) {
				s.base.answer = says(200, "", c.lines...)
				s.send("A", ask{})
				p := s.send("B", ask{call: headway.Call{MaxWait: headway.NoWait}})
				e := new(headway.ThrottledError)
				if !errors.As(p.err, &e) || p.after != 0 {
					s.Fatalf("got %v after %v, want it refused at once", p.err, p.after)
				}
				if !e.AtLeast || e.Reason != limiter.ReasonLimit || e.RetryAfter < c.least || e.RetryAfter <= 0 {
					s.Errorf("got %+v, want a lower bound of %v", e.Refusal, c.least)
				}
				wait := e.RetryAfter + time.Second // longer than is foreseen
				s.base.latency = 900 * time.Millisecond
				var starts []*trip
				for i := range 5 { // each start announces anew that nothing is left
					starts = append(starts, s.send("C"+strconv.Itoa(i), ask{call: headway.Call{MaxWait: wait}}))
				}
				s.until(wait + s.base.latency)
				for i, p := range starts {
					if !p.done.Load() || p.err != nil && p.after > wait {
						s.Errorf("C%d: %v after %v, want it refused by %v, or sent by then", i, p.err, p.after, wait)
					}
				}
			})
		})
	}
}
