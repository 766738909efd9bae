package headway_test

import (
	"context"
	"testing"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/store"
)

// slowStore answers from some instant on after a delay.
type slowStore struct {
	store.Memory
	from  time.Time
	delay time.Duration
}

func (s *slowStore) Do(ctx context.Context, ops []store.Op) ([]store.Result, error) {
	if !time.Now().Before(s.from) {
		time.Sleep(s.delay)
	}
	return s.Memory.Do(ctx, ops)
}

// MaxWait ends a wait on time also while the store is asked: what it grants later
// goes back.
func TestMaxWaitDuringARoundTrip(t *testing.T) {
	st := new(slowStore)
	playConfig(t, headway.Config{Policies: limits(limiter.PerMinute(1)), Store: st, Secret: []byte("x")}, func(s *scene) {
		st.delay, st.from = 1500*time.Millisecond, s.base.epoch.Add(2*time.Second)
		s.send("A", ask{})
		w := s.send("W", ask{call: headway.Call{MaxWait: 61 * time.Second}}) // the store is asked from 60 s to 61.5 s
		s.until(3 * time.Second)
		x := s.send("X", ask{})
		y := s.send("Y", ask{call: headway.Call{MaxWait: 10 * time.Minute}})
		s.all.Wait()
		if e, isThrottled := w.err.(*headway.ThrottledError); !isThrottled || !e.AtLeast || w.after != 61*time.Second {
			s.Errorf("got %v after %v, want a refusal after 61 s", w.err, w.after)
		}
		if x.err != nil || x.after > 2*time.Minute || y.err != nil || y.after > 3*time.Minute {
			s.Errorf("the unit of the one that was refused is lost: %v after %v, %v after %v", x.err, x.after, y.err, y.after)
		}
		time.Sleep(2 * time.Second) // the store is done
		wantIdle(s.T, s.Transport)
	})
}
