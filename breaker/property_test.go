package breaker_test

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/headway-go/headway/breaker"
)

// A history is the events of a breaker between an opening and the closing
// after it, as its caller saw it.
type history struct {
	t      *rapid.T
	config breaker.Config
	b      *breaker.Breaker
	now    time.Time

	until   time.Time // open: no grant before
	begun   time.Time // half-open since
	granted int       // probes since begun
	freed   int       // of them, given back or ignored before they timed out
	good    int       // of them, successes
	running []running // probes that were not recorded
	tickets []breaker.Ticket
}

type running struct {
	ticket breaker.Ticket
	end    time.Time
}

// TestProbesAreBounded: over any history, what passes between an opening and a
// closing is at most what OpenFor, Probes and ProbeTimeout allow.
//
// Open, nothing passes for as long as it must be open, which is at least
// OpenFor. Half-open for a time d, each of Probes places serves at most one
// probe in each ProbeTimeout begun, and one more for each probe that ended without
// a success or a failure.
func TestProbesAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := &history{t: t, now: t0, config: breaker.Config{
			Failures:     rapid.IntRange(1, 3).Draw(t, "failures"),
			OpenFor:      time.Duration(rapid.IntRange(1, 10).Draw(t, "open for")),
			Probes:       rapid.IntRange(1, 4).Draw(t, "probes"),
			ProbeTimeout: time.Duration(rapid.IntRange(1, 10).Draw(t, "probe timeout")),
		}}
		h.config.MaxOpenFor = h.config.OpenFor * time.Duration(rapid.IntRange(1, 10).Draw(t, "growth"))
		var err error
		if h.b, err = breaker.New(h.config, h.changed); err != nil {
			t.Fatal(err)
		}
		t.Repeat(map[string]func(*rapid.T){
			"":       h.check,
			"wait":   func(t *rapid.T) { h.now = h.now.Add(time.Duration(rapid.IntRange(0, 12).Draw(t, "wait"))) },
			"take":   h.take,
			"herd":   func(t *rapid.T) { h.herd() },
			"record": h.record,
			"return": func(t *rapid.T) {
				if ticket, ok := h.pick(t); ok {
					h.b.Return(ticket)
					h.ended(ticket, breaker.Ignored)
				}
			},
			"drop": func(t *rapid.T) { h.pick(t) },
			"fail": func(t *rapid.T) {
				h.b.Fail(errDown, time.Duration(rapid.IntRange(0, 30).Draw(t, "retry after")), h.now)
			},
			"trip":  func(t *rapid.T) { h.b.Trip(errDown, 0, h.now) },
			"reset": func(t *rapid.T) { h.b.Reset(h.now) },
		})
		h.recovers()
	})
}

func (h *history) changed(c breaker.Change) {
	if !c.At.Equal(h.now) {
		h.t.Fatalf("changed at %v, now is %v", c.At, h.now)
	}
	switch c.To {
	case breaker.Open:
		if c.Delay < h.config.OpenFor {
			h.t.Fatalf("opened for %v, less than %v", c.Delay, h.config.OpenFor)
		}
		h.until = h.now.Add(c.Delay)
	case breaker.HalfOpen:
		if c.From != breaker.Open || h.now.Before(h.until) {
			h.t.Fatalf("from %v to half-open %v too early", c.From, h.until.Sub(h.now))
		}
		h.begun, h.granted, h.freed, h.good = h.now, 0, 0, 0
	}
	h.running = nil
}

func (h *history) take(t *rapid.T) {
	before := h.b.State()
	delay := h.b.Delay(h.now)
	ticket, ok := h.b.Take(h.now)
	h.b.Report()
	if ok != (delay == 0) {
		t.Fatalf("granted is %v while %v, though Delay said %v", ok, before, delay)
	}
	if !ok {
		return
	}
	h.tickets = append(h.tickets, ticket)
	if ticket.Probe() == h.b.Closed() {
		t.Fatalf("granted as a probe is %v while %v", ticket.Probe(), h.b.State())
	}
	if ticket.Probe() {
		h.granted++
		h.running = append(h.running, running{ticket, h.now.Add(h.config.ProbeTimeout)})
	}
}

// herd takes every ticket that is available.
func (h *history) herd() {
	if h.b.Closed() {
		return
	}
	room, before := h.b.Room(h.now), len(h.tickets)
	for range 2*h.config.Probes + 1 {
		h.take(h.t)
	}
	if granted := len(h.tickets) - before; granted != room {
		h.t.Fatalf("granted %d, though Room said %d", granted, room)
	}
	if h.b.Delay(h.now) == 0 {
		h.t.Fatal("a herd did not find every place")
	}
}

// pick takes a random ticket out of the history's hands.
func (h *history) pick(t *rapid.T) (breaker.Ticket, bool) {
	if len(h.tickets) == 0 {
		return breaker.Ticket{}, false
	}
	i := rapid.IntRange(0, len(h.tickets)-1).Draw(t, "ticket")
	ticket := h.tickets[i]
	h.tickets = append(h.tickets[:i], h.tickets[i+1:]...)
	return ticket, true
}

func (h *history) record(t *rapid.T) {
	ticket, ok := h.pick(t)
	if !ok {
		return
	}
	outcome := breaker.Outcome(rapid.IntRange(0, 2).Draw(t, "outcome"))
	asked := time.Duration(rapid.IntRange(0, 30).Draw(t, "retry after"))
	h.ended(ticket, outcome)
	h.b.Record(ticket, breaker.Result{Outcome: outcome, Err: errDown, RetryAfter: asked}, h.now)
}

func (h *history) ended(ticket breaker.Ticket, o breaker.Outcome) {
	for i, r := range h.running {
		if r.ticket == ticket {
			h.running = append(h.running[:i], h.running[i+1:]...)
			switch {
			case o == breaker.Success:
				h.good++
			case r.end.After(h.now):
				h.freed++
			}
			return
		}
	}
}

func (h *history) check(t *rapid.T) {
	switch h.b.State() {
	case breaker.Open:
		if !h.now.Before(h.until) {
			return
		}
		if _, ok := h.b.Take(h.now); ok {
			t.Fatalf("granted %v before the end", h.until.Sub(h.now))
		}
	case breaker.HalfOpen:
		rounds := 1 + int(h.now.Sub(h.begun)/h.config.ProbeTimeout)
		if most := h.config.Probes*rounds + h.freed; h.granted > most {
			t.Fatalf("%d probes in %v, with %d freed; want at most %d", h.granted, h.now.Sub(h.begun), h.freed, most)
		}
		inFlight := 0
		for _, r := range h.running {
			if r.end.After(h.now) {
				inFlight++
			}
		}
		if inFlight > h.config.Probes {
			t.Fatalf("%d probes in flight, want at most %d", inFlight, h.config.Probes)
		}
		if h.good >= h.config.Probes {
			t.Fatalf("%d successes have not closed it", h.good)
		}
	}
}

// recovers checks that nothing is wedged and no place is lost: whatever
// happened, a service that is well is found well.
func (h *history) recovers() {
	h.now = h.now.Add(h.b.Delay(h.now))
	needed := h.config.Probes
	if h.b.State() == breaker.HalfOpen {
		h.now = h.now.Add(h.config.ProbeTimeout)
		needed -= h.good
	}
	var tickets []breaker.Ticket
	for range needed {
		ticket, ok := h.b.Take(h.now)
		if !ok {
			h.t.Fatalf("a place is lost while %v: next in %v", h.b.State(), h.b.Delay(h.now))
		}
		tickets = append(tickets, ticket)
	}
	if _, ok := h.b.Take(h.now); ok != h.b.Closed() {
		h.t.Fatalf("a place too many")
	}
	for _, ticket := range tickets {
		h.b.Record(ticket, success, h.now)
	}
	if !h.b.Closed() {
		h.t.Fatalf("%v though all is well", h.b.State())
	}
	if err := h.b.Cause(); errors.Is(err, errDown) {
		h.t.Fatalf("closed because of %v", err)
	}
}
