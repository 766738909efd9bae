package law

import (
	"math"
	"sort"
)

// planned is a start to come.
type planned struct {
	at   Time
	seq  uint64 // order of arrival
	cost int64
}

// A key is where a start stands among others: by time, then by order of arrival.
type key struct {
	at  Time
	seq uint64
}

func (e *planned) key() key { return key{e.at, e.seq} }

func (k key) before(o key) bool { return k.at < o.at || k.at == o.at && k.seq < o.seq }

// after returns the first key later than any at the instant t.
func after(t Time) key { return key{addSat(t, 1), 0} }

// schedule is a sorted list of starts in chunks, so that one more or one less
// moves no more than a chunk of others, however many there are. No chunk is
// empty.
type schedule struct {
	chunks []chunk
	spare  []planned // memory for another chunk
	steps  int       // how many starts were looked at, for tests
}

// chunkLen is how many starts a chunk holds at most.
const chunkLen = 64

type chunk struct {
	list []planned
	cost int64 // of all in list
	fold *fold // nil where list has changed
}

// A place is that of a start in the list: chunk and index in it. It holds until
// the list changes. The end is the chunk after the last.
type place struct{ chunk, i int }

func (p place) before(o place) bool { return p.chunk < o.chunk || p.chunk == o.chunk && p.i < o.i }

// get returns the start at p, or nil at the end.
func (s *schedule) get(p place) *planned {
	if p.chunk >= len(s.chunks) {
		return nil
	}
	s.steps++
	return &s.chunks[p.chunk].list[p.i]
}

func (s *schedule) next(p place) place {
	if p.i++; p.i == len(s.chunks[p.chunk].list) {
		return place{p.chunk + 1, 0}
	}
	return p
}

// prev returns the start before p, or nil.
func (s *schedule) prev(p place) *planned {
	switch {
	case p.i > 0:
		p.i--
	case p.chunk > 0:
		p = place{p.chunk - 1, len(s.chunks[p.chunk-1].list) - 1}
	default:
		return nil
	}
	return s.get(p)
}

// find returns the first place whose start is not before k.
func (s *schedule) find(k key) place {
	c := sort.Search(len(s.chunks), func(c int) bool {
		list := s.chunks[c].list
		return !list[len(list)-1].key().before(k)
	})
	if c == len(s.chunks) {
		return place{c, 0}
	}
	list := s.chunks[c].list
	return place{c, sort.Search(len(list), func(i int) bool { return !list[i].key().before(k) })}
}

// between returns how many starts there are from p on and before end, and what
// they cost together.
func (s *schedule) between(p, end place) (n, cost int64) {
	for p.before(end) {
		c := &s.chunks[p.chunk]
		s.steps++
		if p.i == 0 && p.chunk < end.chunk {
			n, cost = n+int64(len(c.list)), addSat(cost, c.cost)
			p.chunk++
			continue
		}
		n, cost = n+1, addSat(cost, c.list[p.i].cost)
		p = s.next(p)
	}
	return n, cost
}

func (s *schedule) insert(e planned) {
	p := s.find(e.key())
	if last := len(s.chunks) - 1; p.chunk > last {
		// Most come last: they fill chunks up.
		if last < 0 || len(s.chunks[last].list) == chunkLen {
			s.chunks = append(s.chunks, chunk{list: s.spare})
			s.spare = nil
			last++
		}
		p = place{last, len(s.chunks[last].list)}
	}
	c := &s.chunks[p.chunk]
	if len(c.list) == chunkLen {
		s.split(p.chunk)
		if c = &s.chunks[p.chunk]; p.i > len(c.list) {
			p = place{p.chunk + 1, p.i - len(c.list)}
			c = &s.chunks[p.chunk]
		}
	}
	c.cost, c.fold = addSat(c.cost, e.cost), nil
	c.list = append(c.list, planned{})
	copy(c.list[p.i+1:], c.list[p.i:])
	c.list[p.i] = e
}

// split halves a chunk.
func (s *schedule) split(i int) {
	s.chunks = append(s.chunks, chunk{})
	copy(s.chunks[i+1:], s.chunks[i:])
	list := s.chunks[i].list
	s.chunks[i].list = list[:chunkLen/2]
	s.chunks[i+1].list = append(make([]planned, 0, chunkLen), list[chunkLen/2:]...)
	s.chunks[i].sum()
	s.chunks[i+1].sum()
}

func (c *chunk) sum() {
	c.cost, c.fold = 0, nil
	for i := range c.list {
		c.cost = addSat(c.cost, c.list[i].cost)
	}
}

func (s *schedule) remove(p place) {
	c := &s.chunks[p.chunk]
	cost := c.list[p.i].cost
	c.fold = nil
	c.list = append(c.list[:p.i], c.list[p.i+1:]...)
	if c.cost < math.MaxInt64 {
		c.cost -= cost
	} else {
		c.sum()
	}
	switch {
	case len(c.list) > 0:
	case p.chunk == 0 && len(s.chunks) > 1:
		s.chunks = s.chunks[1:]
	default:
		s.spare = c.list
		s.chunks = append(s.chunks[:p.chunk], s.chunks[p.chunk+1:]...)
	}
}

func (s *schedule) clear() {
	if len(s.chunks) > 0 {
		s.spare = s.chunks[0].list[:0]
		clear(s.chunks)
		s.chunks = s.chunks[:0]
	}
}

func (s *schedule) len() int {
	n := 0
	for i := range s.chunks {
		n += len(s.chunks[i].list)
	}
	return n
}
