// Package peek reads the first bytes of a body before its caller does.
package peek

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

// most is how many bytes of a body are read, and patience how long that may take.
const (
	most     = 4 << 10
	patience = time.Second
)

// Body returns the first bytes of a response's body, 4 KiB at most, with gzip and
// deflate undone, and puts them back: a later reader of the body receives all of it
// unchanged, and the error at which Body stopped reading. If the body takes longer than a
// second, or until ctx, the request's context, ends, Body returns what has arrived until
// then. If the body panics meanwhile, so does Body.
func Body(ctx context.Context, resp *http.Response) []byte {
	p := &peeked{inner: resp.Body, read: make(chan struct{})}
	resp.Body = p
	go p.fill()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.read:
		if p.panicked != nil {
			panic(p.panicked)
		}
	case <-timer.C:
	case <-ctx.Done():
	}
	return decode(resp.Header, p.enough())
}

// A peeked is a body whose first bytes have been read, or are being read.
type peeked struct {
	inner io.ReadCloser
	read  chan struct{} // closed when fill has ended

	mu     sync.Mutex
	prefix []byte // grows until read is closed
	stop   bool   // enough was called

	// Set before read is closed.
	rest     io.Reader
	panicked any
}

// fill reads the first bytes, until there are enough.
func (p *peeked) fill() {
	defer close(p.read)
	var err error
	defer func() {
		p.panicked = recover()
		if p.rest = io.MultiReader(bytes.NewReader(p.prefix), p.inner); err != nil {
			p.rest = io.MultiReader(bytes.NewReader(p.prefix), failed{err})
		}
	}()
	buf := make([]byte, most)
	for n, more := 0, true; more && err == nil; {
		var m int
		m, err = p.inner.Read(buf[n:])
		n += m
		more = p.grow(buf[:n])
	}
}

// grow makes prefix longer, and reports whether it should grow on.
func (p *peeked) grow(prefix []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.prefix = prefix
	return !p.stop && len(prefix) < most
}

// enough returns what has been read, and ends the reading.
func (p *peeked) enough() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stop = true
	return p.prefix
}

// Read waits for the first bytes, as long as those are being read.
func (p *peeked) Read(b []byte) (int, error) {
	<-p.read
	if p.panicked != nil {
		panic(p.panicked)
	}
	return p.rest.Read(b)
}

// Close closes the inner body, which ends a pending read of it.
func (p *peeked) Close() error { return p.inner.Close() }

// failed is a reader that returns an error.
type failed struct{ err error }

func (f failed) Read([]byte) (int, error) { return 0, f.err }
