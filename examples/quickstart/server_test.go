package main

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestServer checks that the server enforces its limit: otherwise the absence of a 429
// would prove nothing about Headway.
func TestServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, begin := new(server), time.Now()
		for i := range perSecond {
			if !s.allow() {
				t.Errorf("request %d at 0 s: refused", i)
			}
			if i == 0 {
				time.Sleep(400 * time.Millisecond)
			}
		}
		for _, step := range []struct {
			at   time.Duration // after the first request
			want bool
		}{
			{400 * time.Millisecond, false},
			{time.Second - 1, false},
			{time.Second, true}, // the first is one second old
			{time.Second, false},
			{1400*time.Millisecond - 1, false},
			{1400 * time.Millisecond, true},
		} {
			time.Sleep(time.Until(begin.Add(step.at)))
			if got := s.allow(); got != step.want {
				t.Errorf("at %v: allowed %t, want %t", step.at, got, step.want)
			}
		}
	})
}
