package respbody

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

// A fakeBody reads as its Reader does, and closes.
type fakeBody struct {
	io.Reader
	closed bool
	err    error // of Close
}

func (b *fakeBody) Close() error {
	b.closed = true
	return b.err
}

// hold puts body into a response that holds a slot, and returns how often the slot was
// released.
func hold(ctx context.Context, body io.ReadCloser) (*http.Response, *atomic.Int32) {
	resp, n := &http.Response{Body: body}, new(atomic.Int32)
	Hold(ctx, resp, func() { n.Add(1) })
	return resp, n
}

func wantReleased(t *testing.T, n *atomic.Int32, want int32) {
	t.Helper()
	if got := n.Load(); got != want {
		t.Errorf("released: got %d times, want %d", got, want)
	}
}

func TestHoldUntilTheEnd(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	resp, n := hold(t.Context(), &fakeBody{Reader: iotest.OneByteReader(strings.NewReader("ab"))})
	p := make([]byte, 8)
	for range 2 {
		if _, err := resp.Body.Read(p); err != nil {
			t.Fatal(err)
		}
		wantReleased(t, n, 0)
	}
	for range 2 { // the end, and the end again
		if _, err := resp.Body.Read(p); err != io.EOF {
			t.Fatalf("got %v, want io.EOF", err)
		}
		wantReleased(t, n, 1)
	}
	resp.Body.Close()
	wantReleased(t, n, 1)
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestHoldUntilAnError(t *testing.T) {
	want := errors.New("broken")
	resp, n := hold(t.Context(), &fakeBody{Reader: readerFunc(func(p []byte) (int, error) { return 1, want })})
	// Bytes that come with an error are passed on with it.
	if m, err := resp.Body.Read(make([]byte, 4)); m != 1 || err != want {
		t.Errorf("got %d, %v, want 1, %v", m, err, want)
	}
	wantReleased(t, n, 1)
}

func TestHoldUntilClose(t *testing.T) {
	want := errors.New("close")
	inner := &fakeBody{Reader: strings.NewReader("abc"), err: want}
	resp, n := hold(t.Context(), inner)
	if err := resp.Body.Close(); err != want || !inner.closed {
		t.Errorf("got %v, closed %v, want %v of the inner body", err, inner.closed, want)
	}
	wantReleased(t, n, 1)
	resp.Body.Close()
	io.Copy(io.Discard, resp.Body)
	wantReleased(t, n, 1)
}

func TestHoldUntilTheContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		resp, n := hold(ctx, &fakeBody{Reader: strings.NewReader("abc")})
		time.Sleep(time.Second - 1)
		synctest.Wait()
		wantReleased(t, n, 0)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		wantReleased(t, n, 1)
		if text, err := io.ReadAll(resp.Body); string(text) != "abc" || err != nil { // that is the base's to end
			t.Errorf("got %q, %v, want the body", text, err)
		}
		resp.Body.Close()
		wantReleased(t, n, 1)

		resp, n = hold(ctx, &fakeBody{Reader: strings.NewReader("abc")}) // it has ended before
		synctest.Wait()
		wantReleased(t, n, 1)
		resp.Body.Close()
		wantReleased(t, n, 1)
	})
}

// leak holds a slot by a body to which no reference is kept.
//
//go:noinline
func leak(ctx context.Context, body io.ReadCloser) *atomic.Int32 {
	resp, n := hold(ctx, body)
	resp.Body.Read(make([]byte, 1))
	return n
}

// collected runs the garbage collector until done, for as long as that may take
// the goroutines in which the runtime runs cleanups.
func collected(done func() bool) bool {
	for range 1000 {
		if done() {
			return true
		}
		runtime.GC()
		runtime.Gosched()
	}
	return false
}

// A context that does not end must not keep the body alive.
func TestHoldUntilGarbage(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	kept, n := hold(ctx, &fakeBody{Reader: strings.NewReader("abc")})
	for name, body := range everyBody("abc") {
		n := leak(ctx, body)
		if !collected(func() bool { return n.Load() > 0 }) || n.Load() != 1 {
			t.Errorf("%s: released %d times, want 1", name, n.Load())
		}
	}
	wantReleased(t, n, 0) // all those collections, and it is in use
	kept.Body.Close()
	kept = nil
	after := leak(ctx, everyBody("abc")["plain"])
	collected(func() bool { return after.Load() > 0 })
	wantReleased(t, n, 1)
}

// A countingContext counts the functions that wait for its end.
type countingContext struct {
	context.Context
	waiting atomic.Int32
}

func (*countingContext) Done() <-chan struct{} { return make(chan struct{}) }

// AfterFunc is what context.AfterFunc calls.
func (c *countingContext) AfterFunc(func()) func() bool {
	c.waiting.Add(1)
	return func() bool { return c.waiting.Add(-1) >= 0 }
}

// A context that does not end, such as a server's, does not accumulate slots.
func TestHoldLeavesTheContext(t *testing.T) {
	ctx := &countingContext{Context: context.Background()}
	resp, _ := hold(ctx, &fakeBody{Reader: strings.NewReader("abc")})
	if got := ctx.waiting.Load(); got != 1 {
		t.Errorf("in use: got %d waiting, want 1", got)
	}
	resp.Body.Close()
	if got := ctx.waiting.Load(); got != 0 {
		t.Errorf("closed: got %d waiting, want 0", got)
	}
	leak(ctx, &fakeBody{Reader: strings.NewReader("abc")})
	if !collected(func() bool { return ctx.waiting.Load() == 0 }) {
		t.Error("the slot of a leaked body stays with the context")
	}
}

func TestHoldWithoutBody(t *testing.T) {
	for _, body := range []io.ReadCloser{nil, http.NoBody} {
		resp, n := hold(t.Context(), body)
		wantReleased(t, n, 1)
		if resp.Body != body {
			t.Errorf("got %v, want %v as it was", resp.Body, body)
		}
	}
}

func TestHoldPanics(t *testing.T) {
	for name, use := range map[string]func(io.ReadCloser){
		"Read":    func(b io.ReadCloser) { b.Read(make([]byte, 1)) },
		"Close":   func(b io.ReadCloser) { b.Close() },
		"WriteTo": func(b io.ReadCloser) { io.Copy(io.Discard, b) },
	} {
		resp, n := hold(t.Context(), panicBody{})
		func() {
			defer func() {
				if recover() != "panicBody" {
					t.Errorf("%s: the panic is not handed on", name)
				}
			}()
			use(resp.Body)
		}()
		if got := n.Load(); got != 1 {
			t.Errorf("%s: released %d times, want 1", name, got)
		}
	}
}

type panicBody struct{}

func (panicBody) Read([]byte) (int, error)         { panic("panicBody") }
func (panicBody) Close() error                     { panic("panicBody") }
func (panicBody) WriteTo(io.Writer) (int64, error) { panic("panicBody") }

// The methods that a body may have beyond Read and Close.
type (
	writer   struct{ sink *bytes.Buffer }
	closer   struct{ sink *bytes.Buffer }
	writerTo struct{ text string }
)

func (w writer) Write(p []byte) (int, error) { return w.sink.Write(p) }

func (c closer) CloseWrite() error {
	c.sink.WriteString("<closed>")
	return nil
}

func (w writerTo) WriteTo(to io.Writer) (int64, error) {
	n, err := io.WriteString(to, w.text)
	return int64(n), err
}

// everyBody returns a body of each kind, all of which read as text.
func everyBody(text string) map[string]io.ReadCloser {
	read := func() *fakeBody { return &fakeBody{Reader: strings.NewReader(text)} }
	w, c, wt := writer{new(bytes.Buffer)}, closer{new(bytes.Buffer)}, writerTo{text}
	return map[string]io.ReadCloser{
		"plain": struct{ *fakeBody }{read()},
		"writer": struct {
			*fakeBody
			writer
		}{read(), w},
		"writerTo": struct {
			*fakeBody
			writerTo
		}{read(), wt},
		"writer writerTo": struct {
			*fakeBody
			writer
			writerTo
		}{read(), w, wt},
		"writer closeWriter": struct {
			*fakeBody
			writer
			closer
		}{read(), w, c},
		"writer closeWriter writerTo": struct {
			*fakeBody
			writer
			closer
			writerTo
		}{read(), w, c, wt},
	}
}

func methodsOf(b io.ReadCloser) string {
	var names []string
	if _, ok := b.(io.Writer); ok {
		names = append(names, "writer")
	}
	if _, ok := b.(closeWriter); ok {
		names = append(names, "closeWriter")
	}
	if _, ok := b.(io.WriterTo); ok {
		names = append(names, "writerTo")
	}
	if names == nil {
		return "plain"
	}
	return strings.Join(names, " ")
}

func TestHoldKeepsMethods(t *testing.T) {
	for name, inner := range everyBody("abc") {
		t.Run(name, func(t *testing.T) {
			resp, n := hold(t.Context(), inner)
			if got := methodsOf(resp.Body); got != name {
				t.Fatalf("got %s, want %s", got, name)
			}
			if w, ok := resp.Body.(io.Writer); ok {
				if m, err := io.WriteString(w, "xy"); m != 2 || err != nil {
					t.Errorf("Write: got %d, %v", m, err)
				}
			}
			if cw, ok := resp.Body.(closeWriter); ok {
				if err := cw.CloseWrite(); err != nil {
					t.Errorf("CloseWrite: got %v", err)
				}
			}
			wantReleased(t, n, 0) // writing says nothing of reading
			var text strings.Builder
			if m, err := io.Copy(&text, resp.Body); m != 3 || err != nil || text.String() != "abc" {
				t.Errorf("Copy: got %d, %v, %q, want abc", m, err, &text)
			}
			wantReleased(t, n, 1)
			resp.Body.Close()
			wantReleased(t, n, 1)
		})
	}
}

// If a writer fails, the rest of the body is still to come.
func TestHoldAfterFailedWriteTo(t *testing.T) {
	resp, n := hold(t.Context(), everyBody("abc")["writerTo"])
	r, w := io.Pipe()
	r.Close()
	if _, err := io.Copy(w, resp.Body); err != io.ErrClosedPipe {
		t.Errorf("got %v, want %v", err, io.ErrClosedPipe)
	}
	wantReleased(t, n, 0)
	resp.Body.Close()
	wantReleased(t, n, 1)
}

// Concurrent ends release the slot once, under -race.
func TestHoldReleasesOnce(t *testing.T) {
	for range 1000 {
		ctx, cancel := context.WithCancel(context.Background())
		resp, n := hold(ctx, &fakeBody{Reader: readerFunc(func([]byte) (int, error) { return 0, io.EOF })})
		body := resp.Body
		var wg sync.WaitGroup
		wg.Go(cancel)
		wg.Go(func() { body.Read(nil) })
		wg.Go(func() { body.Close() })
		wg.Wait()
		if got := n.Load(); got > 1 {
			t.Fatalf("released %d times", got)
		}
		for n.Load() == 0 { // the context's goroutine was first, and is not through yet
			runtime.Gosched()
		}
	}
}

// A connection that switches protocols can be written to, and closed one way.
func TestHoldSwitchingProtocols(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n")
		io.Copy(conn, rw) // until the client closes for writing
		fmt.Fprint(conn, "bye")
		conn.(*net.TCPConn).CloseWrite()
	}))
	defer srv.Close()
	req, err := http.NewRequestWithContext(t.Context(), "GET", srv.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Connection": {"upgrade"}, "Upgrade": {"echo"}}
	resp, err := srv.Client().Transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	n := new(atomic.Int32)
	Hold(req.Context(), resp, func() { n.Add(1) })
	if got := methodsOf(resp.Body); got != "writer closeWriter" {
		t.Fatalf("got %s, want a writer that can be closed", got)
	}
	fmt.Fprint(resp.Body.(io.Writer), "hello, ")
	if err := resp.Body.(closeWriter).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	wantReleased(t, n, 0)
	if text, err := io.ReadAll(resp.Body); string(text) != "hello, bye" || err != nil {
		t.Errorf("got %q, %v, want hello, bye", text, err)
	}
	wantReleased(t, n, 1)
}
