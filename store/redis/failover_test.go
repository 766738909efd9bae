package redis_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/store"
	"github.com/headway-go/headway/store/redis/internal/server"
)

// A node of a Cluster fails, and its replica takes over: budgets on other nodes are not
// affected, and those on that node continue unchanged after the failover.
func TestFailover(t *testing.T) {
	nodes := server.Cluster(t, 1)
	s := open(t, connect(t, server.Addrs(nodes)...), nil)
	const groups = 30 // some on each node
	ops := func() (list []store.Op) {
		for i := range groups {
			op := take(limiter.PerHour(2))
			op.Group = strconv.Itoa(i)
			list = append(list, op)
		}
		return list
	}
	for i, res := range do(t, s, ops()...) {
		if !res.OK {
			t.Fatalf("group %d: got %+v, want it granted", i, res)
		}
	}
	nodes[0].Replicated(t) // the others are not killed
	nodes[0].Kill()
	for _, op := range ops() {
		var res []store.Result
		server.Await(t, "no replica takes over", func() (ok bool) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			read := store.Op{Kind: store.OpRead, Group: op.Group, Needs: op.Needs}
			var err error
			res, err = s.Do(ctx, []store.Op{read})
			return err == nil
		})
		if res[0].Remaining[0] != 1 {
			t.Errorf("group %s: %d left after the failover, want 1", op.Group, res[0].Remaining[0])
		}
	}
}
