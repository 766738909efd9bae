package law

import "time"

// gentle is for how long after a pause's end requests start one by one.
const gentle = int64(10 * time.Second)

// growth is for how many seconds after that a rate without a limit doubles. At the end
// it has grown by a factor of a million, so that no burst follows.
const growth = 20

// Pace is a pause and the gentle restart after it: nothing before end; for 10 s
// from then on, the k-th start comes no earlier than end + k intervals. It
// counts starts, not units.
//
// Where it holds requests without a limit, the rate is found: it is what succeeded before
// the pause. It doubles with each second after the 10 s, and unused starts are not
// saved: each start comes an interval after the last.
//
// Under a limit of 2 per second, a pause until 60 lets one request start at 60, 60.5, 61
// and so on until 70; from then on the limit alone decides. Without a limit, where 5
// succeeded in the second before, requests start each 200 ms until 70, each 100 ms in the
// second after that, each 50 ms in the next, and freely from 90 on.
type Pace struct {
	common
	rate
	end    Time
	starts int64
	raised Time  // when it last became longer
	step   int64 // the last length that Grow chose; zero after a success
	found  bool  // it holds requests without a limit
	before Time  // the successes that count are those of requests started by then
	served int64 // how many there were in the second before
}

// memory is for how long a step is remembered after the end of its pause.
const memory = 600 * second

// NewPace returns a Pace without a pause. Its interval is the smallest of
// those of the limits that it restarts under, at most 1 s.
func NewPace(limits ...Spec) *Pace {
	p := &Pace{end: -Never, raised: -Never}
	p.SetLimits(limits...)
	return p
}

// SetLimits chooses the interval anew; the pause stays. Without limits it is 1 s
// until Found says more.
func (p *Pace) SetLimits(limits ...Spec) {
	p.rate, p.found = slowest, true
	for _, l := range limits {
		if l.N <= 0 {
			continue
		}
		p.found = false
		if r := (rate{n: l.N, per: int64(l.Period())}); r.before(p.rate) {
			p.rate = r
		}
	}
	p.served, p.before = 0, -Never
}

// slowest is the least rate of a restart.
var slowest = rate{n: 1, per: second}

// Found reports that p holds requests without a limit, n of which succeeded of those
// that were started in the second until before, at which the refused one was. It
// raises the rate to that, and to what old, which p was before it became longer,
// leaves of its own.
func (p *Pace) Found(n int64, before Time, old *Pace) {
	p.served, p.before = n, before
	n = max(n, 1, p.units(second), old.left(before))
	p.rate, p.found = rate{n: min(n, MaxN), per: second}, true
}

// left returns what rate a pause keeps that follows p, which a request has raised that
// started then. In the second before that, nothing succeeded that p held up: half of
// the rate stays where the restart was refused. A request that started earlier was in
// flight with those that raised p, and changes nothing.
func (p *Pace) left(started Time) int64 {
	switch {
	case !p.found || started >= addSat(p.end, second):
		return 0
	case started >= p.end:
		return p.n / 2
	}
	return p.n
}

// Served counts one more request that has succeeded, as long as the pause lasts,
// and reports whether the rate has grown by it.
func (p *Pace) Served(now, started Time) bool {
	if !p.found || now >= p.end || started > p.before || started <= p.before-second {
		return false
	}
	p.served++
	grows := p.served > p.n
	p.n = min(max(p.n, p.served), MaxN)
	return grows
}

// Until extends the pause to t, and reports whether that is later than before.
func (p *Pace) Until(now, t Time) bool {
	if t <= now || t <= p.end {
		return false
	}
	p.end, p.starts, p.raised = t, 0, now
	return true
}

// Grow is Until for a server that did not say how long: for least at first, and
// for twice as long each time, up to most. It does nothing for a request that
// started before the pause was last raised: its response is no news. It
// returns the length, zero for nothing.
func (p *Pace) Grow(now, started Time, least, most int64) int64 {
	if started <= p.raised {
		return 0
	}
	if p.step = min(2*p.step, most); p.step < least {
		p.step = least
	}
	if !p.Until(now, addSat(now, p.step)) {
		p.raised = now
		return 0
	}
	return p.step
}

// Succeeded ends the growing: a request that started after the pause was raised
// has succeeded.
func (p *Pace) Succeeded(started Time) {
	if started > p.raised {
		p.step = 0
	}
}

// End returns when the pause ends, and whether it has not yet.
func (p *Pace) End(now Time) (end Time, paused bool) { return p.end, now < p.end }

// free returns when the restart is over.
func (p *Pace) free() Time {
	if p.found {
		return addSat(p.end, gentle+growth*second)
	}
	return addSat(p.end, gentle)
}

func (p *Pace) Earliest(_, t Time, _ int64) (Time, bool) {
	free := p.free()
	if t >= free {
		return t, false
	}
	return max(t, min(free, p.slot(p.starts))), false
}

// slot returns when the k-th start may come.
func (p *Pace) slot(k int64) Time {
	ns := p.span(k).ceil()
	if !p.found || ns <= gentle {
		return addSat(p.end, ns)
	}
	ns -= gentle
	for j := range growth { // of that, each second takes twice as much as the one before
		if room := second << (j + 1); ns > room {
			ns -= room
			continue
		}
		return addSat(p.end, gentle+int64(j)*second+(ns-1)>>(j+1)+1)
	}
	return Never
}

// passed returns the last start whose slot is not after t, which is in the restart
// of a rate that was found.
func (p *Pace) passed(t Time) int64 {
	ns := t - p.end
	if ns > gentle {
		j, rest := (ns-gentle)/second, (ns-gentle)%second
		ns = gentle + (2<<j-2)*second + rest<<(j+1)
	}
	return p.units(ns)
}

func (p *Pace) Take(t Time, _ int64) bool {
	if t >= p.end && t < p.free() {
		if p.found {
			p.starts = max(p.starts, p.passed(t))
		}
		p.starts++
	}
	return false
}

func (p *Pace) Give(taken Time, _ int64, _ bool) {
	if taken >= p.end && p.starts > 0 {
		p.starts--
	}
}

func (p *Pace) Recovered(now Time) bool {
	if p.step > 0 {
		return now >= addSat(p.end, memory)
	}
	return p.over(now)
}

// over reports whether the gentle restart has ended.
func (p *Pace) over(now Time) bool { return now >= p.free() }

func (p *Pace) Expires(now Time) Time {
	if p.step > 0 {
		return max(now, addSat(p.end, memory))
	}
	return max(now, p.free())
}

// Max is one, for Pace counts starts.
func (p *Pace) Max() int64 { return 1 }

func (p *Pace) Clamp(now Time) int64 {
	ahead := subSat(p.raised, now)
	if ahead > 0 {
		p.end, p.raised = earlier(p.end, ahead), now
	}
	return max(0, ahead)
}

func (p *Pace) idle(t Time) bool { return p.Recovered(t) }

// foundVersion is version for a Pace whose rate was found. Readers that would let all
// go after 10 s do not know it.
const foundVersion = 2

func (p *Pace) code(c *Codec) {
	v := byte(version)
	if p.found {
		v = foundVersion
	}
	c.Version(&v, foundVersion)
	c.Ints(&p.n, &p.per, &p.end, &p.starts, &p.raised, &p.step)
	if !c.reading {
		return
	}
	p.found, p.before = v == foundVersion, -Never
	if p.n <= 0 || p.per <= 0 || p.found && p.per != second {
		c.fail()
	}
}

func (p *Pace) jumps() bool { return !p.found }

func (p *Pace) simulate(Time) sim { return sim{kind: simPace, pace: *p} }

// simulateAt: the rate is a limit's; else it matters when they start.
func (p *Pace) simulateAt(now, t Time, plan *schedule) (s sim, i place) {
	s, i = p.simulate(now), plan.find(after(t))
	first := place{} // overdue, they start at now
	if now < p.end {
		first = plan.find(key{p.end, 0})
	}
	end := i
	if free := plan.find(key{addSat(p.end, gentle), 0}); free.before(end) {
		end = free
	}
	if now < addSat(p.end, gentle) {
		n, _ := plan.between(first, end)
		s.pace.starts += n
	}
	return s, i
}
