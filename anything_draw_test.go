package headway_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
	"pgregory.net/rapid"
)

// checkAnything draws servers, policies and requests.
func checkAnything(t *testing.T, in place) {
	outer := t
	for range fewer(15) {
		rapid.Check(t, func(t *rapid.T) {
			a := drawAnything(t)
			if faults := a.play(outer, in); len(faults) > 0 {
				t.Fatal(strings.Join(faults, "\n"))
			}
		})
	}
}

func drawAnything(t *rapid.T) *anything {
	a := &anything{policy: drawPolicy(t), lone: rapid.IntRange(0, 6).Draw(t, "lone"), atOnce: rapid.IntRange(0, 5).Draw(t, "at once")}
	if most := a.policy.MaxWaiting; most > 0 {
		a.atOnce = min(a.atOnce, most)
	}
	a.replies = rapid.SliceOfN(rapid.Custom(drawReply), 1, 6).Draw(t, "replies")
	a.crowd = rapid.SliceOfN(rapid.Custom(drawAsk), 0, 40).Draw(t, "crowd")
	return a
}

func drawPolicy(t *rapid.T) (p headway.Policy) {
	for i := range rapid.IntRange(0, 3).Draw(t, "rules") {
		r := headway.Rule{Name: []string{"requests", "a", "b"}[i], Limit: limiter.Limit{
			N:   rapid.Int64Range(2, 30).Draw(t, "N"),
			Per: rapid.SampledFrom([]time.Duration{50 * time.Millisecond, time.Second, 7 * time.Second, time.Minute}).Draw(t, "per"),
			Law: rapid.SampledFrom([]limiter.Law{limiter.Window, limiter.Bucket, limiter.Spaced, limiter.Sliding}).Draw(t, "law"),
		}}
		r.Limit.Strict = (r.Limit.Law == limiter.Window || r.Limit.Law == limiter.Spaced) && rapid.Bool().Draw(t, "strict")
		if i == 0 && rapid.Bool().Draw(t, "announced") {
			r.Announced = "requests"
		}
		if rapid.Bool().Draw(t, "keyed") {
			r.Key = headway.FromCallKey
		}
		if rapid.Bool().Draw(t, "costly") {
			r.Cost, r.Settle = headway.FromCallCost, costHeader
		}
		if rapid.IntRange(0, 3).Draw(t, "of PUT") == 0 {
			r.Methods = []string{"PUT"}
		}
		p.Rules = append(p.Rules, r)
	}
	p.MaxInFlight = rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(t, "slots")
	p.MaxWaiting = rapid.SampledFrom([]int{0, 0, 2, 10}).Draw(t, "line")
	p.MaxWait = rapid.SampledFrom([]time.Duration{0, 0, headway.NoWait, headway.OneWindow, 3 * time.Second}).Draw(t, "wait")
	p.Server.Learn = rapid.SampledFrom([]headway.LearnMode{headway.LearnLower, headway.LearnLower, headway.LearnPace, headway.LearnOff}).Draw(t, "learn")
	p.Server.MaxPause = rapid.SampledFrom([]time.Duration{0, 0, 10 * time.Second, 2 * time.Hour}).Draw(t, "longest pause")
	p.Store.Batch = rapid.SampledFrom([]int{0, 0, 5}).Draw(t, "batch")
	return p
}

func drawAsk(t *rapid.T) anyAsk {
	duration := func(name string, most time.Duration) time.Duration {
		if rapid.IntRange(0, 2).Draw(t, "no "+name) == 0 {
			return 0
		}
		return time.Duration(rapid.Int64Range(1, int64(most)).Draw(t, name))
	}
	a := anyAsk{
		after:  duration("gap", time.Second),
		method: rapid.SampledFrom([]string{"GET", "PUT"}).Draw(t, "method"),
		key:    rapid.SampledFrom([]string{"k", "l"}).Draw(t, "key"),
		cost:   rapid.Int64Range(1, 2).Draw(t, "cost"),
		quota:  rapid.IntRange(0, 9).Draw(t, "quota") == 0,
	}
	a.maxWait, a.deadline = duration("wait", 5*time.Second), duration("deadline", 9*time.Second)
	return a
}

// values are what no server should send, and what some do.
var values = []string{
	"0", "-1", "1", "2", "5", "10", "60", "3600", "86400", "100000000000", "9223372036854775807", "99999999999999999999", "-9223372036854775808",
	"NaN", "Inf", "1e309", "0.001", "0.5", "", "x", "0, 15;w=20", "1;w=1", "10, 10;w=1", "1, 15000", "40/40", "0/40",
	"@-86400", "@-5", "@0", "@1", "@20", "@100000000", "@@-5", "@@1", "@@30", "@@90000", "0s", "100ms", "1m0s", "6m0s", "-5s", "300h", "1s", "Tue, 15 Nov 1994 08:12:31 GMT",
}

// headers are of several dialects: what a limit is, what is left of it, when it resets,
// how long its window is, and when to come back.
var headers = []string{
	"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "X-RateLimit-Reset-After", "X-RateLimit-Used", "X-RateLimit-Window-Size",
	"X-RateLimit-Bucket", "X-RateLimit-Resource", "X-RateLimit-Scope", "X-RateLimit-Global", "X-RateLimit-Usage", "X-RateLimit-Policy",
	"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "RateLimit-Policy", "RateLimit",
	"X-RateLimit-Limit-Requests", "X-RateLimit-Remaining-Requests", "X-RateLimit-Reset-Requests",
	"X-RateLimit-Limit-Tokens", "X-RateLimit-Remaining-Tokens", "X-RateLimit-Reset-Tokens",
	"X-RateLimit-Limit-Minute", "X-RateLimit-Remaining-Minute", "X-RateLimit-Limit-Hour", "X-RateLimit-Remaining-Hour",
	"Anthropic-RateLimit-Requests-Limit", "Anthropic-RateLimit-Requests-Remaining", "Anthropic-RateLimit-Requests-Reset",
	"X-Rate-Limit-Limit", "X-Rate-Limit-Remaining", "X-Rate-Limit-Reset", "X-Shopify-Shop-Api-Call-Limit",
	"Retry-After", "Retry-After-Ms", "X-RateLimit-Retry-After", "X-Should-Retry", "Age", "X-Cache", "Date",
}

func drawReply(t *rapid.T) (r anyReply) {
	r.status = rapid.SampledFrom([]int{200, 200, 200, 200, 429, 429, 503, 403, 401, 529, 500}).Draw(t, "status")
	r.takes = rapid.SampledFrom([]time.Duration{0, 0, time.Millisecond, 300 * time.Millisecond, 7 * time.Second}).Draw(t, "takes")
	if rapid.Bool().Draw(t, "settles") {
		r.lines = append(r.lines, fmt.Sprintf("Cost: %d", rapid.IntRange(0, 1).Draw(t, "real cost")))
	}
	value := rapid.SampledFrom(values)
	for range rapid.IntRange(0, 2).Draw(t, "limits") {
		// One limit as a whole, mostly as it should be.
		small := rapid.OneOf(rapid.Map(rapid.Int64Range(0, 40), func(n int64) string { return fmt.Sprint(n) }), value)
		limit, left, reset := small.Draw(t, "limit"), small.Draw(t, "left"), value.Draw(t, "reset")
		window := rapid.SampledFrom([]string{"1", "2", "10", "60", "3600", "86400", "0", "-1", "9223372036854775807", "NaN"}).Draw(t, "window")
		label := rapid.SampledFrom([]string{"requests", "a", "tokens", "x"}).Draw(t, "label")
		switch rapid.IntRange(0, 4).Draw(t, "dialect") {
		case 0:
			r.lines = append(r.lines, "X-RateLimit-Limit: "+limit, "X-RateLimit-Remaining: "+left, "X-RateLimit-Reset: "+reset)
		case 1:
			r.lines = append(r.lines, "RateLimit-Limit: "+limit+";w="+window, "RateLimit-Remaining: "+left, "RateLimit-Reset: "+reset)
		case 2:
			r.lines = append(r.lines, fmt.Sprintf("RateLimit-Policy: %q;q=%s;w=%s", label, limit, window), fmt.Sprintf("RateLimit: %q;r=%s;t=%s", label, left, reset))
		case 3:
			r.lines = append(r.lines, "X-RateLimit-Limit-"+label+": "+limit, "X-RateLimit-Remaining-"+label+": "+left, "X-RateLimit-Reset-"+label+": "+reset)
		case 4:
			r.lines = append(r.lines, "X-RateLimit-Limit: "+limit, "X-RateLimit-Remaining: "+left)
		}
	}
	for range rapid.IntRange(0, 3).Draw(t, "more") {
		r.lines = append(r.lines, rapid.SampledFrom(headers).Draw(t, "name")+": "+value.Draw(t, "value"))
	}
	return r
}

// FuzzAnything plays what a server announces in raw headers, as it comes from a
// socket. Replies are parted by empty lines; the first line of each may be a status.
func FuzzAnything(f *testing.F) {
	for _, seed := range []string{
		"200\nX-RateLimit-Limit: 0\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 0",
		"200\nX-RateLimit-Limit: 10\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: @20\n\n429\nRetry-After: 3",
		"200\nRateLimit-Policy: \"a\";q=10;w=60, \"b\";q=1;w=1\nRateLimit: \"a\";r=0;t=30, \"b\";r=1;t=1\n\n503\nRetry-After: @@30",
		"200\nX-RateLimit-Limit-Requests: 100\nX-RateLimit-Remaining-Requests: 0\nX-RateLimit-Reset-Requests: 6m0s\nRetry-After-Ms: -1",
		"403\nX-RateLimit-Remaining: 0\nX-RateLimit-Resource: core\nX-RateLimit-Reset: @3000\n\n200\nX-RateLimit-Limit: -1\nX-RateLimit-Remaining: -1",
		"200\nRateLimit: limit=9223372036854775807, remaining=0, reset=9223372036854775807\nRateLimit-Policy: 10;w=9223372036854775807",
		"200\nAnthropic-RateLimit-Requests-Limit: 5\nAnthropic-RateLimit-Requests-Remaining: 0\nAnthropic-RateLimit-Requests-Reset: @@5",
		"200\nX-RateLimit-Limit: 1, 15000\nX-RateLimit-Policy: 1;w=1, 15000;w=2592000\nX-RateLimit-Remaining: 0, 14999\nX-RateLimit-Reset: 1, 1419704",
	} {
		f.Add(seed, uint64(0))
		f.Add(seed, uint64(0x2b5))
	}
	f.Fuzz(func(t *testing.T, text string, shape uint64) {
		a := anythingOf(text, shape)
		for _, in := range []place{inMemory, inStore} {
			if faults := a.play(t, in); len(faults) > 0 {
				t.Fatalf("%v: %s", in, strings.Join(faults, "\n"))
			}
		}
	})
}

// anythingOf returns what a fuzzer has written; shape has the policy and the requests.
func anythingOf(text string, shape uint64) *anything {
	take := func(n uint64) uint64 { // one of n
		v := shape % n
		shape /= n
		return v
	}
	a := &anything{lone: 3, atOnce: 3}
	for i := range take(4) {
		r := headway.Rule{Name: []string{"requests", "a", "b"}[i], Limit: limiter.Limit{N: int64(1 + take(20)), Per: time.Duration(1+take(60)) * time.Second, Law: limiter.Law(take(4))}}
		if take(2) == 0 {
			r.Announced = r.Name
		}
		a.policy.Rules = append(a.policy.Rules, r)
	}
	a.policy.Server.Learn = headway.LearnMode(take(3))
	a.policy.MaxInFlight = int(take(3))
	a.policy.Store.Batch = int(take(2)) * 4
	for i := range 12 {
		a.crowd = append(a.crowd, anyAsk{after: time.Duration(i%4) * 50 * time.Millisecond, key: "k", cost: 1, maxWait: time.Duration(1+i%3) * time.Second, deadline: time.Duration(1+i%5) * 700 * time.Millisecond})
	}
	for i, part := range strings.Split(text, "\n\n") {
		r := anyReply{status: 200, takes: time.Duration(i%3) * 100 * time.Millisecond}
		for j, l := range strings.Split(part, "\n") {
			var status int
			if n, _ := fmt.Sscanf(l, "%d", &status); j == 0 && n == 1 && status >= 200 && status < 600 {
				r.status = status
				continue
			}
			r.lines = append(r.lines, l)
		}
		if a.replies = append(a.replies, r); i == 8 {
			break
		}
	}
	return a
}
