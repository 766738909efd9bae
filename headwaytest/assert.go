package headwaytest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headway-go/headway"
)

// AtMost fails the test if any half-open period of per contains more than n starts.
// With patterns, only starts that match at least one of them count. In a bubble
// this is exact. On a real clock a start is recorded slightly after it was granted,
// so that two may seem closer than they were: make per a few milliseconds shorter.
func (r *Recorder) AtMost(t testing.TB, n int, per time.Duration, patterns ...Start) {
	t.Helper()
	if n < 0 || per <= 0 {
		t.Errorf("headwaytest: AtMost(%d, %v): want a number and a period above zero", n, per)
		return
	}
	var counted []entry
	for _, s := range r.Starts() {
		if len(patterns) == 0 || slices.ContainsFunc(patterns, s.matches) {
			counted = append(counted, entry{Start: s})
		}
	}
	for i := 0; i+n < len(counted); i++ {
		from := counted[i].At
		if counted[i+n].At-from >= per {
			continue
		}
		within := 0
		for j := i; j < len(counted) && counted[j].At-from < per; j++ {
			counted[j].marked = true
			within++
		}
		t.Errorf("headwaytest: %d starts within %v from %v, want at most %d:\n%s", within, per, from, n, timeline(counted))
		return
	}
}

// StartedAt fails the test unless there were exactly as many starts as times, each
// at its time since the Recorder was created.
func (r *Recorder) StartedAt(t testing.TB, times ...time.Duration) {
	t.Helper()
	want := make([]Start, len(times))
	for i, at := range times {
		want[i].At = at
	}
	r.Started(t, want...)
}

// Started fails the test unless there were exactly these starts, in this order. At
// must be equal, even if it is zero; any other field that is zero matches
// everything.
func (r *Recorder) Started(t testing.TB, want ...Start) {
	t.Helper()
	starts := r.Starts()
	all := make([]entry, len(starts))
	for i, s := range starts {
		all[i] = entry{s, i >= len(want) || s.At != want[i].At || !s.like(want[i])}
	}
	if marked(all) == 0 && len(starts) >= len(want) {
		return
	}
	wanted := make([]entry, len(want))
	for i, s := range want {
		wanted[i] = entry{s, i >= len(all) || all[i].marked}
	}
	t.Errorf("headwaytest: got %d starts:\n%swant %d:\n%s", len(all), timeline(all), len(wanted), timeline(wanted))
}

// Before fails the test unless a start that matches first came before every start
// that matches second, and there was at least one of each. Order counts within one
// instant, too.
func (r *Recorder) Before(t testing.TB, first, second Start) {
	t.Helper()
	starts := r.Starts()
	a := slices.IndexFunc(starts, func(s Start) bool { return s.matches(first) })
	b := slices.IndexFunc(starts, func(s Start) bool { return s.matches(second) })
	what := ""
	switch {
	case a < 0:
		what = fmt.Sprintf("no start like %q", first.pattern())
	case b < 0:
		what = fmt.Sprintf("no start like %q", second.pattern())
	case a >= b:
		what = fmt.Sprintf("none like %q came before the first like %q", first.pattern(), second.pattern())
	default:
		return
	}
	all := make([]entry, len(starts))
	for i, s := range starts {
		all[i] = entry{s, min(a, b) >= 0 && (i == a || i == b)}
	}
	t.Errorf("headwaytest: %s:\n%s", what, timeline(all))
}

// AssertIdle fails the test if a request of the Transport is in line or in flight.
// A request counts as in flight until the body of its response has been read to the
// end or closed.
func AssertIdle(t testing.TB, transport *headway.Transport) {
	t.Helper()
	for _, h := range transport.Snapshot() {
		if h.Waiting > 0 || h.InFlight > 0 {
			t.Errorf("headwaytest: policy %q, host %q: %d in line, %d in flight, want none", h.Policy, h.Host, h.Waiting, h.InFlight)
		}
	}
}

// An entry is a line of a timeline.
type entry struct {
	Start
	marked bool // what the reader should look at
}

// marked returns how many entries are marked.
func marked(all []entry) (n int) {
	for _, e := range all {
		if e.marked {
			n++
		}
	}
	return n
}

// timeline returns the entries as text, the marked ones with an arrow.
// Of a long one it keeps what is around the marks.
func timeline(all []entry) string {
	const (
		around = 3  // lines of context
		most   = 40 // lines in all, about
	)
	var text strings.Builder
	shown, hidden := 0, 0
	flush := func() {
		if hidden > 0 {
			fmt.Fprintf(&text, "                ... %d more\n", hidden)
		}
		hidden = 0
	}
	for i, e := range all {
		near := slices.ContainsFunc(all[max(0, i-around):min(len(all), i+around+1)], func(e entry) bool { return e.marked })
		if len(all) > most && (!near || shown >= most) {
			hidden++
			continue
		}
		flush()
		shown++
		mark := "  "
		if e.marked {
			mark = "> "
		}
		fmt.Fprintf(&text, "  %s%v\n", mark, e.Start)
	}
	flush()
	if len(all) == 0 {
		text.WriteString("    none\n")
	}
	return text.String()
}
