package breaker

import "github.com/failsafe-go/failsafe-go/circuitbreaker"

// A recorder counts results and decides by them: failsafe-go's circuitbreaker.
//
// Only its windows and thresholds are used. Its permits cannot be returned without
// a result, and a result of an older state would count in a newer one: none is
// acquired, and no such result reaches it. Its delay cannot grow: the Breaker
// keeps the time, and calls HalfOpen.
type recorder interface {
	RecordSuccess()
	RecordFailure()
	Open()
	HalfOpen()
	Close()
}

// newRecorder returns a recorder for c, which has its defaults in. It calls
// decided, before the method that made it decide returns, with each state that
// it goes to. A decided that panics would leave the recorder's mutex in a state
// that ends the program.
func newRecorder(c Config, decided func(State)) recorder {
	b := circuitbreaker.NewBuilder[any]().
		WithSuccessThreshold(uint(c.Probes)).
		OnStateChanged(func(e circuitbreaker.StateChangedEvent) { decided(stateOf(e.NewState)) })
	if c.Rate > 0 {
		b = b.WithFailureRateThreshold(c.Rate, uint(c.MinCalls), c.Within)
	} else {
		b = b.WithFailureThresholdRatio(uint(c.Failures), uint(c.Of))
	}
	return b.Build()
}

func stateOf(s circuitbreaker.State) State {
	switch s {
	case circuitbreaker.OpenState:
		return Open
	case circuitbreaker.HalfOpenState:
		return HalfOpen
	default:
		return Closed
	}
}

// A backlog knows which successes need not be recorded in the closed state,
// because they cannot change what the recorder will decide: a success of a healthy
// service then costs no lock.
//
// It opens when Failures of the last Of results are failures. With only
// successes among them, one more changes nothing. In a row, where Of is
// Failures, one success already outweighs every failure before it. The
// rate within a time depends on every result.
type backlog struct {
	span int // successes after a failure that matter; 0: all do, always
	owed int // how many still do
}

func newBacklog(c Config) backlog {
	switch {
	case c.Rate > 0:
		return backlog{}
	case c.Of == c.Failures:
		return backlog{span: 1}
	default:
		return backlog{span: c.Of}
	}
}

func (l *backlog) matters() bool { return l.span == 0 || l.owed > 0 }
func (l *backlog) failed()       { l.owed = l.span }
func (l *backlog) succeeded()    { l.owed = max(0, l.owed-1) }
func (l *backlog) clear()        { l.owed = 0 }
