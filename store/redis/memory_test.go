package redis_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/store"
	"github.com/headway-go/headway/store/redis/internal/server"
)

// The server's memory for a budget, in bytes by MEMORY USAGE: the key and the row, but
// not the expiry. The package's documentation has these numbers.
func TestMemoryOfABudget(t *testing.T) {
	srv := server.Start(t)
	s := open(t, connect(t, srv.Addr), nil)
	for i, tc := range []struct {
		limit  limiter.Limit
		starts int
		most   int
	}{
		{limiter.Limit{N: 100, Per: time.Hour, Law: limiter.Bucket}, 100, 240},
		{limiter.Limit{N: 1000, Per: time.Hour, Law: limiter.Spaced}, 1, 192},
		{limiter.Limit{N: 100, Per: time.Hour, Law: limiter.Sliding}, 100, 160},
		{limiter.Limit{N: 100, Law: limiter.Calendar, Unit: limiter.Month}, 100, 160},
		{limiter.Limit{N: 100, Per: time.Hour}, 1, 176},
		{limiter.Limit{N: 100, Per: time.Hour}, 100, 1848},
		{limiter.Limit{N: 1000, Per: time.Hour}, 1000, 20_600},
		{limiter.Limit{N: 100, Per: time.Hour, Strict: true}, 100, 2624},
	} {
		op := take(tc.limit)
		op.Audiences, op.Needs[0].Budget = nil, strconv.Itoa(i)
		for n := range tc.starts {
			op.ID = uint64(n + 1)
			do(t, s, op)
		}
		key := srv.CLI(t, "keys", "*{g}"+strconv.Itoa(i))
		used, err := strconv.Atoi(srv.CLI(t, "memory", "usage", key))
		if err != nil || used > tc.most || used < tc.most/2 {
			t.Errorf("%v after %d starts: %d bytes, %v; want at most %d, and more than half", tc.limit, tc.starts, used, err, tc.most)
		}
		t.Logf("%v after %d starts: %d bytes", tc.limit, tc.starts, used)
	}
	for kind, most := range map[uint8]int{1: 592, 2: 592, 4: 592 + 16*100} {
		learn := store.Op{Kind: store.OpLearn, Group: "g", Audience: "announced " + strconv.Itoa(int(kind)), Learn: &store.Learn{
			Name: "requests", Left: 900, Limit: 1000, Reset: 30 * time.Second, Period: time.Hour, Resets: kind, Started: time.Now().UnixNano(), Own: 1, Source: "github",
		}}
		do(t, s, learn)
		for range 100 {
			do(t, s, store.Op{Kind: store.OpTake, Group: "g", Audiences: []string{learn.Audience}})
		}
		used, err := strconv.Atoi(srv.CLI(t, "memory", "usage", srv.CLI(t, "keys", "*{g}"+learn.Audience)))
		if err != nil || used > most || used < most/2 {
			t.Errorf("an announced limit of kind %d: %d bytes, %v; want at most %d, and more than half", kind, used, err, most)
		}
		t.Logf("an announced limit of kind %d: %d bytes", kind, used)
	}
}
