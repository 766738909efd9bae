package breaker

import _ "unsafe" // for go:linkname

// noteLocked keeps a change until it is reported.
func (b *Breaker) noteLocked(c Change) {
	if b.onChange != nil {
		b.changes = append(b.changes, c)
	}
}

// report calls onChange for every change that has not been reported. If another
// goroutine is reporting, or onChange itself is the caller, that one reports them
// and this call returns at once. With nothing to report it costs one atomic read.
// internal/inside links to it: a Take may leave a change unreported.
//
//go:linkname report
func report(b *Breaker) {
	if b.word.Load()&unreportedBit == 0 {
		return
	}
	for {
		c, ok := b.nextChange()
		if !ok {
			return
		}
		b.call(c)
	}
}

// nextChange takes the next change, and with it the right to report until
// reported is called, so that one goroutine reports at a time.
func (b *Breaker) nextChange() (Change, bool) {
	b.mu.Lock()
	defer b.unlock()
	if b.reporting || len(b.changes) == 0 {
		return Change{}, false
	}
	c := b.changes[0]
	b.changes[0] = Change{} // lets go of Err
	b.changes = b.changes[1:]
	b.reporting = true
	return c, true
}

func (b *Breaker) reported() {
	b.mu.Lock()
	defer b.unlock()
	b.reporting = false
}

// call calls onChange. If that panics or ends its goroutine, the changes after it
// are reported before this goroutine unwinds further.
func (b *Breaker) call(c Change) {
	returned := false
	defer func() {
		b.reported()
		if !returned {
			report(b)
		}
	}()
	b.onChange(c)
	returned = true
}
