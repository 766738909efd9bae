package redis_test

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/store"
	"github.com/headway-go/headway/store/redis/internal/server"
)

// The cost of a request under a Bucket and a limit that the server announces: of its start,
// and of both its start and what its response announces. One request a second starts, so that
// 60 count. The server's own time is in µs by its CPU.
func BenchmarkAnnounced(b *testing.B) {
	for _, kind := range []struct {
		name string
		said *store.Learn
	}{
		{"none", nil},
		{"counter", &store.Learn{Left: 900, Limit: 1000, Reset: 30 * time.Second, Period: time.Minute, Resets: 1}},
		{"rolling", &store.Learn{Left: 900, Limit: 1000, Reset: -1, Period: time.Minute, Resets: 4}},
		{"filling", &store.Learn{Left: 900, Limit: 1000, Reset: time.Second, Period: time.Minute, Resets: 2}},
	} {
		for _, every := range []int{1, 50} { // so many starts have a response
			b.Run(fmt.Sprintf("kind=%s/starts=%d", kind.name, every), func(b *testing.B) {
				now := time.Unix(1_800_000_000, 0)
				srv := server.Start(b)
				s := open(b, connect(b, srv.Addr), func() time.Time { return now })
				request := func(n int) {
					now = now.Add(time.Second)
					op := take(limiter.Limit{N: 1_000_000, Per: time.Hour, Law: limiter.Bucket})
					res := do(b, s, op)[0]
					l := kind.said
					if l == nil || n%every > 0 {
						return
					}
					l.Started, l.Own, l.Mark = res.At, 1, store.Mark{}
					if len(res.Marks) > 0 {
						l.Mark = res.Marks[0]
					}
					do(b, s, store.Op{Kind: store.OpLearn, Group: op.Group, Audience: op.Audiences[0], Learn: l})
				}
				for n := range 100 {
					request(n)
				}
				before := cpuTime(b, srv)
				n := 0
				for ; b.Loop(); n++ {
					request(n)
				}
				b.ReportMetric(float64((cpuTime(b, srv)-before).Microseconds())/float64(n), "server-µs/op")
			})
		}
	}
}

// cpuTime returns how much time of its processors the server has used.
func cpuTime(b *testing.B, srv *server.Server) (sum time.Duration) {
	for _, m := range regexp.MustCompile(`(?m)^used_cpu_(?:user|sys):([\d.]+)`).FindAllStringSubmatch(srv.CLI(b, "info", "cpu"), -1) {
		s, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(s * float64(time.Second))
	}
	return sum
}
