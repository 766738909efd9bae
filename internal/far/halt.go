package far

import "slices"

// A halt is whom a refusal holds up while nobody knows for how long: those who hear
// ear, and need the budget only if there is one.
type halt struct{ ear, only string }

// Halt lets nobody concerned start here until release is called. The store does not
// know: what other processes share is what is asked of it before the release. A
// question that is out already may still be granted.
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
		if slices.Contains(a.Ears, h.ear) && (h.only == "" || slices.ContainsFunc(a.Needs, func(n Need) bool { return n.Budget == h.only })) {
			return true
		}
	}
	return false
}
