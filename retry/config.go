package retry

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"
)

// A Config says how a Transport retries. The zero Config retries up to four times.
type Config struct {
	// MaxRetries is the most retries of one request. Zero means 4. None means no
	// retries. Unlimited needs a MaxElapsed.
	MaxRetries int
	// MaxElapsed is the time from the call of RoundTrip within which a retry must
	// start, its last instant included. If a retry would start later, the retrying
	// ends immediately. The first attempt is not bounded. Zero means that only the
	// request's context bounds retries.
	MaxElapsed time.Duration
	// MinBackoff is the longest backoff before the first retry. It doubles for each
	// further retry, up to MaxBackoff. Zero means 500 ms for MinBackoff, and 30 s
	// for MaxBackoff, or MinBackoff if that is longer.
	MinBackoff, MaxBackoff time.Duration
	// Budget bounds the retries to each host, of all requests together.
	Budget Budget
	// Retry decides whether an attempt is retried, instead of the package's rules.
	// It is called with the response or the error of each attempt that was sent,
	// successes included, but not for a request that was refused locally. Yes may
	// repeat an effect of the request: the caller vouches that this is right. The
	// other bounds still apply: MaxRetries, MaxElapsed, Budget, the context, the
	// Transport's wait budget, and a body that is available again from GetBody.
	// Retry is called concurrently, without locks. It must not change the response,
	// or read or close its body. If it panics, the response is closed and the panic
	// reaches the caller. Nil means Default for every attempt.
	Retry func(*http.Request, *http.Response, error) Decision
	// MaxHosts bounds how many hosts have a budget of their own. A host is
	// forgotten only while its budget has at least what a new one has. If none can
	// be forgotten, new hosts share one budget. Zero means 100,000.
	MaxHosts int
}

// A Decision is the result of Config.Retry. The zero Decision is Default.
type Decision uint8

const (
	// Default applies the package's rules.
	Default Decision = iota
	// Yes retries the request.
	Yes
	// No returns the response or the error of this attempt.
	No
)

// A Budget is a host's allowance for retries. Each retry that is decided on costs
// 1, whether or not it is sent. With less than 1 left, a request is not retried,
// and its failure is returned. In each field zero means the default, None means
// zero, and math.Inf(1) means no bound.
type Budget struct {
	// Start is what a host begins with, at most Max. Zero means 10.
	Start float64
	// PerRequest is what each first attempt adds. Zero means 0.2.
	PerRequest float64
	// PerSecond is what each second adds. Zero means 3.
	PerSecond float64
	// PerSuccess is what a successful retry returns. Zero means 1.
	PerSuccess float64
	// Max is the most that a host can have. Zero means 30.
	Max float64
}

const (
	// None means zero in fields where zero means the default.
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
		bad("MaxRetries = Unlimited: want a MaxElapsed with it, else the retries of a request are unbounded")
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
