package storeline

import (
	"strings"

	"github.com/headway-go/headway/internal/line"
	"github.com/headway-go/headway/limiter"
)

// A Plan is what the policy in force allows the requests of a line. It is read-only: another
// policy has another Plan.
type Plan struct {
	Limits            map[string]limiter.Limit // by rule, as the store names rules
	Waiting, InFlight int                      // caps; zero: none
	Batch             int                      // starts per round trip; 0 and 1: one
}

// limit returns the limit of a budget, or false where its rule is gone: it holds no request up
// any more, also none that was in line before. A budget is named by its rule and, after a
// slash, by the digest of its key, which is no part of the plan: "rule%20search/2vcX".
func (p *Plan) limit(budget string) (l limiter.Limit, ok bool) {
	rule, _, _ := strings.Cut(budget, "/")
	l, ok = p.Limits[rule]
	return l, ok
}

// never returns the refusal of a request whose cost a limit can never admit; nil for others. So
// it is refused without a round trip, and while the store is down too. A Bucket admits its
// burst at most, a Spaced any cost unless it is blocked, and the others N in a period.
func (p *Plan) never(a *Ask) *line.Refusal {
	for i, n := range a.Needs {
		limit, ok := p.limit(n.Budget)
		most := limit.N
		switch {
		case limit.Law == limiter.Bucket && limit.N > 0 && limit.Burst > 0:
			most = limit.Burst
		case limit.Law == limiter.Spaced && limit.N > 0:
			most = n.Cost // it takes as many intervals
		}
		if ok && n.Cost > most {
			return &line.Refusal{Reason: neverBy(limit), RetryAfter: line.Never, Need: i}
		}
	}
	return nil
}

// neverBy returns why a limit never admits a cost.
func neverBy(l limiter.Limit) line.Reason {
	if l.N == 0 {
		return line.ByDisabled
	}
	return line.ByImpossible
}

// reserves reports whether the store may reserve starts for requests like a. Strict and
// Spaced limits count from an instant that a reserved start does not have yet, and the
// store must know when an Exact request started.
func (p *Plan) reserves(a *Ask) bool {
	if p.Batch <= 1 || a.Exact || len(a.Needs) == 0 {
		return false
	}
	for _, n := range a.Needs {
		limit, ok := p.limit(n.Budget)
		if !ok || limit.Strict || limit.Law == limiter.Spaced {
			return false
		}
	}
	return true
}
