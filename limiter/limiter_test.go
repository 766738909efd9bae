package limiter_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata"

	"github.com/headway-go/headway/limiter"
)

func mustNew(t testing.TB, limits ...limiter.Limit) *limiter.Limiter {
	t.Helper()
	l, err := limiter.New(limits...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// A run holds the calls of one Limiter within a bubble, in the order in which they
// came. Each is in line, or has started, before the next comes.
type run struct {
	t     testing.TB
	l     *limiter.Limiter
	t0    time.Time
	calls []*call
}

// A call is one Wait; all fields but the first are set when it is over.
type call struct {
	cancel context.CancelFunc
	over   bool
	at     time.Duration // since the run began
	err    error
}

func start(t testing.TB, l *limiter.Limiter) *run { return &run{t: t, l: l, t0: time.Now()} }

// join lets n callers come now.
func (r *run) join(n int, cost int64) []*call {
	for range n {
		r.joinCtx(context.Background(), cost)
	}
	return r.calls[len(r.calls)-n:]
}

func (r *run) joinCtx(ctx context.Context, cost int64) *call {
	ctx, cancel := context.WithCancel(ctx)
	c := &call{cancel: cancel}
	r.calls = append(r.calls, c)
	go func() {
		defer cancel()
		c.err = r.l.Wait(ctx, cost)
		c.at, c.over = time.Since(r.t0), true
	}()
	synctest.Wait()
	return c
}

// at sleeps until d after the beginning.
func (r *run) at(d time.Duration) {
	time.Sleep(d - time.Since(r.t0))
	synctest.Wait()
}

// want waits until no caller waits, and compares the starts with seconds, in the order
// of arrival.
func (r *run) want(seconds ...float64) {
	r.t.Helper()
	synctest.Wait()
	for r.l.Waiting() > 0 {
		time.Sleep(time.Hour)
		synctest.Wait()
	}
	var got, want []time.Duration
	for _, c := range r.calls {
		if c.err != nil {
			r.t.Errorf("Wait: %v", c.err)
		}
		got = append(got, c.at)
	}
	for _, s := range seconds {
		want = append(want, time.Duration(math.Round(s*1e9)))
	}
	if !slices.Equal(got, want) {
		r.t.Errorf("starts\n %v, want\n %v", got, want)
	}
}

func bubble(t *testing.T, f func(t *testing.T)) { t.Helper(); synctest.Test(t, f) }

func refusal(t testing.TB, err error) *limiter.Refusal {
	t.Helper()
	var r *limiter.Refusal
	if !errors.As(err, &r) {
		t.Fatalf("got error %v, want a *Refusal", err)
	}
	return r
}

// rep is the same number n times.
func rep(n int, s float64) []float64 { return slices.Repeat([]float64{s}, n) }

var (
	perTen = limiter.Limit{N: 2, Per: 10 * time.Second}
	second = limiter.Every(time.Second)
)

// TestStarts is the statements in which some come together and start when they
// may.
func TestStarts(t *testing.T) {
	for _, c := range []struct {
		name   string
		limits []limiter.Limit
		n      int
		cost   int64
		want   []float64
	}{
		{"S1 window", []limiter.Limit{perTen}, 5, 1, []float64{0, 0, 10, 10, 20}},
		{"S26 spaced", []limiter.Limit{second}, 10, 1, []float64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}},
		{"S23 first burst", []limiter.Limit{{N: 1, Per: time.Second, Law: limiter.Bucket, Burst: 3}}, 5, 1, []float64{0, 0, 0, 1, 2}},
		{"S27 spaced and window", []limiter.Limit{second, limiter.PerMinute(3)}, 7, 1, []float64{0, 1, 2, 60, 61, 62, 120}},
		{"C50 two windows", []limiter.Limit{limiter.PerSecond(2), limiter.PerMinute(3)}, 5, 1, []float64{0, 0, 1, 60, 60}},
		{"calendar", []limiter.Limit{{N: 2, Law: limiter.Calendar, Unit: limiter.Minute}}, 5, 1, []float64{0, 0, 60, 60, 120}},
		{"sliding", []limiter.Limit{{N: 2, Per: 10 * time.Second, Law: limiter.Sliding}}, 4, 1, []float64{0, 0, 15, 20}},
		{"cost", []limiter.Limit{limiter.PerSecond(10)}, 4, 4, []float64{0, 0, 1, 1}},
		{"strict changes nothing", []limiter.Limit{{N: 2, Per: 10 * time.Second, Strict: true}}, 3, 1, []float64{0, 0, 10}},
		{"no limit", nil, 3, 1000, []float64{0, 0, 0}},
		{"cost zero", []limiter.Limit{limiter.PerSecond(1)}, 3, 0, []float64{0, 0, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := start(t, mustNew(t, c.limits...))
				r.join(c.n, c.cost)
				r.want(c.want...)
			})
		})
	}
}

func TestS2_RollingNotAligned(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, mustNew(t, perTen))
		r.join(1, 1)
		r.at(6 * time.Second)
		r.join(1, 1)
		r.at(7 * time.Second)
		r.join(2, 1)
		r.want(0, 6, 10, 16)
	})
}

func TestS3_IdleKeyTakesNTogether(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, mustNew(t, limiter.PerMinute(50)))
		r.at(90 * time.Second)
		r.join(51, 1)
		r.want(append(rep(50, 90), 150)...)
	})
}

func TestC53_LateBurst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, mustNew(t, limiter.PerSecond(5)))
		r.at(999 * time.Millisecond)
		r.join(10, 1)
		r.want(append(rep(5, .999), rep(5, 1.999)...)...)
	})
}

// TestS6_OldestFirst: X waits, and room appears at the instant at which Y comes.
func TestS6_OldestFirst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := mustNew(t, second)
		r := start(t, l)
		r.join(2, 1)
		time.Sleep(time.Second) // X's timer, and this goroutine, run at 1 s
		if l.Allow(1) {
			t.Error("Y took X's place")
		}
		r.join(1, 1)
		r.want(0, 1, 2)
	})
}

func TestS7_CancelledWaiterFreesItsPlace(t *testing.T) {
	for _, law := range []limiter.Limit{second, limiter.PerSecond(1), {N: 1, Per: time.Second, Law: limiter.Bucket}} {
		t.Run(law.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := start(t, mustNew(t, law))
				r.join(1, 1)
				r.join(3, 1)[0].cancel()
				synctest.Wait()
				if c := r.calls[1]; !c.over || c.err != context.Canceled || c.at != 0 {
					t.Errorf("the cancelled one: %+v, want the plain context error at once", c)
				}
				if d := r.l.Delay(1); d != 3*time.Second {
					t.Errorf("the next would wait %v, want 3s", d)
				}
				r.calls = slices.Delete(r.calls, 1, 2)
				r.want(0, 1, 2)
			})
		})
	}
}

// S7: of 1,000 callers in line at 100 per s, the first 500 leave: the last one starts
// after 5 s, and the next to arrive 10 ms later.
func TestS7_HalfOfTheLineLeaves(t *testing.T) {
	const n = 1000
	for _, l := range []limiter.Limit{
		{N: 100, Per: time.Second, Law: limiter.Bucket, Burst: 1},
		{N: 1, Per: 10 * time.Millisecond},
		limiter.Every(10 * time.Millisecond),
	} {
		t.Run(l.Law.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := start(t, mustNew(t, l))
				r.l.Spend(1)
				for _, c := range r.join(n, 1)[:n/2] {
					c.cancel()
					synctest.Wait()
				}
				r.calls = r.calls[n/2:]
				r.join(1, 1)
				var want []float64
				for i := range n/2 + 1 {
					want = append(want, (time.Duration(i+1) * 10 * time.Millisecond).Seconds())
				}
				r.want(want...)
				if last, newcomer := r.calls[n/2-1].at, r.calls[n/2].at; last != 5*time.Second || newcomer != 5010*time.Millisecond {
					t.Errorf("the last started after %v, the newcomer after %v, want 5s and 5.01s", last, newcomer)
				}
			})
		})
	}
}

func TestS9_LongLine(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, mustNew(t, limiter.PerSecond(10)))
		r.join(2500, 1)
		var want []float64
		for i := range 2500 {
			want = append(want, float64(i/10))
		}
		r.want(want...)
	})
}

func TestS10_RaisedLimitCountsPastStarts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := mustNew(t, limiter.Limit{N: 1, Per: 10 * time.Second})
		r := start(t, l)
		r.join(11, 1)
		r.at(3 * time.Second)
		if err := l.SetLimits(limiter.Limit{N: 5, Per: 10 * time.Second}); err != nil {
			t.Fatal(err)
		}
		r.want(0, 3, 3, 3, 3, 10, 13, 13, 13, 13, 20)
	})
}

func TestS11_RemovedLimit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := mustNew(t, limiter.PerHour(1))
		r := start(t, l)
		r.join(4, 1)
		r.at(time.Second)
		if err := l.SetLimits(); err != nil {
			t.Fatal(err)
		}
		r.want(0, 1, 1, 1)
		if got := l.Remaining(); got != math.MaxInt64 {
			t.Errorf("%d left without limits", got)
		}
	})
	t.Run("paused too", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			l := mustNew(t, limiter.PerHour(1))
			r := start(t, l)
			r.join(3, 1)
			l.PauseUntil(time.Now().Add(5 * time.Second))
			if err := l.SetLimits(); err != nil {
				t.Fatal(err)
			}
			r.want(0, 5, 6) // gently: one per second at most
		})
	})
}

// TestMoreLimits: callers in line need added limits, too.
func TestMoreLimits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := mustNew(t, limiter.PerSecond(1))
		r := start(t, l)
		r.join(4, 1)
		if err := l.SetLimits(limiter.PerSecond(1), limiter.Limit{N: 1, Per: 10 * time.Second}); err != nil {
			t.Fatal(err)
		}
		if d := l.Delay(1); d != 31*time.Second {
			t.Errorf("the next would wait %v, want 31s", d)
		}
		r.want(0, 1, 11, 21)
	})
}

func TestLoweredLimitRefusesLateCallers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := mustNew(t, limiter.PerSecond(1))
		r := start(t, l)
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		r.join(1, 1)
		a, b := r.joinCtx(ctx, 1), r.joinCtx(ctx, 1)
		if err := l.SetLimits(limiter.Limit{N: 1, Per: 6 * time.Second}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if !b.over || b.at != 0 {
			t.Fatalf("b is not refused at once: %+v", b)
		}
		if e := refusal(t, b.err); e.RetryAfter != 12*time.Second || e.Err != context.DeadlineExceeded {
			t.Errorf("refusal %+v, want 12s and the deadline's error", e)
		}
		r.at(6 * time.Second)
		if a.at != 6*time.Second || a.err != nil {
			t.Errorf("a: %+v, want a start at 6s", a)
		}
	})
}

func TestS20_BucketLevel(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := mustNew(t, limiter.Limit{N: 10, Per: time.Second, Law: limiter.Bucket, Burst: 100})
		for _, step := range []struct {
			sleep time.Duration
			cost  int64
			ok    bool
			left  int64
		}{
			{0, 1, true, 99},
			{0, 5, true, 94},
			{0, 91, true, 3},
			{0, 5, false, 3},
			{0, 3, true, 0},
			{3 * time.Second, 0, true, 30}, // S21
			{6500 * time.Millisecond, 0, true, 95},
			{time.Second, 0, true, 100}, // not 105
			{0, 101, false, 100},        // S22
			{0, 99, true, 1},
			{0, 1, true, 0},
			{0, 1, false, 0},
		} {
			time.Sleep(step.sleep)
			if ok := l.Allow(step.cost); ok != step.ok {
				t.Errorf("%+v: admitted %v", step, ok)
			}
			if got := l.Remaining(); got != step.left {
				t.Errorf("%+v: %d left", step, got)
			}
		}
		if d := l.Delay(101); d != limiter.Never {
			t.Errorf("a cost of 101 of 100 would wait %v, want for ever", d)
		}
		l.Spend(7)
		if got := l.Remaining(); got != -7 {
			t.Errorf("%d left, want -7", got)
		}
	})
}

func TestS24_SlidingEstimate(t *testing.T) {
	for used, ok := range map[int64]bool{50: true, 74: false} {
		bubble(t, func(t *testing.T) {
			l := mustNew(t, limiter.Limit{N: 100, Per: time.Minute, Law: limiter.Sliding})
			l.Spend(80)
			time.Sleep(time.Minute)
			l.Spend(used)
			time.Sleep(40 * time.Second)
			if got := l.Allow(1); got != ok {
				t.Errorf("with %d in this window: admitted %v, want %v", used, got, ok)
			}
		})
	}
}

func TestS25_OnlyCalendarLetsTwiceThrough(t *testing.T) {
	for _, c := range []struct {
		limit limiter.Limit
		want  int
	}{
		{limiter.PerMinute(10), 10},
		{limiter.Limit{N: 10, Per: time.Minute, Law: limiter.Sliding}, 10},
		{limiter.Limit{N: 10, Law: limiter.Calendar, Unit: limiter.Minute}, 20},
	} {
		bubble(t, func(t *testing.T) {
			l := mustNew(t, c.limit)
			time.Sleep(59 * time.Second)
			got := 0
			for range 4 {
				for l.Allow(1) {
					got++
				}
				time.Sleep(time.Second / 2)
			}
			if got != c.want {
				t.Errorf("%v: %d starts in 2 s around the border, want %d", c.limit, got, c.want)
			}
		})
	}
}

func TestS28_ThreeOutcomes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ctx := context.Background()
		blocked := refusal(t, mustNew(t, limiter.Blocked()).Wait(ctx, 1))
		never := refusal(t, mustNew(t, limiter.PerSecond(5)).Wait(ctx, 6))
		if blocked.Reason != limiter.ReasonDisabled || blocked.RetryAfter != limiter.Never || blocked.AtLeast || blocked.Timeout() {
			t.Errorf("blocked: %+v", blocked)
		}
		if never.Reason != limiter.ReasonImpossible || never.RetryAfter != limiter.Never || never.AtLeast || never.Timeout() {
			t.Errorf("a cost that never fits: %+v", never)
		}
		if err := mustNew(t).Wait(ctx, math.MaxInt64); err != nil {
			t.Errorf("no limit: %v", err)
		}
		l := mustNew(t, limiter.PerSecond(5))
		if err := l.Wait(ctx, -1); err == nil || l.Allow(-1) || l.Delay(-1) != limiter.Never || l.Remaining() != 5 {
			t.Errorf("a negative cost: %v", err)
		}
	})
}

func TestS28_Mistakes(t *testing.T) {
	_, err := limiter.New(limiter.PerSecond(1), limiter.Limit{N: -1}, limiter.Limit{N: 1, Law: limiter.Calendar, Per: 1})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"limit 1: N is -1", "limit 1: Per is 0s", "limit 2: Per is 1ns", "limit 2: Unit is 0"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q:\n%v", want, err)
		}
	}
	l := mustNew(t, limiter.PerSecond(1))
	if err := l.SetLimits(limiter.PerSecond(-1)); err == nil || l.Remaining() != 1 {
		t.Errorf("SetLimits: %v, %d left", err, l.Remaining())
	}
	if err := (limiter.Limit{}).Validate(); err == nil {
		t.Error("the zero Limit is valid")
	}
	for _, l := range []limiter.Limit{limiter.PerSecond(0), {Law: limiter.Calendar, Unit: limiter.Day}, {Per: time.Hour, Law: limiter.Bucket, Burst: 5}} {
		const want = "limiter: N is 0; it must be 1 to 1,000,000,000; to admit nothing, use Blocked()"
		if err := l.Validate(); err == nil || err.Error() != want {
			t.Errorf("%v: %v", l, err)
		}
	}
}

// Blocked is valid, says so, and admits nothing; what counted before it still counts
// after it.
func TestBlocked(t *testing.T) {
	b := limiter.Blocked()
	if err := b.Validate(); err != nil || b.String() != "blocked" {
		t.Errorf("%v: %v", b, err)
	}
	bubble(t, func(t *testing.T) {
		for _, law := range []limiter.Law{limiter.Window, limiter.Sliding, limiter.Bucket, limiter.Calendar} {
			limit := limiter.Limit{N: 5, Per: 24 * time.Hour, Law: law}
			if law == limiter.Calendar {
				limit.Per, limit.Unit = 0, limiter.Month
			}
			l := mustNew(t, b)
			set := func(limit limiter.Limit) {
				t.Helper()
				if err := l.SetLimits(limit); err != nil {
					t.Fatal(err)
				}
			}
			want := func(left int64, delay time.Duration) {
				t.Helper()
				if got := l.Remaining(); got != left {
					t.Errorf("%v: %d left, want %d", law, got, left)
				}
				if got := l.Delay(1); got != delay {
					t.Errorf("%v: delay %v, want %v", law, got, delay)
				}
				if got := l.Allow(1); got != (delay == 0) {
					t.Errorf("%v: allowed %t", law, got)
				}
			}
			want(0, limiter.Never)
			set(limit)
			want(5, 0)
			l.Spend(3)
			want(1, 0)
			waits := make(chan error, 1)
			go func() { waits <- l.Wait(context.Background(), 1) }()
			synctest.Wait()
			set(b)
			if err := <-waits; refusal(t, err).Reason != limiter.ReasonDisabled {
				t.Errorf("%v: in line: %v", law, err)
			}
			if l.Allow(1) || l.Delay(1) != limiter.Never {
				t.Errorf("%v: blocked, it admits", law)
			}
			time.Sleep(time.Hour)
			set(limit)
			if got := l.Remaining(); got > 0 {
				t.Errorf("%v: %d left after an hour, want none", law, got)
			}
		}
	})
}

func TestS29_Midnight(t *testing.T) {
	loc, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		t.Fatal(err)
	}
	bubble(t, func(t *testing.T) {
		for _, day := range []time.Time{
			time.Date(2000, 4, 1, 20, 0, 0, 0, loc), time.Date(2000, 4, 2, 20, 0, 0, 0, loc), // the 2nd has 23 h
			time.Date(2000, 10, 28, 20, 0, 0, 0, loc), time.Date(2000, 10, 29, 0, 30, 0, 0, loc), // the 29th has 25 h
		} {
			time.Sleep(time.Until(day))
			l := mustNew(t, limiter.Limit{N: 2500, Law: limiter.Calendar, Unit: limiter.Day, Location: loc})
			l.Spend(2500)
			if err := l.Wait(context.Background(), 1); err != nil {
				t.Fatal(err)
			}
			if now := time.Now().In(loc); now.Hour() != 0 || now.Minute() != 0 || now.Second() != 0 || now.Nanosecond() != 0 || now.Day() == day.Day() {
				t.Errorf("after %v it started at %v, want midnight", day, now)
			}
		}
	})
}

// TestS31_Spread: 50 per s, a wait of 1 s at most.
func TestS31_Spread(t *testing.T) {
	bucket := limiter.Limit{N: 50, Per: time.Second, Law: limiter.Bucket}
	for _, c := range []struct {
		limit        limiter.Limit
		n            int
		over         time.Duration // evenly
		min, refused int
	}{
		{bucket, 50, time.Second, 0, 0},
		{bucket, 100, 0, 0, 0},
		{bucket, 200, 2 * time.Second, 0, 1},
		{bucket, 300, time.Second, 0, 151},
		{limiter.PerSecond(50), 50, time.Second, 0, 0},
		{limiter.PerSecond(50), 100, 0, 0, 0},
		{limiter.PerSecond(50), 200, 2 * time.Second, 50, 50},
		{limiter.PerSecond(50), 300, time.Second, 200, 200},
	} {
		t.Run(fmt.Sprintf("%v/%d over %v", c.limit, c.n, c.over), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := start(t, mustNew(t, c.limit))
				for i := range c.n {
					r.at(time.Duration(i) * c.over / time.Duration(c.n))
					// A deadline does not include its last instant.
					ctx, cancel := context.WithTimeout(context.Background(), time.Second+1)
					defer cancel()
					r.joinCtx(ctx, 1)
				}
				time.Sleep(5 * time.Second)
				synctest.Wait()
				refused := 0
				for _, c := range r.calls {
					if c.err != nil {
						refusal(t, c.err)
						refused++
					}
				}
				if refused < c.min || refused > c.refused {
					t.Errorf("%d refused, want %d to %d", refused, c.min, c.refused)
				}
			})
		})
	}
}

// TestS33_OneAgainstAHerd: one caller against 25 that loop without end.
func TestS33_OneAgainstAHerd(t *testing.T) {
	for range 20 {
		bubble(t, func(t *testing.T) {
			l := mustNew(t, limiter.Limit{N: 50, Per: time.Second, Law: limiter.Bucket})
			l.Spend(50)
			ctx, cancel := context.WithCancel(t.Context())
			for range 25 {
				go func() {
					for l.Wait(ctx, 1) == nil {
					}
				}()
			}
			synctest.Wait()
			t0 := time.Now()
			if err := l.Wait(ctx, 1); err != nil {
				t.Error(err)
			}
			if d := time.Since(t0); d != 520*time.Millisecond {
				t.Errorf("started after %v, want 520ms", d)
			}
			cancel()
			synctest.Wait()
		})
	}
}

func TestS34_BucketLine(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := mustNew(t, limiter.Limit{N: 100, Per: time.Second, Law: limiter.Bucket})
		r := start(t, l)
		r.join(198, 1)
		if d := l.Delay(1); d != 990*time.Millisecond {
			t.Errorf("the delay of the last is %v, want 990ms", d)
		}
		r.join(1, 1)
		want := rep(100, 0)
		for i := range 99 {
			want = append(want, float64(i+1)/100)
		}
		r.want(want...)
	})
}

func TestS35_DeadlineTooShort(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := mustNew(t, limiter.Every(3*time.Second))
		l.Spend(1)
		t0 := time.Now()
		for _, c := range []struct {
			deadline time.Duration
			ok       bool
		}{{time.Second, false}, {3 * time.Second, false}, {3*time.Second + 1, true}} {
			ctx, cancel := context.WithDeadline(context.Background(), t0.Add(c.deadline))
			defer cancel()
			err := l.Wait(ctx, 1)
			if c.ok {
				if err != nil || time.Since(t0) != 3*time.Second {
					t.Errorf("deadline %v: %v after %v", c.deadline, err, time.Since(t0))
				}
				continue
			}
			r := refusal(t, err)
			if time.Since(t0) != 0 {
				t.Errorf("deadline %v: refused after %v, want at once", c.deadline, time.Since(t0))
			}
			if r.Reason != limiter.ReasonLimit || r.RetryAfter != 3*time.Second || r.AtLeast || !errors.Is(err, context.DeadlineExceeded) || !r.Timeout() {
				t.Errorf("deadline %v: %+v", c.deadline, r)
			}
			if u := (&url.Error{Op: "Get", URL: "u", Err: err}); !u.Timeout() || !errors.Is(u, context.DeadlineExceeded) {
				t.Errorf("through *url.Error it is no timeout")
			}
			const want = "limiter: refused: the limit has no room yet, could start in 3s, after the caller's deadline"
			if err.Error() != want {
				t.Errorf("text %q, want %q", err, want)
			}
		}
	})
}

func TestS36_ContextOver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := mustNew(t, limiter.PerSecond(1))
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(errors.New("cause"))
		if err := l.Wait(ctx, 1); err != context.Canceled {
			t.Errorf("got %v, want the plain context error", err)
		}
		ctx, stop := context.WithTimeout(context.Background(), -1)
		defer stop()
		if err := l.Wait(ctx, 1); err != context.DeadlineExceeded {
			t.Errorf("got %v, want the plain context error", err)
		}
		if got := l.Remaining(); got != 1 {
			t.Errorf("%d left, want 1", got)
		}
		l.Spend(1)
		r := start(t, l)
		c := r.join(1, 1)[0]
		r.at(100 * time.Millisecond)
		c.cancel()
		synctest.Wait()
		if c.err != context.Canceled || c.at != 100*time.Millisecond { // C35
			t.Errorf("cancelled while waiting: %v at %v", c.err, c.at)
		}
	})
}

func TestS37_CostlyRequestIsNotOvertaken(t *testing.T) {
	for _, law := range []limiter.Law{limiter.Window, limiter.Bucket, limiter.Sliding} {
		t.Run(law.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := mustNew(t, limiter.Limit{N: 10, Per: time.Second, Law: law})
				l.Spend(8)
				r := start(t, l)
				d := l.Delay(10)
				big := r.join(1, 10)[0]
				for range 40 {
					r.join(1, 1)
					l.Allow(1)
					r.at(time.Since(r.t0) + 50*time.Millisecond)
				}
				if big.at != d || d == 0 {
					t.Errorf("the costly one started at %v, want %v", big.at, d)
				}
				for _, c := range r.calls {
					c.cancel()
				}
				synctest.Wait()
			})
		})
	}
}

// TestAllowTakesSpareUnits: Allow takes available units if that delays no caller in
// line.
func TestAllowTakesSpareUnits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := mustNew(t, limiter.PerSecond(10))
		l.Spend(8)
		r := start(t, l)
		r.join(1, 5)
		time.Sleep(500 * time.Millisecond)
		if l.Allow(6) {
			t.Error("it took what there is not")
		}
		r.want(1)
		l = mustNew(t, limiter.Limit{N: 10, Per: 10 * time.Second})
		l.Spend(8) // until 10 s
		r = start(t, l)
		r.join(1, 9) // at 10 s
		r.at(time.Second / 2)
		if !l.Allow(1) {
			t.Error("one unit is free until 10 s, when 9 of 10 are needed")
		}
		if l.Allow(1) {
			t.Error("it took one that will be needed")
		}
		r.want(10)
	})
}

func TestS39_DelayReturnsTheWholeWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := mustNew(t, limiter.PerSecond(2), limiter.PerMinute(4))
		r := start(t, l)
		for i, want := range []time.Duration{0, 0, time.Second, time.Second, time.Minute, time.Minute, 61 * time.Second} {
			for range 10 {
				if got := l.Delay(1); got != want {
					t.Fatalf("request %d would wait %v, want %v", i, got, want)
				}
			}
			r.join(1, 1)
		}
		if got := l.Delay(2); got != 120*time.Second {
			t.Errorf("a cost of 2 would wait %v, want 120s", got)
		}
		if got := l.Waiting(); got != 5 {
			t.Errorf("%d wait, want 5", got)
		}
		r.want(0, 0, 1, 1, 60, 60, 61)
	})
}

func TestS50_Debt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := mustNew(t, limiter.Limit{N: 10, Per: 10 * time.Second})
		l.Spend(3)
		if got := l.Remaining(); got != 7 {
			t.Errorf("%d left, want 7", got)
		}
		time.Sleep(time.Second)
		l.Spend(12)
		if got := l.Remaining(); got != -5 {
			t.Errorf("%d left, want -5", got)
		}
		r := start(t, l)
		r.join(1, 1)
		r.want(10) // the 12 come back at 11 s
		l.Spend(-1)
		if got := l.Remaining(); got != 10 {
			t.Errorf("%d left after the only unit was given back, want 10", got)
		}
	})
}

// TestSpendMovesTheLine: a spend delays those in line, and giving back brings
// them forward.
func TestSpendMovesTheLine(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := mustNew(t, limiter.PerSecond(1))
		r := start(t, l)
		r.join(3, 1)
		r.at(500 * time.Millisecond)
		l.Spend(1)
		if d := l.Delay(1); d != 3*time.Second {
			t.Errorf("the next would wait %v, want 3s", d)
		}
		r.want(0, 1.5, 2.5)
		r.at(time.Hour + 10*time.Second)
		l.Spend(2)
		r = start(t, l)
		r.join(1, 1)
		r.at(100 * time.Millisecond)
		l.Spend(-2)
		r.want(.1)
	})
}

// TestS53_NothingHeldMeanwhile: a caller that waits for tokens holds no request unit.
func TestS53_NothingHeldMeanwhile(t *testing.T) {
	bubble(t, func(t *testing.T) {
		// Limits of one Limiter count the same cost: 3 units per s, 4 per min.
		l := mustNew(t, limiter.PerSecond(3), limiter.PerMinute(4))
		r := start(t, l)
		r.join(1, 3)
		r.at(10 * time.Second)
		r.join(1, 3) // C51: waits for the minute, at 60 s
		if got := l.Remaining(); got != 1 {
			t.Errorf("%d left, want 1", got)
		}
		if !l.Allow(1) { // of both
			t.Error("the waiting caller holds a unit that it has not taken")
		}
		if l.Allow(1) {
			t.Error("one more than 4 in a minute")
		}
		r.want(0, 60)
	})
}

// TestC50_AllOrNothing: when the second limit refuses, the first is untouched.
func TestC50_AllOrNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := mustNew(t, limiter.Limit{N: 350, Per: 10 * time.Second}, limiter.Limit{N: 100, Per: time.Hour})
		for range 5000 {
			l.Allow(1)
		}
		if err := l.SetLimits(limiter.Limit{N: 350, Per: 10 * time.Second}); err != nil {
			t.Fatal(err)
		}
		if got := l.Remaining(); got != 250 {
			t.Errorf("%d of the first left, want 250", got)
		}
	})
}

func TestC52_RaisedWhileWaiting(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := mustNew(t, limiter.PerSecond(1))
		r := start(t, l)
		r.join(100, 1)
		r.at(time.Second + 1)
		if err := l.SetLimits(limiter.PerSecond(1000)); err != nil {
			t.Fatal(err)
		}
		want := append([]float64{0, 1}, rep(98, 1+1e-9)...) // C59
		r.want(want...)
	})
}

func TestC57_HopelessIsRefusedAtOnce(t *testing.T) {
	l := mustNew(t, limiter.PerHour(1))
	l.Spend(1)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	best := time.Hour
	for range 20 {
		t0 := time.Now()
		refusal(t, l.Wait(ctx, 1))
		best = min(best, time.Since(t0))
	}
	if best > time.Millisecond {
		t.Errorf("refused after %v of real time", best)
	}
}

// TestC58_SlowDrain: 100 goroutines at 3 per s: all start, none errors.
func TestC58_SlowDrain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, mustNew(t, limiter.PerSecond(3)))
		r.join(100, 1)
		var want []float64
		for i := range 100 {
			want = append(want, float64(i/3))
		}
		r.want(want...)
	})
}

func TestPause(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := mustNew(t, limiter.PerSecond(5))
		r := start(t, l)
		l.PauseUntil(r.t0.Add(5 * time.Second))
		l.PauseUntil(r.t0.Add(3 * time.Second)) // S61: the longest wins
		l.PauseUntil(r.t0.Add(-time.Hour))
		if l.Allow(1) || l.Allow(0) {
			t.Error("admitted during the pause")
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if e := refusal(t, l.Wait(ctx, 1)); e.Reason != limiter.ReasonPause || e.RetryAfter != 5*time.Second {
			t.Errorf("refusal %+v, want a pause of 5s", e)
		}
		r.join(4, 1)
		r.want(5, 5.2, 5.4, 5.6)
	})
}

func TestReasons(t *testing.T) {
	for reason, want := range map[limiter.Reason]string{
		limiter.ReasonLimit: "limit", limiter.ReasonPause: "pause", limiter.ReasonInFlight: "in_flight",
		limiter.ReasonLineFull: "line_full", limiter.ReasonImpossible: "impossible", limiter.ReasonDisabled: "disabled", 0: "unknown", 99: "unknown",
	} {
		if reason.String() != want {
			t.Errorf("%d is %q, want %q", reason, reason, want)
		}
		if s := (&limiter.Refusal{Reason: reason, RetryAfter: time.Second, AtLeast: true}).Error(); !strings.HasPrefix(s, "limiter: refused: ") || strings.Contains(s, "timeout") || strings.Contains(s, "EOF") {
			t.Errorf("text %q", s)
		}
	}
	if got := (&limiter.Refusal{Reason: limiter.ReasonInFlight, RetryAfter: time.Second, AtLeast: true}).Error(); got != "limiter: refused: too many requests are in flight, could start in 1s at the earliest" {
		t.Errorf("text %q", got)
	}
}

func TestPauseUntilByTheWallClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := limiter.New(limiter.Limit{N: 5, Per: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		l.PauseUntil(time.Now().Add(3 * time.Second).Round(0)) // as an HTTP date is
		if got := l.Delay(1); got != 3*time.Second {
			t.Errorf("paused for %v, want 3s", got)
		}
		ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(4*time.Second).Round(0))
		defer cancel()
		if err := l.Wait(ctx, 1); err != nil {
			t.Errorf("a wait of 3s until a deadline in 4s: %v", err)
		}
	})
}
