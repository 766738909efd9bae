package store

import (
	"container/heap"
	"slices"

	"github.com/headway-go/headway/internal/law"
)

// forecast lets asks start on copies of the rows, each at its earliest instant,
// those of one line in order. Responses to come are assumed to come at once, and what
// depends on them is a lower bound.
//
// It is a queue of events: the candidate with the earliest instant is looked at. Where
// something holds it up it goes back with a later instant, since a candidate of another
// line may be due before that; else it starts, and the next of its line becomes a
// candidate.
func (t *tx) forecast(asks []Op) []Wait {
	s := &tx{now: t.now, rows: t.rows, seen: map[name]*row{}}
	loose := map[*row]bool{} // rows that depend on a response
	for key, r := range t.seen {
		s.seen[key] = r.clone()
	}
	waits := make([]Wait, len(asks))
	next := map[uint64][]int{} // by line
	var due queue
	for i := range asks {
		line := asks[i].Line
		if line == 0 {
			due = append(due, candidate{at: t.now, i: i})
			continue
		}
		if next[line] = append(next[line], i); len(next[line]) == 1 {
			due = append(due, candidate{at: t.now, i: i})
		}
	}
	heap.Init(&due)
	follow := func(line uint64, c candidate) { // the next one of the line starts no earlier than c
		if line == 0 {
			return
		}
		if next[line] = next[line][1:]; len(next[line]) > 0 {
			c.i = next[line][0]
			heap.Push(&due, c)
		}
	}
	// Each start of another puts one off once more at most. A row that never gives way is
	// one that this module has not written.
	looks, most := make([]int, len(asks)), 2*len(asks)+64
	for len(due) > 0 && s.err == nil {
		c := heap.Pop(&due).(candidate)
		op := &asks[c.i]
		s.now = t.now // so that constraints converts and prunes as of the present
		if bad := s.open(op); bad != nil {
			waits[c.i] = Wait{Bind: -1, Err: bad}
			follow(op.Line, candidate{at: c.at})
			continue
		}
		all := s.constraints(op)
		for i := range all {
			if r := all[i].row; r != nil && len(r.flights) > 0 {
				for _, f := range r.flights {
					r.state.Done(t.now, f.cost)
				}
				r.flights, loose[r] = nil, true
			}
		}
		at, kept, bind := earliest(all, c.at, c.at)
		if bind >= 0 {
			c.by, c.kept = all[bind].state(), kept
		}
		if looks[c.i]++; at > c.at && at != law.Never && looks[c.i] < most {
			c.at = at
			heap.Push(&due, c)
			continue
		}
		bind = slices.IndexFunc(all, func(h constraint) bool { return h.state() == c.by })
		waits[c.i] = t.wait(all, at, false, bind)
		if at != law.Never {
			for i := range all {
				h := &all[i]
				if h.state().Take(at, h.cost) {
					h.state().Done(at, h.cost)
					loose[h.row] = true
				}
			}
		}
		waits[c.i].AtLeast = waits[c.i].For > 0 && waits[c.i].For != Never && bind >= 0 && (c.kept || all[bind].row != nil && loose[all[bind].row])
		from := max(t.now, at)
		if at == law.Never {
			from = c.at
		}
		after := candidate{at: from}
		if from > t.now { // what held this one up holds the next one up too
			after.by, after.kept = c.by, c.kept
		}
		follow(op.Line, after)
	}
	if s.err != nil {
		t.err = s.err
	}
	return waits
}

// A candidate is an ask that starts no earlier than at.
type candidate struct {
	at Instant
	i  int
	by law.State // what has decided so far; nil: nothing

	kept bool // it depends on a reservation
}

// A queue is candidates by time, and then by order of arrival.
type queue []candidate

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].i < q[j].i
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(candidate)) }
func (q *queue) Pop() any {
	last := len(*q) - 1
	c := (*q)[last]
	*q = (*q)[:last]
	return c
}
