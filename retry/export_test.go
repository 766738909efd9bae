package retry

import (
	"net/http"
	"time"
)

// SetJitter makes every backoff as long as it can be (1), half of that (0.5), or
// nothing (0).
func (t *Transport) SetJitter(part float64) {
	t.jitter = func(d time.Duration) time.Duration { return time.Duration(part * float64(d)) }
}

// Left returns what the retry budget of a request's host has, in billionths of a
// retry.
func (t *Transport) Left(req *http.Request) int64 {
	b := t.budgets.of(req.URL)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.countLocked(t.budgets, time.Now())
	return b.left
}

// Hosts returns how many hosts have a budget of their own.
func (t *Transport) Hosts() int {
	t.budgets.mu.RLock()
	defer t.budgets.mu.RUnlock()
	return len(t.budgets.hosts)
}

// Backoff returns a random backoff before the retry that follows n others.
func (t *Transport) Backoff(n int) time.Duration { return t.backoff(n) }
