package retryafter

import "strings"

// minName and maxName bound the names of headers that are looked at.
const (
	minName = len("Ratelimit")
	maxName = 96
)

// names finds the field for the name of a header. It is built from the table
// once, when the program starts.
var names = newNameIndex()

// A nameIndex holds the names of the fields in a hash table with open
// addressing, and how names of ours begin.
type nameIndex struct {
	slots  [512]*field
	starts [256]*prefixes
}

// prefixes are the patterns among the names that begin in one way.
type prefixes struct {
	patterns []*pattern
}

// start hashes two bytes of the beginning of a name that is not empty, chosen so
// that hardly one of the names that servers usually send begins like one of ours.
// It has no branches, as a map gives its keys in an order that no processor
// foresees.
func start(name string) byte {
	last := len(name) - 1
	return name[min(5, last)]*13 + name[min(9, last)]*9
}

// slot hashes a name by its length and four of its bytes: enough to distinguish ours
// apart, and less than hashing all of a name that is not ours.
func slot(name string) uint {
	n := uint(len(name))
	return (n*37 + uint(name[n-1])*5 + uint(name[n-4])*131 + uint(name[n/2])*17 + uint(name[n/3])*59) % 512
}

// exact returns the field called name, or nil.
func (x *nameIndex) exact(name string) *field {
	for i := slot(name); ; i = (i + 1) % uint(len(x.slots)) {
		f := x.slots[i]
		if f == nil || f.name == name {
			return f
		}
	}
}

// begin enters how a name begins.
func (x *nameIndex) begin(name string) *prefixes {
	p := &x.starts[start(name)]
	if *p == nil {
		*p = new(prefixes)
	}
	return *p
}

// label finds the pattern that a key follows, and where in the key its label is.
func (x *prefixes) label(key string) (f *field, lo, hi uint8) {
	for _, p := range x.patterns {
		if strings.HasPrefix(key, p.prefix) {
			if f, lo, hi = p.match(key); f != nil {
				return f, lo, hi
			}
		}
	}
	return nil, 0, 0
}

func (p *pattern) match(key string) (f *field, lo, hi uint8) {
	lo, hi = uint8(len(p.prefix)), uint8(len(key))
	tail := key[lo:]
	for i := range p.before {
		if f := &p.before[i]; len(tail) > len(f.name) && strings.HasPrefix(tail, f.name) {
			return f, lo + uint8(len(f.name)), hi
		}
	}
	for i := range p.after {
		if f := &p.after[i]; len(tail) > len(f.name) && strings.HasSuffix(tail, f.name) {
			return f, lo, hi - uint8(len(f.name))
		}
	}
	if tail != "" {
		return p.rest, lo, hi
	}
	return nil, 0, 0
}

// newNameIndex completes the rows of the table, and makes the index from them.
func newNameIndex() *nameIndex {
	x := new(nameIndex)
	bit := firstRow
	if len(table) > policiesOnly {
		panic("retryafter: more rows than places")
	}
	for i, row := range table {
		row.order = uint8(i)
		if len(row.fields)+len(row.patterns) == 0 {
			continue
		}
		row.own = bit
		bit <<= 1
		n := 0
		enter := func(f *field) {
			f.row, f.order = row, n
			n++
		}
		for i := range row.fields {
			f := &row.fields[i]
			enter(f)
			f.usual = row.isUsual(f)
			s := slot(f.name)
			for x.slots[s] != nil {
				s = (s + 1) % uint(len(x.slots))
			}
			x.slots[s] = f
			x.begin(f.name)
		}
		for i := range row.patterns {
			p := &row.patterns[i]
			for j := range p.before {
				enter(&p.before[j])
			}
			for j := range p.after {
				enter(&p.after[j])
			}
			if p.rest != nil {
				enter(p.rest)
			}
			begin := x.begin(p.prefix)
			begin.patterns = append(begin.patterns, p)
		}
	}
	if bit == 0 {
		panic("retryafter: more rows with headers than bits")
	}
	for _, row := range table {
		row.set = row.own | retryAfterRow.own
		for _, used := range row.uses {
			row.set |= used.own
		}
		row.alone = &Reader{set: row.set, listed: []*builtin{row}}
		if len(row.shows) > 0 {
			shown = append(shown, row)
			for _, sign := range row.shows {
				signs |= sign &^ markXLimit
			}
		}
		if len(row.refuses) > 0 {
			refusers = append(refusers, row)
		}
	}
	return x
}

// shown are the rows that a response may show, refusers those with statuses of
// their own. Both are in the order of the table, and made with names.
var shown, refusers []*builtin

// signs are all marks that show a dialect, but for one that none shows alone.
var signs bitset
