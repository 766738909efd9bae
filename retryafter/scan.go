package retryafter

import "net/http"

// maxHits is how many headers of one response are read; Kong with every window
// sends 16. Most responses have no more than fewHits, which are sooner made.
const (
	maxHits = 20
	fewHits = 6
)

// A scan is what was found in a header.
type scan struct {
	seen bitset
	hits []hit // with the room for as many as are read; in any order before sort
	more bool  // there were more

	stored bool // a header says that a cache may have kept the response
}

// A hit is a header of the response that some row knows.
type hit struct {
	f      *field
	key    string
	vals   []string
	lo, hi uint8 // the label within key, when hi is not zero
}

func (h *hit) label() string {
	if h.hi == 0 {
		return h.f.label
	}
	return h.key[h.lo:h.hi]
}

// after reports whether h comes after o: hits are read by row, limit and field.
func (h *hit) after(o *hit) bool {
	if h.f.row != o.f.row {
		return h.f.row.order > o.f.row.order
	}
	if a, b := h.label(), o.label(); a != b {
		return a > b
	}
	return h.f.order > o.f.order
}

// scan finds the headers that rows of set know. One pass over the map costs less
// than a lookup for each of a hundred names, and most keys are passed over after
// a look at two of their bytes.
func (c *scan) scan(h http.Header, set bitset) {
	for key, vals := range h {
		switch len(key) {
		case 0:
			continue
		case len("Age"), len("X-From-Cache"):
			c.stored = c.stored || key == "Age" || key == "X-From-Cache"
		}
		p := names.starts[start(key)]
		if p == nil || len(key) < minName || len(key) > maxName {
			continue
		}
		var lo, hi uint8
		f := names.exact(key)
		if f == nil {
			if f, lo, hi = p.label(key); f == nil {
				continue
			}
		}
		if f.row.own&set == 0 || len(vals) == 0 {
			continue
		}
		c.seen |= f.row.own | f.marks
		if f.role != isMark {
			c.take(f, key, vals, lo, hi)
		}
	}
}

// take adds a hit; of too many the first in order stay.
func (c *scan) take(f *field, key string, vals []string, lo, hi uint8) {
	n := len(c.hits)
	if n < cap(c.hits) {
		c.hits = c.hits[:n+1]
		h := &c.hits[n]
		h.f, h.key, h.vals, h.lo, h.hi = f, key, vals, lo, hi
		return
	}
	c.more = true
	c.sort()
	h := hit{f, key, vals, lo, hi}
	if last := &c.hits[n-1]; last.after(&h) {
		*last = h
	}
}

// sort puts the hits in an order that does not depend on that of the map.
func (c *scan) sort() {
	for i := 1; i < len(c.hits); i++ {
		for j := i; j > 0 && c.hits[j-1].after(&c.hits[j]); j-- {
			c.hits[j-1], c.hits[j] = c.hits[j], c.hits[j-1]
		}
	}
}

// run returns the hits from the i-th on that belong to one row.
func (c *scan) run(i int) []hit {
	j := i + 1
	for j < len(c.hits) && c.hits[j].f.row == c.hits[i].f.row {
		j++
	}
	return c.hits[i:j]
}

// showsLinear reports whether a 400 is Linear's: its trio has a label before the
// last word, as RapidAPI's has, but an epoch in milliseconds in Reset. (10^11
// such are March 1973, and as seconds three thousand years.)
func (c *scan) showsLinear(status int) bool {
	if status != http.StatusBadRequest || c.seen&markInfix == 0 {
		return false
	}
	for i := range c.hits {
		h := &c.hits[i]
		if h.f.marks&markInfix == 0 || h.f.role != isReset || len(h.vals[0]) > maxValue {
			continue
		}
		if n, ok := digits(trim(h.vals[0])); ok && n >= 100_000_000_000 && n < epochStart*1_000_000 {
			return true
		}
	}
	return false
}
