package storeline

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway/internal/line"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/store"
)

// slow is a store that returns after 1 s.
type slow struct{ store.Memory }

func (s *slow) Do(ctx context.Context, ops []store.Op) ([]store.Result, error) {
	time.Sleep(time.Second)
	return s.Memory.Do(ctx, ops)
}

// The journal of a request that gives up while the store works is its own from then on,
// though the line still waits for the result of its take.
func TestAJournalEndsWithItsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Client{Store: new(slow), Max: 9}
		p := &Plan{Limits: map[string]limiter.Limit{"b": {N: 1, Per: 10 * time.Second}}}
		l := c.Line(nil, "g", func() *Plan { return p })
		defer l.Unuse()
		enter := func(ctx context.Context, j *line.Journal) (*Grant, error) {
			g, _, err := l.Enter(ctx, &Ask{Needs: []Need{{Budget: "b", Cost: 1}}, MaxWait: -1, Journal: j})
			return g, err
		}
		start := func() {
			if g, err := enter(t.Context(), new(line.Journal)); err != nil {
				t.Error(err)
			} else {
				l.Sent(g)
				l.Done(g)
			}
		}
		start() // takes the only unit at 1 s
		go start()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10500*time.Millisecond, cancel) // at 11.5 s, while both are asked for
		j := new(line.Journal)
		if _, err := enter(ctx, j); err != context.Canceled {
			t.Errorf("got %v, want %v", err, context.Canceled)
		}
		was := *j
		time.Sleep(3 * time.Second)
		if j.Head != was.Head || j.FirstResponse != was.FirstResponse || j.Late != was.Late || len(j.Pauses) != len(was.Pauses) {
			t.Errorf("it was %+v, and is %+v", was, *j)
		}
		time.Sleep(time.Minute)
	})
}
