package otelheadway

import (
	"context"
	"maps"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"weak"

	"go.opentelemetry.io/otel/metric"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/breaker"
)

// counts counts events by host and rule in atomic integers. Only durations go to the SDK
// immediately. When metrics are collected, it reports the integers and the present state
// of the Transports.
type counts struct {
	instruments
	maxHosts int

	// known is a copy of hosts, for reading without the lock. It is complete
	// once full says that there will be no more.
	known atomic.Pointer[map[place]*host]
	full  atomic.Bool

	// How often a store went down and came up. No event says which Transport's store,
	// and the two may be reported in the wrong order.
	gone, back atomic.Int64
	setBack    atomic.Int64 // the store's clock

	collecting sync.Mutex // held during a collection; guards tally.observe

	mu     sync.Mutex // guards following fields
	hosts  map[place]*host
	own    int // how many of hosts are not the shared one
	missed int // lookups that did not find their host in known since it was copied
	seen   []weak.Pointer[headway.Transport]
	room   int // the length of seen at which the dead are removed next
}

// A place is a policy and a host. The host is empty for all hosts of a Shared
// policy.
type place struct{ policy, host string }

// other is the name of the series that hosts and rules without their own share.
const other = "_OTHER"

// shared holds the counts of each provider, so that instruments are made once.
var shared struct {
	mu     sync.Mutex // guards following field
	counts map[sharedKey]*counts
}

type sharedKey struct {
	provider metric.MeterProvider
	maxHosts int
}

func countsOf(p metric.MeterProvider, maxHosts int) (*counts, error) {
	if !reflect.TypeOf(p).Comparable() {
		return newCounts(p, maxHosts)
	}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	key := sharedKey{p, maxHosts}
	if c := shared.counts[key]; c != nil {
		return c, nil
	}
	c, err := newCounts(p, maxHosts)
	if err != nil {
		return nil, err
	}
	if shared.counts == nil {
		shared.counts = map[sharedKey]*counts{}
	}
	shared.counts[key] = c
	return c, nil
}

func newCounts(p metric.MeterProvider, maxHosts int) (*counts, error) {
	c := &counts{maxHosts: maxHosts, hosts: map[place]*host{}}
	c.known.Store(&map[place]*host{})
	return c, c.instruments.make(p, c.report)
}

// host returns the counts of a policy at a host.
func (c *counts) host(policy, name string) *host {
	full, known := c.full.Load(), *c.known.Load()
	if h := known[place{policy, name}]; h != nil {
		return h
	}
	if h := known[place{policy, other}]; h != nil && full {
		return h
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hostLocked(policy, name)
}

func (c *counts) hostLocked(policy, name string) *host {
	p := place{policy, name}
	if c.hosts[p] == nil && c.own >= c.maxHosts {
		p.host = other
	}
	h := c.hosts[p]
	switch {
	case h == nil:
		h = newHost(p)
		c.hosts[p] = h
		if p.host != other {
			c.own++
		}
	case c.full.Load():
		return h // known is complete
	}
	// A copy costs as much as the lookups that it has missed.
	full := c.own >= c.maxHosts
	if c.missed++; c.missed >= len(*c.known.Load()) || full {
		c.missed = 0
		known := maps.Clone(c.hosts)
		c.known.Store(&known)
		c.full.Store(full)
	}
	return h
}

// count counts an event and returns its host; nil if it has none.
func (c *counts) count(ctx context.Context, e *headway.Event) *host {
	switch e.Kind {
	case headway.EventStoreDown:
		c.gone.Add(1)
		return nil
	case headway.EventStoreUp:
		c.back.Add(1)
		return nil
	case headway.EventStoreClock:
		c.setBack.Add(1)
		return nil
	case headway.EventStoreRow:
		if e.Policy == "" { // the policy no longer exists
			return nil
		}
	}
	h := c.host(e.Policy, e.Host)
	switch e.Kind {
	case headway.EventStart:
		h.rule(e.Rule).client.add(e.Cost)
		if e.Attempt > 0 {
			h.retries.Add(1)
		} else {
			h.calls.Add(1)
		}
		c.decided(ctx, h, started, e)
	case headway.EventTake, headway.EventSettle:
		h.rule(e.Rule).client.add(e.Cost)
	case headway.EventSpend:
		h.rule(e.Rule).outside.add(e.Cost)
	case headway.EventRefused:
		c.decided(ctx, h, refusedFor(e.Reason), e)
	case headway.EventNoKey:
		c.decided(ctx, h, refusedNoKey, e)
	case headway.EventOpenRefused:
		c.decided(ctx, h, refusedOpen, e)
	case headway.EventOpen:
		h.changes[breaker.Open].Add(1)
	case headway.EventHalfOpen:
		h.changes[breaker.HalfOpen].Add(1)
	case headway.EventClosed:
		h.changes[breaker.Closed].Add(1)
	case headway.EventCanceled:
		c.decided(ctx, h, canceled, e)
	case headway.EventPause:
		c.pauseDuration.Record(ctx, e.Pause.Seconds(), h.record...)
	case headway.EventLearned:
		h.rule(ruleName(e.Rule)).drift.Add(max(0, e.Drift))
	case headway.EventMalformed:
		h.malformed.Add(1)
	case headway.EventOverflow:
		h.overflows.Add(1)
	case headway.EventStoreRow:
		h.unread.Add(1)
	}
	return h
}

// decided counts the end of a wait.
func (c *counts) decided(ctx context.Context, h *host, d decision, e *headway.Event) {
	h.decisions[d].Add(1)
	if e.Away {
		h.missed[outcomes[d].kind].Add(1)
	}
	if e.Wait > 0 {
		h.delayed.Add(1)
	}
	c.waitDuration.Record(ctx, e.Wait.Seconds(), h.waits[outcomes[d].kind]...)
}

// ruleName returns a rule's name in metrics. All learned limits have one name, because
// servers may choose any number of names.
func ruleName(rule string) string {
	if strings.HasPrefix(rule, "learned ") {
		return "learned"
	}
	return rule
}

func (c *counts) watch(t *headway.Transport) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.seen) >= c.room {
		c.transportsLocked()
		c.room = max(16, 2*len(c.seen))
	}
	c.seen = append(c.seen, weak.Make(t))
}

// transportsLocked returns the Transports that are in use, and forgets the others.
func (c *counts) transportsLocked() (all []*headway.Transport) {
	keep := c.seen[:0]
	for _, p := range c.seen {
		if t := p.Value(); t != nil {
			keep, all = append(keep, p), append(all, t)
		}
	}
	clear(c.seen[len(keep):])
	c.seen = keep
	return all
}
