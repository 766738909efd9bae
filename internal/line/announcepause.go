package line

import (
	"time"

	"github.com/headway-go/headway/internal/law"
)

// A Pause is what an answer said about coming back.
type Pause struct {
	Scope
	Source  string
	Status  int           // of the answer
	Limits  []law.Spec    // under which those held restart gently
	Open    bool          // it holds some without a limit too: as fast as those succeeded before
	For     time.Duration // from now
	Grow    bool          // nobody said how long: For, doubled each time, up to Most
	Most    time.Duration
	Started time.Duration // when the request started

	// Over is what the headers of the same response have raised already, and this
	// replaces, unless another response has made it longer since. With a For of zero
	// nothing takes its place.
	Over *Pause

	// What raising it has changed, for one that replaces it.
	raised        *Budget
	before, after law.Pace
	end           law.Time
}

// IsNews reports whether it matters that a pause lasts until an end, where it was last
// reported to last until told: that has passed, or is earlier by 1 s and a twentieth
// of the pause at least. Requests that were in flight together are refused within
// moments, each with an end of its own.
func IsNews(reported, now, end time.Duration) bool {
	return reported <= now || end-reported >= max(time.Second, (end-now)/20)
}

// AnnouncePause makes those concerned wait, those in line among them. It returns for how
// long, from now; zero where nobody waits longer by it.
func (l *Line) AnnouncePause(p *Pause) (time.Duration, error) {
	now := l.lock()
	defer l.unlock()
	e := l.audienceOf(p.Identity)
	switch {
	case l.retired || p.Rule != nil && p.Rule.retired:
		return 0, ErrRetired
	case e == nil:
		return 0, ErrNoAudience
	}
	if o := p.Over; o != nil && o.raised != nil {
		p.Over = nil
		if pace := o.raised.state.(*law.Pace); *pace == o.after {
			*pace = o.before
			defer l.changed(now, true, o.raised)
		} else {
			p.Grow = false // others have: it has grown
		}
	}
	if p.For == 0 {
		return 0, nil
	}
	h := e.find(func(h *announcement) bool { return h.only == p.Rule && h.isPause() })
	if h == nil {
		e.list = append(e.list, announcement{b: l.NewPause(p.Limits...), only: p.Rule})
		h = &e.list[len(e.list)-1]
		l.holdWaiting(h.b, p.Scope, true)
	}
	pace := h.b.state.(*law.Pace)
	p.before = *pace
	length := p.For
	if p.Grow {
		length = time.Duration(pace.Grow(now, int64(p.Started), int64(p.For), int64(p.Most)))
	} else if !pace.Until(now, satAdd(now, p.For)) {
		length = 0
	}
	if length > 0 {
		h.source = p.Source
		limits := p.Limits
		if len(limits) > 0 {
			limits = append(limits, announced(e.list, now)...)
		}
		if pace.SetLimits(limits...); p.Open {
			pace.Found(l.recent.Before(int64(p.Started)), int64(p.Started), &p.before)
		}
		h.status = p.Status
		p.raised, p.after = h.b, *pace
		l.paused(h.b)
		l.changed(now, true, h.b)
		p.end = satAdd(now, length)
	}
	return length, nil
}

// IsNews reports whether the pause that p has raised is News. Then it counts as
// reported.
func (l *Line) IsNews(p *Pause) bool {
	now := l.lock()
	defer l.unlock()
	e := l.audienceOf(p.Identity)
	if e == nil || p.raised == nil {
		return true
	}
	h := e.find(func(h *announcement) bool { return h.b == p.raised })
	if h == nil {
		return true
	}
	news := IsNews(time.Duration(h.reported), time.Duration(now), time.Duration(p.end))
	if news {
		h.reported = p.end
	}
	return news
}

// announced returns the limits that a server has announced.
func announced(list []announcement, now law.Time) (limits []law.Spec) {
	for i := range list {
		if c, ok := list[i].b.state.(*law.Cap); ok {
			limits = append(limits, c.Announced(now)...)
		}
	}
	return limits
}

// Served tells the line that a request without a limit, which started then, has
// succeeded: a restart without limits goes as fast as those did. With done it is
// DoneStart for a request without budgets too.
func (l *Line) Served(started time.Duration, done bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if done {
		l.inFlight--
	}
	l.served(int64(started))
}

func (l *Line) served(started law.Time) {
	l.more().recent.Add(started)
	if l.audiences == nil {
		return
	}
	now := max(l.last, l.clock())
	for i := range l.audiences.all.list {
		if b := l.audiences.all.list[i].b; b.served(now, started) && l.waiting > 0 {
			l.last = now
			l.changed(now, false, b)
		}
	}
}

func (b *Budget) served(now, started law.Time) bool {
	p, ok := b.state.(*law.Pace)
	return ok && p.Served(now, started)
}

func satAdd(t law.Time, d time.Duration) law.Time {
	if int64(d) > law.Never-1-t {
		return law.Never - 1
	}
	return t + int64(d)
}

// Succeeded tells the pauses of an identity that a request which started then
// has succeeded: they no longer grow.
func (l *Line) Succeeded(identity uint64, started time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.audiences == nil {
		return
	}
	l.audiences.all.succeeded(started)
	if e := l.audiences.ids[identity]; e != nil {
		e.succeeded(started)
	}
}

func (e *audience) succeeded(started time.Duration) {
	for i := range e.list {
		if p, ok := e.list[i].b.state.(*law.Pace); ok {
			p.Succeeded(int64(started))
		}
	}
}

// Recent is law.Recent, for lines whose budgets are in a store.
type Recent = law.Recent
