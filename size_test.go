package headway

import (
	"strconv"
	"testing"
	"unsafe"
)

// TestSizeOfASite holds what there may be a million of, idle, to the size that
// the allocator has room for without waste.
func TestSizeOfASite(t *testing.T) {
	if size := unsafe.Sizeof(site{}); size > 144 && strconv.IntSize == 64 {
		t.Errorf("a site has %d bytes, want 144 at most", size)
	}
}
