package line

import (
	"container/heap"
	"container/list"
	"time"

	"github.com/headway-go/headway/internal/law"
)

// A Crowd is the members of a full line by key, so that the key with the most makes
// way for others. Each of its methods costs O(log n).
type Crowd[T any] struct {
	of   map[uint64]*party[T]
	list heapOf[*party[T]] // the one with the most first, and of several the one with the newest member
	seq  uint64            // of the latest member
}

// A Member is one of a Crowd.
type Member[T any] struct {
	item  T
	seq   uint64
	party *party[T]
	place *list.Element // in the party
}

// A party is the members with one key.
type party[T any] struct {
	key     uint64
	members list.List // of *Member[T], from old to new
	index   int       // in the heap
}

func (p *party[T]) newest() *Member[T] { return p.members.Back().Value.(*Member[T]) }

// mostLooks bounds how many of a party are looked at for one that may go.
const mostLooks = 64

// NewCrowd returns an empty Crowd.
func NewCrowd[T any]() *Crowd[T] {
	return &Crowd[T]{of: map[uint64]*party[T]{}, list: heapOf[*party[T]]{
		less: func(a, b *party[T]) bool {
			if a, b := a.members.Len(), b.members.Len(); a != b {
				return a > b
			}
			return a.members.Len() > 0 && a.newest().seq > b.newest().seq
		},
		moved: func(p *party[T], i int) { p.index = i },
	}}
}

// Out returns the member that makes way for a new one of key: the newest that may go
// of the key with the most. ok is false where there is none, or key, with the new
// one, has the most.
func (c *Crowd[T]) Out(key uint64, may func(T) bool) (out T, ok bool) {
	most, own := c.list.min(), 0
	if p := c.of[key]; p != nil {
		own = p.members.Len()
	}
	if most == nil || most.members.Len() <= own+1 {
		return out, false
	}
	looks := mostLooks
	for e := most.members.Back(); e != nil && looks > 0; e, looks = e.Prev(), looks-1 {
		if m := e.Value.(*Member[T]); may(m.item) {
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
	m := &Member[T]{item: item, seq: c.seq, party: p}
	m.place = p.members.PushBack(m)
	heap.Fix(&c.list, p.index)
	return m
}

// Remove removes a member.
func (c *Crowd[T]) Remove(m *Member[T]) {
	p := m.party
	if p.members.Remove(m.place); p.members.Len() == 0 {
		heap.Remove(&c.list, p.index)
		delete(c.of, p.key)
		return
	}
	heap.Fix(&c.list, p.index)
}

// dueSoon is how near a planned start is kept whatever comes.
const dueSoon = law.Time(time.Millisecond)

// crowdOut returns the request in a full line that makes way for one of key; nil
// where none does. A line without keys has no crowd; others have one from the moment
// when they are first full until they are empty.
func (l *locked) crowdOut(key uint64, now law.Time) *waiter {
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

func (l *locked) joinCrowd(w *waiter) {
	w.wantDetails().member = l.crowd.Add(w.key, w)
}

// giveWay refuses w, since the line is full, and those behind it move up. A reported
// start is not promised to w: the cap of the line is shared by keys, and its key has more
// places than any other.
func (l *locked) giveWay(w *waiter, now law.Time) {
	if !l.many {
		l.split() // it can stand anywhere in the line
	}
	r, at := w.foresight.refusal(w.needs, now, false), w.at
	r.Reason = ByLineFull
	l.refuse(w, r)
	l.improve(now, at, w.needs)
}
