package line

import "github.com/headway-go/headway/internal/law"

// renewQuick makes a new quick where the ticks of the old one have run out.
func (l *Line) renewQuick() {
	q := law.NewQuick(l.lone.state, l.last)
	if q != nil && !q.Release(l.lone.state, l.last) {
		q = nil // far in debt
	}
	l.quick.Store(q)
}

// Quick takes n units if they fit, and reports whether it did, by the shortest
// way for a lone budget: without the lock where that can be. ok is false where
// Try or Enter has to decide.
func (l *Line) Quick(n int64) (took, ok bool) {
	q := l.quick.Load()
	if q == nil {
		return l.quickLocked(nil, n)
	}
	now := l.clock()
	if q.Starts == nil {
		return q.Try(now, n)
	}
	if took, ok = q.Starts.Try(now, n); ok {
		return took, true
	}
	return l.quickLocked(q, n)
}

func (l *Line) quickLocked(q *law.Quick, n int64) (took, ok bool) {
	l.mu.Lock()
	// SetLimits may have brought another quick meanwhile: then its word counts.
	if x := l.extra; x.lone != nil && l.quick.Load() == q && l.waiting == 0 && l.chain.first == nil && len(x.walls) == 0 {
		l.last = max(l.last, l.clock())
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
