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
		"Line":   {unsafe.Sizeof(Line{}), 72}, // a part of a site, which has room for it
		"Budget": {unsafe.Sizeof(Budget{}), 32},
		"waiter": {unsafe.Sizeof(waiter{}), 144},
	} {
		if size[0] > size[1] {
			t.Errorf("a %s has %d bytes, want %d at most", what, size[0], size[1])
		}
	}
}

// TestFlights counts more in flight than a Budget has room for itself, and keeps
// the count when somebody begins to look at it.
func TestFlights(t *testing.T) {
	for _, n := range []int64{1, 1 << 31, 1 << 40} {
		b := &Budget{demand: &noDemand}
		b.addInFlight(3)
		b.addInFlight(n)
		if b.few != 0 && b.demand != &noDemand {
			t.Errorf("%d units are counted in two places", n)
		}
		if got := *b.countInFlight(); got != n+3 {
			t.Errorf("%d units are in flight, want %d", got, n+3)
		}
		b.addInFlight(-n)
		if got := *b.countInFlight(); got != 3 {
			t.Errorf("%d units are in flight, want 3", got)
		}
	}
	if noDemand.inFlight != 0 || noDemand.announced != nil {
		t.Error("the demand of all budgets without one was written to")
	}
}
