package line

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway/internal/law"
)

// A hall is a mixed line: tenants with a limit of their own under a shared one.
type hall struct {
	*testing.T
	l     *Line
	needs [][]Need // of each tenant
	all   []*guest
}

type guest struct {
	cancel context.CancelFunc
	at     time.Duration // its start; -1: it has left; -2: it waits
}

func newHall(t *testing.T, tenants int, own, shared law.Spec) *hall {
	h := &hall{T: t, l: New()}
	pause, all := h.l.NewPause(shared), h.l.NewBudget(&shared)
	for range tenants {
		h.needs = append(h.needs, []Need{{B: h.l.NewBudget(&own), Cost: 1}, {B: all, Cost: 1}, {B: pause, Cost: 1}})
	}
	return h
}

// arrive puts one of a tenant in line.
func (h *hall) arrive(tenant int) *guest {
	ctx, cancel := context.WithCancel(h.Context())
	g := &guest{cancel, -2}
	h.all = append(h.all, g)
	ask := &Ask{Needs: slices.Clone(h.needs[tenant]), MaxWait: -1}
	go func() {
		grant, _, _, err := h.l.Enter(ctx, ask, nil, nil)
		if g.at = -1; err == nil {
			g.at = grant.At
			h.l.Sent(&grant)
		}
	}()
	synctest.Wait()
	return g
}

// leave cancels some.
func (h *hall) leave(guests ...*guest) {
	for _, g := range guests {
		g.cancel()
		synctest.Wait()
	}
}

var laws = []law.Spec{
	{N: 1, Per: time.Second},
	{N: 1, Per: time.Second, Kind: law.Spaced},
	{N: 60, Per: time.Minute, Kind: law.Bucket, Burst: 1},
}

// long is how many stand in a long line: fewer under the race detector.
func long(n int) int {
	if raceEnabled {
		return n / 4
	}
	return n
}

// S7: half of a mixed line leaves, and it is as if it had never been: the last
// of the others starts when as many slots have passed as there are others, and
// whoever comes then comes next.
func TestS7_HalfOfAMixedLineLeaves(t *testing.T) {
	n := long(1000)
	for _, shared := range laws {
		t.Run(fmt.Sprint(shared.Kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHall(t, 10, law.Spec{N: 1000, Per: time.Second}, shared)
				h.l.Spend(1, h.needs[0][1].B)
				for i := range n {
					h.arrive(i % 10)
				}
				h.leave(h.all[:n/2]...)
				time.Sleep(time.Duration(n/2) * time.Second)
				synctest.Wait()
				for i, g := range h.all[n/2:] {
					if want := time.Duration(i+1) * time.Second; g.at != want {
						t.Fatalf("survivor %d started at %v, want %v", i, g.at, want)
					}
				}
				g := h.arrive(0)
				time.Sleep(time.Second)
				synctest.Wait()
				if want := time.Duration(n/2+1) * time.Second; g.at != want {
					t.Errorf("the newcomer started at %v, want %v", g.at, want)
				}
			})
		})
	}
}

// S7: the first 256 behind one who leaves a long line move up at once, wherever
// it stood.
func TestS7_TheNext256MoveUpAtOnce(t *testing.T) {
	n := 1000
	if raceEnabled {
		n = 2*atOnce + 50
	}
	for _, shared := range laws {
		t.Run(fmt.Sprint(shared.Kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHall(t, 10, law.Spec{N: 1000, Per: time.Second}, shared)
				h.l.Spend(1, h.needs[0][1].B)
				for i := range n {
					h.arrive(i % 10)
				}
				h.leave(h.all[n/2])
				h.l.mu.Lock()
				defer h.l.mu.Unlock()
				for w := h.l.first; w != nil; w = w.next {
					want := law.Time(w.seq) * int64(time.Second)
					if left := uint64(n/2 + 1); w.seq > left && w.seq <= left+atOnce {
						want -= int64(time.Second)
					}
					if w.at != want {
						t.Fatalf("number %d is planned for %v, want %v", w.seq, time.Duration(w.at), time.Duration(want))
					}
				}
			})
		})
	}
}

// S7: what a cancel costs in a mixed line does not depend on its length: as many
// are looked at, and searches pass as many planned starts, in whichever order
// they leave.
func TestS7_ACancelCostsTheSameInALongLine(t *testing.T) {
	for _, cost := range []int64{1, 2} {
		for _, shared := range laws {
			t.Run(fmt.Sprintf("%v/cost=%d", shared.Kind, cost), func(t *testing.T) {
				shared.N *= cost
				shared.Burst *= cost
				few, many := cancelWork(t, 1000, shared, cost), cancelWork(t, long(20_000), shared, cost)
				if many > few*5/4 {
					t.Errorf("a cancel among 1,000 passes %d planned starts, among %d %d", few, long(20_000), many)
				}
			})
		}
	}
}

// cancelWork returns how many planned starts are passed by a cancel in a mixed
// line of n.
func cancelWork(t *testing.T, n int, shared law.Spec, cost int64) (steps int) {
	const cancels = 10
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t, 10, law.Spec{N: 20, Per: time.Minute}, shared)
		h.l.Spend(1, h.needs[0][1].B)
		line := make([]*waiter, n)
		for i := range line {
			l, now := h.l.lock()
			needs := slices.Clone(h.needs[i%10])
			needs[0].Cost, needs[1].Cost = cost, cost
			line[i], _ = l.join(t.Context(), &Ask{MaxWait: -1}, kind{needs: needs}, nil, nil, now)
			l.unlock()
		}
		work := func() (steps int) {
			steps += h.needs[0][1].B.plan.Steps()
			for _, needs := range h.needs {
				steps += needs[0].B.plan.Steps()
			}
			return steps
		}
		before, looks := work(), h.l.looks
		for k := range cancels {
			h.l.leave(line[n*(7*k%cancels)/cancels/2])
			if h.l.looks-looks > atOnce {
				t.Errorf("a cancel looked at %d, want at most %d", h.l.looks-looks, atOnce)
			}
			looks = h.l.looks
		}
		steps = (work() - before) / cancels
	})
	return steps
}
