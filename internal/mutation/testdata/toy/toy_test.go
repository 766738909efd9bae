package toy

import "testing"

func TestMax(t *testing.T) {
	t.Run("first", func(t *testing.T) {
		if got := Max(2, 1); got != 2 {
			t.Errorf("Max(2, 1) = %d, want 2", got)
		}
	})
	t.Run("second", func(t *testing.T) {
		if got := Max(1, 2); got != 2 {
			t.Errorf("Max(1, 2) = %d, want 2", got)
		}
	})
}

// TestWeak notices nothing.
func TestWeak(t *testing.T) {
	Max(1, 2)
}

// TestFailed fails whatever the code does.
func TestFailed(t *testing.T) {
	t.Error("as it always does")
}
