package headway

import (
	"testing"
	"time"

	"github.com/headway-go/headway/limiter"
)

// S30, the arithmetic of it.
func TestWaitBudget(t *testing.T) {
	const s = time.Second
	for _, tc := range []struct {
		name                        string
		policy, call, longest, want time.Duration
	}{
		{"unset", 0, 0, s, limiter.Never},
		{"a duration", 3 * s, 0, s, 3 * s},
		{"NoWait", NoWait, 0, s, 0},
		{"OneWindow", OneWindow, 0, s, s},
		{"OneWindow is at most 5 s", OneWindow, 0, time.Hour, 5 * s},
		{"OneWindow without limits", OneWindow, 0, 0, 5 * s},
		{"WaitForever in a policy is zero", WaitForever, 0, s, limiter.Never},
		{"the call's duration", 3 * s, s, s, s},
		{"the call's duration over none", 0, s, s, s},
		{"the call's NoWait", 3 * s, NoWait, s, 0},
		{"the call's OneWindow", NoWait, OneWindow, 2 * s, 2 * s},
		{"the call's WaitForever", NoWait, WaitForever, s, limiter.Never},
		{"the call's time has passed", 3 * s, -s, s, 0},
		{"the call's time has just passed", 3 * s, -1, s, 0},
		{"the call's time has passed long ago", 3 * s, time.Until(time.Time{}), s, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := waitBudget(tc.policy, tc.call, tc.longest); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
