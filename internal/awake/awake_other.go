//go:build !linux

package awake

import "time"

// systemAsleep returns zero: on Windows the monotonic clock goes on by itself, and on
// other systems package syscall cannot read a clock that does.
func systemAsleep() time.Duration { return 0 }
