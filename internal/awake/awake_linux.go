package awake

import (
	"syscall"
	"time"
	"unsafe"
)

const (
	clockMonotonic = 1
	clockBoottime  = 7 // the same, but it goes on while the machine sleeps
)

// systemAsleep reads the clock that goes on first: a delay between the two readings makes
// the result too small, never too large.
func systemAsleep() time.Duration {
	boot, ok := read(clockBoottime)
	if !ok {
		return 0
	}
	mono, ok := read(clockMonotonic)
	if !ok {
		return 0
	}
	return boot - mono
}

func read(clock uintptr) (time.Duration, bool) {
	var ts syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&ts)), 0)
	return time.Duration(ts.Nano()), errno == 0
}
