package line

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway/internal/law"
)

// TestC38_InOrderOfArrival: S6, 50 who are due at one instant are handed over
// in order of arrival, each after the one before it was sent.
func TestC38_InOrderOfArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New()
		b := l.NewBudget(&law.Spec{N: 50, Per: time.Second})
		l.Spend(50, b)
		var order []int
		for i := range 50 {
			go func() {
				g, _, refusal, err := l.Enter(context.Background(), &Ask{Needs: []Need{{B: b, Cost: 1}}, MaxWait: -1}, nil, nil)
				if refusal != nil || err != nil {
					t.Error(refusal, err)
					return
				}
				order = append(order, i) // the detector sees a race if two are under way
				l.Sent(&g)
			}()
			synctest.Wait()
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if len(order) != 50 || !slices.IsSorted(order) {
			t.Errorf("order of start: %v", order)
		}
	})
}
