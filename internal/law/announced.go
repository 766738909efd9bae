package law

import (
	"slices"
	"strings"
	"time"
)

// Announcements are what a server has announced to one audience, or of one budget:
// pauses, and limits. B is how their owner names its budgets. They are no safer for
// concurrent use than a State.
type Announcements[B comparable] []Announced[B]

// Announced is one of them: Pause or Limit, the other is nil.
type Announced[B comparable] struct {
	Pause  *Pace
	Limit  *Cap
	Only   B             // the budget that a pause is restricted to; the zero B: none
	Window time.Duration // of a limit, as the server gives it; zero where it does not
	Source string        // the dialect that has announced it last

	// The rest is the owner's, where requests wait in a line.
	Budget   B    // what stands for it among the budgets that a request needs
	Status   int  // of the response that has raised the pause
	Reported Time // the end of the pause that was last reported
}

// State is the pause, or the limit.
func (a *Announced[B]) State() State {
	if a.Pause != nil {
		return a.Pause
	}
	return a.Limit
}

// A LimitKey tells the limits that one server announces apart.
type LimitKey struct {
	Name   string
	Window time.Duration
}

// A PauseSignal is what a response has announced about the time before which no request
// is welcome.
type PauseSignal struct {
	For     time.Duration // from now; of several pauses the longest wins
	Grow    bool          // the server did not say how long: For, doubled each time, up to Most
	Most    time.Duration
	Started Time    // when the request started
	Limits  []Spec  // under which the requests restart gently
	Open    bool    // some of them are under no limit: these restart at the rate that succeeded before
	Found   int64   // how many succeeded in the second before Started
	Recent  *Recent // where not nil it knows that, in place of Found
	Source  string
}

// Pause returns the pause for the requests that need only, or for all; a new one where
// there is none.
func (l *Announcements[B]) Pause(only B) (a *Announced[B], isNew bool) {
	i := slices.IndexFunc(*l, func(a Announced[B]) bool { return a.Pause != nil && a.Only == only })
	if isNew = i < 0; isNew {
		i = len(*l)
		*l = append(*l, Announced[B]{Pause: NewPace(), Only: only})
	}
	return &(*l)[i], isNew
}

// Raise makes a, a pause of l, as long as s has it, and chooses the restart after it: under
// the limits that s has and those that are announced. It returns how long the pause is
// from now; zero where that is not longer than before.
func (l Announcements[B]) Raise(now Time, a *Announced[B], s *PauseSignal) (length time.Duration) {
	old := *a.Pause
	if s.Grow {
		length = time.Duration(a.Pause.Grow(now, s.Started, int64(s.For), int64(s.Most)))
	} else if a.Pause.Until(now, Later(now, s.For)) {
		length = s.For
	}
	if length <= 0 {
		return 0
	}
	a.Source = s.Source
	limits := s.Limits
	if len(limits) > 0 {
		limits = slices.Clip(limits)
		for i := range l {
			if c := l[i].Limit; c != nil {
				limits = append(limits, c.Announced(now)...)
			}
		}
	}
	if a.Pause.SetLimits(limits...); s.Open {
		found := s.Found
		if s.Recent != nil {
			found = s.Recent.Before(s.Started)
		}
		a.Pause.Found(found, s.Started, &old)
	}
	return length
}

// Later returns the instant that lies d after t, before Never.
func Later(t Time, d time.Duration) Time { return min(addSat(t, int64(d)), Never-1) }

// Succeeded ends the growing of the pauses, for a request that started then. It reports
// whether there are any.
func (l Announcements[B]) Succeeded(started Time) (any bool) {
	for i := range l {
		if p := l[i].Pause; p != nil {
			p.Succeeded(started)
			any = true
		}
	}
	return any
}

// mostLimits bounds how many limits there are: their names are the server's.
const mostLimits = 8

// Limit returns the limit with that key, and a new one where there is none; see NewCap
// for inFlight. Where there are too many already, the new one takes the place of the
// first that has ended, or that unused, if it is not nil, reports to be so; else it is
// nil.
func (l *Announcements[B]) Limit(now Time, key LimitKey, inFlight *int64, unused func(*Announced[B]) bool) (a *Announced[B], isNew bool) {
	n, idle := 0, -1
	for i := range *l {
		a := &(*l)[i]
		if a.Limit == nil {
			continue
		}
		if a.Limit.Name == key.Name && a.Window == key.Window {
			return a, false
		}
		if n++; idle < 0 && (a.Limit.Over(now) || unused != nil && unused(a)) {
			idle = i
		}
	}
	switch {
	case n < mostLimits:
		idle = len(*l)
		*l = append(*l, Announced[B]{})
	case idle < 0:
		return nil, false
	}
	a = &(*l)[idle]
	*a = Announced[B]{Limit: NewCap(strings.Clone(key.Name), inFlight), Window: key.Window} // the name was a part of all headers
	return a, true
}

// A Standing is how an announcement stands at an instant.
type Standing struct {
	Pause       time.Duration // until its end; zero for a limit
	Left, Limit int64         // Limit is negative where the server did not say
	Reset       time.Duration // until units return; negative where the server did not say
	Age         time.Duration // since the response
	Drift       int64         // see CapStatus
}

// Standing returns how a stands at now; false where it is a pause that has ended.
func (a *Announced[B]) Standing(now Time) (s Standing, holds bool) {
	if a.Pause != nil {
		end, paused := a.Pause.End(now)
		return Standing{Pause: time.Duration(end - now)}, paused
	}
	c := a.Limit.Status(now)
	s = Standing{Left: c.Left, Limit: c.Limit, Reset: time.Duration(c.Reset - now), Age: time.Duration(now - c.Updated), Drift: c.Drift}
	if c.Reset == Never {
		s.Reset = -1
	}
	return s, !a.Limit.Over(now)
}
