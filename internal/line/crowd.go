package line

import (
	"container/heap"
	"time"

	"github.com/headway-go/headway/internal/law"
)

// A Crowd is the members of a full line by key, so that the key with the most makes
// way for others. Each of its methods costs O(log n).
type Crowd[T any] struct {
	of   map[uint64]*party[T]
	list parties[T]
	seq  uint64 // of the latest member
}

// A Member is one of a Crowd.
type Member[T any] struct {
	item         T
	seq          uint64
	party        *party[T]
	older, newer *Member[T] // of the party
}

// A party is the members with one key.
type party[T any] struct {
	key    uint64
	n      int
	newest *Member[T]
	index  int // in the list
}

// mostLooks bounds how many of a party are looked at for one that may go.
const mostLooks = 64

// NewCrowd returns an empty Crowd.
func NewCrowd[T any]() *Crowd[T] { return &Crowd[T]{of: map[uint64]*party[T]{}} }

// Out returns the member that makes way for a new one of key: the newest that may go
// of the key with the most. ok is false where there is none, or key, with the new
// one, has the most.
func (c *Crowd[T]) Out(key uint64, may func(T) bool) (out T, ok bool) {
	if len(c.list) == 0 {
		return out, false
	}
	most, own := c.list[0], 0
	if p := c.of[key]; p != nil {
		own = p.n
	}
	if most.n <= own+1 {
		return out, false
	}
	looks := mostLooks
	for m := most.newest; m != nil && looks > 0; m, looks = m.older, looks-1 {
		if may(m.item) {
			return m.item, true
		}
	}
	return out, false
}

// Add adds an item, which is newer than all others.
func (c *Crowd[T]) Add(key uint64, item T) *Member[T] {
	p := c.of[key]
	if p == nil {
		p = &party[T]{key: key}
		c.of[key] = p
		heap.Push(&c.list, p)
	}
	c.seq++
	m := &Member[T]{item: item, seq: c.seq, party: p, older: p.newest}
	if m.older != nil {
		m.older.newer = m
	}
	p.newest = m
	p.n++
	heap.Fix(&c.list, p.index)
	return m
}

// Remove removes a member.
func (c *Crowd[T]) Remove(m *Member[T]) {
	p := m.party
	if m.newer != nil {
		m.newer.older = m.older
	} else {
		p.newest = m.older
	}
	if m.older != nil {
		m.older.newer = m.newer
	}
	if p.n--; p.n == 0 {
		heap.Remove(&c.list, p.index)
		delete(c.of, p.key)
		return
	}
	heap.Fix(&c.list, p.index)
}

// parties is a heap: the one with the most comes first, and of several the one whose
// newest came last.
type parties[T any] []*party[T]

func (p parties[T]) Len() int { return len(p) }

func (p parties[T]) Less(i, j int) bool {
	a, b := p[i], p[j]
	return a.n > b.n || a.n == b.n && a.n > 0 && a.newest.seq > b.newest.seq
}

func (p parties[T]) Swap(i, j int) {
	p[i], p[j] = p[j], p[i]
	p[i].index, p[j].index = i, j
}

func (p *parties[T]) Push(x any) {
	e := x.(*party[T])
	e.index = len(*p)
	*p = append(*p, e)
}

func (p *parties[T]) Pop() any {
	last := len(*p) - 1
	x := (*p)[last]
	(*p)[last] = nil
	*p = (*p)[:last]
	return x
}

// dueSoon is how near a planned start is kept whatever comes.
const dueSoon = law.Time(time.Millisecond)

// crowdOut returns the request in a full line that makes way for one of key; nil
// where none does. A line without keys has no crowd; others have one from the moment
// when they are first full until they are empty.
func (l *Line) crowdOut(key uint64, now law.Time) *waiter {
	if l.keyed == 0 && key == 0 {
		return nil
	}
	if l.crowd == nil {
		l.crowd = NewCrowd[*waiter]()
		for w := l.first; w != nil; w = w.next {
			l.joinCrowd(w)
		}
	}
	w, _ := l.crowd.Out(key, func(w *waiter) bool { return w.at > now+dueSoon || w.atLeast || w.late })
	return w
}

func (l *Line) joinCrowd(w *waiter) {
	if w.details == &noDetails {
		w.details = new(details)
	}
	w.member = l.crowd.Add(w.key, w)
}

// giveWay refuses w, since the line is full, and those behind it move up.
func (l *Line) giveWay(w *waiter, now law.Time) {
	if !l.many {
		l.split() // it can stand anywhere in the line
	}
	r := foresight{w.at, w.atLeast, w.bind}.refusal(w.needs, now, false)
	r.Reason = ByLineFull
	at := w.at
	l.unplan(w)
	l.quit(w)
	l.refuseWith(w, r)
	l.improve(now, at, w.needs)
}
