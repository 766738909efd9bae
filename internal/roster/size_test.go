package roster

import (
	"strconv"
	"testing"
	"unsafe"
)

// TestSizeOfAHost holds what there may be a million of, idle, to the size that
// the allocator has room for without waste: one more than 144, for the count in
// flight and the gates.
func TestSizeOfAHost(t *testing.T) {
	if size := unsafe.Sizeof(Host{}); size > 160 && strconv.IntSize == 64 {
		t.Errorf("a Host has %d bytes, want 160 at most", size)
	}
}
