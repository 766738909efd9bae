package line

import (
	"slices"
	"time"

	"github.com/headway-go/headway/internal/law"
)

// eachAnnounced calls f with what answers have brought for a request without an
// identity that takes one unit of each of budgets.
func (l *Line) eachAnnounced(budgets []*Budget, f func(*Budget)) {
	for _, b := range budgets {
		for _, h := range b.announced {
			f(h.b)
		}
	}
	list := l.audiences.all.list
	for i := range list {
		if h := &list[i]; h.concerns(budgets) {
			f(h.b)
		}
	}
}

// concerns reports whether it holds those of the identity who need budgets.
func (h *announcement) concerns(budgets []*Budget) bool {
	return h.only == nil || slices.Contains(budgets, h.only)
}

// roomAnnounced reports whether a request that takes one unit of each of budgets and
// has no identity can start now, for all that answers have brought.
func (l *Line) roomAnnounced(budgets []*Budget, now law.Time) bool {
	host := &l.audiences.all
	for i := range host.list {
		if recovered(host.list[i:i+1], now) {
			host.list = forget(host.list, now)
			break
		}
	}
	for _, b := range budgets {
		if !haveRoom(b.announced, budgets, now) {
			return false
		}
	}
	return haveRoom(host.list, budgets, now)
}

// takeAnnounced takes what roomAnnounced has found room for.
func (l *Line) takeAnnounced(budgets []*Budget, now law.Time) {
	for _, b := range budgets {
		takeAll(b.announced, budgets, now)
	}
	takeAll(l.audiences.all.list, budgets, now)
}

// haveRoom reports whether each of list that concerns who needs budgets has a
// unit now. A pause never has: it may have to hear of a success.
func haveRoom(list []announcement, budgets []*Budget, now law.Time) bool {
	for i := range list {
		c, ok := list[i].b.state.(*law.Cap)
		if !ok {
			return false
		}
		if list[i].concerns(budgets) {
			if at, _ := c.Earliest(now, now, 1); at > now {
				return false
			}
		}
	}
	return true
}

// takeAll takes a unit of each of list, which haveRoom.
func takeAll(list []announcement, budgets []*Budget, now law.Time) {
	for i := range list {
		if list[i].concerns(budgets) {
			list[i].b.state.(*law.Cap).Take(now, 1)
		}
	}
}

func (l *Line) undoAnnounced(budgets []*Budget, count bool, at time.Duration) {
	now := l.lock()
	defer l.unlock()
	if count {
		l.addInFlight1(budgets, -1)
	}
	if l.audiences == nil {
		return
	}
	l.eachAnnounced(budgets, func(b *Budget) {
		b.state.Give(int64(at), 1, false)
		l.changed(now, false, b)
	})
}
