package storeline

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/headway-go/headway/internal/awake"
	"github.com/headway-go/headway/store"
)

// Piece bounds what is looked at while one lock is held: others wait for it.
const Piece = 256

// mostHeard bounds the pauses and limits of one name that are known.
const mostHeard = 64

// A known is what the store has last said to this process of a budget or an ear.
type known struct {
	name   string
	ear    bool
	left   int64     // of a budget
	saidAt time.Time // when it was said; zero: never
	heard  []heard
}

// A heard is a pause or an announced limit, as the store had it at an instant.
type heard struct {
	store.Heard
	at time.Time
}

// A Known is what is known of a budget or an ear without asking the store.
type Known struct {
	Name       string
	IsAudience bool
	Remaining  int64         // of a budget
	Reported   bool          // the store has said something of the budget
	Age        time.Duration // since then
	// Announcements are the pauses that hold and the limits that were announced, as they are
	// now by what was said then.
	Announcements []store.Heard
}

// Known returns what is known of the names from a place on, as many as Piece, and the
// place of the next; 0 where there are no more. The store knows all of them.
func (l *Line) Known(from int) (all []Known, next int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := awake.Now()
	for _, k := range l.names[min(from, len(l.names)):min(from+Piece, len(l.names))] {
		e := Known{Name: k.name, IsAudience: k.ear, Remaining: k.left, Reported: !k.saidAt.IsZero()}
		if e.Reported {
			e.Age = now.Sub(k.saidAt)
		}
		for _, h := range k.heard {
			if h, ok := h.as(now); ok {
				e.Announcements = append(e.Announcements, h)
			}
		}
		all = append(all, e)
	}
	if from+Piece < len(l.names) {
		next = from + Piece
	}
	return all, next
}

// as returns h as it is at now, if it still matters.
func (h *heard) as(now time.Time) (store.Heard, bool) {
	e, age := h.Heard, now.Sub(h.at)
	if e.Pause > 0 {
		e.Pause -= age
		return e, e.Pause > 0
	}
	e.Age += age
	if e.Reset < 0 {
		return e, age < time.Minute
	}
	if e.Reset -= age; e.Reset > 0 {
		return e, true
	}
	past := -e.Reset // units have come back since
	e.Left, e.Reset = math.MaxInt64, -1
	if e.Limit > 0 {
		e.Left = e.Limit
	}
	return e, e.Limit > 0 && past < max(e.Window, time.Minute)
}

// know keeps what the store has said. l.mu is held.
func (l *Line) know(op *store.Op, res *store.Result, now time.Time) {
	if len(res.Remaining) == len(op.Needs) {
		for i, n := range op.Needs {
			if k := l.known[n.Budget]; k != nil {
				k.left, k.saidAt = res.Remaining[i], now
				if res.Aside > 0 && k.left != math.MaxInt64 {
					k.left += res.Aside * n.Cost // it is this process's
				}
			}
		}
	}
	switch {
	case res.OK:
		l.used(op, 1)
	case op.Kind == store.OpGive && res.Err == nil:
		for _, n := range op.Needs {
			if k := l.known[n.Budget]; k != nil && k.left != math.MaxInt64 {
				k.left += n.Cost
			}
		}
		l.used(op, -1)
	}
	for _, e := range res.Heard {
		if k := l.known[e.Ear]; k != nil {
			k.hear(heard{e, now})
		}
	}
}

// used lowers what is known to be left of announced limits by what n requests like op
// take of them.
func (l *Line) used(op *store.Op, n int64) {
	lower := func(name string, cost int64) {
		k := l.known[name]
		if k == nil {
			return
		}
		for i := range k.heard {
			if h := &k.heard[i]; h.Pause == 0 && h.Left != math.MaxInt64 {
				h.Left -= n * cost
			}
		}
	}
	for _, need := range op.Needs {
		lower(need.Budget, need.Cost)
	}
	for _, ear := range op.Ears {
		lower(ear, 1)
	}
}

// hear puts h in place of what was known of the same pause or limit.
func (k *known) hear(h heard) {
	keep := k.heard[:0]
	for _, old := range k.heard {
		same := old.Only == h.Only && old.Name == h.Name && old.Window == h.Window && (old.Pause > 0) == (h.Pause > 0)
		if _, matters := old.as(h.at); matters && !same {
			keep = append(keep, old)
		}
	}
	clear(k.heard[len(keep):])
	if len(keep) >= mostHeard {
		keep = slices.Delete(keep, 0, 1)
	}
	k.heard = append(keep, h)
}

// Remember makes the places for what the store says of what a request needs.
func (l *Line) Remember(a *Ask) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range a.Needs {
		l.remember(n.Budget, false)
	}
	for _, e := range a.Audiences {
		l.remember(e, true)
	}
}

func (l *Line) remember(name string, ear bool) {
	if l.known[name] != nil || !l.client.room() {
		return
	}
	if l.known == nil {
		l.known = map[string]*known{}
	}
	k := &known{name: name, ear: ear}
	l.known[name] = k
	l.names = append(l.names, k)
}

// forgetNames is Remember's opposite, for the budgets that are not wanted and the ears
// of their keys.
func (l *Line) forgetNames(wanted func(budget string) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := len(l.names)
	l.names = slices.DeleteFunc(l.names, func(k *known) bool {
		gone := !k.ear && !wanted(k.name)
		parts := strings.Split(k.name, "/")
		for i := 1; k.ear && i < len(parts); i += 2 { // a rule and a digest for each key
			gone = gone || !wanted(parts[i])
		}
		if gone {
			delete(l.known, k.name)
		}
		return gone
	})
	l.client.names.Add(int64(len(l.names) - before))
}

// forget is Remember's opposite, for all.
func (l *Line) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known, l.names = nil, nil
}
