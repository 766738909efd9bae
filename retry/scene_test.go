package retry_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/headwaytest"
	"github.com/headway-go/headway/retry"
	"github.com/headway-go/headway/retryafter"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const itemsURL = "https://api.test/items"

// A scene is a retry.Transport over a headway.Transport over a service that
// follows a script, in a bubble.
type scene struct {
	*testing.T
	*retry.Transport
	next   *headway.Transport
	begin  time.Time
	script func(n int, req *http.Request) (*http.Response, error) // nil: 200

	mu  sync.Mutex // guards following fields
	log []string   // "attempt@start"
}

// play runs f in a bubble, over a Transport that does not read responses: every wait
// is package retry's own. Every backoff is as long as possible.
func play(t *testing.T, policy headway.Policy, cfg retry.Config, f func(s *scene)) {
	t.Helper()
	policy.Server.Dialects = []retryafter.Dialect{retryafter.None}
	playListening(t, policy, cfg, f)
}

// playListening is play over a Transport that does.
func playListening(t *testing.T, policy headway.Policy, cfg retry.Config, f func(s *scene)) {
	t.Helper()
	playConfig(t, headway.Config{Policies: []headway.Policy{policy}}, cfg, f)
}

// playConfig is playListening over a Transport with any configuration. A policy
// without hosts is for all.
func playConfig(t *testing.T, transport headway.Config, cfg retry.Config, f func(s *scene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &scene{T: t, begin: time.Now()}
		for i := range transport.Policies {
			if p := &transport.Policies[i]; p.Hosts == nil {
				p.Hosts = []string{"*"}
			}
		}
		var err error
		if s.next, err = headway.NewTransport(roundTripper(s.serve), transport); err != nil {
			t.Fatal(err)
		}
		if s.Transport, err = retry.New(s.next, cfg); err != nil {
			t.Fatal(err)
		}
		s.SetJitter(1)
		f(s)
		headwaytest.AssertIdle(t, s.next)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// serve is the base transport.
func (s *scene) serve(req *http.Request) (*http.Response, error) {
	s.mu.Lock()
	n := len(s.log)
	s.log = append(s.log, fmt.Sprintf("%d@%v", headway.AttemptFrom(req.Context()), time.Since(s.begin)))
	script := s.script
	s.mu.Unlock()
	if req.Body != nil {
		defer req.Body.Close()
	}
	if script == nil {
		return response(200, nil), nil
	}
	resp, err := script(n, req)
	if resp != nil {
		resp.Request = req
	}
	return resp, err
}

// wantSends compares all attempts, each as "attempt@start", separated by spaces.
func (s *scene) wantSends(want string) {
	s.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if got := strings.Join(s.log, " "); got != want {
		s.Errorf("got sends %q, want %q", got, want)
	}
}

func (s *scene) sends() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.log)
}

// response returns a response; header is names and values in turn.
func response(status int, body io.ReadCloser, header ...string) *http.Response {
	resp := &http.Response{StatusCode: status, Header: make(http.Header), Body: http.NoBody}
	if body != nil {
		resp.Body = body
	}
	for i := 0; i < len(header); i += 2 {
		resp.Header.Set(header[i], header[i+1])
	}
	return resp
}

// responses is a script of statuses, the last one repeated; 0 is a broken connection.
func responses(statuses ...int) func(int, *http.Request) (*http.Response, error) {
	return func(n int, req *http.Request) (*http.Response, error) {
		if status := statuses[min(n, len(statuses)-1)]; status != 0 {
			return response(status, nil), nil
		}
		return nil, errBroken
	}
}

var errBroken = fmt.Errorf("read: %w", io.ErrUnexpectedEOF)

// request returns a request; header is names and values in turn.
func request(ctx context.Context, method, body string, header ...string) *http.Request {
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, itemsURL, r)
	if err != nil {
		panic(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return req
}

// get sends a GET, and closes the response.
func (s *scene) get(ctx context.Context) (*http.Response, error) {
	s.Helper()
	return s.send(request(ctx, "GET", ""))
}

func (s *scene) send(req *http.Request) (*http.Response, error) {
	s.Helper()
	resp, err := s.RoundTrip(req)
	if (resp == nil) == (err == nil) {
		s.Errorf("got response %v and error %v, want one of them", resp, err)
	}
	if resp != nil {
		resp.Body.Close()
	}
	return resp, err
}

// wantStatus sends a request and compares the status of the response.
func (s *scene) wantStatus(req *http.Request, want int) {
	s.Helper()
	resp, err := s.send(req)
	if err != nil || resp.StatusCode != want {
		s.Errorf("got %v, %v, want status %d", resp, err, want)
	}
}

// A body is the body of a response; it records how it was used.
type body struct {
	io.Reader
	closed atomic.Int32
}

func newBody(text string) *body { return &body{Reader: strings.NewReader(text)} }

func (b *body) Close() error {
	b.closed.Add(1)
	return nil
}
