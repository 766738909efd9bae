package breaker

// noteLocked keeps a change to be told.
func (b *Breaker) noteLocked(c Change) {
	if b.onChange != nil {
		b.changes = append(b.changes, c)
	}
}

// Tell tells the callback given to New of every change that it has not been told
// of. When another goroutine is telling, or the callback itself is the caller,
// that one tells them and Tell returns at once. Nothing to tell costs one atomic
// read.
func (b *Breaker) Tell() {
	if b.word.Load()&untoldBit == 0 {
		return
	}
	for {
		c, ok := b.nextChange()
		if !ok {
			return
		}
		b.tell(c)
	}
}

// nextChange takes the next change to tell, and with it the right to tell until
// told is called, so that there is one teller at a time.
func (b *Breaker) nextChange() (Change, bool) {
	b.mu.Lock()
	defer b.unlock()
	if b.telling || len(b.changes) == 0 {
		return Change{}, false
	}
	c := b.changes[0]
	b.changes[0] = Change{} // lets go of Err
	b.changes = b.changes[1:]
	b.telling = true
	return c, true
}

func (b *Breaker) told() {
	b.mu.Lock()
	defer b.unlock()
	b.telling = false
}

// tell calls back. A callback that panics or ends its goroutine takes only
// itself out: the changes after it are told before this goroutine goes on to
// unwind.
func (b *Breaker) tell(c Change) {
	returned := false
	defer func() {
		b.told()
		if !returned {
			b.Tell()
		}
	}()
	b.onChange(c)
	returned = true
}
