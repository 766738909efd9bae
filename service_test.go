package headway_test

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// A service is the base transport of a scenario. It counts the requests that arrive until
// its end, refuses those for which one of its meters has no room, and says in each
// response what is left.
type service struct {
	meters []*meter
	says   func(http.Header, *meter, state)
	refuse func(http.Header, time.Duration) // says when there is room; nil: after a second

	begin time.Time
	end   time.Duration

	mu               sync.Mutex // guards following fields, and the meters
	arrived, refused int
}

// A state is how a meter stands when a request has been counted.
type state struct {
	left       int64
	full, next time.Duration // see meter
}

// An errand is what a request is about, and how long it is under way.
type errand struct {
	tokens       int64
	there, takes time.Duration // until it is counted, and from then on until its response
	elsewhere    bool          // another replica responds, which has not seen any request
}

type errandKey struct{}

// on returns ctx with an errand.
func (e *errand) on(ctx context.Context) context.Context {
	return context.WithValue(ctx, errandKey{}, e)
}

// RoundTrip plays the network and the service. It goes on when the request's context ends.
func (s *service) RoundTrip(req *http.Request) (*http.Response, error) {
	e := req.Context().Value(errandKey{}).(*errand)
	time.Sleep(e.there)
	resp := s.count(req, e)
	time.Sleep(e.takes)
	return resp, nil
}

func (s *service) count(req *http.Request, e *errand) *http.Response {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Since(s.begin)
	resp := ok(req)
	var wait time.Duration
	for _, m := range s.meters {
		wait = max(wait, m.wait(now, m.units(e.tokens)))
	}
	counts := now < s.end
	if counts {
		s.arrived++
	}
	tokens := e.tokens
	switch {
	case wait > 0:
		resp.StatusCode, tokens = http.StatusTooManyRequests, 0
		if counts {
			s.refused++
		}
		if s.refuse == nil {
			resp.Header.Set("Retry-After", "1")
		} else {
			s.refuse(resp.Header, wait)
		}
	default:
		for _, m := range s.meters {
			units := m.units(e.tokens)
			m.use(now, units)
			if counts {
				m.ours += units
			}
		}
	}
	resp.Header.Set("Cost", strconv.FormatInt(tokens, 10))
	for _, m := range s.meters {
		st := state{int64(math.Floor(m.left(now) + 1e-6)), m.full(now), m.next(now)}
		if e.elsewhere {
			st = state{m.n, m.per, m.per}
		}
		s.says(resp.Header, m, st)
	}
	return resp
}

// take lets others use as much of a meter as there is, up to so many units.
func (s *service) take(m *meter, units float64, some bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Since(s.begin)
	if left := math.Floor(m.left(now) + 1e-6); left < units {
		if !some {
			return
		}
		units = left
	}
	if units > 0 && now < s.end {
		m.use(now, units)
		m.others += units
	}
}

// How services say what is left.

// saysOpenAI: platform.openai.com, "Rate limits": the reset is the time until all is back.
func saysOpenAI(h http.Header, m *meter, s state) {
	h.Set("X-Ratelimit-Limit-"+m.label, strconv.FormatInt(m.n, 10))
	h.Set("X-Ratelimit-Remaining-"+m.label, strconv.FormatInt(s.left, 10))
	h.Set("X-Ratelimit-Reset-"+m.label, s.full.Round(time.Millisecond).String())
}

// saysDraft8: draft-ietf-httpapi-ratelimit-headers-08 and later: the length of the window,
// and the time until more comes back.
func saysDraft8(h http.Header, m *meter, s state) {
	h.Add("RateLimit-Policy", fmt.Sprintf("%q;q=%d;w=%d", m.label, m.n, m.per/time.Second))
	h.Add("RateLimit", fmt.Sprintf("%q;r=%d;t=%d", m.label, s.left, upToSeconds(s.next)))
}

// saysDraft6: draft-ietf-httpapi-ratelimit-headers-06: the time until the window ends.
func saysDraft6(h http.Header, m *meter, s state) {
	h.Set("RateLimit-Policy", fmt.Sprintf("%d;w=%d", m.n, m.per/time.Second))
	h.Set("RateLimit-Limit", strconv.FormatInt(m.n, 10))
	h.Set("RateLimit-Remaining", strconv.FormatInt(s.left, 10))
	h.Set("RateLimit-Reset", strconv.FormatInt(upToSeconds(s.full), 10))
}

// saysPlain: X-RateLimit-* without a window, as most services have them. of is the reset.
func saysPlain(reset func(state) string) func(http.Header, *meter, state) {
	return func(h http.Header, m *meter, s state) {
		h.Set("X-Ratelimit-Limit", strconv.FormatInt(m.n, 10))
		h.Set("X-Ratelimit-Remaining", strconv.FormatInt(s.left, 10))
		if reset := reset(s); reset != "" {
			h.Set("X-Ratelimit-Reset", reset)
		}
	}
}

// Resets of saysPlain.
func fullInSeconds(s state) string  { return strconv.FormatInt(upToSeconds(s.full), 10) }
func nextInSeconds(s state) string  { return strconv.FormatInt(upToSeconds(s.next), 10) }
func fullInDecimals(s state) string { return strconv.FormatFloat(s.full.Seconds(), 'f', 3, 64) }
func nextInDecimals(s state) string { return strconv.FormatFloat(s.next.Seconds(), 'f', 3, 64) }
func noReset(state) string          { return "" }

// upToSeconds returns d in whole seconds, rounded up.
func upToSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// refuseInMilliseconds says to the millisecond when there is room, as OpenAI does.
func refuseInMilliseconds(h http.Header, wait time.Duration) {
	h.Set("Retry-After-Ms", strconv.FormatInt(int64((wait+time.Millisecond-1)/time.Millisecond), 10))
	h.Set("Retry-After", strconv.FormatInt(upToSeconds(wait), 10))
}
