package headway_test

import (
	"testing"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
)

// What servers say is left is used for what it is: as much as they allow, with few
// refusals, whoever else uses their limits, and over a store as in memory. With -v it
// shows a table:
//
//	go test -run TestAnnouncedScenarios -v .
func TestAnnouncedScenarios(t *testing.T) { playEverywhere(t, max(1, fewer(3)), scenarios()) }

func scenarios() []scenario {
	const ms = time.Millisecond
	perMinute := func(n int64, by counting) []meter { return []meter{{label: "minute", n: n, per: time.Minute, by: by}} }
	llm := func(name string, by counting, ours limiter.Limit, used, refused float64, f func(*scenario)) scenario {
		s := scenario{
			name: name, says: saysOpenAI, meters: []meter{{label: "tokens", n: 40_000, per: time.Minute, by: by, tokens: true}},
			policy:  headway.Policy{Rules: []headway.Rule{{Name: "tokens", Announced: "tokens", Limit: ours, Cost: headway.FromCallCost, Settle: costHeader}}},
			callers: 30, there: [2]time.Duration{5 * ms, 65 * ms}, takes: [2]time.Duration{300 * ms, 2800 * ms},
			tokens: [2]int64{100, 999}, over: 1.25, lasts: 10 * time.Minute, want: figure{used: used, refused: refused},
		}
		if f != nil {
			f(&s)
		}
		return s
	}
	each := func(name string, meters []meter, ours []limiter.Limit, used, refused float64, f func(*scenario)) scenario {
		s := scenario{
			name: name, says: saysDraft8, meters: meters, policy: headway.Policy{Limits: ours},
			callers: 20, there: [2]time.Duration{10 * ms, 20 * ms}, takes: [2]time.Duration{100 * ms, 300 * ms},
			lasts: 10 * time.Minute, want: figure{used: used, refused: refused},
		}
		if f != nil {
			f(&s)
		}
		return s
	}
	ours := func(list ...limiter.Limit) []limiter.Limit { return list }
	minute, refills := limiter.PerMinute(1000), limiter.Limit{N: 40_000, Per: time.Minute, Law: limiter.Bucket}
	tenPerSecond := []meter{{label: "second", n: 10, per: time.Second}}
	burst40 := []meter{{label: "burst", n: 40, per: 2 * time.Second, by: bucket}}
	oursBurst40 := ours(limiter.Limit{N: 40, Per: 2 * time.Second, Law: limiter.Bucket})
	return []scenario{
		llm("tokens", sliding, limiter.PerMinute(40_000), 97, 1, nil),
		// Over a store a bucket that has not been full since keeps less of what is returned.
		llm("tokens, a bucket", bucket, refills, 98.5, 1, func(s *scenario) { s.where = inStores(figure{used: 97, refused: 1}) }),
		llm("tokens, others use 30 %", sliding, limiter.PerMinute(40_000), 96, 20, func(s *scenario) { s.others, s.where = .3, inStores(figure{used: 95, refused: 45}) }),
		llm("tokens, a bucket, others use 30 %", bucket, refills, 98, 130, func(s *scenario) { s.others, s.where = .3, inStores(figure{used: 97, refused: 130}) }),
		llm("tokens, our limit is twice the server's", sliding, limiter.PerMinute(80_000), 97, 1, nil),
		llm("tokens, a bucket, ours is a window", bucket, limiter.PerMinute(40_000), 88, 1, nil),
		each("10 a second while responses take 5 s", tenPerSecond, ours(limiter.PerSecond(10)), 92, 14, func(s *scenario) {
			s.callers, s.takes, s.lasts = 100, [2]time.Duration{5 * time.Second, 5 * time.Second}, 2*time.Minute
		}),
		each("a bucket of 20 a second and 40", burst40, oursBurst40, 98.5, 2, func(s *scenario) {
			s.callers, s.there, s.lasts = 40, [2]time.Duration{10 * ms, 50 * ms}, 5*time.Minute
		}),
		each("B1 ours 10 a second, the server's 60 a minute", perMinute(60, sliding), ours(limiter.PerSecond(10)), 98, 1, func(s *scenario) { s.lasts, s.where = 30*time.Minute, inStores(figure{used: 97, refused: 12}) }),
		each("B2 the server counts 5 for each", []meter{{label: "minute", n: 1000, per: time.Minute, weigh: 5}}, ours(minute), 97, 48, func(s *scenario) { s.where = inStores(figure{used: 88, refused: 45}) }),
		each("B3 the server counts 1 for 4 of ours", []meter{{label: "minute", n: 1000, per: time.Minute, weigh: .25}}, ours(minute), 24.5, 1, nil),
		each("B3b the same, and the limit is the server's alone", []meter{{label: "minute", n: 1000, per: time.Minute, weigh: .25}}, nil, 96.5, 1, func(s *scenario) { s.where = inStores(figure{used: 90, refused: 1}) }),
		each("B4 others take 300 of 1000 at once", perMinute(1000, sliding), ours(minute), 97.5, 5, func(s *scenario) { s.lumps = 300 }),
		each("B5 fixed windows, others use 30 %", perMinute(1000, fixed), ours(minute), 97.5, 7, func(s *scenario) { s.others, s.says = .3, saysDraft6 }),
		each("B6 idle every other 2 min, others use 60 %", perMinute(100, sliding), ours(limiter.PerMinute(100)), 98, 125, func(s *scenario) {
			s.others, s.idle, s.callers, s.lasts = .6, 2*time.Minute, 40, 40*time.Minute
		}),
		each("B7 3 of 10 numbers are another replica's, 30 %", perMinute(1000, sliding), ours(minute), 90, 14, func(s *scenario) { s.others, s.replica = .3, .3 }),
		each("B8 restart with a tenth left", perMinute(1000, sliding), ours(minute), 89, 1, func(s *scenario) { s.used = .9 }),
		each("B9 up to 2 s on the way there", perMinute(1000, sliding), ours(minute), 88, 50, func(s *scenario) {
			s.others, s.callers, s.there = .3, 60, [2]time.Duration{0, 2 * time.Second}
		}),
		each("B10 10 a second in 5 s, estimates are twice the cost", tenPerSecond, nil, 47.5, 1, func(s *scenario) {
			s.callers, s.takes, s.lasts = 100, [2]time.Duration{5 * time.Second, 5 * time.Second}, 2*time.Minute
			s.policy = headway.Policy{Rules: []headway.Rule{{Name: "second", Limit: limiter.PerSecond(10), Cost: headway.FromCallCost, Settle: costHeader}}}
			s.over = 2
		}),
		each("B11 a bucket of 20 a second, some requests take 60 s", burst40, oursBurst40, 98.5, 2, func(s *scenario) {
			s.callers, s.there, s.takes, s.slow, s.lasts = 40, [2]time.Duration{10 * ms, 50 * ms}, [2]time.Duration{100 * ms, 100 * ms}, 1./200, 5*time.Minute
		}),
	}
}
