package headway_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/store"
	"go.uber.org/goleak"
)

// openStore opens what the scenes keep their budgets in; nil: in memory. See
// TestAgainOverAStore.
var openStore func(testing.TB) store.Store

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A base is a base transport that writes down what reaches it and answers after
// its latency. The zero base answers 200 without a body, at once.
type base struct {
	latency time.Duration
	answer  func(*http.Request) (*http.Response, error) // nil: ok

	epoch time.Time // when the first second of the log begins
	quiet bool      // nothing is written down

	mu      sync.Mutex // guards following fields
	counted int        // beginnings and ends of answers
	log     []string   // "name@start"
}

func (b *base) RoundTrip(req *http.Request) (*http.Response, error) {
	if !b.quiet {
		b.mu.Lock()
		b.log = append(b.log, fmt.Sprintf("%s@%v", req.Header.Get("Name"), time.Since(b.epoch)))
		b.mu.Unlock()
	}
	if req.Body != nil {
		io.Copy(io.Discard, req.Body)
		req.Body.Close()
	}
	if b.latency > 0 {
		select {
		case <-time.After(b.latency):
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
	}
	if b.answer != nil {
		// An answer that ends before another begins happens before it, whatever way
		// the requests came.
		b.count()
		defer b.count()
		return b.answer(req)
	}
	return ok(req), nil
}

func (b *base) count() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.counted++
}

// starts returns the starts so far, "name@start" each.
func (b *base) starts() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.log...)
}

// ok returns a response without a body.
func ok(req *http.Request) *http.Response {
	return &http.Response{StatusCode: 200, Header: make(http.Header), Body: http.NoBody, Request: req}
}

// A body is a request's or a response's, and tells how often it was closed.
type body struct {
	io.Reader
	closed atomic.Int32
}

func newBody(text string) *body { return &body{Reader: strings.NewReader(text)} }

func (b *body) Close() error {
	b.closed.Add(1)
	return nil
}

// A scene is a Transport in a bubble, in which requests come and go at exact
// times.
type scene struct {
	*testing.T
	*headway.Transport
	base   *base
	all    sync.WaitGroup
	stormy bool // requests may panic so, or end their goroutine

	disorder string // what is wrong with the order of the starts of one instant
}

// play runs f in a bubble, with a Transport under policies, until all requests
// have ended. It runs on one processor: on several the operating system might
// take one away from a goroutine that is about to call the base.
//
// On a busy machine the one processor is taken away too, and after 10 ms the
// scheduler lets the next goroutine pass the one that lost it. So where nothing but
// the order of starts at one instant is wrong, the scene is played again: a line that
// does not keep the order does not keep it then either.
func play(t *testing.T, policies []headway.Policy, f func(s *scene)) {
	t.Helper()
	playConfig(t, headway.Config{Policies: policies}, f)
}

func playConfig(t *testing.T, cfg headway.Config, f func(s *scene)) {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for again := 4; ; again-- {
		var disorder string
		synctest.Test(t, func(t *testing.T) {
			s := &scene{T: t, base: &base{epoch: time.Now()}}
			s.Transport = newTransport(t, s.base, cfg)
			f(s)
			s.all.Wait()
			disorder = s.disorder
		})
		if disorder == "" || t.Failed() {
			return
		}
		if again == 0 {
			t.Error(disorder)
			return
		}
		t.Log("once more:", disorder)
	}
}

func newTransport(t testing.TB, base http.RoundTripper, cfg headway.Config) *headway.Transport {
	t.Helper()
	if openStore != nil && cfg.Store == nil {
		cfg.Store = openStore(t)
		if cfg.Secret == nil {
			cfg.Secret = []byte("of the scenes")
		}
	}
	tr, err := headway.NewTransport(base, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// limits is one policy for all hosts under limits.
func limits(list ...limiter.Limit) []headway.Policy {
	return []headway.Policy{{Hosts: []string{"*"}, Limits: list}}
}

// An ask is a request; the zero ask is a GET to https://api.test/.
type ask struct {
	method, url string
	header      http.Header
	call        headway.Call
	ctx         context.Context
	body        io.ReadCloser
}

// request returns the request of an ask.
func (a ask) request(name string) *http.Request {
	if a.url == "" {
		a.url = "https://api.test/"
	}
	if a.ctx == nil {
		a.ctx = context.Background()
	}
	if a.call != (headway.Call{}) {
		a.ctx = headway.WithCall(a.ctx, a.call)
	}
	req, err := http.NewRequestWithContext(a.ctx, a.method, a.url, nil)
	if err != nil {
		panic(err)
	}
	for k, v := range a.header {
		req.Header[k] = v
	}
	req.Header.Set("Name", name)
	if a.body != nil {
		req.Body = a.body
	}
	return req
}

// key asks under a key.
func key(k string) ask { return ask{call: headway.Call{Key: k}} }

// cost asks for a cost.
func cost(n int64) ask { return ask{call: headway.Call{Cost: n}} }

// A trip is a request on its way. Its fields are to be read once done is true.
type trip struct {
	done   atomic.Bool
	resp   *http.Response
	err    error
	after  time.Duration      // from asking to the end
	cancel context.CancelFunc // nil where the ask had a context
}

// send sends a request, and returns when it is in line, at the base, or back.
func (s *scene) send(name string, a ask) *trip {
	p := new(trip)
	if a.ctx == nil {
		a.ctx, p.cancel = context.WithCancel(context.Background())
	}
	req := a.request(name)
	begin := time.Now()
	s.all.Go(func() {
		defer p.done.Store(true)
		if s.stormy {
			storm(func() { p.resp, p.err = s.RoundTrip(req) })
			return
		}
		p.resp, p.err = s.RoundTrip(req)
		p.after = time.Since(begin)
		if (p.resp == nil) == (p.err == nil) {
			s.Errorf("%s: got response %v and error %v, want one of them", name, p.resp, p.err)
		}
	})
	synctest.Wait()
	return p
}

// sendAll sends one request for each name, in order.
func (s *scene) sendAll(a ask, names ...string) (trips []*trip) {
	for _, name := range names {
		trips = append(trips, s.send(name, a))
	}
	return trips
}

// until sleeps until an instant of the log.
func (s *scene) until(at time.Duration) {
	time.Sleep(at - time.Since(s.base.epoch))
	synctest.Wait()
}

// set replaces the policies.
func (s *scene) set(policies []headway.Policy) {
	s.Helper()
	if err := s.SetPolicies(policies); err != nil {
		s.Error(err)
	}
	synctest.Wait()
}

// wantStarts waits until no request waits, and compares all starts, in order; they
// are parted by spaces.
func (s *scene) wantStarts(want string) {
	s.Helper()
	s.all.Wait()
	s.wantStartsSoFar(want)
}

func (s *scene) wantStartsSoFar(want string) {
	s.Helper()
	got, list := s.base.starts(), strings.Fields(want)
	i := 0
	for i < min(len(got), len(list)) && got[i] == list[i] {
		i++
	}
	if i < max(len(got), len(list)) {
		from := max(0, i-5)
		text := fmt.Sprintf("of %d starts, want %d; from number %d on:\ngot  %s\nwant %s", len(got), len(list), from,
			got[from:min(len(got), i+20)], list[from:min(len(list), i+20)])
		if sameButForOrder(got, list) {
			s.disorder = text
			return
		}
		s.Error(text)
	}
}

// sameButForOrder reports whether lists of starts differ only in the order of those
// at one instant.
func sameButForOrder(got, want []string) bool {
	if len(got) != len(want) {
		return false
	}
	for i := range got {
		_, at, _ := strings.Cut(got[i], "@")
		_, due, _ := strings.Cut(want[i], "@")
		if at != due {
			return false
		}
	}
	got, want = slices.Clone(got), slices.Clone(want)
	slices.Sort(got)
	slices.Sort(want)
	return slices.Equal(got, want)
}

// wantRefused checks that a request is over, refused at once, with a reason and
// the true time.
func (s *scene) wantRefused(p *trip, reason limiter.Reason, after time.Duration) *headway.ThrottledError {
	s.Helper()
	if !p.done.Load() {
		s.Errorf("it waits, want it refused")
		return &headway.ThrottledError{}
	}
	e, isThrottled := p.err.(*headway.ThrottledError)
	if !isThrottled || e.Reason != reason || e.RetryAfter != after || p.after != 0 {
		s.Errorf("got %#v after %v, want a refusal at once: %v, %v", p.err, p.after, reason, after)
		return &headway.ThrottledError{}
	}
	if !errors.Is(p.err, headway.ErrThrottled) {
		s.Errorf("%v is not ErrThrottled", p.err)
	}
	return e
}

// wantIdle checks that no request is in line or in flight.
func wantIdle(t testing.TB, tr *headway.Transport) {
	t.Helper()
	for _, h := range tr.Snapshot() {
		if h.Waiting != 0 || h.InFlight != 0 {
			t.Errorf("%s: %d waiting, %d in flight, want nobody", h.Host, h.Waiting, h.InFlight)
		}
	}
}

// fewer returns n, or a fifth of it under the race detector, where each of them takes
// ten times as long; make test runs all of them without it.
func fewer(n int) int {
	if headway.RaceEnabled || testing.Short() {
		return n / 5
	}
	return n
}
