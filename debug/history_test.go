package debug

import (
	"fmt"
	"testing"
	"time"

	"github.com/headway-go/headway"
)

func lines(n ...int) []headway.HostStatus {
	var list []headway.HostStatus
	for i, n := range n {
		list = append(list, headway.HostStatus{Policy: "p", Host: fmt.Sprint(i), Waiting: n})
	}
	return list
}

// TestPicture: a sample holds until the next one, but for 6 s at most; after that the
// picture is blank.
func TestPicture(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	var h history
	for _, s := range []struct {
		ago time.Duration
		n   int
	}{
		{200 * time.Second, 10}, {199 * time.Second, 10}, {198 * time.Second, 20}, // then a time without samples
		{100 * time.Second, 0}, {99 * time.Second, 5}, {98500 * time.Millisecond, 0}, {0, 4},
	} {
		h = h.with(now.Add(-s.ago), lines(0, s.n))
	}
	got := h.draw(place{"p", "1"}, now)
	want := picture{
		Most: 20,
		Path: "M99.0 40V20.0H101.0V0.0H107.0V40Z" + "M200.0 40V30.0H200.5V40Z" + "M299.0 40V32.0H300.0V40Z",
		Seen: "M99.0 40H101.0" + "M101.0 40H107.0" + "M199.0 40H200.0" + "M200.0 40H200.5" + "M200.5 40H206.5" + "M299.0 40H300.0",
	}
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	// Half a minute later all has moved to the left by as much.
	if got, want := h.draw(place{"p", "1"}, now.Add(30*time.Second)).Path, "M69.0 40V20.0H71.0V0.0H77.0V40ZM170.0 40V30.0H170.5V40ZM269.0 40V32.0H275.0V40Z"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := h.draw(place{"p", "0"}, now); got.Path != "" || got.Most != 0 || got.Seen == "" {
		t.Errorf("an empty line: got %+v", got)
	}
}

// TestHistoryIsBounded: five minutes, 301 samples, the 100 longest lines of each.
func TestHistoryIsBounded(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	var h history
	for range 1000 {
		now = now.Add(time.Second)
		h = h.with(now, lines(1))
		if len(h.samples) > 301 {
			t.Fatalf("%d samples of a second, want 5 min of them", len(h.samples))
		}
	}
	if got := now.Sub(h.samples[0].at); got != 5*time.Minute {
		t.Errorf("the oldest is %v old, want 5 min", got)
	}
	for range 2000 {
		now = now.Add(time.Millisecond)
		h = h.with(now, lines(1))
	}
	if len(h.samples) != 301 || cap(h.samples) > 1200 {
		t.Errorf("%d samples in room for %d, want 301", len(h.samples), cap(h.samples))
	}
	many := make([]int, 1000)
	for i := range many {
		many[i] = i
	}
	h = h.with(now, lines(many...))
	last := h.samples[len(h.samples)-1].lines
	if len(last) != 100 || last[place{"p", "900"}] != 900 || last[place{"p", "899"}] != 0 {
		t.Errorf("%d lines are kept, want the 100 longest", len(last))
	}
}
