package law

import "time"

// gentle is for how long a pause's end lets requests through one by one.
const gentle = int64(10 * time.Second)

// Pace is a pause and the gentle restart after it: nothing before end; for 10 s
// from then on, the k-th start comes no earlier than end + k intervals. It
// counts starts, not units.
type Pace struct {
	rate
	end    Time
	starts int64
	raised Time  // when it last became longer
	step   int64 // the last length that Grow chose; zero after a success
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

// SetLimits chooses the interval anew; the pause stays.
func (p *Pace) SetLimits(limits ...Spec) {
	p.rate = rate{n: 1, per: int64(time.Second)}
	for _, l := range limits {
		if r := (rate{n: l.N, per: int64(l.Period())}); l.N > 0 && r.before(p.rate) {
			p.rate = r
		}
	}
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
// started before the pause was last raised: its answer says nothing new. It
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

func (p *Pace) Earliest(_, t Time, _ int64) (Time, bool) {
	free := addSat(p.end, gentle)
	if t >= free {
		return t, false
	}
	ns, frac := p.span(p.starts)
	if frac > 0 {
		ns = addSat(ns, 1)
	}
	return max(t, min(free, addSat(p.end, ns))), false
}

func (p *Pace) Take(t Time, _ int64) bool {
	if t >= p.end && t < addSat(p.end, gentle) {
		p.starts++
	}
	return false
}

func (p *Pace) Answered(Time, int64) {}

func (p *Pace) Give(taken Time, _ int64, _ bool) {
	if taken >= p.end && p.starts > 0 {
		p.starts--
	}
}

func (p *Pace) Spend(Time, int64) {}

func (p *Pace) Remaining(Time) int64 { return Unlimited }

func (p *Pace) Recovered(now Time) bool {
	if p.step > 0 {
		return now >= addSat(p.end, memory)
	}
	return p.over(now)
}

// over reports whether the gentle restart has ended.
func (p *Pace) over(now Time) bool { return now >= addSat(p.end, gentle) }

func (p *Pace) history(Time) []Entry { return nil }

func (p *Pace) simulate(Time) sim { return sim{kind: simPace, pace: *p} }

// simulateAt is simulate with all of the plan up to t taken: all before i.
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
