package law

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestClamp: where the clock is set back from ahead to now, a law that never knew of
// the clock that was ahead could have been where it is then: the same starts, each at
// now. A debt stays as large as it was.
func TestClamp(t *testing.T) {
	for name, s := range map[string]Spec{
		"window":  {N: 5, Per: time.Minute},
		"bucket":  {N: 5, Per: time.Minute, Kind: Bucket, Burst: 3},
		"1001":    {N: 1001, Per: time.Minute, Kind: Bucket},
		"spaced":  {N: 5, Per: time.Minute, Kind: Spaced},
		"sliding": {N: 5, Per: time.Minute, Kind: Sliding},
	} {
		t.Run(name, rapid.MakeCheck(func(rt *rapid.T) {
			st, right := New(s, wall0), New(s, wall0)
			now := rapid.Int64Range(0, 1000*sec).Draw(rt, "now")
			ahead := rapid.SampledFrom([]int64{1, sec, 59 * sec, 3600 * sec, 87_600 * 3600 * sec}).Draw(rt, "ahead")
			for range rapid.IntRange(1, 4).Draw(rt, "starts") {
				n := rapid.Int64Range(1, 8).Draw(rt, "n") // into debt
				st.Spend(now+ahead, n)
				right.Spend(now, n)
			}
			if got := st.Clamp(now); got != ahead {
				rt.Fatalf("set back by %d: it says %d", ahead, got)
			}
			if got := st.Clamp(now); got != 0 {
				rt.Fatalf("set right, it is still %d ahead", got)
			}
			for _, cost := range []int64{1, 2, 5} {
				got, _ := st.Earliest(now, now, cost)
				want, _ := right.Earliest(now, now, cost)
				if got != want || st.Remaining(now) != right.Remaining(now) {
					rt.Fatalf("a cost of %d fits at %d with %d left, want %d with %d left", cost, got, st.Remaining(now), want, right.Remaining(now))
				}
			}
			if got, want := st.Expires(now), right.Expires(now); got != want {
				rt.Fatalf("it is recovered at %d, want %d", got, want)
			}
		}))
	}
}

// TestClampInTime: what is not ahead stays as it is, also what a window remembers by
// slices, which end a little after their starts.
func TestClampInTime(t *testing.T) {
	w := New(Spec{N: 100_000, Per: time.Hour}, wall0)
	for i := range int64(100_000) {
		w.Take(i*ms, 1)
	}
	now := int64(99_999) * ms
	if last := w.(*window).last(); last <= now {
		t.Errorf("the last slice ends at %d, not after %d: this tests nothing", last, now)
	}
	pace := NewPace()
	pace.Until(0, 3600*sec)
	c := NewCap("", new(int64))
	c.Update(0, LimitSignal{Left: 0, Limit: 10, Reset: 3600 * sec})
	for _, st := range []State{w, pace, c} {
		if d := st.Clamp(now); d != 0 {
			t.Errorf("%T: it was %v ahead", st, time.Duration(d))
		}
	}
	if end, _ := pace.End(now); end != 3600*sec {
		t.Errorf("the pause ends at %d", end)
	}
	if at, _ := c.Earliest(now, now, 1); at != 3600*sec {
		t.Errorf("the announced limit has room at %d", at)
	}
}

// TestClampPauses: a pause, and a limit that a server has announced, last as long as
// they did when they were raised.
func TestClampPauses(t *testing.T) {
	const years = 87_600 * 3600 * sec
	pace := NewPace()
	pace.Until(years, years+7200*sec)
	if d := pace.Clamp(0); d != years {
		t.Errorf("the pause was %d ahead", d)
	}
	if end, _ := pace.End(0); end != 7200*sec {
		t.Errorf("the pause ends at %d, want 7200s", end)
	}
	if NewPace().Clamp(0) != 0 {
		t.Error("no pause is ahead")
	}
	c := NewCap("", new(int64))
	c.Update(years, LimitSignal{Left: 0, Limit: 10, Reset: 80 * sec, Started: years - sec})
	if d := c.Clamp(0); d != years {
		t.Errorf("the announced limit was %d ahead", d)
	}
	if at, _ := c.Earliest(0, 0, 1); at != 80*sec {
		t.Errorf("the announced limit has room at %d, want 80s", at)
	}
	c.Take(sec/2, 1)
	c.Update(sec, LimitSignal{Left: 3, Limit: 10, Reset: 79 * sec, Started: sec / 2, Mark: c.Mark(sec / 2), Own: 1})
	if got := c.Remaining(sec); got != 3 {
		t.Errorf("%d left, want the 3 of a response that came later", got)
	}
}
