package debug

import (
	"testing"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/breaker"
)

// TestHostsByTheirState reads what the page says of a host at one glance.
func TestHostsByTheirState(t *testing.T) {
	gates := func(states ...breaker.State) (list []headway.BreakerStatus) {
		for _, s := range states {
			list = append(list, headway.BreakerStatus{Host: "h", State: s})
		}
		return list
	}
	pauses := []headway.PauseStatus{{Left: 1}}
	for _, tt := range []struct {
		s                headway.HostStatus
		title, gate      string
		down, held, full bool
		rows             int // of breakers
	}{
		{s: headway.HostStatus{Policy: "p", Host: "h"}, title: "h"},
		{s: headway.HostStatus{Policy: "p"}, title: "all hosts of p"},
		{s: headway.HostStatus{Policy: "p", Overflow: true}, title: "other hosts of p"},
		{s: headway.HostStatus{Host: "h", Pauses: pauses}, title: "h", held: true},
		{s: headway.HostStatus{Host: "h", InFlight: 3}, title: "h"},
		{s: headway.HostStatus{Host: "h", InFlight: 3, MaxInFlight: 4}, title: "h"},
		{s: headway.HostStatus{Host: "h", InFlight: 4, MaxInFlight: 4}, title: "h", full: true},
		{s: headway.HostStatus{Host: "h", Breakers: gates(breaker.Closed)}, title: "h", gate: "closed"},
		{s: headway.HostStatus{Host: "h", Breakers: gates(breaker.Closed, breaker.HalfOpen, breaker.Closed)}, title: "h", gate: "half-open", down: true, held: true, rows: 1},
		{s: headway.HostStatus{Host: "h", Breakers: gates(breaker.HalfOpen, breaker.Open, breaker.HalfOpen)}, title: "h", gate: "open", down: true, held: true, rows: 3},
	} {
		h := newHost(tt.s, new(sight), window{rows: maxRows, page: true})
		if h.Title() != tt.title || h.Gate != tt.gate || h.Down() != tt.down || h.Held() != tt.held || h.Full() != tt.full || len(h.Breakers) != tt.rows {
			t.Errorf("%+v: got %q, breaker %q with %d rows, down %v, held %v, full %v",
				tt.s, h.Title(), h.Gate, len(h.Breakers), h.Down(), h.Held(), h.Full())
		}
	}
}
