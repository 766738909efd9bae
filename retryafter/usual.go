package retryafter

import (
	"net/http"
	"time"
)

// This file is a short way for by far the most common response of those that say
// anything: a success with one limit, in up to three short numbers. What
// it reads, and that is all that it may do, interpret would read in the same way.

// isUsual reports whether a field of the row may be in such a response.
func (b *builtin) isUsual(f *field) bool {
	switch {
	case b.odd != plain && b.odd != oddRateLimit && b.odd != oddXRateLimit:
	case f.label != "" || f.window != 0 || f.otherUnit:
	case f.role == isLimit || f.role == isRemaining:
		return true
	case f.role == isReset:
		return f.form == byMagnitude || f.form == byMagnitudeF
	}
	return false
}

// usual reads a success of at least one header. It is false, and s as it was, for
// one that is not usual.
func (c *Reader) usual(s *Signal, found *scan, h http.Header, now time.Time) bool {
	if len(found.hits) == 0 {
		return false
	}
	if found.seen&(markBucket|markResource) != 0 {
		return false // it names a resource
	}
	row := found.hits[0].f.row
	var l LimitSignal
	reset := int64(-1)
	for i := range found.hits {
		h := &found.hits[i]
		n, ok := h.short()
		if !ok || !h.f.usual || h.f.row != row {
			return false
		}
		switch {
		case h.f.role == isLimit && !l.HasLimit:
			l.Limit, l.HasLimit = n, true
		case h.f.role == isRemaining && !l.HasRemaining:
			l.Remaining, l.HasRemaining = n, true
		case h.f.role == isReset && reset < 0:
			reset = n
		default:
			return false // twice: the order decides
		}
	}
	conv := c.choose(found, http.StatusOK)
	if reset >= 0 {
		k := clocks{h: h, came: now}
		if l.Reset, l.Coarse, l.HasReset = k.bySize(uint64(reset), 0, conv.small); !l.HasReset {
			return false
		}
	}
	l.explain(row, conv)
	if s.Dialect = conv.name; conv == &unknown {
		s.Dialect = row.name
	}
	s.limits[0], s.n, s.stored = l, 1, found.stored
	return true
}
