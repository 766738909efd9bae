package store

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/headway-go/headway/internal/law"
	"github.com/headway-go/headway/limiter"
	"pgregory.net/rapid"
)

// Whatever several processes set aside, use late, give back, or die with: their
// starts, by the store's clock, are such as the law admits.
func TestS4_LawsHoldOverBatches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.SampledFrom([]limiter.Limit{
			{N: 5, Per: 100 * time.Millisecond}, {N: 40, Per: 3 * time.Second}, {N: 7, Per: 20 * time.Second},
			{N: 10, Per: time.Second, Law: limiter.Bucket, Burst: 6}, {N: 3, Per: 7 * time.Second, Law: limiter.Bucket, Burst: 9},
			{N: 9, Law: limiter.Calendar, Unit: limiter.Minute},
		}).Draw(t, "limit")
		now := time.Date(2026, 11, 30, 6, 0, 0, 0, time.UTC)
		mem := &Memory{Now: func() time.Time { return now }}
		do := func(op Op) Result {
			op.Group = "g"
			op.Needs = []Need{{Budget: "b", Limit: limit, Cost: 1}}
			res, err := mem.Do(context.Background(), []Op{op})
			if err != nil {
				t.Fatal(err)
			}
			return res[0]
		}
		type kept struct {
			id         uint64
			at, last   Instant
			left, used int64
		}
		var processes [3]*kept
		var starts []Instant
		id := uint64(0)
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			i := rapid.IntRange(0, 2).Draw(t, "process")
			p := processes[i]
			switch rapid.IntRange(0, 5).Draw(t, "do") {
			case 0:
				now = now.Add(time.Duration(rapid.SampledFrom([]int{1, 9, 33, 100, 950, 6000}).Draw(t, "ms")) * time.Millisecond)
			case 1, 2: // take, and set aside
				if p != nil {
					do(Op{Kind: OpReturn, ID: p.id, Used: p.used, Due: p.last, Taken: p.at})
				}
				id++
				processes[i] = nil
				if res := do(Op{Kind: OpTake, ID: id, Reserve: int64(rapid.IntRange(0, 9).Draw(t, "more"))}); res.OK {
					starts = append(starts, now.UnixNano())
					processes[i] = &kept{id: id, at: res.At, last: res.At, left: res.Reserved}
				}
			case 3, 4: // use
				if p != nil && p.left > 0 && now.UnixNano()-p.at < int64(UseWithin) {
					p.left--
					p.used++
					p.last = now.UnixNano()
					starts = append(starts, p.last)
				}
			case 5: // die, and begin anew
				processes[i] = nil
			}
		}
		spec := specOf(limit)
		oracle := law.New(spec, wall)
		slices.Sort(starts)
		for i, at := range starts {
			if e, _ := oracle.Earliest(at, at, 1); e > at {
				t.Fatalf("%v: start %d of %v is %v too early", limit, i, starts, time.Duration(e-at))
			}
			oracle.Take(at, 1)
		}
		// What is dead comes back.
		now = now.Add(ReserveFor)
		now = now.Add(limit.Per + time.Minute)
		if left := do(Op{Kind: OpRead}).Remaining[0]; left != oracle.Max() {
			t.Fatalf("%d are left in the end, want %d", left, oracle.Max())
		}
	})
}

// What is set aside is nobody else's, comes back by OpReturn or at the end of Hold,
// and is never more than half.
func TestReserved(t *testing.T) {
	now := time.Date(2026, 11, 30, 6, 0, 0, 0, time.UTC)
	mem := &Memory{Now: func() time.Time { return now }}
	do := func(op Op) Result {
		op.Group, op.Needs = "g", []Need{{Budget: "b", Limit: limiter.Limit{N: 10, Per: time.Second}, Cost: 1}}
		res, err := mem.Do(context.Background(), []Op{op})
		if err != nil {
			t.Fatal(err)
		}
		return res[0]
	}
	if res := do(Op{Kind: OpTake, ID: 1, Reserve: 9}); res.Reserved != 4 || res.Remaining[0] != 5 {
		t.Fatalf("the first: got %+v, want 4 set aside, and 5 left", res)
	}
	for range 5 {
		do(Op{Kind: OpTake, ID: 2})
	}
	if res := do(Op{Kind: OpTake, ID: 2}); res.OK || res.For != time.Second {
		t.Errorf("got %+v, want it refused for 1s", res)
	}
	now = now.Add(100 * time.Millisecond)
	at := now.Add(-100 * time.Millisecond).UnixNano()
	do(Op{Kind: OpReturn, ID: 1, Used: 3, Taken: at, Due: now.UnixNano()})
	if left := do(Op{Kind: OpRead}).Remaining[0]; left != 1 {
		t.Errorf("%d are left after 3 of 4 were used, want 1", left)
	}
	now = now.Add(900 * time.Millisecond)
	if left := do(Op{Kind: OpRead}).Remaining[0]; left != 7 {
		t.Errorf("%d are left one period after the first, want 7: 3 began to count later", left)
	}
	now = now.Add(time.Hour)
	res := do(Op{Kind: OpTake, ID: 3, Reserve: 9})
	now = now.Add(ReserveFor - 1)
	if left := do(Op{Kind: OpRead}).Remaining[0]; left != 10-res.Reserved {
		t.Errorf("%d are left before the end, want %d", left, 10-res.Reserved)
	}
	now = now.Add(1)
	if left := do(Op{Kind: OpRead}).Remaining[0]; left != 10 {
		t.Errorf("%d are left at the end, want 10", left)
	}
}
