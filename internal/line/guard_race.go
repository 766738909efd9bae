//go:build race

package line

import "github.com/headway-go/headway/internal/law"

// guard panics when something that all lines share has been written to. It runs
// wherever a line gives up its lock, in builds with the race detector alone, which
// then also sees a write that changes noExtra.
func guard() {
	q, d := &idleQueue, &noDemand
	switch {
	case q.seq != 0, q.waiting != 0, q.bounded != 0, q.slotless != 0, q.lowered, q.stalled, q.gated, q.many,
		q.first != nil, q.tail != nil, q.unplanned != nil, q.bySeq != nil, q.loose != nil, q.parked != nil,
		q.single.first != nil, q.single.needs != nil, q.chain.first != nil, q.chain.tail != nil, q.chain.woken,
		q.timer != nil, q.timerAt != law.Never, q.looks != 0, q.fired != 0:
		panic("line: the queue of empty lines was written to")
	case noExtra.walls != nil, noExtra.stamp != 0, noExtra.lone != nil, noExtra.pause != nil, noExtra.list != nil,
		noExtra.listed != nil, noExtra.audiences != nil:
		panic("line: the extra of other lines was written to")
	case d.plan != nil, d.users != 0, d.classes != nil, d.stamp != 0, d.announced != nil, d.audience != nil, d.origin != nil, d.inFlight != 0:
		panic("line: the demand of idle budgets was written to")
	case noDetails != details{}:
		panic("line: the details of other waiters were written to")
	}
}
