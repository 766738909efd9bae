package storeline

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway/internal/line"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/store"
)

// distant is a store that decides after 2 ms, and whose results arrive after 2 ms more. It
// notes its round trips.
type distant struct {
	store.Memory
	epoch time.Time
	mu    sync.Mutex // guards trips
	trips []string
}

func (s *distant) at() int64 { return time.Since(s.epoch).Milliseconds() }

func (s *distant) Do(ctx context.Context, ops []store.Op) ([]store.Result, error) {
	trip := fmt.Sprintf("%d:", s.at())
	time.Sleep(2 * time.Millisecond)
	results, err := s.Memory.Do(ctx, ops)
	for i, op := range ops {
		switch r := results[i]; {
		case op.Kind == store.OpForecast:
			for _, w := range r.Waits {
				trip += fmt.Sprintf(" forecast %d", w.For.Milliseconds())
			}
		case r.OK:
			trip += fmt.Sprintf(" take, %d left", r.Remaining[0])
		default:
			trip += fmt.Sprintf(" take, not before %d", (r.Wait.At-s.epoch.UnixNano())/1e6)
		}
	}
	s.mu.Lock()
	s.trips = append(s.trips, trip)
	s.mu.Unlock()
	time.Sleep(2 * time.Millisecond)
	return results, err
}

// What the package's documentation says of its example is what happens.
func TestExampleOfTheDocumentation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &distant{epoch: time.Now()}
		p := &Plan{Limits: map[string]limiter.Limit{"b": {N: 3, Per: time.Second}}}
		var all sync.WaitGroup
		var mu sync.Mutex // guards got
		var got []string
		var lines [2]*Line
		for i := range lines {
			lines[i] = (&Client{Store: s, Max: 9}).Line(nil, "g", func() *Plan { return p })
		}
		enter := func(l *Line, name string, at, maxWait time.Duration) {
			all.Go(func() {
				time.Sleep(at * time.Millisecond)
				g, r, err := l.Enter(t.Context(), &Ask{Needs: []Need{{"b", 1}}, MaxWait: maxWait})
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err != nil:
					t.Error(err)
				case r != nil:
					got = append(got, fmt.Sprintf("%s refused at %d: %d", name, s.at(), r.RetryAfter.Milliseconds()))
					if r.Reason != line.ByLimit || r.AtLeast {
						t.Errorf("%s is refused with %+v, want the limit, exactly", name, *r)
					}
				default:
					got = append(got, fmt.Sprintf("%s starts at %d", name, s.at()))
					l.Sent(g)
					l.Done(g)
				}
			})
		}
		enter(lines[0], "a1", 0, -1)
		enter(lines[0], "a2", 1, -1)
		enter(lines[0], "a3", 2, -1)
		enter(lines[1], "b1", 10, -1)
		enter(lines[1], "b2", 20, 500*time.Millisecond)
		all.Wait()
		if want := []string{"a1 starts at 4", "a2 starts at 8", "a3 starts at 8", "b2 refused at 24: 984", "b1 starts at 1008"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if want := []string{
			"0: take, 2 left", "4: take, 1 left take, 0 left", "10: take, not before 1002",
			"20: forecast 980 forecast 984", "1004: take, 2 left",
		}; !slices.Equal(s.trips, want) {
			t.Errorf("the round trips are %q, want %q", s.trips, want)
		}
	})
}
