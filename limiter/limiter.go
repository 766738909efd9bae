// Package limiter keeps callers inside the limits of a service. Each caller waits
// its turn, in order of arrival, or is refused immediately if its turn cannot come
// in time.
//
// A Limiter is one budget and its line, without HTTP. Package headway puts budgets
// like it, one per host and key, under an http.Client.
package limiter

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headway-go/headway/internal/law"
	"github.com/headway-go/headway/internal/line"
)

// A Limiter is a budget under one or more limits, with a line of waiting callers. A
// cost is taken from all limits or from none. Create it with New. It is safe for
// concurrent use, starts no goroutine, has one timer while a caller waits, and
// needs no closing.
//
// There are no responses here, so Limit.Strict changes nothing.
//
// A cost of n is n units of every limit. A cost of zero takes nothing and waits for
// pauses only. A negative cost is a mistake: Wait returns an error, Allow false,
// and Delay Never.
type Limiter struct {
	line   *line.Line
	pause  *line.Budget
	mu     sync.Mutex                     // held by SetLimits
	limits atomic.Pointer[[]*line.Budget] // one at least; each keeps its place
}

// New returns a Limiter under all of limits; without any it admits everything. The
// error names every mistake in them.
func New(limits ...Limit) (*Limiter, error) {
	specs, err := specs(limits)
	if err != nil {
		return nil, err
	}
	l := &Limiter{line: line.New()}
	l.pause = l.line.NewPause()
	l.limits.Store(l.line.SetLimits(nil, specs, l.pause))
	return l, nil
}

func specs(limits []Limit) ([]law.Spec, error) {
	var errs []error
	list := make([]law.Spec, len(limits))
	for i, l := range limits {
		list[i] = l.spec()
		for _, bad := range l.mistakes() {
			errs = append(errs, fmt.Errorf("limiter: limit %d: %s", i, bad))
		}
		list[i].Strict = false // there are no responses to wait for
	}
	return list, errors.Join(errs...)
}

// ask returns the request to the line for a cost of n.
func (l *Limiter) ask(n int64) line.Ask {
	return line.Ask{List: l.limits.Load(), Cost: n, MaxWait: -1}
}

// Allow takes n units and reports true if they fit now and no waiting caller would
// start later because of it.
func (l *Limiter) Allow(n int64) bool {
	if n > 0 {
		if took, ok := l.line.Quick(n); ok {
			return took
		}
	}
	if n < 0 {
		return false
	}
	for {
		ask := l.ask(n)
		if took, err := l.line.Try(&ask); err == nil {
			return took
		}
	}
}

// Wait takes n units as soon as they fit, after earlier callers. If that cannot be
// before ctx's deadline, it returns a *Refusal immediately. If ctx is done, or is
// done before the wait ends, it returns ctx's error and takes nothing.
func (l *Limiter) Wait(ctx context.Context, n int64) error {
	if n < 0 {
		return negative(n)
	}
	if n > 0 && ctx.Err() == nil {
		if took, _ := l.line.Quick(n); took {
			return nil
		}
	}
	turn, refusal, err := l.line.Join(ctx, l.limits.Load(), n)
	for err == line.ErrRetired { // SetLimits came between
		turn, refusal, err = l.line.Join(ctx, l.limits.Load(), n)
	}
	if refusal == nil && err == nil {
		refusal, err = l.line.Await(ctx, turn)
	}
	switch {
	case err != nil:
		return err
	case refusal != nil:
		return l.refusal(refusal)
	}
	l.line.Next(turn)
	return nil
}

//go:noinline
func negative(n int64) error {
	return fmt.Errorf("limiter: the cost is %d; it must be 0 or more; to return units, use Spend", n)
}

func (l *Limiter) refusal(r *line.Refusal) *Refusal {
	e := &Refusal{Reason: Reason(r.Reason), RetryAfter: r.RetryAfter, AtLeast: r.AtLeast}
	if r.Deadline {
		e.Err = context.DeadlineExceeded
	}
	return e
}

// Delay returns how long a cost of n would wait if it arrived now: zero if it would
// not, Never if it can never fit. It takes nothing.
func (l *Limiter) Delay(n int64) time.Duration {
	if n < 0 {
		return Never
	}
	ask := l.ask(n)
	if r := l.line.Delay(&ask, nil); r != nil {
		return r.RetryAfter
	}
	return 0
}

// Spend counts n units as used now, by traffic that did not wait here. It may
// overdraw: the debt delays later callers. A negative n returns the oldest units
// that still count.
func (l *Limiter) Spend(n int64) { l.line.Spend(n, *l.limits.Load()...) }

// PauseUntil lets no caller start before t. Of several pauses the longest wins, and
// one that is already over has no effect. After the pause, starts resume gently:
// for 10 s, the k-th start (from 0) comes no earlier than t plus k intervals, where
// the interval is the smallest Per/N of the limits, at most 1 s. Without limits it
// is 1 s, and halves each second until it no longer delays anything.
//
// The length of the pause is fixed when PauseUntil is called. Setting the wall
// clock afterwards does not move it, and time that the machine is suspended counts,
// where the system reports it (Linux, Windows).
func (l *Limiter) PauseUntil(t time.Time) { l.line.PauseUntil(l.pause, t) }

// SetLimits replaces the limits. Each takes over what the limit at its place
// remembers, so that past starts still count, even under another law or period. The
// line is planned anew: under a higher limit all callers move up at once, and a
// caller that can no longer start before its deadline is refused immediately. After
// an error nothing has changed.
func (l *Limiter) SetLimits(limits ...Limit) error {
	specs, err := specs(limits)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	have := *l.limits.Load()
	l.limits.Store(l.line.SetLimits(have, specs, l.pause))
	return nil
}

// Remaining returns how many units could start now under the tightest limit,
// ignoring the waiting callers: negative in debt, math.MaxInt64 without limits.
func (l *Limiter) Remaining() int64 { return l.line.Remaining(*l.limits.Load()...) }

// Waiting returns how many callers wait in line.
func (l *Limiter) Waiting() int {
	waiting, _ := l.line.Waiting()
	return waiting
}
