package line

import (
	"time"

	"github.com/headway-go/headway/internal/law"
)

// A Pause is what a response said about when to come back.
type Pause struct {
	Scope
	Source  string
	Status  int           // of the response
	Limits  []law.Spec    // under which the paused requests restart gently
	Open    bool          // it also pauses requests without a limit: these restart as fast as they succeeded before
	For     time.Duration // from now
	Grow    bool          // the response did not say how long: For, doubled each time, up to Most
	Most    time.Duration
	Started time.Duration // when the request started
	Cut     bool          // the response asked for more

	// Over is what the headers of the same response have raised already, and this one
	// replaces, unless another response has made it longer since. With a For of zero
	// nothing takes its place.
	Over *Pause

	// What raising it has changed, for one that replaces it.
	raised        *Budget
	before, after law.Pace
	end           law.Time
}

// IsNews reports whether it matters that a pause lasts until end, where it was last
// reported to last until reported: that has passed, or is earlier by 1 s and a twentieth
// of the pause at least. Requests that were in flight together are refused within
// moments, each with an end of its own.
func IsNews(reported, now, end time.Duration) bool {
	return reported <= now || end-reported >= max(time.Second, (end-now)/20)
}

// AnnouncePause makes the requests that it concerns wait, those in line among them. It
// returns for how long, from now; zero where none waits longer by it.
func (line *Line) AnnouncePause(p *Pause) (time.Duration, error) {
	l, now := line.lock()
	defer l.unlock()
	e, err := l.audienceOf(p.Scope)
	if err != nil {
		return 0, err
	}
	if o := p.Over; o != nil && o.raised != nil {
		p.Over = nil
		if pace := o.raised.state.(*law.Pace); *pace == o.after {
			*pace = o.before
			defer l.changed(now, true, o.raised)
		} else {
			p.Grow = false // other responses have made it longer: it has grown
		}
	}
	if p.For == 0 {
		return 0, nil
	}
	a, isNew := e.list.Pause(p.Rule)
	if isNew {
		a.Budget = newAnnounced(a, p.Rule)
		l.attach(a.Budget, p.Scope)
	}
	p.before = *a.Pause
	length := e.list.Raise(now, a, &law.PauseSignal{
		For: p.For, Grow: p.Grow, Most: p.Most, Started: int64(p.Started),
		Limits: p.Limits, Open: p.Open, Recent: &l.recent, Source: p.Source,
	})
	if length > 0 {
		b := a.Budget
		b.origin.source, b.origin.status = p.Source, p.Status
		p.raised, p.after, p.end = b, *a.Pause, law.Later(now, length)
		l.paused(b)
		l.changed(now, true, b)
	}
	return length, nil
}

// IsNews reports whether the pause that p has raised is news. Then it counts as
// reported.
func (line *Line) IsNews(p *Pause) bool {
	l, now := line.lock()
	defer l.unlock()
	if p.raised == nil {
		return true
	}
	o := p.raised.origin
	news := IsNews(time.Duration(o.reported), time.Duration(now), time.Duration(p.end))
	if news {
		o.reported = p.end
	}
	return news
}

// Recent is law.Recent, for lines whose budgets are in a store.
type Recent = law.Recent

// Served tells the line that a request without a limit, which started at that instant,
// has succeeded: a restart without limits goes as fast as those did. With done it is
// DoneStart for a request without budgets too.
func (line *Line) Served(started time.Duration, done bool) {
	l := line.lockOnly()
	defer l.mu.Unlock()
	if done {
		l.inFlight--
	}
	l.wantExtra().recent.Add(int64(started))
	if l.audiences == nil {
		return
	}
	now := max(l.last, l.epoch.clock())
	list := l.audiences.all.list
	for i := range list {
		if p := list[i].Pause; p != nil && p.Served(now, int64(started)) && l.waiting > 0 {
			l.last = now
			l.changed(now, false, list[i].Budget)
		}
	}
}

// Succeeded tells the pauses that may have held a request which started at that instant
// that it has succeeded: they no longer grow.
func (line *Line) Succeeded(who Who, started time.Duration) {
	l := line.lockOnly()
	defer l.mu.Unlock()
	if h := l.audiences; h != nil {
		h.all.list.Succeeded(int64(started))
		for _, id := range [...]uint64{who.Identity, who.Resource} {
			if e := h.ids[id]; e != nil {
				e.list.Succeeded(int64(started))
			}
		}
	}
}
