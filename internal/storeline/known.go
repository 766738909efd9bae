package storeline

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/headway-go/headway/internal/awake"
	"github.com/headway-go/headway/store"
)

// What the process knows of the store is what the results of its own operations contain. Pages
// and metrics read that, with its age, and so never wait for a store. No decision rests on it.

// mostAnnounced bounds the pauses and limits that are known of one name.
const mostAnnounced = 64

// A Known is what is known of a budget or an audience without a round trip.
type Known struct {
	Name          string
	IsAudience    bool
	Reported      bool              // Remaining and LimitRemaining are known
	Remaining     int64             // of the budget
	Age           time.Duration     // of Remaining and LimitRemaining
	Announcements []store.Announced // the pauses that hold and the limits that were announced, as they are by now
	// LimitRemaining is Remaining by the budget's own limit alone.
	LimitRemaining int64
}

// A known is a Known but for its Age and Announcements, which change with time.
type known struct {
	Known
	reportedAt time.Time // when the store reported Remaining
	announced  []announced
}

// An announced is a pause or an announced limit, as the store had it at an instant.
type announced struct {
	store.Announced
	at time.Time
}

// Known yields what is known of each budget and audience of the requests and operations so far. It holds the lock
// for a Piece of them at a time, and not while it yields.
func (l *Line) Known(yield func(Known) bool) {
	for from, more := 0, true; more; from += Piece {
		var piece []Known
		l.mu.Lock()
		now := awake.Now()
		for _, k := range l.names[min(from, len(l.names)):min(from+Piece, len(l.names))] {
			piece = append(piece, k.as(now))
		}
		more = from+Piece < len(l.names)
		l.mu.Unlock()
		for _, e := range piece {
			if !yield(e) {
				return
			}
		}
	}
}

// as returns k as it is at now.
//
// Of an announced limit this process knows what was left, less what it has started itself. What
// the store has reported of the budget since is newer, until the limit's reset: all have Remaining
// left at least, and one has no more where Remaining is less than the budget's own limit has.
func (k *known) as(now time.Time) Known {
	e := k.Known
	if e.Reported {
		e.Age = now.Sub(k.reportedAt)
	}
	var least *store.Announced
	newer := false // more is known of a limit than what the report is made from
	e.Announcements = make([]store.Announced, 0, len(k.announced))
	for i := range k.announced {
		a := &k.announced[i]
		h, ok := a.as(now)
		if !ok {
			continue
		}
		e.Announcements = append(e.Announcements, h)
		if !e.Reported || h.Pause > 0 {
			continue
		}
		if reset := a.at.Add(a.Reset); !k.reportedAt.After(a.at) || a.Reset >= 0 && reset.After(k.reportedAt) && !reset.After(now) {
			newer = true
			continue
		}
		l := &e.Announcements[len(e.Announcements)-1]
		if l.Left = max(l.Left, e.Remaining); least == nil || l.Left < least.Left {
			least = l
		}
	}
	if least != nil && !newer && e.Remaining < e.LimitRemaining {
		least.Left = e.Remaining
	}
	return e
}

// as returns a as it is at now, if it still matters.
//
//   - A pause matters until its end.
//   - A limit without a reset matters for a minute.
//   - A limit with one matters until then with what is left of it. After that its units are
//     back, and it matters for another window, a minute at least, so that a page still shows
//     it between two requests.
func (a *announced) as(now time.Time) (store.Announced, bool) {
	h, age := a.Announced, now.Sub(a.at)
	if h.Pause > 0 {
		h.Pause -= age
		return h, h.Pause > 0
	}
	h.Age += age
	if h.Reset < 0 {
		return h, age < time.Minute
	}
	if h.Reset -= age; h.Reset > 0 {
		return h, true
	}
	past := -h.Reset
	h.Left, h.Reset = math.MaxInt64, -1
	if h.Limit > 0 {
		h.Left = h.Limit
	}
	return h, h.Limit > 0 && past < max(h.Window, time.Minute)
}

// Left returns what is known to be left of a budget.
func (l *Line) Left(budget string) (left int64, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.known[budget]
	if k == nil || !k.Reported {
		return 0, false
	}
	return k.Remaining, true
}

// noteResultLocked keeps what a result reports of the budgets and audiences of its operation.
func (l *Line) noteResultLocked(op *store.Op, res *store.Result, now time.Time) {
	if own := limitRemaining(res); len(res.Remaining) == len(op.Needs) && len(own) == len(op.Needs) {
		for i, n := range op.Needs {
			if k := l.known[n.Budget]; k != nil {
				k.Remaining, k.LimitRemaining, k.Reported, k.reportedAt = res.Remaining[i], own[i], true, now
				k.addLocked(res.Reserved * n.Cost) // what is reserved is this process's
			}
		}
	}
	switch {
	case res.OK:
		l.lowerAnnouncedLocked(op, 1)
	case op.Kind == store.OpGive && res.Err == nil:
		for _, n := range op.Needs {
			if k := l.known[n.Budget]; k != nil {
				k.addLocked(n.Cost)
			}
		}
		l.lowerAnnouncedLocked(op, -1)
	}
	if (op.Kind == store.OpPause || op.Kind == store.OpLearn) && op.Only == "" {
		l.rememberLocked(op.Audience, true) // the request may have learned only now that it is of it
	}
	for _, h := range res.Announced {
		if k := l.known[h.Audience]; k != nil {
			if h.Pause == 0 && h.Left != math.MaxInt64 {
				h.Left += l.reservedLocked(h.Audience) // as above
			}
			k.announceLocked(announced{h, now})
		}
	}
}

// reservedLocked returns how many units of a budget, or starts of an audience, this process has
// reserved and not used.
func (l *Line) reservedLocked(name string) (n int64) {
	for _, p := range l.reserved {
		if slices.Contains(p.op.Audiences, name) {
			n += p.left
		}
		for _, need := range p.op.Needs {
			if need.Budget == name {
				n += p.left * need.Cost
			}
		}
	}
	return n
}

// addLocked adds units to what remains, unless nothing is limited.
func (k *known) addLocked(units int64) {
	if k.Remaining != math.MaxInt64 {
		k.Remaining += units
	}
	if k.LimitRemaining != math.MaxInt64 {
		k.LimitRemaining += units
	}
}

// limitRemaining returns what is left under each need by its limit alone.
func limitRemaining(res *store.Result) []int64 {
	if res.LimitRemaining != nil {
		return res.LimitRemaining
	}
	return res.Remaining
}

// lowerAnnouncedLocked lowers what is known to be left of announced limits by what n requests
// like op take of them. The store has done the same, and reports a limit only when it decides.
func (l *Line) lowerAnnouncedLocked(op *store.Op, n int64) {
	lower := func(name string, cost int64) {
		if k := l.known[name]; k != nil {
			for i := range k.announced {
				if a := &k.announced[i]; a.Pause == 0 && a.Left != math.MaxInt64 {
					a.Left -= n * cost
				}
			}
		}
	}
	for _, need := range op.Needs {
		lower(need.Budget, need.Cost)
	}
	for _, audience := range op.Audiences {
		lower(audience, 1)
	}
}

// announceLocked puts a in place of what was known of the same pause or limit, and drops what
// matters no more; beyond mostAnnounced, the oldest.
func (k *known) announceLocked(a announced) {
	k.announced = slices.DeleteFunc(k.announced, func(old announced) bool {
		_, matters := old.as(a.at)
		return !matters || old.Only == a.Only && old.Name == a.Name && old.Window == a.Window && (old.Pause > 0) == (a.Pause > 0)
	})
	if len(k.announced) >= mostAnnounced {
		k.announced = slices.Delete(k.announced, 0, 1)
	}
	k.announced = append(k.announced, a)
}

// rememberLocked makes room for what the store reports of a budget or an audience.
func (l *Line) rememberLocked(name string, isAudience bool) {
	if l.known[name] != nil || !l.client.hasRoom() {
		return
	}
	if l.known == nil {
		l.known = map[string]*known{}
	}
	k := &known{Known: Known{Name: name, IsAudience: isAudience}}
	l.known[name] = k
	l.names = append(l.names, k)
}

// forgetGoneLocked forgets the budgets of rules that p does not have, and the audiences that
// are named by their keys: a prefix, then a rule and a digest for each key, and behind // which
// of their resources it is.
func (l *Line) forgetGoneLocked(p *Plan) {
	before := len(l.names)
	l.names = slices.DeleteFunc(l.names, func(k *known) bool {
		own, _, _ := strings.Cut(k.Name, "//")
		parts := strings.Split(own, "/")
		first := 0
		if k.IsAudience {
			first = 1
		}
		for i := first; i < len(parts); i += 2 {
			if _, ok := p.limit(parts[i]); !ok {
				delete(l.known, k.Name)
				return true
			}
		}
		return false
	})
	l.client.names.Add(int64(len(l.names) - before))
}

// forget forgets all names.
func (l *Line) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known, l.names = nil, nil
}
