package line

import "github.com/headway-go/headway/internal/law"

// A line with one budget and no pause, whose law can count in a few atomic words, needs
// no lock while nothing waits: that is the case of a limiter under load, where a mutex
// would cost more than the law. law.Quick holds those words. Its protocol is:
//
//   - It is released, so that starts are counted in it, only by unlock, with an empty
//     queue and chain and no pause.
//   - lock holds it: from then on a start without the lock fails, and what was counted
//     is moved to the budget's state, which is exact again for as long as the lock is
//     held. A start that was under way when it was held counts in neither: it tries
//     again under the lock.
//   - Its ticks run out some time. Then it cannot be released any more, and renewQuick
//     makes a new one, also under the lock. SetLimits makes a new one too: a caller that
//     still has the old one fails there, since it is never released again.

// renewQuick makes a new quick where the ticks of the old one have run out.
func (l *locked) renewQuick() {
	q := law.NewQuick(l.lone.state, l.last)
	if q != nil && !q.Release(l.lone.state, l.last) {
		q = nil // too deep in debt
	}
	l.quick.Store(q)
}

// Quick takes n units if they fit, and reports whether it did, by the shortest
// way for a lone budget: without the lock where that can be. ok is false where
// Try or Enter has to decide.
func (line *Line) Quick(n int64) (took, ok bool) {
	q := line.quick.Load()
	if q == nil {
		return line.quickSlow(nil, n)
	}
	now := line.epoch.clock()
	if q.Starts == nil {
		return q.Try(now, n)
	}
	if took, ok = q.Starts.Try(now, n); ok {
		return took, true
	}
	return line.quickSlow(q, n)
}

// quickSlow is Quick under the lock. It does by itself what lock and unlock would, since
// it knows that most of that is not needed.
func (line *Line) quickSlow(q *law.Quick, n int64) (took, ok bool) {
	line.mu.Lock()
	l := (*locked)(line)
	// SetLimits may have brought another quick meanwhile, which decides then.
	if x := l.extra; x.lone != nil && l.quick.Load() == q && l.waiting == 0 && l.chain.first == nil && len(x.walls) == 0 {
		l.last = max(l.last, l.epoch.clock())
		if q != nil {
			l.last = q.Hold(x.lone.state, l.last)
		}
		if ok = x.pause.state.Recovered(l.last); ok {
			took = law.Admit(x.lone.state, l.last, n)
			x.lone.forget()
			if q != nil && !q.Release(x.lone.state, l.last) {
				l.renewQuick()
			}
		}
	}
	l.mu.Unlock()
	return took, ok
}
