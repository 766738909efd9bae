package line

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway/internal/law"
)

var errDown = errors.New("down")

// A fakeBreaker does what its fields say.
type fakeBreaker struct {
	open      bool
	places    int // while it is open: for probes
	allowance int // while it is closed; while it is open there is none
	timeout   time.Duration
	ticket    any // half-open: the ticket of its probes
}

func (b *fakeBreaker) Closed() bool { return !b.open }
func (b *fakeBreaker) Allowance() int {
	if b.open {
		return b.places
	}
	return b.allowance
}
func (b *fakeBreaker) Delay(time.Time) time.Duration {
	return time.Hour * time.Duration(max(0, 1-b.places))
}
func (b *fakeBreaker) ProbeTimeout() time.Duration { return b.timeout }
func (b *fakeBreaker) Cause() error                { return errDown }
func (b *fakeBreaker) Clean(time.Time) bool        { return !b.open }

func (b *fakeBreaker) Room(time.Time) int {
	if b.open {
		return b.places
	}
	return math.MaxInt
}

func (b *fakeBreaker) Take(time.Time) (any, bool, bool) {
	if !b.open {
		return "closed", false, true
	}
	if b.places == 0 {
		return nil, false, false
	}
	b.places--
	return b.ticket, true, true
}

func (b *fakeBreaker) Return(ticket any) {
	if ticket == b.ticket {
		b.places++
	}
}

// What is started and not sent gives its pass back, whether it stood in line or
// not, and so does what is cancelled in the chain.
func TestGateGetsBackWhatIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New()
		b := l.NewBudget(&law.Spec{N: 1, Per: time.Second})
		breaker := &fakeBreaker{open: true, places: 1, ticket: "probe"}
		g := &Gate{Breaker: breaker}
		need := func() *Ask { return &Ask{Needs: []Need{{B: b, Cost: 1}}, MaxWait: -1} }

		ask := need()
		grant, _, refusal, err := l.Enter(t.Context(), ask, g, nil)
		if refusal != nil || err != nil || !grant.Pass.HoldsPlace() || breaker.places != 0 {
			t.Fatalf("got %+v, %+v, %v; want it granted as the probe", grant, refusal, err)
		}
		l.Cancel(&grant, ask.Needs)
		if breaker.places != 1 || l.Remaining(b) != 1 {
			t.Errorf("%d places, %d units; want both back", breaker.places, l.Remaining(b))
		}

		// Started at the end of its wait, and given up before its turn to be sent.
		l.Spend(1, b)
		first, second := make(chan Grant, 1), make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			grant, _, _, _ := l.Enter(t.Context(), need(), nil, nil)
			first <- grant
		}()
		synctest.Wait()
		go func() {
			_, _, _, err := l.Enter(ctx, &Ask{Needs: need().Needs, MaxWait: -1}, g, nil)
			second <- err
		}()
		synctest.Wait()
		l.Reconfigure([]Change{{B: b, Limit: &law.Spec{N: 3, Per: time.Second}}}, 0, 0)
		synctest.Wait()
		if breaker.places != 0 {
			t.Fatal("it has not started")
		}
		cancel()
		synctest.Wait()
		if err := <-second; err != context.Canceled || breaker.places != 1 || l.Remaining(b) != 1 {
			t.Errorf("got %v, %d places, %d units; want it canceled, and both back", err, breaker.places, l.Remaining(b))
		}
		held := <-first
		l.Sent(&held)
	})
}
