package debug

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/headway-go/headway"
)

const (
	back       = 5 * time.Minute // how far back the pictures go
	period     = time.Second     // at most one sample in this time
	maxSamples = int(back/period) + 1
	maxLines   = 100             // of each sample, the longest
	holds      = 6 * time.Second // how long a sample is taken as the state after it
)

// A place is a line: a policy and host.
type place struct{ policy, host string }

// A sample holds the lengths of the lines at one time. Lines that are not in it were empty.
type sample struct {
	at    time.Time
	lines map[place]int
}

// A history is the samples of the last minutes, the oldest first.
type history struct{ samples []sample }

// with returns the history with one more sample. It does not change h, which other
// requests may still draw: the shared part is read-only. Only the newest history may be
// extended.
func (h history) with(now time.Time, hosts []headway.HostStatus) history {
	var long []headway.HostStatus
	for _, s := range hosts {
		if s.Waiting > 0 {
			long = append(long, s)
		}
	}
	if len(long) > maxLines {
		slices.SortFunc(long, func(a, b headway.HostStatus) int { return cmp.Compare(b.Waiting, a.Waiting) })
		long = long[:maxLines]
	}
	lines := make(map[place]int, len(long))
	for _, s := range long {
		lines[place{s.Policy, s.Host}] += s.Waiting
	}
	old := 0
	for old < len(h.samples) && (now.Sub(h.samples[old].at) > back || len(h.samples)-old >= maxSamples) {
		old++
	}
	return history{append(h.samples[old:], sample{now, lines})}
}

// The size of a picture, in its own units: a second is one of them wide.
const (
	width  = int(back / time.Second)
	height = 40
)

// A picture is the line of one place in the last minutes.
type picture struct {
	// Path is the area under the line's length as an SVG path; empty where
	// no request was seen in line.
	Path string
	// Seen are the times that are known, as an SVG path along the bottom.
	Seen string
	// Most is the greatest length of the line.
	Most int
}

// A step is a time through which the line was n long, from one place in the
// picture to another.
type step struct {
	from, to float64
	n        int
}

// draw returns the picture of p as seen at now.
func (h history) draw(p place, now time.Time) picture {
	var pic picture
	var steps []step
	for i, s := range h.samples {
		until := now.Add(time.Second) // the newest is seen though no time has passed
		if i+1 < len(h.samples) {
			until = h.samples[i+1].at
		}
		until = earlier(until, s.at.Add(holds))
		n := s.lines[p]
		pic.Most = max(pic.Most, n)
		next := step{across(s.at, now), across(until, now), n}
		if last := len(steps) - 1; last >= 0 && steps[last].n == n && steps[last].to == next.from {
			steps[last].to = next.to
		} else {
			steps = append(steps, next)
		}
	}
	var area, seen strings.Builder
	end := -1.0 // of the area so far
	for _, s := range steps {
		fmt.Fprintf(&seen, "M%.1f %dH%.1f", s.from, height, s.to)
		if s.n == 0 {
			continue
		}
		if s.from != end {
			if end >= 0 {
				fmt.Fprintf(&area, "V%dZ", height)
			}
			fmt.Fprintf(&area, "M%.1f %d", s.from, height)
		}
		fmt.Fprintf(&area, "V%.1fH%.1f", float64(height)*(1-float64(s.n)/float64(pic.Most)), s.to)
		end = s.to
	}
	if end >= 0 {
		fmt.Fprintf(&area, "V%dZ", height)
	}
	pic.Path, pic.Seen = area.String(), seen.String()
	return pic
}

// across returns where in a picture of now a time is, from the left.
func across(t, now time.Time) float64 {
	x := float64(width-1) - now.Sub(t).Seconds()
	return min(max(x, 0), float64(width))
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
