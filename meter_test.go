package headway_test

import (
	"math"
	"time"
)

// A counting is how a service counts what arrives.
type counting uint8

const (
	sliding counting = iota // at most n in any period
	fixed                   // at most n in each of the periods that follow each other from the beginning on
	bucket                  // n at once, and n more in each period, evenly
)

// A meter is one limit of a service, which counts arrivals by it, apart from
// internal/law. Instants are times since the scene began.
type meter struct {
	label  string // in headers; empty for the only limit of a service
	n      int64
	per    time.Duration
	by     counting
	tokens bool    // it counts a request's tokens; otherwise requests
	weigh  float64 // what it counts for one of them; zero means 1

	level  float64 // of a bucket, at the instant at
	at     time.Duration
	log    []arrival // those that still count, of a window
	sum    float64   // of log
	window time.Duration
	begun  bool

	ours, others float64 // what it has counted in all
}

type arrival struct {
	at    time.Duration
	units float64
}

// left returns how much there is room for.
func (m *meter) left(now time.Duration) float64 {
	switch m.by {
	case bucket:
		if !m.begun {
			m.level, m.begun = float64(m.n), true
		}
		m.level = min(float64(m.n), m.level+float64(m.n)*float64(now-m.at)/float64(m.per))
		m.at = now
		return m.level
	case fixed:
		if w := now / m.per; w != m.window {
			m.window, m.log, m.sum = w, nil, 0
		}
	case sliding:
		for len(m.log) > 0 && now-m.log[0].at >= m.per {
			m.sum -= m.log[0].units
			m.log = m.log[1:]
		}
	}
	return float64(m.n) - m.sum
}

// use counts units.
func (m *meter) use(now time.Duration, units float64) {
	m.left(now)
	if m.by == bucket {
		m.level -= units
		return
	}
	m.log = append(m.log, arrival{now, units})
	m.sum += units
}

// units returns what the meter counts for a request that costs so many tokens.
func (m *meter) units(tokens int64) float64 {
	n := 1.0
	if m.tokens {
		n = float64(tokens)
	}
	if m.weigh > 0 {
		n *= m.weigh
	}
	return n
}

// full returns the time until nothing counts.
func (m *meter) full(now time.Duration) time.Duration {
	left := m.left(now)
	switch {
	case m.by == bucket:
		return m.time(float64(m.n) - left)
	case m.by == fixed:
		return (m.window+1)*m.per - now
	case len(m.log) == 0:
		return 0
	}
	return m.log[len(m.log)-1].at + m.per - now
}

// next returns the time until more comes back.
func (m *meter) next(now time.Duration) time.Duration {
	left := m.left(now)
	switch {
	case m.by == bucket && left >= float64(m.n):
		return 0
	case m.by == bucket:
		return m.time(math.Floor(left+1e-6) + 1 - left)
	case len(m.log) == 0:
		return 0
	case m.by == fixed:
		return m.full(now)
	}
	return m.log[0].at + m.per - now
}

// wait returns the time until there is room for so many units.
func (m *meter) wait(now time.Duration, units float64) time.Duration {
	left := m.left(now)
	switch {
	case left >= units-1e-6:
		return 0
	case m.by == bucket:
		return m.time(units - left)
	case m.by == fixed:
		return m.full(now)
	}
	for _, a := range m.log {
		if left += a.units; left >= units-1e-6 {
			return a.at + m.per - now
		}
	}
	return m.per
}

// time returns how long a bucket takes to regain so many units.
func (m *meter) time(units float64) time.Duration {
	return time.Duration(math.Ceil(units / float64(m.n) * float64(m.per)))
}

// allowed returns how much a client can use of it until the end, less what others
// have used.
func (m *meter) allowed(end time.Duration) float64 {
	n := float64(m.n) * float64(end) / float64(m.per)
	if m.by == bucket {
		n += float64(m.n)
	}
	return n - m.others
}
