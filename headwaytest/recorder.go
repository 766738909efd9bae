package headwaytest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/headway-go/headway"
)

// A Recorder is an http.RoundTripper that remembers when each request was handed
// to it, and hands it on. Under a headway.Transport these are the starts. Its
// assertions fail a test with a timeline. NewRecorder makes one; any number of
// goroutines may use it.
type Recorder struct {
	// KeyHeader is the request header whose value Start.Key shows, as it is; so
	// use made-up ones. Empty: no key. Set it before the first request.
	KeyHeader string

	base  http.RoundTripper
	begin time.Time

	mu     sync.Mutex // guards following field
	starts []Start
}

// NewRecorder returns a Recorder over base. Nil answers every request with 200
// at once. Its time is zero now.
func NewRecorder(base http.RoundTripper) *Recorder {
	if base == nil {
		base = new(Vendor)
	}
	return &Recorder{base: base, begin: time.Now()}
}

// RoundTrip remembers the request and hands it on.
func (r *Recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	r.record(req)
	return r.base.RoundTrip(req)
}

// CloseIdleConnections closes those of the base.
func (r *Recorder) CloseIdleConnections() { closeIdle(r.base) }

// Starts returns what has started so far, in order.
func (r *Recorder) Starts() []Start {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.starts)
}

// String returns the timeline of all starts, one line each.
func (r *Recorder) String() string {
	var text strings.Builder
	for _, s := range r.Starts() {
		fmt.Fprintln(&text, s)
	}
	return text.String()
}

func (r *Recorder) record(req *http.Request) {
	s := startOf(req)
	if r.KeyHeader != "" {
		s.Key = req.Header.Get(r.KeyHeader)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s.At = time.Since(r.begin)
	r.starts = append(r.starts, s)
}

// A Start is one request that was handed to a Recorder. Where an assertion takes
// a Start as a pattern, a field that is zero matches anything.
type Start struct {
	// At is when it was, since the Recorder was made.
	At time.Duration
	// Host is the URL's, in lower case and without the scheme's own port.
	Host string
	// Method is the request's, GET where that is empty; Path is the URL's.
	Method, Path string
	// Key is the value of Recorder.KeyHeader.
	Key string
	// Attempt is the attempt of its call that the request is: 0 for the first.
	// Only headway.AttemptFrom tells, so that requests which merely look alike are
	// all 0. Package retry sets it; another retry loop can by headway.WithAttempt.
	Attempt int
}

// String returns the start as a line of a timeline.
func (s Start) String() string {
	return strings.TrimRight(fmt.Sprintf("%12v  %s", s.At, s.what()), " ")
}

// what returns what started, without the time.
func (s Start) what() string {
	text := strings.TrimSpace(s.Method + " " + s.Host + s.Path)
	if s.Key != "" {
		text += "  key " + s.Key
	}
	if s.Attempt > 0 {
		text += fmt.Sprintf("  attempt %d", s.Attempt)
	}
	return strings.TrimSpace(text)
}

// pattern returns what the start matches.
func (s Start) pattern() string {
	if s == (Start{}) {
		return "any"
	}
	if s.At == 0 {
		return s.what()
	}
	return strings.TrimSpace(s.String())
}

// startOf returns what a request tells of a start.
func startOf(req *http.Request) Start {
	s := Start{Method: method(req), Attempt: headway.AttemptFrom(req.Context())}
	if u := req.URL; u != nil {
		s.Path = u.Path
		if s.Host = canonical(u.Scheme, u.Host); s.Host == "" {
			s.Host = req.Host // a server's request has it there
		}
	}
	return s
}

// like reports whether s matches the pattern, but for the time.
func (s Start) like(p Start) bool {
	return (p.Host == "" || p.Host == s.Host) &&
		(p.Method == "" || p.Method == s.Method) &&
		(p.Path == "" || p.Path == s.Path) &&
		(p.Key == "" || p.Key == s.Key) &&
		(p.Attempt == 0 || p.Attempt == s.Attempt)
}

// matches reports whether s matches the pattern.
func (s Start) matches(p Start) bool { return s.like(p) && (p.At == 0 || p.At == s.At) }
