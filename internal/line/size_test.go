package line

import (
	"strconv"
	"testing"
	"unsafe"
)

// TestSizes holds what there may be a million of, idle, and 100,000 of, waiting,
// to the sizes that the allocator has room for without waste.
func TestSizes(t *testing.T) {
	if strconv.IntSize != 64 {
		return // pointers are smaller there
	}
	for what, size := range map[string][2]uintptr{
		"Line":   {unsafe.Sizeof(Line{}), 64},
		"Budget": {unsafe.Sizeof(Budget{}), 32},
		"waiter": {unsafe.Sizeof(waiter{}), 144},
	} {
		if size[0] > size[1] {
			t.Errorf("a %s has %d bytes, want %d at most", what, size[0], size[1])
		}
	}
}
