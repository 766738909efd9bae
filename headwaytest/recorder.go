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

// A Recorder is an http.RoundTripper that records when each request reached it, and
// passes it on. Under a headway.Transport these are the starts. Its assertions fail
// a test with a timeline. Create it with NewRecorder. It is safe for concurrent
// use.
type Recorder struct {
	// KeyHeader is the request header whose value becomes Start.Key, in clear text:
	// use made-up keys. Empty means no key. Set it before the first request.
	KeyHeader string

	base  http.RoundTripper
	begin time.Time

	mu     sync.Mutex // guards following field
	starts []Start
}

// NewRecorder returns a Recorder over base, whose time starts at zero now. A nil
// base responds to every request with 200 immediately.
func NewRecorder(base http.RoundTripper) *Recorder {
	if base == nil {
		base = new(Vendor)
	}
	return &Recorder{base: base, begin: time.Now()}
}

// RoundTrip records the request and passes it on.
func (r *Recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	r.record(req)
	return r.base.RoundTrip(req)
}

// CloseIdleConnections closes the idle connections of the base.
func (r *Recorder) CloseIdleConnections() { closeIdle(r.base) }

// Starts returns the starts so far, in order.
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

// A Start is one request that reached a Recorder. Where an assertion takes a Start
// as a pattern, a zero field matches everything.
type Start struct {
	// At is the time since the Recorder was created.
	At time.Duration
	// Host is the host of the URL, in lower case and without a default port.
	Host string
	// Method is the method of the request, GET if empty; Path is the path of its
	// URL.
	Method, Path string
	// Key is the value of Recorder.KeyHeader.
	Key string
	// Attempt is which attempt of its call the request is, from 0, as
	// headway.AttemptFrom returns it. Package retry sets it; another retry loop can
	// set it by headway.WithAttempt. Requests that merely look alike are all 0.
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

// startOf returns the start of a request.
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
