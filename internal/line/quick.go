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
	if q := l.quick.Load(); q != nil {
		return q.Try(l.clock(), n)
	}
	l.mu.Lock()
	// SetLimits may have brought a quick meanwhile: then the word counts.
	if x := l.extra; x.lone != nil && l.quick.Load() == nil && l.waiting == 0 && l.chain.first == nil && len(x.walls) == 0 {
		l.last = max(l.last, l.clock())
		if ok = x.pause.state.Recovered(l.last); ok {
			took = law.Admit(x.lone.state, l.last, n)
			x.lone.forget()
		}
	}
	l.mu.Unlock()
	return took, ok
}
