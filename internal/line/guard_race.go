//go:build race

package line

import "github.com/headway-go/headway/internal/law"

// guard panics when something that all lines share has been written to. It runs
// wherever a line gives up its lock, in builds with the race detector alone, which
// then also sees a write that changes nothing.
func guard() {
	q, d := &idle, &none
	switch {
	case q.seq != 0, q.waiting != 0, q.bounded != 0, q.slotless != 0, q.lowered, q.stalled, q.gated, q.mixed,
		q.first != nil, q.tail != nil, q.unplanned != nil, q.bySeq != nil, q.loose != nil, q.parked != nil,
		q.plain.first != nil, q.plain.needs != nil, q.chain.first != nil, q.chain.last != nil, q.chain.woken,
		q.timer != nil, q.timerAt != law.Never, q.looks != 0, q.fired != 0:
		panic("line: the queue of empty lines was written to")
	case nothing.walls != nil, nothing.stamp != 0, nothing.lone != nil, nothing.pause != nil, nothing.list != nil,
		nothing.listed != nil, nothing.heard != nil:
		panic("line: the extra of plain lines was written to")
	case d.plan != nil, d.users != 0, d.classes != nil, d.stamp != 0, d.heard != nil, d.flying != 0:
		panic("line: the demand of idle budgets was written to")
	case noPapers != papers{}:
		panic("line: the papers of plain waiters were written to")
	}
}
