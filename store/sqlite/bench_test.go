package sqlite

import (
	"context"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/store"
)

// The cost of a decision, beside that of a transaction that updates one row of a file
// with the same settings.
func BenchmarkDecision(b *testing.B) {
	open := func(b *testing.B) *Store {
		s, err := Open(Config{Path: filepath.Join(b.TempDir(), "x.db")})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { s.Close() })
		b.ReportAllocs()
		return s
	}
	ctx := context.Background()
	take := store.Op{Kind: store.OpTake, Group: "g", ID: 1, Needs: []store.Need{
		{Budget: "b", Limit: limiter.Limit{N: 1_000_000_000, Per: time.Second, Law: limiter.Bucket}, Cost: 1},
	}}
	b.Run("by=update", func(b *testing.B) {
		s := open(b)
		if _, err := s.Do(ctx, []store.Op{take}); err != nil {
			b.Fatal(err)
		}
		update, err := s.file.conn.PrepareContext(ctx, "UPDATE budget SET expires = ? WHERE family = 'g' AND name = 'b'")
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		for b.Loop() {
			n++
			if _, err := update.ExecContext(ctx, n); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, size := range []int{1, 8, 64} {
		b.Run("by=do/batch="+strconv.Itoa(size), func(b *testing.B) {
			s := open(b)
			ops := make([]store.Op, size)
			for i := range ops {
				ops[i] = take
			}
			for b.Loop() {
				if _, err := s.Do(ctx, ops); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "decisions/s")
		})
	}
	for _, callers := range []int{1, 64} {
		b.Run("by=quota/callers="+strconv.Itoa(callers), func(b *testing.B) {
			cfg := headway.Config{Store: open(b), Secret: []byte("s"), Policies: []headway.Policy{{
				Hosts: []string{"*"}, Rules: []headway.Rule{{Name: "r", Limit: take.Needs[0].Limit}},
			}}}
			q, err := headway.OpenQuota(cfg, "api.test", "r", "")
			if err != nil {
				b.Fatal(err)
			}
			var all sync.WaitGroup
			tickets := make(chan struct{}, callers)
			for range callers {
				all.Go(func() {
					for range tickets {
						if err := q.Wait(ctx, 1); err != nil {
							b.Error(err)
						}
					}
				})
			}
			for b.Loop() {
				tickets <- struct{}{}
			}
			close(tickets)
			all.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
		})
	}
}
