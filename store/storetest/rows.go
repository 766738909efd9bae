package storetest

import (
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/store"
)

// RunUnreadable checks what a store does with rows that it cannot read: an unreadable
// row concerns only the operations that need it. A damaged row begins anew, and is
// reported once; a row of a newer version stays as it is, and operations that need it fail.
//
// newStore returns an empty store that uses the clock now, a function that writes a row
// under a name like another program, and a function that returns the row under a name,
// or nil.
func RunUnreadable(t *testing.T, newStore func(t testing.TB, now func() time.Time) (s store.Store, put func(group, name string, row []byte), get func(group, name string) []byte)) {
	open := func(t *testing.T) *rowBench {
		b := &rowBench{bench: &bench{TB: t, at: time.Date(2026, 3, 28, 22, 0, 0, 0, time.UTC)}}
		b.Store, b.put, b.get = newStore(t, b.now)
		return b
	}
	t.Run("damaged", func(t *testing.T) {
		for name, row := range map[string][]byte{
			"text": []byte("hello"), "json": []byte(`{"n":1}`), "zero": {0}, "high": {0xff, 0xff}, "short": {1, 0xff},
			"a number": []byte("17"), "in flight of nothing": flightless(),
		} {
			t.Run(name, func(t *testing.T) { checkDamaged(open(t), row) })
		}
	})
	t.Run("newer", func(t *testing.T) {
		for name, row := range map[string][]byte{"row": {2, 'a', 'b'}, "much": {31}, "state": {1, 0, 0, 0, 1, 2}} {
			t.Run(name, func(t *testing.T) { checkNewer(open(t), row) })
		}
	})
	t.Run("any bytes", func(t *testing.T) { checkAnyBytes(open(t)) })
}

type rowBench struct {
	*bench
	put func(group, name string, row []byte)
	get func(group, name string) []byte
}

// flightless is a row with a request in flight but without a state to count it.
func flightless() []byte {
	row := []byte{1, 0, 0, 0, 0, 0, 0, 0, 1}
	row = append(row, make([]byte, 24)...)
	return append(row, 0, 0, 0, 0, 0, 0, 0, 0)
}

// rowOps returns operations of every kind that need the row "bad", each between two
// operations on other rows.
func rowOps() (ops []store.Op) {
	limit := limiter.PerMinute(100)
	bad := []store.Need{need("good", limit, 1), need("bad", limit, 1)}
	for _, kind := range []store.OpKind{store.OpTake, store.OpSpend, store.OpRead, store.OpDone, store.OpRenew, store.OpGive, store.OpReturn} {
		ops = append(ops, store.Op{Kind: kind, Group: "g", ID: 7, Needs: bad, Line: 1})
	}
	ops = append(ops,
		store.Op{Kind: store.OpTake, Group: "g", ID: 8, Needs: bad[:1], Audiences: []string{"bad", "audience"}},
		store.Op{Kind: store.OpSuccess, Group: "g", Audiences: []string{"audience", "bad"}},
		store.Op{Kind: store.OpPause, Group: "g", Audience: "bad", Pause: &store.Pause{For: time.Second}},
		store.Op{Kind: store.OpLearn, Group: "g", Audience: "bad", Learn: &store.Learn{Left: 1, Limit: 5, Reset: time.Second}},
		store.Op{Kind: store.OpLearn, Group: "g", Audience: "audience", Only: "bad", Learn: &store.Learn{Left: 1, Limit: 5, Reset: time.Second}},
	)
	return ops
}

func (b *rowBench) left(name string) int64 {
	b.Helper()
	return b.do(store.Op{Kind: store.OpRead, Group: "g", Needs: []store.Need{need(name, limiter.PerMinute(100), 1)}})[0].Remaining[0]
}

func checkDamaged(b *rowBench, row []byte) {
	good := takeOf(need("good", limiter.PerMinute(100), 1))
	for i, op := range rowOps() {
		b.put("g", "bad", row)
		before := b.left("good")
		res := b.do(good, op, good)
		if !res[0].OK || !res[2].OK || res[0].Anew != nil || res[2].Anew != nil {
			b.Errorf("%d, kind %d: those beside it got %+v and %+v, want them granted", i, op.Kind, res[0], res[2])
		}
		if res[1].Err != nil || len(res[1].Anew) != 1 {
			b.Fatalf("%d, kind %d: got %+v, want it done, and one row anew", i, op.Kind, res[1])
		}
		if e := res[1].Anew[0]; e.Group != "g" || e.Name != "bad" || !e.Anew || !errors.Is(e, store.ErrDamaged) {
			b.Errorf("%d, kind %d: got %+v", i, op.Kind, e)
		}
		if op.Kind == store.OpTake && (!res[1].OK || b.left("good") != before-3) {
			b.Errorf("%d, kind %d: got %+v, %d left of %d, want it granted", i, op.Kind, res[1], b.left("good"), before)
		}
		if again := b.do(op)[0]; again.Err != nil || again.Anew != nil {
			b.Errorf("%d, kind %d: again: got %+v, want no more of it", i, op.Kind, again)
		}
		b.pass(2 * time.Minute)
	}
	// In a forecast the row counts as unused.
	b.put("g", "bad", row)
	ask := takeOf(need("bad", limiter.PerMinute(100), 1))
	if w := b.do(store.Op{Kind: store.OpForecast, Group: "g", Asks: []store.Op{ask}})[0].Waits; len(w) != 1 || w[0].For != 0 || w[0].Err != nil {
		b.Errorf("forecast: got %+v, want it to start now", w)
	}
}

func checkNewer(b *rowBench, row []byte) {
	b.put("g", "bad", row)
	good := takeOf(need("good", limiter.PerMinute(100), 1))
	for i, op := range rowOps() {
		before := b.left("good")
		res := b.do(good, op, op, good)
		if !res[0].OK || !res[3].OK || res[0].Err != nil || res[3].Err != nil || b.left("good") != before-2 {
			b.Errorf("%d, kind %d: those beside it got %+v and %+v, %d left of %d, want them granted and nothing else taken",
				i, op.Kind, res[0], res[3], b.left("good"), before)
		}
		for _, r := range res[1:3] {
			var e *store.RowError
			if !errors.As(r.Err, &e) || e.Group != "g" || e.Name != "bad" || e.Anew || !errors.Is(e, store.ErrNewer) || r.OK || r.Skipped || r.Anew != nil {
				b.Errorf("%d, kind %d: got %+v, want it failed for %v", i, op.Kind, r, store.ErrNewer)
			}
		}
		if got := b.get("g", "bad"); !slices.Equal(got, row) {
			b.Fatalf("%d, kind %d: the row is %x now, want %x", i, op.Kind, got, row)
		}
		b.pass(time.Minute)
	}
	asks := []store.Op{good, takeOf(need("bad", limiter.PerMinute(100), 1)), good}
	for i := range asks {
		asks[i].Line = 1
	}
	waits := b.do(store.Op{Kind: store.OpForecast, Group: "g", Asks: asks})[0].Waits
	if len(waits) != 3 || waits[0].Err != nil || !errors.Is(waits[1].Err, store.ErrNewer) || waits[2].Err != nil || waits[2].For != 0 {
		b.Errorf("forecast: got %+v, want the second alone to fail", waits)
	}
	b.put("g", "bad", nil)
	if res := b.do(takeOf(need("bad", limiter.PerMinute(100), 1)))[0]; !res.OK || res.Err != nil {
		b.Errorf("after it is gone: got %+v, want it granted", res)
	}
}

// checkAnyBytes changes bytes of good rows at random: no batch fails, and operations on
// other rows are done.
func checkAnyBytes(b *rowBench) {
	r := rand.New(rand.NewPCG(1, 2))
	limits := []limiter.Limit{
		limiter.PerMinute(100), {N: 100, Per: time.Second, Strict: true}, {N: 100, Per: time.Second, Law: limiter.Bucket},
		{N: 100, Per: time.Second, Law: limiter.Spaced}, {N: 100, Per: time.Second, Law: limiter.Sliding},
		{N: 100, Law: limiter.Calendar, Unit: limiter.Day},
	}
	good := takeOf(need("good", limiter.PerSecond(1000), 1))
	for i := range 600 {
		bad := takeOf(need("bad", limits[i%len(limits)], 1))
		bad.Reserve, bad.Audiences = 3, []string{"audience"}
		b.put("g", "bad", nil)
		b.do(bad, store.Op{Kind: store.OpLearn, Group: "g", Only: "bad", Learn: &store.Learn{Name: "n", Left: 9, Limit: 9, Reset: time.Minute, Started: b.now().UnixNano()}},
			store.Op{Kind: store.OpPause, Group: "g", Audience: "bad", Pause: &store.Pause{For: time.Millisecond}})
		row := slices.Clone(b.get("g", "bad"))
		for range 1 + r.IntN(3) {
			row[r.IntN(len(row))] = byte(r.IntN(256))
		}
		if r.IntN(4) == 0 {
			row = row[:r.IntN(len(row))]
		}
		b.put("g", "bad", row)
		b.pass(time.Second)
		res, err := b.Do(context.Background(), []store.Op{
			good, bad, {Kind: store.OpRead, Group: "g", Needs: bad.Needs},
			{Kind: store.OpForecast, Group: "g", Asks: []store.Op{bad, good}}, good,
		})
		if err != nil {
			b.Fatalf("%x: got %v", row, err)
		}
		if !res[0].OK || !res[4].OK || !reflect.DeepEqual([]int{len(res[0].Remaining), len(res[4].Remaining)}, []int{1, 1}) {
			b.Errorf("%x: those beside it got %+v and %+v, want them granted", row, res[0], res[4])
		}
	}
}
