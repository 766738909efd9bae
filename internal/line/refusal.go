package line

import (
	"slices"
	"time"

	"github.com/headway-go/headway/internal/law"
)

// A Reason says what a request could not wait for. Up to ByStore the values are those
// of limiter.Reason.
type Reason uint8

const (
	ByLimit      Reason = iota + 1 // a limit, configured or announced
	ByPause                        // a pause, or the gentle start after it
	ByInFlight                     // the cap on what is in flight
	ByLineFull                     // it could have waited, but the line is full
	ByImpossible                   // the cost is more than the limit can ever admit
	ByDisabled                     // the limit admits nothing
	ByStore                        // the store does not respond
	ByBreaker                      // the breaker is open, or half-open without room
)

// A Refusal is why a request cannot start in time. It is the one form of it below the
// Transport and the Limiter, for lines in memory and over a store.
type Refusal struct {
	Reason     Reason
	RetryAfter time.Duration // from now; Never if it cannot start at all
	AtLeast    bool          // RetryAfter is a lower bound
	Deadline   bool          // the context's deadline is too short
	Need       int           // which need of the Ask delays it the longest; -1: none of them
	Announced  bool          // it is a limit that the server has announced, by this Name
	Name       string
	Cause      error // what opened the breaker, or why the store does not respond
}

// foresight is when a request could start.
type foresight struct {
	at      law.Time
	bind    int32 // the need that decides; -1: a slot
	atLeast bool  // at is a lower bound
}

// now reports whether it is certain to start at the instant now.
func (p foresight) now(now law.Time) bool { return p.at <= now && !p.atLeast }

func (p foresight) refusal(needs []Need, now law.Time, deadline bool) *Refusal {
	r := &Refusal{Reason: ByInFlight, RetryAfter: Never, Need: -1}
	if p.bind >= 0 {
		r.explain(needs, int(p.bind))
	}
	if p.at < law.Never {
		r.RetryAfter, r.AtLeast, r.Deadline = time.Duration(max(0, p.at-now)), p.atLeast, deadline
		return r
	}
	if p.bind >= 0 {
		switch most := needs[p.bind].B.state.Max(); {
		case most == 0:
			r.Reason = ByDisabled
		case needs[p.bind].Cost > most:
			r.Reason = ByImpossible
		}
	}
	return r
}

// explain says what the need at an index is: the budget of a rule, or what a response
// has announced.
func (r *Refusal) explain(needs []Need, bind int) {
	r.Reason = ByLimit
	b := needs[bind].B
	switch st := b.state.(type) {
	case *law.Pace:
		r.Reason = ByPause
	case *law.Cap:
		if rule := b.origin.rule; rule != nil {
			r.Need = slices.IndexFunc(needs, func(n Need) bool { return n.B == rule })
			return
		}
		r.Announced, r.Name = true, st.Name
	default:
		r.Need = bind
	}
}
