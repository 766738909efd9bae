package retryafter

import (
	"net/http"
	"time"
)

// clocks are ours and the server's. Neither is read before it is needed: most
// responses say how long from now.
type clocks struct {
	h         http.Header
	came      time.Time // the response; zero: not read yet, see now
	server    instant
	hasServer bool
}

// clock is the server's time: its Date and, for a stored response, its Age;
// without a readable Date it is ours.
func (c *clocks) clock() instant {
	if c.hasServer {
		return c.server
	}
	c.hasServer = true
	if sec, ok := c.httpDate(c.line("Date")); ok {
		c.server = instant{sec + c.age(), 0}
	} else {
		c.server = instantOf(c.now())
	}
	return c.server
}

// now is when the response came, read here where the caller left it to us: most
// readings do not need it.
func (c *clocks) now() time.Time {
	if c.came.IsZero() {
		c.came = time.Now()
	}
	return c.came
}

// httpDate is httpDate for a response that came now.
func (c *clocks) httpDate(v string) (int64, bool) {
	var now time.Time
	if twoDigitYear(v) {
		now = c.now()
	}
	return httpDate(v, now)
}

// line is the first line of a header that no row knows, trimmed; "" where it is
// too long.
func (c *clocks) line(key string) string {
	if lines := c.h[key]; len(lines) > 0 && len(lines[0]) <= maxValue {
		return trim(lines[0])
	}
	return ""
}

// age is the response's Age in seconds, zero when it has none.
func (c *clocks) age() int64 {
	n, ok := digits(c.line("Age"))
	if !ok {
		return 0
	}
	return int64(min(n, 1<<31)) // RFC 9111, section 1.2.2: saturates there
}

// stored reports whether the response came from a cache.
func (c *clocks) stored() bool { return c.age() > 0 }
