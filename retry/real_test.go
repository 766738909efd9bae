package retry_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/headway-go/headway"
	"github.com/headway-go/headway/headwaytest"
	"github.com/headway-go/headway/limiter"
	"github.com/headway-go/headway/retry"
)

// A server is a real server that counts its connections.
type server struct {
	*httptest.Server
	accepted, open atomic.Int64
}

func newServer(t *testing.T, h http.HandlerFunc) *server {
	s := &server{Server: httptest.NewUnstartedServer(h)}
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			s.accepted.Add(1)
			s.open.Add(1)
		case http.StateClosed, http.StateHijacked:
			s.open.Add(-1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func newClient(t *testing.T, next *headway.Transport, cfg retry.Config) *http.Client {
	t.Helper()
	c, err := retry.NewClient(next, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// client returns a retrying client over the real network, with short backoffs.
func client(t *testing.T, base *http.Transport, p headway.Policy, cfg retry.Config) (*http.Client, *headway.Transport) {
	t.Helper()
	next := newTransport(t, base, p)
	if cfg.MinBackoff == 0 {
		cfg.MinBackoff, cfg.MaxBackoff = time.Millisecond, time.Millisecond
	}
	t.Cleanup(base.CloseIdleConnections)
	return newClient(t, next, cfg), next
}

// C30: after 503, 503, 200, two bodies are drained and closed, and the third is open.
// All came over one connection.
func TestC30_OneConnection(t *testing.T) {
	var n atomic.Int64
	srv := newServer(t, func(w http.ResponseWriter, req *http.Request) {
		if n.Add(1) < 3 {
			w.WriteHeader(503)
			io.WriteString(w, "come back later")
			return
		}
		io.WriteString(w, "hello")
	})
	c, next := client(t, new(http.Transport), headway.Policy{MaxInFlight: 1}, retry.Config{})
	resp, err := c.Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode != 200 || string(text) != "hello" || err != nil || n.Load() != 3 {
		t.Errorf("got %s, %q, %v after %d attempts", resp.Status, text, err, n.Load())
	}
	if got := srv.accepted.Load(); got != 1 {
		t.Errorf("three attempts took %d connections, want one", got)
	}
	headwaytest.AssertIdle(t, next)
}

// C32: the first attempt times out, and the second receives the whole body.
func TestC32_BodyComesAgain(t *testing.T) {
	var n atomic.Int64
	arrived, gone := make(chan struct{}), make(chan struct{})
	srv := newServer(t, func(w http.ResponseWriter, req *http.Request) {
		text, err := io.ReadAll(req.Body)
		if string(text) != "hello" || req.ContentLength != 5 || err != nil {
			t.Errorf("got %q of %d, %v, want hello of 5", text, req.ContentLength, err)
		}
		if n.Add(1) == 1 {
			close(arrived)
			<-gone
		}
	})
	defer close(gone)
	// The first attempt fails after it has arrived; the others may take their time.
	hasty, patient := &http.Transport{ResponseHeaderTimeout: time.Millisecond}, new(http.Transport)
	defer hasty.CloseIdleConnections()
	defer patient.CloseIdleConnections()
	var attempts atomic.Int64
	c := newClient(t, newTransport(t, roundTripper(func(req *http.Request) (*http.Response, error) {
		if attempts.Add(1) > 1 {
			return patient.RoundTrip(req)
		}
		resp, err := hasty.RoundTrip(req)
		<-arrived
		return resp, err
	}), headway.Policy{}), retry.Config{MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond})
	resp, err := c.Do(requestTo(retry.Idempotent(t.Context()), "POST", srv.URL, "hello"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 || n.Load() != 2 {
		t.Errorf("got %s after %d attempts, want 200 after 2", resp.Status, n.Load())
	}
}

func requestTo(ctx context.Context, method, u, text string) *http.Request {
	req := request(ctx, method, text)
	other, err := req.URL.Parse(u)
	if err != nil {
		panic(err)
	}
	req.URL = other
	return req
}

// A POST is retried after a refused connection, but not after a reset one.
func TestC39_RealConnections(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + l.Addr().String()
	l.Close()
	next := newTransport(t, new(http.Transport), headway.Policy{})
	starts := headwaytest.NewRecorder(next)
	rt, err := retry.New(newTransport(t, starts, headway.Policy{}), retry.Config{})
	if err != nil {
		t.Fatal(err)
	}
	rt.SetJitter(0)
	_, err = rt.RoundTrip(requestTo(t.Context(), "POST", closed, "hello"))
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "dial" || len(starts.Starts()) != 5 {
		t.Errorf("got %v after %d attempts, want the error of 5", err, len(starts.Starts()))
	}

	var n atomic.Int64
	srv := newServer(t, func(http.ResponseWriter, *http.Request) {
		n.Add(1)
		panic(http.ErrAbortHandler)
	})
	c, _ := client(t, new(http.Transport), headway.Policy{}, retry.Config{})
	for method, want := range map[string]int64{"POST": 1, "GET": 5} {
		n.Store(0)
		if _, err := c.Do(requestTo(t.Context(), method, srv.URL, "hello")); err == nil {
			t.Errorf("%s: got no error", method)
		}
		if n.Load() != want {
			t.Errorf("%s: sent %d times, want %d", method, n.Load(), want)
		}
	}
}

// A client's timeout spans all attempts, and the *url.Error reports it.
func TestClientTimeout(t *testing.T) {
	srv := newServer(t, func(w http.ResponseWriter, req *http.Request) { w.WriteHeader(503) })
	c, _ := client(t, new(http.Transport), headway.Policy{Limits: []limiter.Limit{limiter.Every(time.Hour)}}, retry.Config{})
	c.Timeout = 5 * time.Minute // a longer call fails
	resp, err := c.Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 503 {
		t.Errorf("got %s, want 503: the retry had to wait for an hour", resp.Status)
	}
	_, err = c.Get(srv.URL)
	var timeout interface{ Timeout() bool }
	if !errors.As(err, &timeout) || !timeout.Timeout() || !errors.Is(err, headway.ErrThrottled) {
		t.Errorf("got %v, want a refusal that is a timeout", err)
	}
}

// 10,000 calls of every kind leave no goroutine, connection, request in line or slot
// behind.
func TestNothingIsLeft(t *testing.T) {
	srv := newServer(t, func(w http.ResponseWriter, req *http.Request) {
		switch rand.IntN(8) {
		case 0:
			w.WriteHeader(503)
			io.WriteString(w, "down")
		case 1:
			w.WriteHeader(429)
		case 2:
			w.WriteHeader(500)
			w.Write(make([]byte, 10_000)) // more than is drained
		case 3:
			panic(http.ErrAbortHandler)
		case 4:
			w.WriteHeader(404)
		case 5:
			http.Redirect(w, req, "/again", http.StatusTemporaryRedirect)
		default:
			io.WriteString(w, "hello")
		}
	})
	base := &http.Transport{MaxIdleConnsPerHost: 16}
	c, next := client(t, base, headway.Policy{
		Limits: []limiter.Limit{{N: 20_000, Per: time.Second, Law: limiter.Bucket, Burst: 100}}, MaxInFlight: 16, MaxWaiting: 15,
	}, retry.Config{MaxRetries: 3, Budget: retry.Budget{PerSecond: 1000}})
	var all sync.WaitGroup
	var mu sync.Mutex // guards outcomes
	outcomes := map[string]int{}
	each := 250
	if raceEnabled {
		each /= 5
	}
	for range 40 {
		all.Go(func() {
			for range each {
				ctx, cancel := context.WithCancel(context.Background())
				if rand.IntN(20) == 0 {
					time.AfterFunc(time.Duration(rand.IntN(3000))*time.Microsecond, cancel)
				}
				what := "a response"
				resp, err := c.Do(requestTo(ctx, []string{"GET", "POST", "PUT"}[rand.IntN(3)], srv.URL, "hello"))
				switch {
				case errors.Is(err, context.Canceled):
					what = "canceled"
				case errors.Is(err, headway.ErrThrottled):
					what = "refused"
				case err != nil:
					what = "failed"
				default:
					if rand.IntN(2) == 0 {
						io.Copy(io.Discard, resp.Body)
					}
					resp.Body.Close()
				}
				cancel()
				mu.Lock()
				outcomes[what]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	t.Log(outcomes)
	if len(outcomes) != 4 {
		t.Errorf("got %v, want some of every kind", outcomes)
	}
	headwaytest.AssertIdle(t, next)
	base.CloseIdleConnections()
	srv.Close() // waits for its connections
	if got := srv.open.Load(); got != 0 {
		t.Errorf("%d of %d connections are open", got, srv.accepted.Load())
	}
	goleak.VerifyNone(t)
}

// A success at the first attempt costs at most two allocations.
func TestAllocFirstTry(t *testing.T) {
	if raceEnabled {
		return // the race detector allocates by itself; make test runs this without it too
	}
	req := request(t.Context(), "GET", "")
	resp := response(200, nil)
	for name, cfg := range map[string]retry.Config{"default": {}, "MaxElapsed": {MaxElapsed: time.Minute}} {
		rt, err := retry.New(newTransport(t, roundTripper(func(*http.Request) (*http.Response, error) { return resp, nil }),
			headway.Policy{Limits: []limiter.Limit{{N: 1_000_000, Per: time.Second, Law: limiter.Bucket}}}), cfg)
		if err != nil {
			t.Fatal(err)
		}
		n := testing.AllocsPerRun(2000, func() {
			if _, err := rt.RoundTrip(req); err != nil {
				t.Error(err)
			}
		})
		if n > 0 {
			t.Errorf("%s: got %v allocations, want none", name, n)
		}
	}
}
