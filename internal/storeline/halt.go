package storeline

import "slices"

// A halt names the requests that a refusal holds up before its length is known: those
// of the audience ear or, where only is set, those of them that need that budget.
type halt struct{ ear, only string }

// Halt keeps the requests that it names from starting in this process until release
// is called. The store and other processes do not know of it. A question that has
// been sent to the store already may still be granted.
func (l *Line) Halt(ear, only string) (release func()) {
	h := halt{ear, only}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.halted == nil {
		l.halted = map[halt]int{}
	}
	l.halted[h]++
	return func() {
		l.mu.Lock()
		if l.halted[h]--; l.halted[h] == 0 {
			delete(l.halted, h)
		}
		l.kick()
		l.mu.Unlock()
	}
}

// isHalted reports whether a Halt concerns a request.
func (l *Line) isHalted(a *Ask) bool {
	for h := range l.halted {
		if slices.Contains(a.Audiences, h.ear) && (h.only == "" || slices.ContainsFunc(a.Needs, func(n Need) bool { return n.Budget == h.only })) {
			return true
		}
	}
	return false
}
