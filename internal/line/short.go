package line

import (
	"slices"
	"time"

	"github.com/headway-go/headway/internal/law"
)

// heedAll calls f with what answers have brought for a request without an
// identity that takes one unit of each of budgets.
func (l *Line) heedAll(budgets []*Budget, f func(*Budget)) {
	for _, b := range budgets {
		for _, h := range b.heard {
			f(h.b)
		}
	}
	list := l.heard.host.list
	for i := range list {
		if h := &list[i]; h.concerns(budgets) {
			f(h.b)
		}
	}
}

// concerns reports whether it holds those of the identity who need budgets.
func (h *held) concerns(budgets []*Budget) bool {
	return h.only == nil || slices.Contains(budgets, h.only)
}

// roomHeard reports whether a request that takes one unit of each of budgets and
// has no identity can start now, for all that answers have brought.
func (l *Line) roomHeard(budgets []*Budget, now law.Time) bool {
	host := &l.heard.host
	for i := range host.list {
		if recovered(host.list[i:i+1], now) {
			host.list = forget(host.list, now)
			break
		}
	}
	for _, b := range budgets {
		if !haveRoom(b.heard, budgets, now) {
			return false
		}
	}
	return haveRoom(host.list, budgets, now)
}

// takeHeard takes what roomHeard has found room for.
func (l *Line) takeHeard(budgets []*Budget, now law.Time) {
	for _, b := range budgets {
		takeAll(b.heard, budgets, now)
	}
	takeAll(l.heard.host.list, budgets, now)
}

// haveRoom reports whether each of list that concerns who needs budgets has a
// unit now. A pause never has: it may have to hear of a success.
func haveRoom(list []held, budgets []*Budget, now law.Time) bool {
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
func takeAll(list []held, budgets []*Budget, now law.Time) {
	for i := range list {
		if list[i].concerns(budgets) {
			list[i].b.state.(*law.Cap).Take(now, 1)
		}
	}
}

func (l *Line) undoHeard(budgets []*Budget, count bool, at time.Duration) {
	now := l.lock()
	defer l.unlock()
	if count {
		l.count1(budgets, -1)
	}
	if l.heard == nil {
		return
	}
	l.heedAll(budgets, func(b *Budget) {
		b.state.Give(int64(at), 1, false)
		l.changed(now, false, b)
	})
}
