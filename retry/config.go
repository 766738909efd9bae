package retry

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"
)

// Config is how a Transport retries. The zero Config retries four times at most.
type Config struct {
	// MaxRetries is how often a request is sent again at most. Zero means 4, None
	// never, and Unlimited as long as MaxElapsed allows, which must be set then.
	MaxRetries int
	// MaxElapsed is the time from when the request came within which a retry must
	// start. A retry that would come later ends the retrying at once; a start at
	// its last instant fits. The first attempt is not bound by it. Zero means no
	// bound but the request's context.
	MaxElapsed time.Duration
	// MinBackoff is the longest backoff before the first retry. It doubles for
	// each retry after that, up to MaxBackoff. Zero means 500 ms for MinBackoff,
	// and 30 s for MaxBackoff, or MinBackoff where that is longer.
	MinBackoff, MaxBackoff time.Duration
	// Budget bounds the retries to each host, of all requests together.
	Budget Budget
	// Retry decides whether an attempt is worth another one, in the place of the
	// package's rules. It sees each attempt that was sent, with its response or its
	// error, successes too; what was refused on this side it does not see. Yes may
	// also repeat what a request has done: it is the word of the caller that this is
	// right. All that bounds retries holds: MaxRetries, MaxElapsed, Budget, the
	// context, the Transport's wait budget, and that a body must come again from
	// GetBody. Retry runs without locks, in many goroutines at once; it must not
	// change the response, or read or close its body. If it panics, the response is
	// closed, and the panic is the caller's. Nil means Default for all.
	Retry func(*http.Request, *http.Response, error) Decision
	// MaxHosts bounds how many hosts have a budget of their own. One is forgotten
	// only when its budget has at least what a new one has. When none can be, new
	// hosts share one. Zero means 100,000.
	MaxHosts int
}

// A Decision is what Config.Retry says of an attempt. The zero Decision is Default.
type Decision uint8

const (
	// Default leaves it to the package's rules.
	Default Decision = iota
	// Yes sends the request again.
	Yes
	// No makes the response or the error the last.
	No
)

// A Budget is the room that a host has for retries. A retry costs 1 when it is
// decided on, sent or not. Where there is no 1 left the request is not retried:
// what failed comes back. In each field zero means the default, and None zero.
// math.Inf(1) is no bound.
type Budget struct {
	// Start is what a host begins with, at most Max. Zero means 10.
	Start float64
	// PerRequest is what each first attempt adds. Zero means 0.2.
	PerRequest float64
	// PerSecond is what each second adds. Zero means 3.
	PerSecond float64
	// PerSuccess is what a retry that succeeds gives back. Zero means 1.
	PerSuccess float64
	// Max is the most that a host can have. Zero means 30.
	Max float64
}

const (
	// None is zero where zero means the default.
	None = -1
	// Unlimited is for Config.MaxRetries, together with a MaxElapsed.
	Unlimited = math.MaxInt
)

// check returns c with its defaults filled in. The error names every mistake.
func (c Config) check() (Config, error) {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("retry: "+format, args...)) }
	switch {
	case c.MaxRetries < None:
		bad("MaxRetries = %d: want a positive number, zero for 4, None or Unlimited", c.MaxRetries)
	case c.MaxRetries == Unlimited && c.MaxElapsed == 0:
		bad("MaxRetries = Unlimited: want a MaxElapsed with it, or nothing bounds the retries of a request")
	}
	orDefault(&c.MaxRetries, 4)
	if c.MaxElapsed < 0 {
		bad("MaxElapsed = %v: want a positive duration, or zero for no bound", c.MaxElapsed)
	}
	if c.MinBackoff < 0 || c.MinBackoff > longestPause {
		bad("MinBackoff = %v: want a positive duration up to 24 h, or zero for 500 ms", c.MinBackoff)
	}
	if c.MinBackoff == 0 {
		c.MinBackoff = 500 * time.Millisecond
	}
	switch {
	case c.MaxBackoff < 0 || c.MaxBackoff > longestPause:
		bad("MaxBackoff = %v: want a positive duration up to 24 h, or zero for 30 s", c.MaxBackoff)
	case c.MaxBackoff == 0:
		c.MaxBackoff = max(30*time.Second, c.MinBackoff)
	case c.MaxBackoff < c.MinBackoff:
		bad("MaxBackoff = %v: want no less than MinBackoff, %v", c.MaxBackoff, c.MinBackoff)
	}
	for _, f := range []struct {
		name     string
		value    *float64
		standard float64
	}{
		{"Start", &c.Budget.Start, 10},
		{"PerRequest", &c.Budget.PerRequest, 0.2},
		{"PerSecond", &c.Budget.PerSecond, 3},
		{"PerSuccess", &c.Budget.PerSuccess, 1},
		{"Max", &c.Budget.Max, 30},
	} {
		if math.IsNaN(*f.value) || *f.value < 0 && *f.value != None {
			bad("Budget.%s = %v: want a positive number, zero for %v, or None", f.name, *f.value, f.standard)
		}
		orDefault(f.value, f.standard)
	}
	if c.MaxHosts < 0 {
		bad("MaxHosts = %d: want a positive number, or zero for 100,000", c.MaxHosts)
	}
	if c.MaxHosts == 0 {
		c.MaxHosts = 100_000
	}
	return c, errors.Join(errs...)
}

func orDefault[N int | float64](n *N, standard N) {
	switch *n {
	case 0:
		*n = standard
	case None:
		*n = 0
	}
}
