//go:build !linux

package awake

import "time"

// systemAsleep knows nothing: on Windows the monotonic clock goes on by itself,
// and elsewhere package syscall alone reads no clock that does.
func systemAsleep() time.Duration { return 0 }
