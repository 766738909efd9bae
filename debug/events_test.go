package debug

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headway-go/headway"
)

// A writer receives a stream in a bubble. It fails from the nth event on.
type writer struct {
	http.ResponseWriter
	begin     time.Time
	at        []time.Duration // of each event
	text      []string
	deadlines []time.Duration // from when they were set
	failAt    int
	flushed   int
}

func (w *writer) Write(p []byte) (int, error) {
	if len(w.at) == w.failAt {
		return 0, errors.New("gone")
	}
	w.at = append(w.at, time.Since(w.begin))
	w.text = append(w.text, string(p))
	return len(p), nil
}

func (w *writer) SetWriteDeadline(t time.Time) error {
	w.deadlines = append(w.deadlines, time.Until(t))
	return nil
}

func (w *writer) FlushError() error { w.flushed++; return nil }

// watch reads a stream for a time.
func watch(t *testing.T, h http.Handler, url string, w *writer, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	w.ResponseWriter, w.begin = httptest.NewRecorder(), time.Now()
	h.ServeHTTP(w, local(httptest.NewRequestWithContext(ctx, "GET", url, nil)))
}

// events returns what a stream sends within d.
func events(t *testing.T, h http.Handler, url string, d time.Duration) []string {
	t.Helper()
	w := writer{failAt: -1}
	watch(t, h, url, &w, d)
	return w.text
}

// TestStream: one event comes at once and one each second, until the client disconnects.
// Each is complete, and has 10 s to be received.
func TestStream(t *testing.T) {
	inBubble(t, func(t *testing.T, h http.Handler) {
		w := writer{failAt: -1}
		watch(t, h, "/?as=events", &w, 3500*time.Millisecond)
		if time.Since(w.begin) != 3500*time.Millisecond {
			t.Errorf("it ended after %v, want when the reader goes", time.Since(w.begin))
		}
		if len(w.at) != 4 || w.flushed != 4 || len(w.deadlines) != 4 {
			t.Fatalf("%d events, %d flushed, %d deadlines, want 4 each", len(w.at), w.flushed, len(w.deadlines))
		}
		for i, at := range w.at {
			if at != time.Duration(i)*time.Second || w.deadlines[i] != 10*time.Second {
				t.Errorf("event %d came at %v with %v to be taken", i, at, w.deadlines[i])
			}
			lines := strings.Split(w.text[i], "\n")
			for _, line := range lines[:len(lines)-2] {
				if !strings.HasPrefix(line, "data: ") {
					t.Errorf("event %d has a line %q", i, line)
				}
			}
			if !strings.HasSuffix(w.text[i], "\n\n") || strings.Contains(strings.TrimSuffix(w.text[i], "\n\n"), "\n\n") {
				t.Errorf("event %d is not one:\n%s", i, w.text[i])
			}
		}
		if got := w.ResponseWriter.Header().Get("Content-Type"); got != "text/event-stream" {
			t.Errorf("it is %q", got)
		}
	})
}

// TestStreamEndsWhenItIsNotRead at the first event that cannot be written.
func TestStreamEndsWhenItIsNotRead(t *testing.T) {
	inBubble(t, func(t *testing.T, h http.Handler) {
		w := writer{failAt: 2}
		watch(t, h, "/?as=events", &w, time.Hour)
		if got := time.Since(w.begin); got != 2*time.Second {
			t.Errorf("it ended after %v, want 2 s", got)
		}
	})
}

// TestManyLookOnce: a hundred clients cause one reading of the Transport per second, and
// clients with the same window share the event.
func TestManyLookOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		defer s.leave()
		h := Handler(s.Transport).(*handler)
		ctx, cancel := context.WithCancel(t.Context())
		for i := range 100 {
			s.waiting.Go(func() {
				time.Sleep(time.Duration(i%4) * time.Second / 4)
				w := &writer{ResponseWriter: httptest.NewRecorder(), failAt: -1}
				h.ServeHTTP(w, local(httptest.NewRequestWithContext(ctx, "GET", "/?as=events", nil)))
			})
		}
		time.Sleep(9500 * time.Millisecond)
		if got := len(h.last.live); got != 1 {
			t.Errorf("%d events were made of one look, want 1", got)
		}
		cancel()
		synctest.Wait()
		time.Sleep(time.Hour) // without requests, nothing is sampled
		if got := len(h.last.history.samples); got != 10 {
			t.Errorf("%d samples in 9.5 s, want 10", got)
		}
		h.look()
		if got := len(h.last.history.samples); got != 1 {
			t.Errorf("%d samples, want the old ones forgotten", got)
		}
	})
}

// TestStreamOverANetwork: with a real server, a stream outlives the timeouts of
// other requests, and ends when the client goes and when the server shuts down;
// nothing is left in the bubble.
func TestStreamOverANetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr, err := headway.NewTransport(base{}, headway.Config{})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan bool)
		h := Handler(tr)
		server := &http.Server{
			ReadTimeout: 500 * time.Millisecond, WriteTimeout: 500 * time.Millisecond,
			Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				h.ServeHTTP(w, req)
				ended <- true
			}),
		}
		l := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
		served := make(chan error)
		go func() { served <- server.Serve(l) }()
		network := &http.Transport{DialContext: l.dial}
		defer network.CloseIdleConnections()
		open := func() (*http.Response, context.CancelFunc) {
			t.Helper()
			ctx, cancel := context.WithCancel(t.Context())
			req, err := http.NewRequestWithContext(ctx, "GET", "http://127.0.0.1/?as=events", nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := network.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			r := bufio.NewReader(resp.Body)
			for events := 0; events < 2; { // the second comes after a second
				line, err := r.ReadString('\n')
				if err != nil {
					t.Fatalf("after %d events: %v", events, err)
				}
				if line == "\n" {
					events++
				}
			}
			go io.Copy(io.Discard, r) // goes on reading, as a browser does
			return resp, cancel
		}
		resp, cancel := open()
		cancel()
		<-ended
		resp.Body.Close()

		first, cancel := open()
		defer cancel()
		second, cancel := open()
		defer cancel()
		done, begin := make(chan error), time.Now()
		go func() { done <- server.Shutdown(t.Context()) }()
		<-ended
		<-ended
		if d := time.Since(begin); d != 0 {
			t.Errorf("the streams ended %v after the server had begun to shut down, want at once", d)
		}
		if err := <-done; err != nil {
			t.Errorf("shutting down: %v", err)
		}
		if err := <-served; err != http.ErrServerClosed {
			t.Errorf("serving: %v", err)
		}
		first.Body.Close()
		second.Body.Close()
	})
}

// pipes is a network in a bubble.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	p.conns <- server
	return client, nil
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	close(p.closed)
	return nil
}

func (p *pipes) Addr() net.Addr { return new(net.TCPAddr) }
