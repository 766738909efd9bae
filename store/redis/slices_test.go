package redis_test

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/headway-go/headway/internal/law"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/store"
	"github.com/headway-go/headway/store/redis"
	"github.com/headway-go/headway/store/redis/internal/server"
	"github.com/redis/rueidis"
)

// oneRow implements store.Rows with a single row.
type oneRow struct{ row []byte }

func (r *oneRow) Get(string, string) ([]byte, error) { return r.row, nil }

func (r *oneRow) Put(_, _ string, row []byte, _ time.Time) error {
	r.row = append([]byte(nil), row...)
	return nil
}

// A window with too many starts to remember one by one remembers slices, also in the
// script.
func TestManyStartsInSlices(t *testing.T) {
	now := time.Date(2026, 3, 28, 22, 0, 0, 0, time.UTC)
	limit := limiter.Limit{N: 66_000, Per: time.Hour + 12345}
	spec := law.Spec{N: limit.N, Per: limit.Per}
	w := law.New(spec, time.Unix(0, 0))
	for range 65_550 {
		now = now.Add(50_000_001)
		w.Take(now.UnixNano(), 1)
	}
	own := law.Encode(nil, spec, w)
	row := binary.BigEndian.AppendUint32([]byte{1}, uint32(len(own)))
	row = append(append(row, own...), make([]byte, 12)...) // nothing in flight, reserved or announced
	mem := &oneRow{row}

	client := connect(t, server.Start(t).Addr)
	if err := client.Do(context.Background(), client.B().Set().Key("many:{g}0").Value(rueidis.BinaryString(row)).Build()).Error(); err != nil {
		t.Fatal(err)
	}
	once := &counted{Client: client}
	s, err := redis.New(context.Background(), redis.Config{Client: once, Prefix: "many:", Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	before := once.trips.Load()
	r := rand.New(rand.NewPCG(1, 1))
	const steps = 200
	var taken []store.Instant
	for step := range steps {
		op := take(limit)
		op.Audiences = nil
		switch n := r.IntN(4); {
		case n == 0 && len(taken) > 0:
			op.Kind, op.Needs[0].Taken = store.OpGive, taken[r.IntN(len(taken))]
			op.Taken = op.Needs[0].Taken
		case n == 1:
			op.Needs[0].Cost = 1 + r.Int64N(30)
		}
		got := do(t, s, op)
		want, err := store.Run(now, mem, []store.Op{op})
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("step %d, %+v: got\n%+v\nwant\n%+v, %v", step, op, got, want, err)
		}
		if got[0].OK {
			taken = append(taken, got[0].At)
		}
		now = now.Add(time.Duration(r.Int64N(int64(100 * time.Millisecond))))
	}
	if n := once.trips.Load() - before; n != steps {
		t.Errorf("%d round trips for %d decisions", n, steps)
	}
}
