package line

import (
	"math"
	"sync"
	"testing"
)

// Two breakers open at once while those before them stand in lines of package storeline:
// nothing that empty lines share is written to. The race detector sees it.
func TestEmptyLinesShareWhatNobodyWritesTo(t *testing.T) {
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			l := New()
			b := &fakeBreaker{allowance: math.MaxInt}
			g := &Gate{Breaker: b}
			for range 3 {
				if r, err := l.JoinGate(g); r != nil || err != nil {
					t.Errorf("got %v and %v", r, err)
				}
			}
			b.open = true
			l.RecheckGate(g)
			l.Reconfigure(nil, 0, 1)
			b.open = false
			l.RecheckGate(g)
		})
	}
	both.Wait()
}
