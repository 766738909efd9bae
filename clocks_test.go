package headway_test

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/internal/awake"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/store"
)

// TestCalendarInDecemberOfALeapYear: golang/go 81583. Where a rule continues the
// data of a time zone, its year ends before the last day of a leap year does: 2000
// with Go's own data, 2040 with that of most systems. A request that waits for
// the new year starts in the first instant of it.
func TestCalendarInDecemberOfALeapYear(t *testing.T) {
	for _, unit := range []limiter.Unit{limiter.Day, limiter.Week, limiter.Month} {
		for _, year := range []int{2000, 2040} {
			t.Run(fmt.Sprint(unit, year), func(t *testing.T) {
				loc, err := time.LoadLocation("America/New_York")
				if err != nil {
					t.Fatal(err)
				}
				play(t, limits(limiter.Limit{N: 1, Law: limiter.Calendar, Unit: unit, Location: loc}), func(s *scene) {
					next := time.Date(year+1, 1, 1, 0, 0, 0, 0, loc) // in 2001 a Monday
					if unit == limiter.Week && year == 2040 {
						next = time.Date(2040, 12, 31, 0, 0, 0, 0, loc)
					}
					s.until(next.Add(-20 * time.Hour).Sub(s.base.epoch))
					s.sendAll(ask{}, "A", "B")
					s.wantStarts(fmt.Sprintf("A@%v B@%v", next.Add(-20*time.Hour).Sub(s.base.epoch), next.Sub(s.base.epoch)))
				})
			})
		}
	}
}

// The machine sleeps: Go's monotonic clock, and so the time of a bubble and its
// timers, stand still. Whoever waits looks again within a minute of waking. These
// are golang/go 35012 and zrepl/zrepl 611: a timer of an hour, started before a
// laptop sleeps for eight, needs an hour more when it wakes.

// throttleFirst answers the first request with a 429 and its Retry-After.
func throttleFirst(after string) func(*http.Request) (*http.Response, error) {
	var n atomic.Int32
	return func(req *http.Request) (*http.Response, error) {
		resp := ok(req)
		if n.Add(1) == 1 {
			resp.StatusCode = 429
			resp.Header.Set("Retry-After", after)
		}
		return resp, nil
	}
}

func TestSleepEndsAPause(t *testing.T) {
	play(t, limits(limiter.PerSecond(100)), func(s *scene) {
		s.base.answer = throttleFirst("7200")
		s.sendAll(ask{}, "A", "B")
		s.until(10*time.Minute + 30*time.Second)
		awake.Pretend(s, 8*time.Hour)
		s.wantStarts("A@0s B@11m0s")
	})
	t.Run("date", func(t *testing.T) {
		play(t, limits(limiter.PerSecond(100)), func(s *scene) {
			s.base.answer = throttleFirst(time.Now().Add(2 * time.Hour).UTC().Format(http.TimeFormat))
			s.sendAll(ask{}, "A", "B")
			s.until(10*time.Minute + 30*time.Second)
			awake.Pretend(s, 8*time.Hour)
			s.wantStarts("A@0s B@11m0s")
		})
	})
	t.Run("not yet", func(t *testing.T) {
		play(t, limits(limiter.PerSecond(100)), func(s *scene) {
			s.base.answer = throttleFirst("7200")
			s.sendAll(ask{}, "A", "B")
			s.until(10*time.Minute + 30*time.Second)
			awake.Pretend(s, time.Hour)
			s.wantStarts("A@0s B@1h0m0s")
		})
	})
	t.Run("somebody comes", func(t *testing.T) {
		play(t, limits(limiter.PerSecond(100)), func(s *scene) {
			s.base.answer = throttleFirst("7200")
			s.sendAll(ask{}, "A", "B")
			s.until(10*time.Minute + 30*time.Second)
			awake.Pretend(s, 8*time.Hour)
			s.send("C", ask{})
			s.wantStarts("A@0s B@10m30s C@10m30s")
		})
	})
}

// What was used before the machine slept comes back, and what is used after it
// counts in full: nothing starts early, whoever notices first that it has slept.
func TestSleepAgesBudgets(t *testing.T) {
	day := 24 * time.Hour
	for name, l := range map[string]limiter.Limit{
		"window":  limiter.PerDay(1),
		"bucket":  {N: 1, Per: day, Law: limiter.Bucket},
		"spaced":  limiter.Every(day),
		"strict":  {N: 1, Per: day, Strict: true},
		"sliding": {N: 1, Per: day / 2, Law: limiter.Sliding},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, limits(l), func(s *scene) {
				s.sendAll(ask{}, "A", "B")
				s.until(time.Hour + 30*time.Second)
				awake.Pretend(s, 50*time.Hour)
				s.until(2 * time.Hour)
				s.send("C", ask{call: headway.Call{MaxWait: headway.NoWait}})
				s.wantStarts("A@0s B@1h1m0s")
			})
			play(t, limits(l), func(s *scene) {
				s.send("A", ask{})
				s.until(time.Hour)
				awake.Pretend(s, 50*time.Hour)
				b := s.send("B", ask{call: headway.Call{MaxWait: headway.NoWait}})
				c := s.send("C", ask{call: headway.Call{MaxWait: headway.NoWait}})
				s.wantStarts("A@0s B@1h0m0s")
				if b.err != nil || c.err == nil {
					s.Errorf("B: %v, C: %v; want B alone to start", b.err, c.err)
				}
			})
		})
	}
}

// The borders of a calendar are the wall clock's: a request that waits for one looks at it
// again each minute, since it may have gone on while the machine slept, or been
// set.
func TestSleepAndCalendars(t *testing.T) {
	l := limiter.Limit{N: 1, Law: limiter.Calendar, Unit: limiter.Day} // a bubble begins at midnight
	for name, c := range map[string]struct {
		change func(*scene)
		want   string
	}{
		"sleep":       {func(s *scene) { awake.Pretend(s, 30*time.Hour) }, "A@0s B@1h1m0s"},
		"short sleep": {func(s *scene) { awake.Pretend(s, 10*time.Hour) }, "A@0s B@14h0m0s"},
		"set forward": {func(s *scene) { awake.PretendSet(s, 30*time.Hour) }, "A@0s B@1h1m0s"},
		"set back":    {func(s *scene) { awake.PretendSet(s, -30*time.Minute) }, "A@0s B@24h30m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, limits(l), func(s *scene) {
				s.sendAll(ask{}, "A", "B")
				s.until(time.Hour + 30*time.Second)
				c.change(s)
				s.wantStarts(c.want)
			})
		})
	}
}

// Setting the wall clock moves nothing else.
func TestSetClockMovesNoPause(t *testing.T) {
	for _, by := range []time.Duration{-87_600 * time.Hour, 87_600 * time.Hour} {
		play(t, limits(limiter.PerDay(1)), func(s *scene) {
			s.base.answer = throttleFirst(time.Now().Add(2 * time.Hour).UTC().Format(http.TimeFormat))
			s.sendAll(ask{}, "A", "B")
			s.until(time.Hour)
			awake.PretendSet(s, by)
			s.until(90 * time.Minute)
			if d, err := s.Delay(ask{}.request("D")); d != 46*time.Hour+30*time.Minute || err != nil {
				s.Errorf("another would wait for %v, %v", d, err)
			}
			s.wantStarts("A@0s B@24h0m0s")
		})
	}
}

// A wait budget goes on while the machine sleeps.
func TestSleepCountsAsWaiting(t *testing.T) {
	p := limits(limiter.PerSecond(100))
	p[0].MaxInFlight, p[0].MaxWait = 1, 3*time.Hour
	play(t, p, func(s *scene) {
		s.base.latency = 20 * time.Hour
		s.send("A", ask{})
		b := s.send("B", ask{})
		s.until(time.Hour + 30*time.Second)
		awake.Pretend(s, 8*time.Hour)
		s.until(time.Hour + time.Minute)
		if b.err == nil {
			s.Errorf("B waits, want it refused: its 3h are over")
		}
	})
}

// Starts that were reserved before the machine slept are the store's again.
func TestSleepEndsReservations(t *testing.T) {
	var slept atomic.Int64
	disk := &store.Memory{Now: func() time.Time { return time.Now().Add(time.Duration(slept.Load())) }}
	p := limits(limiter.Limit{N: 4, Per: time.Hour})
	p[0].Store.Batch = 10
	playConfig(t, headway.Config{Policies: p, Store: disk, Secret: []byte("of the scenes")}, func(s *scene) {
		s.send("A", ask{}) // and one is set aside
		s.until(100 * time.Millisecond)
		awake.Pretend(s, 8*time.Hour)
		slept.Add(int64(8 * time.Hour))
		s.sendAll(ask{}, "B", "C", "D", "E", "F")
		s.until(time.Second)
		if n := len(s.base.starts()); n != 5 {
			s.Errorf("%d starts, want A before the machine slept and 4 after it: %v", n, s.base.starts())
		}
	})
}

// setBack counts the events that say so.
type setBack struct{ n atomic.Int32 }

func (s *setBack) Observe(_ context.Context, e headway.Event) {
	if e.Kind == headway.EventStoreClock {
		s.n.Add(1)
	}
}

// A store whose clock was ten years ahead for a while has room again one period after
// it was set right, and the observer receives it. These are sethvargo/go-limiter 41 (a
// clock that is set back empties a bucket for good), JSONbored/loopover 5855 (half a
// second back on a window of a minute is a wait of minutes) and
// jhurliman/node-rate-limiter 48 (the interval never ends).
func TestStoreClockSetBack(t *testing.T) {
	for name, c := range map[string]struct {
		limit limiter.Limit
		by    time.Duration
		want  string
	}{
		"window":         {limiter.PerMinute(1), 87_600 * time.Hour, "A@0s B@1m10s"},
		"bucket":         {limiter.Limit{N: 1, Per: time.Minute, Law: limiter.Bucket}, 87_600 * time.Hour, "A@0s B@1m10s"},
		"spaced":         {limiter.Every(time.Minute), 87_600 * time.Hour, "A@0s B@1m10s"},
		"sliding":        {limiter.Limit{N: 1, Per: 30 * time.Second, Law: limiter.Sliding}, 87_600 * time.Hour, "A@0s B@1m10s"},
		"calendar":       {limiter.Limit{N: 1, Law: limiter.Calendar, Unit: limiter.Minute}, 87_600 * time.Hour, "A@0s B@1m0s"},
		"half a second":  {limiter.PerMinute(1), 10*time.Second + time.Second/2, "A@0s B@1m10s"},
		"within a start": {limiter.PerMinute(1), 5 * time.Second, "A@0s B@1m5s"},
	} {
		t.Run(name, func(t *testing.T) {
			var ahead atomic.Int64
			ahead.Store(int64(c.by))
			disk := &store.Memory{Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }}
			var set setBack
			cfg := headway.Config{Policies: limits(c.limit), Store: disk, Secret: []byte("of the scenes"), Observer: &set}
			playConfig(t, cfg, func(s *scene) {
				s.send("A", ask{})
				s.until(10 * time.Second)
				ahead.Store(0)
				b := s.send("B", ask{})
				s.wantStarts(c.want)
				if b.err != nil {
					s.Error(b.err)
				}
			})
			want := int32(0)
			if c.by > 11*time.Second {
				want = 1
			}
			if got := set.n.Load(); got != want {
				t.Errorf("%d events of the clock, want %d", got, want)
			}
		})
	}
}

// A slow store decides at once, and answers a second later.
type slow struct{ store.Memory }

func (s *slow) Do(ctx context.Context, ops []store.Op) ([]store.Result, error) {
	results, err := s.Memory.Do(ctx, ops)
	time.Sleep(time.Second)
	return results, err
}

// What a store granted before the machine slept is not used after it: it may no
// longer count. It goes back.
func TestSleepEndsAGrant(t *testing.T) {
	p := limits(limiter.PerDay(1))
	p[0].Store.Down = headway.StoreDownRefuse
	playConfig(t, headway.Config{Policies: p, Store: new(slow), Secret: []byte("of the scenes")}, func(s *scene) {
		a := s.send("A", ask{})
		s.until(time.Second / 2)
		awake.Pretend(s, 8*time.Hour)
		s.until(10 * time.Second)
		if e, ok := a.err.(*headway.ThrottledError); !ok || e.Reason != limiter.ReasonStore {
			s.Errorf("A: got %v, want it refused since the store answered too late", a.err)
		}
		s.send("B", ask{}) // finds out that the store is there
		s.until(20 * time.Second)
		s.send("C", ask{})
		s.wantStarts("C@21s")
	})
}
