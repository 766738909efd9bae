// Package storetest checks implementations of store.Store. A store's own tests call
// [Run], and [RunUnreadable] if other programs can damage the store's rows:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t testing.TB, now func() time.Time) store.Store {
//			return open(t, now) // empty, and closed by t.Cleanup
//		})
//	}
package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/store"
)

// Run checks the contract of a store: it decides like store.Memory; it charges all limits
// of a request or none; concurrent operations are isolated; Do returns when its context
// ends; the units of a request whose process died in flight return; and idle budgets are
// forgotten.
//
// newStore returns an empty store that uses the clock now, and closes it by t.Cleanup. It
// is called for each check, and concurrently.
func Run(t *testing.T, newStore func(t testing.TB, now func() time.Time) store.Store) {
	open := func(t *testing.T) *bench {
		b := &bench{TB: t, at: time.Date(2026, 3, 28, 22, 0, 0, 0, time.UTC)}
		b.Store = newStore(t, b.now)
		return b
	}
	for name, check := range map[string]func(*bench){
		"laws":        checkLaws,
		"statements":  checkStatements,
		"all or none": checkAllOrNone,
		"in order":    checkInOrder,
		"apart":       checkApart,
		"at once":     checkAtOnce,
		"lease":       checkLease,
		"reserved":    checkReserved,
		"context":     checkContext,
		"errors":      checkErrors,
		"forgets":     checkForgets,
		"set back":    checkSetBack,
		"announced":   checkAnnounced,
	} {
		t.Run(name, func(t *testing.T) { check(open(t)) })
	}
}

// A bench is a store with a clock that only the check advances.
type bench struct {
	testing.TB
	store.Store

	mu sync.Mutex // guards at
	at time.Time
}

func (b *bench) now() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.at
}

func (b *bench) pass(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.at = b.at.Add(d)
}

// do does operations, none of which may fail.
func (b *bench) do(ops ...store.Op) []store.Result {
	b.Helper()
	results, err := b.Do(context.Background(), ops)
	if err != nil || len(results) != len(ops) {
		b.Fatalf("%d operations: got %d results, %v", len(ops), len(results), err)
	}
	return results
}

func takeOf(needs ...store.Need) store.Op {
	return store.Op{Kind: store.OpTake, Group: "g", ID: 1, Needs: needs}
}

func need(budget string, l limiter.Limit, cost int64) store.Need {
	return store.Need{Budget: budget, Limit: l, Cost: cost}
}

// checkLaws does a Transport's operations at random, and compares every result with that
// of a store.Memory.
func checkLaws(b *bench) {
	mem := &store.Memory{Now: b.now}
	limits := []limiter.Limit{
		{N: 3, Per: time.Second}, {N: 5, Per: 7 * time.Nanosecond}, limiter.PerDay(4),
		{N: 3, Per: time.Second, Strict: true}, {N: 10, Per: time.Second, Law: limiter.Bucket, Burst: 4},
		limiter.Every(time.Second), {N: 7, Per: time.Second, Law: limiter.Spaced, Strict: true},
		{N: 6, Per: time.Second, Law: limiter.Sliding}, {N: 5, Law: limiter.Calendar, Unit: limiter.Minute},
		{N: 5, Law: limiter.Calendar, Unit: limiter.Day, Location: berlin()}, limiter.Blocked(),
	}
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 0))
		group := "laws" + strconv.FormatUint(seed, 10)
		in := make([]limiter.Limit, 4) // what each budget is under
		for i := range in {
			in[i] = limits[r.IntN(len(limits))]
		}
		var taken []store.Op
		var at []store.Instant
		for step := range 150 {
			if r.IntN(3) == 0 {
				b.pass(time.Duration(r.Int64N(int64(700 * time.Millisecond))))
			}
			if r.IntN(40) == 0 {
				b.pass(time.Duration(r.Int64N(int64(30 * time.Hour))))
			}
			if r.IntN(25) == 0 {
				in[r.IntN(len(in))] = limits[r.IntN(len(limits))]
			}
			needs := func() (list []store.Need) {
				for i := range in {
					if r.IntN(3) == 0 {
						list = append(list, need(strconv.Itoa(i), in[i], 1+r.Int64N(3)))
					}
				}
				return list
			}
			audiences := []string{"audience/" + strconv.Itoa(r.IntN(2)), "audience"}
			var ops []store.Op
			for range 1 + r.IntN(3) {
				op := store.Op{Group: group, ID: r.Uint64() | 1, Audiences: audiences, Needs: needs()}
				switch k := r.IntN(20); {
				case k < 8:
					op.Kind, op.Line, op.Reserve = store.OpTake, uint64(r.IntN(3)), max(0, r.Int64N(12)-6)
				case k < 9 && len(taken) > 0:
					i := r.IntN(len(taken))
					op = taken[i]
					op.Kind, op.Taken, op.Used = store.OpReturn, at[i], r.Int64N(4)
					op.Due = at[i] + r.Int64N(int64(store.UseWithin))
				case k < 11 && len(taken) > 0:
					i := r.IntN(len(taken))
					op = taken[i]
					op.Kind = store.OpDone
				case k < 13 && len(taken) > 0:
					i := r.IntN(len(taken))
					op = taken[i]
					op.Kind, op.Taken = store.OpGive, at[i]
					op.Needs = append([]store.Need(nil), op.Needs...)
					for j := range op.Needs {
						op.Needs[j].Taken = at[i]
					}
				case k < 14:
					op.Kind = store.OpSpend
					for j := range op.Needs {
						op.Needs[j].Cost = r.Int64N(9) - 4
					}
				case k < 15:
					op.Kind, op.Audience = store.OpPause, audiences[r.IntN(2)]
					op.Pause = &store.Pause{
						For: time.Duration(r.Int64N(int64(time.Second))), Grow: r.IntN(2) == 0, Most: time.Minute,
						Started: b.now().UnixNano(), Limits: in[:1], Source: "test",
					}
				case k < 16:
					op.Kind, op.Audience = store.OpLearn, "audience"
					if r.IntN(2) == 0 {
						op.Only = "0"
					}
					op.Learn = &store.Learn{
						Name: "n", Left: r.Int64N(5), Limit: 5, Reset: time.Duration(r.Int64N(int64(time.Second))),
						Started: b.now().UnixNano(), InFlight: r.Int64N(2),
					}
				case k < 17:
					op.Kind, op.Taken = store.OpSuccess, b.now().UnixNano()
				case k < 18:
					op.Kind = store.OpForecast
					for range r.IntN(5) {
						op.Asks = append(op.Asks, store.Op{Kind: store.OpTake, Group: group, ID: 1, Audiences: audiences, Needs: needs(), Line: uint64(r.IntN(3))})
					}
				default:
					op.Kind = store.OpRead
				}
				ops = append(ops, op)
			}
			got := b.do(ops...)
			want, err := mem.Do(context.Background(), ops)
			if err != nil {
				b.Fatal(err)
			}
			for i := range got {
				if !reflect.DeepEqual(got[i], want[i]) {
					b.Fatalf("seed %d, step %d, %s: got\n%+v\nwant\n%+v", seed, step, describe(&ops[i]), got[i], want[i])
				}
				if got[i].OK {
					taken, at = append(taken, ops[i]), append(at, got[i].At)
				}
			}
		}
	}
}

func describe(op *store.Op) string { return fmt.Sprintf("%+v", *op) }

func berlin() *time.Location {
	if l, err := time.LoadLocation("Europe/Berlin"); err == nil {
		return l
	}
	return time.UTC
}

func checkAllOrNone(b *bench) {
	wide, narrow := need("wide", limiter.PerMinute(10), 1), need("narrow", limiter.PerMinute(1), 1)
	if res := b.do(takeOf(narrow, wide))[0]; !res.OK || !reflect.DeepEqual(res.Remaining, []int64{0, 9}) {
		b.Errorf("the first: got %+v, want it granted, with 0 and 9 left", res)
	}
	b.pass(time.Second)
	res := b.do(takeOf(narrow, wide), store.Op{Kind: store.OpRead, Group: "g", Needs: []store.Need{narrow, wide}})
	if res[0].OK || res[0].For != 59*time.Second || res[0].Bind != 0 {
		b.Errorf("the second: got %+v, want it refused for 59s by the first need", res[0])
	}
	if !reflect.DeepEqual(res[1].Remaining, []int64{0, 9}) {
		b.Errorf("after a refusal %v are left, want 0 and 9", res[1].Remaining)
	}
}

func checkInOrder(b *bench) {
	take := func(id, line uint64, cost int64) store.Op {
		op := takeOf(need("b", limiter.PerMinute(5), cost))
		op.ID, op.Line = id, line
		return op
	}
	res := b.do(take(1, 1, 4), take(2, 1, 3), take(3, 1, 1), take(4, 2, 1), take(5, 2, 1))
	for i, want := range []struct{ ok, skipped bool }{{true, false}, {false, false}, {false, true}, {true, false}, {false, false}} {
		if res[i].OK != want.ok || res[i].Skipped != want.skipped {
			b.Errorf("number %d: got granted %v, skipped %v, want %v and %v", i, res[i].OK, res[i].Skipped, want.ok, want.skipped)
		}
	}
}

func checkApart(b *bench) {
	op := takeOf(need("b", limiter.PerMinute(1), 1))
	other := op
	other.Group = "h"
	third := takeOf(need("c", limiter.PerMinute(1), 1))
	for i, res := range b.do(op, other, third) {
		if !res.OK {
			b.Errorf("budget %d of three: got %+v, want it granted", i, res)
		}
	}
}

// checkAtOnce takes units from many goroutines at one instant.
func checkAtOnce(b *bench) {
	const callers, each, limit = 8, 40, 100
	var granted atomic.Int64
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range each {
				res, err := b.Do(context.Background(), []store.Op{takeOf(need("wide", limiter.PerHour(1000), 1), need("b", limiter.PerHour(limit), 1))})
				if err != nil {
					b.Error(err)
					return
				}
				if res[0].OK {
					granted.Add(1)
				}
			}
		})
	}
	all.Wait()
	if granted.Load() != limit {
		b.Errorf("%d granted of %d, want %d", granted.Load(), callers*each, limit)
	}
	left := b.do(store.Op{Kind: store.OpRead, Group: "g", Needs: []store.Need{need("wide", limiter.PerHour(1000), 1)}})[0].Remaining
	if left[0] != 1000-limit {
		b.Errorf("%d of the other limit are left, want %d: all or none", left[0], 1000-limit)
	}
}

// checkLease has one request in flight whose lease is not renewed, and one whose lease is.
func checkLease(b *bench) {
	strict := limiter.Limit{N: 1, Per: time.Minute, Strict: true}
	gone := takeOf(need("gone", strict, 1))
	if res := b.do(gone)[0]; !res.OK || !res.Strict {
		b.Fatalf("got %+v, want it granted, as a strict unit", res)
	}
	b.pass(store.StrictLease + time.Minute)
	if res := b.do(gone)[0]; !res.OK {
		b.Errorf("one period after a lease that was not renewed: got %+v, want it granted", res)
	}

	op := takeOf(need("b", strict, 1))
	if res := b.do(op)[0]; !res.OK || !res.Strict {
		b.Fatalf("got %+v, want it granted, as a strict unit", res)
	}
	b.pass(store.StrictLease - time.Second)
	renew := op
	renew.Kind = store.OpRenew
	b.do(renew)
	next := op
	next.ID = 2
	b.pass(store.StrictLease) // the lease's end
	if res := b.do(next)[0]; res.OK || res.For != time.Minute || res.AtLeast {
		b.Errorf("at the end of the lease: got %+v, want it to come back in 1m0s, for certain", res)
	}
	b.pass(time.Minute)
	if res := b.do(next)[0]; !res.OK {
		b.Errorf("one period after the lease: got %+v, want it granted", res)
	}
}

// checkReserved has a process reserve units, use some of them, and end.
func checkReserved(b *bench) {
	limit := limiter.PerMinute(10)
	take := takeOf(need("b", limit, 1))
	take.Reserve = 9
	left := func() int64 {
		return b.do(store.Op{Kind: store.OpRead, Group: "g", Needs: take.Needs})[0].Remaining[0]
	}
	res := b.do(take)[0]
	if !res.OK || res.Reserved != 4 || left() != 5 {
		b.Errorf("got %+v with %d left, want it granted, half of the rest reserved, and 5 left", res, left())
	}
	b.pass(store.UseWithin / 2)
	used := take
	used.Kind, used.Used, used.Taken, used.Due = store.OpReturn, 3, res.At, b.now().UnixNano()
	if b.do(used); left() != 6 {
		b.Errorf("%d are left after 3 of 4 were used, want 6", left())
	}
	b.pass(time.Minute - store.UseWithin/2)
	if left() != 7 {
		b.Errorf("%d are left one period after the first, want 7: the others began to count later", left())
	}
	b.pass(time.Minute)
	take.ID = 2
	res = b.do(take)[0]
	b.pass(store.UseWithin + time.Minute)
	if left() != 10 {
		b.Errorf("%d are left after a process that returned nothing, want all 10", left())
	}
	// The wait for a cost that never fits beside the reserved units is a lower bound,
	// until it is known how many of them were used.
	take.ID = 3
	b.do(take)
	all := takeOf(need("b", limit, 10))
	all.ID = 4
	if res := b.do(all)[0]; res.OK || res.For != time.Minute || !res.AtLeast {
		b.Errorf("all units while some are reserved: got %+v, want 1m0s at least", res)
	}
	forecast := store.Op{Kind: store.OpForecast, Group: "g", Asks: []store.Op{all}}
	if wait := b.do(forecast)[0].Waits[0]; wait.For != time.Minute || !wait.AtLeast {
		b.Errorf("the forecast while some are reserved: got %+v, want 1m0s at least", wait)
	}
	b.pass(store.ReserveFor)
	if res := b.do(all)[0]; res.OK || res.For != time.Minute+store.UseWithin-store.ReserveFor || res.AtLeast {
		b.Errorf("all units once those count as used: got %+v, want %v", res, time.Minute+store.UseWithin-store.ReserveFor)
	}
	for name, l := range map[string]limiter.Limit{
		"strict": {N: 9, Per: time.Second, Strict: true}, "spaced": limiter.Every(time.Second),
	} {
		op := takeOf(need(name, l, 1))
		op.Reserve = 5
		if res := b.do(op)[0]; !res.OK || res.Reserved != 0 {
			b.Errorf("%s: got %+v, want it granted and nothing reserved", name, res)
		}
	}
}

func checkContext(b *bench) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	op := takeOf(need("b", limiter.PerMinute(1), 1))
	if _, err := b.Do(ctx, []store.Op{op}); !errors.Is(err, context.Canceled) {
		b.Errorf("with a context that is over: got %v, want %v", err, context.Canceled)
	}
	if res := b.do(op)[0]; !res.OK {
		b.Errorf("after it: got %+v, want nothing taken", res)
	}
	b.do() // a batch without operations is valid
}

func checkErrors(b *bench) {
	op := takeOf(need("b", limiter.PerMinute(1), 1))
	if _, err := b.Do(context.Background(), []store.Op{op, {Kind: 99, Group: "g"}}); err == nil {
		b.Error("an operation of an unknown kind: got no error")
	}
}

func checkForgets(b *bench) {
	const keys = 500
	for i := range keys {
		b.do(takeOf(need(strconv.Itoa(i), limiter.PerSecond(1), 1)))
	}
	spent := store.Op{Kind: store.OpSpend, Group: "g", Needs: []store.Need{need("debt", limiter.PerHour(1), 7)}}
	b.do(spent)
	for range 20 * keys { // a store may forget late, but not never
		b.pass(100 * time.Millisecond)
		b.do(takeOf(need("busy", limiter.PerSecond(100), 1)))
	}
	n, err := b.Len(context.Background())
	if err != nil || n > keys/10 {
		b.Errorf("%d budgets remembered, %v; want the unused ones forgotten", n, err)
	}
	if res := b.do(store.Op{Kind: store.OpRead, Group: "g", Needs: spent.Needs})[0]; res.Remaining[0] != -6 {
		b.Errorf("the one in debt has %d left, want -6", res.Remaining[0])
	}
}

// checkStatements checks the laws again, by the examples of their documentation.
func checkStatements(b *bench) {
	left := func(n store.Need) int64 {
		return b.do(store.Op{Kind: store.OpRead, Group: "g", Needs: []store.Need{n}})[0].Remaining[0]
	}
	allow := func(n store.Need) bool { return b.do(takeOf(n))[0].OK }
	spend := func(n store.Need) { b.do(store.Op{Kind: store.OpSpend, Group: "g", Needs: []store.Need{n}}) }

	// S20 to S23: a bucket of 100, 10 a second.
	bucket := limiter.Limit{N: 10, Per: time.Second, Law: limiter.Bucket, Burst: 100}
	for _, step := range []struct {
		later time.Duration
		cost  int64
		ok    bool
		left  int64
	}{
		{0, 1, true, 99},
		{0, 5, true, 94},
		{0, 91, true, 3},
		{0, 5, false, 3},
		{0, 3, true, 0},
		{3 * time.Second, 0, true, 30},
		{6500 * time.Millisecond, 0, true, 95},
		{time.Second, 0, true, 100}, // not 105
		{0, 101, false, 100},
		{0, 99, true, 1},
		{0, 1, true, 0},
		{0, 1, false, 0},
	} {
		b.pass(step.later)
		n := need("bucket", bucket, step.cost)
		if ok := allow(n); ok != step.ok || left(n) != step.left {
			b.Errorf("bucket: %+v: granted %v, %d left", step, ok, left(n))
		}
	}

	// S24: sliding, 80 in the window before, 40 s into this one.
	for used, want := range map[int64]bool{50: true, 74: false} {
		sliding := limiter.Limit{N: 100, Per: time.Minute, Law: limiter.Sliding}
		name := "sliding" + strconv.FormatInt(used, 10)
		spend(need(name, sliding, 80))
		b.pass(time.Minute)
		spend(need(name, sliding, used))
		b.pass(40 * time.Second)
		if got := allow(need(name, sliding, 1)); got != want {
			b.Errorf("sliding with %d in this window: granted %v, want %v", used, got, want)
		}
	}

	// S25: across the border of a minute, 20 of 10 under Calendar alone.
	for i, tc := range []struct {
		limit limiter.Limit
		want  int
	}{
		{limiter.PerMinute(10), 10},
		{limiter.Limit{N: 10, Per: time.Minute, Law: limiter.Sliding}, 10},
		{limiter.Limit{N: 10, Law: limiter.Calendar, Unit: limiter.Minute}, 20},
	} {
		now := b.now()
		b.pass(now.Truncate(time.Minute).Add(119 * time.Second).Sub(now))
		got := 0
		for range 4 {
			for allow(need("border"+strconv.Itoa(i), tc.limit, 1)) {
				got++
			}
			b.pass(time.Second / 2)
		}
		if got != tc.want {
			b.Errorf("%v: %d starts in 2 s around the border, want %d", tc.limit, got, tc.want)
		}
	}

	// S26: spaced, the reported waits of ten requests at once are 1 s apart.
	var asks []store.Op
	for range 10 {
		op := takeOf(need("spaced", limiter.Every(time.Second), 1))
		op.Line = 1
		asks = append(asks, op)
	}
	for i, w := range b.do(store.Op{Kind: store.OpForecast, Group: "g", Asks: asks})[0].Waits {
		if w.For != time.Duration(i)*time.Second {
			b.Errorf("spaced: the wait of number %d is %v, want %v", i, w.For, time.Duration(i)*time.Second)
		}
	}

	// S28: a limit of zero, and a cost above the limit.
	for name, n := range map[string]store.Need{
		"zero": need("zero", limiter.Blocked(), 1), "impossible": need("small", limiter.PerSecond(2), 3),
	} {
		if res := b.do(takeOf(n))[0]; res.OK || res.For != store.Never {
			b.Errorf("%s: got %+v, want it refused for ever", name, res)
		}
	}
}

// checkSetBack has the clock ten years ahead for a while. Units that are used, paused or
// reserved meanwhile count from the moment at which the clock is set back: every budget
// has room again exactly one period later.
func checkSetBack(b *bench) {
	const years = 87_600 * time.Hour
	b.pass(30 * time.Second) // within a minute of a calendar
	begin := b.now()
	for i, c := range []struct {
		limit limiter.Limit
		free  time.Duration // after which there is room for all of it
	}{
		{limiter.Limit{N: 4, Per: time.Minute}, time.Minute},
		{limiter.Limit{N: 70_000, Per: time.Minute}, time.Minute},
		{limiter.Limit{N: 4, Per: time.Minute, Strict: true}, time.Minute},
		{limiter.Limit{N: 4, Per: time.Minute, Law: limiter.Bucket}, time.Minute},
		{limiter.Limit{N: 4, Per: time.Minute, Law: limiter.Sliding}, 2 * time.Minute},
		{limiter.Limit{N: 4, Law: limiter.Calendar, Unit: limiter.Minute}, 30 * time.Second},
		{limiter.Limit{N: 4, Law: limiter.Calendar, Unit: limiter.Day, Location: berlin()}, time.Hour - 30*time.Second}, // 22:00:30 in UTC
	} {
		name := "set back " + strconv.Itoa(i)
		all := need(name, c.limit, c.limit.N)
		b.pass(years)
		if !b.do(takeOf(all))[0].OK {
			b.Fatalf("%v: it has no room", c.limit)
		}
		if c.limit.Strict {
			b.do(store.Op{Kind: store.OpDone, Group: "g", ID: 1, Needs: []store.Need{all}})
		}
		b.pass(-years)
		res := b.do(takeOf(all))[0]
		if res.OK || res.For != c.free {
			b.Errorf("%v, the clock set back by ten years: room again in %v (%v), want %v", c.limit, res.For, res.OK, c.free)
		}
		if want := years; res.Back != want && c.limit.Law != limiter.Calendar || res.Back < years-48*time.Hour {
			b.Errorf("%v: the store says that its clock was set back by %v, want %v", c.limit, res.Back, want)
		}
		b.pass(c.free - 1)
		if res := b.do(takeOf(all))[0]; res.OK || res.Back != 0 {
			b.Errorf("%v: it has room a nanosecond early, or %v", c.limit, res.Back)
		}
		b.pass(1)
		if !b.do(takeOf(all))[0].OK {
			b.Errorf("%v: it has no room after %v", c.limit, c.free)
		}
		b.pass(begin.Sub(b.now()))
	}
	// A Spaced limit, a pause, a limit that a server has announced, and units in flight or
	// reserved.
	every := need("every", limiter.Every(time.Minute), 1)
	inFlight := need("in flight", limiter.Limit{N: 1, Per: time.Minute, Strict: true}, 1)
	kept := need("kept", limiter.Limit{N: 4, Per: time.Minute}, 1)
	paused, limited := takeOf(need("paused", limiter.PerSecond(5), 1)), takeOf(need("limited", limiter.PerSecond(5), 1))
	paused.Audiences, limited.Audiences = []string{"pausing"}, []string{"limiting"}
	b.pass(years)
	more := takeOf(kept)
	more.Reserve = 1
	results := b.do(takeOf(every), takeOf(inFlight), more,
		store.Op{Kind: store.OpPause, Group: "g", Audience: "pausing", Pause: &store.Pause{For: 90 * time.Second}},
		store.Op{Kind: store.OpLearn, Group: "g", Audience: "limiting", Learn: &store.Learn{Limit: 10, Reset: 80 * time.Second, Started: b.now().UnixNano()}})
	if !results[0].OK || !results[1].OK || !results[2].OK || results[2].Reserved != 1 {
		b.Fatalf("not all have room: %+v", results)
	}
	b.pass(-years)
	for i, want := range []time.Duration{time.Minute, store.StrictLease + time.Minute, time.Minute, 90 * time.Second, 80 * time.Second} {
		four := kept
		four.Cost = 3
		op := []store.Op{takeOf(every), takeOf(inFlight), takeOf(four), paused, limited}[i]
		if i == 1 { // before the lease ends, the wait would be a lower bound
			b.do(op)
			b.pass(store.StrictLease)
			want -= store.StrictLease
		}
		if res := b.do(op)[0]; res.OK || res.For != want {
			b.Errorf("number %d, the clock set back by ten years: room again in %v (%v), want %v", i, res.For, res.OK, want)
		}
		b.pass(begin.Sub(b.now()))
	}
}

// What a server has announced of a budget is reported beside what the limit has left.
func checkAnnounced(b *bench) {
	narrow, wide := need("narrow", limiter.PerMinute(10), 1), need("wide", limiter.PerHour(100), 2)
	left := func(what string, res store.Result, least, own []int64) {
		b.Helper()
		if !reflect.DeepEqual(res.Remaining, least) || !reflect.DeepEqual(res.LimitRemaining, own) {
			b.Errorf("%s: %v are left, %v by the limits alone, want %v and %v", what, res.Remaining, res.LimitRemaining, least, own)
		}
	}
	started := b.now().UnixNano()
	left("before", b.do(takeOf(narrow, wide))[0], []int64{9, 98}, nil)
	b.pass(time.Second)
	b.do(store.Op{Kind: store.OpLearn, Group: "g", Only: "narrow", Learn: &store.Learn{
		Name: "n", Left: 4, Limit: 10, Reset: 50 * time.Second, Period: time.Minute, Started: started, Own: 1,
	}})
	read := store.Op{Kind: store.OpRead, Group: "g", Needs: []store.Need{wide, narrow}}
	left("read", b.do(read)[0], []int64{98, 4}, []int64{98, 9})
	left("a start", b.do(takeOf(narrow, wide))[0], []int64{3, 96}, []int64{8, 96})
	more := takeOf(narrow, wide)
	more.Reserve = 1
	left("with a reserved one", b.do(more)[0], []int64{1, 92}, []int64{6, 92})
	dear := narrow
	dear.Cost = 5
	left("a refusal", b.do(takeOf(dear, wide))[0], []int64{1, 92}, []int64{6, 92})
	left("of another budget", b.do(store.Op{Kind: store.OpRead, Group: "g", Needs: []store.Need{wide}})[0], []int64{92}, nil)
	left("a debt", b.do(store.Op{Kind: store.OpSpend, Group: "g", Needs: []store.Need{dear, wide}})[0], []int64{-4, 90}, []int64{1, 90})
}
