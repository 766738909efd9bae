package breaker

import (
	"errors"
	"fmt"
	"time"
)

const (
	defaultFailures     = 5
	defaultWithin       = time.Minute
	defaultMinCalls     = 10
	defaultOpenFor      = 5 * time.Second
	defaultMaxOpenFor   = time.Minute
	defaultProbes       = 1
	defaultProbeTimeout = 30 * time.Second

	maxOf       = 65536
	minRate     = 0.01
	minWithin   = time.Millisecond
	maxWithin   = 365 * 24 * time.Hour
	maxMinCalls = 1_000_000_000
	maxProbes   = 1000
)

// A Config says what opens a breaker and what closes it again. The zero Config
// opens after 5 failures in a row.
//
// A breaker opens by one of three conditions: Failures alone, Failures and Of, or
// Rate with Within and MinCalls. Ignored results never count.
type Config struct {
	// Failures is how many consecutive failures open the breaker, regardless of the
	// time between them; with Of, how many among the last Of results. 1 to 65,536.
	// Zero without a Rate means 5 in a row.
	Failures int
	// Of is how many of the last results are considered: Failures to 65,536. The
	// breaker does not wait for that many: 5 failures at the very start are 5 of the
	// last 10. Zero means in a row.
	Of int
	// Rate is the share of failures within Within that opens the breaker: 0.01 to 1.
	// The share is rounded to a whole per cent before it is compared, so 0.5 opens
	// at 49.5 %. Zero means that Failures decides.
	Rate float64
	// Within is the time over which Rate is measured: 1 ms to 365 days. It slides in
	// ten steps, so that between nine tenths and all of it is covered, by the wall
	// clock of the process. Zero with a Rate means 1 min.
	Within time.Duration
	// MinCalls is how many results within Within Rate needs before it can open the
	// breaker: 1 to 10^9. Zero with a Rate means 10.
	MinCalls int
	// OpenFor is how long the breaker stays open before it may be probed. An opening
	// after a failed probe, or within MaxOpenFor after the breaker closed, lasts
	// twice as long as the one before. Zero means 5 s.
	OpenFor time.Duration
	// MaxOpenFor is the longest that OpenFor grows to: at least OpenFor. Zero means
	// 1 min, or OpenFor where that is longer.
	MaxOpenFor time.Duration
	// Probes is how many calls may be in flight while the breaker is half-open, and
	// how many successes close it: 1 to 1,000. Zero means 1.
	Probes int
	// ProbeTimeout is the time after which a probe without a result makes room for
	// another. A later result still counts. Zero means 30 s.
	ProbeTimeout time.Duration
}

// Validate returns an error that names every mistake in the configuration: the
// field, its value, and what would be valid. New calls it.
func (c Config) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("breaker: "+format, args...))
		}
	}

	check(c.Failures >= 0 && c.Failures <= maxOf,
		"Failures is %d: use 1 to %d, or 0 for %d in a row", c.Failures, maxOf, defaultFailures)
	check(c.Of >= 0 && c.Of <= maxOf,
		"Of is %d: use Failures to %d, or 0 for failures in a row", c.Of, maxOf)
	if c.Of > 0 {
		check(c.Failures != 0, "Of is %d without Failures: set how many of the last %d results open it", c.Of, c.Of)
		check(c.Failures <= c.Of, "Failures is %d of %d: use an Of of at least %d", c.Failures, c.Of, c.Failures)
	}

	// Not c.Rate < minRate: NaN must be caught.
	check(c.Rate == 0 || c.Rate >= minRate && c.Rate <= 1,
		"Rate is %v: use %v to 1, or 0 to count Failures", c.Rate, minRate)
	check(c.Within == 0 || c.Within >= minWithin && c.Within <= maxWithin,
		"Within is %v: use %v to %v, or 0 for %v", c.Within, minWithin, maxWithin, defaultWithin)
	check(c.MinCalls >= 0 && c.MinCalls <= maxMinCalls,
		"MinCalls is %d: use 1 to %d, or 0 for %d", c.MinCalls, maxMinCalls, defaultMinCalls)
	if c.Rate == 0 {
		check(c.Within == 0, "Within is %v without a Rate: set Rate, or leave Within zero", c.Within)
		check(c.MinCalls == 0, "MinCalls is %d without a Rate: set Rate, or leave MinCalls zero", c.MinCalls)
	} else {
		check(c.Failures == 0, "Failures is %d beside a Rate of %v: set only one of them", c.Failures, c.Rate)
		check(c.Of == 0, "Of is %d beside a Rate of %v: set only one of them", c.Of, c.Rate)
	}

	check(c.OpenFor >= 0, "OpenFor is %v: use a positive duration, or 0 for %v", c.OpenFor, defaultOpenFor)
	least := max(c.withDefaults().OpenFor, 1)
	check(c.MaxOpenFor == 0 || c.MaxOpenFor >= least,
		"MaxOpenFor is %v: use at least OpenFor (%v), or 0 for %v", c.MaxOpenFor, least, max(defaultMaxOpenFor, least))
	check(c.Probes >= 0 && c.Probes <= maxProbes,
		"Probes is %d: use 1 to %d, or 0 for %d", c.Probes, maxProbes, defaultProbes)
	check(c.ProbeTimeout >= 0, "ProbeTimeout is %v: use a positive duration, or 0 for %v", c.ProbeTimeout, defaultProbeTimeout)
	return errors.Join(errs...)
}

// withDefaults returns c with every zero replaced by what it means. An Of of
// zero becomes Failures: n in a row are n of the last n.
func (c Config) withDefaults() Config {
	if c.Rate == 0 {
		c.Failures = orDefault(c.Failures, defaultFailures)
		c.Of = orDefault(c.Of, c.Failures)
	} else {
		c.Within = orDefault(c.Within, defaultWithin)
		c.MinCalls = orDefault(c.MinCalls, defaultMinCalls)
	}
	c.OpenFor = orDefault(c.OpenFor, defaultOpenFor)
	c.MaxOpenFor = orDefault(c.MaxOpenFor, max(defaultMaxOpenFor, c.OpenFor))
	c.Probes = orDefault(c.Probes, defaultProbes)
	c.ProbeTimeout = orDefault(c.ProbeTimeout, defaultProbeTimeout)
	return c
}

func orDefault[T int | time.Duration](v, d T) T {
	if v == 0 {
		return d
	}
	return v
}
