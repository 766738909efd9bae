package awake

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestClocks: Elapsed adds exactly the time that the machine has slept, and Now and At
// agree with it. If the system counts sleep, its own clocks are read.
func TestClocks(t *testing.T) {
	if runtime.GOOS == "linux" && systemAsleep() < -time.Second {
		t.Errorf("the machine has slept for %v", systemAsleep())
	}
	synctest.Test(t, func(t *testing.T) {
		begin, now := Elapsed(), Now()
		time.Sleep(time.Hour)
		Pretend(t, 8*time.Hour)
		if d := Elapsed() - begin; d != 9*time.Hour {
			t.Errorf("after 1h, and 8h asleep: %v", d)
		}
		if d := Now().Sub(now); d != 9*time.Hour {
			t.Errorf("after 1h, and 8h asleep, Now is %v later", d)
		}
		if d := Now().Sub(At(Elapsed())); d != 0 {
			t.Errorf("Now is %v after At", d)
		}
		if d := On(time.Now().Add(time.Minute)).Sub(Now()); d != time.Minute {
			t.Errorf("a deadline in 1m is in %v", d)
		}
		Pretend(t, least/2)
		if d := Elapsed() - begin; d != 9*time.Hour {
			t.Errorf("too short a sleep counts: %v", d)
		}
	})
}

// TestElapsedRunsOn: no reading is before an earlier one.
func TestElapsedRunsOn(t *testing.T) {
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			last := Elapsed()
			for range 10_000 {
				now := Elapsed()
				if now < last {
					t.Errorf("%v after %v", now, last)
				}
				last = now
			}
		})
	}
	Pretend(t, time.Hour)
	all.Wait()
}

// TestSleep checks that Sleep returns at the end, and at once when done is closed.
func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		time.AfterFunc(90*time.Second, func() { Pretend(t, 8*time.Hour) })
		if Sleep(2*time.Hour, nil); time.Since(begin) != 2*time.Minute {
			t.Errorf("2h, of which the machine slept 8h after 90s, lasted %v", time.Since(begin))
		}
		begin = time.Now()
		if Sleep(100*time.Minute, nil); time.Since(begin) != 100*time.Minute {
			t.Errorf("100m lasted %v", time.Since(begin))
		}
		done := make(chan struct{})
		time.AfterFunc(90*time.Second, func() { close(done) })
		begin = time.Now()
		if Sleep(2*time.Hour, done); time.Since(begin) != 90*time.Second {
			t.Errorf("it went on for %v", time.Since(begin))
		}
	})
}
