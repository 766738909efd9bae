// Package peek reads the first bytes of a body before its reader does.
package peek

import (
	"bytes"
	"io"
	"net/http"
	"time"
)

// most is how much of a body is read, and patience how long it is waited for.
const (
	most     = 4 << 10
	patience = time.Second
)

// Body returns the first bytes of a response's body, 4 KiB at most, with gzip and
// deflate undone, and puts them back: who reads the body afterwards reads all of it
// as it came, and the error at which the reading stopped. It returns nothing where
// they do not come within a second: then they are for the reader alone. A panic of
// the body is the caller's.
func Body(resp *http.Response) []byte {
	p := &peeked{inner: resp.Body, read: make(chan struct{})}
	resp.Body = p
	go p.fill()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.read:
	case <-timer.C:
		return nil
	}
	if p.panicked != nil {
		panic(p.panicked)
	}
	return decode(resp.Header, p.prefix)
}

// A peeked is a body of which the first bytes have been read, or are being.
type peeked struct {
	inner io.ReadCloser
	read  chan struct{} // closed once the following fields are set

	prefix   []byte
	rest     io.Reader
	panicked any
}

func (p *peeked) fill() {
	defer close(p.read)
	defer func() { p.panicked = recover() }()
	var err error
	p.prefix, err = io.ReadAll(io.LimitReader(p.inner, most))
	if p.rest = io.MultiReader(bytes.NewReader(p.prefix), p.inner); err != nil {
		p.rest = io.MultiReader(bytes.NewReader(p.prefix), failed{err})
	}
}

func (p *peeked) Read(b []byte) (int, error) {
	<-p.read
	if p.panicked != nil {
		panic(p.panicked)
	}
	return p.rest.Read(b)
}

// Close closes the inner body, which ends a read of its.
func (p *peeked) Close() error { return p.inner.Close() }

// failed is a reader that failed.
type failed struct{ err error }

func (f failed) Read([]byte) (int, error) { return 0, f.err }
