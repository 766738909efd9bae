package breaker

import (
	"errors"
	"fmt"
	"time"
)

const (
	defaultFailures   = 5
	defaultWithin     = time.Minute
	defaultMinCalls   = 10
	defaultOpenFor    = 5 * time.Second
	defaultMaxOpenFor = time.Minute
	defaultProbes     = 1
	defaultLease      = 30 * time.Second

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
// What opens it is one of three: Failures alone, Failures and Of, or Rate with
// Within and MinCalls. Ignored results count for none of them.
type Config struct {
	// Failures is how many failures in a row open it, however much time lies
	// between them; with Of, how many among the last Of results do. 1 to 65,536.
	// Zero without a Rate means 5 in a row.
	Failures int
	// Of is among how many of the last results Failures are counted: Failures to
	// 65,536. They need not all have come: 5 failures at the very start are 5 of
	// the last 10. Zero means in a row.
	Of int
	// Rate is the share of failures within the time Within that opens it: 0.01 to
	// 1. The share is rounded to whole per cents before it is compared, so 0.5
	// opens at 49.5 %. Zero means that Failures decides.
	Rate float64
	// Within is the time over which Rate is taken: 1 ms to 365 days. It slides in
	// ten slices, so that nine tenths to the whole of it are looked at, by the
	// wall clock of the process. Zero with a Rate means 1 min.
	Within time.Duration
	// MinCalls is the number of results within Within below which Rate does not
	// open it: 1 to 10^9. Zero with a Rate means 10.
	MinCalls int
	// OpenFor is how long it is open before it may be probed. Each opening that
	// follows on a failed probe, or that comes within MaxOpenFor after it had
	// closed, lasts twice as long as the one before. Zero means 5 s.
	OpenFor time.Duration
	// MaxOpenFor is the longest that OpenFor grows to: at least OpenFor. Zero
	// means 1 min, or OpenFor where that is longer.
	MaxOpenFor time.Duration
	// Probes is how many calls may be in flight while it is half-open, and how
	// many successes close it: 1 to 1,000. Zero means 1.
	Probes int
	// Lease is the time after which a probe without a result gives its place up.
	// A result that comes later still counts. Zero means 30 s.
	Lease time.Duration
}

// Validate returns an error that names every mistake in the configuration: the
// field, its value, and what would be right. New calls it.
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
		check(c.Failures != 0, "Of is %d without Failures: say how many of the last %d results open it", c.Of, c.Of)
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
		check(c.Failures == 0, "Failures is %d beside a Rate of %v: use one of them", c.Failures, c.Rate)
		check(c.Of == 0, "Of is %d beside a Rate of %v: use one of them", c.Of, c.Rate)
	}

	check(c.OpenFor >= 0, "OpenFor is %v: use a positive duration, or 0 for %v", c.OpenFor, defaultOpenFor)
	least := max(c.withDefaults().OpenFor, 1)
	check(c.MaxOpenFor == 0 || c.MaxOpenFor >= least,
		"MaxOpenFor is %v: use at least OpenFor (%v), or 0 for %v", c.MaxOpenFor, least, max(defaultMaxOpenFor, least))
	check(c.Probes >= 0 && c.Probes <= maxProbes,
		"Probes is %d: use 1 to %d, or 0 for %d", c.Probes, maxProbes, defaultProbes)
	check(c.Lease >= 0, "Lease is %v: use a positive duration, or 0 for %v", c.Lease, defaultLease)
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
	c.Lease = orDefault(c.Lease, defaultLease)
	return c
}

func orDefault[T int | time.Duration](v, d T) T {
	if v == 0 {
		return d
	}
	return v
}
