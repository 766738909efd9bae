package retryafter

import "net/http"

// maxHits is how many headers of one response are read; Kong with every window
// sends 16.
const maxHits = 20

// A scan is what was found in a header, in an order that does not depend on that
// of the map.
type scan struct {
	seen bitset
	n    int
	hits [maxHits]hit

	date, age string // the first lines of Date and Age
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

// after reports whether h comes after a hit for f with a label: hits are read by
// row, limit and field.
func (h *hit) after(f *field, label string) bool {
	if h.f.row != f.row {
		return h.f.row.order > f.row.order
	}
	if l := h.label(); l != label {
		return l > label
	}
	return h.f.order > f.order
}

// scan finds the headers that rows of set know, and the server's clock. One pass
// over the map costs less than a lookup for each of a hundred names, and most keys
// are passed over after a look at four of their bytes.
func (c *scan) scan(h http.Header, set bitset) {
	for key, vals := range h {
		if len(key) < minName {
			if key == "Date" && len(vals) > 0 {
				c.date = vals[0]
			} else if key == "Age" && len(vals) > 0 {
				c.age = vals[0]
			}
			continue
		}
		p := names.starts[start(key)]
		if p == nil || len(key) > maxName {
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
			c.insert(f, key, vals, lo, hi)
		}
	}
}

// insert keeps the hits in order, and the first of too many.
func (c *scan) insert(f *field, key string, vals []string, lo, hi uint8) {
	label := f.label
	if hi > 0 {
		label = key[lo:hi]
	}
	i := c.n
	for i > 0 && c.hits[i-1].after(f, label) {
		i--
	}
	if i == maxHits {
		return
	}
	if c.n < maxHits {
		c.n++
	}
	if i+1 < c.n {
		copy(c.hits[i+1:c.n], c.hits[i:])
	}
	h := &c.hits[i]
	h.f, h.key, h.vals, h.lo, h.hi = f, key, vals, lo, hi
}

// run returns the hits from the i-th on that belong to one row.
func (c *scan) run(i int) []hit {
	j := i + 1
	for j < c.n && c.hits[j].f.row == c.hits[i].f.row {
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
	for i := range c.hits[:c.n] {
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
