package retry

import (
	"math"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headway-go/headway/internal/hostname"
)

// budgets holds the retry budget of every host. Amounts are counted in billionths
// of a retry.
type budgets struct {
	start, perRequest, perSuccess, max int64
	perSecond                          float64 // in retries per second: billionths per nanosecond
	maxHosts                           int

	mu    sync.RWMutex // guards following fields
	hosts map[string]*budget
	swept time.Time // when forgetLocked last made no room
	// overflow is the budget that hosts beyond maxHosts share.
	overflow *budget
}

// A budget is the room for retries to one host.
type budget struct {
	firsts atomic.Int64 // first attempts that left does not include yet

	mu   sync.Mutex // guards following fields; may be taken under budgets.mu
	left int64
	at   time.Time // when left was counted; zero: not yet
}

const one = 1_000_000_000

func newBudgets(b Budget, maxHosts int) *budgets {
	bs := &budgets{
		max:        billionths(b.Max),
		perRequest: billionths(b.PerRequest), perSuccess: billionths(b.PerSuccess), perSecond: b.PerSecond,
		maxHosts: maxHosts, hosts: map[string]*budget{},
	}
	bs.start = min(billionths(b.Start), bs.max)
	bs.overflow = &budget{left: bs.start}
	return bs
}

func billionths(x float64) int64 {
	if x >= math.MaxInt64/one {
		return math.MaxInt64
	}
	return int64(math.Round(x * one))
}

// of returns the budget of the host of u.
func (bs *budgets) of(u *url.URL) *budget {
	host, _, _ := hostname.Canonical(u.Scheme, u.Host)
	bs.mu.RLock()
	b := bs.hosts[host]
	bs.mu.RUnlock()
	if b == nil {
		b = bs.add(host)
	}
	return b
}

func (bs *budgets) add(host string) *budget {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	if b := bs.hosts[host]; b != nil {
		return b
	}
	if len(bs.hosts) >= bs.maxHosts && !bs.forgetLocked() {
		return bs.overflow
	}
	b := &budget{left: bs.start, at: time.Now()}
	bs.hosts[strings.Clone(host)] = b
	return b
}

// forgetLocked forgets every host whose budget has at least what a new one has, so
// that no host gains by being forgotten. It reports whether there is room now. After
// a walk over all hosts that made no room, the next one comes a second later.
func (bs *budgets) forgetLocked() bool {
	now := time.Now()
	if since := now.Sub(bs.swept); since >= 0 && since < time.Second {
		return false
	}
	for host, b := range bs.hosts {
		if b.full(bs, now) {
			delete(bs.hosts, host)
		}
	}
	if len(bs.hosts) < bs.maxHosts {
		return true
	}
	bs.swept = now
	return false
}

// first counts a first attempt.
func (b *budget) first() { b.firsts.Add(1) }

// take takes the cost of one retry, and reports whether there was enough left.
func (b *budget) take(bs *budgets, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.countLocked(bs, now); b.left < one {
		return false
	}
	b.left -= one
	return true
}

// succeeded adds what a successful retry returns to the budget.
func (b *budget) succeeded(bs *budgets) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left = min(b.left, bs.max-bs.perSuccess) + bs.perSuccess
}

// full reports whether b has at least what a new budget has.
func (b *budget) full(bs *budgets, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.countLocked(bs, now)
	return b.left >= bs.start
}

// countLocked adds to b.left what first attempts and the time have added by now.
func (b *budget) countLocked(bs *budgets, now time.Time) {
	more := float64(b.firsts.Swap(0)) * float64(bs.perRequest)
	if b.at.IsZero() {
		b.at = now
	}
	if since := now.Sub(b.at); since > 0 {
		more += float64(since) * bs.perSecond
		b.at = now
	}
	if more >= float64(bs.max-b.left) {
		b.left = bs.max
	} else {
		b.left += int64(more)
	}
}
