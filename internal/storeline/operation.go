package storeline

import (
	"context"
	"errors"

	"github.com/headway-go/headway/internal/line"
	"github.com/headway-go/headway/store"
)

// An operation is something for the store to do besides the takes of those in line.
type operation struct {
	op            store.Op
	delay         *Ask // not nil: op is to be its forecast, built when it is asked
	sooner, later bool // those in line may start sooner by it, or later

	res  store.Result
	err  error
	done chan struct{} // closed once res and err are there; nil: no one waits
}

// queueLocked has the store do an operation in the next round trip.
func (l *Line) queueLocked(o *operation) {
	l.queued = append(l.queued, o)
	l.kickLocked()
}

// Do has the store do an operation of the line's group, and returns when it is done. When ctx
// ends before that, Do returns its error, and the operation is done all the same.
func (l *Line) Do(ctx context.Context, op store.Op) (store.Result, error) {
	op.Group = l.Group()
	o := &operation{op: op, sooner: op.Kind == store.OpGive}
	if op.Kind == store.OpSpend {
		o.sooner, o.later = op.Needs[0].Cost < 0, op.Needs[0].Cost > 0
	}
	return l.do(ctx, o)
}

func (l *Line) do(ctx context.Context, o *operation) (store.Result, error) {
	if l.client.available() != nil {
		l.finish(o, store.Result{}, ErrDown)
		return o.res, o.err
	}
	o.done = make(chan struct{})
	l.mu.Lock()
	for _, n := range o.op.Needs {
		l.rememberLocked(n.Budget, false)
	}
	l.queueLocked(o)
	l.mu.Unlock()
	select {
	case <-o.done:
		return o.res, o.err
	case <-ctx.Done():
		return store.Result{}, ctx.Err()
	}
}

// finish ends an operation. While the store is down, responses are kept for it: it would hold
// the strict units of their requests until their leases end. The others are lost, since
// their units return by themselves. It may be called with mu held or without.
func (l *Line) finish(o *operation, res store.Result, err error) {
	o.res, o.err = res, err
	if errors.Is(err, ErrDown) && o.op.Kind == store.OpDone {
		l.client.keep(o.op)
	}
	if o.done != nil {
		close(o.done)
	}
}

// Delay returns when a request that arrives now would start; nil for now. It takes nothing.
func (l *Line) Delay(ctx context.Context, a *Ask) (*line.Refusal, error) {
	o := &operation{delay: a}
	res, err := l.do(ctx, o)
	if err != nil {
		return nil, err
	}
	last := len(res.Waits) - 1
	if err := res.Waits[last].Err; err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.refusalLocked(a, &o.op.Asks[last], &res.Waits[last])
	if r.RetryAfter == 0 && !r.AtLeast {
		return nil, nil
	}
	return r, nil
}
